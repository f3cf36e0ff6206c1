"""TracePane: the whole trace in a few rows, with a cursor that says where the timeline opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from nsys_tui.analysis.timeline.area import GPU
from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.names import pad, visible
from nsys_tui.render.axis import draw_axis
from nsys_tui.render.cells import MUTED, Cells, Emphasis, Ink, Row, category_ink, style
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.raster import LaneView, draw_lane
from nsys_tui.render.viewport import Viewport
from nsys_tui.state import Window
from nsys_tui.timeline.summary_view import summary_view
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.frame import DrawnPane

LABEL = 8
"""Cells at the left for the names of the rows."""


@dataclass(frozen=True, eq=False)
class TraceRow:
    """One row of the trace."""

    label: str
    view: LaneView

    def view_in(self, window: Viewport) -> LaneView:  # noqa: ARG002
        """What is drawn, the same in any window."""
        return self.view


@dataclass(frozen=True, eq=False)
class SummaryRow:
    """One row of the trace with all work of a device."""

    label: str
    summary: Summary

    def view_in(self, window: Viewport) -> LaneView:
        """What is drawn in a window."""
        return summary_view(self.summary, window)


HINT: Final = "<- -> choose, v or drag: a span, enter: timeline"
AnyRow: TypeAlias = TraceRow | SummaryRow


class TracePane(DrawnPane, can_focus=True):
    """Draws lanes over the whole trace."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(-1)", show=False),
        Binding("right,l", "step(1)", show=False),
        Binding("home", "step(-100000)", show=False),
        Binding("end", "step(100000)", show=False),
    ]

    @dataclass
    class Opened(Message):
        """Enter or a double click: the timeline is wanted around ``window``."""

        window: Window | None

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.rows: Sequence[AnyRow] = ()
        self._legend = False
        self._extent = (0, 1)
        self.column: int | None = None
        self._begin: int | None = None
        """Column where a span begins that is being chosen."""
        self._held = False
        self._chosen: tuple[int, int] | None = None
        """First and last column of the chosen span."""
        self.heading("Whole trace", HINT)

    def show(
        self, rows: Sequence[AnyRow], extent: tuple[int, int], *, legend: bool = False
    ) -> None:
        """Replaces what is drawn; with a legend below where there is room."""
        self._legend = legend
        if extent != self._extent:
            self._begin = self._chosen = None
        self.rows, self._extent = rows, extent
        self.redraw()

    @property
    def _columns(self) -> tuple[int, int] | None:
        """First and last column of the span that is chosen, or being chosen."""
        if self._begin is None or self.column is None:
            return self._chosen
        return min(self._begin, self.column), max(self._begin, self.column)

    def _span(self, viewport: Viewport) -> Window | None:
        """The chosen span in ns."""
        if (columns := self._columns) is None:
            return None
        last = min(columns[1], viewport.width - 1)
        return Window(viewport.time(min(columns[0], last)), int(viewport.edges[last + 1]))

    def depends_on(self) -> tuple[object, ...]:
        """What is shown, the cursor and the span, and how times are written."""
        state = self.app.state
        return self._extent, self.column, self._columns, state.window, state.display.time

    def draw(self) -> Cells:
        """The axis first, then the lanes."""
        width, glyphs = self.size.width, self.app.glyphs
        window = self._viewport(width)
        rows = [self._axis(width, window, glyphs)]
        for entry in self.rows:
            row = Row.blank(width)
            row.put(0, pad(visible(entry.label, self.app.ascii), LABEL - 1))
            self._overlay(row, draw_lane(entry.view_in(window), window, glyphs))
            rows.append(row)
        if self.has_focus and self.column is not None:
            for row in rows:
                row.emphasise(LABEL + self.column, LABEL + self.column + 1, Emphasis.REVERSE)
        return [*rows, legend_row(width, glyphs)] if self._legend else rows

    def _axis(self, width: int, window: Viewport, glyphs: Glyphs) -> Row:
        style, report = self.app.state.display.time, self.app.session.report

        def text(moment: int, step: int) -> str:
            return moment_text(moment, step, style, report, window.lo)

        row = Row.blank(width)
        area = self._span(window) or self.app.state.window
        self._overlay(row, draw_axis(window, text, glyphs, area=area, origin=window.lo))
        return row

    @staticmethod
    def _overlay(row: Row, part: Row) -> None:
        row.chars[LABEL : LABEL + part.width] = part.chars
        row.styles[LABEL : LABEL + part.width] = part.styles

    def _viewport(self, width: int) -> Viewport:
        return Viewport(*self._extent, max(1, width - LABEL - 1), self._extent)

    def window_at(self, column: int) -> Window:
        """A tenth of the trace around a column."""
        lo, hi = self._extent
        viewport = self._viewport(self.size.width)
        middle, tenth = viewport.time(column), max((hi - lo) // 10, 1)
        start = min(max(middle - tenth // 2, lo), max(hi - tenth, lo))
        return Window(start, start + tenth)

    def action_step(self, step: int) -> None:
        """Moves the cursor by columns."""
        last = self._viewport(self.size.width).width - 1
        now = self.column if self.column is not None else (0 if step > 0 else last) - step
        self.column = min(max(now + step, 0), last)
        self.refresh()

    def action_nav_open(self) -> None:
        """Opens the timeline on the chosen span, at the cursor, or on everything."""
        window = self._span(self._viewport(self.size.width))
        if window is None and self.column is not None:
            window = self.window_at(self.column)
        self._begin = None
        self.post_message(self.Opened(window))

    def action_timeline_area(self) -> None:
        """Begins a span at the cursor, or ends it there."""
        if self._begin is None:
            self.action_step(0)
            self._begin, self._chosen = self.column, None
            self.app.say("the span begins here: v ends it, enter opens it, esc gives it up")
        else:
            self._chosen, self._begin = self._columns, None
        self.refresh()

    def action_nav_escape(self) -> None:
        """Gives the chosen span up."""
        self._begin = self._chosen = None
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is this pane's only while a span is chosen."""
        if action == "nav_escape":
            return self._columns is not None and self.app.error is None
        return super().check_action(action, parameters)

    def _column_at(self, event: events.MouseEvent) -> int | None:
        spot = event.get_content_offset_capture(self)
        if spot.x < LABEL and not self._held:
            return None
        return min(max(spot.x - LABEL, 0), self._viewport(self.size.width).width - 1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A press sets the cursor."""
        column = self._column_at(event)
        if event.button == 1 and column is not None:
            self._held, self.column = True, column
            self._begin = self._chosen = None
            self.capture_mouse()
            self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """A drag chooses a span."""
        column = self._column_at(event)
        if self._held and column is not None and column != self.column:
            self._begin = self.column if self._begin is None else self._begin
            self.column = column
            self.refresh()

    def on_mouse_up(self) -> None:
        """The span is chosen."""
        if self._held:
            self._held = False
            self.release_mouse()
            self._chosen, self._begin = self._columns, None

    def on_click(self, event: events.Click) -> None:
        """A double click opens the timeline there."""
        if event.chain > 1:
            self.action_nav_open()


def legend_row(width: int, glyphs: Glyphs) -> Row:
    """What the colours or fills of GPU work, and of idle time, stand for."""
    parts = [
        (glyphs.fill(category), category.name.lower(), category_ink(category)) for category in GPU
    ]
    parts.append((glyphs.idle, "idle", Ink.IDLE))
    row = Row.blank(width)
    row.put(0, "legend")
    column = LABEL
    for fill, name, ink in parts:
        row.put(column, fill, style(ink))
        row.put(column + 2, name, MUTED)
        column += len(name) + 5
    return row
