"""Time over many reports: the clock of each session, and bins that fit together.

Bins are powers of two ns wide and their edges multiples of that. Every report is binned alone, on
the clock of its machine; coarser bins are sums of finer ones, to the nanosecond. So the summary of
a report depends on no other, and may be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nsys_tui.model.arrays import Int64


class SessionClock(NamedTuple):
    """How the times of a session become fleet times."""

    offset: int
    """ns to add at the session's zero."""
    drift: float = 0.0
    """ns to add for each ns since."""
    residual: int | None = None
    """Three of four ends of its collectives are closer to those of the other ranks, ns; None where
    it shares none with another session."""
    aligned: bool = True
    """Whether it may be compared with other sessions to the residual."""

    @property
    def fitted(self) -> bool:
        """Whether it shares collectives with other sessions, and these end together."""
        return self.aligned and self.residual is not None

    def fleet(self, times: Int64) -> Int64:
        """Fleet times of times of the session."""
        if not self.drift:
            return times + self.offset
        return np.asarray(times + self.offset + np.rint(times * self.drift).astype(np.int64))

    def fleet_time(self, time: int) -> int:
        """Fleet time of one moment of the session."""
        return time + self.offset + round(time * self.drift)

    def session_time(self, time: int) -> int:
        """Time of the session at a fleet time."""
        return round((time - self.offset) / (1 + self.drift)) if self.drift else time - self.offset


@dataclass(frozen=True)
class Grid:
    """``count`` bins of 2**shift ns; the first begins at ``first`` times that."""

    shift: int
    first: int
    count: int

    @property
    def width(self) -> int:
        """Length of a bin, ns."""
        return 1 << self.shift

    @property
    def end(self) -> int:
        """Number of the bin after the last."""
        return self.first + self.count

    def edges(self, anchor: int = 0) -> Int64:
        """Edges of the bins, int64 [count + 1], on a clock that reads 0 at ``anchor``."""
        return (np.arange(self.count + 1, dtype=np.int64) + self.first) * self.width - anchor

    def place(self, times: Int64, anchor: int = 0) -> Int64:
        """Bin of each time; may lie outside of [0, count)."""
        return ((times + anchor) >> self.shift) - self.first


def grid_over(lo: int, hi: int, most: int, least_shift: int = 0) -> Grid:
    """The finest grid over [lo, hi) with at most ``most`` bins, or two: 0 is always an edge."""
    most = max(most, 2)
    shift = max(least_shift, max((hi - lo) // most, 1).bit_length() - 1)
    while ((max(hi, lo + 1) - 1) >> shift) - (lo >> shift) >= most:
        shift += 1
    first = lo >> shift
    return Grid(shift, first, ((max(hi, lo + 1) - 1) >> shift) - first + 1)


def rebinned(values: Int64, grid: Grid, wide: Grid, *, moved: int = 0, peak: bool = False) -> Int64:
    """Values on another grid: sums (or the largest) of the bins that fall into each.

    Args:
        values: int64 [..., own.count].
        grid: their grid.
        wide: the grid wanted, at least as coarse.
        moved: ns by which the clock of the values is put forward; rounded to whole bins.
        peak: takes the largest instead of the sum.

    Returns:
        int64 [..., wide.count]; what falls outside is left out.
    """
    merged = np.zeros((*values.shape[:-1], wide.count), np.int64)
    by = (moved + (grid.width >> 1)) >> grid.shift
    target = ((np.arange(grid.count) + grid.first + by) >> (wide.shift - grid.shift)) - wide.first
    inside = np.flatnonzero((target >= 0) & (target < wide.count))
    if not len(inside) or not values.size:
        return merged
    heads = np.flatnonzero(np.append(True, np.diff(target[inside]) > 0))
    gather = np.maximum.reduceat if peak else np.add.reduceat
    merged[..., target[inside][heads]] = gather(values[..., inside], heads, axis=-1)
    return merged
