"""Answers on the screen: columns that know times, where a row is on the timeline, the chart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.errors import CancelledError, NsysTuiError
from nsys_tui.model.table import Column, Table, Unit, column
from nsys_tui.render.spark import draw_bars
from nsys_tui.sql.guard import TimeLimitError
from nsys_tui.state import Window
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from nsys_tui.model.progress import Progress
    from nsys_tui.render.cells import Line
    from nsys_tui.render.glyphs import Glyphs
    from nsys_tui.sql.console import Answer, Console

SHOWN: Final = 100_000
"""Rows of an answer on the screen."""
AROUND: Final = 20
"""On the timeline a row has one part in so many beside it."""
_LENGTHS: Final = ("duration_ns", "time_ns", "idle_ns")


@dataclass(frozen=True)
class Asked:
    """A query with its answer, or with why it has none."""

    query: str
    answer: Answer | None = None
    error: NsysTuiError | None = None


def ask(console: Console, query: str, progress: Progress) -> Asked:
    """Asks; only cancelling is raised, since what is wrong with a query is an answer too."""
    try:
        return Asked(query, console.run(query, limit=SHOWN, progress=progress))
    except TimeLimitError as error:
        return Asked(query, error=error)
    except CancelledError:
        raise
    except NsysTuiError as error:
        return Asked(query, error=error)


def with_units(table: Table) -> Table:
    """The same with times and bytes that are told by the endings of names."""
    return replace(table, columns=tuple(map(_with_unit, table.columns)))


def _with_unit(known: Column) -> Column:
    unit = column(known.header).unit
    timed = unit in (Unit.NS, Unit.BYTES) and not known.is_text
    return Column(known.header, unit, 0, known.key) if timed else known


def window_of(table: Table, row: int) -> Window | None:
    """When a row was, from its columns ``start_ns`` and ``end_ns`` or a length; None for never."""
    values = {c.header: data[row] for c, data in zip(table.columns, table.data, strict=True)}
    start, end = values.get("start_ns"), values.get("end_ns")
    if not isinstance(start, int):
        return None
    if not isinstance(end, int):
        lengths = (values.get(name) for name in _LENGTHS)
        end = start + next((ns for ns in lengths if isinstance(ns, int)), 0)
    beside = max((end - start) // AROUND, 1)
    return Window(start - beside, max(end, start) + beside)


def chart_lines(
    table: Table, across: int, up: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """One column over another: a bar a row, in the order of the first where that has numbers."""
    heights = np.array([_number(value) for value in table.data[up]], np.float64)
    order = np.array([_number(value) for value in table.data[across]], np.float64)
    if not np.isnan(order).all():
        heights = heights[np.argsort(order, kind="stable")]
    known = np.nan_to_num(np.maximum(heights, 0))
    if not len(known):
        return []
    is_time = column(table.columns[up].header).unit is Unit.NS
    written = format_duration if is_time else _short
    rows, _ = draw_bars(known, width, max(1, height - 1), glyphs, written)
    return [row.runs() for row in rows]


def _short(value: float) -> str:
    """A number in at most 7 characters."""
    for scale, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.4g}{sign}"
    return f"{value:.3g}"


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def chart_columns(table: Table, chosen: int) -> tuple[int, int] | None:
    """Which column is drawn over which: the chosen one, else the first numbers, over the first."""
    numeric = [place for place, c in enumerate(table.columns) if not c.is_text]
    if not numeric or not len(table):
        return None
    up = chosen if chosen in numeric else numeric[-1]
    names = [c.header for c in table.columns]
    across = names.index("start_ns") if "start_ns" in names and names[up] != "start_ns" else 0
    return across, up
