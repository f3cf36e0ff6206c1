"""Every rule on a run that must trigger it, and on one that nearly does and must not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import planted_hpc as hpc
import planted_programs as programs
import planted_training as training
import pytest
from machine import Machine
from planted import (
    FULL,
    MS,
    PLANTED,
    STEPS,
    US,
    WORTH_FIXING,
    bare,
    clocked,
    copy_bound,
    dropped_events,
    flushed,
    late_rank,
    lost_events,
    migrating,
    one_kernel,
    one_name_sleeping,
    prefetching,
    reading_rank,
    reading_step,
    same_upload,
    sleeping_host,
    slow_gpu,
    slow_step,
    steps,
    told,
    whole_nevertheless,
)
from synth import Synth

from nsys_tui.analysis.diagnostics import loss
from nsys_tui.analysis.iterations.table import iteration_table
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Confidence, Severity
from nsys_tui.analysis.rules.not_looked_at import not_looked_at
from nsys_tui.analysis.rules.ranking import find_in, ranked
from nsys_tui.analysis.rules.verdict import (
    COMPUTE,
    HOST,
    ONCE,
    RANKS,
    RENDERING,
    REQUESTS,
    bound_line,
    parts,
    verdict,
)
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report
from nsys_tui.units import format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


RUNS = [
    pytest.param(rule, run, wanted, id=f"{rule}-{run.__name__}")
    for rule, planted in PLANTED.items()
    for runs, wanted in ((planted.triggers, True), (planted.near, False))
    for run in runs
]


def case_of(run: Callable[[Path], Synth], folder: Path) -> Case:
    return Case(open_report(run(folder / "r.sqlite").write(), use_cache=False))


@pytest.mark.parametrize(("rule", "run", "wanted"), RUNS)
def test_a_rule_finds_what_is_planted_and_nothing_else(
    rule: str, run: Callable[[Path], Synth], wanted: bool, tmp_path: Path
) -> None:
    case = case_of(run, tmp_path)
    assert (rule in told(case)) is wanted


def test_waiting_for_a_late_rank_is_no_fault_of_the_transfer(tmp_path: Path) -> None:
    found = find_in(case_of(late_rank, tmp_path))
    (one,) = [one for one in found if one.rule == "exposed_communication"]
    assert one.title == (
        "GPU 0: 60.00 ms of communication exposed, 40.00 ms of it waiting, mostly for GPU 1"
    )
    assert one.subject == "waiting for GPU 1 in collectives"
    assert one.saved_ns == 40 * MS


def test_hiding_communication_gives_no_more_than_the_busiest_gpu_lets_it(tmp_path: Path) -> None:
    found = find_in(case_of(slow_gpu, tmp_path))
    (one,) = [one for one in found if one.rule == "exposed_communication"]
    assert (one.stake_ns, one.saved_ns) == (STEPS * 2 * MS, STEPS * MS)  # GPU 1 computes 9 of 10


def test_waiting_in_mpi_costs_what_the_rank_waits_that_waits_least(tmp_path: Path) -> None:
    found = {
        run: next(one for one in find_in(case_of(run, tmp_path)) if "MPI_Barrier" in one.title)
        for run in (hpc.late_by_turns, hpc.often_late, hpc.imbalanced, hpc.checkpointing)
    }
    by_turns, behind = found[hpc.late_by_turns], found[hpc.imbalanced]
    assert by_turns.late == found[hpc.often_late].late == -1
    assert 12 * 2 * MS < by_turns.saved_ns < 14 * 2 * MS  # 13 of 20 steps, or 14, wait 2 ms
    assert (behind.late, behind.same_as) == (2, "GPU 2 slower than the others")
    assert behind.advice == "see what the rank of GPU 2 does before: the others wait for it"
    assert found[hpc.checkpointing].same_as == "idle, I/O: pwrite64"


def test_copies_of_both_directions_and_kernels_may_run_at_once(tmp_path: Path) -> None:
    (one,) = [o for o in find_in(case_of(hpc.both_ways, tmp_path)) if o.rule == "exposed_copies"]
    assert one.stake_ns == pytest.approx(20 * 2 * 3 * MS, rel=0.01)  # and their calls
    assert one.saved_ns == one.stake_ns - (20 * 3 - 20 * 2) * MS  # one direction takes 60 ms


@pytest.mark.parametrize(
    ("slow", "costs"), [(80 * US, "28.80 ms"), (400 * US, "131.2 ms"), (1200 * US, "260.5 ms")]
)
def test_small_copies_cost_what_the_host_is_late_by_after_them_as_far_as_waits_hide_it(
    tmp_path: Path, slow: int, costs: str
) -> None:
    """Without them the host launches ahead, unless it is slower than the GPU itself."""
    case = case_of(lambda path: training.items(path, slow=slow), tmp_path)
    (one,) = [o for o in find_in(case) if o.rule == "small_copies"]
    assert one.title.endswith(f"idle {costs} meanwhile")
    without = case_of(lambda path: training.items(path, slow=slow, reads=False), tmp_path)
    assert one.saved_ns == pytest.approx(case.base_ns - without.base_ns, rel=0.1)


@pytest.mark.parametrize("waits", ["pthread_cond_wait", "MPI_Allreduce", ""])
def test_who_waits_for_others_after_a_small_copy_could_not_be_ahead(
    tmp_path: Path, waits: str
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.report.sched(0, True)
    for step in range(200):
        run.launch(f"k{step % 3}", 2 * MS)
        run.copy(4, 10, "DtoH", "pageable")
        if waits.startswith("MPI"):
            run.report.mpi(waits, run.now, run.now + MS)
        elif waits:
            run.report.osrt(waits, run.now, run.now + MS)
        run.now += MS
    found = find_in(Case(open_report(run.report.write())))
    (one,) = [one for one in found if one.rule == "small_copies"]
    assert (one.saved_ns < 10 * MS) is bool(waits)
    assert "decide on the GPU, or read only each n-th" in one.advice


@pytest.mark.parametrize(
    ("uploads", "advice"),
    [(0, "decide on the GPU, or read only each n-th"), (4, "read results later")],
)
def test_uploads_are_never_to_be_read_later(tmp_path: Path, uploads: int, advice: str) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.report.sched(0, True)
    for step in range(200):
        run.launch(f"k{step % 3}", 2 * MS)
        for _ in range(uploads):
            run.copy(960, 10, "HtoD", "pageable")
        run.copy(4, 10, "DtoH", "pageable")
        run.now += MS
    found = find_in(Case(open_report(run.report.write())))
    (one,) = [one for one in found if one.rule == "small_copies"]
    assert one.advice.startswith(advice)
    assert ("Host-to-Device" in one.title) is bool(uploads)


@pytest.mark.parametrize("waits", [False, True])
def test_who_waits_in_small_uploads_is_late_by_that(tmp_path: Path, waits: bool) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.report.sched(0, True)
    for step in range(200):
        run.launch(f"k{step % 3}", MS // 2)
        if waits:
            run.copy(4, 10, "HtoD", "pageable")
        else:
            run.upload(2 * US)
        run.now += MS
    found = find_in(Case(open_report(run.report.write())))
    (one,) = [one for one in found if one.rule == "small_copies"]
    assert (one.saved_ns > 200 * MS // 3) is waits
    assert one.saved_ns > 200 * MS // 3 or one.saved_ns < 5 * MS


def round_trips(path: Path, *, reads: bool = True) -> Synth:
    """A value is read after some kernels, then memory allocated for the next ones."""
    run = Machine(path)
    for _ in range(100):
        for number in range(3):
            run.launch(f"k{number}", 40 * US)
        if reads:
            run.wait()
            run.copy(8, 10, "DtoH", "pageable")
        run.now += 15 * US
        run.call("cudaMallocAsync_v11020", 12 * US)
    return run.report


def test_a_round_trip_to_the_host_is_told_once_with_all_that_it_costs(tmp_path: Path) -> None:
    case = case_of(round_trips, tmp_path)
    without = case_of(lambda path: round_trips(path, reads=False), tmp_path)
    first, *others = [one for one in find_in(case) if one.lost is not None]
    assert first.rule == "small_copies"
    assert first.saved_ns == pytest.approx(case.base_ns - without.base_ns, rel=0.1)
    assert first.advice.startswith("decide on the GPU")
    assert all(one.same_as or one.rule == "exposed_copies" for one in others)


def test_reading_files_after_a_value_has_a_story_of_its_own(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(50):
        run.launch("k", 4 * MS)
        run.copy(4, 10, "DtoH", "pageable")
        run.off("read", 2 * MS)
    first, *_ = find_in(Case(open_report(run.report.write())))
    assert first.subject == "idle, I/O: read"


@pytest.mark.parametrize(("messages", "apart"), [(60 * US, False), (2 * US, True)])
def test_a_wait_before_longer_messages_is_a_part_of_them(
    tmp_path: Path, messages: int, apart: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(200):
        run.launch("sweep", 50 * US)
        run.wait()
        run.report.mpi("MPI_Sendrecv", run.now, run.now + messages)
        run.now += messages
    found = find_in(Case(open_report(run.report.write())))
    assert ("sync_by_range" in {one.rule for one in found}) is apart
    if not apart:
        assert found[0].subject == "idle, MPI: MPI_Sendrecv"
        assert found[0].stake_ns == pytest.approx(199 * (messages + 11 * US), rel=0.02)


def sampler(path: Path, *, reads: bool = True) -> Synth:
    """A slow host that reads a value after each tiny kernel."""
    run = Machine(path)
    for _ in range(400):
        run.now += 60 * US
        run.launch("sort", 3 * US)
        if reads:
            run.copy(4, 10, "DtoH", "pageable")
            run.wait()
    return run.report


def test_reads_of_a_host_that_is_late_anyway_cost_what_they_last(tmp_path: Path) -> None:
    case = case_of(sampler, tmp_path)
    without = case_of(lambda path: sampler(path, reads=False), tmp_path)
    (one,) = [found for found in find_in(case) if found.rule == "small_copies"]
    assert one.saved_ns == pytest.approx(case.base_ns - without.base_ns, rel=0.02)


def test_what_keeps_to_a_part_of_the_run_says_so(tmp_path: Path) -> None:
    (one,) = [
        o
        for o in find_in(case_of(programs.allocating_at_first, tmp_path))
        if o.rule == "frequent_allocation"
    ]
    assert one.title.endswith(", in the first 40%")  # 60 of 150 ms


def test_a_part_of_the_run_is_told_of_all_gpu_work_not_from_the_steps_on(tmp_path: Path) -> None:
    case = case_of(training.evaluated, tmp_path)
    (one,) = [one for one in find_in(case) if one.rule == "exposed_copies"]
    assert case.iterations.name == "train step #"
    assert one.saved_ns == 10 * 2 * MS
    assert one.title.endswith(", in the first 36%")  # nine steps of 3.4 ms and 2 of 90 ms


def test_a_step_that_never_closes_is_none_of_those_that_are_slow_or_not(tmp_path: Path) -> None:
    def run(path: Path) -> Synth:
        return slow_step(path).nvtx("step 20", 230 * MS, None)

    (one,) = [o for o in find_in(case_of(run, tmp_path)) if o.rule == "slow_steps"]
    assert one.title.startswith("1 of 20 steps ")


def test_time_outside_of_gpu_work_is_said(tmp_path: Path) -> None:
    case = case_of(hpc.writing_at_the_end, tmp_path)
    said = ". 200.0 ms after the last GPU work (100.0% I/O: write). "
    assert said in verdict(case, find_in(case))


@pytest.mark.parametrize(("times", "slight"), [(300, True), (30, False)])
def test_gpu_work_is_slight_beside_a_host_that_works_far_longer(
    times: int, slight: bool, tmp_path: Path
) -> None:
    def run(path: Path) -> Synth:
        run = Machine(path)
        for _ in range(STEPS):
            run.call("cudaMalloc_v3020", 100 * US)
            run.launch("step", MS)
            run.wait()
        for at in range(run.now, times * run.now, 5 * MS):
            run.report.sample(at, ["solve"])
        return run.report.sched(run.now, True).sched(times * run.now, False)

    case = case_of(run, tmp_path)
    findings = find_in(case)
    assert (findings[0].rule == "outside_work") is slight
    assert ("Worth fixing" in verdict(case, findings)) is not slight


@pytest.mark.parametrize("goes_on", [False, True])
def test_steps_in_which_cuda_was_not_recorded_are_no_time_outside_of_gpu_work(
    goes_on: bool, tmp_path: Path
) -> None:
    def run(path: Path) -> Synth:
        report = hpc.writing_at_the_end(path)
        for step in range(22 if goes_on else 2):
            report.nvtx(f"step {step}", step * 10 * MS, (step + 1) * 10 * MS)
        return report

    case = case_of(run, tmp_path)
    found = find_in(case)
    said = verdict(case, found)
    assert ("CUDA is recorded in 2 of 22 steps. " in said) is goes_on
    assert ("outside_work" in {one.rule for one in found}) is not goes_on


@pytest.mark.parametrize(("function", "told"), [("cudaLaunchKernel", False), ("parse", True)])
def test_calls_of_cuda_that_samples_alone_hit_are_not_recorded(
    function: str, told: bool, tmp_path: Path
) -> None:
    def run(path: Path) -> Synth:
        run = Machine(path)
        for _ in range(STEPS):
            run.launch("step", MS)
        run.wait()
        for at in range(run.now, 20 * run.now, MS):
            run.report.sample(at, [function])
        return run.report.sched(run.now, True).sched(20 * run.now, False)

    assert ("outside_work" in {one.rule for one in find_in(case_of(run, tmp_path))}) is told


@pytest.mark.parametrize(("call", "told"), [("cuInit", False), ("cudaFree_v3020", True)])
def test_the_call_after_the_driver_starts_sets_the_process_up(
    call: str, told: bool, tmp_path: Path
) -> None:
    def run(path: Path) -> Synth:
        run = Machine(path)
        run.call(call, 15 * MS)
        run.call("cudaMalloc_v3020", 200 * MS)
        run.launch("step", MS)
        run.wait()
        return run.report

    assert ("outside_work" in {one.rule for one in find_in(case_of(run, tmp_path))}) is told


def test_idle_time_in_which_work_is_missing_has_no_price(tmp_path: Path) -> None:
    one = next(o for o in find_in(case_of(hpc.losing, tmp_path)) if o.rule == "sync_by_range")
    assert (one.saved_ns, one.severity) == (0, Severity.MEDIUM)
    assert 40 * MS < one.stake_ns < 41 * MS


@pytest.mark.parametrize("run", [hpc.faulting, hpc.faulting_twice])
def test_faults_between_migrations_count_once(run: Callable[[Path], Synth], tmp_path: Path) -> None:
    found = find_in(case_of(run, tmp_path))
    (one,) = [one for one in found if one.rule == "migrations_in_kernels"]
    assert one.title.endswith(": 39.98 ms")  # all but the first fault
    moves = 4 * 400 * 65536 / 26  # at 26 GB/s, of which what is computed meanwhile hides 20 us
    assert one.saved_ns == pytest.approx(4 * 10 * MS - moves, abs=1)


@pytest.mark.parametrize(
    ("cause", "recorded", "costs", "ends"),
    [
        (2, True, 400 * US, "32.00 ms"),
        (2, False, 50 * US, "4.000 ms, faults not recorded"),
        (5, False, 50 * US, "4.000 ms"),  # moved because of access counters
    ],
)
def test_faults_longer_than_their_migration_count_where_they_are_recorded(
    cause: int, recorded: bool, costs: int, ends: str, tmp_path: Path
) -> None:
    def run(path: Path) -> Synth:
        return hpc.long_faults(path, cause, recorded=recorded)

    found = find_in(case_of(run, tmp_path))
    (one,) = [one for one in found if one.rule == "migrations_in_kernels"]
    assert one.saved_ns == 4 * 20 * costs
    assert one.title.endswith(f": {ends}")
    assert ("--cuda-um-gpu-page-faults" in one.settle) is (not recorded and cause == 2)


def test_a_window_before_all_gpu_work_is_looked_at_as_the_hosts(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.report.sched(0, True)
    run.off("read", 10 * MS)
    run.launch("k", 10 * MS)
    report = open_report(run.report.diagnostic("CUDA: odd").write(), use_cache=False)
    case = Case(report, Scope((0, 10 * MS)))
    assert verdict(case, find_in(case)) == "Host: tid 10 (100.0% I/O: read). GPU: no GPU work here"


def test_a_lower_clock_explains_a_slow_gpu_and_an_equal_one_does_not(tmp_path: Path) -> None:
    for clock, folder in ((1200, tmp_path / "slow"), (1398, tmp_path / "even")):
        folder.mkdir()

        def run(path: Path, clock: int = clock) -> Synth:
            return clocked(slow_gpu(path), 1400, clock)

        found = find_in(case_of(run, folder))
        (one,) = [one for one in found if one.rule == "gpu_imbalance"]
        assert (one.confidence is Confidence.MEASURED) is (clock == 1200)
        assert one.title.endswith("clock 85.7% of the others'") is (clock == 1200)
        assert ("do not explain" in one.doubt) is (clock == 1398)


def test_a_gpu_of_another_model_is_not_slow_because_of_its_clock(tmp_path: Path) -> None:
    def run(path: Path) -> Synth:
        synth = clocked(slow_gpu(path), 1400, 1200)
        synth.rows["TARGET_INFO_GPU"][1]["name"] = "Tesla T4"
        return synth

    (one,) = [one for one in find_in(case_of(run, tmp_path)) if one.rule == "gpu_imbalance"]
    assert "clock" not in one.title + one.metrics
    assert one.advice == "it is a Tesla T4, as no other is: give it less"


@pytest.mark.parametrize(("blocks", "more"), [(1215, True), (1100, False), (1080, False)])
def test_a_gpu_with_larger_kernels_is_not_slow(tmp_path: Path, blocks: int, more: bool) -> None:
    """Of 12.5 % longer kernels those of 12.5 % more blocks have more work, of 2 % more have not."""

    def run(path: Path) -> Synth:
        return clocked(slow_gpu(path, grid=(blocks, 1, 1)), 1400, 1200)

    case = case_of(run, tmp_path)
    found = find_in(case)
    (one,) = [one for one in found if one.rule == "gpu_imbalance"]
    assert one.subject == f"GPU 1 {'has more work' if more else 'slower'} than the others"
    assert one.saved_ns == STEPS * (MS // 2 if more else MS)
    assert one.advice.startswith("give the others" if more else "see why its clock is lower")
    assert ("clock" in one.title) is not more
    assert one.subject in verdict(case, found)


def test_counters_contradict_idle_time_in_which_something_else_ran(tmp_path: Path) -> None:
    for active, known in ((90, Confidence.GUESS), (2, Confidence.MEASURED)):
        folder = tmp_path / str(active)
        folder.mkdir()

        def run(path: Path, active: int = active) -> Synth:
            synth = sleeping_host(path)
            for number in range(2000):
                idle = number % 100 < 10
                value = active if idle else 95
                synth.gpu_metric(number * 100_000 + 50, "SMs Active [Throughput %]", value)
            return synth

        one = next(one for one in find_in(case_of(run, folder)) if one.rule == "gpu_idle")
        assert one.confidence is known
        assert one.metrics == f"SMs active {active}.0%"
        assert ("contradict" in one.doubt) is (active == 90)


def test_a_kernel_that_fills_the_memory_bus_is_told_so(tmp_path: Path) -> None:
    def run(path: Path, part: int = 40) -> Synth:
        synth = one_kernel(path)
        for number in range(80):
            for what in ("Read", "Write"):
                synth.gpu_metric(number * MS, f"DRAM {what} Bandwidth [Throughput %]", part)
        return synth

    one = next(o for o in find_in(case_of(run, tmp_path)) if o.rule == "dominant_kernel")
    assert one.advice.startswith("it looks bound by memory (DRAM 80.0%)")


def test_a_kernel_on_few_sms_is_told_so_though_the_gpu_is_busy(tmp_path: Path) -> None:
    def run(path: Path) -> Synth:
        synth = one_kernel(path)
        for number in range(80):
            synth.gpu_metric(number * MS, "SMs Active [Throughput %]", 12)
        return synth

    one = next(o for o in find_in(case_of(run, tmp_path)) if o.rule == "dominant_kernel")
    assert one.advice == "most SMs have nothing to do (SMs active 12.0%): use more blocks"


@pytest.mark.parametrize("run", WORTH_FIXING, ids=lambda run: run.__name__)
def test_the_verdict_names_the_reason_first(run: Callable[[Path], Synth], tmp_path: Path) -> None:
    case = case_of(run, tmp_path)
    found = find_in(case)
    assert all(len(one.title) <= 100 and one.saved_ns >= 0 for one in found)
    line, first = verdict(case, found), WORTH_FIXING[run]
    told = "that" if f" is {first}. " in line else first
    assert f"Worth fixing: {told} (" in line if first else "Worth fixing" not in line, line


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (programs.event_loop, "idle, waits for another program: poll"),
        (programs.serving_with_a_store, "idle, waits for requests: poll"),
        (programs.cameras, "idle, waits for the next tick: select of one of 3 threads"),
        (programs.cameras_by_hand, "idle, wait: while one of 3 threads is in select"),
        (programs.decoded_in_hardware, "idle, waits for the next tick: ioctl"),
        (programs.serving, "idle, waits for requests: pthread_cond_wait"),
        (programs.ticking_helper, "idle, waits for work: pthread_cond_wait"),
        (programs.connecting, "idle, waits for another program: pthread_cond_wait"),
        (programs.behind_a_socket, "idle, waits for requests: poll"),
        (programs.ticking, "idle, sleeps to keep a rate: clock_nanosleep"),
        (programs.filmed, "idle, waits for the next tick: poll"),
        (programs.filmed_anew, "idle, waits for the next tick: poll"),
    ],
)
def test_the_verdict_says_what_is_no_fault_or_has_no_price(
    run: Callable[[Path], Synth], said: str, tmp_path: Path
) -> None:
    case = case_of(run, tmp_path)
    found = find_in(case)
    assert said in verdict(case, found)
    assert [one.saved_ns for one in found if one.subject == said] == [0]


def test_nothing_else_shortens_a_run_that_waits_for_the_next_tick(tmp_path: Path) -> None:
    for run, saved in ((programs.filmed, 0), (programs.sent_unevenly, 30 * 100 * US)):
        found = find_in(case_of(run, tmp_path))
        copies = next(one for one in found if one.rule == "exposed_copies")
        assert copies.saved_ns == pytest.approx(saved, abs=220 * US)  # in the first frame
        assert copies.advice.startswith("3.000 ms once the rate is higher") is (not saved)


def test_findings_of_one_report_have_ids_of_their_own(tmp_path: Path) -> None:
    found = find_in(case_of(programs.choosing, tmp_path))
    assert len({one.id for one in found}) == len(found)
    for run, rule, of in (
        (sleeping_host, "gpu_idle", "idle,-sleep:-nanosleep"),
        (same_upload, "repeated_uploads", "uploads-of-each"),
    ):
        (tmp_path / rule).mkdir()
        (one,) = [one for one in find_in(case_of(run, tmp_path / rule)) if one.rule == rule]
        assert one.id == f"{rule}:{of}@0"


def test_gpus_that_all_send_at_once_are_no_stages(tmp_path: Path) -> None:
    synth = bare(tmp_path / "r.sqlite").gpu(1).gpu(2)
    for step in range(20):
        for device in range(3):
            start = step * 10 * MS
            synth.kernel("experts", start, start + 6 * MS, device=device, grid=FULL)
            name = "ncclDevKernel_SendRecv"
            synth.kernel(name, start + 6 * MS, start + 9 * MS, device=device, stream=9)
    (one,) = [
        one
        for one in find_in(Case(open_report(synth.write(), use_cache=False)))
        if one.rule == "exposed_communication"
    ]
    assert one.subject == "communication not hidden"


def test_what_can_be_saved_stands_before_a_kernel_that_takes_long(tmp_path: Path) -> None:
    first, *others = find_in(case_of(one_name_sleeping, tmp_path))
    assert (first.rule, first.saved_ns) == ("gpu_idle", 19 * 8 * MS), "more than the GPU works"
    assert [one.rule for one in others] == ["dominant_kernel"], "each step sleeps: no set-up"


def test_a_rank_that_reads_and_who_waits_for_it_are_one_story(tmp_path: Path) -> None:
    first, second, *_ = find_in(case_of(reading_rank, tmp_path))
    assert (first.rule, first.device) == ("gpu_idle", 1)
    assert (second.rule, second.same_as) == ("exposed_communication", first.subject)


def test_a_slow_step_is_told_by_what_it_waits_for_or_as_work_of_its_gpu(tmp_path: Path) -> None:
    first, *others = find_in(case_of(reading_step, tmp_path))
    assert (first.rule, first.saved_ns) == ("gpu_idle", 30 * MS)
    assert [one.same_as for one in others if one.rule == "slow_steps"] == [first.subject]
    (one,) = [one for one in find_in(case_of(slow_step, tmp_path)) if one.rule == "slow_steps"]
    assert (one.saved_ns, one.stake_ns) == (0, 30 * MS), "more work is no idle time"
    assert "1 of 20 steps busy longer" in one.title


def test_a_sample_of_more_time_than_a_gap_says_nothing_of_it(tmp_path: Path) -> None:
    synth = sleeping_host(tmp_path / "r.sqlite")
    for number in range(20):
        synth.gpu_metric(number * 10 * MS + MS // 2, "SMs Active [Throughput %]", 90)
    found = find_in(Case(open_report(synth.write(), use_cache=False)))
    one = next(one for one in found if one.rule == "gpu_idle")
    assert (one.confidence, one.metrics) == (Confidence.MEASURED, "")


def test_who_prefetches_is_not_told_to_prefetch(tmp_path: Path) -> None:
    for run, advice in ((migrating, "prefetch the pages"), (prefetching, "prefetch earlier")):
        found = find_in(case_of(run, tmp_path))
        (one,) = [one for one in found if one.rule == "migrations_in_kernels"]
        assert one.advice.startswith(advice)


def test_idle_time_of_a_report_that_lost_events_is_not_sure(tmp_path: Path) -> None:
    for run, said in {
        sleeping_host: "",
        whole_nevertheless: "",
        lost_events: "nsys may have lost CUDA events",
        dropped_events: "nsys lost CUDA events",
    }.items():
        case = case_of(run, tmp_path)
        found = find_in(case)
        one = next(one for one in found if one.rule == "gpu_idle")
        assert (one.confidence is Confidence.INFERRED) is bool(said)
        line = verdict(case, found)
        assert said in line if said else "lost" not in line
        assert any(one.rule == "data_loss" for one in found) is bool(said)


def test_work_that_calls_ask_for_and_that_is_not_recorded_is_told(tmp_path: Path) -> None:
    told = {}
    for name in (
        "cudaMemcpyAsync_v3020",
        "cudaMemcpyAsync captured",
        "cudaLaunchKernel_v7000",
        "cuMemsetD32Async",
    ):
        synth = sleeping_host(tmp_path / "r.sqlite")
        if name.startswith("cudaLaunch"):
            synth.process(20, "other")
        if name.endswith("captured"):
            synth.api("cudaStreamBeginCapture_v10000", 1, 2)
        for step in range(STEPS):
            synth.api(name, step * 10 * MS + MS // 2, step * 10 * MS + MS // 2 + 5 * US)
        case = Case(open_report(synth.write(), use_cache=False))
        told[name] = next(one for one in find_in(case) if one.rule == "gpu_idle"), loss(case.report)
    copies, captured, launches, memsets = told.values()
    assert copies[1] == "copies of 20 calls are not recorded: idle time may be such work"
    assert (copies[0].saved_ns, copies[0].confidence) == (0, Confidence.GUESS)
    assert captured[1] == ""
    assert captured[0].confidence is Confidence.MEASURED
    assert launches[1].startswith("kernels of 20 calls are not recorded")
    assert memsets[1].startswith("memsets of 20 calls are not recorded")


@pytest.mark.parametrize("traced", ["", "graph", "node", "unlinked"])
def test_graphs_that_are_launched_and_not_recorded_are_told(tmp_path: Path, traced: str) -> None:
    synth = sleeping_host(tmp_path / "r.sqlite")
    synth.api("cudaStreamBeginCapture_v10000", 1, 2)
    for number in range(3):
        synth.api("cudaGraphLaunch_v10000", number * US, (number + 1) * US, corr=9000 + number)
    if traced == "graph":
        synth.graph(7 * MS, 8 * MS, corr=9001)
    elif traced:
        synth.kernel("k", 7 * MS, 8 * MS, corr=9001, graphNodeId=4 if traced == "node" else None)
    report = open_report(synth.write(), use_cache=False)
    for window in (None, (19 * MS // 2, 10 * MS)):
        said = verdict(Case(report, Scope(window)), [])
        assert ("CUDA graphs of 3 calls are not recorded" in said) == (not traced)


def test_time_that_only_the_profiler_takes_is_not_to_be_fixed(tmp_path: Path) -> None:
    case = case_of(flushed, tmp_path)
    line = verdict(case, find_in(case))
    assert line == "GPU 90.5% busy. 9.4% is idle for the profiler alone"


def test_the_classes_of_time_add_up_with_the_runner_up_named(tmp_path: Path) -> None:
    found = parts(case_of(sleeping_host, tmp_path))
    assert sum(part.share for part in found) == pytest.approx(1)
    assert [part.name for part in found[:2]] == [COMPUTE, HOST]
    # The first step has no gap before it; 2 us of each other one nothing tells of.
    assert found[1].ns == 19 * 998_000
    assert bound_line(found).startswith("compute (90.")
    assert bound_line([]) == ""


def test_pauses_of_few_steps_could_go_altogether(tmp_path: Path) -> None:
    for every in (8, 1):
        folder = tmp_path / str(every)
        folder.mkdir()

        def run(path: Path, every: int = every) -> Synth:
            return programs.pausing(path, every)

        case = case_of(run, folder)
        subject = "idle, host compute" + " in few steps" * (every > 1)
        (one,) = [o for o in find_in(case) if o.subject == subject]
        assert one.advice.startswith("see what makes it come") is (every > 1)
        assert one.saved_ns == one.stake_ns
        hides = f"hides {format_duration(case.idle_time.busy_ns(0))} at most"
        assert (hides in one.advice) is (every == 1)


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize(
    ("pauses", "loads", "told"), [(3, 3, "warm_up"), (3, 0, "gpu_idle"), (6, 6, "gpu_idle")]
)
def test_pauses_that_end_with_loading_code_compile_it(
    asleep: bool, pauses: int, loads: int, told: str, tmp_path: Path
) -> None:
    """Code is loaded in all pauses, or in none; new code again and again is no set-up."""
    run = Machine(tmp_path / "r.sqlite")
    run.report.sched(0, True)
    for step in range(8 * pauses):
        since = run.now
        run.layers(2)
        run.wait()
        if step % 8 == 6:
            if asleep:
                run.report.sched(run.now, False).sched(run.now + 40 * MS, True)
            run.now += 40 * MS
            if step // 8 < loads:
                run.call("cuModuleLoadData", MS)
        run.named(f"train step {step}", since)
    found = find_in(Case(open_report(run.report.write(), use_cache=False)))
    (one,) = [one for one in found if one.saved_ns > 100 * MS and one.rule != "slow_steps"]
    assert one.rule == told
    usual = "idle, off the CPU" if asleep else "idle, host compute"
    assert one.subject.startswith(usual) is (not loads)
    assert ("likely compiled" in one.advice) is (pauses == 6)


def test_pauses_are_told_apart_from_what_the_host_computes_in_every_step(tmp_path: Path) -> None:
    found = find_in(case_of(lambda path: programs.pausing(path, 8, 3 * MS), tmp_path))
    few, every = (o for o in found if o.subject.startswith("idle, host compute"))
    assert (few.subject, every.subject) == ("idle, host compute in few steps", "idle, host compute")
    assert 2 * 43 * MS <= few.saved_ns < 2 * 43 * MS + MS  # the third one ends the run
    assert 21 * 3 * MS <= every.saved_ns < 21 * 3 * MS + MS
    assert "empties the queue first" in every.advice
    assert ("gaps after cuda" in every.title, " after " in few.title) == (True, False)


def test_steps_with_more_work_are_not_followed_by_the_wait_for_it(tmp_path: Path) -> None:
    (one,) = [o for o in find_in(case_of(programs.ahead, tmp_path)) if o.rule == "slow_steps"]
    assert one.title.startswith("5 of 24 steps busy longer")


def test_tiny_kernels_do_not_cost_what_their_thread_spends_off_the_cpu(tmp_path: Path) -> None:
    found = find_in(case_of(programs.tiny_and_off, tmp_path))
    (tiny,) = [one for one in found if one.rule == "tiny_kernels"]
    off = max(found, key=lambda one: one.saved_ns)
    assert off.title.endswith("cudaLaunchKernel itself took it, off the CPU")
    assert off.saved_ns >= 20 * 19 * MS // 10
    assert not off.same_as
    assert 0 < tiny.saved_ns < 2000 * 6 * US


def test_pages_cost_what_a_kernel_takes_longer_than_without_them(tmp_path: Path) -> None:
    for takes, cost in ((89 * MS, None), (40 * MS, 49 * MS), (5 * MS, 84 * MS)):
        synth = migrating(tmp_path / "r.sqlite")
        synth.api("cudaDeviceSynchronize_v3020", 20 * US, 95 * MS)
        for number in range(3):
            start = 100 * (number + 1) * MS
            call = (start - 9 * US, start)
            synth.launch("touches", call=call, gpu=(start, start + takes), grid=FULL)
        found = find_in(Case(open_report(synth.write())))
        saved = [one.saved_ns for one in found if one.rule == "migrations_in_kernels"]
        assert saved == ([] if cost is None else [cost])


@pytest.mark.parametrize("stream", [7, 13])
def test_copies_after_graphs_are_told_and_those_beside_them_are_not(
    tmp_path: Path, stream: int
) -> None:
    beside = stream != 7

    def run(path: Path) -> Synth:
        synth = Synth(path).process(10, "python").gpu(0)
        for step in range(20):
            begin = step * 12 * MS
            synth.graph(begin, begin + 10 * MS)
            copied = begin + (8 * MS + 2_000 if beside else 10 * MS)
            synth.memcpy(copied, copied + 2 * MS, bytes=48_000_000, kind="HtoD", stream=stream)
        return synth

    told = [one for one in find_in(case_of(run, tmp_path)) if one.rule == "exposed_copies"]
    assert bool(told) is not beside


def test_graphs_traced_as_a_whole_hide_what_runs_inside(tmp_path: Path) -> None:
    for whole in (True, False):
        synth = steps(tmp_path / "r.sqlite")
        synth.graph(0, MS, corr=7)
        if not whole:
            synth.kernel("node", 0, MS, corr=7, graphNodeId=1)
        said = not_looked_at(Case(open_report(synth.write())))
        assert any("--cuda-graph-trace=node" in one.reason for one in said) is whole


@pytest.mark.parametrize(("ranges", "said"), [(0, False), (1, True), (20, False)])
def test_rules_that_need_steps_say_where_ranges_tell_none(
    tmp_path: Path, ranges: int, said: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for step in range(20):
        since = run.now
        run.layers(2)
        run.wait()
        if step < ranges:
            run.named(f"step {step}" if ranges > 1 else "main", since)
    told = [one.what for one in not_looked_at(Case(open_report(run.report.write())))]
    assert any("slow steps" in what for what in told) is said
    assert any(what.startswith("steps and phases") for what in told) is (ranges == 0)


def test_tiny_kernels_lose_all_of_a_launch_bound_run(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for number in range(1200):
        run.launch("gemv", 3 * US)
        run.now += (2 + 12 * (number % 2)) * US
    case = Case(open_report(run.report.write()))
    (one,) = [found for found in find_in(case) if found.rule == "tiny_kernels"]
    (bound,) = case.stalls.bound
    assert one.saved_ns == bound.idle_ns - 1199 * US  # queued kernels are a microsecond apart


@pytest.mark.parametrize("kernels", [1, 2])
def test_a_launch_bound_phase_of_which_half_are_small_copies_says_so(
    tmp_path: Path, kernels: int
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(600):
        run.copy(24, 10, "HtoD")
        run.now += 10 * US
        for _ in range(kernels):
            run.launch("saxpy", 3 * US)
            run.now += 10 * US
    found = find_in(Case(open_report(run.report.write())))
    (one,) = [one for one in found if one.rule == "launch_bound"]
    assert one.advice.startswith("gather the small copies") is (kernels == 1)
    assert ("small copies" in one.subject) is (kernels == 1)


@pytest.mark.parametrize("mid_run", [False, True])
def test_set_up_is_all_that_the_host_does_in_gaps_that_do_not_come_again(
    tmp_path: Path, mid_run: bool
) -> None:
    found = find_in(case_of(partial(programs.graphs_first, mid_run=mid_run), tmp_path))
    (one,) = [one for one in found if one.rule == "warm_up"]
    # 18 ms of capturing and 6 ms of making the graph before each but the first trial.
    assert one.saved_ns == pytest.approx(19 * 24 * MS, rel=0.01)


def test_tiny_kernels_are_counted_on_the_gpu_that_idles(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite", 2)
    for number in range(3000):
        run.launch("gemv", 3 * US, int(number % 3 == 2))
    found = find_in(Case(open_report(run.report.write())))
    (one,) = [one for one in found if one.rule == "tiny_kernels"]
    assert one.title.startswith("1,000 kernels of 3.000 us, most gemv (1,000): GPU 1 idle")
    assert one.advice.endswith("shortens their own 3.000 ms of GPU time, too")


def test_what_all_gpus_lose_is_not_said_of_one(tmp_path: Path) -> None:
    for both in (True, False):
        run = Machine(tmp_path / "r.sqlite", 2)
        for _ in range(10):
            for device in (0, 1):
                run.launch("gemm", 6 * MS, device)
            run.wait()
            for device in (0, 1)[: 1 + both]:
                start, corr = run.now + 5 * US, run.report.next_correlation()
                run.report.memcpy(start, start + 4 * MS, kind="PtoP", device=device, corr=corr)
                run.report.api("cudaMemcpyPeerAsync", run.now, run.now + 5 * US, corr=corr)
                run.free[device, 7] = start + 4 * MS
        case = Case(open_report(run.report.write()))
        line = verdict(case, find_in(case))
        assert ("copies not hidden on GPU 0" in line) is not both


def test_kernels_that_only_the_first_steps_try_are_set_up_too(tmp_path: Path) -> None:
    found = find_in(case_of(programs.autotuning, tmp_path))
    (one,) = [o for o in found if o.rule == "warm_up"]
    assert one.title.endswith("in the first steps, tries kernels for 36.00 ms: only once")
    assert one.saved_ns >= 36 * MS


@pytest.mark.parametrize("first", [0, 1, 8])
@pytest.mark.parametrize("again", [False, True])
def test_what_only_the_first_captured_step_waits_for_comes_once(
    first: int, again: bool, tmp_path: Path
) -> None:
    report = training.resumed(tmp_path / "r.sqlite", first, again=again).write()
    long = next(one for one in find_in(Case(open_report(report))) if one.saved_ns > 15 * MS)
    assert long.rule == ("gpu_idle" if again else "warm_up")


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("mid_run", [False, True])
def test_what_comes_first_and_never_again_is_set_up(
    mid_run: bool, again: bool, tmp_path: Path
) -> None:
    """Whether or not the capture shows how the run begins: all of it is there once."""
    run = hpc.set_up_once(tmp_path / "r.sqlite", parses=30, mid_run=mid_run, again=again)
    (long,) = [one for one in find_in(Case(open_report(run.write()))) if one.saved_ns > 15 * MS]
    assert long.rule == ("gpu_idle" if again else "warm_up")


@pytest.mark.parametrize("samples", [5, 25])
def test_what_the_host_computes_before_its_work_is_named_by_samples(
    samples: int, tmp_path: Path
) -> None:
    run = hpc.set_up_once(tmp_path / "r.sqlite", parses=30)
    for number in range(1, samples + 1):
        run.sample(number * MS, ("parse_mesh", "main"))
    (one,) = [o for o in find_in(Case(open_report(run.write()))) if o.rule == "warm_up"]
    assert ("longest in parse_mesh:" in one.title) is (samples > 5)
    assert one.advice.endswith("or make that quicker") is (samples > 5)


@pytest.mark.parametrize(("slow", "once"), [(2, True), (20, False)])
def test_many_early_gaps_come_again_where_some_are_as_long_later(
    slow: int, once: bool, tmp_path: Path
) -> None:
    """60 pieces are read for 3 ms each, then 100 steps of which 2 or 20 take 3 ms more."""
    run = Machine(tmp_path / "r.sqlite")
    for number in range(60):
        run.now += 3 * MS
        run.copy(1_000_000 + 4096 * number, 5, "HtoD", "pageable")
    for step in range(100):
        run.launch("sweep", 5 * MS)
        run.wait()
        run.now += 3 * MS if 50 <= step < 50 + slow else 300 * US
    found = find_in(Case(open_report(run.report.write())))
    told = [one.stake_ns for one in found if one.rule == "gpu_idle"]
    assert (max(told) < 100 * MS) is once


def test_waits_for_others_are_classes_of_their_own(tmp_path: Path) -> None:
    for run, idle in (
        (programs.event_loop, REQUESTS),
        (programs.reading_a_pipe, HOST),
        (programs.waiting_for_ranks, RANKS),
        (programs.ranges_of_mpi, RANKS),
        (programs.ranges_alike, HOST),
    ):
        folder = tmp_path / run.__name__
        folder.mkdir()
        case = case_of(run, folder)
        found = parts(case, find_in(case))
        assert sum(part.share for part in found) == pytest.approx(1)
        assert found[0].name == idle


def test_the_wait_before_host_compute_is_named_where_there_is_one(tmp_path: Path) -> None:
    for waits in (True, False):
        folder = tmp_path / str(waits)
        folder.mkdir()

        def run(path: Path, waits: bool = waits) -> Synth:
            return programs.computing(path, waits)

        first = find_in(case_of(run, folder))[0]
        assert first.subject == "idle, host compute"
        assert ("cudaDeviceSynchronize empties the queue" in first.advice) is waits


def test_what_the_default_stream_stops_is_priced_with_all_that_it_keeps_apart(
    tmp_path: Path,
) -> None:
    # Three streams of 40 ms each, and the tiny ones: at best all run beside one of them.
    for default, saved in ((True, 81.2), (False, 239 / 100)):
        folder = tmp_path / str(default)
        folder.mkdir()

        def run(path: Path, default: bool = default) -> Synth:
            return programs.stopped(path, default)

        (one,) = [o for o in find_in(case_of(run, folder)) if o.rule == "serial_streams"]
        assert one.saved_ns / MS == pytest.approx(saved, rel=1e-3)


def test_pageable_copies_are_priced_at_the_bus_rate(tmp_path: Path) -> None:
    one = next(o for o in find_in(case_of(copy_bound, tmp_path)) if o.rule == "exposed_copies")
    assert one.saved_ns == pytest.approx(STEPS * (8 * MS - 10**8 / 26 + 2 * MS), rel=1e-3)


def test_faults_between_migrations_count_with_them_and_longer_pauses_do_not(
    tmp_path: Path,
) -> None:
    for lasts, migrates in ((700 * US, 79_700), (300 * US, 24_000)):
        folder = tmp_path / str(lasts)
        folder.mkdir()

        def run(path: Path, lasts: int = lasts) -> Synth:
            return migrating(path, lasts)

        (one,) = [o for o in find_in(case_of(run, folder)) if o.rule == "migrations_in_kernels"]
        assert one.saved_ns == migrates * US


def test_what_could_not_be_looked_at_names_the_option(tmp_path: Path) -> None:
    case = case_of(steps, tmp_path)
    told = {one.what: one.reason for one in not_looked_at(case)}
    assert "--cpuctxsw=process-tree" in told["what the host did between its calls"]
    assert "--trace=osrt" in told["files, locks and sleep of the host"]
    assert not any("grids" in what for what in told), "grids and SMs were recorded"


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (programs.accumulating, "6 of 24 steps, one in 4, longer:"),
        (programs.evaluating, "2 of 30 steps followed by evaluate"),
    ],
)
def test_longer_steps_that_look_meant_are_told_and_rated_low(
    run: Callable[[Path], Synth], said: str, tmp_path: Path
) -> None:
    (one,) = [one for one in find_in(case_of(run, tmp_path)) if one.rule == "slow_steps"]
    assert one.title.startswith(said)
    assert len(one.title) <= 100
    assert one.severity is Severity.LOW


def test_a_gpu_that_waits_for_launches_on_another_one_is_told_so(tmp_path: Path) -> None:
    idle = [o for o in find_in(case_of(programs.one_thread_two_gpus, tmp_path)) if o.device == 1]
    assert any(one.title.endswith("cudaLaunchKernel of other work comes first") for one in idle)


def test_launches_that_outlast_their_kernels_are_no_launches_of_other_work(tmp_path: Path) -> None:
    """Launches of 60 us on one stream: the kernel is done 28 us before its call returns."""
    run = Synth(tmp_path / "r.sqlite").process(10).gpu()
    for number in range(200):
        at = number * 62 * US
        run.launch("k", call=(at, at + 60 * US), gpu=(at + 8 * US, at + 32 * US))
    titles = [one.title for one in find_in(Case(open_report(run.write())))]
    assert any(title.endswith("cudaLaunchKernel outlasts what it launched") for title in titles)
    assert not any("of other work" in title for title in titles)


def test_a_short_launch_is_not_blamed_where_those_for_other_gpus_come_first(tmp_path: Path) -> None:
    titles = [one.title for one in find_in(case_of(programs.one_thread_four_gpus, tmp_path))]
    assert any(title.endswith("cudaLaunchKernel of other work comes first") for title in titles)
    assert not any("itself took it" in title for title in titles)


def test_what_is_drawn_is_no_compute_and_unused_gpus_are_counted(tmp_path: Path) -> None:
    case = case_of(lambda path: programs.rendering(path).gpu(1), tmp_path)
    assert [one.name for one in parts(case)[:2]] == [RENDERING, COMPUTE]
    assert verdict(case, find_in(case)).startswith("1 of 2 GPUs 99.7% busy")


@pytest.mark.parametrize(("works", "told"), [(0, "nothing"), (10_000, "hardly anything"), (MS, "")])
def test_a_gpu_that_is_hardly_used_is_told(tmp_path: Path, works: int, told: str) -> None:
    findings = find_in(case_of(partial(training.without_work, works=works), tmp_path))
    titles = [one.title for one in findings if one.rule == "unused_gpus"]
    assert [title.startswith(f"GPU 1 ran {told} beside 1 busy") for title in titles] == [True] * (
        told != ""
    )


def test_copies_are_priced_by_what_could_run_beside_them(tmp_path: Path) -> None:
    case = case_of(programs.copying, tmp_path)
    first = find_in(case)[0]
    assert (first.rule, first.saved_ns) == ("exposed_copies", 20 * 300 * 1000)
    assert first.stake_ns > 0.97 * case.base_ns
    assert (
        "is copies not hidden. Worth fixing: that (up to 1.6%, more if less is copied)"
        in verdict(case, [first])
    )


def test_reads_of_single_values_after_host_compute_are_not_to_blame(tmp_path: Path) -> None:
    case = case_of(programs.choosing, tmp_path)
    found = find_in(case)
    (reads,) = [one for one in found if one.rule == "small_copies"]
    assert found[0].subject.startswith("idle, host compute")
    without = case_of(lambda path: programs.choosing(path, reads=False), tmp_path)
    assert 0.9 < reads.saved_ns / (case.base_ns - without.base_ns) < 1.15


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (programs.displaced, "of GPU work begins before its call: clocks differ"),
        (programs.one_displaced, ""),
        (programs.exported_later, "Recorded by nsys 2022.4, exported by 2026.2"),
        (programs.exported_at_once, ""),
    ],
)
def test_doubts_about_clocks_and_exports_stand_in_the_verdict(
    run: Callable[[Path], Synth], said: str, tmp_path: Path
) -> None:
    case = case_of(run, tmp_path)
    found = find_in(case)
    line = verdict(case, found)
    assert said in line
    assert any(word in line for word in ("clocks", "Recorded by")) is bool(said)
    doubted = [one for one in found if one.lost is not None and one.confidence is Confidence.GUESS]
    assert bool(doubted) is ("clocks" in said)
    told = [one.reason for one in not_looked_at(case)]
    assert any("exported by" in one for one in told) is ("exported" in said)


def test_a_gpu_that_works_by_turns_is_told_in_the_verdict(tmp_path: Path) -> None:
    case = case_of(programs.by_turns, tmp_path)
    assert "GPU 0 shared by processes" in verdict(case, find_in(case))


def test_gpus_that_processes_call_alike_are_not_said_to_be_shared(tmp_path: Path) -> None:
    """Of two GPUs: each process may have been given one of its own."""
    two = programs.by_turns(tmp_path / "r.sqlite").gpu(1)
    found = find_in(Case(open_report(two.write(), use_cache=False)))
    assert "shared_gpus" not in {one.rule for one in found}


def test_processes_that_leave_room_could_save_what_the_shorter_one_takes(tmp_path: Path) -> None:
    for run, saved in ((hpc.queueing, 30 * 982 * US), (programs.by_turns, 0)):
        found = find_in(case_of(run, tmp_path))
        (one,) = [one for one in found if one.rule == "shared_gpus"]
        assert one.saved_ns == saved
        assert one.advice.startswith("use MPS") is bool(saved)


@pytest.mark.parametrize(("ahead", "grave"), [(900 * US, True), (200 * US, False)])
def test_processes_that_hold_each_other_up_for_long_stand_first(
    tmp_path: Path, ahead: int, grave: bool
) -> None:
    """Each launches so long before the other one's kernel ends."""
    synth = Machine(tmp_path / "r.sqlite").report
    for number in range(200):
        begun, place = number * MS, number % 2
        synth.process(10 + place, f"rank {place}" if number < 2 else None)
        call, gpu = (begun - ahead, begun - ahead + 5 * US), (begun, begun + MS - 9 * US)
        synth.launch("gemm", call, gpu, context=place + 1, grid=(1080, 1, 1))
    found = find_in(Case(open_report(synth.write(), use_cache=False)))
    (one,) = [one for one in found if one.rule == "shared_gpus"]
    assert one.title == "GPU 0 works by turns for 2 processes: 50.0% for rank 0, 50.0% for rank 1"
    assert (one.severity is Severity.HIGH) is grave


