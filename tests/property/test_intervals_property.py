"""Interval arithmetic against sets of whole nanoseconds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.model import intervals

Pairs: TypeAlias = list[tuple[int, int]]

pairs = st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), max_size=12)
window = st.tuples(st.integers(-40, 40), st.integers(-40, 40)).map(sorted)
few = settings(max_examples=100, deadline=None)


def arrays(items: Pairs) -> intervals.Intervals:
    table = np.array(items, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def covered(items: Pairs) -> set[int]:
    return {ns for start, end in items for ns in range(start, end)}


def check(result: intervals.Intervals, expected: set[int]) -> None:
    starts, ends = result
    assert starts.dtype == ends.dtype == np.int64
    assert covered(list(zip(starts.tolist(), ends.tolist(), strict=True))) == expected
    assert (ends > starts).all()
    assert (starts[1:] > ends[:-1]).all()


@few
@given(pairs)
def test_union_and_total(items: Pairs) -> None:
    check(intervals.union(*arrays(items)), covered(items))
    assert intervals.total(*arrays(items)) == len(covered(items))


@few
@given(pairs, pairs)
def test_intersection_subtract_and_overlap(a: Pairs, b: Pairs) -> None:
    both = covered(a) & covered(b)
    check(intervals.intersection(arrays(a), arrays(b)), both)
    check(intervals.subtract(arrays(a), arrays(b)), covered(a) - covered(b))
    assert intervals.overlap_length(arrays(a), arrays(b)) == len(both)


@few
@given(pairs, window)
def test_gaps(items: Pairs, edges: list[int]) -> None:
    lo, hi = edges
    check(intervals.gaps(*arrays(items), lo, hi), set(range(lo, hi)) - covered(items))


@few
@given(pairs, window)
def test_clip_keeps_order_and_overlaps(items: Pairs, edges: list[int]) -> None:
    lo, hi = edges
    kept = [(max(s, lo), min(e, hi)) for s, e in items if max(s, lo) < min(e, hi)]
    starts, ends = intervals.clip(*arrays(items), lo, hi)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == kept


@few
@given(pairs, st.lists(st.integers(-40, 40), max_size=8))
def test_busy_before(items: Pairs, times: list[int]) -> None:
    merged = intervals.union(*arrays(items))
    cum = intervals.prefix(*merged)
    found = intervals.busy_before(merged, cum, np.array(times, np.int64))
    assert found.tolist() == [sum(ns < t for ns in covered(items)) for t in times]
