"""Sentences of findings beside runs in which they would be false."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planted import FULL, MS, STEPS, US, bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import by_ncu, command_of
from nsys_tui.analysis.rules.not_looked_at import not_looked_at
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


@pytest.fixture
def run(tmp_path: Path) -> Synth:
    return bare(tmp_path / "r.sqlite")


def found(run: Synth, rule: str = "") -> list[Finding]:
    findings = find_in(Case(open_report(run.write())))
    return [one for one in findings if one.rule.startswith(rule)]


def only(run: Synth, rule: str) -> Finding:
    (one,) = found(run, rule)
    return one


def tiny(
    run: Synth, names: Sequence[str], api: str = "cudaLaunchKernel_v7000", count: int = 3000
) -> Synth:
    for number in range(count):
        start, corr = number * 20 * US, run.next_correlation()
        run.api(api, start, start + 9 * US, corr=corr)
        name = names[number % len(names)]
        run.kernel(name, start + 10 * US, start + 12 * US, corr=corr, grid=FULL)
    return run


def test_what_most_are_is_more_than_half_of_them(run: Synth) -> None:
    assert ", led by k0 (1,500):" in only(tiny(run, ("k0", "k1")), "tiny_kernels").title


def test_a_long_name_leaves_room_for_the_time_around_it(run: Synth) -> None:
    names = ("nvkernel__ZN10coreneuron17solve_interleaved1Ei_F1L653_4", "k1")
    title = only(tiny(run, names, count=12_000), "tiny_kernels").title
    assert title.endswith("~ (6,000): GPU 0 idle 216.0 ms around them")


def test_one_name_of_all_is_most(run: Synth) -> None:
    assert ", most k0 (3,000):" in only(tiny(run, ("k0",)), "tiny_kernels").title


def test_tiny_kernels_of_many_names_count_by_their_time(run: Synth) -> None:
    names = [f"k{number}" for number in range(30)]
    said = only(tiny(run, names), "tiny_kernels").title
    assert "3,000 kernels of 2.000 us, led by k0 (100): GPU 0 idle" in said


def test_tiny_kernels_open_at_the_first_of_those_that_are_named(run: Synth) -> None:
    one = only(tiny(run, ("other", "k0", "k0")), "tiny_kernels")
    assert ", most k0 (2,000):" in one.title
    assert one.window == (30 * US, 59_992 * US)


@pytest.mark.parametrize(("lasts", "told"), [(600 * MS, 1), (600_000 * MS, 0)])
def test_tiny_kernels_are_told_where_the_idle_time_around_them_is_worth_it(
    run: Synth, lasts: int, told: int
) -> None:
    run.kernel("long", 70 * MS, 70 * MS + lasts, grid=FULL)
    assert len(found(tiny(run, ("k0",)), "tiny_kernels")) == told


def test_of_queued_tiny_kernels_fusing_leaves_out_the_gaps_between_two(run: Synth) -> None:
    for number in range(600):
        call, start = number * 3 * US, 2 * MS + number * 39 * US
        for at, took in ((0, 2), (3, 2), (6, 32)):
            run.launch("k", (call, call + US), (start + at * US, start + (at + took) * US))
    (one,) = [one for one in found(run) if one.rule == "tiny_kernels"]
    assert (one.saved_ns, one.advice[:4]) == (600 * US, "fuse")
    assert one.title.endswith("idle 600.0 us between them")


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_from_one_launch_straight_to_the_next_is_one_story(
    run: Synth, waits: bool, recorded: bool
) -> None:
    """Tens of kernels of 4 us, one each 24 us, and a longer one: too few in a row for a phase."""
    now = 0
    for number in range(900):
        took = (60 if number % 10 == 9 else 4) * US
        run.launch("k", (now, now + 5 * US), (now + 6 * US, now + 6 * US + took), grid=FULL)
        if waits:
            run.api("cudaStreamSynchronize_v3020", now + 7 * US, now + took + 7 * US)
        now += took + 20 * US
    if recorded:
        run.sched(0, True).sched(now, False)
    told = [one for one in found(run) if one.saved_ns and not one.same_as]
    subjects = {one.subject for one in told}
    assert ("idle around tiny kernels" in subjects) is not waits
    if not waits:
        assert subjects == {"idle around tiny kernels"}
        assert told[0].saved_ns == pytest.approx(899 * 19 * US, rel=0.01)


@pytest.mark.parametrize("took", [4 * US, 100 * US])
def test_gpus_that_all_wait_for_launches_of_tiny_kernels_are_one_story(
    run: Synth, took: int
) -> None:
    """Each tenth kernel is longer, as in the run above; of the other GPU each may be."""
    run.gpu(1)
    for device, usual in ((0, 4 * US), (1, took)):
        run.process(10 + device, "train")
        now = 0
        for number in range(900):
            lasts = 60 * US if number % 10 == 9 else usual
            gpu = (now + 6 * US, now + 6 * US + lasts)
            run.launch(f"k{device}", (now, now + 5 * US), gpu, grid=FULL, device=device)
            now += lasts + 20 * US
    idle = {one.device for one in found(run, "gpu_idle") if one.stake_ns > 5 * MS}
    assert idle == ({1} if took > 20 * US else set())


@pytest.mark.parametrize("rests", [False, True])
def test_threads_that_launch_tiny_kernels_by_turns_wait_for_each_other(
    run: Synth, rests: bool
) -> None:
    """One of the forward pass and one of the backward: each is off while the other one launches.

    What each rests for 4 us before its own launches is no time that launching takes.
    """
    for number in range(3000):
        now, first, tid = number * 20 * US, number % 300 == 0, 10 + number // 300 % 2
        if first:
            run.sched(now - 5 * US, False, tid=21 - tid, cpu=1)
        if rests or first:
            run.sched(now - 4 * US, True, tid=tid)
        run.launch("k0", (now, now + 9 * US), (now + 10 * US, now + 12 * US), grid=FULL, tid=tid)
        if rests:
            run.sched(now + 10 * US, False, tid=tid)
    told = found(run, "tiny_kernels")
    assert [one.saved_ns for one in told] == [pytest.approx(2999 * (17 - 4 * rests) * US, rel=0.02)]


def test_who_launches_graphs_is_not_told_to_capture_one(run: Synth) -> None:
    findings = found(tiny(run, ("k0",), "cudaGraphLaunch_v10000"))
    assert {one.rule for one in findings} >= {"launch_bound"}
    assert not [one for one in findings if "as a CUDA graph" in one.advice + one.subject]
    assert not [one for one in findings if one.rule == "tiny_kernels"]


def test_short_gaps_between_graphs_are_not_told_to_become_one(run: Synth) -> None:
    for number in range(2000):
        start, corr = number * 30 * US, run.next_correlation()
        run.api("cudaGraphLaunch_v10000", start, start + 4 * US, corr=corr)
        run.kernel("k", start + 5 * US, start + 26 * US, corr=corr, grid=FULL)
    assert "graph do more" in only(run, "gpu_idle").advice


def in_steps(run: Synth, each: Callable[[int], object]) -> Synth:
    for step in range(STEPS):
        run.nvtx(f"step {step}", step * 10 * MS, (step + 1) * 10 * MS)
        each(step * 10 * MS)
    return run


def test_a_kernel_beside_copies_is_told_with_them(run: Synth) -> None:
    def step(start: int) -> None:
        run.memcpy(start, start + 8 * MS, bytes=10**8, src="pinned", stream=9)
        run.launch("gemm", (start, start + 5 * US), (start + 10 * US, start + 9 * MS), grid=FULL)
        run.launch("rest", (start, start + 5 * US), (start + 9 * MS, start + 10 * MS), grid=FULL)

    one = only(in_steps(run, step), "dominant_kernel")
    assert one.subject == "gemm, others beside it"
    assert "of the time" in one.title


def test_a_kernel_bound_by_its_launches_need_not_be_faster(run: Synth) -> None:
    one = only(tiny(run, ("k0",)), "dominant_kernel")
    assert one.advice.endswith("else faster ones only make the GPU wait longer")


@pytest.mark.parametrize("takes", [15, 6])
def test_a_kernel_that_the_host_waits_for_before_the_next_launch_does(
    run: Synth, takes: int
) -> None:
    for start in range(0, 600 * 30 * US, 30 * US):
        done = start + (5 + takes) * US
        run.launch("newton", (start, start + 4 * US), (start + 5 * US, done), grid=FULL)
        corr = run.next_correlation()
        run.api("cudaMemcpy_v3020", start + 4 * US, done + 5 * US, corr=corr)
        run.memcpy(done + 2 * US, done + 3 * US, bytes=8, kind="DtoH", corr=corr)
    assert {one.rule for one in found(run)} >= {"launch_bound"}
    assert only(run, "dominant_kernel").advice.startswith("fewer or faster launches")


@pytest.mark.parametrize(
    ("memory", "pins"), [("pinned", False), ("pageable", True)], ids=["pinned", "pageable"]
)
def test_pinned_memory_is_advised_where_it_is_not_pinned(
    run: Synth, memory: str, pins: bool
) -> None:
    def step(start: int) -> None:
        corr = run.next_correlation()
        run.api("cudaMemcpy_v3020", start, start + 3 * MS, corr=corr)
        run.memcpy(start + MS, start + 2 * MS, bytes=12_000_000, src=memory, corr=corr)
        call = (start + 3 * MS, start + 3 * MS + 5 * US)
        run.launch("gemm", call, (call[1], start + 10 * MS), grid=FULL)

    assert ("pinned" in only(in_steps(run, step), "cuda_memcpy_sync").advice) is pins


@pytest.mark.parametrize(
    ("suffix", "says"), [("Async_v11020", "ReleaseThreshold"), ("_v3020", "stream-ordered")]
)
def test_a_stream_ordered_allocator_is_advised_to_who_has_none(
    run: Synth, suffix: str, says: str
) -> None:
    def step(start: int) -> None:
        run.api(f"cudaMalloc{suffix}", start, start + MS - 20 * US)
        call = (start + MS - 15 * US, start + MS - 5 * US)
        run.launch("gemm", call, (start + MS, start + 10 * MS), grid=FULL)

    assert says in only(in_steps(run, step), "frequent_allocation").advice


def test_how_hiding_copies_could_be_wrong_is_said_by_their_direction(run: Synth) -> None:
    def step(start: int) -> None:
        run.launch("gemm", (start, start + 5 * US), (start + 10 * US, start + 6 * MS), grid=FULL)
        run.memcpy(start + 6 * MS, start + 9 * MS, bytes=3 * 10**7, kind="DtoH", dst="pinned")
        run.api("cudaDeviceSynchronize_v3020", start + MS, start + 9 * MS + 5 * US)

    assert only(in_steps(run, step), "exposed_copies").doubt.startswith("the host may need")


def test_memsets_are_no_copies(run: Synth) -> None:
    def step(start: int) -> None:
        run.launch("gemm", (start, start + 5 * US), (start + 10 * US, start + 6 * MS), grid=FULL)
        run.memset(start + 6 * MS, start + 9 * MS, bytes=10**9)

    in_steps(run, step)
    assert not [one for one in found(run) if "copies" in one.title + one.subject + one.advice]


def test_of_copies_of_three_kinds_none_need_be_most(run: Synth) -> None:
    def step(start: int) -> None:
        run.memcpy(start, start + 1200 * US, bytes=12_000_000, src="pinned")
        run.memcpy(start + 1200 * US, start + 2 * MS, bytes=8_000_000, kind="DtoH", dst="pinned")
        run.memcpy(start + 2 * MS, start + 3 * MS, bytes=5_000_000, src="pageable")
        run.launch("k", (start, start + 5 * US), (start + 3 * MS, start + 10 * MS), grid=FULL)

    assert "led by Host-to-Device" in only(in_steps(run, step), "exposed_copies").title


def test_without_ranges_steps_have_no_names_but_may_be_known(run: Synth) -> None:
    run.meta("PROCESS_0:COLLECT_NVTX_TRACE", "true", capture=True)
    run.launch("k", (0, 5 * US), (10 * US, 50 * MS), grid=FULL)
    one = only(run, "missing_nvtx")
    assert one.title.startswith("steps and phases have no names")
    assert "record" not in one.advice, "NVTX was traced"


@pytest.mark.parametrize(
    ("program", "system", "elsewhere"),
    [
        ("train", "Windows 10.0.19044", True),
        ("train.exe", "", True),
        ("train.exe", "Ubuntu 22.04.5 LTS", False),
        ("train", "", False),
    ],
)
def test_nothing_is_to_be_recorded_that_is_there_or_that_the_system_has_not(
    program: str, system: str, elsewhere: bool, run: Synth
) -> None:
    run.process(10, program)
    for step in range(STEPS):
        start = step * 10 * MS + 4 * MS
        call = (start - 15 * US, start - 5 * US)
        run.launch("k", call, (start, step * 10 * MS + 10 * MS), grid=FULL)
    if system:
        run.environment("OsDescription", system)
    (idle,) = found(run, "gpu_idle")
    assert ("osrt" not in idle.advice + idle.settle) == elsewhere
    assert idle.settle.startswith("nsys profile --sample") == elsewhere
    reasons = [one.reason for one in not_looked_at(Case(open_report(run.path)))]
    assert any("osrt" in reason for reason in reasons) != elsewhere


def test_idle_time_of_one_program_is_no_part_of_that_of_another(run: Synth) -> None:
    run.gpu(1)
    for number in range(100):
        start = number * 10 * MS
        run.launch("k", (start, start + 5 * US), (start + 10 * US, start + 10 * MS), grid=FULL)
    run.process(20, "other")
    for number in range(10):
        start, until = number * 100 * MS, number * 100 * MS + 90 * MS
        run.osrt("nanosleep", start, until)
        call = (until + 2 * US, until + 4 * US)
        run.launch("m", call, (until + 5 * US, start + 100 * MS), grid=FULL, device=1)
    findings = found(run)
    assert not [one for one in findings if one.same_as]
    line = verdict(Case(open_report(run.path)), findings)
    assert "Most of the time (81.0%) is idle, sleep: nanosleep on GPU 1" in line


def test_ncu_is_asked_for_the_kernel_that_a_finding_is_about(run: Synth) -> None:
    run.launch("void heavy<float>(float*)", (0, 5 * US), (10 * US, 50 * MS), short="heavy")
    assert "-k heavy " in only(run, "small_grids").settle


def test_commands_run_whatever_the_report_is_called() -> None:
    assert command_of("nsys-tui stalls REPORT", "a b.sqlite") == "nsys-tui stalls 'a b.sqlite'"
    assert command_of(by_ncu("REPORTS"), "a.sqlite") == by_ncu("REPORTS")


def test_a_call_holds_up_what_its_own_thread_launches(run: Synth) -> None:
    def step(start: int) -> None:
        call = (start + MS - 15 * US, start + MS - 5 * US)
        run.launch("gemm", call, (start + MS, start + 10 * MS), grid=FULL)
        run.osrt("nanosleep", start, start + MS - 20 * US)
        run.api("cudaMalloc_v3020", start, start + MS - 30 * US, tid=77)

    findings = found(in_steps(run, step))
    assert [one.subject for one in findings[:2]] == ["gemm", "idle, sleep: nanosleep"]
    assert "frequent_allocation" not in {one.rule for one in findings}


def test_a_graph_traced_as_a_whole_may_hide_copies(run: Synth) -> None:
    def step(start: int) -> None:
        corr = run.next_correlation()
        run.api("cudaGraphLaunch_v10000", start, start + 50 * US, corr=corr)
        run.graph(start + 60 * US, start + 7 * MS, corr=corr)
        run.memcpy(start + 7 * MS, start + 9 * MS, bytes=2 * 10**7, kind="DtoH", dst="pinned")
        run.api("cudaDeviceSynchronize_v3020", start + MS, start + 9 * MS + 5 * US)

    one = only(in_steps(run, step), "exposed_copies")
    assert one.saved_ns == STEPS * 2 * MS
    assert "too little runs" not in one.advice


def test_what_two_findings_give_back_is_no_more_than_the_whole(run: Synth) -> None:
    for pid, name in ((10, "k"), (20, "m")):
        run.process(pid, name)
        for number in range(60):
            start = number * 10 * MS
            gpu = (
                (start + 10 * US, start + 5 * MS)
                if pid == 10
                else (start + 5 * MS, start + 10 * MS)
            )
            run.launch(name, (start, start + 5 * US), gpu, grid=(20, 1, 1))
    findings = found(run)
    (small,) = [one for one in findings if one.rule == "small_grids"]
    assert small.same_as == findings[0].subject == "GPU 0 shared by processes"


def test_work_of_no_length_is_work(run: Synth) -> None:
    for number in range(50):
        run.launch("k", (number * MS, number * MS + 9), (number * MS + 10, number * MS + 10))
    case = Case(open_report(run.write()))
    assert verdict(case, find_in(case)).startswith("GPU 0.0% busy")


def test_a_fact_has_a_hundred_cells_whatever_nsys_says(run: Synth) -> None:
    run.launch("k", (0, 5 * US), (10 * US, 50 * MS), grid=FULL)
    run.diagnostic(
        f"Not all CUDA events {'and others ' * 20}might have been collected.", severity=2
    )
    assert all(len(one.title) <= 100 for one in found(run))


def test_one_rank_alone_cannot_tell_waiting_from_sending(run: Synth) -> None:
    def step(start: int) -> None:
        run.launch("gemm", (start, start + 5 * US), (start + 10 * US, start + 6 * MS), grid=FULL)
        gpu = (start + 6 * MS, start + 10 * MS)
        run.launch(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL", (start, start + 5 * US), gpu, stream=9
        )

    assert "every rank" in only(in_steps(run, step), "exposed_communication").settle


def test_an_id_keeps_what_tells_kernels_apart(run: Synth) -> None:
    name = "cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x2_tt_align8"
    run.launch(name, (0, 5 * US), (10 * US, 50 * MS), grid=FULL)
    assert only(run, "dominant_kernel").id == "dominant_kernel:gemm-f16-16x16x128-TT@0"


@pytest.mark.parametrize("streams", [1, 8])
def test_blocks_that_run_side_by_side_have_more_than_one_sm(tmp_path: Path, streams: int) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0, smCount=None)
    for number in range(STEPS):
        for stream in range(streams):
            call, start = number * 10 * MS + stream * US, number * 10 * MS + 20 * US
            synth.launch(
                "k", (call, call + US), (start, start + 9 * MS), grid=(1, 1, 1), stream=7 + stream
            )
        synth.api("cudaDeviceSynchronize_v3020", start, start + 9 * MS + US)
    advice = only(synth, "dominant_kernel").advice
    assert ("one SM runs alone" in advice) is (streams == 1)