def test_a_gpu_whose_host_waits_for_another_gpu_is_told_so(tmp_path: Path) -> None:
    found = {one.rule: one for one in find_in(case_of(programs.gathering, tmp_path))}
    idle, more = found["sync_by_range"], found["gpu_imbalance"]
    assert (idle.device, idle.subject) == (1, "idle, cudaDeviceSynchronize waits for GPU 0")
    assert more.saved_ns == 20 * MS, "half of what the first GPU alone does"
    assert (idle.late, idle.same_as) == (0, more.subject)


@pytest.mark.parametrize("waits", [True, False])
def test_a_step_that_only_launches_is_not_longer_by_compute(tmp_path: Path, waits: bool) -> None:
    """In step 7 reading takes longer, and so do the kernels; the GPU is idle before the first."""
    run = Machine(tmp_path / "r.sqlite")
    for step in range(12):
        since = run.now
        run.off("read", MS + 200 * US * (step == 7))
        run.layers(8, 400 * US + 40 * US * (step == 7))
        if waits:
            run.wait()
        run.named(f"step {step}", since)
    table = iteration_table(open_report(run.report.write(), use_cache=False))
    assert ("compute" in table.why(7)) is waits
    assert table.why(0) == ""  # idle in place of work, and no longer


def test_a_step_that_waits_for_earlier_launches_is_not_told_to_compute_longer(
    tmp_path: Path,
) -> None:
    table = iteration_table(case_of(programs.logging, tmp_path).report)
    # It waits, or does something else: both are not annotated.
    assert table.why(9).endswith(" ms [not annotated], while the GPU works for the steps before")
    assert table.why(8) == ""  # its launches merely took the host a little longer
    assert iteration_table(case_of(programs.accumulating, tmp_path).report).why(3).startswith("+5.")


