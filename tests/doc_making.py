"""Makes the pages that are made: the reference and the man page from the parser, the keys."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from paths import ROOT
from sql_page import sql_page

from nsys_tui import __version__
from nsys_tui.cli import VERBS, build_parser
from nsys_tui.commands.explain import exit_codes
from nsys_tui.commands.keys import as_markdown, as_svg, key_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCS = ROOT / "docs"


def made_pages() -> dict[Path, str]:
    """Every page that is made, as it should be now."""
    blocks = key_blocks({})
    return {
        DOCS / "reference.md": reference(),
        DOCS / "nsys-tui.1": man_page(),
        DOCS / "sql.md": sql_page(),
        DOCS / "keys.md": as_markdown(blocks).replace(
            "# Keys\n",
            "# Keys\n\nMade from the keymap; `nsys-tui keys` prints them with your own, and"
            " [as a card](pictures/keys.svg)\nwith `--format svg`. An action id is what the"
            " [configuration](configuration.md) remaps.\n",
        ),
        DOCS / "pictures" / "keys.svg": as_svg(blocks),
    }


def parser_of(verb: str) -> argparse.ArgumentParser:
    return _children(build_parser(verb))[verb]


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {}


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """How each argument is written, and its help; of all verbs' own the same ``--help`` not."""
    formatter = argparse.HelpFormatter("")
    for action in parser._actions:
        hidden = action.help == argparse.SUPPRESS or action.dest == "help"
        if hidden or isinstance(action, argparse._SubParsersAction):
            continue
        written = ", ".join(action.option_strings)
        help_text = formatter._expand_help(action) if action.help else ""
        yield f"{written} {_value(action)}".strip(), help_text


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    name = str(name or (action.dest.upper() if action.option_strings else action.dest))
    many = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
    return many.get(str(action.nargs), name)


def reference() -> str:
    """Every verb, its options and examples, in Markdown."""
    parts = [
        "# Verbs and options",
        "Made from the parser: `nsys-tui VERB --help` says the same.",
        "| verb | gives |\n|---|---|\n"
        + "\n".join(f"| [`{verb}`](#nsys-tui-{verb}) | {text} |" for verb, text in VERBS.items()),
    ]
    for verb in VERBS:
        parser = parser_of(verb)
        parts += [f"## nsys-tui {verb}", parser.description or ""]
        parts += [f"`{parser.usage}`" if parser.usage else "", _table(parser)]
        summaries = _summaries(parser)
        for name, child in _children(parser).items():
            parts += [f"### nsys-tui {verb} {name}", f"{summaries[name]}.", _table(child)]
        if parser.epilog:
            parts.append(f"```text\n{parser.epilog.rstrip()}\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(parser: argparse.ArgumentParser) -> str:
    rows = [
        f"| `{written}` | {text} |".replace(written, written.replace("|", "\\|"))
        for written, text in _arguments(parser)
    ]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""


def man_page() -> str:
    """All verbs in one page for man."""
    lines = [
        f'.TH NSYS-TUI 1 "" "nsys-tui {__version__}" "User Commands"',
        ".ad l",
        ".SH NAME",
        "nsys-tui \\- read, explain and repeat NVIDIA Nsight Systems profiles in the terminal",
        ".SH SYNOPSIS",
        ".B nsys-tui\n.RI [ REPORT ...]",
        ".br\n.B nsys-tui\n.I VERB\n.RI [ ARGUMENT ...]",
        ".SH DESCRIPTION",
        "Without a verb the reports are opened in the terminal; without a report, a list of what",
        "can be opened.",
        ".SH VERBS",
    ]
    for verb, text in VERBS.items():
        parser = parser_of(verb)
        lines += [f".SS {verb}", _roff(parser.description or text), *_options(parser)]
        for name, child in _children(parser).items():
            lines += [f".TP\n.B {verb} {name}", _roff(_summaries(parser)[name]), ".RS"]
            lines += [*_options(child), ".RE"]
        if parser.epilog:
            lines += [".PP\n.nf", _roff(parser.epilog.rstrip()), ".fi"]
    lines.append(".SH EXIT STATUS")
    for code, text in sorted(exit_codes().items()):
        lines += [f".TP\n.B {code}", _roff(text)]
    lines += [
        ".SH ENVIRONMENT",
        ".TP\n.B NSYS_TUI_CONFIG\nConfiguration file instead of the user's.",
        ".TP\n.B NSYS_TUI_THEME\nTheme.",
        ".TP\n.B NO_COLOR\nNo colours: glyphs and emphasis.",
        ".SH SEE ALSO\n.BR nsys (1)",
    ]
    return "\n".join(lines) + "\n"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for written, text in _arguments(parser):
        yield f".TP\n.B {_roff(written)}".replace("|", "|\\:")  # lines may break there
        yield _roff(text)


def _roff(text: str) -> str:
    """Letters that troff would take for its own, and no line that begins with a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    names = {"…": "\\&...", "≈": "\\(~=", "µ": "\\(mc", "–": "\\(en", "×": "\\(mu", "→": "\\(->"}
    for letter, name in names.items():
        escaped = escaped.replace(letter, name)
    return re.sub(r"(?m)^(?=[.'])", "\\\\&", escaped)
