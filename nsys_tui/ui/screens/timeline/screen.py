"""TimelineScreen: everything over time, lane by lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.state import Window
from nsys_tui.ui.commands import COMMANDS
from nsys_tui.ui.screens.timeline.arranging import Arranging
from nsys_tui.ui.screens.timeline.exporting import Exporting
from nsys_tui.ui.screens.timeline.marking import Marking
from nsys_tui.ui.screens.timeline.moving import Moving
from nsys_tui.ui.screens.timeline.searching import Searching
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
    from nsys_tui.ui.widgets.timeline.minimap import Minimap

SHORT_WORK = 10
"""GPU work that takes less than this part of the trace is named with the key that fits it."""


class TimelineScreen(Marking, Searching, Moving, Arranging, Exporting):
    """The second screen."""

    def action_timeline_events(self) -> None:
        """The events of the window, or of the area, as a table."""
        self.app.show("events")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The table of events needs its screen."""
        if action == "timeline_events":
            return self.app.handler("view.events") is not None
        return super().check_action(action, parameters)

    def action_nav_escape(self) -> None:
        """Gives up an area, a search, a filter, a selection, in this order; then goes back."""
        app = self.app
        if app.error is not None or self.maximized is not None or app.progress is not None:
            COMMANDS["nav.escape"](app)
            self.canvas.focus()
        elif self.clear_area() or self.clear_search():
            return
        elif not self.canvas.has_focus:
            self.canvas.focus()
        elif self.picked is not None:
            self.area = None
            self.picked = None
            self.point(selection=None)
        else:
            COMMANDS["nav.escape"](app)

    def action_copy_cell(self) -> None:
        """Copies the name of the selected event."""
        picked = self.current()
        if picked is not None:
            self.app.copy(self.store.naming(picked.events)(picked.row), "1 name")

    def action_copy_row(self) -> None:
        """Copies the facts of what is selected."""
        if (facts := self.facts) is not None and self.state.selection is not None:
            lines = [f"name\t{facts.title}", *(f"{name}\t{text}" for name, text in facts.facts)]
            self.app.copy("\n".join(lines), "1 event" if self.picked is not None else "facts")

    def info(self) -> tuple[str, str]:
        """What the lanes show, and hints that belong to the report."""
        left, right = super().info()
        if not left and self.span is not None and self.state.window is None:
            work, whole = self.span[1] - self.span[0], self.extent[1] - self.extent[0]
            if work * SHORT_WORK < whole:
                left = (
                    f"GPU work takes {format_duration(work, 3)} of {format_duration(whole, 3)}:"
                    " f fits it"
                )
        return left or "filter: (none)", right

    def on_timeline_canvas_snapped(self, message: TimelineCanvas.Snapped) -> None:
        """Tab on the lanes."""
        self.snap(message.forward)

    def on_minimap_dragged(self, message: Minimap.Dragged) -> None:
        """The window follows the pointer on the minimap."""
        window = self.window
        start = message.moment - window.width // 2
        if self.state.window is not None:
            self.move(Window(start, start + window.width), message.moment)

    def on_timeline_canvas_pointed(self, message: TimelineCanvas.Pointed) -> None:
        """The pointer on the lanes."""
        what = message.what
        if what == "scroll":
            self.step_lane(message.step)
        elif what == "pan":
            self.pan(0.25 * message.step)
        elif what == "zoom":
            about = self.canvas.view.time(max(message.column, 0))
            self.zoom(2.0 if message.step > 0 else 0.5, about)
        elif what == "open":
            self.action_nav_open()
        elif what == "press":
            self._press(message)
        elif what == "drag":
            self._drag(message)
        else:
            self._drop()

    def _press(self, message: TimelineCanvas.Pointed) -> None:
        """Moves the cursor; on a label only the row; a second press on it folds."""
        lane = self._lane_key if message.row is None else self.rows[message.row].key
        if message.column < 0:
            self.point(lane=lane)
            return
        view = self.canvas.view
        self.picked = None
        self.point(view.time(min(message.column, view.width - 1)), lane, selection=None)
        self._pressed = (self.cursor_time, lane)

    _pressed: tuple[int, str] | None = None

    def _drag(self, message: TimelineCanvas.Pointed) -> None:
        if self._pressed is None:
            return
        view = self.canvas.view
        time = view.time(min(max(message.column, 0), view.width - 1))
        lane = self._lane_key if message.row is None else self.rows[message.row].key
        if self.area_from is None and (time, lane) != self._pressed:
            self.area_from = self._pressed
        if self.area_from is not None:
            self.point(time, lane)

    def _drop(self) -> None:
        self._pressed = None
        if self.area_from is not None:
            self.action_timeline_area()
            return
        picked, track = self.current(), self.row
        if picked is not None and track is not None:
            self.select(picked.events, picked.row, self.cursor_time, track.key)
