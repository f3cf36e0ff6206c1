"""Who waits for whom: clocks, people, other ranks and threads, and runs that nearly do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import FULL, MS, US, Machine
from planted import bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

SECOND = 1_000 * MS
FRAME = SECOND // 30


def found(synth: Synth, rule: str) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [one for one in find_in(case) if one.rule == rule]


@pytest.mark.parametrize("missed", [0.05, 0.3])
@pytest.mark.parametrize("grid", [True, False])
def test_a_tick_may_pass_without_a_round(tmp_path: Path, missed: float, grid: bool) -> None:
    run, chance = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7)
    ticks = np.cumsum(1 + (chance.random(160) < missed)) * 37 * MS
    late = chance.normal(0, MS / 3, 160)
    for until in (ticks + (late if grid else np.cumsum(late))).astype(int).tolist():
        run.off("poll", max(until - run.now, US))
        run.launch("draw", 7 * MS)
        run.wait()
    (one,) = found(run.report, "gpu_idle")
    assert ("waits for the next tick" in one.title) is grid


@pytest.mark.parametrize(("hertz", "grid", "paced"), [(60, 1, 1), (60, 0, 0), (53, 1, 0)])
def test_work_that_begins_by_a_clock_waits_for_it_unseen(
    tmp_path: Path, hertz: int, grid: int, paced: int
) -> None:
    run, chance = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7)
    late = chance.normal(0, 150 * US, 200)
    starts = np.arange(1, 201) * SECOND / hertz + (late if grid else np.cumsum(late))
    for start in starts.astype(int).tolist():
        run.now = max(start, run.now)
        run.launch("draw", int(chance.integers(6_000, 7_000)) * US)
        run.wait()
    (one,) = found(run.report, "gpu_idle")
    assert ("its work keeps a rate" in one.title) is bool(paced)


def fed(path: Path, call: str, period: int, part: float, *, grid: bool = False) -> Synth:
    """Rounds of 1 ms of work, each after a wait whose end varies by a part of the period.

    Args:
        path: of the report.
        call: that waits.
        period: of the rounds.
        part: deviation of the ends on a grid, else of each round from the last.
        grid: ends keep to a grid of times.
    """
    run, late = Machine(path), np.random.default_rng(7).normal(0, part * period, 80)
    for round_, off in enumerate(late if grid else np.cumsum(late)):
        run.off(call, max((round_ + 1) * period + int(off) - run.now, US))
        run.launch("detect", MS)
        run.wait()
    return run.report


@pytest.mark.parametrize(
    ("call", "period", "grid", "paced"),
    [
        ("pthread_cond_wait", FRAME, False, True),  # the rate of a camera, whose clock is another's
        ("sem_timedwait", 100 * MS, True, True),
        ("select", 37 * MS, True, True),  # no usual rate, yet no round shifts the next ones
        ("poll", 37 * MS, False, False),  # somebody who works, about evenly
        ("pthread_cond_wait", 37 * MS, False, False),
    ],
)
def test_waits_that_a_clock_ends_are_no_fault(
    tmp_path: Path, call: str, period: int, grid: bool, paced: bool
) -> None:
    (one,) = found(fed(tmp_path / "r.sqlite", call, period, 0.015, grid=grid), "gpu_idle")
    assert ("waits for the next tick" in one.title) is paced
    assert (one.saved_ns == 0) is paced


@pytest.mark.parametrize("grid", [True, False])
def test_what_has_no_price_makes_no_tick_late(tmp_path: Path, grid: bool) -> None:
    """Rounds of 37 ms in which the host does something unseen for 6 ms before a second launch."""
    run, late = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7).normal(0, MS / 2, 80)
    for round_, off in enumerate(late if grid else np.cumsum(late)):
        run.off("select", max((round_ + 1) * 37 * MS + int(off) - run.now, US))
        for name in ("detect", "track"):
            run.launch(name, MS)
            run.wait()
            run.now += 6 * MS * (name == "detect")
    unseen = next(one for one in found(run.report, "gpu_idle") if "nothing recorded" in one.title)
    assert unseen.severity is (Severity.MEDIUM if grid else Severity.HIGH)


def test_waits_of_a_round_length_end_by_it_and_by_no_clock(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for round_ in range(80):
        run.off("sem_timedwait", 100 * MS)
        run.launch("detect", (2 + round_ % 3) * MS)
        run.wait()
    (one,) = found(run.report, "gpu_idle")
    assert "next tick" not in one.title


@pytest.mark.parametrize(
    ("call", "priced"), [("sem_wait", False), ("recvmsg", False), ("read", True)]
)
def test_a_thread_that_waits_itself_is_not_slow(tmp_path: Path, call: str, priced: bool) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.report.thread(11, "feeder")
    for round_ in range(30):
        since, until = run.now, run.now + (20 + round_ * 7 % 11) * MS
        run.report.osrt(call, since + 50 * US, until - 50 * US, tid=11)
        run.report.osrt("pthread_cond_signal", until - 20 * US, until - 18 * US, tid=11)
        run.off("pthread_cond_wait", until - since)
        run.launch("work", 3 * MS)
        run.wait()
    (one,) = found(run.report, "gpu_idle")
    assert f"while feeder is in {call}" in one.title
    assert (one.saved_ns > 0) is priced


@pytest.mark.parametrize(("before", "waits"), [("write", True), ("open", False)])
def test_long_reads_after_a_question_wait_for_an_answer(
    tmp_path: Path, before: str, waits: bool
) -> None:
    """A file is opened before it is read, whatever was written before that."""
    run = Machine(tmp_path / "r.sqlite")
    for round_ in range(6):
        run.off("write", 10 * US)
        if before != "write":
            run.off(before, 10 * US)
        run.off("read", (2 + round_ % 3) * SECOND)
        run.layers(3)
        run.wait()
    (one,) = [one for one in found(run.report, "gpu_idle") if "read" in one.title]
    assert ("waits for input" in one.title) is waits
    assert (one.saved_ns == 0) is waits


@pytest.mark.parametrize(
    ("call", "lasts", "bound"),
    [
        ("MPI_Sendrecv", 25 * US, False),
        ("MPI_Iprobe", 2 * US, True),
        ("sched_yield", 25 * US, False),
    ],
)
def test_gaps_in_calls_that_launch_nothing_are_not_bound_by_launches(
    tmp_path: Path, call: str, lasts: int, bound: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(400):
        run.launch("stencil", 4 * US)
        run.now += 3 * US
        if call.startswith("MPI"):
            run.report.mpi(call, run.now, run.now + lasts, "p2p", size=64)
            run.now += lasts
        else:
            run.off(call, lasts)
    synth = run.report
    assert bool(found(synth, "launch_bound")) is bound
    assert any(call in one.title for one in found(synth, "gpu_idle")) is not bound


@pytest.mark.parametrize("sends", [True, False])
def test_short_gaps_at_copies_that_stage_messages_want_no_graph(
    tmp_path: Path, sends: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for at in range(0, 400 * 50 * US, 50 * US):
        for begun, ended, kind in ((0, 4, "HtoD"), (10, 35, ""), (41, 44, "DtoH")):
            work, corr = (at + begun * US, at + ended * US), synth.next_correlation()
            name = "cudaMemcpyAsync_v3020" if kind else "cudaLaunchKernel_v7000"
            synth.api(name, work[0] - 4 * US, work[0] - US, corr=corr)
            if kind:
                synth.memcpy(*work, kind=kind, bytes=8192, corr=corr, src="pinned", dst="pinned")
            else:
                synth.kernel("stencil", *work, corr=corr, grid=FULL)
        if sends:
            synth.mpi("MPI_Sendrecv", at + 44 * US, at + 46 * US, "p2p", size=8192)
    (one,) = [one for one in found(synth, "gpu_idle") if "short gap" in one.title]
    assert ("GPU-aware MPI" in one.advice) is sends
    assert ("CUDA graph" in one.advice) is not sends


@pytest.mark.parametrize(("launches", "graph"), [(2, False), (40, True)])
def test_no_graph_holds_what_the_host_decides_by_each_result(
    tmp_path: Path, launches: int, graph: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(800 // launches):
        for _ in range(launches):
            run.launch("sweep", 4 * US)
            run.now += 8 * US
        run.copy(4, 10, "DtoH", "pageable")
    (one,) = found(run.report, "launch_bound")
    assert ("CUDA graph" in one.advice) is graph


@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_recorded_is_not_to_be_recorded(tmp_path: Path, recorded: bool) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("work", 2 * MS)
        if recorded:
            run.off("write", 10 * US)
        run.now += 7 * MS
    (one,) = found(run.report, "gpu_idle")
    assert one.advice.count("--sample=process-tree") == 1
    assert ("osrt" in one.advice) is not recorded


@pytest.mark.parametrize("sampled", [True, False])
def test_threads_of_the_profiler_are_not_looked_at(tmp_path: Path, sampled: bool) -> None:
    """Where only waits are recorded, of what the program does nothing is known."""
    synth = Synth(tmp_path / "r.sqlite").process(10, "solver")
    synth.thread(10, "solver").thread(11, "[NSys Comms]").osrt("poll", 0, 9 * SECOND, tid=11)
    synth.osrt("sem_wait", 0, 3 * SECOND).osrt("write", 4 * SECOND, 4 * SECOND + MS)
    if sampled:
        synth.sched(0, True).sched(4 * SECOND, False)
    (one,) = found(synth, "host_only")
    assert one.title.startswith("solver")
    assert (one.severity is Severity.HIGH) is sampled


@pytest.mark.parametrize("sends", [True, False])
def test_waits_for_what_mpi_sends_next_are_needed(tmp_path: Path, sends: bool) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(40):
        run.launch("stencil", MS)
        run.wait()
        if sends:
            run.report.mpi("MPI_Send", run.now, run.now + US, "p2p", size=64)
        run.now += 2 * US
    (one,) = found(run.report, "sync_by_range")
    assert one.advice.startswith("MPI needs what it waits for") is sends


@pytest.mark.parametrize("copies", [True, False])
def test_no_rank_is_late_while_its_message_is_copied(tmp_path: Path, copies: bool) -> None:
    """GPU 0 computes for 2 ms; the rank of GPU 1 waits for it, and for its message, for 5 ms."""
    synth = Synth(tmp_path / "r.sqlite")
    for step, begun in enumerate(range(0, 300 * MS, 10 * MS)):
        for gpu, lasts in ((0, 2 * MS), (1, 5 * MS)):
            synth.process(10 + gpu, None if step else "rank")
            if not step:
                synth.gpu(gpu)
            start = begun + gpu * 5 * MS
            call, work = (start, start + 5 * US), (start + 10 * US, start + lasts)
            synth.launch("k", call, work, device=gpu, context=gpu + 1, grid=FULL)
            at = begun + 2 * MS + 10 * US
            if copies and not gpu:
                synth.memcpy(at, begun + 5 * MS, kind="PtoP", bytes=64, device=0, context=1)
        synth.mpi("MPI_Recv", begun, begun + 5 * MS, "p2p", size=64)
    waits = [one for one in found(synth, "gpu_idle") if "MPI_Recv" in one.title]
    assert sum(one.stake_ns for one in waits) == pytest.approx(
        29 * (2 if copies else 5) * MS, rel=0.05
    )


@pytest.mark.parametrize(
    ("stagger", "lost", "stages"), [(US, 0, False), (US, 9, False), (40 * US, 0, True)]
)
def test_gpus_that_exchange_at_one_time_are_no_stages(
    tmp_path: Path, stagger: int, lost: int, stages: bool
) -> None:
    """Nor are they where the capture has lost some messages of one."""
    synth = bare(tmp_path / "r.sqlite").gpu(1).gpu(2)
    for step in range(200):
        for gpu in range(3):
            at = step * 200 * US + gpu * stagger
            parts = (("stencil", 10, 20), ("ncclDevKernel_SendRecv", 20, 34 + gpu))
            for name, begun, ended in parts:
                work = (at + begun * US, at + ended * US)
                if name == "stencil" or gpu or step % 20 != 9 or not lost:
                    synth.launch(name, (at, at + 4 * US), work, device=gpu, grid=FULL)
    (one,) = found(synth, "exposed_communication")[:1]
    assert ("stages wait" in one.advice) is stages
    assert ("exchange more at once" in one.advice) is not stages


@pytest.mark.parametrize(("ended", "own"), [(1, True), (2, False)])
def test_a_process_that_has_forked_waits_for_its_own_helpers(
    tmp_path: Path, ended: int, own: bool
) -> None:
    run, late = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7).integers(0, 9, 40)
    for name, times in (("fork", 2), ("waitpid", ended)):
        for _ in range(times):
            run.off(name, MS)
    for more in late.tolist():
        run.off("poll", (5 + more) * MS)
        run.off("recvmsg", 10 * US)
        run.launch("work", MS)
        run.wait()
    one = next(one for one in found(run.report, "gpu_idle") if "poll" in one.title)
    assert ("processes that it forked" in one.title) is own
    assert bool(one.saved_ns) is own


@pytest.mark.parametrize(("every", "anew"), [(1, True), (3, False), (99, False)])
def test_helpers_that_start_before_each_wait_are_to_go_on_running(
    tmp_path: Path, every: int, anew: bool
) -> None:
    """A renderer starts its readers anew for each scene, for each third one, or once."""
    run, late = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7).integers(0, 200, 12)
    for scene, more in enumerate(late.tolist()):
        if scene % every == 0:
            run.off("fork", MS)
        run.off("poll", (300 + more) * MS)
        for _ in range(20):
            run.launch("trace", 9 * MS)
        run.wait()
    one = next(one for one in found(run.report, "gpu_idle") if "forked" in one.title)
    assert ("keep them running, so" in one.advice) is anew


@pytest.mark.parametrize(("sleeps", "looks"), [(20, True), (1, False)])
def test_many_sleeps_in_a_gap_are_a_look_for_what_is_not_there(
    tmp_path: Path, sleeps: int, looks: bool
) -> None:
    run, late = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7).integers(0, 9, 20)
    for more in late.tolist():
        for _ in range(sleeps):
            run.off("nanosleep", 20 * (1 + more) * MS // sleeps)
            run.now += 30 * US
        run.launch("plan", 5 * MS)
        run.wait()
    one = next(one for one in found(run.report, "gpu_idle") if "sleep" in one.title)
    assert ("sleeps until something comes" in one.title) is looks
    assert (one.saved_ns == 0) is looks


@pytest.mark.parametrize("threads", [1, 4])
def test_a_wait_of_one_of_several_threads_costs_no_more_than_its_part(
    tmp_path: Path, threads: int
) -> None:
    """Each thread waits 2 ms of its 10 ms, computes unseen for 7 and launches 0.1 ms of work."""
    synth = bare(tmp_path / "r.sqlite")
    for thread in range(threads):
        synth.thread(10 + thread, f"worker{thread}")
        for round_ in range(100):
            begun = round_ * 10 * MS + thread * 10 * MS // threads
            call = begun + 10 * MS - 500 * US
            synth.osrt("sem_wait", call - 2 * MS, call - US, tid=10 + thread)
            gpu = (call + 10 * US, call + 110 * US)
            synth.launch("decode", (call, call + 5 * US), gpu, grid=FULL, tid=10 + thread)
    one = next(one for one in found(synth, "gpu_idle") if "sem_wait" in one.title)
    assert one.saved_ns == pytest.approx(100 * 2 * MS, rel=0.02)
    assert threads * 196 * MS < one.stake_ns < one.of_ns, "with what is unseen in the same gaps"


@pytest.mark.parametrize("size", [0, 4_000, 8_000_000])
def test_what_is_uploaded_next_is_made_ready_ahead(tmp_path: Path, size: int) -> None:
    """The host reads one value of each picture, then decodes the next; a few bytes are no input."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        if size:
            run.copy(size, 8, "HtoD", "pageable")
        run.launch("classify", 6 * MS)
        run.copy(4, 8, "DtoH", "pageable")
        run.now += 3 * MS
    idle = found(run.report, "gpu_idle")[0]
    assert idle.advice.startswith("make ready what is uploaded next") is (size > 4_000)


@pytest.mark.parametrize("call", ["ioctl", "write"])
def test_a_device_that_is_driven_may_set_the_pace(tmp_path: Path, call: str) -> None:
    """A capture card, or a file that the program writes, which takes as long as that takes."""
    run = Machine(tmp_path / "r.sqlite")
    for number in range(60):
        run.launch("scale", 2 * MS)
        run.wait()
        run.off(call, (6 + number * 7 % 5) * MS)
    idle = found(run.report, "gpu_idle")[0]
    assert ("waits for another device" in idle.title) is (call == "ioctl")
    assert (idle.saved_ns == 0) is (call == "ioctl")
