"""A lane of events as one row of cells: blocks with labels, shaded density, idle time.

Three regimes by the width of events: from three cells on a block with its name inside, from one
cell on a block, below that shading by coverage. Nothing is invisible: a cell in which any event
runs or starts draws at least the lowest step. Nothing is written over density: how many events
a cell merges is told beside the lane and for the cell under the cursor.
Python loops run over what is on the screen, never over all events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane
from nsys_tui.names import fit, visible
from nsys_tui.render.blocks import Blocks, find_blocks
from nsys_tui.render.cells import KEY, Emphasis, Ink, Row, split_cells, style
from nsys_tui.render.dominant import Layers, codes_of, dominant
from nsys_tui.render.glyphs import FILLS, HOST, LETTERS, Glyphs
from nsys_tui.render.viewport import Viewport


@dataclass(frozen=True, eq=False)
class Overlay:
    """What the user points at in one lane."""

    cursor: int | None = None
    """Column of the time cursor."""
    selected: int | None = None
    """Position in the lane of the selected event."""
    related: tuple[int, ...] = ()
    """Positions of the events that belong to the selected one."""
    matches: Integers | None = None
    """Ascending positions of the events that a search found."""


NOTHING = Overlay()


def draw_overlay(
    row: Row, lane: Lane, window: Viewport, blocks: Blocks, overlay: Overlay, glyphs: Glyphs
) -> None:
    """Underlines matches, marks the selected event and what belongs to it, draws the cursor."""
    if overlay.matches is not None and len(overlay.matches):
        _underline(row, lane, window, blocks, overlay.matches)
    for spot in overlay.related:
        _mark(row, _cells_of(lane, window, blocks, spot), blocks, glyphs.related)
    if overlay.selected is not None:
        _mark(row, _cells_of(lane, window, blocks, overlay.selected), blocks, glyphs.selected)
    if overlay.cursor is not None:
        draw_cursor(row, overlay.cursor, glyphs)


def _mark(row: Row, cells: tuple[int, int], blocks: Blocks, glyph: str) -> None:
    """Puts an event in bold reverse, and a glyph where no block of its own shows it."""
    first, last = cells
    if first >= last:
        return
    if last - first == 1:
        underline = row.styles[first] & np.uint32(int(Emphasis.UNDERLINE) << 16)
        row.put(first, glyph, KEY)
        row.styles[first] |= underline
    elif blocks.owner[first] >= 0:
        row.put(first, glyph)
    row.emphasise(first, last, Emphasis.REVERSE | Emphasis.BOLD)


def draw_cursor(row: Row, column: int, glyphs: Glyphs) -> None:
    """Draws the time cursor: a line where the row is empty, reverse video elsewhere."""
    if not 0 <= column < row.width:
        return
    if row.chars[column] in (" ", glyphs.idle) and int(row.styles[column]) < 1 << 8:
        row.put(column, glyphs.cursor, style(Ink.CURSOR))
    else:
        row.styles[column] ^= np.uint32(Emphasis.REVERSE << 16)


def _underline(row: Row, lane: Lane, window: Viewport, blocks: Blocks, matches: Integers) -> None:
    part = lane.visible(window.lo, window.hi)
    begin, end = np.searchsorted(matches, (part.start, part.stop)).tolist()
    seen = matches[begin:end]
    hit = np.append(np.isin(blocks.spots, seen), False)[blocks.owner]
    cells = window.cells(lane.starts[seen])
    cells = cells[(cells >= 0) & (cells < window.width)]
    hit[cells[blocks.owner[cells] < 0]] = True
    row.styles[hit] |= np.uint32(Emphasis.UNDERLINE << 16)


def _cells_of(lane: Lane, window: Viewport, blocks: Blocks, spot: int) -> tuple[int, int]:
    """Cells of one event: its block, or the cell in which it starts."""
    place = int(np.searchsorted(blocks.spots, spot))
    if place < len(blocks.spots) and blocks.spots[place] == spot:
        return int(blocks.first[place]), int(blocks.last[place])
    start, end = int(lane.starts[spot]), int(lane.ends[spot])
    if start >= window.hi or max(end, start + 1) <= window.lo:
        return 0, 0
    cell = window.cell(max(start, window.lo)) or 0
    return cell, cell + 1


Label: TypeAlias = Callable[[int], str]
"""Text of an event by its row in the owner's event set."""

NAMED = 8
"""Fewest cells of a gap that may name its cause."""
LABELLED = 3
"""Fewest cells of a block that carries a label."""
_FILL = np.array([FILLS[category] for category in Category])
_LETTER = np.array([LETTERS[category].lower() for category in Category])
_HOST = np.array([category in HOST for category in Category])
_REVERSE = np.uint32(Emphasis.REVERSE << 16)


