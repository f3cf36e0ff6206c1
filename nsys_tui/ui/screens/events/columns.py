"""Columns of the events screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.events_table import NO_CORRELATION
from nsys_tui.model.table import Unit
from nsys_tui.render.cells import category_ink, style
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.table.columns import Numbers, Texts
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

    def moment(ns: int) -> str:
        return moment_text(ns, 1, display.time, table.report, origin)

    def duration(ns: int) -> str:
        return format_duration(ns) if ns else "-"

    def ink(row: int) -> int:
        return style(category_ink(table.category(row)))

    return (
        Numbers(
            header="start",
            width=14,
            values=lambda: table.column(_starts),
            at=lambda row: start_of(table, row),
            write=moment,
            unit=Unit.NS,
        ),
        Numbers(
            header="duration",
            width=10,
            values=lambda: table.column(_durations),
            at=lambda row: duration_of(table, row),
            write=duration,
            unit=Unit.NS,
        ),
        _texts("kind", 8, table.kinds),
        _texts("where", 17, table.places),
        Numbers(
            header="correlation",
            width=11,
            values=table.correlations,
            at=table.correlation,
            write=str,
            absent=NO_CORRELATION,
            extra=True,
        ),
        Texts(
            header="name",
            width=20,
            codes=table.names.codes,
            at=table.names.at,
            labels=table.names.labels,
            grow=True,
            kernels=True,
            ink=ink,
        ),
    )


def _texts(header: str, width: int, dictionary: Dictionary) -> Texts:
    return Texts(
        header=header,
        width=width,
        codes=dictionary.codes,
        at=dictionary.at,
        labels=dictionary.labels,
    )


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
    events, rows = member.events, member.rows
    lengths: Int64 = np.maximum(events.end[rows] - events.start[rows], 0)
    return lengths
