"""Columns of the events screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.analysis.events_table import NO_CORRELATION
from nsys_tui.render.cells import category_ink, style
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.table.columns import Source, durations, numbers, texts
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from nsys_tui.analysis.events_table import Dictionary, EventsTable, Member
    from nsys_tui.model.events import Int64
    from nsys_tui.state import Display
    from nsys_tui.ui.widgets.table.columns import TableColumn


def event_columns(table: EventsTable, display: Display) -> tuple[TableColumn, ...]:
    """Start, duration, kind, place, correlation and name of each event.

    Args:
        table: the events.
        display: how times are written.
    """
    origin = start_of(table, int(table.order[0])) if len(table) else 0
    starts = Source(lambda: table.column(_starts), lambda row: start_of(table, row))
    lengths = Source(lambda: table.column(_durations), lambda row: duration_of(table, row))

    def moment(ns: int) -> str:
        return moment_text(ns, 1, display.time, table.report, origin)

    def duration(ns: int) -> str:
        return format_duration(ns) if ns else "-"

    def ink(row: int) -> int:
        return style(category_ink(table.category(row)))

    return (
        durations("start", 14, starts, moment),
        durations("duration", 10, lengths, duration),
        texts("kind", 8, _codes(table.kinds), table.kinds.labels),
        texts("where", 17, _codes(table.places), table.places.labels),
        numbers(
            "correlation",
            11,
            Source(table.correlations, table.correlation),
            str,
            absent=NO_CORRELATION,
            extra=True,
        ),
        texts(
            "name", 20, _codes(table.names), table.names.labels, grow=True, kernels=True, ink=ink
        ),
    )


def _codes(dictionary: Dictionary) -> Source:
    return Source(dictionary.codes, dictionary.at)


def start_of(table: EventsTable, row: int) -> int:
    """Start of an event, ns."""
    member, place = table.locate(row)
    return int(member.events.start[place])


def duration_of(table: EventsTable, row: int) -> int:
    """Duration of an event, ns; 0 for points in time."""
    member, place = table.locate(row)
    return max(int(member.events.end[place] - member.events.start[place]), 0)


def _starts(member: Member) -> Int64:
    return member.events.start[member.rows]


def _durations(member: Member) -> Int64:
    return member.events.durations(member.rows)
