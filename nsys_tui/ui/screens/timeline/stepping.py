"""Events: snap to the next one, step through them, follow flows, find namesakes, open facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.timeline.facts import Facts, facts_of, ranges_around
from nsys_tui.analysis.timeline.flow import call_of, launched_by
from nsys_tui.analysis.timeline.steps import Step, after, before, column, lanes_of
from nsys_tui.model.events import ApiCalls, EventSet, Operations, Syncs
from nsys_tui.state import Cursor
from nsys_tui.ui.latest import Latest
from nsys_tui.ui.screens.timeline.core import TimelineCore
from nsys_tui.ui.screens.timeline.evidence import EVIDENCE, evidence_facts, span_facts
from nsys_tui.ui.screens.timeline.facts_lines import NAME, column_lines, flowing_lines
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.timeline.painter import Picked

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane

    Line = list[tuple[str, int]]

ELSEWHERE: Final = "calls and stacks are shown of the report in front: o brings this one there"
ASIDE: Final = 0.1
"""Where in the window a step outside of it arrives."""


class Stepping(TimelineCore):
    """Actions on single events."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: Facts | None = None
        """Of the event selected last."""
        self.looking: Latest[Facts] = Latest(self, "facts", self._take_facts)

    def show_report(self) -> None:
        """Nothing is known of any event yet."""
        self.looking.reset()
        self.facts = None
        super().show_report()

    def load_finished(self) -> None:
        """Why a GPU stood idle can be told now."""
        super().load_finished()
        if self.picked is None:
            self.show_facts()

    def _place(self, track: Track, lanes: tuple[Lane, ...]) -> Step:
        """Where the cursor stands in a row: on the selected event, or at its moment."""
        picked = self.picked
        if picked is not None and track.events is picked.events:
            start = int(picked.events.start[picked.row])
            for number, lane in enumerate(lanes):
                first, last = np.searchsorted(lane.starts, (start, start + 1)).tolist()
                found = np.flatnonzero(lane.index[first:last] == picked.row)
                if len(found) and start == self.cursor_time:
                    return Step(start, number, first + int(found[0]))
        return Step(self.cursor_time, -1, 0)

    def _arrive(self, track: Track, lanes: tuple[Lane, ...], step: Step, say: str = "") -> None:
        """Selects the event of a step; the window follows if it lies outside."""
        if track.events is None:
            return
        row = int(lanes[step.lane].index[step.position])
        part = ASIDE if step.start >= self.cursor_time else 1 - ASIDE
        window = self.shifted(step.start, part)
        self.select(track.events, row, step.start, track.key, window=window)
        if say:
            self.app.say(say)

    def step_event(self, forward: bool) -> None:
        """Strictly the next or previous event of the lane."""
        track = self.row
        if track is None or not (lanes := lanes_of(track)):
            return
        here = self._place(track, lanes)
        step = (after if forward else before)(lanes, here)
        if step is None:
            self.app.say("no event after this in the lane" if forward else "no event before this")
        else:
            self._arrive(track, lanes, step)

    def action_timeline_event_next(self) -> None:
        """The next event of the lane."""
        self.step_event(forward=True)

    def action_timeline_event_previous(self) -> None:
        """The previous one."""
        self.step_event(forward=False)

    def snap(self, forward: bool) -> None:
        """The next event that starts in another column; of several in one, the longest."""
        track = self.row
        if track is None or not (lanes := lanes_of(track)):
            return
        view = self.canvas.view
        here = min(max(view.cell(self.cursor_time) or 0, 0), view.width - 1)
        if self.cursor_time < view.lo or self.cursor_time >= view.hi:
            lo, hi = self.cursor_time, self.cursor_time + 1
        else:
            lo, hi = view.edges[[here, here + 1]].tolist()
        step = after(lanes, Step(hi, -1, 0)) if forward else before(lanes, Step(lo, -1, 0))
        if step is None:
            self.app.say("no event in a later column" if forward else "no event in a column before")
            return
        cell = view.cell(step.start)
        if cell is None:
            self._arrive(track, lanes, step)
            return
        held = column(lanes, *view.edges[[cell, cell + 1]].tolist())
        if held is not None:
            say = f"{held.number} of {held.events} in this column" if held.events > 1 else ""
            self._arrive(track, lanes, held.longest, say)

    def current(self) -> Picked | None:
        """The selected event, or the one under the cursor."""
        return self.picked or self.under_cursor()

    def under_cursor(self) -> Picked | None:
        """The longest event in the cursor's cell, or the selected one if the cursor is on it."""
        picked, time = self.picked, self.cursor_time
        if picked is not None:
            start, end = int(picked.events.start[picked.row]), int(picked.events.end[picked.row])
            if start <= time < max(end, start + 1):
                return picked
        track = self.row
        if track is None or track.events is None:
            return None
        view = self.canvas.view
        cell = view.cell(self.cursor_time)
        lo = self.cursor_time if cell is None else int(view.edges[cell])
        hi = lo + 1 if cell is None else max(int(view.edges[cell + 1]), lo + 1)
        best: tuple[int, int] | None = None
        for lane in lanes_of(track):
            spot = lane.longest_in(lo, hi)
            if spot is not None:
                length = int(lane.ends[spot] - lane.starts[spot])
                best = max(best or (-1, -1), (length, int(lane.index[spot])))
        return None if best is None else Picked(track.events, best[1])

    def action_timeline_flow_follow(self) -> None:
        """From an API call to what it launched."""
        picked, report = self.current(), self.report
        if picked is None or report is None:
            self.app.say("no event here")
        elif self._beside_of(picked.events) is not None:
            self.app.say(ELSEWHERE)
        elif not isinstance(picked.events, ApiCalls):
            self.app.say("] is for API calls: [ goes to the call")
        else:
            found = launched_by(report, picked.row)
            more = f": 1 of {len(found)}" if len(found) > 1 else ""
            self._follow(found[0] if found else None, f"launched by this call{more}")

    def action_timeline_flow_back(self) -> None:
        """From GPU work, or a wait, to its API call."""
        picked, report = self.current(), self.report
        if picked is None or report is None:
            self.app.say("no event here")
        elif self._beside_of(picked.events) is not None:
            self.app.say(ELSEWHERE)
        elif not isinstance(picked.events, (Operations, Syncs)):
            self.app.say("[ is for GPU work: ] follows a call")
        else:
            call = call_of(report, picked.events, picked.row)
            self._follow(None if call is None else (report.api, call), "the call of this work")

    def _follow(self, found: tuple[EventSet, int] | None, say: str) -> None:
        if found is None:
            self.app.say("nothing with its correlation id in this process")
            return
        self.app.say(say if self.go_to_event(*found) else f"{say}: hidden by the filter")

    def go_to_event(self, events: EventSet, row: int) -> bool:
        """Jumps to an event, unless the filter hides it; tells whether it did.

        It unfolds what hides the event's lane, and moves the window if the event lies outside.
        """
        track = self.track_of(Picked(events, row))
        if track is None:
            return False
        self.unfold(track)
        time = int(events.start[row])
        self.picked = Picked(events, row)
        self.jump(
            window=self.shifted(time),
            cursor=Cursor(time, track.key),
            selection=self.selection_of(events, row),
        )
        return True

    def range_around(self) -> tuple[int, int] | None:
        """The innermost range around the selected event, wider than it."""
        picked = self.picked
        owner = None if picked is None else self.owner(picked.events)
        if picked is None or owner is None:
            return None
        ranges = owner.report.ranges
        rows = ranges_around(owner.report, owner.events, picked.row)
        if not rows:
            return None
        start, end = int(ranges.start[rows[-1]]), int(ranges.end[rows[-1]])
        return start + owner.offset, end + owner.offset

    def show_facts(self) -> None:
        """Shows the facts of the selected event, or what the keys would do."""
        picked, report = self.picked, self.report
        if picked is None or report is None:
            self._show_evidence()
            return
        names, owner = self.state.display.names, self.owner(picked.events)
        if owner is None:
            return
        events, row, offset = owner.events, picked.row, owner.offset

        def moment(time: int) -> str:
            return self._exactly(time + offset)

        self.looking.ask(lambda: facts_of(owner.report, events, row, names, moment))

    def _show_evidence(self) -> None:
        """What another screen sent here that is no event, such as a gap; else what keys do."""
        session, selection = self.session, self.state.selection
        if selection is None or selection.span is None or selection.kind == "area":
            self.facts = None
            self._say_facts("Nothing selected", [[(" tab snaps to an event, . steps on", NAME)]])
            return
        self._show_facts(span_facts(selection, self._exactly))
        if session.finished and selection.kind in EVIDENCE:
            self.looking.ask(lambda: evidence_facts(session, selection, self._exactly))

    def _exactly(self, time: int) -> str:
        from nsys_tui.times import moment_text

        return moment_text(time, 1000, self.state.display.time, self.report, self.window.start)

    def _take_facts(self, found: Facts) -> None:
        if self.state.selection is not None and self.state.selection.kind != "area":
            self._show_facts(found)

    def _show_facts(self, found: Facts) -> None:
        self.facts = found
        title = f"Selected: {found.title}"
        side, strip = self.query_one("#facts", LinePane), self.strip
        side.heading(title)
        side.show_built(lambda width: column_lines(found, width))
        strip.heading(found.title, "enter: all")
        strip.show_built(
            lambda width: (flowing_lines if self.strip_is_low else column_lines)(found, width)
        )

    def _say_facts(self, title: str, lines: list[Line]) -> None:
        for name in ("#facts", "#strip"):
            pane = self.query_one(name, LinePane)
            pane.heading(title)
            pane.show(lines)

    def action_nav_open(self) -> None:
        """Selects the event under the cursor; then all that is known of it; then its stack."""
        selection = self.state.selection
        if selection is not None and selection.kind == "area":
            self._open_pane(self.query_one("#area", LinePane))
            return
        facts = self.query_one("#facts", LinePane)
        if self.picked is None:
            if not (self.on_evidence and self._open_pane(facts)):
                self._select_here()
            return
        if not self._open_pane(facts):
            self.open_stack()

    @property
    def on_evidence(self) -> bool:
        """Whether the cursor stands where a gap or finding begins that is selected."""
        selection = self.state.selection
        return (
            selection is not None
            and selection.kind in EVIDENCE
            and selection.span is not None
            and selection.span.start == self.cursor_time
        )

    def _select_here(self) -> None:
        picked, track = self.current(), self.row
        if picked is None or track is None:
            self.app.say("no event here")
        else:
            self.select(picked.events, picked.row, self.cursor_time, track.key)

    def _open_pane(self, side: LinePane) -> bool:
        """Goes to a pane at the side, or has the strip fill the screen; False if it is there."""
        pane = side if side.size.width else self.strip
        if pane.has_focus:
            return False
        pane.focus()
        if pane is self.strip:
            self.maximize(pane)
        return True

    def open_stack(self) -> None:
        """The stacks screen, on the selected event."""
        if self.picked is not None and self._beside_of(self.picked.events) is not None:
            self.app.say(ELSEWHERE)
        else:
            self.app.show("stacks", selection=self.state.selection)

    def action_timeline_same_name(self) -> None:
        """Finds all events of the name of the one selected or under the cursor."""
        picked = self.current()
        if picked is None:
            self.app.say("no event here")
            return
        self.search_for(self.store.naming(picked.events)(picked.row), exact=True)

    def search_for(self, pattern: str, *, exact: bool = False) -> None:
        """Searches all lanes."""
