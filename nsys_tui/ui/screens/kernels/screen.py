"""Kernels: GPU work grouped in a table, with the instances and facts of a row below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from textual import events
from textual.containers import Horizontal

from nsys_tui.analysis.estimate import sampled_kernels
from nsys_tui.analysis.kernel_table import GroupBy, KernelTable, kernel_table
from nsys_tui.analysis.timeline.events import find
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import Operations
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.state import Selection, ViewState, cycled
from nsys_tui.ui.evidence import evidence_of, longest, show_longest, show_on_timeline
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.kernels.columns import group_columns, sampled_columns
from nsys_tui.ui.screens.kernels.detail import KernelDetail, paths_of
from nsys_tui.ui.screens.tables import Look
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.actions import GROUP, INSTANCES, TABLE, WHOLE
from nsys_tui.ui.widgets.table.columns import TableColumn
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable

ACTIONS = (*TABLE, GROUP, INSTANCES, WHOLE)


class KernelsScreen(KernelDetail):
    """GPU work by name and in other groups."""

    SCREEN = "kernels"
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#kernels"
    SORTED_BY = "total"
    READING, MAKING = "reading GPU work ...", "grouping GPU work ..."
    BUSY = "grouping"
    BY_NAMES = True
    GROWS_FROM = 13
    wish: GroupBy = GroupBy.NAME
    DEFAULT_CSS: ClassVar[str] = """
    KernelsScreen #kernels { height: 1fr; }
    KernelsScreen #histogram { width: 4fr; }
    KernelsScreen #facts, KernelsScreen #instances { width: 5fr; }
    KernelsScreen.-instances #lower { height: 2fr; }
    KernelsScreen.-narrow #histogram, KernelsScreen.-narrow #facts { width: 1fr; }
    KernelsScreen.-narrow #instances { width: 1fr; display: none; }
    KernelsScreen.-narrow.-instances #histogram { display: none; }
    KernelsScreen.-narrow.-instances #facts { display: none; }
    KernelsScreen.-narrow.-instances #instances { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._labels: tuple[str, ...] = ()
        """What the rows of the table are called."""

    def body(self) -> Iterable[Any]:
        """The table above, what belongs to its current row below."""
        yield VirtualTable("Kernels", share_filter=True, id="kernels")
        yield Horizontal(
            LinePane("Durations", id="histogram"),
            VirtualTable("Instances", id="instances"),
            LinePane("Facts", id="facts"),
            id="lower",
        )

    def clear(self) -> None:
        """Nothing is known of the report yet."""
        self._labels = ()
        self.table.estimated = False
        self.forget()
        super().clear()

    def part_loaded(self, part: str) -> None:
        """The table needs the operations alone; a sample of them gives first figures."""
        if part == "sample":
            self._estimate()
        elif part == "operations":
            self.make()

    def load_finished(self) -> None:
        """Facts need API calls and ranges too; what could not be read is said."""
        if not self.session.exact:
            self.make()
        if self.detail is not None:
            self._tell(self.detail)

    @property
    def can_begin(self) -> bool:
        """The table needs the operations alone."""
        return self.session.exact or super().can_begin

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """Until there are figures, estimates follow the state."""
        super().state_changed(old, new)
        if self.result is None:
            self._estimate()

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Times are written anew."""
        if old.display.time != new.display.time and self.detail is not None:
            self._show_instances(self.detail)

    def on_resize(self, event: events.Resize) -> None:
        """The chart has as many bins as there is room for."""
        was_wide = self.wide
        super().on_resize(event)
        if was_wide == self.wide and self.detail is not None and self.table.row is not None:
            self._look(self.table.row)

    def _estimate(self) -> None:
        """What a sample lets expect, until the operations are read."""
        report, sample, state = self.report, self.session.sample, self.state
        if report is None or sample is None or self.session.exact:
            return
        scope = report_scope(report, state)
        self.compute(
            "table",
            lambda: sampled_kernels(report, sample, scope, state.display.names),
            self._show_estimate,
        )

    def _show_estimate(self, made: tuple[Report, KernelTable]) -> None:
        sampled, table = made
        glyphs = self.app.glyphs
        self.prefer()
        self._arrange(table, sampled_columns(table, sampled, glyphs, self.wide))
        self.table.note, self.table.estimated = "group: name  ≈ from a sample", True
        self.table.redraw_heading()

    def work(self, report: Report) -> Callable[[Progress], KernelTable]:
        """Groups what window and scope let through."""
        by, scope, names = self.wish, report_scope(report, self.state), self.state.display.names
        session = self.session

        def work(progress: Progress) -> KernelTable:
            paths = paths_of(session, report, progress) if by is GroupBy.RANGE else None
            return kernel_table(report, by, scope, style=names, paths=paths, progress=progress)

        return work

    def show_result(self, report: Report, result: KernelTable) -> None:
        """Fills the table; the cursor stays on the group of the same name."""
        glyphs = self.app.glyphs
        self.table.note = f"group: {result.by}"
        self.table.empty = why_empty(report)
        self._arrange(result, group_columns(result, report, glyphs, self.wide))
        self.table.estimated = False
        if not len(result):
            self._clear_detail()

    def _arrange(self, table: KernelTable, columns: Sequence[TableColumn]) -> None:
        """Puts the columns into the table, by and by sorted as before."""
        place, on_top = self.table.row, self.table.estimated and self.table.cursor == 0
        here = None if place is None or on_top else self._labels[place]
        self._labels = table.labels
        arrangement = self.table.arrangement
        headers = {str(by) for by in GroupBy}
        if arrangement.sort in headers:
            self.table.arrangement = replace(arrangement, sort=str(table.by))
        row = table.labels.index(here) if here in table.labels else None
        self.table.show_rows(columns, len(table), row=row)

    def go_to(self, selection: Selection) -> None:
        """Puts the cursor on the group of a kernel name or of a selected operation."""
        table, report = self.result, self.report
        if table is None or report is None:
            return
        group: int | None = None
        if selection.kind == "kernel_name" and selection.key:
            name = str(selection.key[0])
            group = table.labels.index(name) if name in table.labels else None
        elif selection.kind == "finding" and selection.span is not None:
            rows = np.flatnonzero(report.operations.start == selection.span.start)
            group = group_of(table, int(rows[0])) if len(rows) else None
        elif (hit := find(report, selection.kind, selection.key)) is not None:
            events, row = hit
            group = group_of(table, row) if isinstance(events, Operations) else None
        self.table.go_to_row(group)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another row: its instances and facts."""
        if message.grid is self.table and message.row is not None:
            self._look(message.row)

    def action_table_group(self) -> None:
        """Groups by the next criterion."""
        following = cycled(self.wish)
        if following is GroupBy.RANGE and not self.session.finished:
            following = cycled(following)
        self.change(following)

    @property
    def evidence(self) -> Evidence:
        """The instance under the cursor, or the longest of the row."""
        report, table, detail = self.report, self.result, self.detail
        if report is None or table is None:
            return super().evidence
        inner, row = self.instances, self.table.row
        if inner.has_focus and detail is not None and inner.row is not None:
            return evidence_of(report.operations, int(detail.rows[inner.row]))
        if row is None or not len(rows := table.instances(row)):
            return super().evidence
        return evidence_of(report.operations, longest(report.operations, rows))

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """Shows the longest instance of a row, or the chosen one, on the timeline."""
        report, table, detail = self.report, self.result, self.detail
        if report is None or table is None:
            return
        if message.grid is not self.instances:
            show_longest(self.app, report.operations, table.instances(message.row))
        elif detail is not None:
            show_on_timeline(self.app, report.operations, int(detail.rows[message.row]))

    def view(self) -> Look:
        """Grouping, sort, scroll and cursor, also among the instances."""
        inner = self.instances.view() if self.instances.has_focus else None
        return replace(super().view(), inner=inner)

    def take_up(self, view: Look) -> None:
        """The groups are there."""
        super().take_up(view)
        if view.inner is not None:
            self.action_table_instances()
            self.instances.restore(view.inner)


def why_empty(report: Report) -> str:
    """Why there is no group."""
    if len(report.operations):
        return "no GPU work in this window: 0 shows the whole trace"
    return report.lacks(Capability.KERNELS) or "no GPU work in this report"


def group_of(table: KernelTable, row: int) -> int | None:
    """The group of an operation; None where window or scope leave it out."""
    rows = table.rows
    place = row if isinstance(rows, slice) else int(np.searchsorted(rows, row))
    if not isinstance(rows, slice) and (place >= len(rows) or rows[place] != row):
        return None
    return int(table.codes[place])
