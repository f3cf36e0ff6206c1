"""Lanes and packing against loops over events, down to cells of one nanosecond and less."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.model.lanes import Lane, cell_edges, pack, split, split_groups

Pairs: TypeAlias = list[tuple[int, int]]

events = st.lists(
    st.tuples(st.integers(-40, 40), st.integers(-3, 25)).map(lambda e: (e[0], e[0] + e[1])),
    max_size=14,
)
window = st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(sorted)
few = settings(max_examples=100, deadline=None)


def lane_of(items: Pairs) -> Lane:
    table = np.array(items, np.int64).reshape(-1, 2)
    return Lane.build(table[:, 0], table[:, 1])


def ordered(items: Pairs) -> Pairs:
    return sorted(((s, max(s, e)) for s, e in items), key=lambda item: item[0])


def alive(item: tuple[int, int], lo: int, hi: int) -> bool:
    return item[0] < hi and (item[1] > lo or item[0] >= lo)


@few
@given(events, window, st.integers(1, 12))
def test_busy_and_count_of_every_cell(items: Pairs, span: list[int], width: int) -> None:
    edges = cell_edges(span[0], span[1], width)
    lane = lane_of(items)
    covered = {ns for s, e in items for ns in range(s, e)}
    cells = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    assert lane.busy(edges).tolist() == [len(covered & set(range(*cell))) for cell in cells]
    assert lane.count(edges).tolist() == [sum(a <= s < b for s, _ in items) for a, b in cells]
    assert int(lane.busy(edges).sum()) == len(covered & set(range(*span)))


@few
@given(events, window, st.integers(0, 12))
def test_which_events_are_there(items: Pairs, span: list[int], duration: int) -> None:
    lo, hi = span
    lane, rows = lane_of(items), ordered(items)
    seen = [i for i, item in enumerate(rows) if alive(item, lo, hi)]
    part = lane.visible(lo, hi)
    assert set(seen) <= set(range(part.start, part.stop))
    assert lane.overlapping(lo, hi).tolist() == seen
    long = [i for i in seen if rows[i][1] - rows[i][0] >= duration]
    assert lane.at_least(lo, hi, duration).tolist() == long


@few
@given(events, st.integers(-50, 50), st.integers(1, 30))
def test_the_longest_event(items: Pairs, time: int, span: int) -> None:
    lane, rows = lane_of(items), ordered(items)
    inside = [i for i, (s, _) in enumerate(rows) if time <= s < time + span]
    inside = inside or [i for i, item in enumerate(rows) if alive(item, time, time + span)]
    best = min(inside, key=lambda i: (rows[i][0] - rows[i][1], i), default=None)
    assert lane.longest_in(time, time + span) == best


@few
@given(events)
def test_packing_never_overlaps_and_wastes_no_sub_lane(items: Pairs) -> None:
    table = np.array(items, np.int64).reshape(-1, 2)
    numbers = pack(table[:, 0], table[:, 1])
    taken = [set(range(s, max(s + 1, e))) for s, e in items]
    for i, mine in enumerate(taken):
        for j in range(i):
            assert numbers[i] != numbers[j] or not mine & taken[j]
    at_once = [sum(ns in part for part in taken) for ns in set().union(*taken)] if taken else []
    assert int(numbers.max(initial=-1)) + 1 == max(at_once, default=0)


@few
@given(events)
def test_splitting_keeps_every_event(items: Pairs) -> None:
    parts = split(lane_of(items))
    rows = np.concatenate([part.index for part in parts])
    assert sorted(rows.tolist()) == list(range(len(items)))
    for part in parts:
        assert (part.starts[1:] >= part.ends[:-1]).all()


@few
@given(
    st.lists(st.tuples(st.integers(0, 3), events), max_size=5),
    st.sampled_from([0, -(2**59), 2**59]),
)
def test_lanes_of_many_groups_are_those_of_each(parts: list[tuple[int, Pairs]], far: int) -> None:
    rows = [(group, *event) for group, items in parts for event in items]
    table = np.array(rows, np.int64).reshape(-1, 3)
    table[-1:, 1:] += far  # times so far apart that groups do not fit on one axis
    index = np.arange(len(table), dtype=np.int32)
    names = np.zeros(len(table), np.int32)
    found = dict(split_groups(table[:, 0], table[:, 1], table[:, 2], index, 7, names))
    assert [*found] == sorted({*table[:, 0].tolist()})
    for group, lanes in found.items():
        mine = np.flatnonzero(table[:, 0] == group)
        alone = split(Lane.build(table[mine, 1], table[mine, 2], mine, 7, names))
        assert len(lanes) == len(alone)
        for lane, wanted in zip(lanes, alone, strict=True):
            for column in ("starts", "ends", "index", "busy_starts", "busy_ends", "busy_sums"):
                assert getattr(lane, column).tolist() == getattr(wanted, column).tolist(), column
            assert lane.reach.tolist() == wanted.reach.tolist()
            assert lane.peaks.tolist() == wanted.peaks.tolist()
            assert lane.busy_total == wanted.busy_total
            assert lane.is_apart == wanted.is_apart
            assert lane.category == 7
            assert lane.name is names
