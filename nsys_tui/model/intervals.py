"""Set arithmetic on half-open time intervals [start, end), as parallel int64 arrays.

Every function accepts intervals in any order, overlapping, of zero length, or with an end before
the start (some clocks do that), which counts as zero length. Sets that come out are *normalised*:
sorted, disjoint, not touching, each of positive length. Only numpy here: no report, no lanes.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nsys_tui.model.arrays import Indices, Int64, Integers

Intervals: TypeAlias = tuple[Int64, Int64]
"""Parallel arrays (starts, ends) in nanoseconds."""
_MANY: Final = 4
"""So many times as many sorted values are quicker looked for the other way round."""


class Normalised(NamedTuple):
    """A set that is normalised already: to look again takes a pass over all of it."""

    starts: Int64
    ends: Int64


def empty() -> Intervals:
    """The set without any interval."""
    nothing = np.empty(0, np.int64)
    return nothing, nothing.copy()


def is_sorted(values: Int64) -> bool:
    """Whether the values never decrease."""
    return bool((values[1:] >= values[:-1]).all())


def placed(edges: Int64, times: Int64, side: Literal["left", "right"] = "left") -> Indices:
    """``np.searchsorted``: where there are many times, in order, in a fifth of the time."""
    if np.ndim(times) != 1 or len(times) < _MANY * len(edges) or not is_sorted(times):
        return np.searchsorted(edges, times, side)
    heads = np.searchsorted(times, edges, "left" if side == "right" else "right")
    return np.repeat(np.arange(len(edges) + 1), np.diff(heads, prepend=0, append=len(times)))


def union(starts: npt.ArrayLike, ends: npt.ArrayLike) -> Intervals:
    """Merges intervals into the normalised set that covers the same time.

    Args:
        starts: int64 [n], nanoseconds.
        ends: int64 [n], nanoseconds.

    Returns:
        Normalised starts and ends; the given arrays where they are that already. Touching
        intervals become one.
    """
    first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    if not len(first):
        return Normalised(first, last)
    lasting = last > first
    if not lasting.all():
        first, last = first[lasting], last[lasting]
    elif (first[1:] > last[:-1]).all():
        return Normalised(first, last)
    if not len(first):
        return Normalised(first, last)
    if not is_sorted(first):
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    reached = last if is_sorted(last) else np.maximum.accumulate(last)
    apart = np.flatnonzero(first[1:] > reached[:-1])
    return Normalised(first[np.append(0, apart + 1)], reached[np.append(apart, -1)])


def _union(some: Intervals) -> Intervals:
    return some if isinstance(some, Normalised) else union(*some)


def joined(*sets: Intervals) -> Intervals:
    """The time that any of some sets covers, as a normalised set."""
    some = [one for one in sets if len(one[0])] or [empty()]
    if len(some) == 1:
        return _union(some[0])
    return union(*map(np.concatenate, zip(*some, strict=True)))


def total(starts: npt.ArrayLike, ends: npt.ArrayLike) -> int:
    """Length of the union in nanoseconds: overlapping time counts once."""
    first, last = union(starts, ends)
    return int((last - first).sum())


def clip(starts: npt.ArrayLike, ends: npt.ArrayLike, lo: int, hi: int) -> Intervals:
    """Cuts each interval to the window [lo, hi) and drops what has no length there.

    Overlaps among the intervals are kept, and so is their order: the result is normalised only if
    the input was.
    """
    first = np.maximum(np.asarray(starts, np.int64), lo)
    last = np.minimum(np.asarray(ends, np.int64), hi)
    lasting = last > first
    return first[lasting], last[lasting]


def gaps(starts: npt.ArrayLike, ends: npt.ArrayLike, lo: int, hi: int) -> Intervals:
    """The time of [lo, hi) that no interval covers, as a normalised set."""
    first, last = union(starts, ends)
    inside = slice(np.searchsorted(last, lo, "right"), np.searchsorted(first, hi, "left"))
    begin, finish = np.append(lo, last[inside]), np.append(first[inside], hi)
    lasting = slice(int(begin[0] >= finish[0]), len(begin) - int(begin[-1] >= finish[-1]))
    return Normalised(begin[lasting], finish[lasting])


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """The time covered by both ``a`` and ``b``, as a normalised set."""
    return meet(_union(a), _union(b))


def stretched(first: Integers, last: Integers) -> Int64:
    """All places of some stretches [first, last), one stretch behind the other."""
    counts = last - first
    before = np.cumsum(counts) - counts
    places: Int64 = np.arange(int(counts.sum())) + np.repeat(first - before, counts)
    return places


def in_stretches(first: Integers, last: Integers) -> tuple[Indices, Int64]:
    """The stretch that each of these places is of, and the places."""
    return np.repeat(np.arange(len(first)), last - first), stretched(first, last)


def meet(a: Intervals, b: Intervals) -> Intervals:
    """``intersection`` of sets that are normalised already; cheap where one of them is small."""
    few, many = sorted((a, b), key=lambda one: len(one[0]))
    return Normalised(*_overlaps(few, many, *in_stretches(*_reach(few, many))))


def _reach(few: Intervals, many: Intervals) -> tuple[Indices, Indices]:
    """From which of many intervals to which, in order, each of a few overlaps them."""
    first = np.searchsorted(many[1], few[0], side="right")
    return first, np.maximum(np.searchsorted(many[0], few[1], side="left"), first)


def _overlaps(a: Intervals, b: Intervals, left: Integers, right: Integers) -> Intervals:
    """What some of one set and of another have together."""
    return np.maximum(a[0][left], b[0][right]), np.minimum(a[1][left], b[1][right])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """The time covered by ``a`` and not by ``b``, as a normalised set."""
    (a_starts, a_ends), (b_starts, b_ends) = _union(a), _union(b)
    if not len(a_starts) or not len(b_starts):
        return Normalised(a_starts, a_ends)
    lo = np.searchsorted(b_ends, a_starts, side="right")
    counts = np.searchsorted(b_starts, a_ends, side="left") - lo + 1
    tails = np.cumsum(counts) - 1
    # What is covered parts each interval: into one piece more, some of no length.
    place = stretched(lo, lo + counts)
    begin, finish = b_ends[place - 1], b_starts[np.minimum(place, len(b_starts) - 1)]
    begin[tails - counts + 1], finish[tails] = a_starts, a_ends
    lasting = finish > begin
    return Normalised(begin[lasting], finish[lasting])


def prefix(starts: Int64, ends: Int64) -> Int64:
    """Busy time before each interval of a normalised set, and after the last: int64 [n + 1]."""
    sums = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(ends - starts, out=sums[1:])
    return sums


def busy_before(normalised: Intervals, cum: Int64, times: Int64) -> Int64:
    """Covered time before each of ``times``.

    Differences between neighbours give the busy time of cells, windows or other intervals with one
    binary search an edge, whatever the number of intervals.

    Args:
        normalised: a normalised set, as ``union`` returns it.
        cum: its ``prefix``.
        times: int64 nanoseconds, any shape and order, best ascending. A float array would make
            numpy convert the whole set at every call (65 ms for 10 M intervals).
    """
    starts, ends = normalised
    if not len(starts):
        return np.zeros(np.shape(times), np.int64)
    begun = placed(starts, times, "right")
    ahead = np.maximum(ends[np.maximum(begun - 1, 0)] - times, 0)
    before: Int64 = np.maximum(cum[begun] - ahead, 0)
    return before


def covered(normalised: Intervals, starts: Int64, ends: Int64, cum: Int64 | None = None) -> Int64:
    """How long a normalised set covers each of some times [start, end): int64 [n].

    Args:
        normalised: the set.
        starts: of the times.
        ends: of the times.
        cum: the ``prefix`` of the set, if that is at hand.
    """
    times = starts, ends
    if len(starts) >= _MANY * len(normalised[0]) and is_sorted(starts) and is_sorted(ends):
        return _much_covered(normalised, times)
    if cum is None and len(normalised[0]) >= _MANY * len(starts):
        first, stop = _reach(times, normalised)
        if int((stop - first).sum()) <= len(normalised[0]) // _MANY:
            left, right = in_stretches(first, stop)
            begin, finish = _overlaps(times, normalised, left, right)
            shared = np.zeros(len(starts), np.int64)
            np.add.at(shared, left, finish - begin)
            return shared
    cum = prefix(*normalised) if cum is None else cum
    return busy_before(normalised, cum, ends) - busy_before(normalised, cum, starts)


def _much_covered(few: Intervals, times: Intervals) -> Int64:
    """How long a small set covers each of many times in order: nearly all lie in or beside it."""
    first, stop = _reach(few, times)
    whole = np.clip(np.searchsorted(times[0], few[0]), first, stop)
    after = np.clip(np.searchsorted(times[1], few[1], side="right"), whole, stop)
    inside = np.zeros(len(times[0]) + 1, np.int8)
    np.add.at(inside, whole, 1)
    np.add.at(inside, after, -1)
    shared = times[1] - times[0]
    shared *= np.cumsum(inside[:-1], dtype=np.int8)
    for part in ((first, whole), (after, stop)):
        left, right = in_stretches(*part)
        begin, finish = _overlaps(few, times, left, right)
        np.add.at(shared, right, finish - begin)
    return shared


def overlap_length(a: Intervals, b: Intervals) -> int:
    """Length in nanoseconds of the time covered by both ``a`` and ``b``."""
    few, many = sorted((_union(a), _union(b)), key=lambda one: len(one[0]))
    return int(covered(many, *few).sum())