def test_a_step_beside_earlier_work_is_told_by_its_phase_or_by_what_the_gpu_idles_for(
    tmp_path: Path,
) -> None:
    def run(path: Path) -> Synth:
        return programs.logging(path, loads=20 * MS, saves=60 * MS)

    table = iteration_table(case_of(run, tmp_path).report)
    assert table.why(25) == "+20.00 ms load, while the GPU works for the steps before"
    assert table.why(29).startswith("+63.0")
    assert table.why(29).endswith(" ms idle: I/O write")


@pytest.mark.parametrize("waits", [True, False])
def test_unrecorded_time_after_a_wait_names_the_wait(tmp_path: Path, waits: bool) -> None:
    case = Case(open_report(programs.refilling(tmp_path / "r.sqlite", waits=waits).write()))
    (one,) = [one for one in find_in(case) if "nothing recorded" in one.title]
    assert one.title.endswith("after cudaDeviceSynchronize, nothing recorded") is waits
    assert ("idle after cudaDeviceSynchronize" in verdict(case, [one])) is waits


@pytest.mark.parametrize(
    ("run", "all_taken", "told"),
    [
        (programs.no_cpu, True, "waits for a CPU"),
        (programs.no_cpu, False, "cudaLaunchKernel itself took it, off the CPU"),
        (programs.late_back, True, "waits for a CPU"),
        (programs.late_back, False, "gaps, off the CPU"),
    ],
)
def test_a_call_without_a_cpu_does_not_take_its_time_itself(
    tmp_path: Path, run: Callable[..., Synth], all_taken: bool, told: str
) -> None:
    report = run(tmp_path / "r.sqlite", all_taken=all_taken)
    found = find_in(Case(open_report(report.write())))
    assert told in found[0].title
    assert found[0].saved_ns == pytest.approx(19 * 3 * MS, rel=0.02)
    assert (found[0].confidence is Confidence.INFERRED) is ("gaps" not in told)


