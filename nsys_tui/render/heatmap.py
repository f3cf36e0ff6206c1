"""Heat maps: many ranks over time, squeezed into the cells there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nsys_tui.render.cells import Ink, Row, style

if TYPE_CHECKING:
    from nsys_tui.render.cells import Cells
    from nsys_tui.render.glyphs import Glyphs

UNKNOWN = "?"
"""Drawn where no value is known."""


def groups(items: int, cells: int) -> npt.NDArray[np.intp]:
    """Edges of ``cells`` groups over ``items``: at least one item each, items repeat if too few."""
    return np.arange(cells + 1) * items // max(cells, 1)


def squeeze(values: npt.NDArray[np.floating], height: int, width: int) -> npt.NDArray[np.float64]:
    """Means over blocks: [ranks, bins] to [height, width]; NaN counts for nothing."""
    return _means(_means(np.asarray(values, np.float64), height).T, width).T


def _means(table: npt.NDArray[np.float64], cells: int) -> npt.NDArray[np.float64]:
    """Means of groups of rows."""
    edges = groups(len(table), cells)
    if not len(table):
        return np.full((cells, table.shape[1]), np.nan)
    if len(table) <= cells:
        return table[edges[:-1]]
    known = ~np.isnan(table)
    sums = np.add.reduceat(np.where(known, table, 0.0), edges[:-1], axis=0)
    counts = np.add.reduceat(known.astype(np.int64), edges[:-1], axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / np.where(counts, counts, np.nan))


def heat(
    values: npt.NDArray[np.floating],
    height: int,
    width: int,
    glyphs: Glyphs,
    top: float | None = None,
    ink: int = Ink.COUNTER,
) -> Cells:
    """Draws rank × time by the ramp: one row a rank, or a mean of neighbours where too many.

    Args:
        values: [ranks, bins], no negatives; NaN where nothing is known.
        height: most rows; fewer ranks give fewer rows.
        width: cells of a row.
        glyphs: the ramp.
        top: value of the highest step; the largest by default.
        ink: colour.

    Returns:
        Rows in the order of the ranks; ``groups(ranks, rows)`` tells which ranks a row stands for.
    """
    height = min(height, len(values))
    table = squeeze(values, height, width)
    known = ~np.isnan(table)
    levels = np.where(known, table, 0.0)
    full = float(levels.max(initial=0.0)) if top is None else top
    most = len(glyphs.ramp) - 1
    steps = np.clip(np.ceil(levels * (most / full if full > 0 else 0.0)), 0, most).astype(np.intp)
    chars = np.array([*glyphs.ramp, UNKNOWN])[np.where(known, steps, most + 1)]
    inks = np.full(width, style(ink), np.uint32)
    return [Row(line, inks.copy()) for line in chars.tolist()]
