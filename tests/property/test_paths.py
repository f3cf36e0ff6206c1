from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.nvtx import paths as paths_module
from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.model.events import Domain, Ranges

if TYPE_CHECKING:
    from nsys_tui.analysis.nvtx.paths import Paths

Row = tuple[int, int, int, int]
ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 8), st.integers(0, 2), st.integers(0, 1)),
    max_size=14,
)


class OnlyRanges:
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges


def built(rows: list[Row]) -> tuple[Ranges, Paths]:
    rows = sorted(rows, key=lambda row: row[0])
    count = len(rows)
    start = np.array([row[0] for row in rows], np.int64)
    ranges = Ranges(
        start=start,
        end=start + np.array([row[1] for row in rows], np.int64),
        rowid=np.arange(count),
        thread=np.array([row[3] for row in rows], np.int32),
        name=np.array([row[2] for row in rows], np.int32),
        names=("a", "b", "c"),
        threads=np.array([101, 102], np.int64),
        style=np.full(count, 59, np.uint8),
        domain=np.zeros(count, np.int32),
        end_thread=np.full(count, -1),
        open=np.zeros(count, bool),
        color=np.full(count, -1),
        nvtx_category=np.zeros(count, np.int64),
        domains=(Domain(0, 0, ""),),
    )
    return ranges, nvtx_paths(OnlyRanges(ranges))  # type: ignore[arg-type]


def open_at(ranges: Ranges, thread: int, time: int, before: int | None = None) -> list[int]:
    """Rows open at a time in path order, by the definition, one by one."""
    order = sorted(
        range(len(ranges)), key=lambda i: (ranges.start[i], -ranges.end[i], ranges.rowid[i])
    )
    if before is not None:
        order = order[: order.index(before)]
    return [
        i for i in order if ranges.thread[i] == thread and ranges.start[i] <= time < ranges.end[i]
    ]


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_path_at_any_time_is_the_open_ranges_in_order(rows: list[Row]) -> None:
    ranges, paths = built(rows)
    trie = paths.builder.trie()
    times = np.arange(-1, 24)
    for code, thread in enumerate((101, 102)):
        nodes = paths.node_at(thread, times)
        for time, node in zip(times.tolist(), nodes.tolist(), strict=True):
            expected = tuple("abc"[ranges.name[i]] for i in open_at(ranges, code, time))
            assert trie.path(node) == expected


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_few_ranges_are_walked_to_the_same_paths(rows: list[Row]) -> None:
    _, walked = built(rows)
    with mock.patch.object(paths_module, "FEW", 0):
        _, passes = built(rows)
    assert walked.parent.tolist() == passes.parent.tolist()
    assert walked.self_time.tolist() == passes.self_time.tolist()
    tries = walked.builder.trie(), passes.builder.trie()
    times = np.arange(-1, 24)
    for thread, own in walked.threads.items():
        other = passes.threads[thread]
        assert own.range_time == other.range_time
        assert own.innermost_at(times).tolist() == other.innermost_at(times).tolist()
        pairs = zip(own.node_at(times).tolist(), other.node_at(times).tolist(), strict=True)
        assert all(tries[0].path(a) == tries[1].path(b) for a, b in pairs)


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_innermost_range_is_the_last_of_the_path(rows: list[Row]) -> None:
    ranges, paths = built(rows)
    times = np.arange(-1, 24)
    for code, thread in enumerate((101, 102)):
        if thread not in paths.threads:
            continue
        found = paths.threads[thread].innermost_at(times).tolist()
        expected = [(open_at(ranges, code, int(t)) or [-1])[-1] for t in times]
        assert found == expected


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_self_time_is_what_no_child_covers(rows: list[Row]) -> None:
    ranges, paths = built(rows)
    trie = paths.builder.trie()
    parents = []
    for i in range(len(ranges)):
        around = open_at(ranges, int(ranges.thread[i]), int(ranges.start[i]), before=i)
        parents.append(around[-1] if around else -1)
        frames = tuple("abc"[ranges.name[j]] for j in [*around, i])
        assert trie.path(int(paths.node[i])) == frames
    assert paths.parent.tolist() == parents
    for i in range(len(ranges)):
        inside = set(range(int(ranges.start[i]), int(ranges.end[i])))
        for child, parent in enumerate(parents):
            if parent == i:
                inside -= set(range(int(ranges.start[child]), int(ranges.end[child])))
        assert paths.self_time[i] == len(inside)


@settings(max_examples=150, deadline=None)
@given(ROWS)
def test_of_many_crossing_ranges_the_outer_and_innermost_are_told(rows: list[Row]) -> None:
    with mock.patch.object(paths_module, "CROSSED", 2), mock.patch.object(paths_module, "KEPT", 1):
        ranges, paths = built(rows)
    trie = paths.builder.trie()
    times = np.arange(-1, 24)
    for code, thread in enumerate((101, 102)):
        nodes = paths.node_at(thread, times).tolist()
        inner = (
            paths.threads[thread].innermost_at(times)
            if thread in paths.threads
            else [-1] * len(times)
        )
        for time, node, row in zip(times.tolist(), nodes, inner, strict=True):
            rows_open = open_at(ranges, code, time)
            assert row == (rows_open[-1] if rows_open else -1)
            expected = tuple("abc"[ranges.name[i]] for i in rows_open)
            found = trie.path(node)
            cut = [place for place, frame in enumerate(found) if frame.startswith("[over ")]
            if not cut:
                assert found == expected
                continue
            (place,) = cut
            told = int(found[place].split()[1])
            assert found[:place] == expected[:place]
            assert found[place + 1 :] == expected[place - len(found) + 1 :]
            assert told <= len(expected) - place < 2 * told
