"""Idle time by witness: each nanosecond has one cause, and the price is what could be gained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import Machine
from planted import FULL, MS, US, bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.idle_causes import hiding
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import EDGES, UNKNOWN, parts, verdict
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge
from nsys_tui.analysis.stalls.explained import by_witness, when
from nsys_tui.model import intervals
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def case_of(synth: Synth) -> Case:
    return Case(open_report(synth.write(), use_cache=False))


def idle(case: Case, rule: str = "gpu_idle") -> list[Finding]:
    return [one for one in find_in(case) if one.rule == rule]


def two_causes(path: Path, shorter: int) -> Synth:
    """Before each step the host sleeps 3 ms, and allocates for a shorter time."""
    synth = bare(path)
    for step in range(20):
        start = step * 10 * MS
        synth.nvtx(f"step {step}", start, start + 10 * MS)
        synth.osrt("nanosleep", start, start + 3 * MS)
        synth.api("cudaMalloc_v3020", start + 3 * MS, start + 3 * MS + shorter)
        begun = start + 3 * MS + shorter
        gpu = (begun + 10 * US, start + 10 * MS)
        synth.launch(f"k{step % 5}", call=(begun, begun + 5 * US), gpu=gpu, grid=FULL)
    return synth


@pytest.mark.parametrize(("shorter", "named"), [(MS, True), (50 * US, False)])
def test_the_smaller_cause_of_the_same_gaps_is_told_too(
    tmp_path: Path, shorter: int, named: bool
) -> None:
    case = case_of(two_causes(tmp_path / "r.sqlite", shorter))
    line = verdict(case, find_in(case))
    assert "Worth fixing: idle, sleep: nanosleep (up to 2" in line
    assert ("; allocations inside the loop (up to 9." in line) is named


READS, WAITS, UNSEEN = "I/O: read", "wait: sem_wait", "nothing recorded"


@pytest.mark.parametrize(
    ("call", "took", "split", "told"),
    [
        ("read", 6, False, [(READS, 180, 180)]),
        ("sem_wait", 6, False, [(WAITS, 180, 120)]),
        ("read", 6, True, [(READS, 120, 120), (UNSEEN, 60, 0)]),
        ("read", 1, False, [(READS, 20, 20), (UNSEEN, 160, 0)]),
        ("sem_wait", 4, False, [(UNSEEN, 100, 0), (WAITS, 80, 80)]),
    ],
    ids=("read", "wait", "in gaps of its own", "the smaller part", "less than half"),
)
def test_what_is_unseen_goes_with_the_call_that_has_most_of_its_gaps(
    tmp_path: Path, call: str, took: int, split: bool, told: list[tuple[str, int, int]]
) -> None:
    """Of each 9 ms that the GPU idles, a call takes some, and nobody knows the rest.

    Being ahead hides what the host does besides reading; nobody is ahead of who wakes it.
    """
    synth = bare(tmp_path / "r.sqlite")
    for step in range(20):
        start, begun = step * 20 * MS, [step * 20 * MS + 9 * MS]
        synth.osrt(call, start + 20 * US, start + took * MS)
        begun = [start + took * MS, start + 10 * MS] if split else begun
        for place, at in enumerate(begun):
            after = start + 20 * MS if place + 1 == len(begun) else at + MS
            synth.launch(f"k{step % 5}", (at, at + 5 * US), (at + 10 * US, after), grid=FULL)
    found = [one for one in idle(case_of(synth)) if one.stake_ns > 5 * MS]
    told_of = {READS, WAITS, UNSEEN}
    seen = [
        (next(name for name in told_of if name in one.subject), one.stake_ns, one.saved_ns)
        for one in sorted(found, key=lambda one: one.subject)
    ]
    assert [one[0] for one in seen] == [one[0] for one in told]
    for (_, stake, saved), (_, whole, price) in zip(seen, told, strict=True):
        assert (stake, saved) == pytest.approx((whole * MS, price * MS), rel=0.08, abs=MS)


def round_trip(path: Path, waited: int, computed: int, together: bool) -> Synth:
    """A wait returns late and the host computes before the next launch: both, or one by turns."""
    synth, now = bare(path).sched(0, True), 0
    for step in range(40):
        synth.launch(f"k{step % 5}", (now, now + 5 * US), (now + 9 * US, now + MS), grid=FULL)
        late = waited if together or step % 2 else 0
        synth.api("cudaDeviceSynchronize_v3020", now + 9 * US, now + MS + late)
        now += MS + late + (computed if together or not step % 2 else 0)
    return synth.sched(now, False)


@pytest.mark.parametrize(
    ("waited", "together", "told"),
    [(300 * US, True, "; 12.05 ms sync call"), (200 * US, True, ""), (300 * US, False, "")],
)
def test_what_a_host_does_in_the_same_gaps_is_one_finding_of_all_their_time(
    tmp_path: Path, waited: int, together: bool, told: str
) -> None:
    case = case_of(round_trip(tmp_path / "r.sqlite", waited, 900 * US, together))
    found = [one for one in find_in(case) if one.saved_ns and not one.same_as]
    assert [one.rule for one in found] == ["gpu_idle", "sync_by_range"][: 2 - together]
    gaps, more = (39, waited + 9 * US) if together else (20, 0)
    assert found[0].saved_ns == gaps * (900 * US + more), "with the launch after the wait"
    assert found[0].title.endswith(f" gaps after cudaDeviceSynchronize, host compute{told}")


@pytest.mark.parametrize(
    ("waited", "told"),
    [
        (10 * US, "sync call and launch: cudaDeviceSynchronize"),
        (2 * MS, ": cudaDeviceSynchronize returns late, why is not recorded"),
    ],
)
def test_idle_time_of_a_wait_is_told_to_be_of_the_launch_after_it_too(
    tmp_path: Path, waited: int, told: str
) -> None:
    case = case_of(round_trip(tmp_path / "r.sqlite", waited, 0, together=True))
    assert told in idle(case, "sync_by_range")[0].title


@pytest.mark.parametrize(
    ("call", "inside", "told"),
    [
        ("ioctl", True, "other API: cudaGraphInstantiate"),
        ("pread64", True, "other API: cudaGraphInstantiate"),
        ("ioctl", False, "waits for another device: ioctl"),
        ("pthread_mutex_lock", True, "lock: pthread_mutex_lock"),
    ],
)
def test_what_the_driver_calls_inside_a_cuda_call_is_that_call(
    tmp_path: Path, call: str, inside: bool, told: str
) -> None:
    """Before each kernel a graph is made; beside or after it the OS is called for 2.9 of 3 ms."""
    synth = bare(tmp_path / "r.sqlite")
    for step in range(20):
        start = step * 10 * MS
        synth.osrt(call, start + 40 * US, start + 2940 * US)
        synth.api("cudaGraphInstantiate_v12000", start, start + (3 * MS if inside else 30 * US))
        begun = start + 3 * MS
        gpu = (begun + 10 * US, start + 10 * MS)
        synth.launch(f"k{step % 5}", call=(begun, begun + 5 * US), gpu=gpu, grid=FULL)
    (one,) = [one for one in idle(case_of(synth)) if one.stake_ns > 10 * MS]
    assert told in one.title


def test_the_time_of_each_cause_is_told_to_the_nanosecond(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for number in range(300):
        start = now
        for call in rng.permutation(["nanosleep", "read", "futex", "cudaMalloc", "Sync", ""])[:3]:
            end = now + int(rng.integers(1, 40 * US))
            if call.startswith("cuda"):
                synth.api("cudaMalloc_v3020", now, end)
            elif call == "Sync":
                synth.api("cudaStreamSynchronize_v3020", now, end)
            elif call:
                synth.osrt(call, max(start, now - 3 * US), end)
            now = end
        gpu = (now + 7 * US, now + 20 * US)
        synth.launch(f"k{number}", call=(now, now + 5 * US), gpu=gpu, grid=FULL)
        now += 20 * US
    stalls = case_of(synth).stalls
    gaps = stalls.gaps.take(stalls.gaps.edge == Edge.INNER)
    parts, spans = by_witness(stalls.work, gaps, SHARES, 0)
    assert parts.idle.sum() == gaps.idle.sum()
    causes = np.unique(parts.cause).tolist()
    assert {Cause.SLEEP, Cause.IO, Cause.WAIT, Cause.ALLOCATION, Cause.SYNC} < {*causes}
    each = [when(stalls.work, parts.take(parts.cause == cause), spans) for cause in causes]
    assert [intervals.total(*one) for one in each] == [
        int(parts.idle[parts.cause == cause].sum()) for cause in causes
    ]
    assert intervals.total(*map(np.concatenate, zip(*each, strict=True))) == gaps.idle.sum()


def test_advice_to_hide_says_how_much_can_be_hidden() -> None:
    assert hiding("overlap them", idle=5 * MS, work=5 * MS) == "overlap them"
    told = hiding("overlap them", idle=5 * MS + 1, work=5 * MS)
    assert told == "overlap them; that hides 5.000 ms at most, quicker code the rest"


def by_thread(path: Path, work: dict[int, int], turns: bool) -> Synth:
    """One thread launches on GPUs, one after the other or at once, and waits for all."""
    synth, now = Synth(path).process(10), 0
    for gpu in work:
        synth.gpu(gpu)
    for _ in range(20):
        start, done = now, now
        for gpu, length in work.items():
            begun = done if turns else start + 10 * US
            done = begun + length
            call = (now, now + 2 * US)
            synth.launch("k", call=call, gpu=(begun + 5 * US, done), device=gpu, grid=FULL)
            now += 2 * US
        until = done if turns else start + max(work.values()) + 10 * US
        synth.api("cudaDeviceSynchronize_v3020", now, until + 4 * US)
        now = until + 4 * US
    return synth


@pytest.mark.parametrize(
    ("work", "turns", "whom", "least", "most"),
    [
        ({0: 4 * MS, 1: 4 * MS, 2: 4 * MS}, True, "GPUs by turns", 0.6, 0.7),
        ({0: 8 * MS, 1: 4 * MS}, False, "GPU 0", 0.2, 0.26),
    ],
)
def test_a_gpu_that_waits_for_others_gives_back_what_spreading_would(
    tmp_path: Path, work: dict[int, int], turns: bool, whom: str, least: float, most: float
) -> None:
    case = case_of(by_thread(tmp_path / "r.sqlite", work, turns))
    (one,) = idle(case, "sync_by_range")
    assert one.title.endswith(f"cudaDeviceSynchronize waits for {whom}")
    assert least < one.saved_ns / case.base_ns < most


@pytest.mark.parametrize(("call", "priced"), [("epoll_wait", False), ("poll", True)])
def test_a_server_without_requests_has_no_fault_to_mend(
    tmp_path: Path, call: str, priced: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(20):
        start = number * 10 * MS
        synth.osrt(call, start, start + 7 * MS)
        call_at = (start + 7 * MS, start + 7 * MS + 5 * US)
        synth.launch(f"k{number}", call=call_at, gpu=(call_at[1], start + 10 * MS), grid=FULL)
    case = case_of(synth)
    found = find_in(case)
    assert ("Worth fixing" in verdict(case, found)) is priced
    assert any("waits for requests" in one.title for one in found) is not priced


@pytest.mark.parametrize("every", [1, 10])
def test_short_gaps_after_waits_are_told_as_waits(tmp_path: Path, every: int) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(2000):
        start = number * 32 * US
        synth.launch("k", call=(start - 6 * US, start), gpu=(start, start + 24 * US), grid=FULL)
        if number % every == 0:
            synth.api("cuStreamSynchronize", start + US, start + 25 * US)
    (one,) = (one for one in find_in(case_of(synth)) if "short gap" in one.title)
    assert ("the host waits for each" in one.title) is (every == 1)
    assert ("wait once for many" in one.advice) is (every == 1)


def test_a_wait_among_three_launches_is_not_one_for_each(tmp_path: Path) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(4):
        start = number * 32 * US
        synth.launch("k", call=(start - 6 * US, start), gpu=(start, start + 24 * US), grid=FULL)
    synth.api("cudaStreamSynchronize", 65 * US, 70 * US)
    (one,) = (one for one in find_in(case_of(synth)) if "short gap" in one.title)
    assert "each launch comes only after" in one.title


@pytest.mark.parametrize(("lead", "told"), [(0, True), (60 * US, False)])
def test_many_short_gaps_are_told_where_launches_come_late(
    tmp_path: Path, lead: int, told: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(2000):
        start = number * 32 * US
        call = (start - lead - 6 * US, start - lead)
        synth.launch(f"k{number % 5}", call=call, gpu=(start, start + 24 * US), grid=FULL)
    case = case_of(synth)
    found = find_in(case)
    line = verdict(case, found)
    assert any("each launch comes only after" in one.title for one in found) is told
    assert ("short gaps before late launches (up to 21.9%)" in line) is told


def test_what_the_second_step_begins_with_is_no_set_up(tmp_path: Path) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for step in range(4):
        start, lead = step * 20 * MS, 9 * MS if step == 1 else 20 * US
        synth.nvtx(f"train step {step}", start, start + 20 * MS)
        synth.osrt("read", start, start + lead)
        call = (start + lead, start + lead + 5 * US)
        synth.launch("k", call=call, gpu=(call[1], start + 20 * MS), grid=FULL)
    case = case_of(synth)
    assert "set-up" not in verdict(case, find_in(case))


@pytest.mark.parametrize(
    ("stream", "src", "packs", "mpi", "advice"),
    [
        (7, "pinned", 0, False, "copy on a stream of its own"),
        (20, "pinned", 0, False, "start each copy earlier (two buffers)"),
        (20, "pinned", 40 * US, False, "start each copy earlier (two buffers)"),
        (20, "pinned", MS, False, "copy on a stream of its own"),
        (7, "pinned", 0, True, "give MPI the GPU's buffers"),
        (20, "pageable", 0, False, "pin the host memory, then start each copy earlier"),
        (7, "pageable", 0, False, "pin the host memory, then copy on a stream of its own"),
    ],
)
def test_what_to_do_of_copies_that_nothing_hides(
    tmp_path: Path, stream: int, src: str, packs: int, mpi: bool, advice: str
) -> None:
    """A kernel that packs what is copied leaves a stream one for copies, longer ones do not."""
    synth = bare(tmp_path / "r.sqlite")
    for step in range(20):
        start = step * 10 * MS
        synth.memcpy(start, start + 4 * MS, bytes=10**8, src=src, stream=stream)
        synth.kernel(f"k{step}", start + 4 * MS, start + 9 * MS, grid=FULL)
        if packs:
            synth.kernel("pack", start + 4 * MS, start + 4 * MS + packs, stream=stream, grid=FULL)
        if mpi:
            synth.mpi("MPI_Sendrecv", start - MS // 2, start - 20 * US, "p2p", size=8)
    (one,) = idle(case_of(synth), "exposed_copies")
    assert one.advice.startswith(advice)


@pytest.mark.parametrize(
    ("reads", "advice"), [(True, "read results later"), (False, "leave out waits")]
)
def test_no_event_spares_the_host_a_result_that_it_reads(
    tmp_path: Path, reads: bool, advice: str
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for step in range(100):
        start = step * 500 * US
        call, gpu = (start, start + 5 * US), (start + 6 * US, start + 400 * US)
        synth.launch(f"k{step % 5}", call=call, gpu=gpu, grid=FULL)
        if reads:
            corr = synth.next_correlation()
            synth.api("cudaMemcpyAsync_v3020", start + 6 * US, start + 10 * US, corr=corr)
            synth.memcpy(gpu[1], gpu[1] + 2 * US, kind="DtoH", bytes=4, dst="pinned", corr=corr)
        synth.api("cudaStreamSynchronize_v3020", start + 11 * US, start + 495 * US)
    (one,) = idle(case_of(synth), "sync_by_range")
    assert one.advice.startswith(advice)


@pytest.mark.parametrize("recorded", [False, True])
def test_off_the_cpu_asks_for_calls_only_where_none_were_recorded(
    tmp_path: Path, recorded: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite").sched(0, True)
    for step in range(20):
        start = step * 10 * MS
        synth.sched(start + MS, False).sched(start + 5 * MS, True)
        gpu = (start + 5 * MS + 10 * US, start + 10 * MS)
        call = (start + 5 * MS, start + 5 * MS + 5 * US)
        synth.launch(f"k{step % 5}", call=call, gpu=gpu, grid=FULL)
    if recorded:
        synth.osrt("read", 2 * US, 3 * US)
    (found,) = [one for one in idle(case_of(synth)) if "off the CPU" in one.title]
    assert ("--trace=osrt" in found.advice) is not recorded
    assert ("raw futex" in found.advice) is recorded


@pytest.mark.parametrize(("after", "told"), [(2 * US, False), (100 * US, True)])
def test_who_goes_off_right_after_its_waits_blocks_and_wants_no_cpu(
    tmp_path: Path, after: int, told: bool
) -> None:
    """The scheduler tells no states, others have all CPUs, and locks are not traced."""
    synth = bare(tmp_path / "r.sqlite").sched(0, True, cpu=0).osrt("read", 0, 2 * US)
    for step in range(20):
        start = step * 10 * MS
        gpu, waited = (start + 10 * US, start + 5 * MS), start + 5 * MS + 5 * US
        synth.launch(f"k{step % 5}", (start, start + 5 * US), gpu, grid=FULL)
        synth.api("cudaStreamSynchronize_v3020", start + 6 * US, waited)
        synth.sched(waited + after, False, cpu=0).sched(start + 10 * MS - US, True, cpu=0)
        for tid in (50, 51):
            synth.sched(waited + after, True, tid=tid, cpu=tid - 50)
            synth.sched(start + 10 * MS - 2 * US, False, tid=tid, cpu=tid - 50)
    (one,) = [found for found in idle(case_of(synth)) if found.saved_ns > 50 * MS]
    assert one.title.endswith("waits for a CPU" if told else "off the CPU")


@pytest.mark.parametrize(("works", "wakes"), [(False, False), (True, False), (False, True)])
def test_the_first_wait_for_work_is_set_up_only_where_others_work(
    tmp_path: Path, works: bool, wakes: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite").sched(-20 * MS, True)
    synth.api("cudaMalloc_v3020", -20 * MS, -MS).memcpy(0, MS, bytes=10_000_000)
    synth.osrt("pthread_cond_wait", MS, 501 * MS).sched(MS, False).sched(501 * MS, True)
    if works:
        synth.sched(MS, True, tid=50, cpu=1).sched(501 * MS, False, tid=50, cpu=1)
    if wakes:
        synth.osrt("write", 500 * MS, 501 * MS, tid=50)
    for step in range(40):
        start = (503 + step * 8) * MS
        gpu = (start + 10 * US, start + 5 * MS)
        synth.launch(f"k{step % 5}", (start, start + 5 * US), gpu, grid=FULL)
        synth.osrt("pthread_cond_wait", start + MS, start + 8 * MS)
        synth.sched(start + MS, False).sched(start + 8 * MS, True)
    case = case_of(synth)
    first = [one for one in find_in(case) if one.stake_ns > 450 * MS or one.saved_ns > 450 * MS]
    assert {one.rule for one in first} == {"warm_up" if works or wakes else "gpu_idle"}
    assert all(one.saved_ns == 0 for one in first) is not (works or wakes)


@pytest.mark.parametrize(
    ("kernel", "staged"),
    [
        ("ncclDevKernel_SendRecv(args)", True),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", False),
    ],
)
def test_of_one_gpu_a_pipeline_is_but_one_reason_to_send_and_receive(
    tmp_path: Path, kernel: str, staged: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for step in range(20):
        start = step * 10 * MS
        synth.nvtx(f"step {step}", start, start + 10 * MS)
        parts = ((f"k{step % 5}", 0, 6), (kernel, 6, 10))
        for name, begun, ended in parts:
            call = (start + begun * MS - 9 * US, start + begun * MS - 5 * US)
            gpu = (start + begun * MS, start + ended * MS)
            synth.launch(name, call=call, gpu=gpu, grid=FULL)
    (one,) = idle(case_of(synth), "exposed_communication")
    assert ("a pipeline could" in one.advice) is staged
    assert "stages wait" not in one.advice
    assert (one.subject == "send and receive not hidden") is staged


@pytest.mark.parametrize(("begins", "edge"), [(60 * MS, 60 * MS), (0, 0)])
def test_time_before_the_work_of_a_gpu_is_a_class_of_its_own(
    tmp_path: Path, begins: int, edge: int
) -> None:
    synth = bare(tmp_path / "r.sqlite").gpu(1)
    for device, start in ((0, 0), (1, begins)):
        synth.cuda_device(10, device, device)
        call = (start - 9 * US, start - 5 * US)
        synth.launch(f"k{device}", call=call, gpu=(start, 100 * MS), grid=FULL, deviceId=device)
    classes = {part.name: part.ns for part in parts(case_of(synth))}
    assert classes.get(EDGES, 0) == edge
    assert classes.get(UNKNOWN, 0) == 0


@pytest.mark.parametrize(("calls", "named"), [(1, True), (3, False)])
def test_of_several_calls_none_is_told_to_be_left_out(
    tmp_path: Path, calls: int, named: bool
) -> None:
    """Beside 2 ms of computing, 600 us are in one call before each kernel, or in three."""
    synth = bare(tmp_path / "r.sqlite").sched(0, True).sched(200 * MS, False)
    for step in range(20):
        start = step * 10 * MS
        for place in range(3):
            name = ("cuMemGetInfo", "cudaSetDevice", "cudaGetDeviceProperties")[place % calls]
            synth.api(name, start + place * MS, start + place * MS + 200 * US)
        begun = start + 3 * MS
        gpu = (begun + 10 * US, start + 10 * MS)
        synth.launch(f"k{step % 5}", call=(begun, begun + 5 * US), gpu=gpu, grid=FULL)
    (one,) = [one for one in idle(case_of(synth)) if "other API" in one.title]
    assert ("cuMemGetInfo" in one.title) is named
    assert one.advice.startswith("leave the call out" if named else "leave these calls out")


@pytest.mark.parametrize("beside", [True, False])
def test_a_wait_for_another_gpu_is_told_so_whatever_else_the_host_does(
    tmp_path: Path, beside: bool
) -> None:
    """The host works five times as long as it waits for both GPUs, or for nobody known."""
    run = Machine(tmp_path / "r.sqlite", gpus=2)
    for _ in range(25):
        run.launch("gemm", 3 * MS)
        run.wait()
        run.off("fopen", 10 * MS)
        if beside:
            run.launch("reduce", 2 * MS, device=1)
            run.wait()
        else:
            run.call("cudaDeviceSynchronize_v3020", 2 * MS)
    (wait,) = idle(case_of(run.report), "sync_by_range")
    told = "waits for GPU 0" if beside else "returns late"
    assert told in wait.subject


@pytest.mark.parametrize("beside", [0, 30])
def test_without_its_waits_a_host_is_ahead_by_no_more_than_they_last(
    tmp_path: Path, beside: int
) -> None:
    """Each wait lasts 36 us, or 6 after work beside the kernel; 11 us of idle time follow it."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(200):
        run.launch("step", 30 * US)
        run.call("cudaFuncGetAttributes_v3020", beside * US)
        run.wait()
        run.call("cudaFuncGetAttributes_v3020", 15 * US)
    (wait,) = idle(case_of(run.report), "sync_by_range")
    assert wait.saved_ns == min(200 * (36 - beside) * US, wait.stake_ns)