@pytest.mark.parametrize(("state", "told"), [(1, "waits for a CPU"), (2, "only once")])
def test_a_first_step_without_a_cpu_is_no_set_up(tmp_path: Path, state: int, told: str) -> None:
    report = programs.crowded_at_first(tmp_path / "r.sqlite", state)
    found = find_in(Case(open_report(report.write())))
    first = next(one for one in found if "idle" in one.title)
    assert told in first.title
    assert first.saved_ns == pytest.approx(40 * MS, rel=0.01)


def _returns_late(findings: Sequence[Finding]) -> Finding:
    """The one on waits that outlast GPU work: of what nobody knows why it is it has no price."""
    (one,) = (one for one in findings if "cudaDeviceSynchronize returns late" in one.subject)
    assert one.saved_ns == 0
    assert one.confidence is Confidence.INFERRED
    return one


def test_a_wait_that_outlasts_all_gpu_work_is_not_measured_without_switches(tmp_path: Path) -> None:
    path = programs.late_back(tmp_path / "r.sqlite").write()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE SCHED_EVENTS")
    one = _returns_late(find_in(Case(open_report(path))))
    assert "--cpuctxsw" in one.advice
    assert "--cpuctxsw" in one.settle


def test_a_wait_in_a_call_that_is_traced_asks_for_no_switches_that_are_there(
    tmp_path: Path,
) -> None:
    report = programs.late_back(tmp_path / "r.sqlite")
    wait = report.string("cudaDeviceSynchronize_v3020")
    for call in report.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]:
        if call["nameId"] == wait:
            report.osrt("poll", call["start"] + 1, call["end"] - 1)
    one = _returns_late(find_in(Case(open_report(report.write()))))
    assert "a host function, another program, or no CPU" in one.advice


