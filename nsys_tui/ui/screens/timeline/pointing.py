"""The pointer: clicks, drags and the wheel on the lanes, their labels, the axis and the minimap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.state import Window
from nsys_tui.ui.screens.timeline.areas import Areas
from nsys_tui.ui.screens.timeline.arranging import Arranging
from nsys_tui.ui.screens.timeline.moving import Moving
from nsys_tui.ui.screens.timeline.stepping import Stepping

if TYPE_CHECKING:
    from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
    from nsys_tui.ui.widgets.timeline.minimap import Minimap

NOTCH: Final = 3
"""Rows that one step of the wheel scrolls."""


class Pointing(Areas, Stepping, Moving, Arranging):
    """What the pointer does."""

    _pressed: tuple[int, str] | None = None
    """Moment and row at which the button went down on a lane or on the axis."""

    def on_minimap_dragged(self, message: Minimap.Dragged) -> None:
        """The window follows the pointer on the minimap; where all is shown, the cursor does."""
        window = self.window
        start = message.moment - window.width // 2
        if self.state.window is None:
            self.point(message.moment)
        else:
            self.move(Window(start, start + window.width), message.moment)

    def on_timeline_canvas_pointed(self, message: TimelineCanvas.Pointed) -> None:
        """The pointer on the lanes."""
        what = message.what
        if what == "scroll":
            self.scroll_lanes(NOTCH * message.step)
        elif what == "pan":
            self.pan(0.25 * message.step)
        elif what == "zoom":
            about = self.canvas.view.time(max(message.column, 0))
            self.zoom(2.0 if message.step > 0 else 0.5, about)
        elif what == "open":
            self._open(message)
        elif what == "press":
            self._press(message)
        elif what == "drag":
            self._drag(message)
        else:
            self._drop(message)

    def scroll_lanes(self, rows: int) -> None:
        """Scrolls the rows; the cursor stays on its own as long as that is in view."""
        height = self.canvas.lanes_shown
        top = min(max(self._top + rows, 0), max(0, len(self.rows) - height))
        if not self.rows or top == self._top:
            return
        self._top = top
        number = min(max(self.row_number, top), min(top + height, len(self.rows)) - 1)
        if number != self.row_number:
            self.point(lane=self.rows[number].key)
        else:
            self.redraw()

    def _open(self, message: TimelineCanvas.Pointed) -> None:
        """A double click is Enter; on a label it folds."""
        if message.column >= 0:
            self.action_nav_open()
        elif message.row is not None:
            self.action_timeline_fold()

    def _lane_at(self, message: TimelineCanvas.Pointed) -> str:
        return self._lane_key if message.row is None else self.rows[message.row].key

    def _time_at(self, message: TimelineCanvas.Pointed) -> int:
        view = self.canvas.view
        return view.time(min(max(message.column, 0), view.width - 1))

    def _press(self, message: TimelineCanvas.Pointed) -> None:
        """Moves the cursor; on a label only its row, on the axis only its moment."""
        lane = self._lane_at(message)
        if message.column < 0:
            self.point(lane=lane)
            return
        self._pressed = (self._time_at(message), lane)
        if message.row is None:
            self.point(self._pressed[0])
            return
        self.picked = None
        self.point(*self._pressed, selection=None)

    def _drag(self, message: TimelineCanvas.Pointed) -> None:
        if self._pressed is None:
            return
        spot = (self._time_at(message), self._lane_at(message))
        if self.area_from is None and spot != self._pressed:
            self.picked = None
            self.area_from = self._pressed
        if self.area_from is not None:
            self.point(*spot)

    def _drop(self, message: TimelineCanvas.Pointed) -> None:
        pressed, self._pressed = self._pressed, None
        if pressed is not None and self.area_from is not None:
            self.action_timeline_area()
            return
        if pressed is None or message.row is None:
            return
        picked, track = self.current(), self.row
        if picked is not None and track is not None:
            self.select(picked.events, picked.row, self.cursor_time, track.key)
