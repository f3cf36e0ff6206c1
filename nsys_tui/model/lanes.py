"""Lanes: the events of one row of the timeline, laid out so that any zoom costs the same.

A lane answers in a few binary searches per screen column, whatever the number of events: how busy,
how many, which ones. It holds views of sorted columns where it can. Drawing lives in ``render``.

Of many groups at once, such as those of ten thousand threads, most hold a few events: what
``split`` and ``Lane.build`` look up by some thirty array passes each is looked up for all of them
together, and their lanes are slices of common arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt

from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers

BLOCK = 256
"""Events per entry of ``Lane.peaks``."""
STRIDE = 16
"""Intervals per entry of ``Lane.busy_sums``: adding up the rest takes 0.03 ms for 200 cells, and a
sum for each interval 8 bytes more of an event's 28."""


def cell_edges(lo: int, hi: int, width: int) -> Int64:
    """Edges of ``width`` cells over the window [lo, hi): int64 [width + 1], exact, no overflow.

    A window that does not divide evenly gives cells that differ by one nanosecond; one shorter
    than ``width`` nanoseconds gives cells of zero width, which hold nothing.
    """
    whole, rest = divmod(hi - lo, width)
    steps = np.arange(width + 1, dtype=np.int64)
    return lo + steps * whole + steps * rest // width


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """Events of one lane in the order of their starts. Make one with ``build``."""

    starts: Int64
    """int64 [n], never decreasing."""
    ends: Int64
    """int64 [n], never before the start."""
    index: Integers
    """int32 or int64 [n]: row of each event in its owner's event set."""
    busy_starts: Int64
    """Union of the events, disjoint and ascending, int64 [m]; ``starts`` itself where none of
    them overlap, so touching ones stay apart."""
    busy_ends: Int64
    """int64 [m]."""
    busy_sums: Int64
    """Busy time before every ``STRIDE``-th interval of the union: int64 [m // STRIDE + 1]."""
    busy_total: int
    """Length of the union."""
    reach: Int64
    """Running maximum of the ends, int64 [n]; the same array as ``ends`` where that never falls."""
    peaks: Int64
    """Longest event of each ``BLOCK`` events, int64."""
    category: Integers | int | None = None
    """Category codes: the owner's whole column (gathered through ``index`` when asked), or one."""
    name: Integers | None = None
    """Name codes: the owner's whole column."""

    @classmethod
    def build(
        cls,
        starts: npt.ArrayLike,
        ends: npt.ArrayLike,
        index: Integers | None = None,
        category: Integers | int | None = None,
        name: Integers | None = None,
    ) -> Lane:
        """Builds a lane; columns that are sorted already are kept without a copy.

        Args:
            starts: int64 [n] nanoseconds, any order.
            ends: int64 [n]; an end before its start counts as zero length.
            index: row of each event in the owner's event set; by default its position here.
            category: the owner's category column (not gathered), or one code for the lane.
            name: the owner's column of name codes (not gathered).
        """
        first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        rows = np.arange(len(first), dtype=np.int32) if index is None else index
        if not intervals.is_sorted(first):
            order = np.argsort(first, kind="stable")
            first, last, rows = first[order], last[order], rows[order]
        if (last < first).any():
            last = np.maximum(first, last)
        apart = (first[1:] >= last[:-1]).all() and (last > first).all()
        busy = (first, last) if apart else intervals.union(first, last)
        reach = last if intervals.is_sorted(last) else np.maximum.accumulate(last)
        blocks = np.arange(0, len(first), BLOCK)
        peaks = np.maximum.reduceat(last - first, blocks) if len(first) else last.copy()
        sums = intervals.prefix(*busy)
        kept, total = sums[::STRIDE].copy(), int(sums[-1])
        return cls(first, last, rows, *busy, kept, total, reach, peaks, category, name)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_apart(self) -> bool:
        """Whether ``build`` found that every event lasts and none overlaps another."""
        return self.busy_starts is self.starts

    def busy(self, edges: Int64) -> Int64:
        """Busy nanoseconds of each cell: int64 [W] for W + 1 int64 edges that never decrease."""
        starts, ends = self.busy_starts, self.busy_ends
        if not len(starts):
            return np.zeros(len(edges) - 1, np.int64)
        begun = np.searchsorted(starts, edges, side="right")
        block = begun // STRIDE
        spots = block[:, np.newaxis] * STRIDE + np.arange(STRIDE)
        rest = spots < begun[:, np.newaxis]
        np.minimum(spots, len(starts) - 1, out=spots)
        done = self.busy_sums[block] + (ends[spots] - starts[spots]).sum(axis=1, where=rest)
        ahead = np.maximum(ends[np.maximum(begun - 1, 0)] - edges, 0)
        busy: Int64 = np.diff(done - np.where(begun > 0, ahead, 0))
        return busy

    def count(self, edges: Int64) -> Int64:
        """Number of events that start in each cell: int64 [W] for W + 1 edges."""
        return np.diff(np.searchsorted(self.starts, edges, side="left")).astype(np.int64)

    def visible(self, lo: int, hi: int) -> slice:
        """Smallest range of positions that holds every event which overlaps or starts in [lo, hi).

        It may hold others, where a long event lies before shorter ones that are over.
        """
        ongoing = int(np.searchsorted(self.reach, lo, side="right"))
        begin = min(ongoing, int(np.searchsorted(self.starts, lo, side="left")))
        return slice(begin, max(begin, int(np.searchsorted(self.starts, hi, side="left"))))

    def overlapping(self, lo: int, hi: int) -> Indices:
        """Positions of the events that overlap or start in [lo, hi), ascending."""
        part = self.visible(lo, hi)
        inside = (self.ends[part] > lo) | (self.starts[part] >= lo)
        return np.asarray(np.flatnonzero(inside) + part.start)

    def at_least(self, lo: int, hi: int, duration: int) -> Indices:
        """Positions of the events of [lo, hi) that last ``duration`` or longer, ascending.

        Looks only into blocks whose longest event qualifies: cheap when few do.
        """
        part = self.visible(lo, hi)
        block = np.arange(part.start // BLOCK, -(-part.stop // BLOCK))
        block = block[self.peaks[block] >= duration]
        spots = (block[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        spots = spots[(spots >= part.start) & (spots < part.stop)]
        starts, ends = self.starts[spots], self.ends[spots]
        return np.asarray(spots[(ends - starts >= duration) & ((ends > lo) | (starts >= lo))])

    def longest_in(self, lo: int, hi: int) -> int | None:
        """Position of the longest event that starts in [lo, hi), else of the longest that overlaps.

        Ties go to the earlier event.
        """
        begin, end = np.searchsorted(self.starts, (lo, hi), side="left").tolist()
        spots = np.arange(begin, end) if end > begin else self.overlapping(lo, hi)
        if not len(spots):
            return None
        return int(spots[np.argmax(self.ends[spots] - self.starts[spots])])

    def position_of(self, row: int, start: int) -> int | None:
        """Position of an event by its row in the event set and its start, None if not in here."""
        first, last = np.searchsorted(self.starts, (start, start + 1)).tolist()
        spots = np.flatnonzero(self.index[first:last] == row)
        return first + int(spots[0]) if len(spots) else None

    def rows(self, where: slice | npt.NDArray[np.generic]) -> Integers:
        """Rows of the owner's event set for positions of this lane."""
        return self.index[where]

    def categories(self, where: slice | npt.NDArray[np.generic]) -> Integers:
        """Category codes of the events at these positions; 0 where the lane has none."""
        if isinstance(self.category, np.ndarray):
            return np.asarray(self.category[self.index[where]])
        return np.full(len(self.index[where]), self.category or 0, np.uint8)

    def take(self, where: slice | npt.NDArray[np.generic]) -> Lane:
        """A lane of some events only: positions ascending, or a mask."""
        return Lane.build(
            self.starts[where], self.ends[where], self.index[where], self.category, self.name
        )


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """Many lanes together: how long they are busy in all, in two binary searches per cell."""

    starts: Int64
    """Begins of all their busy intervals, ascending."""
    ends: Int64
    """Their ends, ascending."""
    start_sums: Int64
    """Sum of the begins before each one: int64 [n + 1]; it may wrap, differences do not."""
    end_sums: Int64

    @classmethod
    def of(cls, lanes: Iterable[Lane]) -> Crowd:
        """Takes the busy intervals of some lanes."""
        lanes = tuple(lanes)
        none = [np.empty(0, np.int64)]
        starts = np.sort(np.concatenate([lane.busy_starts for lane in lanes] or none))
        ends = np.sort(np.concatenate([lane.busy_ends for lane in lanes] or none))
        return cls(starts, ends, _sums(starts), _sums(ends))

    def busy(self, edges: Int64) -> Int64:
        """Busy nanoseconds of all lanes in each cell: int64 [W] for W + 1 edges."""
        begun = np.searchsorted(self.starts, edges)
        over = np.searchsorted(self.ends, edges)
        done = (begun - over) * edges - self.start_sums[begun] + self.end_sums[over]
        return np.diff(done)


def _sums(times: Int64) -> Int64:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(times)])


def pack(starts: npt.ArrayLike, ends: npt.ArrayLike) -> Int32:
    """Sub-lane number of each event, so that no two events of a sub-lane overlap.

    Nested events get their depth; an event of zero length takes one nanosecond. The number of
    sub-lanes is the largest number of events that run at once. Vectorised, but for groups of
    events that cross each other.

    Args:
        starts: int64 [n] nanoseconds, any order.
        ends: int64 [n].

    Returns:
        int32 [n], 0 for an event alone at its time.
    """
    first = np.asarray(starts, np.int64)
    last = np.maximum(np.asarray(ends, np.int64), first + 1)
    numbers = np.zeros(len(first), np.int32)
    if intervals.is_sorted(first):
        crowded = np.flatnonzero(_crowded(first, last))
    else:
        order = np.argsort(first, kind="stable")
        crowded = order[_crowded(first[order], last[order])]
    crowded = crowded[np.lexsort((-last[crowded], first[crowded]))]
    numbers[crowded] = _pack_crowded(first[crowded], last[crowded])
    return numbers


def split(lane: Lane) -> tuple[Lane, ...]:
    """Lanes without overlaps that together hold the events of ``lane``; itself if it has none."""
    if lane.is_apart:
        return (lane,)
    numbers = pack(lane.starts, lane.ends)
    depth = int(numbers.max(initial=0))
    if not depth:
        return (lane,)
    return tuple(lane.take(np.flatnonzero(numbers == level)) for level in range(depth + 1))


def _crowded(starts: Int64, ends: Int64) -> Bool:
    """Which events of a sorted sequence overlap a neighbour, directly or through a longer one."""
    touches = np.zeros(len(starts) + 1, bool)
    np.less(starts[1:], np.maximum.accumulate(ends)[:-1], out=touches[1:-1])
    return touches[1:] | touches[:-1]


def _pack_crowded(starts: Int64, ends: Int64) -> Int32:
    """Packs events sorted by (start, -end): by depth where they nest, one by one where not."""
    if not len(starts):
        return np.empty(0, np.int32)
    over = np.searchsorted(np.sort(ends), starts, side="right")
    depth = (np.arange(len(starts)) - over).astype(np.int32)
    order = np.argsort(depth, kind="stable")
    same = depth[order][1:] == depth[order][:-1]
    crossing = same & (starts[order][1:] < ends[order][:-1])
    if not crossing.any():
        return depth
    heads = np.append(True, starts[1:] >= np.maximum.accumulate(ends)[:-1])
    group = np.cumsum(heads)
    tangled = np.flatnonzero(np.isin(group, group[order[1:][crossing]]))
    depth[tangled] = _first_fit(starts[tangled], ends[tangled])
    return depth


def _first_fit(starts: Int64, ends: Int64) -> list[int]:
    """The lowest free sub-lane for each event in turn."""
    running: list[tuple[int, int]] = []
    free: list[int] = []
    numbers = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        while running and running[0][0] <= start:
            heappush(free, heappop(running)[1])
        number = heappop(free) if free else len(running)
        heappush(running, (end, number))
        numbers.append(number)
    return numbers


_AXIS: Final = 1 << 62
"""Longest time axis on which groups are laid one after the other."""
_NO_SUMS: Final = np.zeros(1, np.int64)


def split_groups(
    groups: Integers,
    starts: Int64,
    ends: Int64,
    index: Integers,
    category: Integers | int | None,
    name: Integers | None,
) -> Iterator[tuple[int, tuple[Lane, ...]]]:
    """The lanes without overlaps that hold the events of each group, as ``split`` makes them.

    Args:
        groups: number of each event's group, any order.
        starts: int64 ns.
        ends: int64 ns; an end before its start counts as zero length.
        index: row of each event in the owner's event set.
        category: as in ``Lane.build``.
        name: as in ``Lane.build``.

    Yields:
        each group that has events, ascending, with its lanes.
    """
    if not len(groups):
        return
    order = np.lexsort((starts, groups))
    groups, starts, index = groups[order], starts[order], index[order]
    ends = np.maximum(ends[order], starts)
    heads = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    span = int(ends.max()) - int(starts.min()) + 2
    if span * len(heads) >= _AXIS:
        for lo, hi in zip(heads.tolist(), [*heads[1:].tolist(), len(groups)], strict=True):
            whole = Lane.build(starts[lo:hi], ends[lo:hi], index[lo:hi], category, name)
            yield int(groups[lo]), split(whole)
        return
    ordinal = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(groups))))
    shift = ordinal * span - int(starts.min())
    level = pack(starts + shift, ends + shift)
    order = np.lexsort((level, ordinal))
    lanes = _lanes(
        ordinal[order], level[order], starts[order], ends[order], index[order], category, name
    )
    group, mine = 0, [next(lanes)[1]]
    for number, lane in lanes:
        if number != group:
            yield int(groups[heads[group]]), tuple(mine)
            group, mine = number, []
        mine.append(lane)
    yield int(groups[heads[group]]), tuple(mine)


