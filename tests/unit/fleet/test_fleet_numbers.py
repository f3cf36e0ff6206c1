from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.aggregate import Aggregate
from nsys_tui.fleet.collectives import match
from nsys_tui.fleet.name_stats import merge, name_stats, sketch_bins, sketch_middle
from nsys_tui.fleet.summary import Collectives
from nsys_tui.fleet.times import Grid, SessionClock, grid_over, rebinned

TIMES = st.integers(-(2**40), 2**61)


@settings(max_examples=100)
@given(TIMES, st.integers(1, 2**45), st.integers(2, 1024))
def test_a_grid_covers_its_span_with_as_many_bins_as_allowed(
    lo: int, length: int, most: int
) -> None:
    grid = grid_over(lo, lo + length, most)
    edges = grid.edges()
    assert edges[0] <= lo < edges[1]
    assert edges[-2] < lo + length <= edges[-1]
    assert grid.count <= most
    if length > 2 * most:
        assert grid.count * 4 >= most, "bins are no coarser than they must be"


@settings(max_examples=60)
@given(st.integers(0, 6), st.integers(-50, 50), st.integers(1, 40), st.integers(0, 4), st.data())
def test_coarser_bins_are_sums_of_finer_ones(
    shift: int, first: int, count: int, coarser: int, data: st.DataObject
) -> None:
    values = np.array(data.draw(st.lists(st.integers(0, 99), min_size=count, max_size=count)))
    own = Grid(shift, first, count)
    wide = Grid(shift + coarser, (first - 7) >> coarser, (count >> coarser) + 20)
    expected_sum = [0] * wide.count
    expected_peak = [0] * wide.count
    for place, value in enumerate(values.tolist()):
        start = (first + place) << shift
        target = (start // wide.width) - wide.first
        if 0 <= target < wide.count:
            expected_sum[target] += value
            expected_peak[target] = max(expected_peak[target], value)
    assert rebinned(values, own, wide).tolist() == expected_sum
    assert rebinned(values, own, wide, peak=True).tolist() == expected_peak


def test_a_moved_clock_moves_whole_bins() -> None:
    own, wide = Grid(3, 0, 4), Grid(3, -2, 8)
    values = np.array([[1, 2, 3, 4]])
    assert rebinned(values, own, wide, moved=11).tolist() == [[0, 0, 0, 1, 2, 3, 4, 0]]
    assert rebinned(values, own, wide, moved=-12).tolist() == [[0, 1, 2, 3, 4, 0, 0, 0]]
    assert rebinned(values, own, wide, moved=10**6).tolist() == [[0] * 8]


@settings(max_examples=100)
@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=50))
def test_histogram_bins_keep_order_and_are_a_64th_wide(values: list[int]) -> None:
    ordered = np.array(sorted(values), np.int64)
    bins = sketch_bins(ordered)
    assert (np.diff(bins) >= 0).all()
    middle = sketch_middle(bins)
    assert (np.abs(middle - ordered) <= ordered / 128 + 0.5).all()
    small = ordered < 128
    assert (middle[small] == ordered[small]).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**9)), max_size=30),
        min_size=1,
        max_size=4,
    )
)
def test_merged_statistics_equal_those_of_all_values(ranks: list[list[tuple[str, int]]]) -> None:
    labels = ["a", "b", "c"]
    parts = [
        name_stats(
            Aggregate(
                np.array([labels.index(name) for name, _ in own], np.int64),
                len(labels),
                np.array([value for _, value in own], np.int64),
            ),
            labels,
        )
        for own in ranks
    ]
    found = merge(parts)
    together: dict[str, list[int]] = {}
    for own in ranks:
        for name, value in own:
            together.setdefault(name, []).append(value)
    assert set(found.names) == set(together)
    assert list(found.names) == sorted(together, key=lambda n: (-sum(together[n]), n))
    for row, name in enumerate(found.names):
        values = np.array(together[name], np.int64)
        assert found.count[row] == len(values)
        assert found.inside[row] == values.sum()
        assert (found.least[row], found.most[row]) == (values.min(), values.max())
        deviation = values.std(ddof=1) if len(values) > 1 else 0.0
        assert found.std[row] == pytest.approx(deviation, rel=1e-6, abs=1e-3)
        ordered = np.sort(values)
        for place, q in enumerate((0.25, 0.5, 0.75)):
            near = int(ordered[int((len(ordered) - 1) * q)])
            assert abs(found.quartiles[row, place] - near) <= near / 128 + 0.5
        assert len(found.holders[row]) == sum(any(n == name for n, _ in own) for own in ranks)


def test_statistics_of_one_process_are_exact() -> None:
    values = np.array([5, 1, 9, 7, 1000], np.int64)
    stats = name_stats(Aggregate(np.array([0, 0, 0, 1, 0]), 2, values), ["x", "y"])
    assert stats.names == ("x", "y")
    assert stats.quartiles[0].tolist() == np.quantile([1, 5, 9, 1000], [0.25, 0.5, 0.75]).tolist()
    assert stats.squares[0] == pytest.approx(np.var([1, 5, 9, 1000]) * 4)
    empty = name_stats(Aggregate(np.zeros(0, np.int64), 0, np.zeros(0, np.int64)), [])
    assert len(empty) == 0
    assert len(merge([empty]).names) == 0


def calls(*times: tuple[int, int], key: tuple[str, str] = ("sum", "c")) -> Collectives:
    start, end = (np.array([t[n] for t in times], np.int64) for n in (0, 1))
    return Collectives((key,), np.zeros(len(times), np.int32), start, end)


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 300)), min_size=1, max_size=6),
        min_size=2,
        max_size=5,
    )
)
def test_lateness_equals_a_loop_over_calls_and_ranks(ranks: list[list[tuple[int, int]]]) -> None:
    own = [calls(*((s, s + d) for s, d in sorted(rank))) for rank in ranks]
    matched = match(own, [SessionClock(0)] * len(own))
    group, late = matched.groups[0], matched.by_rank()
    count = min(map(len, ranks))
    waited, last, held, skews = [0] * len(own), [0] * len(own), [0] * len(own), []
    for call in range(count):
        starts = [int(mine.start[call]) for mine in own]
        ends = [int(mine.end[call]) for mine in own]
        slow = starts.index(max(starts))
        skews.append(max(starts) - min(starts))
        last[slow] += max(starts) > min(starts)
        held[slow] += max(starts) - sorted(starts)[-2]
        for rank, (start, end) in enumerate(zip(starts, ends, strict=True)):
            waited[rank] += max(0, min(max(starts), end) - start)
    assert group.skew.tolist() == skews
    assert late.waited.tolist() == waited
    assert late.last.tolist() == last
    assert late.held_up.tolist() == held
    assert group.unmatched == sum(len(rank) - count for rank in ranks)


def test_calls_of_other_communicators_are_not_mixed() -> None:
    world, pair = ("sum", "world"), ("sum", "pair")
    both = Collectives(
        (world, pair), np.array([0, 1, 0], np.int32), np.array([0, 5, 9]), np.array([1, 6, 10])
    )
    only_world = calls((2, 3), (11, 12), key=world)
    alone = calls((1, 2), key=("max", "world"))
    matched = match([both, only_world, alone], [*map(SessionClock, (0, 100, 0))])
    assert [(g.communicator, g.members) for g in matched.groups] == [("world", (0, 1))]
    assert matched.groups[0].start.tolist() == [[0, 9], [102, 111]]
    assert matched.alone == 2
    assert matched.groups[0].apart.all(), "they did not run at the same time"
