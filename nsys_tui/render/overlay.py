"""What the user points at in a lane: the time cursor, the selected event, search matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_tui.model.arrays import Integers
from nsys_tui.model.lanes import Lane
from nsys_tui.render.blocks import Blocks
from nsys_tui.render.cells import KEY, Emphasis, Ink, Row, style
from nsys_tui.render.glyphs import Glyphs
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
        found = row.styles[first] & np.uint32(int(Emphasis.UNDERLINE) << 16)
        row.put(first, glyph, KEY)
        row.styles[first] |= found
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