def test_a_thread_on_a_cpu_when_tracing_begins_computes_until_it_leaves_it(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("gemm", 5 * MS)
        run.wait()
        run.now += 4 * MS
    run.report.sched(0, True, tid=77, cpu=1).sched(run.now, False)
    first = find_in(Case(open_report(run.report.write())))[0]
    assert first.subject.startswith("idle, host compute")


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("cudaMemPrefetchAsync", "prefetch earlier"),
        ("cudaMemGetInfo", "leave the call out, or make it earlier"),
    ],
)
def test_a_prefetch_belongs_into_the_loop_and_earlier(
    tmp_path: Path, call: str, advice: str
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("gemm", 2 * MS)
        run.wait()
        run.call(f"{call}_v8000", MS)
    (one,) = [o for o in find_in(Case(open_report(run.report.write()))) if call in o.title]
    assert one.advice.startswith(advice)


@pytest.mark.parametrize(("slow", "told"), [("other", False), ("usual", True)])
def test_steps_of_another_kind_are_not_slow(tmp_path: Path, slow: str, told: bool) -> None:
    """Three of thirty take five times as long, with a kernel that the others have not, or have."""
    run = Machine(tmp_path / "r.sqlite")
    for step in range(30):
        since, odd = run.now, step in (15, 20, 27)
        run.launch(slow if odd else "usual", (5 if odd else 1) * 2 * MS)
        run.wait()
        run.named(f"train step {step}", since)
    found = find_in(Case(open_report(run.report.write())))
    assert bool([one for one in found if one.rule == "slow_steps"]) is told


@pytest.mark.parametrize("run", [hpc.allocated_once, hpc.parsed_once])
def test_what_happens_once_is_left_out_and_leads_nothing(
    run: Callable[[Path], Synth], tmp_path: Path
) -> None:
    case = case_of(run, tmp_path)
    found = find_in(case)
    assert [one.rule for one in found[:2]] == ["dominant_kernel", "warm_up"]
    assert found[1].severity is Severity.MEDIUM
    assert "% busy, 99.9% without 30." in verdict(case, found)


def test_what_hardly_matters_stands_behind_what_happens_once(tmp_path: Path) -> None:
    case = case_of(hpc.allocated_once, tmp_path)
    work, once = find_in(case)[:2]
    for rated, leads in ((Severity.MEDIUM, True), (Severity.LOW, False)):
        other = replace(work, severity=rated)
        assert ranked(case, [once, other])[0] == (other if leads else once)


@pytest.mark.parametrize(("loads", "left_out"), [(40 * MS, True), (3 * MS, False)])
def test_shares_are_of_the_time_without_set_up(loads: int, left_out: bool, tmp_path: Path) -> None:
    case = case_of(lambda path: programs.compiled_first(path, loads), tmp_path)
    found = find_in(case)
    assert loads * left_out <= case.set_up_ns < loads * left_out + MS
    (copies,) = [one for one in found if one.rule == "exposed_copies"]
    assert copies.of_ns == case.base_ns - case.set_up_ns
    bound = parts(case, found)
    assert sum(part.ns for part in bound) == case.base_ns
    assert [part.ns for part in bound if part.name == ONCE] == [case.set_up_ns] * left_out
    assert ONCE not in bound_line(bound)
    (once,) = [one for one in found if one.is_once]
    assert once.of_ns == case.base_ns
    share = format_share(copies.saved_ns, copies.of_ns)
    assert f"copies not hidden (up to {share})" in verdict(case, found)


@pytest.mark.parametrize(("computes", "loads", "said"), [(30, 3, True), (1, 33, False)])
def test_what_a_host_computes_before_it_loads_code_is_no_set_up(
    computes: int, loads: int, said: bool, tmp_path: Path
) -> None:
    program = partial(programs.new_shapes, computes=computes * MS, loads=loads * MS)
    leader = find_in(case_of(program, tmp_path))[0]
    assert (leader.rule == "gpu_idle" and "before code is loaded" in leader.title) is said
    assert not said or leader.stake_ns == pytest.approx(11 * 33 * MS, rel=0.1)


def reading(
    path: Path,
    *,
    steps: int = 40,
    host: int = 2 * MS,
    ranks: int = 1,
    more: int = 0,
    seen: bool = True,
) -> Synth:
    """Each rank reads a number after each kernel, then computes for a while, the last one more."""
    run = Machine(path, ranks)
    for rank in range(ranks):
        run.report.process(10 + rank, "rank")
        if seen:
            run.report.sched(0, True, cpu=rank)
        run.now = 0
        for _ in range(steps):
            run.launch("gemm", MS, device=rank)
            corr, start = run.report.next_correlation(), run.free[rank, 7] + US
            where: Any = {"src": "device", "dst": "pinned", "device": rank}
            run.report.memcpy(start, start + 2 * US, bytes=4, kind="DtoH", corr=corr, **where)
            run.call("cudaMemcpy_v3020", start + 6 * US - run.now, corr)
            run.now += host + more * (rank == ranks - 1)
        if seen:
            run.report.sched(run.now, False, cpu=rank)
    return run.report


@pytest.mark.parametrize("steps", [12, 60, 400])
def test_what_the_host_does_after_small_reads_leads_however_many_they_are(
    tmp_path: Path, steps: int
) -> None:
    report = open_report(reading(tmp_path / "r.sqlite", steps=steps, host=MS // 2).write())
    first, *others = find_in(Case(report))
    assert (first.rule, first.saved_ns) == ("gpu_idle", (steps - 1) * MS // 2)
    reads = [one.same_as for one in others if one.rule == "small_copies"]
    assert reads == [first.subject] * (steps > 12)


def test_small_reads_lead_what_nobody_knows_after_them_and_keep_their_price(tmp_path: Path) -> None:
    run = reading(tmp_path / "r.sqlite", steps=60, host=MS // 2, seen=False)
    first, *others = find_in(Case(open_report(run.write())))
    assert first.rule == "small_copies"
    assert first.saved_ns == pytest.approx(59 * MS // 2, rel=0.1)
    assert [one.same_as for one in others if one.rule == "gpu_idle"] == [first.subject]


def test_it_leads_too_where_another_gpu_stands_for_those_that_idle_alike(tmp_path: Path) -> None:
    run = reading(tmp_path / "r.sqlite", host=MS // 2, ranks=2, more=US)
    first, *others = find_in(Case(open_report(run.write())))
    assert first.title.startswith("GPU 1 and others idle")
    reads = [(one.device, one.same_as) for one in others if one.rule == "small_copies"]
    assert reads == [(0, first.subject)]


def test_what_other_ranks_wait_after_small_reads_puts_no_host_ahead(tmp_path: Path) -> None:
    def price(ranks: int) -> float:
        run = reading(tmp_path / f"{ranks}.sqlite", host=3 * MS, ranks=ranks)
        found = find_in(Case(open_report(run.write())))
        (one,) = [one for one in found if one.rule == "small_copies"]
        return one.saved_ns

    assert price(1) == price(2) == pytest.approx(39 * MS, rel=0.1)


@pytest.mark.parametrize(("first", "gaps"), [(6 * MS, 3), (30 * MS, 2)])
def test_what_a_gpu_idles_half_as_long_for_later_is_no_set_up(
    first: int, gaps: int, tmp_path: Path
) -> None:
    synth, host, gpu = bare(tmp_path / "r.sqlite"), 0, 0
    for step in range(STEPS):
        begun, sleeps = host, (8 * MS if step else first) * (step % 8 == 0)
        for number in range(4):
            if number == 1 and sleeps:
                synth.osrt("nanosleep", host, host + sleeps)
                host += sleeps
            start = max(gpu, host + 9 * US)
            gpu = start + 2 * MS
            synth.launch(f"k{number}", (host, host + 5 * US), (start, gpu), grid=FULL)
            host += 10 * US
        synth.api("cudaEventSynchronize", host, gpu - 4 * MS)  # the host stays 4 ms ahead
        host = gpu - 4 * MS
        synth.nvtx(f"step {step}", begun, host)
    found = find_in(Case(open_report(synth.write())))
    assert [one.rule for one in found if one.rule == "warm_up"] == ["warm_up"] * (gaps < 3)
    (sleep,) = [one for one in found if one.rule == "gpu_idle"]
    assert f"in {gaps} of 20 steps, sleep" in sleep.title


def waiting(
    path: Path,
    call: str,
    *,
    works: bool,
    rounds: str,
    wakes: str,
    before: bool,
    once: bool,
) -> Synth:
    """A thread that waits in a call, for 3 ms to 5, before each work of some milliseconds.

    Args:
        path: of the report.
        call: the call.
        works: another thread of the process is on a CPU meanwhile.
        rounds: name of the range around each round, if any.
        wakes: another thread takes requests, or asks for them all the time; if it "signals" it
            wakes this one.
        before: the range begins with the work, not with the wait.
        once: one wait alone is long.
    """
    synth, now = bare(path), 0
    for number in range(STEPS):
        lasts = 3 * MS + number * number % 7 * 300 * US
        begun, now = now, now + (lasts if not once else 300 * MS if number == 7 else US)
        synth.sched(begun, False).sched(now, True)
        if works:
            synth.sched(begun, True, tid=99).sched(now, False, tid=99)
        synth.osrt(call, begun, now)
        for wake in range(begun, now, MS) if wakes else ():
            synth.osrt("epoll_wait", wake, min(wake + MS // 2, now - 3 * US), tid=98)
        if wakes == "signals":
            synth.osrt("pthread_cond_signal", now - 2 * US, now - US, tid=98)
        start = now + 30 * US
        now = start + 2 * MS + number % 3 * 100 * US
        synth.launch(f"k{number % 3}", (start - 8 * US, start - 4 * US), (start, now), grid=FULL)
        synth.api("cudaDeviceSynchronize", start - 3 * US, now)
        if rounds:
            synth.nvtx(f"{rounds} {number}", start - 20 * US if before else begun, now)
    return synth


@pytest.mark.parametrize(
    ("call", "how", "told"),
    [
        ("pthread_cond_wait", {}, "waits for work: "),
        ("pthread_cond_timedwait", {}, "waits for work: "),
        ("pthread_cond_timedwait", {"once": True}, "wait: pthread_cond_timedwait"),
        ("pthread_cond_wait", {"works": True}, "wait: pthread_cond_wait"),
        ("pthread_cond_wait", {"rounds": "train step"}, "wait: "),
        ("pthread_cond_wait", {"rounds": "step"}, "wait: "),
        ("pthread_cond_wait", {"rounds": "step", "before": True}, "waits for work: "),
        ("pthread_cond_wait", {"rounds": "train step", "before": True}, "wait: "),
        ("pthread_cond_wait", {"wakes": "ticks"}, "waits for work: "),
        ("pthread_cond_wait", {"wakes": "ticks", "works": True}, "wait: "),
        ("pthread_cond_wait", {"wakes": "signals"}, "waits for requests: epoll_wait of"),
        ("wait4", {}, "wait: wait4"),
        ("ioctl", {}, "waits for another device: ioctl"),
    ],
)
def test_a_wait_for_work_is_no_fault_where_nobody_works_meanwhile(
    call: str, how: dict[str, Any], told: str, tmp_path: Path
) -> None:
    usual: dict[str, Any] = dict.fromkeys(("works", "before", "once"), False)
    usual |= {"rounds": "", "wakes": ""}
    report = waiting(tmp_path / "r.sqlite", call, **usual | how).write()
    one = next(o for o in find_in(Case(open_report(report))) if o.rule == "gpu_idle" and o.stake_ns)
    assert f", {told}" in one.title
    assert (one.saved_ns > 0) is not (told.startswith("waits for ") or "once" in how)


@pytest.mark.parametrize("attention", [2000, 2250])
def test_a_gpu_that_is_as_quick_in_all_kernels_but_one_is_not_slow(
    tmp_path: Path, attention: int
) -> None:
    """Kernels of one name alone that take longer have more data: they gain half, divided evenly."""

    def run(path: Path) -> Synth:
        synth = bare(path).gpu(1)
        for step in range(STEPS):
            for device, durations in enumerate(((6000, 2000), (7000, attention))):
                now = step * 10 * MS
                for name, took in zip(("experts", "attention"), durations, strict=True):
                    end = now + took * US
                    synth.kernel(name, now, end, device=device, stream=7 + device, grid=FULL)
                    now = end
                end = (step + 1) * 10 * MS
                name = "ncclDevKernel_AllReduce"
                synth.kernel(name, now, end, device=device, stream=7 + device)
        return synth

    (one,) = [one for one in find_in(case_of(run, tmp_path)) if one.rule == "gpu_imbalance"]
    alone = attention == 2000
    assert one.subject == ("experts longer on GPU 1" if alone else "GPU 1 slower than the others")
    assert one.saved_ns == STEPS * (500 if alone else 1250) * US
