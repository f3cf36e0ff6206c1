"""Two lanes in one row, by half blocks: the compact form for many streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.render.cells import Ink, Row
from nsys_tui.render.dominant import dominant

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsys_tui.render.glyphs import Glyphs
    from nsys_tui.render.raster import LaneView
    from nsys_tui.render.viewport import Viewport


def draw_pair(upper: LaneView, lower: LaneView | None, window: Viewport, glyphs: Glyphs) -> Row:
    """Draws which category takes most of each cell of two lanes; no labels, counts or coverage.

    Raises:
        ValueError: the glyph set has no half blocks (ASCII, mono).
    """
    if not glyphs.upper:
        raise ValueError(f"the {glyphs.name} glyphs have no half blocks")
    above, exact = _cell_inks(upper, window)
    below, also = (np.zeros_like(above), True) if lower is None else _cell_inks(lower, window)
    chars = np.array([" ", glyphs.upper, glyphs.lower, glyphs.upper])
    kind = (above > 0) + 2 * (below > 0)
    ground = np.where(kind == 3, below, np.uint32(0))
    styles = np.where(above > 0, above, below) | ground << np.uint32(8)
    return Row(chars[kind].tolist(), styles, exact and also)


def _cell_inks(view: LaneView, window: Viewport) -> tuple[npt.NDArray[np.uint32], bool]:
    """Ink of each cell in which an event runs or starts, 0 elsewhere."""
    present = (view.lane.busy(window.edges) > 0) | (view.lane.count(window.edges) > 0)
    layers = view.layers if view.inks is None else view.ink_layers
    codes, exact = dominant(view.lane, window.edges, view.inks, layers)
    inks = codes.astype(np.uint32)
    if view.inks is None:
        inks = Ink.CATEGORY + 2 * inks
    return np.where(present, inks, np.uint32(0)), exact
