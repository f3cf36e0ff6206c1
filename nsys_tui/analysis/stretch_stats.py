"""Statistics and unions by group where a group is made of stretches of an array that overlap.

Nested ranges share their events: 30,000 ranges in each other have 450 M pairs of a range and an
event, but only 30,000 stretches of events. Long stretches are answered from prefix sums and a
wavelet matrix, without looking at their values one by one; short ones are expanded.

What a stretch of intervals covers is their sum less what two of them share. Where several
intervals cover a piece of time, neighbours in the sequence share it; so the union of a stretch is
its sum less the shared pieces whose two intervals both lie in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.model.arrays import Float64, Int64, Integers
from nsys_tui.model.groups import sums
from nsys_tui.model.intervals import stretched

MOST: Final = 20
"""Pieces an interval may be cut into on average: where more overlap, there are too many pairs."""


def stretch_unions(starts: Int64, ends: Int64, first: Int64, last: Int64) -> Int64 | None:
    """Length of the union of intervals [first, last) of a sequence, for many stretches.

    Args:
        starts: of the intervals, in any order.
        ends: of the intervals, never before their start.
        first: of each stretch.
        last: behind the last interval of each.

    Returns:
        int64 [stretches]; None where so many intervals overlap that this takes too much.
    """
    before = np.append(0, np.cumsum(ends - starts))
    edges = np.unique(np.concatenate((starts, ends)))
    low, high = np.searchsorted(edges, starts), np.searchsorted(edges, ends)
    if int((high - low).sum()) > MOST * len(starts):
        return None
    piece = stretched(low, high)
    owner = np.repeat(np.arange(len(starts)), high - low)
    order = np.lexsort((owner, piece))
    piece, owner = piece[order], owner[order]
    shared = np.flatnonzero(piece[1:] == piece[:-1])
    length = np.diff(edges)[piece[shared]]
    twice = _inside(owner[shared], owner[shared + 1], length, first, last)
    return np.asarray(before[last] - before[first] - twice, np.int64)


def _inside(a: Int64, b: Int64, weight: Int64, first: Int64, last: Int64) -> Int64:
    """Sum of the weights of pairs (a, b), a < b, with first <= a and b < last, for many stretches.

    Pairs stand in order of b. The pairs before ``last`` are at most one block of each power of two;
    in each block they stand in order of a.
    """
    order = np.argsort(b, kind="stable")
    a, weight = a[order], weight[order]
    upto = np.searchsorted(b[order], last)
    inside = np.zeros(len(first), np.int64)
    size = int(a.max(initial=0)) + 2
    for level in range(len(a).bit_length()):
        block = np.arange(len(a)) >> level
        key = block * size + a
        sort = np.argsort(key, kind="stable")
        key, sums = key[sort], np.append(0, np.cumsum(weight[sort]))
        mine = np.flatnonzero(upto >> level & 1)
        at = (upto[mine] >> level) - 1
        begin = np.searchsorted(key, at * size + np.minimum(first[mine], size - 1))
        inside[mine] += sums[(at + 1) << level] - sums[begin]
    return inside


_LONG: Final = 64
"""Values a stretch from which on looking it up takes less time than expanding it."""


class Wavelet:
    """Codes in an order, of which any stretch can be split by code or asked for its k-th smallest.

    One array for each bit of the codes: how many before each place have it unset, while the codes
    are sorted stably by one bit after the other, the highest first.

    Args:
        codes: in [0, size).
        size: number of codes.
    """

    def __init__(self, codes: Integers, size: int) -> None:
        self.order = np.arange(len(codes))
        """Places of the codes after the sort by their last bit: those of a code are neighbours."""
        self._unset: list[Int64] = []
        for bit in reversed(range(max(size - 1, 0).bit_length())):
            unset = (codes[self.order] >> bit) & 1 == 0
            self._unset.append(np.concatenate((np.zeros(1, np.int64), np.cumsum(unset))))
            self.order = np.concatenate((self.order[unset], self.order[~unset]))

    def split(self, first: Int64, last: Int64) -> tuple[Int64, Int64, Int64, Int64]:
        """The part of each stretch that has a code, as a stretch of ``order``; none is empty.

        Returns:
            Stretch, code, first and last, a row for each code that occurs in a stretch.
        """
        which, code = np.arange(len(first)), np.zeros(len(first), np.int64)
        for before in self._unset:
            low, high, set_from = before[first], before[last], before[-1]
            first = np.concatenate((low, set_from + first - low))
            last = np.concatenate((high, set_from + last - high))
            which, code = np.tile(which, 2), np.concatenate((2 * code, 2 * code + 1))
            kept = last > first
            first, last, which, code = first[kept], last[kept], which[kept], code[kept]
        return which, code, first, last

    def smallest(self, first: Int64, last: Int64, group: Integers, k: Int64) -> Int64:
        """The k-th smallest code (from 0) of each group of stretches.

        Args:
            first: begins of the stretches.
            last: their ends.
            group: of each stretch, in [0, len(k)).
            k: of each group, below the number of its values.
        """
        code = np.zeros(len(k), np.int64)
        for before in self._unset:
            low, high, set_from = before[first], before[last], before[-1]
            unset = sums(group, high - low, len(k))
            up = k >= unset
            code, k = 2 * code + up, np.where(up, k - unset, k)
            first = np.where(up[group], set_from + first - low, low)
            last = np.where(up[group], set_from + last - high, high)
        return code


@dataclass(frozen=True, eq=False)
class Moments:
    """Figures of groups, as ``GroupStats`` has them."""

    counts: Int64
    totals: Int64
    mean: Float64
    min: Int64
    max: Int64
    median: Float64
    std: Float64


def stretch_stats(codes: Integers, first: Int64, last: Int64, values: Int64, size: int) -> Moments:
    """Statistics of values by group; a value counts once for each stretch that holds it.

    Args:
        codes: group of each stretch, in [0, size).
        first: place in ``values`` at which a stretch begins.
        last: behind its last; no stretch is empty.
        values: int64, such as durations in ns.
        size: number of groups; each has a stretch.
    """
    counts = sums(codes, last - first, size)
    is_long = (counts > _LONG * np.bincount(codes, minlength=size))[codes]
    short = ~is_long
    own = np.repeat(codes[short], (last - first)[short])
    few = group_stats(own, values[stretched(first[short], last[short])], size)
    moments = Moments(counts, few.totals, few.mean, few.min, few.max, few.median, few.std)
    if is_long.any():
        groups, code = np.unique(codes[is_long], return_inverse=True)
        _put_long(moments, groups, code, first[is_long], last[is_long], values)
    return moments


def _put_long(
    moments: Moments, groups: Integers, code: Integers, first: Int64, last: Int64, values: Int64
) -> None:
    n, counts = len(groups), moments.counts[groups]

    def total(of: NDArray[np.int64 | np.longdouble]) -> NDArray[np.int64 | np.longdouble]:
        upto = np.concatenate((np.zeros(1, of.dtype), np.cumsum(of)))
        result = np.zeros(n, of.dtype)
        np.add.at(result, code, upto[last] - upto[first])
        return result

    distinct, ranked = np.unique(values, return_inverse=True)
    wavelet = Wavelet(ranked, len(distinct))

    def smallest(k: Int64) -> Int64:
        return np.asarray(distinct[wavelet.smallest(first, last, code, k)], np.int64)

    # Squares about the middle, in 80 bits: prefix sums of raw ones lose small deviations.
    middle = int(np.median(values))
    apart = values.astype(np.longdouble) - middle
    sum_apart = total(apart)
    squares = total(apart * apart) - sum_apart * sum_apart / counts
    low, high = smallest((counts - 1) // 2), smallest(counts // 2)
    moments.totals[groups] = total(values)
    moments.mean[groups] = moments.totals[groups] / counts
    moments.min[groups], moments.max[groups] = smallest(np.zeros_like(counts)), smallest(counts - 1)
    moments.median[groups] = low + (high - low) * 0.5
    moments.std[groups] = np.sqrt(np.maximum(squares, 0) / np.maximum(counts - 1, 1))
