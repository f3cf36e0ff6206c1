from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis import launches as module
from nsys_tui.analysis.launches import launch_bound_runs, launches, stream_gaps
from nsys_tui.analysis.nvtx.nesting import segments
from nsys_tui.analysis.window import Scope
from nsys_tui.config import LaunchBoundConfig
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

US = 1_000


def test_latency_queue_and_operations_without_a_call(tmp_path: Path) -> None:
    path = (
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .launch("queued", call=(0, 10), gpu=(50, 60))
        .launch("overtakes its call", call=(100, 140), gpu=(120, 130))
        .kernel("stray", 200, 210)
        .write()
    )
    found = launches(open_report(path))
    assert found.called.tolist() == [True, True, False]
    assert found.latency.tolist() == [50, 20, 0]
    assert found.queue.tolist() == [40, 0, 0]


def test_the_idle_time_of_a_stream_is_before_each_operation(tmp_path: Path) -> None:
    path = (
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .kernel("long", 0, 100, stream=7)
        .kernel("inside", 20, 30, stream=7)
        .kernel("later", 150, 160, stream=7)
        .kernel("other", 40, 50, stream=8)
        .write()
    )
    report = open_report(path)
    names = [report.operations.names[name].short for name in report.operations.name]
    gaps = dict(zip(names, stream_gaps(report.operations).tolist(), strict=True))
    assert gaps == {"long": -1, "inside": 0, "later": 50, "other": -1}


def many(tmp_path: Path, count: int, *, busy: int = 4, period: int = 30, late: int = 0) -> Report:
    """Kernels of ``busy`` us every ``period`` us; the last ``late`` calls come in time."""
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for i in range(count):
        start = (i + 1) * period * US
        called = start - 2 * US if i < count - late else start - (period + busy) * US
        synth.launch("k", call=(called, called + US), gpu=(start, start + busy * US))
    return open_report(synth.write())


def test_a_run_needs_twenty_operations(tmp_path: Path) -> None:
    assert launch_bound_runs(many(tmp_path, 19)) == []
    (run,) = launch_bound_runs(many(tmp_path, 20))
    assert (run.operations, run.gap_count, run.idle_ns) == (20, 19, 19 * 26 * US)
    assert (run.start, run.end) == (30 * US, (20 * 30 + 4) * US)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ({"busy": 19, "period": 30}, 1),
        ({"busy": 20, "period": 40}, 0),
        ({"busy": 4, "period": 54}, 1),
        ({"busy": 4, "period": 55}, 0),
        ({"busy": 14, "period": 20}, 1),
        ({"busy": 15, "period": 20}, 0),
        ({"late": 14}, 1),
        ({"late": 15}, 0),
    ],
)
def test_the_limits_of_a_run(tmp_path: Path, shape: dict[str, int], found: int) -> None:
    assert len(launch_bound_runs(many(tmp_path, 30, **shape))) == found


def test_the_constants_can_be_set_and_a_window_chooses(tmp_path: Path) -> None:
    report = many(tmp_path, 12)
    rule = LaunchBoundConfig(operations=10)
    assert len(launch_bound_runs(report, rule=rule)) == 1
    assert launch_bound_runs(report, Scope(window=(10**9, 2 * 10**9)), rule) == []


def test_a_long_kernel_ends_a_run(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for i in range(50):
        start = (i + 1) * 30 * US
        length = 25 if i == 25 else 4
        synth.launch("k", call=(start - US, start), gpu=(start, start + length * US))
    runs = launch_bound_runs(open_report(synth.write()))
    assert [run.operations for run in runs] == [25, 24]


def innermost(starts: list[int], ends: list[int], times: list[int]) -> list[int]:
    found = segments(np.array(starts, np.int64), np.array(ends, np.int64))
    spans = list(zip(found.starts, found.ends, found.owner, strict=True))
    return [next((int(own) for lo, hi, own in spans if lo <= t < hi), -1) for t in times]


def test_segments_name_the_innermost_range_even_where_ranges_cross() -> None:
    times = [-1, 0, 10, 25, 35, 45, 70, 90, 100]
    found = innermost([0, 10, 20, 40], [100, 60, 30, 80], times)
    assert found == [-1, 0, 1, 2, 1, 3, 3, 0, -1]


def test_segments_of_equal_and_empty_ranges() -> None:
    assert innermost([0, 0, 5], [10, 10, 5], [0, 5, 9, 10]) == [1, 1, 1, -1]
    assert innermost([], [], [3]) == [-1]


def test_runs_of_many_operations_are_found_once_for_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(tmp_path, 30)
    path = tmp_path / "r.sqlite"
    found = launch_bound_runs(open_report(path))
    monkeypatch.setattr(module, "_MANY", 1)
    assert launch_bound_runs(open_report(path)) == found != []
    monkeypatch.setattr(module, "_found", lambda *_: [])
    assert launch_bound_runs(open_report(path)) == found
    others = LaunchBoundConfig(operations=25)
    assert launch_bound_runs(open_report(path), rule=others) == [], "of another rule"
