"""Summary: how busy several lanes are together, by category, without storing their union.

A device's union of 5 M kernels would take 260 MB. Here the busy time is kept at grid points only,
64 events of a lane apart; between two of them it is counted from the lanes themselves. So any
window is exact at the cost of a few thousand events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.model import intervals
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.lanes import Lane

STEP: Final = 64
"""Events of each lane from one grid point to the next."""
CHUNK: Final = 2048
"""Grid points whose union is made at a time: short slices of work between other threads."""
ON_THE_FLY: Final = 16_384
"""Events in a window up to which the union is made for one drawing (about 2 ms)."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Make one with ``build``."""

    lanes: tuple[Lane, ...]
    """Lanes whose events may overlap those of the others; each with its categories."""
    grid: Int64
    """Grid points, ascending: int64 [g]."""
    codes: tuple[int, ...]
    """Categories present, ascending."""
    before: Int64
    """Busy time before each grid point, of each category and of all: int64 [codes + 1, g]."""

    @classmethod
    def build(cls, lanes: Sequence[Lane]) -> Summary:
        """Goes through the events once, a chunk of time at a time."""
        lanes = tuple(lane for lane in lanes if len(lane))
        categories = (lane.categories(slice(None)) for lane in lanes)
        codes = tuple(
            sorted({code for present in categories for code in np.unique(present).tolist()})
        )
        if not lanes:
            return cls((), np.zeros(1, np.int64), (), np.zeros((1, 1), np.int64))
        grid = np.unique(np.concatenate([lane.starts[::STEP] for lane in lanes]))
        before = np.zeros((len(codes) + 1, len(grid)), np.int64)
        total = np.zeros(len(codes) + 1, np.int64)
        for first in range(0, len(grid), CHUNK):
            points = grid[first : first + CHUNK + 1]
            part = before[:, first : first + len(points)]
            for place, (starts, ends) in enumerate(_sets(lanes, points, codes)):
                cum = intervals.prefix(starts, ends)
                part[place] = total[place] + intervals.busy_before((starts, ends), cum, points)
            total = part[:, -1].copy()
        return cls(lanes, grid, codes, before)

    def visible(self, lo: int, hi: int) -> int:
        """About how many events a window holds."""
        parts = (lane.visible(lo, hi) for lane in self.lanes)
        return sum(part.stop - part.start for part in parts)

    def idle_at(self, time: int) -> tuple[int, int] | None:
        """Begin and end of the idle time around a moment; None while any lane is busy.

        None too before the first and after the last event.
        """
        spots = [(lane, int(np.searchsorted(lane.starts, time, "right"))) for lane in self.lanes]
        before = [int(lane.reach[spot - 1]) for lane, spot in spots if spot]
        ahead = [int(lane.starts[spot]) for lane, spot in spots if spot < len(lane)]
        if not before or not ahead or max(before) > time:
            return None
        return max(before), min(ahead)

    def lane(self, edges: Int64) -> Lane:
        """A lane to draw over cells: for few events their own, for many one event per busy cell.

        In the latter, an event is as long as its cell is busy, of the category that is busiest, and
        begins where the first event of its cell does if the cell before was idle.

        Args:
            edges: int64 [W + 1], ascending.
        """
        lo, hi = int(edges[0]), int(edges[-1])
        if self.visible(lo, hi) <= ON_THE_FLY:
            starts, ends, codes = self._events(lo, hi)
            return Lane.build(starts, ends, category=codes)
        busy = self.busy(edges)
        counts = sum(lane.count(edges) for lane in self.lanes)
        cells = np.flatnonzero((busy[-1] > 0) | (counts > 0))
        length = busy[-1, cells]
        starts = edges[cells]
        alone = np.flatnonzero(np.append(True, np.diff(cells) > 1))
        starts[alone] = np.clip(self._next(starts[alone]), starts[alone], edges[cells + 1][alone])
        starts = np.minimum(starts, edges[cells + 1] - length)
        codes = np.array(self.codes, np.uint8)[busy[:-1, cells].argmax(axis=0)]
        return Lane.build(starts, starts + length, category=codes)

    def busy(self, edges: Int64) -> Int64:
        """Busy time by category, and of all together in the last row: int64 [codes + 1, W]."""
        return np.diff(self.busy_before(edges), axis=1)

    def busy_before(self, times: Int64) -> Int64:
        """Busy time before each moment: int64 [codes + 1, n] for ascending times."""
        position = np.maximum(np.searchsorted(self.grid, times, side="right") - 1, 0)
        before = self.before[:, position]
        distinct, last = np.unique(position, return_index=True)
        # Of several moments after one grid point, the events up to the last one serve all.
        stop = np.append(last[1:], len(times)) - 1
        for row, part in enumerate(self._between(self.grid[distinct], times[stop])):
            done = intervals.busy_before(part, intervals.prefix(*part), times)
            base = intervals.busy_before(part, intervals.prefix(*part), self.grid[position])
            before[row] += np.where(times > self.grid[position], done - base, 0)
        return before

    def _between(self, starts: Int64, ends: Int64) -> Iterator[intervals.Intervals]:
        """Union by category, and of all, of the events inside disjoint ascending windows."""
        nothing = np.empty(0, np.int64)
        pieces = [_inside(lane, starts, ends) for lane in self.lanes] or [(nothing,) * 3]
        first, last, codes = (np.concatenate(column) for column in zip(*pieces, strict=True))
        for code in self.codes:
            mine = codes == code
            yield intervals.union(first[mine], last[mine])
        yield intervals.union(first, last)

    def _events(self, lo: int, hi: int) -> tuple[Int64, Int64, Int64]:
        spots = [lane.overlapping(lo, hi) for lane in self.lanes]
        pairs = list(zip(self.lanes, spots, strict=True))
        starts = [lane.starts[spot] for lane, spot in pairs]
        ends = [lane.ends[spot] for lane, spot in pairs]
        codes = [lane.categories(spot) for lane, spot in pairs]
        if not pairs:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, nothing
        return np.concatenate(starts), np.concatenate(ends), np.concatenate(codes)

    def _next(self, times: Int64) -> Int64:
        """First start at or after each time; the greatest integer where there is none."""
        nearest = np.full(len(times), np.iinfo(np.int64).max)
        for lane in self.lanes:
            position = np.searchsorted(lane.starts, times, side="left")
            ahead = position < len(lane)
            nearest[ahead] = np.minimum(nearest[ahead], lane.starts[position[ahead]])
        return nearest


