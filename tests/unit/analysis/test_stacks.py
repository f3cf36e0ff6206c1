from __future__ import annotations

import itertools
import sqlite3
from typing import TYPE_CHECKING

import pytest
from paths import goldens, needs_logs, needs_reports, report_paths
from stack_making import folded
from synth import Synth

from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.analysis.stacks.folding import (
    StackSource,
    call_stacks,
    cpu_stacks,
    gpu_stacks,
    range_stacks,
)
from nsys_tui.analysis.stacks.frame_rules import FrameRules
from nsys_tui.analysis.stacks.sources import NO_CALL, OWN_CODE, switch_stacks
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.export.folded import folded_lines
from nsys_tui.model.kinds import Kind
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.stacks.folding import Stacks
    from nsys_tui.model.report import Report


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "report.sqlite").process(1000)


def lines(stacks: Stacks) -> list[str]:
    return list(folded_lines(stacks.tree))


def micro(synth: Synth) -> Report:
    """The five launches of one llm.c step whose folded sums are known by hand."""
    for name, start, end in (
        ("Train step 0", 0, 1000),
        ("validation", 10, 100),
        ("gpt2_forward", 110, 500),
        ("Layer 0", 120, 300),
        ("LayerNorm fwd", 310, 480),
    ):
        synth.nvtx(name, start, end)
    for start, corr in ((20, 1), (130, 2), (320, 3), (340, 4), (360, 5)):
        synth.api("cudaLaunchKernel_v7000", start, start + 10, corr=corr)
    synth.kernel("gemm(float*)", 1000, 1100, corr=1).kernel("gemm(float*)", 1200, 1500, corr=2)
    synth.kernel("ln;k", 1600, 1650, corr=3).memcpy(1700, 1707, corr=4)
    return open_report(synth.write())


def test_host_time_of_ranges_is_theirs_without_what_lies_inside(synth: Synth) -> None:
    report = micro(synth)
    assert sorted(lines(range_stacks(report))) == [
        "Train step 0 520",
        "Train step 0;gpt2_forward 40",
        "Train step 0;gpt2_forward;Layer 0 180",
        "Train step 0;gpt2_forward;LayerNorm fwd 170",
        "Train step 0;validation 90",
    ]
    clipped = range_stacks(report, Scope((50, 200)), rules=FrameRules().without_layers())
    assert sorted(lines(clipped)) == [
        "Train step 0 10",
        "Train step 0;gpt2_forward 90",
        "Train step 0;validation 50",
    ]


@needs_reports
def test_host_time_of_ranges_adds_up_to_their_self_time() -> None:
    told = 0
    for path in report_paths():
        report = open_report(path)
        if len(report.ranges) and not report.ranges.open.any():
            stacks, paths = range_stacks(report), nvtx_paths(report)
            assert int(stacks.tree.weight[0]) == int(paths.self_time[paths.node >= 0].sum())
            told += 1
    assert told >= 2


LLM_C = FrameRules().without_layers().without_steps().without_validation()


@needs_logs
def test_llm_c_step_folds_to_the_known_sums(synth: Synth) -> None:
    report = micro(synth)
    stacks = gpu_stacks(report, rules=LLM_C)
    assert lines(stacks) == [
        "gpt2_forward;LayerNorm fwd;[CUDA memcpy Host-to-Device] 7",
        "gpt2_forward;LayerNorm fwd;ln_k 50",
        "gpt2_forward;gemm(float*) 300",
    ]
    golden = goldens()["flame_micro_case"]
    assert stacks.tree.self_weight.sum() == golden["total_ns_validation_dropped"]
    kept = gpu_stacks(report, rules=FrameRules().without_layers())
    assert kept.tree.self_weight.sum() == golden["total_ns_all"]
    assert "Train step 0;validation;gemm(float*) 100" in lines(kept)


def test_each_rule_changes_the_result(synth: Synth) -> None:
    report = micro(synth)
    plain = lines(gpu_stacks(report))
    assert "Train step 0;gpt2_forward;Layer 0;gemm(float*) 300" in plain
    for rules in (
        FrameRules().without_layers(),
        FrameRules().without_steps(),
        FrameRules().without_validation(),
        FrameRules().with_strip("^gpt2"),
        FrameRules().with_drop("LayerNorm"),
        FrameRules().with_rename(r"\d+", "N"),
    ):
        assert lines(gpu_stacks(report, rules=rules)) != plain


