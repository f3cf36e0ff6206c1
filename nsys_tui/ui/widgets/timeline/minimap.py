"""Minimap: the whole trace in one line, with the window in it; dragging moves the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from nsys_tui.model.lanes import Crowd, Lane
from nsys_tui.render.axis import draw_minimap
from nsys_tui.render.cells import MUTED, Emphasis, Ink, Row, style, text_row
from nsys_tui.render.viewport import Viewport

if TYPE_CHECKING:
    from textual import events

    from nsys_tui.analysis.timeline.lineup import Outline
    from nsys_tui.ui.host import Host

CAPTION: Final = "  whole trace, [==] = view "
"""Where there is room, beside the map in a screen without a frame around it."""
BRACKET: Final = style(Ink.CURSOR, emphasis=Emphasis.BOLD)
TALL: Final = 3
"""Rows from which on the map has a frame."""


class Minimap(Widget):
    """Draws the mean of how busy the GPUs are, or whatever there is without any."""

    app: Host

    @dataclass
    class Dragged(Message):
        """The window is wanted around a moment."""

        moment: int

    DEFAULT_CSS: ClassVar[str] = """
    Minimap { width: 1fr; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._outline: Outline = ()
        self._extent = (0, 1)
        self._window = (0, 1)
        self._map: tuple[object, Lane] | None = None
        self._dragging = False

    def show(self, outline: Outline, extent: tuple[int, int], window: tuple[int, int]) -> None:
        """Replaces what is shown."""
        now = (outline, extent, window)
        before = (self._outline, self._extent, self._window)
        if now != before:
            self._outline, self._extent, self._window = outline, extent, window
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The map, between the lines of a frame where the screen is tall."""
        inks, width = self.app.inks, self.size.width
        framed = self.size.height >= TALL
        edge = inks[MUTED]
        if framed and y != 1:
            ends = "┌┐" if y == 0 else "└┘"
            title = "─ Minimap: whole trace, [==] = view " if y == 0 else ""
            return Strip([Segment(f"{ends[0]}{title:─<{max(0, width - 2)}}{ends[1]}", edge)], width)
        if y and not framed:
            return Strip.blank(width, inks[0])
        row = self._draw(self._cells)
        segments = [Segment(text, inks[code]) for text, code in row.runs()]
        if framed:
            side = Segment("│", edge)
            segments = [side, *segments, side]
        elif self._caption:
            segments.append(Segment(self._caption, edge))
        return Strip(segments, width)

    @property
    def _caption(self) -> str:
        return CAPTION if self.size.height < TALL and self.size.width >= 2 * len(CAPTION) else ""

    @property
    def _cells(self) -> int:
        width = self.size.width
        return max(4, width - 2 if self.size.height >= TALL else width - len(self._caption))

    def _draw(self, width: int) -> Row:
        glyphs = self.app.glyphs
        lo, hi = self._extent
        extent = (lo, max(hi, lo + width))
        shown = (max(self._window[0], lo), min(self._window[1], extent[1]))
        lane = self._lane(extent, width)
        if shown != extent:
            return draw_minimap(lane, extent, shown, width, glyphs)
        view = Viewport(*extent, width)
        levels = zip(lane.busy(view.edges).tolist(), view.widths.tolist(), strict=True)
        row = text_row("".join(glyphs.level(*level) for level in levels), style(Ink.COUNTER))
        row.put(0, "[", BRACKET)  # all is in view: brackets at the ends, nothing covered
        row.put(width - 1, "]", BRACKET)
        return row

    def _lane(self, extent: tuple[int, int], width: int) -> Lane:
        key = (self._outline, extent, width)
        if self._map is None or self._map[0] != key:
            self._map = (key, mean_lane(self._outline, Viewport(*extent, width)))
        return self._map[1]

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Takes hold of the window."""
        self._dragging = True
        self.capture_mouse()
        self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Moves it."""
        if self._dragging:
            self._drag(event)

    def on_mouse_up(self) -> None:
        """Lets go."""
        self._dragging = False
        self.release_mouse()

    def _drag(self, event: events.MouseEvent) -> None:
        column = event.x - (1 if self.size.height >= TALL else 0)
        width = self._cells
        lo, hi = self._extent
        self.post_message(self.Dragged(Viewport(lo, max(hi, lo + width), width).time(column)))


def mean_lane(outline: Outline, window: Viewport) -> Lane:
    """One event a cell, as long as GPUs are busy in it on average, or threads at most."""
    edges = window.edges
    if isinstance(outline, Crowd):
        busy = outline.busy(edges)
        count = max(1, round(float((busy / np.maximum(window.widths, 1)).max(initial=0))))
    else:
        parts = [summary.busy(edges)[-1] for summary in outline]
        busy, count = np.sum(parts, axis=0), len(parts)
    busy = np.broadcast_to(busy, window.width)
    cells = np.flatnonzero(busy > 0)
    return Lane.build(edges[cells], edges[cells] + np.maximum(busy[cells] // max(count, 1), 1))
