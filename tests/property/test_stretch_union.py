"""Unions of stretches against the union of each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsys_tui.analysis.stretch_stats import stretch_unions
from nsys_tui.model import intervals

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), min_size=1, max_size=40)
asked = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=20)


@given(spans, asked)
def test_the_union_of_each_stretch(
    found: list[tuple[int, int]], queries: list[tuple[int, int]]
) -> None:
    starts = np.array([start for start, _ in found], np.int64)
    ends = starts + np.array([length for _, length in found], np.int64)
    pairs = np.minimum(np.sort(np.array(queries, np.int64), axis=1), len(found))
    unions = stretch_unions(starts, ends, pairs[:, 0], pairs[:, 1])
    wanted = [intervals.total(starts[a:b], ends[a:b]) for a, b in pairs.tolist()]
    assert unions is None or unions.tolist() == wanted
    assert unions is not None or len(found) > 1


def test_where_all_overlap_it_gives_up() -> None:
    many = np.arange(200)
    assert stretch_unions(many, many + 1000, np.array([0]), np.array([200])) is None
