"""Small charts of numbers: sparklines, histograms, bars per iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nsys_tui.model.arrays import Float64, Int64, Integers
from nsys_tui.render.cells import MUTED, STALL, Cells, Emphasis, Ink, Row, style
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.units import format_number

Numbers: TypeAlias = Integers | npt.NDArray[np.floating]


def sparkline(values: Sequence[float] | Numbers, glyphs: Glyphs) -> str:
    """One character a value; anything above 0 draws at least the lowest step.

    Args:
        values: no negatives; NaN draws as nothing.
        glyphs: the ramp; the largest value takes its highest step.
    """
    numbers = np.nan_to_num(np.asarray(values, np.float64))
    highest = float(numbers.max(initial=0.0))
    return "".join(glyphs.level(value, highest) for value in numbers.tolist())


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of values by bin."""

    edges: Float64
    """[bins + 1], ascending; the last bin holds its upper edge too."""
    counts: Int64

    def members(self, values: Numbers, column: int) -> Integers:
        """Places of the values whose bar stands in a column of what ``draw_histogram`` draws."""
        last = len(self.counts) - 1
        numbers = np.maximum(np.asarray(values, np.float64), 1.0)
        bins = np.minimum(np.searchsorted(self.edges, numbers, side="right") - 1, last)
        return np.flatnonzero(bins == column - MARGIN)


def histogram(values: Numbers, bins: int) -> Histogram:
    """Counts values in bins of equal factors.

    Args:
        values: any numbers; those below 1 count in the first bin.
        bins: number of bins.
    """
    numbers = np.maximum(np.asarray(values, np.float64), 1.0)
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (1.0, 2.0)
    if high <= low:
        high = low * 2
    edges = np.geomspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high
    counts, _ = np.histogram(numbers, edges)
    return Histogram(edges, counts.astype(np.int64))


def columns_of(values: Sequence[float] | Numbers, height: int, top: float, glyphs: Glyphs) -> Cells:
    """Vertical bars, one a value, over ``height`` rows; anything above 0 shows in the lowest."""
    numbers = np.nan_to_num(np.asarray(values, np.float64)).tolist()
    share = top / height if top > 0 else 1.0
    rows = []
    for level in range(height - 1, -1, -1):
        chars = [glyphs.level(min(v, (level + 1) * share) - level * share, share) for v in numbers]
        rows.append(Row(chars, np.full(len(chars), style(Ink.COUNTER), np.uint32)))
    return rows


def draw_histogram(
    counted: Histogram, height: int, glyphs: Glyphs, text: Callable[[float], str]
) -> Cells:
    """A histogram with its axes, as wide as it has bins plus ``MARGIN``.

    Args:
        counted: the counts.
        height: rows of bars; two more for the axis and its labels.
        glyphs: ramp of the bars.
        text: writes a bin's edge in few characters.
    """
    top = int(counted.counts.max(initial=0))
    bars = columns_of(counted.counts, height, top, glyphs)
    rows = _framed(bars, {height - 1: "0", 0: format_number(top)})
    rows.append(Row.blank(MARGIN + len(counted.counts), style(Ink.AXIS)))
    rows[-1].put(MARGIN - 1, "+" + "-" * len(counted.counts))
    labels = Row.blank(MARGIN + len(counted.counts), style(Ink.AXIS))
    _spread(labels, [text(float(edge)) for edge in counted.edges])
    return [*rows, labels]


