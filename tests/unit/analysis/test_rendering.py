"""Graphics on the GPU is GPU work, in unions and sums, beside CUDA and alone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from brute import query
from synth import Synth

from nsys_tui.analysis.overview import overview
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find, find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.analysis.timeline.facts import facts_of
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

LIBRARIES = ("OPENGL", "VULKAN", "DX12")


def rendering(tmp_path: Path) -> Synth:
    """Three libraries around one kernel: busy 0-300, 350-400, 500-650, 700-720."""
    synth = Synth(tmp_path / "r.sqlite").process(100).gpu().kernel("k", 350, 400)
    synth.render("OPENGL", 0, 200, call="glXSwapBuffers")
    synth.render("VULKAN", 100, 300, call="vkQueueSubmit").render(
        "VULKAN", 100, 290, marker="shadow"
    )
    return synth.render("DX12", 500, 650, call="ExecuteCommandLists").render("OPENGL", 700, 720)


def test_a_gpu_that_renders_is_busy(tmp_path: Path) -> None:
    path = rendering(tmp_path).write()
    tables = ("CUPTI_ACTIVITY_KIND_KERNEL", *(f"{name}_WORKLOAD" for name in LIBRARIES))
    rows = [row for table in tables for row in query(path, f"SELECT start, end FROM {table}")]
    covered = {instant for start, end in rows for instant in range(start, end)}
    with closing(open_report(path, use_cache=False)) as report:
        (split,) = overview(report).devices
    assert split.busy_ns == split.compute_ns == len(covered) == 520
    assert split.kernel_count == 1
    assert split.operation_count == 5  # the marker is around work that is there already
    assert split.sum_ns == 50 + 200 + 200 + 150 + 20


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_report_of_graphics_alone_has_gpu_work(tmp_path: Path, library: str) -> None:
    path = Synth(tmp_path / "r.sqlite").process(100).render(library, 10, 30, call="draw").write()
    with closing(open_report(path, use_cache=False)) as report:
        (split,) = overview(report).devices
        (stream,) = report.operations.streams
        (name,) = report.operations.names
    assert split.busy_ns == 20
    assert (stream.label, name.short) == (name.short[1:-1].removesuffix(" draw"), name.demangled)


def test_rendering_is_no_graph_and_is_not_said_to_lack_a_launch(tmp_path: Path) -> None:
    path = rendering(tmp_path).write()
    with closing(open_report(path, use_cache=False)) as report:
        ops, _ = report.operations, report.api  # launches are told only where calls are loaded
        told = [dict(facts_of(report, ops, row, "short", str).facts) for row in range(len(ops))]
    assert [("launch" in facts, "note" in facts) for facts in told].count((True, False)) == 1


@pytest.mark.parametrize("kernel", [False, True])
def test_idle_time_of_a_gpu_that_renders_is_not_said_to_lack_cuda(
    tmp_path: Path, kernel: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100)
    for at in range(0, 20_000_000, 1_000_000):
        synth.render("VULKAN", at, at + 100_000, call="vkQueueSubmit")
        if kernel:
            synth.kernel("k", at + 200_000, at + 400_000)
    with closing(open_report(synth.write(), use_cache=False)) as report:
        line = verdict(case := Case(report), find_in(case))
    why = "no CUDA API calls" if kernel else "graphics calls are not tied to their work"
    assert f"is idle cannot be said: {why}" in line


def test_work_of_no_known_gpu_is_left_out_and_told(tmp_path: Path) -> None:
    synth = rendering(tmp_path).render("VULKAN", 400, 500, gpu=None)
    with closing(open_report(synth.write(), use_cache=False)) as report:
        (split,) = overview(report).devices
        notes = report.notes.texts
    assert split.busy_ns == 520
    assert "1 row with NULL in `gpu` of VULKAN_WORKLOAD left out" in notes


def test_a_renamed_column_switches_all_gpu_work_off(tmp_path: Path) -> None:
    synth = rendering(tmp_path).sql("ALTER TABLE VULKAN_WORKLOAD RENAME COLUMN gpu TO gpuIndex")
    with closing(open_report(synth.write(), use_cache=False)) as report:
        assert overview(report).devices == ()
        assert "VULKAN_WORKLOAD" in report.gpu_doubt


def test_markers_on_the_gpu_are_still_a_summary_of_their_own(tmp_path: Path) -> None:
    with closing(open_report(rendering(tmp_path).write(), use_cache=False)) as report:
        table = run_report(report, "vulkan_gpu_marker_sum")
    assert list(table.data[-1]) == ["shadow"]


def test_a_gpu_that_renders_is_not_judged_by_one_that_computes(tmp_path: Path) -> None:
    """It is neither slow nor held up by CUDA calls, and no trace of CUDA tells why it is idle."""
    ms = 1_000_000
    synth = Synth(tmp_path / "r.sqlite").process(100).gpu().gpu(1, cu_device=1)
    for frame in range(20):
        at = (10 * frame + frame**2 % 7) * ms  # Equal frames would keep a rate, which is no fault.
        synth.launch("gemm", (at, at + 100), (at + 200, at + 9 * ms))
        synth.api("cudaDeviceSynchronize", at + 300, at + 9 * ms)
        synth.render("VULKAN", at, at + ms, gpu=1, call="vkQueueSubmit")
    with closing(open_report(synth.write(), use_cache=False)) as report:
        found = find(report)
    assert "gpu_imbalance" not in {one.rule for one in found}
    assert [one for one in found if one.device == 1 and one.rule != "gpu_idle"] == []
    (idle,) = (one for one in found if one.rule == "gpu_idle" and one.device == 1)
    assert "frame loop" in idle.advice
    assert "--trace=cuda" not in idle.advice + idle.settle
    assert idle.saved_ns == 0


@pytest.mark.parametrize(("other", "told"), [("gemm", True), ("softmax", False)])
def test_only_gpus_that_do_the_same_are_compared(tmp_path: Path, other: str, told: bool) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100).gpu().gpu(1, cu_device=1)
    for step in range(20):
        at = step * 10_000_000
        synth.kernel("gemm", at, at + 9_000_000).kernel(other, at, at + 4_000_000, device=1)
    with closing(open_report(synth.write(), use_cache=False)) as report:
        rules = {one.rule for one in find(report)}
    assert ("gpu_imbalance" in rules) == told