def test_a_kernel_named_validation_is_not_dropped(synth: Synth) -> None:
    synth.nvtx("step", 0, 50).api("cudaLaunchKernel_v7000", 10, 20, corr=1)
    report = open_report(synth.kernel("validation_loss", 100, 130, corr=1).write())
    assert lines(gpu_stacks(report, rules=LLM_C)) == ["step;validation_loss 30"]


def test_unattributed_work_has_roots_of_its_own(synth: Synth) -> None:
    synth.api("cudaLaunchKernel_v7000", 10, 20, corr=1).kernel("called", 100, 130, corr=1)
    report = open_report(synth.kernel("uncalled", 200, 250, corr=9).write())
    assert lines(gpu_stacks(report)) == [
        "[no API call];uncalled 50",
        "[no NVTX range];called 30",
    ]


def test_backward_work_is_credited_across_threads_and_marked(synth: Synth) -> None:
    synth.nvtx("step", 0, 100, tid=1).nvtx("short", 0, 60, tid=2).thread(3, "autograd")
    synth.api("cudaLaunchKernel_v7000", 50, 55, tid=3, corr=1).kernel("bwd", 200, 240, corr=1)
    synth.api("cudaLaunchKernel_v7000", 150, 155, tid=3, corr=2).kernel("late", 300, 310, corr=2)
    report = open_report(synth.write())
    assert lines(gpu_stacks(report)) == ["[no NVTX range];bwd 40", "[no NVTX range];late 10"]
    assert lines(gpu_stacks(report, across_threads=True)) == [
        "[no NVTX range];late 10",
        "~step;bwd 40",
    ]


def test_ranges_of_another_process_never_lend_their_path(synth: Synth) -> None:
    synth.process(2000).nvtx("other", 0, 100)
    synth.process(1000).api("cudaLaunchKernel_v7000", 50, 55, corr=1).kernel("k", 60, 70, corr=1)
    stacks = gpu_stacks(open_report(synth.write()), across_threads=True)
    assert lines(stacks) == ["[no NVTX range];k 10"]


def test_window_clips_operations_at_its_edges(synth: Synth) -> None:
    synth.kernel("a", 0, 100).kernel("b", 150, 250).kernel("c", 300, 400)
    stacks = gpu_stacks(open_report(synth.write()), Scope(window=(50, 200)))
    assert lines(stacks) == ["[no API call];a 50", "[no API call];b 50"]


def test_domain_stands_before_the_name_of_its_ranges(synth: Synth) -> None:
    synth.domain(1, "NCCL").nvtx("step", 0, 100).nvtx("AllReduce", 10, 90, domain=1)
    synth.api("cudaLaunchKernel_v7000", 20, 30, corr=1).kernel("k", 60, 70, corr=1)
    assert lines(gpu_stacks(open_report(synth.write()))) == ["step;NCCL:AllReduce;k 10"]


def test_samples_fold_by_call_chain_outermost_first(synth: Synth) -> None:
    synth.sample(10, ("leaf", "middle", "main")).sample(20, ("leaf", "middle", "main"))
    synth.sample(30, ("main",))
    stacks = cpu_stacks(open_report(synth.write()))
    assert lines(stacks) == ["main 1", "main;middle;leaf 2"]
    assert stacks.tree.unit == "samples"


def test_os_calls_fold_by_backtrace_and_nested_ones_count_once(synth: Synth) -> None:
    synth.osrt("read", 10, 40, frames=("read", "load", "main"))
    synth.osrt("ioctl", 15, 20, nesting=1, frames=("ioctl", "read"))
    stacks = call_stacks(open_report(synth.write()), StackSource.OSRT)
    assert lines(stacks) == ["main;load;read;read 30"]


def test_lost_callers_are_counted_and_explained(synth: Synth) -> None:
    synth.sample(10, ("leaf", "[Broken backtraces]")).sample(20, ("leaf", "main"))
    synth.sample(30, ("other", "main")).sample(40, ("other", "[Broken backtraces]"))
    (note,) = cpu_stacks(open_report(synth.write())).notes
    assert note.startswith("50.0% of the samples are under [Broken backtraces], its callers lost")
    assert "frame pointers" in note


