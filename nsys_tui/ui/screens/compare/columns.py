"""Columns of the comparison: rows with delta bars, and findings that are solved or new."""

from __future__ import annotations

from math import ceil, copysign, inf
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.compare.stats import Verdict
from nsys_tui.model.table import Unit
from nsys_tui.render.cells import MUTED, Ink, style
from nsys_tui.text.compare import count_text
from nsys_tui.ui.widgets.table.columns import Drawn, durations, numbers, strings
from nsys_tui.units import format_bytes, format_difference, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.compare.comparison import FindingChange
    from nsys_tui.analysis.compare.rows import Row
    from nsys_tui.ui.widgets.table.columns import TableColumn

GROUPS: Final = {
    "kernels": ("Kernels", ("kernels", "copies")),
    "copies": ("Copies and memsets", ("copies",)),
    "ranges": ("NVTX ranges", ("ranges",)),
    "api": ("CUDA API", ("api",)),
    "stalls": ("Idle time by cause", ("stalls",)),
    "findings": ("Findings", ()),
}
"""What the table shows, in the order of ``g``: title, and groups of the comparison."""
BAR: Final = 7
WIDE_BAR: Final = 10
VERDICT_INKS: Final = {
    Verdict.BETTER: style(Ink.BETTER),
    Verdict.WORSE: style(Ink.WORSE),
}
BARRED: Final = 96
"""Cells of a row from which bars are blocks, beside the differences."""
ROOMY: Final = 100
"""Cells of a row from which the kind of a change and both counts have columns."""


def verdict_ink(row: Row) -> int:
    """Blue for better, orange for worse; the words say the same."""
    return VERDICT_INKS.get(row.verdict, 0)


def change_value(row: Row) -> float:
    """The relative change in percent; new is infinitely more, gone is all of it less."""
    if row.kind == "new":
        return inf
    return -100.0 if row.kind == "gone" else 100 * (row.change.ratio or 0.0)


def change_text(value: float) -> str:
    """``-53.9``, ``new``."""
    if value == inf:
        return "new"
    return "gone" if value == -100 else f"{value:+.1f}" if round(value, 1) else "0.0"


def often(row: Row) -> str:
    """How often in B, and whether that is as often as in A (``=``), more or less."""
    if row.kind == "gone":
        return f"{count_text(row.a_count)}-"
    grew = row.b_count - row.a_count
    return f"{count_text(row.b_count)}{'=' if not grew else '+' if grew > 0 else '-'}"


def bar(row: Row, most: float, width: int, mark: str = "") -> str:
    """As long as the difference is large; without a mark ``<<<`` for less time, else ``>>>``."""
    if not round(row.delta) or not most:
        return ""
    length = ceil(width * abs(row.delta) / most)
    return (mark or ("<" if row.delta < 0 else ">")) * length


def verdict_word(row: Row) -> str:
    """``better``, ``worse``, ``same``; ``few`` where more instances are needed; else ``-``.

    Of instances ``= each``: each takes as long, whatever became of their sum.
    """
    if row.verdict is Verdict.SAME and not row.by_step:
        return "= each"
    if row.verdict is not Verdict.UNKNOWN:
        return str(row.verdict)
    return "-" if row.kind in ("new", "gone") else "few"


def verdict_words(row: Row) -> str:
    """``worse: slower``; of instances ``same each``."""
    return "same each" if verdict_word(row) == "= each" else row.words


def row_columns(rows: Sequence[Row], width: int, mark: str) -> tuple[TableColumn, ...]:
    """Columns of rows with times.

    Args:
        rows: in the order of the data.
        width: cells of a line.
        mark: a full cell of a bar.
    """
    barred, roomy = width >= BARRED, width >= ROOMY
    most = max((abs(row.delta) for row in rows), default=0.0)
    deltas = np.array([row.delta for row in rows], np.float64)
    changes = np.array([change_value(row) for row in rows], np.float64)
    firsts = np.array([row.a_total for row in rows], np.float64)
    seconds = np.array([row.b_total for row in rows], np.float64)

    by_step = all(row.by_step for row in rows)

    def ink(place: int) -> int:
        return verdict_ink(rows[place])

    columns: list[TableColumn] = [
        durations("delta", 9, deltas, format_difference, ink=ink),
        numbers("%" if by_step else "% each", 6, changes, change_text, unit=Unit.TEXT),
        durations("A", 8, firsts, format_duration),
        durations("B", 8, seconds, format_duration),
        strings("calls", 6, [often(row) for row in rows], right=True),
        strings("verdict", 7, [verdict_word(row) for row in rows], ink=ink),
        strings("name", 17, [row.name for row in rows], grow=True),
    ]
    drawn = Drawn(
        header="change",
        width=WIDE_BAR if roomy else BAR,
        draw=lambda place: bar(rows[place], most, drawn.width, mark * barred),
        order=lambda: np.abs(deltas),
        ink=ink,
    )
    columns.insert(1 if barred else len(columns), drawn)
    if roomy:
        if rows and all(row.a_bytes or row.b_bytes for row in rows):
            sizes = [f"{_size(row.a_bytes)} > {_size(row.b_bytes)}" for row in rows]
            columns.insert(5, strings("moved", 19, sizes, right=True))
        place = next(n for n, column in enumerate(columns) if column.header == "verdict")
        columns[place : place + 1] = [
            strings("verdict", 18, [verdict_words(row) for row in rows], ink=ink),
            strings("by", 9, ["steps" if row.by_step else "instances" for row in rows], ink=_muted),
        ]
    return tuple(columns)


def _size(count: float) -> str:
    return format_bytes(round(count)) if round(count) else "-"


def _muted(_: int) -> int:
    return MUTED


def finding_columns(changes: Sequence[FindingChange]) -> tuple[TableColumn, ...]:
    """Columns of the findings of both sides."""
    inks = {"solved": VERDICT_INKS[Verdict.BETTER], "new": VERDICT_INKS[Verdict.WORSE]}
    saved = np.array([_saved(change) for change in changes], np.float64)

    def ink(place: int) -> int:
        return inks.get(changes[place].status, 0)

    return (
        strings("status", 7, [change.status for change in changes], ink=ink),
        strings("sev", 6, [change.known.severity for change in changes]),
        durations("saves", 9, saved, format_difference),
        strings("rule", 20, [change.rule for change in changes], extra=True),
        strings("finding", 30, [change.known.title for change in changes], grow=True),
    )


def _saved(change: FindingChange) -> float:
    """What could be saved in B; what was saved by solving it counts as less."""
    if change.b is not None:
        return float(change.b.saved_ns)
    return copysign(change.a.saved_ns, -1) if change.a is not None else 0.0
