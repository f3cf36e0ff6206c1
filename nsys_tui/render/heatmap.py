"""Heat maps: many ranks over time, squeezed into the cells there are."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from nsys_tui.model.arrays import Float64, Indices
from nsys_tui.render.cells import Cells, Ink, Row, style
from nsys_tui.render.glyphs import Glyphs

NOTABLE: Final = 0.1
"""A rank is told from its neighbours from this share of a full cell on."""
UNKNOWN = "?"
"""Drawn where no value is known."""


def groups(items: int, cells: int) -> Indices:
    """Edges of ``cells`` groups over ``items``: at least one item each, items repeat if too few."""
    return np.arange(cells + 1) * items // max(cells, 1)


def squeeze(values: npt.NDArray[np.floating], height: int, width: int) -> Float64:
    """Means over blocks: [ranks, bins] to [height, width]; NaN counts for nothing."""
    return _means(_means(np.asarray(values, np.float64), height).T, width).T


def _means(table: Float64, cells: int) -> Float64:
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


def notable(
    values: npt.NDArray[np.floating], height: int, width: int, full: float
) -> tuple[Float64, Indices]:
    """Blocks of ranks and bins where one rank that differs stays to be seen.

    Args:
        values: [ranks, bins]; NaN counts for nothing.
        height: rows to make.
        width: cells of a row.
        full: what a full cell means.

    Returns:
        of each cell the mean over its block, or, where a rank is further from it than ``NOTABLE``
        of a full cell, that rank's own mean; and which rank, -1 for a mean.
    """
    ranks = _means(np.asarray(values, np.float64).T, width).T
    table = _means(ranks, height)
    rows = np.full(table.shape, -1, np.intp)
    if len(ranks) <= height or not table.size:
        return table, rows
    edges = groups(len(ranks), height)
    owner = np.repeat(np.arange(height), np.diff(edges))
    apart = np.nan_to_num(np.abs(ranks - table[owner]), nan=-1.0)
    most = np.maximum.reduceat(apart, edges[:-1], axis=0)
    place = np.where(apart == most[owner], np.arange(len(ranks))[:, None], len(ranks))
    first = np.minimum.reduceat(place, edges[:-1], axis=0)
    differs = most > NOTABLE * full
    extreme = np.take_along_axis(ranks, np.minimum(first, len(ranks) - 1), axis=0)
    return np.where(differs, extreme, table), np.where(differs, first, -1)


def heat(
    values: npt.NDArray[np.floating],
    height: int,
    width: int,
    glyphs: Glyphs,
    top: float | None = None,
    ink: int = Ink.COUNTER,
) -> Cells:
    """Draws rank × time by the ramp: one row a rank, or several neighbours where too many.

    Neighbours are drawn by their mean, or by the one that differs from it, in the ink of marks.

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
    full = top
    if full is None:
        means = squeeze(values, height, width)
        full = float(np.where(np.isnan(means), 0.0, means).max(initial=0.0))
    table, rank = notable(values, height, width, full)
    known = ~np.isnan(table)
    levels = np.where(known, table, 0.0)
    most = len(glyphs.ramp) - 1
    steps = np.clip(np.ceil(levels * (most / full if full > 0 else 0.0)), 0, most).astype(np.intp)
    chars = np.array([*glyphs.ramp, UNKNOWN])[np.where(known, steps, most + 1)]
    inks = np.where(rank >= 0, style(Ink.MARK), style(ink)).astype(np.uint32)
    return [Row(line, own) for line, own in zip(chars.tolist(), inks, strict=True)]
