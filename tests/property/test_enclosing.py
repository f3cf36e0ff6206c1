from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.stats import nvtx as enclosing
from nsys_tui.analysis.stats.nvtx import nesting
from nsys_tui.reader import open_report

spans = st.tuples(st.integers(1, 2), st.integers(0, 30), st.integers(0, 15))


@settings(max_examples=40, deadline=None)
@given(st.lists(spans, min_size=1, max_size=12), st.lists(spans, min_size=1, max_size=12))
@example(ranges=[(1, 0, 1), (1, 1, 1)], calls=[(1, 1, 1), (1, 1, 0)])
@example(ranges=[(1, 0, 5), (1, 3, 6)], calls=[(1, 3, 4), (1, 4, 1)])
def test_pairs_parents_and_innermost_agree_with_loops(
    ranges: list[tuple[int, int, int]], calls: list[tuple[int, int, int]]
) -> None:
    with TemporaryDirectory() as folder:
        capture = Synth(Path(folder) / "r.sqlite")
        for tid, start, length in ranges:
            capture.nvtx("r", start, start + length, tid=tid)
        for tid, start, length in calls:
            capture.launch("k()", (start, start + length), (100, 101), tid=tid)
        report = open_report(capture.write(), use_cache=False)
        closed = enclosing.closed_ranges(report, slice(None))
        made = enclosing.launches(report, slice(None))
        chunk, enclosing._CHUNK = enclosing._CHUNK, 3  # type: ignore[misc]
        try:
            pairs = list(enclosing.enclosed(closed, made).pairs())
            innermost, _ = enclosing.innermost(report, slice(None))
        finally:
            enclosing._CHUNK = chunk  # type: ignore[misc]
        nested = nesting(closed)
        report.close()
    found = {
        (int(r), int(c)) for which, launch in pairs for r, c in zip(which, launch, strict=True)
    }
    threads = closed.threads[closed.thread]

    def encloses(r: int, start: int, end: int, thread: int) -> bool:
        return bool(threads[r] == thread and closed.start[r] <= start and end <= closed.end[r])

    expected = {
        (r, c)
        for r in range(len(closed))
        for c in range(len(made.start))
        if encloses(r, made.start[c], made.end[c], made.thread[c])
    }
    assert found == expected
    assert sum(len(which) for which, _ in pairs) == len(found)
    for c, row in enumerate(made.operation):
        assert innermost[row] == max((r for r, other in expected if other == c), default=-1)
    for place in range(len(closed)):
        bounds = (closed.start[place], closed.end[place], threads[place])
        outer = [r for r in range(place) if encloses(r, *bounds)]
        assert nested.parent[place] == max(outer, default=-1)
    assert nested.children.sum() == np.count_nonzero(nested.parent >= 0)