@dataclass(frozen=True, eq=False)
class LaneView:
    """What a lane needs to be drawn."""

    lane: Lane
    """Events that do not overlap each other (``lanes.split``), unless ``summary`` is set."""
    label: Label | None = None
    """Names for blocks and runs; it may return anything, control characters included."""
    layers: Layers | None = None
    """Busy time by category, for lanes with many visible events (see ``dominant``)."""
    inks: Integers | None = None
    """Even inks of the owner's rows that replace the category's (colour by stream, name, …)."""
    ink_layers: Layers | None = None
    """Busy time by ink."""
    summary: bool = False
    """Shading only: for several streams in one row."""
    idle: int | None = None
    """Idle gaps longer than this many nanoseconds are drawn; None draws none."""
    explained: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Sorted ends of the gaps whose cause is known."""
    reason: Label | None = None
    """The cause of each of them in a few words, for gaps with room for it."""


def draw_lane(view: LaneView, window: Viewport, glyphs: Glyphs, overlay: Overlay = NOTHING) -> Row:
    """Draws one lane as a row of ``window.width`` cells."""
    blocks = find_blocks(view.lane, window, view.summary)
    drawing = _Drawing(view, window, glyphs, blocks)
    if view.idle is not None:
        drawing.idle(view.idle)
    drawing.density()
    drawing.grounds()
    first, last = drawing.edges()
    drawing.row.chars = drawing.chars.tolist()
    drawing.blocks_text(first, last)
    draw_overlay(drawing.row, view.lane, window, blocks, overlay, glyphs)
    return drawing.row


class _Drawing:
    """One row while it is drawn, step by step."""

    def __init__(self, view: LaneView, window: Viewport, glyphs: Glyphs, blocks: Blocks) -> None:
        self.view, self.window, self.glyphs, self.blocks = view, window, glyphs, blocks
        self.row = Row.blank(window.width)
        self.chars = np.full(window.width, " ")
        self.dense = blocks.dense
        self.categories = view.lane.categories(blocks.spots)
        self.inks = self._inks(self.categories, view.inks)
        if glyphs.steps:
            self.inks += (blocks.spots & 1).astype(np.uint32)

    def _inks(self, categories: Integers, inks: Integers | None) -> npt.NDArray[np.uint32]:
        if inks is None:
            return Ink.CATEGORY + 2 * categories.astype(np.uint32)
        return codes_of(self.view.lane, self.blocks.spots, inks).astype(np.uint32)

    def idle(self, threshold: int) -> None:
        """Marks idle cells of long gaps; those with a known cause differ, and name it if wide."""
        lane, window, explained = self.view.lane, self.window, self.view.explained
        lo, hi = window.extent
        left, right = window.edges[:-1], window.edges[1:]
        quiet = np.flatnonzero((self.blocks.busy == 0) & (left >= lo) & (right <= hi))
        gap = np.searchsorted(lane.busy_starts, left[quiet], side="right")
        ends = _pick(lane.busy_starts, gap, hi)
        cells = ends - _pick(lane.busy_ends, gap - 1, lo) > threshold
        quiet, gap, ends = quiet[cells], gap[cells], ends[cells]
        self.chars[quiet] = self.glyphs.idle
        self.row.styles[quiet] = Ink.IDLE
        if len(explained) and len(quiet):
            number = np.searchsorted(explained, ends)
            known = np.flatnonzero(_pick(explained, number, hi + 1) == ends)
            self.chars[quiet[known]] = self.glyphs.explained
            self.row.styles[quiet[known]] = Ink.STALL
            self._reasons(quiet[known], number[known])

    def _reasons(self, cells: Indices, number: Indices) -> None:
        """Writes the cause into the middle of each gap that is wide enough."""
        if self.view.reason is None or not len(cells):
            return
        first = np.flatnonzero(np.append(True, np.diff(number) != 0))
        counts = np.diff(np.append(first, len(cells)))
        for place in np.flatnonzero(counts >= NAMED).tolist():
            start, room = int(cells[first[place]]), int(counts[place])
            text = f" {self.view.reason(int(number[first[place]]))} "
            if len(text) < room:
                start += (room - len(text)) // 2
                self.chars[start : start + len(text)] = list(text)

    def density(self) -> None:
        """Shades the cells of merged events by coverage, coloured by what takes most of them."""
        cells = np.flatnonzero(self.dense)
        if not len(cells):
            return
        view, glyphs = self.view, self.glyphs
        busy, width = self.blocks.busy[cells], self.window.widths[cells]
        lane, edges = view.lane, self.window.edges
        category = dominant(lane, edges, None, view.layers)[cells]
        ink = Ink.CATEGORY + 2 * category.astype(np.uint32)
        if view.inks is not None:
            ink = dominant(lane, edges, view.inks, view.ink_layers)[cells].astype(np.uint32)
        self.row.styles[cells] = ink
        if glyphs.density:
            steps = np.array(list(glyphs.density))
            level = -(-busy * len(steps) // width)
            self.chars[cells] = steps[np.clip(level, 1, len(steps)) - 1]
        else:
            half = 2 * busy >= width
            self.chars[cells] = np.where(half, _FILL[category], _LETTER[category])

    def grounds(self) -> None:
        """Paints the cells that blocks own: a ground of colour, or the category's fill."""
        owned = np.flatnonzero(self.blocks.owner >= 0)
        owner = self.blocks.owner[owned]
        if self.glyphs.solid:
            self.row.styles[owned] = Ink.CONTRAST | self.inks[owner] << np.uint32(8)
            self.chars[owned] = " "
        else:
            self.row.styles[owned] = self.inks[owner]
            self.chars[owned] = _FILL[self.categories[owner]]

    def edges(self) -> tuple[Indices, Indices]:
        """Draws block edges that share their cell with no other event to an eighth of a cell.

        Returns:
            First cell of each block that is left for its label, and the one after the last.
        """
        first, last = self.blocks.first.copy(), self.blocks.last.copy()
        if self.glyphs.edges and len(first):
            first += self._edge(self.blocks.starts, last - first > 1, True)
            last -= self._edge(self.blocks.ends, last - first > 1, False)
        return first, last

    def _edge(self, times: Int64, spare: Bool, is_start: bool) -> Indices:
        """Draws one side; tells for each block whether it cost a cell that the block owned."""
        blocks, window = self.blocks, self.window
        cells = window.cells(times)
        spot = np.clip(cells, 0, window.width - 1)
        width = window.widths[spot]
        before = times - window.edges[spot]
        alone = (blocks.busy[spot] == (width - before if is_start else before)) & (
            blocks.other_starts[spot] == 0
        )
        owned = blocks.owner[spot] == np.arange(len(times))
        free = (cells == spot) & alone & (owned & spare | (blocks.owner[spot] < 0))
        eighths = (8 * before + width // 2) // width
        drawn = np.flatnonzero(free & (eighths > 0) & (eighths < 8))
        self.chars[spot[drawn]] = np.array(["", *self.glyphs.edges])[eighths[drawn]]
        self.row.styles[spot[drawn]] = self.inks[drawn] | _REVERSE * np.uint32(is_start)
        cost = np.zeros(len(times), np.intp)
        cost[drawn] = owned[drawn]
        return cost

    def blocks_text(self, firsts: Indices, lasts: Indices) -> None:
        """Writes brackets or separators, and the labels, block by block."""
        view, blocks, window, solid = self.view, self.blocks, self.window, self.glyphs.solid
        chars, separator = self.row.chars, self.glyphs.separator
        opens = (blocks.starts >= window.lo).tolist()
        closes = (blocks.ends <= window.hi).tolist()
        labelled = (blocks.last - blocks.first >= LABELLED).tolist()
        rows, colours = view.lane.rows(blocks.spots).tolist(), self.inks.tolist()
        spaced = (_HOST[self.categories] & (not solid)).tolist()
        before: tuple[int, int] | None = None
        for number, row in enumerate(rows):
            first, last = int(firsts[number]), int(lasts[number])
            touches = before == (first, colours[number])
            before = (last, colours[number])
            if touches if solid else opens[number]:
                chars[first] = separator
                first += 1
            if not solid and closes[number] and last - first >= 2:
                last -= 1
                chars[last] = "]"
            if labelled[number] and view.label is not None:
                self._write(view.label(row), first, last, spaced[number])

    def _write(self, name: str, first: int, last: int, spaced: bool) -> None:
        cells = split_cells(fit(visible(name, self.glyphs.ascii_only), last - first))
        if not cells:
            return
        if self.glyphs.solid:
            first += (last - first - len(cells)) // 2
        elif spaced and len(cells) < last - first:
            cells.append(" ")
        self.row.chars[first : first + len(cells)] = cells


def _pick(values: Int64, places: Indices, outside: int) -> Int64:
    """``values[places]``, and ``outside`` where a place lies before the first or after the last."""
    if not len(values):
        return np.full(len(places), outside, np.int64)
    inside = (places >= 0) & (places < len(values))
    return np.where(inside, values[np.clip(places, 0, len(values) - 1)], outside)
