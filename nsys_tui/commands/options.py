"""Options that several verbs share, so that they read and behave the same everywhere."""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui import __version__
from nsys_tui.errors import UsageError
from nsys_tui.units import closed, parse_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.analysis.window import Choice, Scope
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table

TABLE_FORMATS = ("table", "json", "csv", "tsv", "markdown", "html")
SCHEMA = "json-schema"


class Prose(argparse.HelpFormatter):
    """Fills the paragraphs of description and epilog; lines with two spaces stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts: list[str] = []
        for is_laid_out, lines in groupby(text.splitlines(), lambda line: not line or "  " in line):
            paragraph = "\n".join(lines)
            parts.append(paragraph if is_laid_out else super()._fill_text(paragraph, width, indent))
        return "\n".join(parts)


def add(parser: argparse._ActionsContainer, shown: str, text: str, **more: Any) -> None:
    """Adds an option by what ``--help`` shows: ``-o, --output FILE``, or of a flag ``--strict``.

    Args:
        parser: of the verb, or a group of its options.
        shown: its names, and the word that stands for its value.
        text: what it does.
        more: what else ``add_argument`` takes; with neither that nor such a word it is a flag.
    """
    *names, last = shown.split(", ")
    name, _, word = last.partition(" ")
    if word:
        more["metavar"] = word
    elif not more:
        more["action"] = "store_true"
    parser.add_argument(*names, name, help=text, **more)


def add_report(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Adds the report argument and how to read it (``--nsys``, ``--no-cache``, ``--log``)."""
    parser.add_argument(
        "report",
        nargs="?" if optional else None,
        metavar="REPORT",
        help=".sqlite, .nsys-rep or .qdrep file",
    )
    add_reading(parser)


def add_reading(parser: argparse._ActionsContainer) -> None:
    """Adds how reports are read: ``--nsys``, ``--no-cache`` and ``--log``."""
    add(parser, "--nsys PATH", "nsys executable for exporting a report")
    add(parser, "--no-cache", "neither read nor write the cache")
    add(parser, "--log FILE", "write a debug log to FILE", type=Path)


def add_scope(parser: argparse._ActionsContainer) -> None:
    """Adds ``--process``, ``--device``, ``--stream`` and ``--window``."""
    add_choice(parser)
    add(parser, "--window START/END", "times such as 1.2s/1.5s; either side may be empty")


def add_choice(parser: argparse._ActionsContainer) -> None:
    """Adds ``--process``, ``--device`` and ``--stream``."""
    for name, metavar, text in (
        ("process", "PID", "only this process (repeatable)"),
        ("device", "N", "only this GPU, by its number in the overview (repeatable)"),
        ("stream", "ID", "only this CUDA stream (repeatable)"),
    ):
        parser.add_argument(f"--{name}", type=int, action="append", metavar=metavar, help=text)


class _FormatAction(argparse.Action):
    """``--format``; ``json-schema`` prints what json holds and ends, as ``--help`` does."""

    document: str

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del option_string
        if values != SCHEMA:
            setattr(namespace, self.dest, values)
            return
        print_schema(self.document)
        parser.exit()


def declared(name_of: str) -> Any:
    """What ``module:NAME`` holds, or gives when it is called; without a name its ``DOCUMENT``."""
    import importlib

    module, _, name = name_of.partition(":")
    document = getattr(importlib.import_module(f"nsys_tui.{module}"), name or "DOCUMENT")
    return document() if callable(document) else document


def print_schema(document: str) -> None:
    """Prints the JSON Schema of a document, or a schema itself; see ``declared``."""
    import json

    from nsys_tui.text.documents import json_schema

    schema = declared(document)
    print(json.dumps(schema if isinstance(schema, dict) else json_schema(schema), indent=1))


def add_format(
    parser: argparse._ActionsContainer,
    document: str,
    formats: Sequence[str] = TABLE_FORMATS,
    checked: Callable[[str], str] | None = None,
) -> None:
    """Adds ``--format``, the first format being the default, and ``json-schema`` to it.

    Args:
        parser: of the verb.
        document: module whose ``DOCUMENT`` declares what json holds, or ``module:NAME``; empty
            where a report decides which columns there are: see ``rows_told``.
        formats: what can be printed.
        checked: takes other words for them and options, of ``-f`` too, as nsys does.
    """
    action = parser.add_argument(
        *(("-f", "--format") if checked else ("--format",)),
        action=_FormatAction if document else "store",
        **({"type": checked, "metavar": "FORMAT"} if checked else {"choices": (*formats, SCHEMA)}),
        default=formats[0],
        help=f"{', '.join(formats)}; {SCHEMA} describes what json prints",
    )
    action.document = document  # type: ignore[attr-defined]


