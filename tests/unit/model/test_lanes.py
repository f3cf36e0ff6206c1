from __future__ import annotations

import numpy as np

from nsys_tui.model.lanes import BLOCK, Lane, cell_edges, pack, split


def test_sorted_columns_are_shared_not_copied() -> None:
    starts = np.arange(0, 1000, 10, dtype=np.int64)
    ends = starts + 4
    lane = Lane.build(starts, ends)
    for column in (lane.starts, lane.busy_starts):
        assert column is starts
    for column in (lane.ends, lane.busy_ends, lane.reach):
        assert column is ends


def test_columns_of_the_owner_are_gathered_through_the_index() -> None:
    category = np.array([3, 1, 2], np.uint8)
    name = np.array([30, 10, 20], np.int32)
    lane = Lane.build([50, 5], [60, 8], np.array([2, 0], np.int32), category, name)
    assert lane.rows(slice(None)).tolist() == [0, 2]
    assert lane.categories(slice(None)).tolist() == [3, 2]
    assert Lane.build([1], [2], category=6).categories(slice(None)).tolist() == [6]


def test_an_empty_lane_answers_everything() -> None:
    lane = Lane.build([], [])
    edges = cell_edges(0, 10, 5)
    assert lane.busy(edges).tolist() == lane.count(edges).tolist() == [0] * 5
    assert lane.longest_in(0, 10) is None
    assert len(lane.at_least(0, 10, 1)) == len(pack([], [])) == 0
    assert split(lane) == (lane,)


def test_long_events_are_found_across_blocks() -> None:
    starts = np.arange(5 * BLOCK, dtype=np.int64) * 100
    ends = starts + 1
    long = [7, BLOCK, 3 * BLOCK - 1, 5 * BLOCK - 1]
    ends[long] = starts[long] + 90
    lane = Lane.build(starts, ends)
    assert lane.at_least(0, int(ends[-1]), 50).tolist() == long
    assert lane.at_least(0, int(starts[BLOCK]) + 1, 50).tolist() == long[:2]


def test_edges_of_a_window_of_centuries_are_exact() -> None:
    lo, hi = -(2**62), 2**62 - 1
    edges = cell_edges(lo, hi, 240)
    assert (int(edges[0]), int(edges[-1])) == (lo, hi)
    assert set(np.diff(np.diff(edges)).tolist()) <= {-1, 0, 1}


def test_a_window_shorter_than_its_cells_has_empty_cells() -> None:
    assert cell_edges(10, 13, 6).tolist() == [10, 10, 11, 11, 12, 12, 13]


def test_nested_ranges_get_their_depth_and_crossing_ones_a_free_sub_lane() -> None:
    nested = pack([0, 0, 1, 5, 20], [20, 10, 4, 9, 30])
    assert nested.tolist() == [0, 1, 2, 2, 0]
    crossing = pack([0, 5, 8, 12], [10, 15, 20, 13])
    assert crossing.tolist() == [0, 1, 2, 0]
    assert pack([3, 3], [3, 3]).tolist() == [0, 1]
