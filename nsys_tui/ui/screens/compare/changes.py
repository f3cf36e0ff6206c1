"""The changes of one group by name: their columns, which rows there are, and which changed."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, copysign, inf
from typing import Final

import numpy as np

from nsys_tui.analysis.compare.comparison import Comparison, FindingChange
from nsys_tui.analysis.compare.rows import Row
from nsys_tui.analysis.compare.stats import THRESHOLD, Verdict
from nsys_tui.model.table import Unit
from nsys_tui.render.cells import MUTED, Ink, style
from nsys_tui.text.compare import count_text
from nsys_tui.ui.widgets.table.columns import Drawn, TableColumn, durations, numbers, strings
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.units import format_bytes, format_change, format_difference, format_duration

GROUPS: Final = {
    "kernels": ("Kernels", ("kernels", "copies")),
    "copies": ("Copies and memsets", ("copies",)),
    "ranges": ("NVTX ranges", ("ranges",)),
    "api": ("CUDA API", ("api",)),
    "mpi_calls": ("MPI calls", ("mpi_calls",)),
    "os_calls": ("OS runtime calls", ("os_calls",)),
    "ranks": ("Compute kernels by rank", ("ranks",)),
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


def change_value(row: Row) -> float:
    """The relative change in percent; new is infinitely more, gone is all of it less."""
    if row.kind == "new":
        return inf
    return -100.0 if row.kind == "gone" else 100 * (row.change.ratio or 0.0)


def change_text(value: float) -> str:
    """``-53.9%``, ``190x``, ``new``; at most 7 cells."""
    if value == inf:
        return "new"
    return "gone" if value == -100 else format_change(value / 100)


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
    """``better``, ``worse``, ``same``; of what is not judged ``more``, ``less`` or ``few``.

    Of instances ``= each``: each takes as long, whatever became of their sum.
    """
    if row.verdict is Verdict.SAME and not row.by_step:
        return "= each"
    if row.verdict is not Verdict.UNKNOWN:
        return str(row.verdict)
    return row.kind.removeprefix("too ")


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
    words = [(verdict_words if roomy else verdict_word)(row) for row in rows]
    verdict_cells = max(map(len, ["verdict", *words]))

    def ink(at: int) -> int:
        return VERDICT_INKS.get(rows[at].verdict, 0)  # the words say the same

    columns: list[TableColumn] = [
        durations("delta", 9, deltas, format_difference, ink=ink),
        numbers("%" if by_step else "% each", 7, changes, change_text, unit=Unit.TEXT),
        durations("A", 8, firsts, format_duration),
        durations("B", 8, seconds, format_duration),
        strings("calls", 6, [often(row) for row in rows], right=True),
        strings("verdict", verdict_cells, words, ink=ink),
        strings("name", 12, [row.name for row in rows], grow=True, names=True),
    ]
    drawn = Drawn(
        header="change",
        width=WIDE_BAR if roomy else BAR,
        draw=lambda at: bar(rows[at], most, drawn.width, mark * barred),
        order=lambda: np.abs(deltas),
        ink=ink,
    )
    if barred:
        columns.insert(1, drawn)
    elif verdict_cells == len("verdict"):
        columns.append(drawn)
    if roomy:
        if rows and all(row.a_bytes or row.b_bytes for row in rows):
            sizes = [f"{_size(row.a_bytes)} > {_size(row.b_bytes)}" for row in rows]
            columns.insert(5, strings("moved", 19, sizes, right=True))
        at = next(n for n, column in enumerate(columns) if column.header == "name")
        by = ["steps" if row.by_step else "instances" for row in rows]
        columns.insert(at, strings("by", 9, by, ink=lambda _: MUTED))
    return tuple(columns)


def _size(count: float) -> str:
    return format_bytes(round(count)) if round(count) else "-"


def finding_columns(changes: Sequence[FindingChange]) -> tuple[TableColumn, ...]:
    """Columns of the findings of both sides."""
    inks = {"solved": VERDICT_INKS[Verdict.BETTER], "new": VERDICT_INKS[Verdict.WORSE]}
    saved = np.array([_saved(change) for change in changes], np.float64)

    def ink(row: int) -> int:
        return inks.get(changes[row].status, 0)

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


class ChangesTable(VirtualTable):
    """Rows of a group, the largest change first."""

    def __init__(self, empty: str) -> None:
        super().__init__("Kernels", empty=empty, id="changes")
        self.group = "kernels"
        self.threshold = THRESHOLD
        self.comparison: Comparison | None = None
        self._rows: tuple[Row, ...] = ()

    @property
    def change(self) -> Row | None:
        """The change under the cursor."""
        row = self.row
        return self._rows[row] if row is not None and row < len(self._rows) else None

    def forget(self) -> None:
        """Other reports: nothing is compared yet."""
        self.comparison, self._rows = None, ()
        self.show_rows((), 0)

    def tell(self, text: str) -> None:
        """Says why there are no rows."""
        self.empty = text
        self.refresh()

    def turn(self) -> None:
        """The next group."""
        comparison, here = self.comparison, self.group
        held = [
            g for g, (_, keys) in GROUPS.items() if not comparison or all(map(comparison.has, keys))
        ]
        order = [g for g in GROUPS if g in held or g == here]
        self.group = order[(order.index(here) + 1) % len(order)]
        self.fill()

    def open_on_rows(self) -> None:
        """Another pair is shown by what both have rows of: not every report has kernels."""
        groups = self.comparison.groups if self.comparison is not None else {}
        held = [name for name, (_, keys) in GROUPS.items() if any(groups[key] for key in keys)]
        if held and self.group not in (*held, "findings"):
            self.group = held[0]
            self.fill()

    def fill(self) -> None:
        """The rows of the group; the cursor stays on its name."""
        comparison = self.comparison
        if comparison is None:
            return
        here = self.change.name if self.change is not None else ""
        self.title, groups = GROUPS[self.group]
        if self.group == "findings":
            self._rows = ()
            changes = comparison.findings or ()
            self.note = "" if comparison.findings is not None else "running the rules ..."
            self.empty = "no findings on either side" if comparison.findings is not None else "..."
            self.show_rows(finding_columns(changes), len(changes))
            return
        rows = [row for group in groups for row in comparison.groups[group]]
        self._rows = tuple(sorted(rows, key=lambda row: (-abs(row.delta), -row.a_total)))
        per = "per step, " if comparison.by_step else ""
        columns = row_columns(self._rows, self.size.width, self.app.glyphs.bar)
        signs = "  < less  > more" * (columns[-1].header == "change")
        self.note = f"{per}by |delta|{signs}  threshold {100 * self.threshold:g}%"
        self.empty = comparison.why_empty(groups[0])
        names = [row.name for row in self._rows]
        row = names.index(here) if here in names else None
        self.show_rows(columns, len(self._rows), row=row)

    def step_change(self, step: int) -> bool:
        """Goes to the next row that is better or worse; False where none is."""
        changed = [
            position for position in range(self.shown) if self._has_changed(self.row_at(position))
        ]
        ahead = [position for position in changed if (position - self.cursor) * step > 0]
        if changed:
            near = min(ahead, key=lambda p: abs(p - self.cursor)) if ahead else changed[0]
            self.put_cursor(near)
        return bool(changed)

    def _has_changed(self, row: int) -> bool:
        if self.group == "findings":
            findings = self.comparison.findings if self.comparison is not None else None
            return findings is not None and findings[row].status != "in both"
        return bool(self._rows) and self._rows[row].verdict in ("better", "worse")