def _sets(
    lanes: Sequence[Lane], points: Int64, codes: Sequence[int]
) -> Iterator[intervals.Intervals]:
    """Unions by category, and of all, clipped to a stretch of time."""
    lo, hi = int(points[0]), int(points[-1])
    parts = [lane.visible(lo, hi) for lane in lanes]
    pairs = list(zip(lanes, parts, strict=True))
    starts = np.concatenate([np.maximum(lane.starts[part], lo) for lane, part in pairs])
    ends = np.concatenate([np.minimum(lane.ends[part], hi) for lane, part in pairs])
    category = np.concatenate([lane.categories(part) for lane, part in pairs])
    for code in codes:
        mine = category == code
        yield intervals.union(starts[mine], ends[mine])
    yield intervals.union(starts, ends)


def _inside(lane: Lane, starts: Int64, ends: Int64) -> tuple[Int64, Int64, Integers]:
    """Events of a lane clipped to disjoint windows: starts, ends, categories."""
    begin = np.searchsorted(lane.reach, starts, side="right")
    stop = np.maximum(np.searchsorted(lane.starts, ends, side="left"), begin)
    window, spots = intervals.in_stretches(begin, stop)
    first = np.maximum(lane.starts[spots], starts[window])
    last = np.minimum(lane.ends[spots], ends[window])
    lasting = last > first
    return first[lasting], last[lasting], lane.categories(spots[lasting])
