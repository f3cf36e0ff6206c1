"""Statistics of durations by name that can be merged over processes and reports.

Counts, sums, extremes and deviations merge exactly. Quantiles of one process are exact; over
several they come from a histogram whose bins are at most 1/64 of their value wide, and are marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import Aggregate
from nsys_tui.model.arrays import Float64, Int64

_FINE: Final = 6
"""Bits that tell apart the bins of an octave."""
_BITS: Final = 12
"""Bits that hold any bin."""


def sketch_bins(values: Int64) -> Int64:
    """Histogram bin of each value (not negative): exact below 128, then 64 bins an octave."""
    octave = np.maximum(np.frexp(values.astype(np.float64))[1] - 1 - _FINE, 0).astype(np.int64)
    return np.asarray((octave << _FINE) + (values >> octave), np.int64)


def sketch_middle(bins: Int64) -> Float64:
    """Middle of the values that fall into each bin."""
    octave = np.maximum((bins >> _FINE) - 1, 0)
    low = (bins - (octave << _FINE)) << octave
    return np.asarray(low + ((1 << octave) - 1) / 2, np.float64)


def _int64(*shape: int) -> Int64:
    return np.zeros(shape, np.int64)


@dataclass(frozen=True, eq=False)
class NameStats:
    """Statistics per name of one family of events in one process."""

    names: tuple[str, ...] = ()
    count: Int64 = field(default_factory=lambda: _int64(0))
    total: Int64 = field(default_factory=lambda: _int64(0))
    """Sum of the instances' durations, ns."""
    inside: Int64 = field(default_factory=lambda: _int64(0))
    """The same cut to the window, with what reaches into it from before."""
    least: Int64 = field(default_factory=lambda: _int64(0))
    most: Int64 = field(default_factory=lambda: _int64(0))
    quartiles: Float64 = field(default_factory=lambda: np.zeros((0, 3)))
    """First quartile, median and third quartile, shape (names, 3)."""
    squares: Float64 = field(default_factory=lambda: np.zeros(0))
    """Sum of squared distances from the mean."""
    sketch: Int64 = field(default_factory=lambda: _int64(0, 3))
    """Histogram as rows of (name, bin, count)."""

    def __len__(self) -> int:
        return len(self.names)


def name_stats(groups: Aggregate, names: Sequence[str]) -> NameStats:
    """Statistics by name, busiest first.

    Args:
        groups: the events of a process by name.
        names: name of each group.
    """
    stats, inside = groups.instances, groups.totals
    order = sorted(
        np.flatnonzero((stats.counts > 0) | (inside > 0)).tolist(),
        key=lambda code: (-int(inside[code]), names[code]),
    )
    place = np.full(max(len(names), 1), -1, np.int64)
    place[order] = np.arange(len(order))
    with np.errstate(invalid="ignore"):
        squares = np.nan_to_num(stats.std**2 * np.maximum(stats.counts - 1, 0))
    quartiles = [stats.quantile(part) for part in (0.25, 0.5, 0.75)]
    return NameStats(
        names=tuple(names[code] for code in order),
        count=stats.counts[order],
        total=stats.totals[order],
        inside=inside[order],
        least=stats.min[order],
        most=stats.max[order],
        quartiles=np.column_stack(quartiles)[order],
        squares=squares[order],
        sketch=_sketch(place[stats.codes], stats.values),
    )


def _sketch(places: Int64, durations: Int64) -> Int64:
    packed, counts = np.unique((places << _BITS) + sketch_bins(durations), return_counts=True)
    return np.column_stack((packed >> _BITS, packed & ((1 << _BITS) - 1), counts)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class MergedNames:
    """Statistics per name over several processes, busiest first."""

    names: tuple[str, ...]
    holders: tuple[tuple[tuple[int, int], ...], ...]
    """For each name the processes that have it and the row in each."""
    count: Int64
    inside: Int64
    least: Int64
    most: Int64
    mean: Float64
    std: Float64
    quartiles: Float64
    """Estimates, shape (names, 3)."""


def merge(parts: Sequence[NameStats]) -> MergedNames:
    """Merges the statistics of processes by name."""
    holders: dict[str, list[tuple[int, int]]] = {}
    for place, part in enumerate(parts):
        for row, name in enumerate(part.names):
            holders.setdefault(name, []).append((place, row))
    sums = {
        name: sum(int(parts[p].inside[r]) for p, r in rows_of) for name, rows_of in holders.items()
    }
    names = sorted(holders, key=lambda name: (-sums[name], name))
    code = {name: place for place, name in enumerate(names)}
    rows = [_merged_row(parts, holders[name]) for name in names]

    def column(key: int) -> Int64:
        return np.array([row[key] for row in rows], np.int64)

    count, total, least, most = map(column, range(4))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
    squares = np.array([row[4] for row in rows], np.float64)
    quartiles = np.clip(_quartiles(parts, code), least[:, None], most[:, None])
    inside = np.array([sums[name] for name in names], np.int64)
    return MergedNames(
        tuple(names), tuple(tuple(holders[name]) for name in names), count, inside,
        least, most, mean, np.sqrt(squares / np.maximum(count - 1, 1)), quartiles,
    )  # fmt: skip


def _merged_row(
    parts: Sequence[NameStats], holders: Iterable[tuple[int, int]]
) -> tuple[int, int, int, int, float]:
    """Count, total, least, most, and squares about the common mean (Chan, Golub and LeVeque)."""
    count, total, squares = 0, 0, 0.0
    least, most = [], []
    for place, row in holders:
        part = parts[place]
        if not part.count[row]:  # it only reaches into the window
            continue
        n, amount = int(part.count[row]), int(part.total[row])
        if count:
            apart = amount / n - total / count
            squares += apart * apart * (n * count / (n + count))
        squares += float(part.squares[row])
        count, total = count + n, total + amount
        least.append(int(part.least[row]))
        most.append(int(part.most[row]))
    return count, total, min(least, default=0), max(most, default=0), squares


def _quartiles(parts: Sequence[NameStats], code: dict[str, int]) -> Float64:
    pieces = []
    for part in parts:
        place = np.array([code[name] for name in part.names] or [0], np.int64)
        piece = part.sketch.copy()
        piece[:, 0] = place[piece[:, 0]]
        pieces.append(piece)
    rows = np.concatenate(pieces) if pieces else _int64(0, 3)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    quartiles = np.full((len(code), 3), np.nan)
    heads = np.searchsorted(rows[:, 0], np.arange(len(code) + 1))
    for name, (lo, hi) in enumerate(zip(heads[:-1].tolist(), heads[1:].tolist(), strict=True)):
        if lo == hi:
            continue
        reached = np.cumsum(rows[lo:hi, 2])
        wanted = (reached[-1] - 1) * np.array([0.25, 0.5, 0.75])
        spot = np.searchsorted(reached, np.floor(wanted), side="right")
        quartiles[name] = sketch_middle(rows[lo:hi, 1][spot])
    return quartiles