def test_callers_that_begin_where_a_program_or_thread_does_are_not_lost(synth: Synth) -> None:
    synth.sample(10, ("leaf", "main", "_start", "[Broken backtraces]"))
    synth.sample(20, ("leaf", "start_thread", "__GI___clone3", "[Broken backtraces]"))
    assert cpu_stacks(open_report(synth.write())).notes == ()
    synth.sample(30, ("leaf", "main", "[Broken backtraces]"))
    synth.sample(40, ("_start", "leaf", "[Broken backtraces]"))
    (note,) = cpu_stacks(open_report(synth.write())).notes
    assert note.startswith("50.0% of the samples")


def test_nothing_to_fold_says_what_would_record_it(synth: Synth) -> None:
    report = open_report(synth.nvtx("only", 0, 10).write())
    with pytest.raises(NoDataError, match="--trace=cuda"):
        gpu_stacks(report)
    with pytest.raises(NoDataError, match="--sample"):
        cpu_stacks(report)
    with pytest.raises(NoDataError, match="--cudabacktrace"):
        call_stacks(report, StackSource.CUDA)


def test_a_bad_pattern_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="regular expression"):
        FrameRules().with_strip("(")


def test_a_bad_replacement_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot become"):
        FrameRules().with_rename("(a)", r"\9")


def test_longest_event_below_a_node(synth: Synth) -> None:
    synth.kernel("a", 0, 10).kernel("b", 20, 100).kernel("a", 200, 230)
    report = open_report(synth.write())
    stacks = gpu_stacks(report)
    assert stacks.longest(report.operations, 0) == 1
    (node,) = [n for n in range(len(stacks.tree.trie)) if stacks.tree.trie.path(n)[-1:] == ("a",)]
    assert stacks.longest(report.operations, node) == 2


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_folded_total_is_the_sum_of_all_operations(path: Path) -> None:
    expected = goldens()["reports"].get(path.name, {}).get("gpu_operations_total_ns")
    if not expected:
        pytest.skip(f"{path.name} has no golden total")
    report = open_report(path)
    graphs = sum(
        end - start
        for start, end in zip(
            *(report.rows(Kind.GRAPH, "start", "end").lists()),
            strict=True,
        )
    )
    for across in (False, True):
        folded = lines(gpu_stacks(report, across_threads=across))
        assert sum(int(line.rpartition(" ")[2]) for line in folded) == expected + graphs


@needs_reports
@pytest.mark.parametrize("name", ["cloverleaf-a100-2024.5", "uvm-migration-2025.1"])
def test_time_off_the_cpu_is_that_between_the_switches(name: str) -> None:
    (path,) = (path for path in report_paths() if path.stem == name)
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as connection:
        rows = connection.execute(
            "SELECT globalTid, start, isSchedIn FROM SCHED_EVENTS ORDER BY 1, 2"
        ).fetchall()
    pairs = [(a, b) for a, b in itertools.pairwise(rows) if a[0] == b[0] and b[2] and not a[2]]
    report = open_report(path, use_cache=False)
    lo, hi = report.extent
    stacks = switch_stacks(report)
    assert stacks.tree.weight[0] == sum(min(b[1], hi) - max(a[1], lo) for a, b in pairs)
    of_calls = {frames[-1]: 0 for frames, _ in folded(stacks.tree)}
    for frames, weight in folded(stacks.tree):
        of_calls[frames[-1]] += weight
    assert of_calls["poll"] > 0
    assert NO_CALL in of_calls
    on = [(a, b) for a, b in itertools.pairwise(rows) if a[0] == b[0] and a[2] and not b[2]]
    on += [(a, (0, hi)) for a, b in itertools.pairwise([*rows, (-1,)]) if a[0] != b[0] and a[2]]
    running = switch_stacks(report, on=True)
    assert running.tree.weight[0] == sum(min(b[1], hi) - max(a[1], lo) for a, b in on)
    assert OWN_CODE in {frames[-1] for frames, _ in folded(running.tree)}


def test_addresses_without_a_symbol_are_named_by_their_library(synth: Synth) -> None:
    for frames in (("0x7f01", "0x7f02", "main"), ("0x7f03", "main"), ("0x7f04", "f", "0x7f05")):
        synth.sample(100, frames, module="/usr/lib64/libcuda.so.1")
    report = open_report(synth.write(), use_cache=False)
    apart = cpu_stacks(report, rules=FrameRules(addresses=True))
    assert "main;0x7f02;0x7f01 1" in lines(apart)
    assert lines(cpu_stacks(report)) == [
        "[libcuda.so.1];f;[libcuda.so.1] 1",
        "main;[libcuda.so.1] 2",
    ]
