"""Columns that several screens have: when time was spent, and the spans of single events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nsys_tui.analysis.kernel_table import PARTS
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.events import EventSet
from nsys_tui.model.report import Report
from nsys_tui.model.table import Unit
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.spark import sparkline
from nsys_tui.state import Display
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.table.columns import (
    Drawn,
    Source,
    TableColumn,
    counts,
    durations,
    numbers,
    taken,
)
from nsys_tui.units import format_duration


def when_column(when: Int64, glyphs: Glyphs, width: int, ink: Callable[[int], int]) -> TableColumn:
    """Where in the window the time was spent; sorts by the first work.

    Args:
        when: time in each of ``PARTS`` parts of the window, a row each.
        glyphs: characters of the sparkline.
        width: its cells, which divide ``PARTS``.
        ink: style code of a row.
    """
    merged = when.reshape(len(when), width, PARTS // width).sum(axis=2)

    return Drawn(
        header="when",
        width=width,
        draw=lambda row: sparkline(merged[row], glyphs),
        order=lambda: np.argmax(when > 0, axis=1),
        ink=ink,
    )


def span_columns(
    report: Report, events: EventSet, rows: Indices, display: Display
) -> list[TableColumn]:
    """Start and duration of some events of a set."""

    def started(ns: int) -> str:
        return moment_text(ns, 1_000, display.time, report, int(events.start[rows[0]]))

    return [
        durations("start", 15, taken(rows, events.start), started),
        durations("duration", 10, taken(rows, events.durations), format_duration),
    ]


def begun(header: str, width: int, count: Int64, straddling: Int64) -> TableColumn:
    """Events that start in the window, and how many more reach into it."""
    if not straddling.any():
        return counts(header, width, count)

    def pair(row: int) -> tuple[int, int]:
        return int(count[row]), int(straddling[row])

    def write(value: Any) -> str:
        first, more = value if isinstance(value, tuple) else (int(value), 0)
        return f"{first:,}" + (f" +{more:,}" if more else "")

    return numbers(
        f"{header} +straddling",
        17,
        Source(lambda: count, pair),
        write,
        unit=Unit.COUNT,
        also=(counts("straddling", 17, straddling),),
    )
