"""Two lanes in one row, by half blocks: the compact form for many streams."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nsys_tui.model.lanes import Lane
from nsys_tui.render.cells import Emphasis, Ink, Row
from nsys_tui.render.dominant import dominant
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.raster import NOTHING, LaneView, Overlay
from nsys_tui.render.viewport import Viewport


def draw_pair(
    upper: LaneView,
    lower: LaneView | None,
    window: Viewport,
    glyphs: Glyphs,
    overlays: tuple[Overlay, Overlay] = (NOTHING, NOTHING),
) -> Row:
    """Draws which category takes most of each cell of two lanes; no labels, counts or coverage.

    Args:
        upper: the lane in the upper halves.
        lower: the one in the lower halves.
        window: the time shown.
        glyphs: the half blocks.
        overlays: selected event and search matches of either lane; they mark whole cells.

    Raises:
        ValueError: the glyph set has no half blocks (ASCII, mono).
    """
    if not glyphs.upper:
        raise ValueError(f"the {glyphs.name} glyphs have no half blocks")
    above = _cell_inks(upper, window)
    below = np.zeros_like(above) if lower is None else _cell_inks(lower, window)
    chars = np.array([" ", glyphs.upper, glyphs.lower, glyphs.upper])
    kind = (above > 0) + 2 * (below > 0)
    ground = np.where(kind == 3, below, np.uint32(0))
    styles = np.where(above > 0, above, below) | ground << np.uint32(8)
    row = Row(chars[kind].tolist(), styles)
    for view, overlay in zip((upper, lower), overlays, strict=True):
        if view is not None:
            _mark(row, view.lane, window, overlay)
    return row


def _mark(row: Row, lane: Lane, window: Viewport, overlay: Overlay) -> None:
    """Underlines the cells where matches begin; bold reverse for those of the selected event."""
    if overlay.matches is not None:
        cells = window.cells(lane.starts[overlay.matches])
        cells = cells[(cells >= 0) & (cells < window.width)]
        row.styles[cells] |= np.uint32(Emphasis.UNDERLINE << 16)
    if overlay.selected is not None:
        start, end = int(lane.starts[overlay.selected]), int(lane.ends[overlay.selected])
        if start < window.hi and end >= window.lo:
            span = np.array((max(start, window.lo), min(max(end, start + 1), window.hi) - 1))
            first, last = window.cells(span).tolist()
            row.emphasise(first, last + 1, Emphasis.REVERSE | Emphasis.BOLD)


def _cell_inks(view: LaneView, window: Viewport) -> npt.NDArray[np.uint32]:
    """Ink of each cell in which an event runs or starts, 0 elsewhere."""
    present = (view.lane.busy(window.edges) > 0) | (view.lane.count(window.edges) > 0)
    layers = view.layers if view.inks is None else view.ink_layers
    inks = dominant(view.lane, window.edges, view.inks, layers).astype(np.uint32)
    if view.inks is None:
        inks = Ink.CATEGORY + 2 * inks
    return np.where(present, inks, np.uint32(0))
