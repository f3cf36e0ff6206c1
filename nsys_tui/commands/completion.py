"""``nsys-tui completion SHELL``: what makes a shell ask this program itself for what comes next."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from nsys_tui.commands.options import declared
from nsys_tui.errors import OK

DESCRIPTION = 'Prints completion code: eval "$(nsys-tui completion bash)".'
SUFFIXES = ("sqlite", "nsys-rep", "qdrep")
_BEFORE: Final = re.compile(r"(?:.*[\s;|&(])?(?=(?:\S*/)?nsys-tui\s)", re.DOTALL)
"""What stands before the program's name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(arguments: argparse.Namespace) -> int:
    """Prints the code for one shell."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["nsys-tui"], shell=arguments.shell))
    return OK


def with_open(line: str, point: int, verbs: Iterable[str]) -> tuple[str, int]:
    """The last command of a line; one that begins with a report or an option with the verb meant.

    Args:
        line: as typed: zsh gives all of it, fish the blank after ``|`` and ``;``.
        point: where in it the cursor stands.
        verbs: words that need no other before them.
    """
    before = _BEFORE.match(line, 0, point)
    start = before.end() if before else 0
    line, point = line[start:], point - start
    program, blank, rest = line.partition(" ")
    first, more, _ = rest.lstrip().partition(" ")
    if not more or first in (*verbs, "-h", "--help", "--version"):
        return line, point
    return f"{program}{blank}open {rest}", point + len("open ")


def complete(parser: argparse.ArgumentParser, verb: str) -> None:
    """Answers a shell that asks for completions, and ends.

    Args:
        parser: with the verb of the line in full.
        verb: the verb; empty while it is being typed, when reports may come too.
    """
    from argcomplete import autocomplete
    from argcomplete.completers import FilesCompleter

    reports = FilesCompleter(SUFFIXES)
    first = next(action for action in parser._actions if not action.option_strings)
    first.completer = reports  # type: ignore[attr-defined]
    for action in _actions(parser):
        make = VALUES.get((verb, action.dest)) or VALUES.get(("", action.dest))
        if verb == "capture" and action.dest.startswith("nsys_"):
            make = _of_nsys(action.dest.removeprefix("nsys_"))
        if isinstance(make, str):
            make = partial(declared, make)
        if make is not None and not action.choices:
            action.completer = _listed(make)  # type: ignore[attr-defined]
    autocomplete(parser, always_complete_options=False, default_completer=reports)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action.choices, dict):
            for child in action.choices.values():
                yield from _actions(child)


def _listed(make: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """What completes each item of a list with commas; an error completes nothing."""

    def completer(prefix: str, **_: Any) -> list[str]:
        before, comma, _last = prefix.rpartition(",")
        try:
            return [f"{before}{comma}{word}" for word in make()]
        except Exception:
            return []

    return completer


def _themes() -> Iterable[str]:
    from nsys_tui.config import default_path
    from nsys_tui.render.palette import theme_names

    return theme_names(default_path().parent / "themes")


def _tables() -> Iterable[str]:
    from nsys_tui.export.events import TABLES

    return [*TABLES, *declared("analysis.stats.reports:REPORTS")]


def _screens() -> Iterable[str]:
    from nsys_tui.ui.keymap import SCREENS

    return [spec.name for spec in SCREENS]


def _targets() -> Iterable[str]:
    from nsys_tui.capture.targets import all_targets
    from nsys_tui.config import load_config

    return [target.name for target in all_targets(load_config())]


def _capture_presets() -> Iterable[str]:
    from nsys_tui.capture.options.presets import presets
    from nsys_tui.config import load_config

    return presets(load_config().capture)


def _captures() -> Iterable[str]:
    from nsys_tui.capture.record import Store

    return Store().ids()


def _words() -> Iterable[str]:
    from nsys_tui.text.definitions import definitions

    return [definition.name for definition in definitions()]


def _of_nsys(name: str) -> Callable[[], Iterable[str]]:
    from nsys_tui.capture.options.table import OPTIONS

    return lambda: OPTIONS[name].choices


VALUES: Final[dict[tuple[str, str], Callable[[], Iterable[str]] | str]] = {
    ("", "theme"): _themes,
    ("", "keys"): "ui.presets:presets",
    ("stats", "reports"): "analysis.stats.reports:REPORTS",
    ("stats", "help_reports"): "analysis.stats.reports:REPORTS",
    ("stats", "formats"): lambda: ("column", "table", "csv", "tsv", "json", "markdown", "html"),
    ("stats", "timeunit"): lambda: ("nsec", "usec", "msec", "seconds"),
    ("analyze", "rules"): "analysis.rules.ranking:RULES",
    ("export", "table"): _tables,
    ("open", "print"): _screens,
    ("capture", "words"): _targets,
    ("capture", "preset"): _capture_presets,
    ("capture", "repeat"): _captures,
    ("targets", "name"): _targets,
    ("captures", "id"): _captures,
    ("compare", "baseline"): "export.baselines:names",
    ("baseline", "name"): "export.baselines:names",
    ("explain", "words"): _words,
}
"""What completes a value, by verb (empty: any) and the parser's name of it; see ``declared``."""
