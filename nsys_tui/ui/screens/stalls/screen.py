"""Stalls: when each GPU stood idle and why, with the scene of the gap under the cursor below."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.containers import Horizontal, Vertical
from textual.getters import query_one

from nsys_tui.analysis.stalls.rows import StallRow
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.analysis.window import Scope
from nsys_tui.freed_memory import give_back_freed_memory
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.state import Cursor, Selection, ViewState, Window
from nsys_tui.ui.dialogs.picker import Prompt
from nsys_tui.ui.evidence import window_around
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.idle_gaps import idle_gaps
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.stalls.data import (
    WAYS,
    Found,
    Key,
    Wish,
    exposed_communication,
    gather,
    show_stacks,
)
from nsys_tui.ui.screens.stalls.panes import (
    cause_lines,
    gap_columns,
    group_columns,
    plain_duration,
    sum_lines,
)
from nsys_tui.ui.screens.stalls.scene import Drawn, look, scene_lines
from nsys_tui.ui.screens.tables import TableScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.actions import GROUP, INSTANCES, TABLE, WHOLE
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.units import format_duration, parse_length

ACTIONS = (
    Action("stalls.threshold", ("t",), "threshold", "shortest gap that is listed, with units", 2),
    GROUP,
    *TABLE,
    INSTANCES,
    Action("stalls.longer", ("+",), "longer", "raise the threshold: 10, 20, 50, 100 us, ..."),
    Action("stalls.shorter", ("-",), "shorter", "lower the threshold"),
    Action("view.stacks", ("6",), "stacks", "what the host ran in the gap, as stacks", 5),
    WHOLE,
)

SHORTEST, LONGEST = 100, 10_000_000_000
"""Thresholds that ``+`` and ``-`` reach, ns."""


class StallsScreen(TableScreen[Found]):
    """Screen 5."""

    SCREEN = "stalls"
    ACTIONS = ACTIONS
    KIND = "stalls"
    BY_NAMES = True
    READING, MAKING, BUSY = "reading ...", "finding gaps ...", "finding gaps"
    wish: Wish = Wish()
    AUTO_FOCUS = "#stalls"
    DEFAULT_CSS: ClassVar[str] = """
    StallsScreen #upper { height: 1fr; }
    StallsScreen #main { width: 1fr; }
    StallsScreen #stalls { height: 1fr; }
    StallsScreen #sums { height: 2; }
    StallsScreen #causes { width: 25%; min-width: 58; display: none; }
    StallsScreen #scene { height: 8; }
    StallsScreen.-medium #scene { height: 12; }
    StallsScreen.-tall #scene { height: 18; }
    StallsScreen.-xwide #causes { display: block; }
    StallsScreen.-xwide #sums, StallsScreen.-workless #sums { display: none; }
    StallsScreen.-workless.-workless #causes { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn: Drawn | None = None
        self._key: Key | None = None
        self._width = 0
        """Cells that the columns were made for."""

    def body(self) -> Iterable[Any]:
        """Table and causes above, the scene of the current row below."""
        sums = LinePane(id="sums", framed=False)
        sums.can_focus = False
        table = VirtualTable("Idle gaps", id="stalls")
        yield Horizontal(
            Vertical(table, sums, id="main"), LinePane("Idle by cause", id="causes"), id="upper"
        )
        yield LinePane("Scene", id="scene")

    scene_pane = query_one("#scene", LinePane)
    """What happened around the gap."""

    def clear(self) -> None:
        """Nothing is known of the report yet."""
        self.drawn = self._key = None
        super().clear()

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """A group of operations is known by names, which may be written otherwise now."""
        if old.display.names != new.display.names and self.wish.by == "pair":
            self.wish = replace(self.wish, inside="")
        super().state_changed(old, new)

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Times are written anew."""
        if old.display.time != new.display.time:
            self._fill()
            self._draw_scene()

    def on_resize(self, event: events.Resize) -> None:
        """Columns follow the width."""
        super().on_resize(event)
        if self.result is not None:
            self.call_after_refresh(self._refill)

    def _refill(self) -> None:
        """Columns for the present width; a first layout may come after the rows."""
        if self.table.size.width != self._width:
            self._fill()

    def work(self, report: Report) -> Callable[[Progress], Found]:
        """Finds the gaps that are wished for."""
        scope, names = report_scope(report, self.state), self.state.display.names
        return partial(_find, self.session, report, scope, self.wish, names)

    def show_result(self, report: Report, result: Found) -> None:  # noqa: ARG002
        """Fills the table and says what it sums up to."""
        self._fill()
        self.call_after_refresh(self._refill)
        self._show_sums(result)
        if not self.table.shown:
            self.drawn = None
            self._draw_scene()

    def _fill(self) -> None:
        """Fills the table; the cursor stays on the same gap or group."""
        report, table, stalls = self.report, self.table, self.result
        if report is None or stalls is None:
            return
        sums = stalls.sums
        width = self._width = table.size.width
        table.empty = self._why_empty(report)
        threshold = plain_duration(stalls.wish.threshold)
        between = f"between work {format_duration(sums.whole.inner_ns)} ({sums.inner_share})"
        between = between if sums.device_count else ""
        if stalls.grouped:
            title = stalls.wish.title
            table.title, table.note = f"Idle by {title}", between
            whole = sums.whole.idle_ns if stalls.wish.by == "device" else sums.whole.inner_ns
            columns = group_columns(stalls.groups, title, whole, width)
            size = len(stalls.groups)
        else:
            inside = f"{stalls.wish.title} = {stalls.wish.inside}"
            note = inside if stalls.wish.inside else between
            table.title, table.note = "Idle gaps", f">= {threshold}  {note}"
            columns = gap_columns(stalls.rows, report, self.state.display.time, width)
            size = len(stalls.rows)
        table.show_rows(columns, size, row=stalls.row_of(self._key))

    def _why_empty(self, report: Report) -> str:
        if not len(report.operations):
            return report.lacks(Capability.KERNELS) or "no GPU work in this report"
        if self.result is not None and not self.result.result.totals:
            return "no GPU work in this selection of GPUs, streams and processes"
        return "no idle gap from the threshold on: - lowers it, 0 shows the whole trace"

    def _show_sums(self, stalls: Found) -> None:
        sums, threshold, glyphs = stalls.sums, stalls.wish.threshold, self.app.glyphs
        self.set_class(not sums.device_count, "-workless")
        self.query_one("#sums", LinePane).show_built(
            lambda width: sum_lines(sums, threshold, width)
        )
        causes, count = self.query_one("#causes", LinePane), sums.device_count
        causes.heading("Idle by cause", f"{count} GPUs" if count > 1 else "")
        causes.show_built(lambda width: cause_lines(sums, threshold, width, glyphs))
        self.query_one("#sums").styles.height = 2 + len(sums.notes)

    @property
    def stall(self) -> StallRow | None:
        """The gap under the cursor, or the longest one of the group under it."""
        stalls, report = self.result, self.report
        gap = stalls.gap_at(self.table.row) if stalls is not None else None
        if gap is None or stalls is None or report is None:
            return None
        return stalls.rows.row(report, gap)

    def go_to(self, selection: Selection) -> None:
        """Puts the cursor on the gap that a finding shows."""
        if self.result is None or selection.kind != "finding" or selection.span is None:
            return
        row = None if self.result.grouped else self.result.row_from(selection.span.start)
        if row is not None:
            self.table.go_to_row(row)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another row: its scene."""
        if message.row is None or self.result is None or self.report is None:
            return
        self._key = self.result.key_of(message.row)
        stall = self.stall
        if stall is None:
            self.drawn = None
            self._draw_scene()
        else:
            scene = partial(_scene, self.report, stall, self.drawn)
            self.look_at("scene", scene, self._show_scene, "#scene")

    def _show_scene(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self._draw_scene()

    def _draw_scene(self) -> None:
        pane, drawn, report = self.scene_pane, self.drawn, self.report
        if drawn is None or report is None:
            pane.heading("Scene")
            pane.show([])
            return
        row, time, glyphs = drawn.row, self.state.display.time, self.app.glyphs
        what = "Launch-bound run" if row.kind == "run" else "Gap"
        device = report.devices[row.device].label
        pane.heading(
            f"{what} of {format_duration(row.end - row.start)} on {device}: {row.label}",
            report.thread_name(row.thread) if row.thread >= 0 else "",
        )
        pane.show_built(
            lambda width: scene_lines(drawn, report, time, glyphs, width, pane.size.height)
        )
        pane.scroll_to(y=0, animate=False)

    def choose(self, **changes: Any) -> None:
        """Shows something else of the same stalls."""
        self.change(replace(self.wish, **changes))

    def action_stalls_threshold(self) -> None:
        """Asks for the shortest gap to list."""
        now = plain_duration(self.wish.threshold).replace(" ", "")
        prompt = Prompt("List gaps from", "such as 500ns, 10us or 2ms", now, parse_length)
        self.app.ask(prompt, lambda text: self.choose(threshold=parse_length(text)))

    def action_stalls_longer(self) -> None:
        """The next longer threshold."""
        self.choose(threshold=step_of(self.wish.threshold, up=True))

    def action_stalls_shorter(self) -> None:
        """The next shorter threshold."""
        self.choose(threshold=step_of(self.wish.threshold, up=False))

    def action_table_group(self) -> None:
        """Groups by the next criterion, after the last one not at all."""
        self.choose(by=WAYS[(WAYS.index(self.wish.by) + 1) % len(WAYS)], inside="")

    def action_table_instances(self) -> None:
        """The gaps of the group under the cursor, or back to the groups."""
        stalls, row = self.result, self.table.row
        if self.wish.inside:
            self.action_nav_escape()
        elif stalls is not None and row is not None and stalls.gap_at(row) is not None:
            self.choose(inside=stalls.groups[row].key)

    def action_nav_escape(self) -> None:
        """Back from the gaps of a group to the groups."""
        self._key = self.wish.inside
        self.choose(inside="")

    def action_view_stacks(self) -> None:
        """Stacks of what the host ran in the gap."""
        show_stacks(self.app, self.stall)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the screen's only inside a group; keys that would do nothing are off."""
        if action == "nav_escape":
            return bool(self.wish.inside)
        if action == "table_instances":
            return bool(self.wish.by)
        return super().check_action(action, parameters)

    @property
    def evidence(self) -> Evidence:
        """The gap under the cursor."""
        stall = self.stall
        return (
            super().evidence if stall is None else Evidence((stall.start, stall.end), stall.device)
        )

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """The timeline, around the gap."""
        stall = self.stall
        if stall is None or message.grid is not self.table:
            return
        span = Window(stall.start, stall.end)
        key = (stall.device, stall.start, stall.end)
        self.app.show(
            "timeline",
            window=window_around(span, self.session.extent),
            cursor=Cursor(stall.start, gpu_key(stall.device)),
            selection=Selection("gap", key, span, label=stall.label),
        )


def step_of(threshold: int, *, up: bool) -> int:
    """The next of 100 ns, 200 ns, 500 ns, 1 us, ... above or below a threshold."""
    steps = [factor * 10**power for power in range(2, 11) for factor in (1, 2, 5)]
    steps = [step for step in steps if SHORTEST <= step <= LONGEST]
    if up:
        return next((step for step in steps if step > threshold), LONGEST)
    return next((step for step in reversed(steps) if step < threshold), SHORTEST)


def _scene(report: Report, stall: StallRow, drawn: Drawn | None) -> Drawn:
    """What happened around a gap, looked up where another one is drawn; in a worker."""
    return drawn if drawn is not None and drawn.row == stall else look(report, stall)


def _find(
    session: Session, report: Report, scope: Scope, wish: Wish, names: str, progress: Progress
) -> Found:
    """The gaps that are wished for; in a worker."""

    def exposed() -> int:
        comm = exposed_communication(report, scope)
        give_back_freed_memory()  # 100 MB at 5 M kernels, before as much again is taken
        return comm

    exposed_ns = session.memo(("exposed_communication", scope), exposed)
    gaps = idle_gaps(session, report, scope, wish.threshold, progress)
    gaps.work.rest()
    return gather(report, gaps, wish, exposed_ns, names)
