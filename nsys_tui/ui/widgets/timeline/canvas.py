"""TimelineCanvas: the lanes on the screen; sends the terminal only cells that changed.

The frame is drawn here too, because a border of the style sheet would repaint everything whenever
its title changes. What the keys do is the screen's business.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from nsys_tui.render.cells import MUTED, Row
from nsys_tui.timeline.painter import (
    Painter,
    Scene,
    margin_width,
    runs,
    same,
    tally_width,
    viewport,
)
from nsys_tui.ui.theming import StyleTable
from nsys_tui.ui.widgets.frame import heading_text

if TYPE_CHECKING:
    from textual import events

    from nsys_tui.render.viewport import Viewport
    from nsys_tui.ui.host import Host

FRAME: Final = 2
"""Cells that the frame takes in each direction."""
EDGE: Final = MUTED


class TimelineCanvas(Widget, can_focus=True):
    """Draws a ``Scene``."""

    DEFAULT_CSS: ClassVar[str] = """
    TimelineCanvas { width: 1fr; height: 1fr; }
    """
    app: Host

    @dataclass
    class Pointed(Message):
        """The pointer did something on the lanes.

        Attributes:
            what: ``press``, ``open``, ``drag``, ``drop``, ``scroll``, ``pan`` or ``zoom``.
            row: number of the row among all, or None on the axis.
            column: cell of the lane; negative on the labels.
            step: direction of a wheel.
        """

        what: str
        row: int | None
        column: int
        step: int = 0

    class Resized(Message):
        """More or fewer columns or lanes are shown."""

    @dataclass
    class Snapped(Message):
        """Tab: the next event is wanted."""

        forward: bool

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.scene = Scene()
        self.painter = Painter()
        self._title = ("", "")
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._look: object = None
        self._own: StyleTable | None = None
        self._plain: StyleTable | None = None
        self._waiting = False
        self._busy_until = 0.0
        self._dragging = False

    @property
    def lanes_shown(self) -> int:
        """Rows of lanes that fit below the axis."""
        return max(1, self.size.height - FRAME - 1)

    @property
    def columns(self) -> int:
        """Cells of a lane."""
        inner = max(1, self.size.width - FRAME)
        return max(1, inner - self._margin(inner) - tally_width(inner))

    def _margin(self, inner: int) -> int:
        return margin_width(inner, self.scene.labels, sizes=self.scene.sizes)

    @property
    def view(self) -> Viewport:
        """The window of the scene over the cells of a lane."""
        return viewport(self.scene, self.columns)

    def show(self, scene: Scene, title: str, remark: str) -> None:
        """Replaces what is shown.

        Key repeat coalesces: while scenes come faster than they can be drawn, every other moment is
        left to the keys and only the last scene is drawn.
        """
        self.scene, self._title = scene, (title, remark)
        if self._waiting:
            return
        self._waiting = True
        ahead = self._busy_until - time.perf_counter()
        if ahead > 0:
            # A timer of Textual's is skipped without a word where its moment has already passed.
            asyncio.get_running_loop().call_later(ahead, self.call_next, self.repaint)
        else:
            self.call_next(self.repaint)

    def repaint(self) -> None:
        """Draws the scene and has the lines that changed sent."""
        self._waiting = False
        if not self.size.width or not self.is_attached:
            return
        began = time.perf_counter()
        changed = self._draw()
        if changed is None:
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))
        now = time.perf_counter()
        self._busy_until = now + (now - began)

    @property
    def _inks(self) -> StyleTable:
        """The app's styles, and those of colours that events brought along."""
        plain, own = self.app.inks, self.scene.own
        if not own or plain.theme.kind != "rgb":
            return plain
        if self._own is None or self._own.theme.own != own or self._plain is not plain:
            self._plain = plain
            self._own = StyleTable(replace(plain.theme, own=own))
        return self._own

    @property
    def _now(self) -> tuple[object, ...]:
        """What a drawing depends on besides the scene."""
        return (*self.size, self._inks, self.app.glyphs.name, self.has_focus)

    def _draw(self) -> list[int] | None:
        """Draws anew; gives the numbers of the lines that changed, or None for everything."""
        width, height = self.size
        inner = max(1, width - FRAME)
        rows = self.painter.paint(self.scene, inner, max(1, height - FRAME), self.app.glyphs)
        whole = [self._edge(*self._title, width), *rows, self._edge("", "", width)]
        old = self._rows if self._now == self._look else []
        self._look, self._rows = self._now, whole
        if len(old) != len(whole):
            self._strips = [self._strip(number) for number in range(len(whole))]
            return None
        changed = [n for n, row in enumerate(whole) if not same(old[n], row)]
        for number in changed:
            self._strips[number] = self._strip(number)
        return changed

    def _edge(self, title: str, remark: str, width: int) -> Row:
        """Upper or lower edge of the frame."""
        row = Row.blank(width, EDGE)
        row.put(0, "─" * width)
        text = heading_text(title, remark, width, self.has_focus and bool(title))
        if text:
            row.put(1, f"─ {text} ")
        return row

    def _strip(self, number: int) -> Strip:
        row, line = self._rows[number], self._line_style
        if number in (0, len(self._rows) - 1):
            ends = "┌┐" if number == 0 else "└┘"
            return Strip([Segment(ends[0] + row.text()[1:-1] + ends[1], line)], row.width)
        inks = self._inks
        # An ink without colours is emphasis, which blanks would show.
        pieces = row.runs() if inks.theme.kind == "mono" else runs(row)
        segments = [Segment(text, inks[code]) for text, code in pieces]
        return Strip([Segment("│", line), *segments, Segment("│", line)], row.width + FRAME)

    @property
    def _line_style(self) -> Style:
        inks = self.app.inks
        theme = inks.theme
        base = inks[0]
        if theme.kind != "rgb":
            return base + Style(bold=self.has_focus)
        colour = theme.colour("accent" if self.has_focus else "border")
        return base + Style(color=colour, bold=self.has_focus)

    def render_line(self, y: int) -> Strip:
        """One line of what was drawn last."""
        if self._look != self._now:
            self._draw()
        if y >= len(self._strips):
            return Strip.blank(self.size.width, self.app.inks[0])
        return self._strips[y]

    def on_resize(self) -> None:
        """What belongs to a number of columns or lanes follows."""
        self.post_message(self.Resized())

    def action_timeline_snap_next(self) -> None:
        """The next event in a later column."""
        self.post_message(self.Snapped(forward=True))

    def action_timeline_snap_previous(self) -> None:
        """The event in a column before."""
        self.post_message(self.Snapped(forward=False))

    def _spot(self, event: events.MouseEvent) -> tuple[int | None, int]:
        """Row and column of a pointer event."""
        inner = max(1, self.size.width - FRAME)
        column = event.x - 1 - self._margin(inner)
        line = event.y - 2
        if not 0 <= line < self.lanes_shown:
            return None, column
        row = self.scene.top + line
        return (row if row < len(self.scene.rows) else None), column

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A press may begin a drag."""
        if event.button == 1:
            self._dragging = True
            self.capture_mouse()
            self.post_message(self.Pointed("press", *self._spot(event)))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """A drag selects an area."""
        if self._dragging and event.button:
            self.post_message(self.Pointed("drag", *self._spot(event)))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """The end of a drag, or of a click."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()
            self.post_message(self.Pointed("drop", *self._spot(event)))

    def on_click(self, event: events.Click) -> None:
        """A double click opens."""
        if event.chain > 1:
            self.post_message(self.Pointed("open", *self._spot(event)))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls; with Shift it pans, with Ctrl it zooms."""
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The same, the other way."""
        self._wheel(event, 1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """A wheel that tilts pans."""
        event.stop()
        self.post_message(self.Pointed("pan", *self._spot(event), -1))

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """The same, the other way."""
        event.stop()
        self.post_message(self.Pointed("pan", *self._spot(event), 1))

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        what = "zoom" if event.ctrl else ("pan" if event.shift else "scroll")
        self.post_message(self.Pointed(what, *self._spot(event), step))
