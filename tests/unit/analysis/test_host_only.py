"""Where the host's time goes in a report without GPU work: planted runs and near misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

MS = 1_000_000


def looked_at(synth: Synth, scope: Scope | None = None) -> tuple[list[Finding], str]:
    case = Case(open_report(synth.write()), scope)
    found = find_in(case)
    return [one for one in found if one.rule == "host_only"], verdict(case, found)


def loader(path: Path, *, steps: int = 4, reading: int = 30, on_cpu: bool = True) -> Synth:
    """Steps of 100 ms: 60 in ``load``, ``reading`` of them a read, 40 in ``fit``, 35 on a CPU."""
    synth = Synth(path / "r.sqlite").process(10).session(duration=steps * 100 * MS)
    for step in range(steps):
        at = step * 100 * MS
        synth.nvtx(f"step {step}", at, at + 100 * MS)
        synth.nvtx("load", at, at + 60 * MS).nvtx("fit", at + 60 * MS, at + 100 * MS)
        synth.osrt("read", at + 5 * MS, at + (5 + reading) * MS)
        if on_cpu:
            synth.sched(at + 64 * MS, True).sched(at + 99 * MS, False)
    return synth


def test_ranges_are_ranked_by_their_own_time_with_what_the_thread_did(tmp_path: Path) -> None:
    found, line = looked_at(loader(tmp_path, reading=50))
    assert [one.title for one in found] == [
        "load: 240.0 ms, 60.0% of the time in NVTX ranges; 83.3% I/O: read",
        "fit: 160.0 ms, 40.0% of the time in NVTX ranges; 87.5% on a CPU",
    ]
    assert found[0].window == (0, 60 * MS)
    assert found[0].advice.startswith("of a file: read ahead")
    assert line == (
        "Host: load 60.0% (83.3% I/O: read), fit 40.0% (87.5% on a CPU)."
        " GPU: no kernels in this report: "
        "record with nsys profile --trace=cuda"
    )


def test_a_wait_for_somebody_else_is_no_reading(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).nvtx("serve", 0, 100 * MS)
    synth.osrt("poll", 0, 60 * MS).osrt("read", 60 * MS, 90 * MS)
    (found,), _ = looked_at(synth)
    assert found.title.endswith("; 60.0% wait: poll, 30.0% I/O")
    assert found.advice.startswith("no fault where nothing was due")


def test_a_title_of_long_names_keeps_to_its_length(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.nvtx("prepare_distributed_dataset", 0, 300 * MS)
    synth.mpi("MPI_Neighbor_alltoallv", 0, 160 * MS)
    synth.overhead("CUDA profiling data flush", 160 * MS, 300 * MS)
    (found,), _ = looked_at(synth)
    assert found.title == (
        "prepare_distributed_dataset: 300.0 ms, 100.0% of the time in NVTX ranges; 53.3% in a call"
    )


def test_what_nothing_witnesses_is_not_named(tmp_path: Path) -> None:
    found, _ = looked_at(loader(tmp_path, reading=1, on_cpu=False))
    assert [one.title for one in found] == [
        "load: 240.0 ms, 60.0% of the time in NVTX ranges",
        "fit: 160.0 ms, 40.0% of the time in NVTX ranges",
    ]
    assert found[0].advice == "record what it does: --sample=process-tree --cpuctxsw=process-tree"


def test_what_the_capture_asked_for_is_not_asked_for_again(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(duration=100 * MS).process(10)
    synth.meta("PROCESS_0:COLLECT_NVTX_TRACE", "true", capture=True)
    synth.mpi("MPI_Init", 0, 5 * MS, "other").mpi("MPI_Barrier", 90 * MS, 100 * MS)
    (found,), _ = looked_at(synth)
    assert found.advice == (
        "record what it does: --trace=cuda,nvtx,osrt --sample=process-tree --cpuctxsw=process-tree"
    )


@pytest.mark.parametrize(
    ("osrt", "advice"), [(False, "see in which call it waits"), (True, "in no recorded call")]
)
def test_off_the_cpu_asks_for_calls_only_where_none_were_recorded(
    tmp_path: Path, osrt: bool, advice: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.nvtx("solve", 0, 100 * MS).sched(0, True).sched(20 * MS, False).sched(99 * MS, True)
    if osrt:
        synth.osrt("read", 1 * MS, 2 * MS)
    (found,), _ = looked_at(synth)
    assert found.title.endswith("79.0% off the CPU")
    assert found.advice.startswith(advice)


@pytest.mark.parametrize("frame", ["wait_for_flag", "[unknown]"])
def test_what_a_thread_computes_is_named_though_it_is_mostly_off_the_cpu(
    tmp_path: Path, frame: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.nvtx("solve", 0, 100 * MS).sched(0, True).sched(20 * MS, False).sched(99 * MS, True)
    for at in range(12):
        synth.sample(at * MS, (frame,), module="solver")
    (found,), _ = looked_at(synth)
    named = ", 21.0% on a CPU: wait_for_flag" if frame == "wait_for_flag" else ""
    assert found.title.endswith(f"79.0% off the CPU{named}")


def test_a_second_state_that_has_much_of_the_time_is_told_too(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.nvtx("solve", 0, 100 * MS).sched(0, True).sched(40 * MS, False).sched(99 * MS, True)
    synth.osrt("clock_nanosleep", 65 * MS, 99 * MS)
    (found,), _ = looked_at(synth)
    assert found.title.endswith("; 41.0% on a CPU, 34.0% sleep, 25.0% off the CPU")


def test_a_window_cuts_ranges(tmp_path: Path) -> None:
    found, _ = looked_at(loader(tmp_path), Scope(window=(0, 80 * MS)))
    assert [one.title.partition(",")[0] for one in found] == ["load: 60.00 ms", "fit: 20.00 ms"]


@pytest.mark.parametrize(("call", "advice"), [("read", "of a pipe"), ("pread", "or write ahead")])
def test_only_what_cannot_be_a_pipe_is_told_as_a_file(
    tmp_path: Path, call: str, advice: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    (found,), _ = looked_at(synth.nvtx("get batch", 0, 90 * MS).osrt(call, 0, 80 * MS))
    assert advice in found.advice


@pytest.mark.parametrize("crowded", [True, False])
def test_off_the_cpu_while_own_threads_have_all_cpus(tmp_path: Path, crowded: bool) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.nvtx("solve", 0, 100 * MS).osrt("open", 1 * MS, 2 * MS)
    synth.sched(0, True, cpu=0).sched(20 * MS, False, cpu=0).sched(99 * MS, True, cpu=0)
    until = 99 if crowded else 30
    synth.sched(20 * MS, True, tid=11, cpu=0).sched(until * MS, False, tid=11, cpu=0)
    (found,), _ = looked_at(synth)
    assert found.title.endswith("79.0% off the CPU")
    assert found.advice.startswith("other threads have" if crowded else "in no recorded call")


@pytest.mark.parametrize(("held_ms", "told"), [(60, True), (40, False)])
def test_a_thread_that_locks_hold_for_half_of_its_time_is_told_beside_the_one_that_ran(
    tmp_path: Path, held_ms: int, told: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).thread(10, "main").thread(11, "holder")
    synth.session(duration=100 * MS).sched(0, True).sched(10 * MS, False)
    synth.osrt("pthread_mutex_lock", 10 * MS, (10 + held_ms) * MS)
    synth.sched(99 * MS, True).sched(100 * MS, False)
    synth.sched(0, True, tid=11).sched(90 * MS, False, tid=11)
    found, _ = looked_at(synth)
    assert any("60.0% lock: pthread_mutex" in one.title for one in found) == told
    assert any(one.title.startswith("holder") for one in found)


def test_the_threads_of_nsys_itself_are_not_told(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).thread(10, "reader").thread(11, "[NSys]")
    synth.session(duration=100 * MS).sched(0, True).sched(60 * MS, False)
    found, _ = looked_at(synth.sched(0, True, tid=11).sched(90 * MS, False, tid=11))
    assert [one.title for one in found] == ["reader: 60.00 ms; 100.0% on a CPU"]


def test_threads_that_ran_about_as_long_are_told_together(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    for tid, until in ((11, 100), (12, 51), (13, 49), (14, 24)):
        synth.thread(tid, "worker").sched(0, True, tid=tid).sched(until * MS, False, tid=tid)
    (found,), _ = looked_at(synth)
    assert found.title == "3 threads of worker: 200.0 ms; 100.0% on a CPU"


def test_where_nothing_tells_which_thread_ran_the_calls_of_one_are_told(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).thread(10, "poller")
    synth.session(duration=100 * MS).osrt("nanosleep", 0, 60 * MS).osrt("open", 98 * MS, 99 * MS)
    synth.osrt("close", 0, 1 * MS, tid=12)
    (found,), _ = looked_at(synth)
    assert found.title == "poller: 99.00 ms; 60.6% sleep: nanosleep"


def test_without_ranges_it_is_the_thread_that_ran_longest(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).thread(10, "solver")
    synth.session(duration=100 * MS).sched(0, True).sched(20 * MS, False).sched(99 * MS, True)
    synth.sched(100 * MS, False).osrt("nanosleep", 20 * MS, 99 * MS)
    found, _ = looked_at(synth)
    assert [one.title for one in found] == ["solver: 100.0 ms; 79.0% sleep: nanosleep"]


def test_a_thread_counts_from_when_it_was_first_seen_to_when_it_was_last(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).thread(10, "worker")
    synth.session(duration=1000 * MS).sched(400 * MS, True).sched(500 * MS, False)
    synth.osrt("sem_wait", 500 * MS, 600 * MS).sched(600 * MS, True).sched(610 * MS, False)
    (found,), _ = looked_at(synth)
    assert found.title == "worker: 210.0 ms; 52.4% on a CPU, 47.6% wait"
    assert found.window == (400 * MS, 610 * MS)


def test_without_ranges_ranks_are_told_by_their_mpi_calls(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(duration=500 * MS)
    for rank in (0, 1):
        synth.process(10 + rank, "solver").mpi_rank(rank)
        synth.mpi("MPI_Init", 0, 10 * MS, "other")
        synth.mpi("MPI_Barrier", (40 + 40 * rank) * MS, 100 * MS)
    found, line = looked_at(synth)
    assert [one.title for one in found] == [
        "2 threads of solver: 200.0 ms; 50.0% in a call, most in MPI_Barrier"
    ]
    assert "which rank comes late" in found[0].advice
    assert line.startswith("Host: 2 threads of solver (50.0% in a call, most in MPI_Barrier)")


def test_where_a_window_has_no_ranges_it_is_not_told_as_time_in_ranges(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.nvtx("setup", 0, 10 * MS).sched(20 * MS, True).sched(90 * MS, False)
    (found,), _ = looked_at(synth, Scope(window=(50 * MS, 90 * MS)))
    assert found.title.endswith(": 40.00 ms; 100.0% on a CPU")


@pytest.mark.parametrize("of_cuda", [False, True])
def test_of_a_call_longer_than_the_window_only_that_counts(tmp_path: Path, of_cuda: bool) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    if of_cuda:
        synth.api("cudaFree", 10 * MS, 95 * MS)
    else:
        synth.osrt("read", 10 * MS, 95 * MS)
    (found,), _ = looked_at(synth, Scope(window=(50 * MS, 90 * MS)))
    assert found.stake_ns == found.of_ns == 40 * MS
    assert found.window == (50 * MS, 90 * MS)


def test_calls_that_take_no_time_are_no_time_of_a_thread(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.osrt("read", 10 * MS, 10 * MS)
    assert looked_at(synth)[0] == []


@pytest.mark.parametrize(
    ("helper_ms", "told"),
    [
        (40, ["solve: 200.0 ms, 100.0% of the time in NVTX ranges"]),
        (
            60,
            [
                "solve: 200.0 ms, 62.5% of the time in NVTX ranges",
                "helper: 120.0 ms, 37.5% of the time in NVTX ranges",
            ],
        ),
    ],
)
def test_of_each_process_the_threads_with_most_time_in_ranges_count(
    tmp_path: Path, helper_ms: int, told: list[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(duration=100 * MS)
    for rank in (1, 2):
        synth.process(10 * rank).mpi_rank(rank - 1).nvtx("solve", 0, 100 * MS)
        synth.nvtx("helper", 0, helper_ms * MS, tid=99)
    found, _ = looked_at(synth)
    assert [one.title.partition(";")[0] for one in found] == told


@pytest.mark.parametrize("gpu_ns", [1, 50 * MS])
def test_with_gpu_work_the_rule_is_silent(tmp_path: Path, gpu_ns: int) -> None:
    synth = loader(tmp_path).launch("k", call=(10, 20), gpu=(30, 30 + gpu_ns))
    found, line = looked_at(synth)
    assert found == []
    assert not line.startswith("Host")


@pytest.mark.parametrize("calls", [True, False])
def test_a_thread_that_calls_cuda_stands_for_a_program_rather_than_one_that_only_waits(
    tmp_path: Path, calls: bool
) -> None:
    """No kernel was recorded: a helper's one wait is no part of the run, with calls or without."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.thread(10, "server").thread(11, "helper").osrt("sem_timedwait", 0, 100 * MS, tid=11)
    synth.osrt("ioctl", 10 * MS, 12 * MS, tid=10)
    if calls:
        synth.api("cuModuleLoad", 10 * MS, 78 * MS).api("cuLaunchKernel", 78 * MS, 90 * MS)
    (one,) = looked_at(synth)[0]
    assert one.title == (
        "server: 80.00 ms; 85.0% module load or JIT: cuModuleLoad" if calls else "server: 100.0 ms"
    )


