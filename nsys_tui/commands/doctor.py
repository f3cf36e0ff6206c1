"""``nsys-tui doctor``: what terminal, clipboard, nsys and cache were found; what a report holds."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from nsys_tui.commands.open import add_looks, settings
from nsys_tui.commands.printing import room
from nsys_tui.config import Config
from nsys_tui.errors import NsysTuiError
from nsys_tui.names import visible
from nsys_tui.paths import state_folder
from nsys_tui.text.folding import wrapped
from nsys_tui.ui.terminal import Terminal
from nsys_tui.units import format_bytes

Lines = list[tuple[str, str]]


DESCRIPTION = "Says what was found on this machine and why, and what a report can answer."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    from nsys_tui.commands.options import add_format, add_report

    add_report(parser, optional=True)
    add_looks(parser)
    add_format(parser, "commands.doctor:schema", ("table", "json"))


def run(arguments: argparse.Namespace) -> int:
    """Prints all findings; a report that cannot be read decides the exit status."""
    config, terminal = settings(arguments)
    sections = [
        ("Terminal", terminal_lines(terminal)),
        ("Settings", settings_lines(config, terminal)),
        ("Clipboard", clipboard_lines(os.environ)),
        ("nsys", nsys_lines(arguments.nsys or config.nsys.path)),
        ("Cache", cache_lines(config)),
    ]
    status, report = 0, None
    if arguments.report:
        report, status = report_lines(arguments)
        sections.append((f"Report {visible(arguments.report)}", report))
    if arguments.format == "json":
        by_section = {title.partition(" ")[0]: _labelled(lines) for title, lines in sections}
        print(json.dumps(by_section, indent=1))
    else:
        cells = room(sys.stdout)
        print("\n\n".join(section(title, lines, cells) for title, lines in sections))
    return status


_LABELS: Final = {
    "Terminal": "size app colours characters background",
    "Settings": "config theme themes keys problem?",
    "Clipboard": "route tmux? also",
    "nsys": "found? then? not_found?",
    "Cache": "folder used free",
    "Report?": "nsys? note? damaged? yes? no? cannot_be_read?",
}
"""What stands in each section; with ``?`` not always."""


def schema() -> dict[str, Any]:
    """The JSON Schema of what json prints: texts by label, by section."""
    from nsys_tui.model.table import Column, Form
    from nsys_tui.text.documents import row_schema

    def column(name: str, **options: Any) -> Column:
        key = name.rstrip("?").replace("_", " ")
        return Column(key=key, optional=name.endswith("?"), **options)

    def section(labels: str) -> tuple[Column, ...]:
        return tuple(column(label, form=Form.LIST) for label in labels.split())

    draft = "https://json-schema.org/draft/2020-12/schema"
    known = [column(title, inner=section(labels)) for title, labels in _LABELS.items()]
    return {"$schema": draft, "title": "texts by label, by section", **row_schema(known)}


def _labelled(lines: Lines) -> dict[str, list[str]]:
    """Texts by label; several lines may have the same, or go on without one."""
    by_label: dict[str, list[str]] = {}
    name = ""
    for label, text in lines:
        name = label or name
        by_label.setdefault(name, []).append(text)
    return by_label


def section(title: str, lines: Lines, room: int | None = None) -> str:
    """A title and aligned ``label  text`` lines below it, in lines of ``room`` cells."""
    width = max((len(label) for label, _ in lines), default=0)
    parts = [title]
    for label, text in lines:
        texts = [text] if room is None else wrapped(text, room - width - 4)
        heads = [label, *[""] * (len(texts) - 1)]
        parts += [f"  {h:<{width}}  {t}".rstrip() for h, t in zip(heads, texts, strict=True)]
    return "\n".join(parts)


def terminal_lines(terminal: Terminal) -> Lines:
    """What the terminal can show, each with the reason."""
    why = terminal.reasons
    size = shutil.get_terminal_size()
    return [
        ("size", f"{size.columns}x{size.lines}; the app needs 80x24"),
        ("app", f"{'yes' if terminal.app else 'no, text is printed'} ({why['app']})"),
        ("colours", f"{terminal.colours} ({why['colours']})"),
        ("characters", f"{'ASCII' if terminal.ascii else 'Unicode'} ({why['ascii']})"),
        ("background", f"{'dark' if terminal.dark else 'light'} ({why['dark']})"),
    ]


def settings_lines(config: Config, terminal: Terminal) -> Lines:
    """Config file, theme and keys, with what is wrong about them."""
    from nsys_tui.render.palette import theme_names
    from nsys_tui.ui import keymap, presets
    from nsys_tui.ui.theming import choose_theme

    folder = config.path.parent / "themes"
    mapped = presets.effective(config.keys)
    screens = keymap.screen_actions()
    known = {a.id for actions in (keymap.GLOBAL, *screens.values()) for a in actions}
    unknown = [name for name in config.keys.bindings if name not in known]
    problems = [*keymap.clashes(screens, mapped), *(f"no action named {name}" for name in unknown)]
    exists = "" if config.path.exists() else " (not there: defaults)"
    return [
        ("config", f"{config.path}{exists}"),
        ("theme", choose_theme(config.display.theme, terminal)),
        ("themes", ", ".join(theme_names(folder)) + f"; your own go to {folder}"),
        ("keys", f"{config.keys.preset}; presets: {', '.join(presets.presets())}"),
        *(("problem", problem) for problem in problems),
    ]


def clipboard_lines(environ: Any) -> Lines:
    """The route that copying takes."""
    from nsys_tui.ui.clipboard import has_system_clipboard

    tools = [t for t in ("wl-copy", "xclip", "xsel", "pbcopy", "clip.exe") if shutil.which(t)]
    remote = bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    if has_system_clipboard(environ):
        route = f"this machine's clipboard ({', '.join(tools) or 'no tool found: OSC 52 instead'})"
    else:
        reason = "over SSH" if remote else "no display"
        route = f"the terminal's clipboard by OSC 52 ({reason})"
    lines = [("route", route)]
    if environ.get("TMUX"):
        lines.append(("tmux", "needs set-clipboard on, or allow-passthrough on"))
    return [*lines, ("also", str(state_folder() / "copied.txt"))]


def nsys_lines(asked: str | None) -> Lines:
    """The nsys executables that export reports, in the order in which they are tried."""
    from nsys_tui.reader.find_nsys import all_nsys, nsys_version

    candidates = all_nsys(asked)
    if not candidates:
        return [("not found", "only .sqlite files can be opened; export elsewhere, or give --nsys")]
    lines = []
    for number, path in enumerate(candidates):
        version = ".".join(map(str, nsys_version(path))) or "tells no version"
        lines.append(("then" if number else "found", f"{visible(str(path))}, {version}"))
    return lines


def cache_lines(config: Config) -> Lines:
    """Where decoded columns are kept, how much, and whether there is room."""
    from nsys_tui.reader.cache import cache_at

    root = cache_at(config.cache.dir).root
    used = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    existing = next((p for p in (root, *root.parents) if p.is_dir()), Path("/"))
    free = shutil.disk_usage(existing).free
    writable = "" if os.access(existing, os.W_OK) else "; cannot be written: nothing is kept"
    return [
        ("folder", f"{root}{writable}"),
        ("used", format_bytes(used)),
        ("free", format_bytes(free)),
    ]


def report_lines(arguments: argparse.Namespace) -> tuple[Lines, int]:
    """What a report can answer, what would have recorded the rest, and what is not believed.

    All events are read once: some doubts show nowhere else.
    """
    from nsys_tui.commands.options import open_from
    from nsys_tui.model.capabilities import Capability
    from nsys_tui.model.report import PARTS

    try:
        report = open_from(arguments)
    except NsysTuiError as error:
        return [("cannot be read", error.one_line)], error.exit_code
    lines: Lines = [("nsys", visible(report.metadata.product_version) or "unknown version")]
    status = 0
    for part in PARTS:
        try:
            report.load(part)
        except NsysTuiError as error:
            lines.append(("damaged", error.one_line))
            status = error.exit_code
    notes = (*report.metadata.notes, *report.notes.texts)
    lines += [("note", visible(note)) for note in notes]
    for kind in Capability:
        lines.append(("yes" if report.can(kind) else "no", report.lacks(kind) or str(kind)))
    report.close()
    return lines, status
