"""Events of a thread with names: which of them lasted longest in given intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int32, Int64
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import sums
from nsys_tui.model.intervals import Intervals

_FEW: Final = 2
"""Events an interval up to which leaving others out takes longer than it saves."""


@dataclass(frozen=True, eq=False)
class Named:
    """Events of one kind on one thread, in start order, each with a name code."""

    starts: Int64
    ends: Int64
    name: Int32

    def longest(self, lo: Int64, hi: Int64, *, mostly: bool = False) -> Int64:
        """Name that covers most of each interval [lo, hi), times of equal names added.

        Args:
            lo: int64 [n].
            hi: int64 [n].
            mostly: only a name that covers more than half of the interval.

        Returns:
            int64 [n] name codes, -1 where nothing overlaps; of equals the lower code.
        """
        longest = np.full(len(lo), -1, np.int64)
        which, name, overlap = self._overlaps(lo, hi)
        others = which[1:] != which[:-1]
        alone = np.append(True, others) & np.append(others, True) if len(which) else which > 0
        several = np.flatnonzero(~alone)
        for places, names, total in (
            (which[alone], name[alone], overlap[alone]),
            _most(which[several], name[several], overlap[several]),
        ):
            kept = 2 * total > (hi - lo)[places] if mostly else slice(None)
            longest[places[kept]] = names[kept]
        return longest

    def times(self, lo: Int64, hi: Int64) -> Int64:
        """How long each name covers disjoint intervals [lo, hi) in all: ns by code."""
        _, name, overlap = self._overlaps(lo, hi)
        return sums(name, overlap, int(self.name.max(initial=-1)) + 1)

    def _overlaps(self, lo: Int64, hi: Int64) -> tuple[Indices, Int32, Int64]:
        """Each overlap of an event with an interval [lo, hi): which interval, name code and ns."""
        which, event = intervals.in_stretches(*self._candidates(lo, hi))
        overlap = np.minimum(self.ends[event], hi[which]) - np.maximum(
            self.starts[event], lo[which]
        )
        lasting = overlap > 0
        return which[lasting], self.name[event[lasting]], overlap[lasting]

    def near(self, lo: Int64, hi: Int64) -> Named:
        """The events that may overlap one of the intervals [lo, hi); all where they are few."""
        if len(self.starts) <= _FEW * len(lo):
            return self
        rows = intervals.stretched(*intervals.union(*self._candidates(lo, hi)))
        return Named(self.starts[rows], self.ends[rows], self.name[rows])

    def outside(self, spans: Intervals) -> Named:
        """The pieces of the events that lie outside of disjoint intervals."""
        if not len(spans[0]):
            return self
        starts, ends = np.append(-FARTHEST, spans[1]), np.append(spans[0], FARTHEST)
        begin = np.searchsorted(ends, self.starts, side="right")
        event, place = intervals.in_stretches(begin, np.searchsorted(starts, self.ends))
        starts = np.maximum(self.starts[event], starts[place])
        order = np.argsort(starts, kind="stable")
        ends = np.minimum(self.ends[event], ends[place])
        return Named(starts[order], ends[order], self.name[event[order]])

    def _candidates(self, lo: Int64, hi: Int64) -> tuple[Indices, Indices]:
        """From which event to which (exclusive) each interval [lo, hi) may be overlapped."""
        begin = np.searchsorted(self._reach, lo, side="right")
        return begin, np.maximum(np.searchsorted(self.starts, hi, side="left"), begin)

    @cached_property
    def _reach(self) -> Int64:
        if intervals.is_sorted(self.ends):
            return self.ends
        return np.maximum.accumulate(self.ends)


def _most(which: Indices, name: Int32, overlap: Int64) -> tuple[Indices, Int32, Int64]:
    """The name that has most of each interval, times of equal names added; of equals the lower."""
    if not len(which):
        return which, name, overlap
    order = np.lexsort((name, which))
    which, name = which[order], name[order]
    heads = np.flatnonzero(np.append(True, (np.diff(which) != 0) | (np.diff(name) != 0)))
    total = np.add.reduceat(overlap[order], heads)
    which, name = which[heads], name[heads]
    order = np.lexsort((name, -total, which))
    best = order[np.append(True, np.diff(which[order]) != 0)]
    return which[best], name[best], total[best]
