from __future__ import annotations

import numpy as np

from nsys_tui.model import intervals


def test_touching_intervals_become_one_and_empty_ones_vanish() -> None:
    starts, ends = intervals.union([5, 0, 7, 20], [7, 5, 7, 10])
    assert (starts.tolist(), ends.tolist()) == ([0], [7])


def test_nothing_in_nothing_out() -> None:
    nothing = intervals.empty()
    assert intervals.total(*nothing) == 0
    assert [side.tolist() for side in intervals.gaps(*nothing, -3, 4)] == [[-3], [4]]
    assert len(intervals.subtract(nothing, (np.array([0]), np.array([1])))[0]) == 0


def test_nanoseconds_of_years_stay_exact() -> None:
    base = 4_000_000_000_000_000_001
    assert intervals.total([base, base + 1], [base + 2, base + 3]) == 3


def test_sorted_input_is_not_changed() -> None:
    starts, ends = np.array([0, 1, 9], np.int64), np.array([4, 3, 12], np.int64)
    intervals.union(starts, ends)
    assert (starts.tolist(), ends.tolist()) == ([0, 1, 9], [4, 3, 12])
