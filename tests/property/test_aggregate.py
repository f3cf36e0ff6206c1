from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.aggregate import group_stats, grouped_union
from nsys_tui.model import groups
from nsys_tui.model.groups import factorise, factorise_rows, regroup

GROUPS = 5
small = st.integers(-1000, 10**9)
wide = st.integers(-(2**40), 2**40)
huge = st.integers(-(2**62), 2**62 - 1)


def rows(values: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[int, int]]]:
    return st.lists(st.tuples(st.integers(0, GROUPS - 1), values), max_size=60)


@settings(max_examples=100, deadline=None)
@given(rows(small))
def test_every_statistic_agrees_with_plain_python(data: list[tuple[int, int]]) -> None:
    stats = group_stats([c for c, _ in data], [v for _, v in data], GROUPS)
    for code in range(GROUPS):
        mine = [v for c, v in data if c == code]
        assert stats.counts[code] == len(mine)
        assert stats.totals[code] == sum(mine)
        if not mine:
            assert np.isnan([stats.mean[code], stats.median[code], stats.std[code]]).all()
            continue
        assert (stats.min[code], stats.max[code]) == (min(mine), max(mine))
        assert stats.mean[code] == sum(mine) / len(mine)
        assert stats.median[code] == statistics.median(mine)
        spread = statistics.stdev(mine) if len(mine) > 1 else 0.0
        assert stats.std[code] == pytest.approx(spread, rel=1e-9, abs=1e-6)
        for q in (0.1, 0.25, 0.75, 0.99):
            assert stats.quantile(q)[code] == pytest.approx(np.quantile(mine, q), rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.one_of(rows(small), rows(wide), rows(huge)))
def test_values_are_ordered_the_same_at_any_width(data: list[tuple[int, int]]) -> None:
    stats = group_stats([c for c, _ in data], [v for _, v in data], GROUPS)
    assert stats.ordered.tolist() == [v for _, v in sorted(data)]


def test_totals_beyond_float_precision_stay_exact() -> None:
    values = np.full(1001, 2**53 + 1, np.int64)
    assert group_stats(np.zeros(1001, int), values, 1).totals[0] == 1001 * (2**53 + 1)


@given(st.lists(st.sampled_from(["a", "b", "", "a;b"]), min_size=1, max_size=8), st.data())
@settings(max_examples=50, deadline=None)
def test_regroup_keeps_each_event_under_its_key(keys: list[str], data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, len(keys) - 1), max_size=20)), int)
    merged, distinct = regroup(codes, keys)
    assert len(set(distinct)) == len(distinct)
    assert [distinct[code] for code in merged] == [keys[code] for code in codes]


spans = st.lists(
    st.tuples(st.integers(0, GROUPS - 1), st.integers(-50, 50), st.integers(-3, 20)), max_size=40
)


@settings(max_examples=100, deadline=None)
@given(spans, st.booleans(), st.booleans())
def test_the_union_of_each_group_counts_a_moment_once(
    data: list[tuple[int, int, int]], ordered: bool, wide: bool
) -> None:
    data = sorted(data, key=lambda row: row[1]) if ordered else data
    scale = 2**54 if wide else 1
    starts = [start * scale for _, start, _ in data]
    ends = [(start + length) * scale for _, start, length in data]
    union = grouped_union([group for group, _, _ in data], starts, ends, GROUPS)
    for group in range(GROUPS):
        covered = {
            t for g, start, length in data if g == group for t in range(start, start + length)
        }
        assert union[group] == len(covered) * scale


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40), st.booleans())
def test_encoding_gives_the_sorted_distinct_values(values: list[int], wide: bool) -> None:
    column = np.array(values, np.int64) * (2**40 if wide else 1)
    codes, distinct = factorise(column)
    assert distinct.tolist() == sorted(set(column.tolist()))
    assert distinct[codes].tolist() == column.tolist() if values else not len(codes)


def test_values_that_a_sample_misses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_SAMPLE", 2)
    column = np.array([5, 2**50, 5, 7, -(2**50), 5], np.int64)
    codes, distinct = factorise(column)
    assert distinct[codes].tolist() == column.tolist()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3), st.integers(5, 6)), min_size=1),
    st.sampled_from([1, 2**40]),
)
def test_rows_get_one_code_each(data: list[tuple[int, int, int]], apart: int) -> None:
    columns = np.array(data, np.int64) * apart
    codes, rows_found = factorise_rows([*columns.T])
    assert rows_found[codes].tolist() == columns.tolist()
    assert rows_found.tolist() == sorted(map(list, {*map(tuple, columns.tolist())}))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.one_of(st.integers(0, 30), st.integers(-(2**61), 2**61), st.just(2**61)),
            st.one_of(st.integers(0, 30), st.integers(0, 2**60)),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_the_union_is_exact_however_far_apart_times_lie(data: list[tuple[int, int, int]]) -> None:
    wanted = [0, 0, 0]
    reach = [-(2**63)] * 3
    for start, group, length in sorted((start, group, length) for group, start, length in data):
        wanted[group] += max(0, start + length - max(start, reach[group]))
        reach[group] = max(reach[group], start + length)
    groups, starts = [group for group, _, _ in data], [start for _, start, _ in data]
    ends = [start + length for _, start, length in data]
    assert grouped_union(groups, starts, ends, 3).tolist() == wanted


def test_the_union_of_times_beyond_all_sense_ends() -> None:
    for end in (2**63 - 1, -(2**63)):
        assert len(grouped_union([0, 0], [0, 5], [end, 9], 1)) == 1
