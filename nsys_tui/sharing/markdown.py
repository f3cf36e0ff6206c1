"""The same answers as Markdown, for a ticket or a CI job's summary: verdict open, tables folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Final

from nsys_tui.analysis.rules.finding import Finding, command_of
from nsys_tui.model.table import Column, Table, Unit, column, table_of
from nsys_tui.names import visible
from nsys_tui.redaction import redacted_lines
from nsys_tui.sharing.answer import Shared, captured
from nsys_tui.sharing.sections import BOUND, UNSEEN
from nsys_tui.text.sections import readable
from nsys_tui.text.tables import render

ROWS: Final = 15
"""Rows of a table."""
_FINDING: Final = (
    column("severity", "Severity"),
    Column("Could give back", Unit.NS, read=lambda finding, _: finding.saved_ns or None),
    column("title", "Finding"),
    column("advice", "What to do"),
    column("confidence", "Known"),
    Column("Command", read=lambda f, name: command_of(f.command, name)),
)


def markdown(reports: Sequence[Shared], first: Sequence[str] = ()) -> str:
    """What is told of one or several reports.

    Args:
        reports: what is told of each.
        first: parts before them, Markdown already.
    """
    parts = [*first]
    for one in reports:
        parts += _of_report(one)
    return redacted_lines("\n".join(parts))


def _of_report(of: Shared) -> Iterator[str]:
    yield f"## {escape(visible(of.title), quote=False)}\n"
    yield f"**{escape(visible(of.verdict), quote=False)}**\n"
    findings: Sequence[Finding] = of.findings
    yield from _table(table_of("findings", "Findings", _FINDING, findings, of.report.name), False)
    yield from _table(table_of("bound", "Where the time went", BOUND, of.bound))
    if of.steps is not None:
        yield from _table(of.steps.phases())
    for heading, table in of.tables.items():
        yield from _table(replace(table, title=heading))
    yield from _table(captured(of))
    unseen = table_of("unseen", "What was not looked at", UNSEEN, of.not_looked_at)
    yield from _table(unseen)


def _table(table: Table, folded: bool = True) -> Iterator[str]:
    if not len(table):
        return
    shown = table.first(ROWS)
    rest = len(table) - len(shown)
    more = [f"{rest} more rows"] if rest > 0 else []
    body = [
        render(readable(shown), "markdown"),
        *(f"_{escape(visible(note), quote=False)}_\n" for note in (*more, *table.notes[:5])),
    ]
    if not folded:
        yield from body
        return
    title = escape(visible(table.title), quote=False)
    yield from (f"<details><summary>{title}</summary>\n", *body, "</details>\n")


def tables_markdown(heading: str, sentence: str, tables: Sequence[Table]) -> str:
    """A part of several tables that stands before the reports."""
    parts = [f"## {escape(visible(heading), quote=False)}\n"]
    parts += [f"**{escape(visible(sentence), quote=False)}**\n"] if sentence else []
    for number, table in enumerate(tables):
        parts += _table(table, folded=number > 0)
    return "\n".join(parts)