def rows_told(arguments: argparse.Namespace) -> bool:
    """Whether only what json prints of any report was asked for, and was printed."""
    if arguments.format != SCHEMA or arguments.report is not None:
        return False
    print_schema("text.documents:ROWS")
    return True


def print_rows_schema(table: Table) -> None:
    """Prints the JSON Schema of what json prints of a table."""
    import json

    from nsys_tui.text.formats import Format
    from nsys_tui.text.tables import rows_schema

    print(json.dumps(rows_schema(table, Format("json").units), indent=1))


def add_json(parser: argparse.ArgumentParser, document: str) -> None:
    """Adds ``--format`` text or json, and ``--json`` for the latter."""
    add_format(parser, document, ("text", "json"))
    text = "the same as --format json"
    add(parser, "--json", text, dest="format", action="store_const", const="json")


def add_question(parser: argparse.ArgumentParser, document: str) -> None:
    """Adds what every verb takes that asks one report: the report, its part, ``--format``."""
    add_report(parser)
    add_scope(parser)
    add_format(parser, document)


def add_names(parser: argparse._ActionsContainer, text: str, default: str | None) -> None:
    """Adds ``--names``: how kernels are named."""
    add(parser, "--names", text, choices=("short", "normalised", "full"), default=default)


def add_sections(parser: argparse._ActionsContainer, names: Sequence[str], text: str) -> None:
    """Adds ``--section``, which may be repeated."""
    add(parser, "--section NAME", text, choices=names, action="append")


def add_rows(
    parser: argparse._ActionsContainer, flag: str, text: str, default: int | None = None
) -> None:
    """Adds how many rows are printed, 0 for all."""
    parser.add_argument(flag, type=count, default=default, metavar="N", help=text)


def add_step_summary(parser: argparse._ActionsContainer) -> None:
    """Adds ``--step-summary``."""
    from nsys_tui.commands.printing import STEP_SUMMARY

    add(
        parser,
        "--step-summary FILE",
        "also append markdown to FILE (default: the one that GITHUB_STEP_SUMMARY names)",
        type=Path,
        nargs="?",
        const=STEP_SUMMARY,
    )


def add_output(parser: argparse._ActionsContainer) -> None:
    """Adds ``--output``, which ``printing.opened`` takes, and ``--force-overwrite``."""
    add(parser, "-o, --output FILE", "- for stdout", default="-")
    add_overwriting(parser)


def add_overwriting(parser: argparse._ActionsContainer) -> None:
    """Adds ``--force-overwrite``."""
    add(parser, "--force-overwrite", "replace existing files")


def with_plain_flags(words: Sequence[str]) -> list[str]:
    """A command line whose flags may say true or false, as nsys's do, with plain flags.

    Both ``--force-overwrite=true`` and ``--force-overwrite true`` are the flag; with ``false`` it
    is left out. A list that begins with stdout, ``-o -,name``, is no option.
    """
    plain: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if word.startswith("-,") and plain and plain[-1] in ("-o", "--output"):
            plain[-1:] = [f"--output={word}"]
            continue
        if plain and plain[-1] in _SAYING_TRUE and word in ("true", "false"):
            flag, value = plain.pop(), word
        elif flag not in _SAYING_TRUE or not equals:
            plain.append(word)
            continue
        if value not in ("true", "false"):
            raise UsageError(f"not a flag's value: {word}", hint=f"{flag}=true or {flag}=false")
        plain += [flag] if value == "true" else []
    return plain


