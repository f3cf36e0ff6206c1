"""Counter lanes: sampled values over time as one row of blocks, dots or ASCII steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nsys_tui.model.arrays import Float64, Indices, Int64
from nsys_tui.model.lanes import Lane
from nsys_tui.render.cells import MUTED, Ink, Row, style
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.viewport import Viewport

_ASCII_STEPS = " .:-=+*%#"
_BRAILLE = 0x2800
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Bits of a braille cell: left and right column, from the bottom up."""


def resample(
    times: Int64,
    values: npt.NDArray[np.generic],
    window: Viewport,
    reach: int = 0,
) -> Float64:
    """The mean of the samples of each cell.

    Args:
        times: int64 [n] nanoseconds, never decreasing.
        values: [n] numbers.
        window: the cells.
        reach: for how many ns cells without samples keep the last value before them; then they
            are NaN.

    Returns:
        float64 [W].
    """
    edges = np.searchsorted(times, window.edges, side="left")
    part = slice(int(edges[0]), int(edges[-1]))
    numbers = np.asarray(values[part], np.float64)
    counts = np.diff(edges)
    sampled = np.full(window.width, np.nan)
    filled = np.flatnonzero(counts)
    if len(filled):
        sampled[filled] = np.add.reduceat(numbers, edges[filled] - part.start) / counts[filled]
    if reach and len(times):
        last = edges[:-1] - 1
        empty = (counts == 0) & (last >= 0) & (window.edges[:-1] - times[last] <= reach)
        sampled[empty] = np.asarray(values[last[empty]], np.float64)
    return sampled


def draw_counter(
    times: Int64,
    values: npt.NDArray[np.generic],
    window: Viewport,
    glyphs: Glyphs,
    *,
    top: float | None = None,
    shape: str = "blocks",
    reach: int = 0,
) -> Row:
    """Draws a counter from 0 to ``top``.

    Args:
        times: int64 [n] nanoseconds, never decreasing.
        values: [n]; below 0 draws as 0.
        window: the cells.
        glyphs: the ramp of the blocks; ASCII sets ignore ``shape``.
        top: full scale; the largest cell of the window by default.
        shape: ``blocks``, ``braille`` dots or ``ascii`` steps.
        reach: see ``resample``.
    """
    fine = shape == "braille" and not glyphs.ascii_only
    cells = Viewport(window.lo, window.hi, window.width * 2) if fine else window
    levels = np.nan_to_num(resample(times, values, cells, reach))
    full = top if top and top > 0 else float(levels.max(initial=0.0))
    if fine:
        text = _braille(levels, full)
    else:
        ramp = glyphs.ramp if shape != "ascii" else _ASCII_STEPS
        text = "".join(np.array(list(ramp))[_steps(levels, full, len(ramp) - 1)].tolist())
    return Row(list(text), np.full(window.width, style(Ink.COUNTER), np.uint32))


def draw_samples(times: Int64, window: Viewport, glyphs: Glyphs) -> Row:
    """Density of samples (CPU sampling): how many fall into each cell."""
    counts = np.diff(np.searchsorted(times, window.edges, side="left"))
    most = int(counts.max(initial=0))
    ramp = np.array(list(glyphs.ramp))
    text = ramp[_steps(counts.astype(np.float64), most, len(ramp) - 1)].tolist()
    return Row(text, np.full(window.width, style(Ink.COUNTER), np.uint32))


def draw_shares(
    lane: Lane, window: Viewport, glyphs: Glyphs, off: Sequence[tuple[str, Lane]] = ()
) -> Row:
    """How much of each cell a lane covers.

    Args:
        lane: times that count.
        window: the cells.
        glyphs: the ramp.
        off: other times by name, the first letter of which the cells hold where none of the first
            count: of several that of the longest.
    """
    ramp = np.array(list(glyphs.ramp))
    shares = lane.busy(window.edges) / np.maximum(window.widths, 1)
    text = ramp[_steps(shares, 1.0, len(ramp) - 1)]
    row = Row([], np.full(window.width, style(Ink.COUNTER), np.uint32))
    if off:
        times = np.stack([one.busy(window.edges) for _, one in off])
        cells = (shares == 0) & (times.max(axis=0) > 0)
        text[cells] = np.array([name[0] for name, _ in off])[times.argmax(axis=0)][cells]
        row.styles[cells] = MUTED
    row.chars = text.tolist()
    return row


def _steps(levels: Float64, full: float, most: int) -> Indices:
    """Step of each level: 0 for nothing, at least 1 above it."""
    if full <= 0:
        return np.zeros(len(levels), np.intp)
    return np.clip(np.ceil(levels * most / full), 0, most).astype(np.intp)


def _braille(levels: Float64, full: float) -> str:
    """A line of dots, two columns a cell, joined by upright strokes."""
    steps = _steps(levels, full, 4)
    bits = np.zeros(len(steps), np.int64)
    before = np.append(steps[:1], steps[:-1])
    for column in (0, 1):
        for dot in range(4):
            height = dot + 1
            low, high = np.minimum(steps, before), np.maximum(steps, before)
            lit = (steps == height) | ((height > low) & (height < high) & (steps > 0))
            lit[1 - column :: 2] = False
            bits[lit] |= _DOTS[column][dot]
    return "".join(chr(_BRAILLE + code) for code in (bits[0::2] | bits[1::2]).tolist())
