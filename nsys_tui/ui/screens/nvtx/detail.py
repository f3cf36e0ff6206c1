"""RangeDetail: what the NVTX screen shows about the range under the cursor: steps, kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, partialmethod
from typing import Final

import numpy as np
from textual.getters import query_one

from nsys_tui.analysis.events_table import thread_label
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Iterations, Rule
from nsys_tui.analysis.iterations.table import StepTimes, step_times
from nsys_tui.analysis.kernel_table import KernelTable, kernel_table
from nsys_tui.analysis.nvtx.table import NvtxTable
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.events import EventSet
from nsys_tui.model.target import pid_of
from nsys_tui.names import NameStyle, both_ends, cell_len, visible
from nsys_tui.render.cells import MUTED, STALL, Line
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.spark import bar_at, draw_bars
from nsys_tui.ui.evidence import evidence_of, longest, show_on_timeline
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.pane_text import uncounted, uncounted_remark
from nsys_tui.ui.screens.nvtx import columns
from nsys_tui.ui.screens.tables import DetailScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.ui.widgets.tree.tree import VirtualTree
from nsys_tui.units import format_difference, format_duration, out_of

NAMED: Final = 3
"""Outliers that are named; the rest is counted."""

NAME_CELLS: Final = 16
"""Of the name of each."""


def step_heading(steps: StepTimes, iterations: Iterations) -> tuple[str, str]:
    """What the bars are, and by which rule the iterations were found."""
    if not steps.by_iteration:
        return f"per instance ({len(steps):,})", ""
    rule = str(iterations.rule) if iterations.rule is not Rule.PATTERN else "by pattern"
    return f"per iteration ({len(steps):,})", f"iterations {rule}"


def step_lines(
    steps: StepTimes,
    chosen: int | None,
    width: int,
    height: int,
    glyphs: Glyphs,
    iterations: Iterations | None = None,
) -> list[Line]:
    """Bars with their scale, then a line about the chosen iteration and one about outliers.

    Those of iterations that are in no statistics are marked.
    """
    if not len(steps):
        return [[("no closed instance of this range", MUTED)]]
    tall = max(1, height - 2 - (chosen is not None))
    apart, late = uncounted(iterations) if iterations else None, steps.outliers
    rows, merged = draw_bars(steps.time, width, tall, glyphs, format_duration, late, chosen, apart)
    notes = _notes(steps, chosen, merged, width)
    remark = f"  {uncounted_remark(iterations)}" if iterations else ""
    if sum(cell_len(text) for text, _ in notes[-1]) + len(remark) <= width:
        notes[-1].append((remark.rstrip(), MUTED))
    return [*(row.runs() for row in rows), *notes]


def _notes(steps: StepTimes, chosen: int | None, merged: int, width: int) -> list[Line]:
    bars = f"bar: {merged} {_what(steps)}s, the slowest" if merged > 1 else ""
    counts = _counts(steps) + ([bars] if bars and chosen is None else [])
    rest = f"  {', '.join(counts)}" if counts else ""
    if len(steps.outliers):
        last: Line = [(_outliers(steps, width - len(rest)), STALL), (rest, MUTED)]
    else:
        # Where most iterations lack the range, their median is no time of it.
        median = f", median {format_duration(steps.median)}" if steps.median else ""
        last = [(f"no outlier{median}{rest}", MUTED)]
    if chosen is None:
        return [last]
    text = f"{_name(steps, chosen)} {format_duration(steps.time[chosen])}"
    return [[(text, 0), (f"  {_distance(steps, chosen)}  {bars}", MUTED)], last]


def _what(steps: StepTimes) -> str:
    return "step" if steps.by_iteration else "instance"


def _counts(steps: StepTimes) -> list[str]:
    """How many iterations have the range, and how often it is in none."""
    counts = []
    begun = int((steps.rows >= 0).sum())
    if begun < len(steps):
        counts.append(f"in {out_of(begun, len(steps))} iterations")
    if steps.outside:
        counts.append(f"{steps.outside:,} outside{'' if counts else ' of iterations'}")
    return counts


def _outliers(steps: StepTimes, width: int) -> str:
    """As many outliers as fit, at least one; the others are counted."""
    outliers, text = steps.outliers.tolist(), ""
    for named in range(min(NAMED, len(outliers)), 0, -1):
        each = [
            f"{both_ends(_name(steps, step), NAME_CELLS)} {_distance(steps, step)}"
            for step in outliers[:named]
        ]
        more = f", {len(outliers) - named} more" if len(outliers) > named else ""
        text = f"outlier: {', '.join(each)}{more}"
        if cell_len(text) <= width:
            break
    return text


def _name(steps: StepTimes, place: int) -> str:
    """A step as everywhere, an instance by its number: their names are the same."""
    return visible(steps.labels[place]) if steps.by_iteration else f"instance {place}"


def _distance(steps: StepTimes, step: int) -> str:
    away = format_difference(int(steps.time[step] - steps.median))
    return away + (f" (z={steps.z[step]:.1f})" if steps.steady[step] else ", in no statistics")


@dataclass(frozen=True, eq=False)
class Detail:
    """What is shown about one line."""

    table: NvtxTable
    row: int
    instances: Indices
    kernels: KernelTable
    steps: StepTimes
    iterations: Iterations


class RangeDetail(DetailScreen[NvtxTable]):
    """Kernels, iterations and instances of a range; the screen itself shows which ranges exist."""

    def __init__(self) -> None:
        super().__init__()
        self.detail: Detail | None = None
        self.step: int | None = None
        """The chosen iteration."""

    by_path = query_one("#tree", VirtualTree)
    """The ranges by path."""

    by_name = query_one("#flat", VirtualTable)
    """The ranges by name."""

    under = query_one("#under", VirtualTable)
    """The kernels below the current range."""

    @property
    def is_flat(self) -> bool:
        """Whether ranges are listed by name."""
        return self.has_class("-flat")

    @property
    def main(self) -> VirtualTree | VirtualTable:
        """Tree or list, whichever is seen."""
        return self.by_name if self.is_flat else self.by_path

    def _look(self, row: int) -> None:
        """Looks at a line; while one look is under way, only the last wish is kept."""
        if (table := self.result) is not None:
            nodes, names = self._nodes_of_row(table, row), self.state.display.names
            work = partial(_find_detail, self.session, table, row, nodes, names)
            self.look_at("detail", work, self._show_detail, "#steps", "#under", "#instances")

    def _nodes_of_row(self, table: NvtxTable, row: int) -> tuple[Int64, Int64]:
        """Nodes whose instances, and nodes whose operations, belong to a line."""
        if not self.is_flat:
            node = np.array([row], np.int64)
            return node, node
        flat = table.flat
        every = np.flatnonzero(table.trie.label == flat.label[row])
        return every, flat.nodes[row]

    def _show_detail(self, detail: Detail) -> None:
        if detail.table is not self.result:
            return
        report, self.detail = detail.table.report, detail
        if self.step is not None and self.step >= len(detail.steps):
            self.step = None
        self._show_steps(detail)
        self.under.prefer("total")
        self.under.empty = "no GPU work was launched in it"
        self.under.show_rows(columns.kernel_columns(detail.kernels), len(detail.kernels))
        tids = report.ranges.threads.tolist()
        several = len({pid_of(tid) for tid in tids}) > 1
        threads = [thread_label(report, tid, several) for tid in tids]
        cells = columns.range_columns(report, detail.instances, self.state.display, threads)
        self.instances.empty = "no range of its own"
        self.instances.show_rows(cells, len(detail.instances))

    def _show_steps(self, detail: Detail) -> None:
        pane = self.query_one("#steps", LinePane)
        left, right = step_heading(detail.steps, detail.iterations)
        pane.heading(f"{self._title_of(detail.table, detail.row)}  {left}", right)
        glyphs, steps = self.app.glyphs, detail.steps
        of = detail.iterations if steps.by_iteration else None
        pane.show_built(
            lambda width: step_lines(steps, self.step, width, pane.size.height, glyphs, of)
        )

    def _title_of(self, table: NvtxTable, row: int) -> str:
        if self.is_flat:
            return table.names[int(table.flat.label[row])]
        above = int(table.trie.parent[row])
        return f"{table.labels[above]} / {table.labels[row]}" if above > 0 else table.labels[row]

    def _clear_detail(self) -> None:
        self.detail = None
        self.query_one("#steps", LinePane).show([])
        self.under.empty = self.instances.empty = ""
        self.under.show_rows((), 0)
        self.instances.show_rows((), 0)

    def _choose_step(self, by: int) -> None:
        """Chooses the next (1) or previous (-1) iteration."""
        if self.detail is None or not len(self.detail.steps):
            return
        last = len(self.detail.steps) - 1
        start = -1 if by > 0 else last + 1
        self.step = min(max((start if self.step is None else self.step) + by, 0), last)
        self._show_steps(self.detail)

    action_timeline_iteration_next = partialmethod(_choose_step, 1)
    action_timeline_iteration_previous = partialmethod(_choose_step, -1)

    def on_line_pane_clicked(self, message: LinePane.Clicked) -> None:
        """A click on a bar chooses its iteration, a double click opens the range in it."""
        if self.detail is None or message.pane.id != "steps":
            return
        step = bar_at(self.detail.steps.time, message.pane.room, message.column)
        if step is None:
            return
        self.step = step
        self._show_steps(self.detail)
        if message.twice:
            self.main.action_nav_open()

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """Shows a range or a kernel on the timeline."""
        if (event := self._event(message.grid, message.row)) is not None:
            show_on_timeline(self.app, *event)
        elif self.detail is not None and message.row == self.detail.row:
            self.app.say("no range and no GPU work of its own: nothing to show on the timeline")

    @property
    def evidence(self) -> Evidence:
        """What Enter on the row under the cursor would show."""
        grid = next((g for g in (self.under, self.instances) if g.has_focus), self.main)
        event = None if grid.row is None else self._event(grid, grid.row)
        return super().evidence if event is None else evidence_of(*event)

    def _event(self, grid: Grid, row: int) -> tuple[EventSet, int] | None:
        """The event that a row stands for: of several the one in the chosen step, or the longest.

        Of work outside ranges it is the longest of the kernel with most time. Of a row that was not
        looked at yet, and of one without an event, there is none.
        """
        if (detail := self.detail) is None or (grid is self.main and row != detail.row):
            return None
        report, steps = detail.table.report, detail.steps.rows
        events: EventSet = report.ranges
        rows: Indices = detail.instances
        if grid is self.under:
            events, rows = report.operations, detail.kernels.instances(row)
        elif not len(rows) and len(detail.kernels):
            events, rows = report.operations, detail.kernels.instances(0)
        elif grid is self.instances:
            rows = rows[row : row + 1]
        elif self.step is not None and steps[self.step] >= 0:
            rows = steps[self.step : self.step + 1]
        return (events, longest(events, rows)) if len(rows) else None


def _find_detail(
    session: Session, table: NvtxTable, row: int, nodes: tuple[Int64, Int64], names: NameStyle
) -> Detail:
    """What there is to show about a line; in a worker."""
    report = table.report
    steps = session.memo("iterations", lambda: find_iterations(report))
    rows = table.instances(nodes[0])
    closed = rows[~report.ranges.open[rows]]
    kernels = kernel_table(report, scope=table.scope, style=names, among=table.operations(nodes[1]))
    return Detail(table, row, rows, kernels, step_times(report, steps, closed), steps)
