"""``nsys-tui report``: one page about reports to send to a colleague, or Markdown for a ticket."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.commands import options
from nsys_tui.commands.printing import CONSOLE, append_summary, opened, say, write
from nsys_tui.errors import OK, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.model.table import Table
    from nsys_tui.sharing.answer import Shared

    Part = tuple[str, str, Sequence[Table]]
    """Heading, sentence and tables that stand before the reports."""

FORMATS = ("html", "md")
MOST_REPORTS = 8
"""Reports told one by one in a page; of more, only what they are together."""

DESCRIPTION = (
    "Writes what reports say into one file that opens anywhere without a network: verdict,"
    " findings with pictures of their evidence, steps, tables that sort, a flame graph."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument(
        "reports", metavar="REPORT", nargs="+", help=".sqlite, .nsys-rep or .qdrep files"
    )
    together = parser.add_mutually_exclusive_group()
    options.add(together, "--compare", "of two reports: first what changed from A to B")
    options.add(together, "--fleet", "what ranks of one run say together")
    options.add_reading(parser)
    options.add_scope(parser)
    options.add(
        parser, "--format", "html (default), or md for Markdown (by FILE's ending)", choices=FORMATS
    )
    options.add_output(parser)
    options.add_step_summary(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the page."""
    from nsys_tui.sharing.markdown import markdown, tables_markdown
    from nsys_tui.sharing.page import page

    if arguments.compare and len(arguments.reports) != 2:
        raise UsageError("--compare takes two reports", hint="nsys-tui report A B --compare")
    first = _compared(arguments) if arguments.compare else _fleet(arguments)
    reports = [] if arguments.fleet else _told(arguments)
    is_markdown = (arguments.format or Path(arguments.output).suffix[1:]) == "md"
    title = _title(arguments.reports) if first else ""
    if is_markdown or arguments.step_summary:
        summary = markdown(reports, [tables_markdown(*part) for part in first])
    text = summary if is_markdown else page(reports, title, first)
    if arguments.step_summary:
        append_summary(arguments.step_summary, summary)
    if arguments.output != CONSOLE or not arguments.step_summary:
        with opened(arguments.output, overwrite=arguments.force_overwrite) as stream:
            write(stream, [text])
    if arguments.output != CONSOLE:
        say(f"nsys-tui: wrote {arguments.output} ({len(text.encode('utf-8', 'replace')):,} bytes)")
    return OK


def _title(names: Sequence[str]) -> str:
    """``a.sqlite and b.sqlite and 6 more``."""
    shown = [Path(name).name for name in names[:2]]
    return " and ".join([*shown, *([f"{len(names) - 2} more"] if len(names) > 2 else [])])


def _told(arguments: argparse.Namespace) -> list[Shared]:
    from nsys_tui.sharing.answer import shared

    if len(arguments.reports) > MOST_REPORTS:
        raise UsageError(
            f"{len(arguments.reports)} reports are too many for one page",
            hint=f"{MOST_REPORTS} at most, or --fleet for what they say together",
        )
    lines = []
    for name in arguments.reports:
        arguments.report = name
        lines.append(shared(*options.part_from(arguments)))
    return lines


def _compared(arguments: argparse.Namespace) -> list[Part]:
    """What ``nsys-tui compare`` tells of two reports."""
    from nsys_tui.analysis.compare.comparison import compare
    from nsys_tui.commands import compare as verb
    from nsys_tui.commands.compare_sides import measured_pair, two_parts
    from nsys_tui.text import compare as text

    given = _parsed(verb, arguments)
    given.names = "short"
    comparison = compare(*measured_pair(*two_parts(given)))
    told = [name for name in verb.SECTIONS if name != "findings"]
    tables = text.all_tables(comparison, told, 0)
    return [("What changed from A to B", text.headline(comparison), tables)]


def _fleet(arguments: argparse.Namespace) -> list[Part]:
    """What ``nsys-tui fleet`` tells of ranks; nothing unless it is asked for."""
    if not arguments.fleet:
        return []
    from nsys_tui.commands import fleet as verb
    from nsys_tui.fleet.files import find_reports
    from nsys_tui.fleet.table_parts import Ask
    from nsys_tui.fleet.tables import SECTIONS, summary_sections
    from nsys_tui.units import plural

    paths = find_reports(arguments.reports)
    given = _parsed(verb, arguments)
    if len(paths) <= MOST_REPORTS:
        given.workers = 1  # processes take longer to start than so few reports to read
    fleet = verb.read_fleet(given, paths)
    wanted = [name for name in summary_sections(fleet) if name != "heat"]
    tables = [SECTIONS[name](fleet, Ask(None, False, 1, True)) for name in wanted]
    said = f"{plural(len(fleet.members), 'rank')} in {plural(len(paths), 'report')}"
    return [("What the reports say together", said, [one for one in tables if one.columns])]


def _parsed(verb: object, arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments of another verb, as far as this one has them."""
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)  # type: ignore[attr-defined]
    parsed = parser.parse_args(["--", *arguments.reports])
    for name, value in vars(arguments).items():
        if name in vars(parsed) and name not in ("format", "output"):
            setattr(parsed, name, value)
    return parsed
