"""HeatPane: ranks over time in one pane, with a cursor on a rank and a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from nsys_tui.fleet.heat_maps import HeatMap, group_labels, scale_text, value_text
from nsys_tui.model.arrays import Indices
from nsys_tui.names import cell_len, cut, pad, visible
from nsys_tui.render.axis import draw_axis
from nsys_tui.render.cells import (
    BOLD,
    Cells,
    Emphasis,
    Ink,
    Row,
    category_ink,
    join,
    style,
    text_row,
)
from nsys_tui.render.heatmap import groups, heat, notable, squeeze
from nsys_tui.render.viewport import Viewport
from nsys_tui.state import TimeFormat
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.frame import DrawnPane

LABEL: Final = 14
"""Most cells for the names of the rows."""
MARGIN: Final = 2
"""An opened window is so many cells longer on either side of the cursor."""


class HeatPane(DrawnPane, can_focus=True):
    """Draws one heat map; neighbouring ranks share a row where there are too many."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(0, -1)", show=False),
        Binding("right,l", "step(0, 1)", show=False),
        Binding("up,k", "step(-1, 0)", show=False),
        Binding("down,j", "step(1, 0)", show=False),
        Binding("pageup", "step(-10, 0)", show=False),
        Binding("pagedown", "step(10, 0)", show=False),
        Binding("home", "step(0, -100000)", show=False),
        Binding("end", "step(0, 100000)", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another row of the map; only the last of several is delivered."""

        row: int

        def can_replace(self, message: Message) -> bool:
            """A later one makes this one pointless."""
            return isinstance(message, HeatPane.Moved)

    @dataclass
    class Opened(Message):
        """Enter or a double click: a rank is wanted, at the time under the cursor."""

        row: int
        window: tuple[int, int] | None

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.shown: HeatMap | None = None
        self.row = 0
        """Row of the map under the cursor."""
        self.column: int | None = None
        """Cell of time under the cursor; None before it was moved."""
        self.heading("Heat map")

    def show(self, shown: HeatMap | None) -> None:
        """Replaces the map; the cursor stays as far as it can."""
        self.shown = shown
        self.row = min(self.row, max(len(shown.labels) - 1, 0)) if shown else 0
        self._say()
        self.redraw()

    def put_row(self, row: int) -> None:
        """Moves the cursor to a row of the map."""
        if self.shown is not None and row != self.row and 0 <= row < len(self.shown.labels):
            self.row = row
            self._say()
            self.refresh()

    @property
    def _height(self) -> int:
        """Rows drawn below the axis."""
        count = len(self.shown.labels) if self.shown else 0
        return max(0, min(self.size.height - 1, count))

    @property
    def _gutter(self) -> int:
        labels = group_labels(self.shown, self._height) if self.shown else ()
        names = [cell_len(visible(label)) for label in labels]
        return min(max([3, *names]), LABEL) + 2

    @property
    def cells(self) -> int:
        """Cells of time."""
        return max(1, self.size.width - self._gutter)

    def _groups(self) -> Indices:
        count = len(self.shown.labels) if self.shown else 0
        return groups(count, max(1, self._height))

    def _line_of(self, row: int) -> int:
        return int(np.searchsorted(self._groups(), row, side="right")) - 1

    def window(self) -> tuple[int, int] | None:
        """Fleet time around the cursor, or None before it was moved."""
        if self.shown is None or self.column is None:
            return None
        first, last = int(self.shown.edges[0]), int(self.shown.edges[-1])
        cell = max((last - first) // self.cells, 1)
        middle = first + cell * self.column
        return middle - MARGIN * cell, middle + (MARGIN + 1) * cell

    def depends_on(self) -> tuple[object, ...]:
        """The cursor, and how times are written."""
        return self.row, self.column, self.app.state.display.time

    def draw(self) -> Cells:
        """The axis first, then the rows."""
        shown, gutter = self.shown, self._gutter
        if shown is None or not self._height:
            return []
        glyphs = self.app.glyphs
        ink = Ink.COUNTER if shown.category is None else category_ink(shown.category)
        drawn = heat(shown.values, self._height, self.cells, glyphs, shown.top, ink)
        rows = [self._axis(shown, gutter)]
        here = self._line_of(self.row)
        for place, (label, line) in enumerate(
            zip(group_labels(shown, len(drawn)), drawn, strict=True)
        ):
            mark, weight = (">", BOLD) if place == here else (" ", 0)
            name = cut(mark + visible(label, self.app.ascii), gutter - 1)
            rows.append(join(text_row(pad(name, gutter - 1), weight), Row.blank(1), line))
        if self.column is not None:
            spot = gutter + min(self.column, self.cells - 1)
            for place, row in enumerate(rows):
                if self.has_focus or place == here + 1:
                    row.emphasise(spot, spot + 1, Emphasis.REVERSE)
        return rows

    def _axis(self, shown: HeatMap, gutter: int) -> Row:
        first, last = int(shown.edges[0]), int(shown.edges[-1])
        window = Viewport(first, last, self.cells)
        relative = self.app.state.display.time is TimeFormat.RELATIVE
        origin = first if relative else 0
        axis = draw_axis(window, self._moment, self.app.glyphs, origin=origin)
        return join(text_row("rank".ljust(gutter), style(Ink.AXIS)), axis)

    def _moment(self, moment: int, step: int) -> str:
        kind = self.app.state.display.time
        if kind is TimeFormat.ABSOLUTE:
            kind = TimeFormat.AUTO
        origin = int(self.shown.edges[0]) if self.shown else 0
        return moment_text(moment, step, kind, None, origin)

    def _say(self) -> None:
        """Title and, under the cursor, rank, time and value."""
        shown = self.shown
        if shown is None:
            self.heading("Heat map")
            return
        left = f"Heat map: {shown.title} (full: {scale_text(shown)})"
        if self.column is None or not shown.labels:
            self.heading(left, "m: next map  <- -> time  enter: open")
            return
        edges, column = groups(len(shown.edges) - 1, self.cells), min(self.column, self.cells - 1)
        lo = int(edges[column])
        start = int(shown.edges[lo])
        step = max(1, int(shown.edges[-1] - shown.edges[0]) // self.cells)
        values = shown.values[self.row : self.row + 1]
        value = value_text(shown, float(squeeze(values, 1, self.cells)[0, column]))
        here = f"{shown.labels[self.row]} at {self._moment(start, step)}: {value}"
        first, last = self._block()
        if last - first > 1:
            means = squeeze(shown.values[first:last], 1, self.cells)
            mean = value_text(shown, float(means[0, column]))
            here += f"  mean of {shown.labels[first]}-{shown.labels[last - 1]}: {mean}"
        self.heading(left, here if shown.rows[self.row] is None else f"rank {here}")

    def _block(self) -> tuple[int, int]:
        """The rows of the map that share the line of the cursor."""
        edges = self._groups()
        line = self._line_of(self.row)
        return int(edges[line]), int(edges[line + 1])

    def _to_notable(self) -> None:
        """Moves the cursor, within its line, to the rank that differs at its moment."""
        first, last = self._block()
        if self.shown is None or self.column is None or last - first < 2:
            return
        shown = self.shown
        full = shown.top or float(np.nanmax(shown.values, initial=0.0))
        _, rank = notable(shown.values[first:last], 1, self.cells, full)
        row = int(rank[0, min(self.column, self.cells - 1)])
        if row >= 0:
            self.row = first + row

    def action_step(self, down: int, right: int) -> None:
        """Moves the cursor by rows drawn or cells."""
        if self.shown is None or not self.shown.labels:
            return
        if right:
            last = self.cells - 1
            now = self.column if self.column is not None else (0 if right > 0 else last) - right
            self.column = min(max(now + right, 0), last)
        if down:
            line = min(max(self._line_of(self.row) + down, 0), max(self._height, 1) - 1)
            self.row = int(self._groups()[line])
        if down or right:
            self._to_notable()
            self.post_message(self.Moved(self.row))
        self._say()
        self.refresh()

    def action_nav_open(self) -> None:
        """Opens the rank under the cursor."""
        if self.shown is not None and self.shown.labels:
            self.post_message(self.Opened(self.row, self.window()))

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a double click opens."""
        spot = event.get_content_offset(self)
        if spot is None or self.shown is None or not 1 <= spot.y <= self._height:
            return
        self.row = int(self._groups()[spot.y - 1])
        if spot.x >= self._gutter:
            self.column = min(spot.x - self._gutter, self.cells - 1)
        self._to_notable()
        self.post_message(self.Moved(self.row))
        self._say()
        self.refresh()
        if event.chain > 1:
            self.action_nav_open()

    def on_resize(self) -> None:
        """The cursor stays inside; the frame fills anew."""
        if self.column is not None:
            self.column = min(self.column, self.cells - 1)
        super().on_resize()