_SAYING_TRUE: Final = ("--force-overwrite", "--force-export")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an argument that is a whole number in a range; without an end for None."""
    wanted = f"a whole number from {least} {'on' if most is None else f'to {most}'}"

    def number(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else -1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{wanted} is wanted, not {text!r}")
        return value

    return number


count, positive = whole(0), whole(1)


def rows_shown(asked: int | None, default: int | None) -> int | None:
    """Rows to print where 0 asks for all; None for all."""
    return default if asked is None else asked or None


def csv_section(sections: Sequence[str] | None, default: str) -> str:
    """The section that csv prints.

    Raises:
        UsageError: several were asked for, and a csv file has one header.
    """
    first, *others = sections or [default]
    if any(name != first for name in others):
        raise UsageError(
            f"csv holds one section, not {', '.join(dict.fromkeys(sections or ()))}",
            hint="ask for one of them, or take --format json",
        )
    return first


def opener(arguments: argparse.Namespace, *, named: bool = True) -> Callable[[str], Report]:
    """What opens reports as the parsed arguments say, and tells their notes.

    Args:
        arguments: with those of ``add_reading``.
        named: whether a note begins with the report that it is of.
    """
    from nsys_tui.commands.remote import local_path
    from nsys_tui.config import load_config
    from nsys_tui.freed_memory import keep_freed_memory
    from nsys_tui.reader import open_configured

    keep_freed_memory()
    if arguments.log:
        log_to(arguments.log)
    config = load_config()

    def report(name: str) -> Report:
        path, cached = local_path(name, config), not arguments.no_cache
        opened = open_configured(path, config, arguments.nsys, use_cache=cached)
        tell_notes(opened, opened.name if named else "")
        return opened

    return report


def add_exporting(parser: argparse._ActionsContainer) -> None:
    """Adds ``--sqlite`` and ``--force-export``, which ``open_from`` obeys."""
    add(parser, "--sqlite FILE", "the export to read; made of REPORT if missing", type=Path)
    add(parser, "--force-export", "export REPORT anew, whatever is there")


def _take_export(arguments: argparse.Namespace) -> None:
    """Makes the export that ``--sqlite`` and ``--force-export`` ask for, and reads that."""
    export, anew = getattr(arguments, "sqlite", None), getattr(arguments, "force_export", False)
    if export is None and not anew:
        return
    from nsys_tui.reader import export_configured

    made = export_configured(Path(arguments.report), export, arguments.nsys, anew=anew)
    arguments.report = str(made)


def open_from(arguments: argparse.Namespace) -> Report:
    """Opens the report that the parsed arguments name.

    Raises:
        UsageError: none was named.
        UnreadableReportError: the file is no usable report.
        NsysMissingError: it must be exported first and no nsys was found.
    """
    if arguments.report is None:
        raise UsageError("which report file?", hint="such as report.sqlite; see --help")
    _take_export(arguments)
    return opener(arguments, named=False)(arguments.report)


def tell_notes(report: Report, name: str = "") -> None:
    """Says on stderr, as soon as it is found, what of a report is not believed.

    Args:
        report: the open report.
        name: stands before each sentence where a verb reads several reports.
    """
    from nsys_tui.commands.printing import say

    head = f"note: {name}: " if name else "note: "
    report.notes.listen(lambda note: say(head + note.text))


def part_from(arguments: argparse.Namespace) -> tuple[Report, Scope]:
    """The report that the parsed arguments name, open, and the part that is asked for.

    Raises:
        UnreadableReportError: the file is no usable report.
        NsysMissingError: it must be exported first and no nsys was found.
        UsageError: there is no such part; the hint lists what there is.
    """
    report = open_from(arguments)
    return report, scope_from(arguments, report)


def scope_from(arguments: argparse.Namespace, report: Report) -> Scope:
    """The part of a report that ``--process``, ``--device``, ``--stream`` and ``--window`` name.

    Raises:
        UsageError: no such process, GPU or stream, or no readable window; the hint lists them.
    """
    window = window_from(arguments, report)
    choice = choice_from(arguments)
    for lacking in choice.lacking(report):
        raise UsageError(lacking.text, hint=lacking.hint)
    return choice.scope(report, window)


def window_from(arguments: argparse.Namespace, report: Report) -> tuple[int, int] | None:
    """The time window [start, end) that ``--window`` names, ns; None for the whole trace.

    Raises:
        UsageError: it cannot be read, or is empty.
    """
    if arguments.window is None:
        return None
    window, (lo, hi) = closed(parse_window(arguments.window), report.extent), report.extent
    if window[1] <= window[0]:
        raise UsageError(
            f"empty time window: {arguments.window!r}", hint=f"the trace is {lo}ns/{hi}ns"
        )
    return window


def choice_from(arguments: argparse.Namespace) -> Choice:
    """The numbers that ``--process``, ``--device`` and ``--stream`` give."""
    from nsys_tui.analysis.window import Choice

    asked = (getattr(arguments, name) for name in ("process", "device", "stream"))
    return Choice(*(None if numbers is None else tuple(sorted(set(numbers))) for numbers in asked))


def log_to(path: Path) -> None:
    """Sends the debug log of this run to the end of a file.

    Raises:
        UsageError: it cannot be written, or is a report.
    """
    import logging
    import platform
    import shlex

    from nsys_tui.commands.printing import refuse_report

    refuse_report(path)
    logging.raiseExceptions = False  # a full disk costs the log and nothing else
    try:
        logging.basicConfig(
            filename=path,
            level=logging.DEBUG,
            format="%(asctime)s %(name)s %(levelname)s %(message)s",
        )
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", hint="name another --log FILE"
        ) from error
    words = shlex.join(sys.argv[1:])
    system = f"Python {platform.python_version()}, {platform.platform()}"
    logging.getLogger("nsys_tui").info("nsys-tui %s, %s: %s", __version__, system, words)