def _lanes(
    ordinal: Integers,
    level: Integers,
    starts: Int64,
    ends: Int64,
    index: Integers,
    category: Integers | int | None,
    name: Integers | None,
) -> Iterator[tuple[int, Lane]]:
    """(group, lane) of events in the order of their lanes."""
    fresh = np.append(True, (ordinal[1:] != ordinal[:-1]) | (level[1:] != level[:-1]))
    heads = np.flatnonzero(fresh)
    counts = np.diff(np.append(heads, len(starts)))
    lasts = ends > starts
    lasts[1:] &= fresh[1:] | (starts[1:] >= ends[:-1])
    simple = np.logical_and.reduceat(lasts, heads) & (counts < STRIDE)
    total = np.add.reduceat(ends - starts, heads)
    peaks = np.maximum.reduceat(ends - starts, heads)
    columns = (ordinal[heads], heads, heads + counts, simple, total)
    for n, (group, lo, hi, plain, busy) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        first, last, rows = starts[lo:hi], ends[lo:hi], index[lo:hi]
        if not plain:
            yield group, Lane.build(first, last, rows, category, name)
            continue
        longest = peaks[n : n + 1]
        yield (
            group,
            Lane(first, last, rows, first, last, _NO_SUMS, busy, last, longest, category, name),
        )
