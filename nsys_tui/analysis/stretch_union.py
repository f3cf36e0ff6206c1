"""Union of intervals over many stretches of a sequence of them, without looking at each stretch.

What a stretch covers is the sum of its intervals less what two of them share. Where several
intervals cover a piece of time, neighbours in the sequence share it; so the union of a stretch is
its sum less the shared pieces whose two intervals both lie in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.intervals import stretched

if TYPE_CHECKING:
    from nsys_tui.model.events import Int64

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
    found = np.zeros(len(first), np.int64)
    size = int(a.max(initial=0)) + 2
    for level in range(len(a).bit_length()):
        block = np.arange(len(a)) >> level
        key = block * size + a
        sort = np.argsort(key, kind="stable")
        key, sums = key[sort], np.append(0, np.cumsum(weight[sort]))
        mine = np.flatnonzero(upto >> level & 1)
        at = (upto[mine] >> level) - 1
        begin = np.searchsorted(key, at * size + np.minimum(first[mine], size - 1))
        found[mine] += sums[(at + 1) << level] - sums[begin]
    return found