@pytest.mark.parametrize(
    ("call", "first", "severity", "advice"),
    [
        ("cudaMalloc_v3020", True, "low", "leave it out of what you measure"),
        ("cudaGetDeviceCount_v3020", True, "low", "leave it out of what you measure"),
        ("cudaMalloc_v3020", False, "high", "allocate less, or once for many runs"),
        ("cudaHostAlloc_v3020", False, "high", "allocate less, or once for many runs: pinned"),
    ],
)
def test_the_first_call_of_a_process_sets_cuda_up(
    call: str, first: bool, severity: str, advice: str, tmp_path: Path
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(duration=100 * MS)
    synth.api("cuInit" if first else "cudaFree_v3020", 0, 10_000)
    synth.api(call, MS, 91 * MS).api("cudaFree_v3020", 92 * MS, 93 * MS)
    (one, *_), line = looked_at(synth)
    assert one.severity == severity
    assert one.advice.startswith(advice)
    assert advice.endswith("pinned") or "pinned" not in one.advice
    assert ("sets CUDA up" in line) is first


@pytest.mark.parametrize("main", [True, False])
def test_without_cuda_calls_the_main_thread_stands_for_a_program_if_it_is_seen(
    tmp_path: Path, main: bool
) -> None:
    """Workers of a pool wait all the time; the main thread computes between short calls."""
    synth = Synth(tmp_path / "r.sqlite").process(10, "python").session(duration=100 * MS)
    synth.thread(10, "main").thread(12, "worker")
    for number in range(50 * main):
        synth.osrt("read", number * 2 * MS, number * 2 * MS + 40_000, tid=10)
    synth.osrt("pthread_cond_wait", MS, 90 * MS, tid=12)
    (one,) = looked_at(synth)[0]
    assert one.title.startswith("main: 98.04 ms" if main else "worker: 89.00 ms; 100.0% wait")
    assert one.advice.startswith("record what it does") is main


@pytest.mark.parametrize(("returned", "lost"), [(0, True), (98, False)])
def test_launches_of_which_no_kernel_is_recorded_come_before_what_the_host_did(
    tmp_path: Path, returned: int, lost: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "fit").nvtx("step", 0, 50 * MS)
    for number in range(50):
        synth.api("cudaLaunchKernel_v7000", number * MS, number * MS + 5000, returned=returned)
    first = find_in(Case(open_report(synth.write())))[0]
    assert first.rule == ("data_loss" if lost else "failed_calls")
    assert first.title.startswith("50 calls asked for GPU work, none") is lost


@pytest.mark.parametrize(("own", "spread"), [(False, True), (True, False)])
def test_what_is_spread_over_threads_already_is_not_told_to(
    tmp_path: Path, own: bool, spread: bool
) -> None:
    """Eight threads of one process compute at once, or the main threads of eight do."""
    synth = Synth(tmp_path / "r.sqlite")
    for number in range(8):
        synth.process(10 + number * own, "solve").thread(tid := 10 + number, "solve")
        synth.sched(0, True, tid=tid, cpu=number).sched(900 * MS, False, tid=tid, cpu=number)
    (one,), _ = looked_at(synth)
    assert one.title.startswith("8 threads of solve")
    assert ("spread it over more threads" not in one.advice) is spread
