from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.kernel_facts import gaps_before, kernel_facts
from nsys_tui.analysis.kernel_table import PARTS, GroupBy, kernel_table, time_in_parts
from nsys_tui.analysis.launches import stream_gaps
from nsys_tui.analysis.nvtx.operation_paths import operation_paths
from nsys_tui.analysis.window import Scope
from nsys_tui.names import NameStyle
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

US = 1_000


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Two streams, two shapes of one kernel, a copy, a traced and an untraced graph launch."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train")
    synth.nvtx("step 1", 0, 500 * US).nvtx("step 2", 500 * US, 900 * US)
    for number, (start, length, grid) in enumerate([(10, 40, 8), (60, 20, 8), (600, 90, 16)]):
        call = (start - 5) * US
        synth.launch(
            "void gemm<float>(float*)",
            (call, call + US),
            (start * US, (start + length) * US),
            grid=(grid, 1, 1),
            stream=7 + number % 2,
        )
    synth.memcpy(100 * US, 200 * US, bytes=5_000, stream=7)
    synth.graph(700 * US, 800 * US, stream=9, corr=5_000)
    synth.graph(820 * US, 880 * US, stream=9, corr=5_001)
    synth.kernel("inside", 830 * US, 850 * US, stream=9, corr=5_001, graphNodeId=77)
    return open_report(synth.write(), use_cache=False)


def rows_of(report: Report, by: GroupBy, **options: object) -> dict[str, tuple[int, int]]:
    table = kernel_table(report, by, **options)  # type: ignore[arg-type]
    figures = zip(table.total.tolist(), table.count.tolist(), strict=True)
    return dict(zip(table.labels, figures, strict=True))


def test_names_are_grouped_largest_first_and_a_traced_graph_launch_is_left_out(
    report: Report,
) -> None:
    table = kernel_table(report)
    assert table.labels[:2] == ("gemm", "[CUDA graph 1]")
    assert rows_of(report, GroupBy.NAME) == {
        "gemm": (150 * US, 3),
        "[CUDA memcpy Host-to-Device]": (100 * US, 1),
        "[CUDA graph 1]": (100 * US, 1),
        "inside": (20 * US, 1),
    }
    assert table.share.sum() == pytest.approx(1.0)


def test_every_criterion_groups_the_same_work(report: Report) -> None:
    assert rows_of(report, GroupBy.SHAPE)["gemm  8,1,1 x 128,1,1"] == (60 * US, 2)
    assert rows_of(report, GroupBy.SHAPE)["gemm  16,1,1 x 128,1,1"] == (90 * US, 1)
    assert rows_of(report, GroupBy.STREAM)["GPU 0 str 8"] == (20 * US, 1)
    assert rows_of(report, GroupBy.DEVICE) == {"GPU 0": (370 * US, 6)}
    assert rows_of(report, GroupBy.CATEGORY)["memory"] == (100 * US, 1)
    by_range = rows_of(report, GroupBy.RANGE, paths=operation_paths(report))
    assert by_range["step #"] == (150 * US, 3)
    assert by_range["[no API call]"] == (220 * US, 3)


def test_a_window_clips_time_and_counts_what_starts_in_it(report: Report) -> None:
    table = kernel_table(report, scope=Scope(window=(30 * US, 70 * US)))
    assert table.labels == ("gemm",)
    # 10..50 reaches in from before: 20 us of it; 60..80 starts inside: 10 us of it.
    assert table.total.tolist() == [30 * US]
    assert table.count.tolist() == [1]
    assert table.straddling.tolist() == [1]
    assert table.mean.tolist() == [20 * US], "whole durations of what starts inside"


def test_a_row_without_a_start_in_the_window_has_no_statistics(report: Report) -> None:
    table = kernel_table(report, scope=Scope(window=(20 * US, 40 * US)))
    assert table.total.tolist() == [20 * US]
    for figures in (table.mean, table.median, table.p99, table.std):
        assert np.isnan(figures).all()
    assert table.min.tolist() == table.max.tolist() == [None]


def test_statistics_are_those_of_the_standard_library(report: Report) -> None:
    table = kernel_table(report)
    lengths = [40 * US, 20 * US, 90 * US]
    assert table.median[0] == statistics.median(lengths)
    assert table.std[0] == pytest.approx(statistics.stdev(lengths))
    assert (table.min[0], table.max[0]) == (20 * US, 90 * US)


def test_names_follow_the_style(report: Report) -> None:
    assert "void gemm<float>(float*)" in kernel_table(report, style=NameStyle.FULL).labels


def test_instances_are_the_rows_of_a_group(report: Report) -> None:
    table = kernel_table(report)
    ops = report.operations
    starts = ops.start[table.instances(table.labels.index("gemm"))]
    assert starts.tolist() == [10 * US, 60 * US, 600 * US]
    assert (table.when.sum(axis=1) == table.total).all()


EVENTS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 120), st.integers(0, 2)), max_size=20
)


@settings(max_examples=100, deadline=None)
@given(EVENTS, st.integers(0, 150), st.integers(1, 160))
def test_time_in_parts_is_that_of_a_loop(
    events: list[tuple[int, int, int]], lo: int, width: int
) -> None:
    hi = lo + width
    clipped = sorted(
        (max(start, lo), max(min(start + length, hi), max(start, lo)), code)
        for start, length, code in events
        if start < hi and start + length > lo
    )
    start, end, codes = (np.array([e[i] for e in clipped], np.int64) for i in range(3))
    found = time_in_parts(start, end, codes, 3, lo, hi)
    span = max(hi, lo + PARTS) - lo
    edges = [lo + i * (span // PARTS) + i * (span % PARTS) // PARTS for i in range(PARTS + 1)]
    expected = np.zeros((3, PARTS), np.int64)
    for first, last, code in clipped:
        for part in range(PARTS):
            expected[code, part] += max(0, min(last, edges[part + 1]) - max(first, edges[part]))
    assert (found == expected).all()


def test_facts_say_where_a_row_comes_from(report: Report) -> None:
    table = kernel_table(report)
    paths = operation_paths(report)
    rows = table.instances(table.labels.index("gemm"))
    facts = kernel_facts(report, rows, paths)
    assert [(p.text, p.share) for p in facts.shapes.listed] == [
        ("grid 8,1,1 block 128,1,1", 2 / 3),
        ("grid 16,1,1 block 128,1,1", 1 / 3),
    ]
    assert [(p.text, p.share) for p in facts.callers.listed] == [("cudaLaunchKernel", 1.0)]
    assert [(p.text, p.share) for p in facts.ranges.listed] == [("step #", 1.0)]
    assert facts.latency == 5 * US
    # Stream 7: the copy ends at 200, the third kernel starts at 600; the others are first.
    assert facts.gap == 400 * US
    assert facts.uncalled == 0
    copies = table.instances(table.labels.index("[CUDA memcpy Host-to-Device]"))
    copy = kernel_facts(report, copies, paths)
    assert (copy.bytes, copy.uncalled, copy.latency) == (5_000, 1, None)
    assert copy.registers is None


def test_gaps_of_some_operations_are_those_of_all(report: Report) -> None:
    ops = report.operations
    every = stream_gaps(ops)
    for kept in (slice(None), slice(1, None, 2), slice(2, 4)):
        rows = np.arange(len(ops))[kept]
        assert gaps_before(ops, rows).tolist() == every[rows].tolist()