def draw_bars(
    values: Sequence[float] | Numbers,
    width: int,
    height: int,
    glyphs: Glyphs,
    text: Callable[[float], str],
    outliers: Integers | Sequence[int] = (),
    chosen: int | None = None,
    apart: Mapping[int, str] | None = None,
) -> tuple[Cells, int]:
    """Bars per iteration with a scale, outliers marked with ``!`` at the top.

    Args:
        values: one per iteration.
        width: cells, ``MARGIN`` of them for the scale.
        height: rows of bars; one more carries the numbers of the iterations.
        glyphs: ramp and mark.
        text: writes the scale.
        outliers: places of the iterations to mark.
        chosen: place of the one whose bar has the cursor's colour.
        apart: marks of iterations that are in no statistics, by their places.

    Returns:
        The rows, and how many iterations a bar stands for: above 1 where they do not fit, then the
        bar is as high as the highest of them.
    """
    numbers = np.nan_to_num(np.asarray(values, np.float64))
    merged, wide = _pitch(len(numbers), width)
    heads = np.arange(0, len(numbers), merged)
    bars = np.maximum.reduceat(numbers, heads) if len(numbers) else numbers
    top = float(bars.max(initial=0.0))
    spread = np.repeat(bars, wide)
    if wide > GAPLESS:
        spread[wide - 1 :: wide] = 0
    scale = {height // 2: text(top / 2)} if height > 1 else {}
    rows = _framed(columns_of(spread, height, top, glyphs), {**scale, 0: text(top)}, width)
    for place in outliers:
        rows[0].put(bar_column(int(place), len(numbers), width), glyphs.outlier, STALL)
    for place, mark in (apart or {}).items():
        rows[0].put(bar_column(place, len(numbers), width), mark, MUTED)
    if chosen is not None:
        column = bar_column(chosen, len(numbers), width)
        for row in rows:
            cells = slice(column, column + max(1, wide - (wide > GAPLESS)))
            row.styles[cells] = style(Ink.CURSOR, emphasis=Emphasis.BOLD)
    labels = Row.blank(width, style(Ink.AXIS))
    few = next((some for some in (1, 2, 5) if some * wide >= LABEL), 10)
    every = max(few, len(heads) // 81 * 10 + 10 * (len(heads) > 80))
    for bar in range(0, len(heads), every):
        labels.put(MARGIN + bar * wide, str(bar * merged))
    return [*rows, labels], merged


def bar_at(values: Sequence[float] | Numbers, width: int, column: int) -> int | None:
    """Place of the iteration whose bar stands in a column: of several the highest; None for none.

    Args:
        values: as ``draw_bars`` has drawn them.
        width: cells, as there.
        column: a cell of the pane.
    """
    merged, wide = _pitch(len(values), width)
    first = (column - MARGIN) // wide * merged
    part = np.nan_to_num(np.asarray(values[first : first + merged], np.float64))
    return first + int(part.argmax()) if 0 <= first < len(values) else None


def bar_column(place: int, count: int, width: int) -> int:
    """The first cell of the bar of an iteration."""
    merged, wide = _pitch(count, width)
    return MARGIN + place // merged * wide


def _pitch(count: int, width: int) -> tuple[int, int]:
    """How many iterations a bar stands for, and how many cells it takes."""
    room = max(1, width - MARGIN)
    return max(1, -(-count // room)), min(WIDEST, max(1, room // max(1, count)))


MARGIN = 10
"""Cells left of the bars: the scale and a line."""
WIDEST = 6
"""Cells of a bar at most."""
GAPLESS = 2
"""Cells up to which bars touch each other."""
LABEL = 6
"""Cells that the number of an iteration takes at least."""


def _framed(bars: Cells, scale: Mapping[int, str], width: int | None = None) -> Cells:
    """Bars beside a line, with what stands left of some of the rows."""
    rows = []
    for number, bar in enumerate(bars):
        row = Row.blank(width or MARGIN + bar.width, style(Ink.AXIS))
        row.put(0, scale.get(number, "")[: MARGIN - 2].rjust(MARGIN - 2) + " |")
        row.chars[MARGIN : MARGIN + bar.width] = bar.chars[: row.width - MARGIN]
        row.styles[MARGIN : MARGIN + bar.width] = bar.styles[: row.width - MARGIN]
        rows.append(row)
    return rows


def _spread(row: Row, texts: Sequence[str]) -> None:
    """Writes a few of the edges' texts, as many as fit without touching."""
    free = 0
    for place in range(0, len(texts), 5):
        column = MARGIN - 1 + place
        if free <= column <= row.width - len(texts[place]):
            row.put(column, texts[place])
            free = column + len(texts[place]) + 2
