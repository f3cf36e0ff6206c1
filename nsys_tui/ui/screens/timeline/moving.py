"""Moving about: zoom, pan, cursor, lanes, fit, go to a time, iterations."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.finding import Iterations, find_iterations
from nsys_tui.errors import UsageError
from nsys_tui.state import Cursor, Window, bounded, panned, zoomed
from nsys_tui.ui.dialogs.prompt import Prompt
from nsys_tui.ui.screens.timeline.core import TimelineCore
from nsys_tui.units import parse_duration

MARGIN: Final = 20
"""A fitted span leaves a part this small of itself free at either side."""
_PERCENT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*\Z")


class Moving(TimelineCore):
    """Actions that move the window or the cursor."""

    def zoom(self, factor: float, about: int | None = None) -> None:
        """Zooms about a moment, the cursor's by default."""
        window, columns = self.window, self.canvas.columns
        centre = self.cursor_time if about is None else about
        if not window.start <= centre < window.end:
            centre = window.start + window.width // 2
        target = zoomed(window, self.extent, factor, centre, columns)
        if target != self.state.window:
            inside = window.start <= self.cursor_time < window.end
            self.move(target, None if inside else centre)

    def action_timeline_zoom_in(self) -> None:
        """Twice as close."""
        self.zoom(0.5)

    def action_timeline_zoom_out(self) -> None:
        """Half as close."""
        self.zoom(2.0)

    def pan(self, part: float) -> None:
        """Moves the window by a part of its width; the cursor keeps its column."""
        if self.state.window is None:
            return
        window = self.window
        moved = panned(window, self.extent, int(window.width * part))
        self.move(moved, self.cursor_time + moved.start - window.start)

    def action_timeline_pan_left(self) -> None:
        """A quarter to the left."""
        self.pan(-0.25)

    def action_timeline_pan_right(self) -> None:
        """A quarter to the right."""
        self.pan(0.25)

    def action_timeline_page_left(self) -> None:
        """A window to the left."""
        self.pan(-1)

    def action_timeline_page_right(self) -> None:
        """A window to the right."""
        self.pan(1)

    def step_column(self, step: int) -> None:
        """Moves the cursor by columns and pans at the edges."""
        view = self.canvas.view
        column = view.cell(self.cursor_time)
        if column is None:
            column = 0 if self.cursor_time < view.lo else view.width - 1
        target = column + step
        time = view.time(target)
        if 0 <= target < view.width:
            self.point(time)
        elif self.state.window is not None:
            shift = max(view.step, 1) * (1 if step > 0 else -1) * max(1, view.width // 8)
            window = bounded(Window(view.lo + shift, view.hi + shift), self.extent)
            inside = min(max(time, window.start), window.end - 1)
            self.move(window, inside)

    def action_timeline_cursor_left(self) -> None:
        """One column to the left."""
        self.step_column(-1)

    def action_timeline_cursor_right(self) -> None:
        """One column to the right."""
        self.step_column(1)

    def step_lane(self, step: int) -> None:
        """Moves the cursor by rows."""
        if self.rows:
            number = min(max(self.row_number + step, 0), len(self.rows) - 1)
            self.point(lane=self.rows[number].key)

    def action_timeline_lane_up(self) -> None:
        """One lane up."""
        self.step_lane(-1)

    def action_timeline_lane_down(self) -> None:
        """One lane down."""
        self.step_lane(1)

    def action_timeline_lanes_up(self) -> None:
        """A screenful up."""
        self.step_lane(1 - self.canvas.lanes_shown)

    def action_timeline_lanes_down(self) -> None:
        """A screenful down."""
        self.step_lane(self.canvas.lanes_shown - 1)

    def action_timeline_half_up(self) -> None:
        """Half a screenful up."""
        self.step_lane(-(self.canvas.lanes_shown // 2))

    def action_timeline_half_down(self) -> None:
        """Half a screenful down."""
        self.step_lane(self.canvas.lanes_shown // 2)

    def action_timeline_lane_first(self) -> None:
        """To the top."""
        self.step_lane(-len(self.rows))

    def action_timeline_lane_last(self) -> None:
        """To the bottom."""
        self.step_lane(len(self.rows))

    def action_timeline_whole(self) -> None:
        """The whole trace."""
        if self.state.window is not None:
            self.jump(window=None)

    def action_timeline_fit(self) -> None:
        """The selection; when it is fitted already, the range around it; else all GPU work."""
        selection = self.state.selection
        span = selection.span if selection is not None else None
        if span is None:
            if self.span is not None:
                self.jump(window=self.around(*self.span))
            return
        target = self.around(*span)
        if target != self.state.window:
            self.jump(window=target)
            return
        outer = self.range_around()
        self.jump(window=None if outer is None else self.around(*outer))

    def around(self, start: int, end: int) -> Window:
        """A window that shows a span with a little room at either side."""
        columns = self.canvas.columns
        free = max((end - start) // MARGIN, 1)
        width = max(end - start + 2 * free, columns)
        middle = (start + end) // 2
        return Window(middle - width // 2, middle - width // 2 + width)

    def range_around(self) -> tuple[int, int] | None:
        """The smallest range around the selected event; None where there is none."""
        return None

    def action_timeline_goto(self) -> None:
        """Asks for a time."""
        hint = "2.1s, 350ms, +3ms or -3ms from the cursor, 50% of the trace; seconds without a unit"
        self.app.push_screen(Prompt("Go to a time", hint, check=self.time_of), self._go_to)

    def time_of(self, text: str) -> int:
        """The moment that a text means.

        Raises:
            UsageError: it is no time.
        """
        text = text.strip()
        if match := _PERCENT.match(text):
            lo, hi = self.extent
            # Thousandths keep the arithmetic on integers.
            return lo + (hi - lo) * round(float(match.group(1)) * 1000) // 100_000
        if not text:
            raise UsageError("no time given", hint="write it as 2.1s, +3ms or 50%")
        value = parse_duration(text, "s")
        return self.cursor_time + value if text[0] in "+-" else value

    def _go_to(self, text: str | None) -> None:
        if text is None:
            return
        time = self.time_of(text)
        lo, hi = self.extent
        if not lo <= time <= hi:
            self.app.say(f"{self.moment(time)} lies outside the trace")
            time = min(max(time, lo), hi)
        self.jump(window=self.shifted(time), cursor=Cursor(time, self._lane_key))

    def action_timeline_iteration_next(self) -> None:
        """The next iteration."""
        self._iterate(1)

    def action_timeline_iteration_previous(self) -> None:
        """The one before."""
        self._iterate(-1)

    def _iterate(self, step: int) -> None:
        report = self.report
        if report is None or not self.session.finished:
            self.app.say("iterations are known once the report is read")
            return
        memo = self.session.memo
        self.compute(
            "iterations",
            lambda: memo("iterations", lambda: find_iterations(report)),
            lambda found: self._go_to_iteration(found, step),
        )

    def _go_to_iteration(self, found: Iterations, step: int) -> None:
        if not len(found):
            self.app.say("no iterations found: neither range names nor kernels repeat")
            return
        time = self.cursor_time
        place = int(np.searchsorted(found.start, time, side="right" if step > 0 else "left"))
        place -= step < 0
        if not 0 <= place < len(found):
            self.app.say("that was the last iteration" if step > 0 else "that was the first")
            return
        start = int(found.start[place])
        window = self.window
        target = None
        if self.state.window is not None:
            lead = window.width // MARGIN
            target = Window(start - lead, start - lead + window.width)
        label = found.labels[place] if place < len(found.labels) else ""
        self.app.say(f"iteration {place + 1} of {len(found)} {label} ({found.rule})")
        self.jump(window=target, cursor=Cursor(start, self._lane_key))
