"""The verdict line on runs whose truth is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted_kernels import one_after_another
from planted_programs import failing
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

US, MS = 1000, 1_000_000


def told(synth: Synth) -> str:
    case = Case(open_report(synth.write()))
    return verdict(case, find_in(case))


def late_loader(path: Path, read: int, call: str = "pread64") -> Synth:
    """Ten kernels of 50 ms; before the last one the host is in ``call`` for ``read`` ns."""
    synth = Synth(path / "r.sqlite").process(10, "train")
    start = 0
    for number in range(10):
        if number == 9:
            synth.osrt(call, start + 10, start + read - 10)
            start += read
        synth.launch(f"work{number}", call=(start, start + 5), gpu=(start + 10, start + 50 * MS))
        start += 50 * MS
    return synth


def test_what_could_give_back_most_is_named_with_its_share(tmp_path: Path) -> None:
    line = told(late_loader(tmp_path, read=100 * MS))
    assert line.startswith(
        "GPU 83.3% busy. Worth fixing: idle in one gap, I/O: pread64 (up to 16.7%); "
    )


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("pread64", "read or write ahead"),
        ("read", "of a file: read ahead, in larger pieces; of a pipe or socket"),
        ("fgets", "of a file: read ahead, in larger pieces; of a pipe or socket"),
        ("poll", "see who is to send"),
        ("pause", "see who is to send"),
    ],
)
def test_who_waits_for_others_is_not_told_to_read_ahead(
    tmp_path: Path, call: str, advice: str
) -> None:
    case = Case(open_report(late_loader(tmp_path, 100 * MS, call).write()))
    first = next(one for one in find_in(case) if one.rule == "gpu_idle")
    assert first.advice.startswith(advice)


def test_what_gives_back_less_than_a_hundredth_is_not_worth_fixing(tmp_path: Path) -> None:
    line = told(late_loader(tmp_path, read=4 * MS))
    assert line == "GPU 99.2% busy. Nothing found that would give back 1%"


def test_a_run_of_one_kernel_is_decided_by_it(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    line = told(synth.launch("lone", call=(0, 5), gpu=(10, 50 * MS)))
    assert line == "GPU 100.0% busy. Most of the time (100.0%) is lone. " + (
        "Nothing else found that would give back 1%"
    )


@pytest.mark.parametrize(("second", "named"), [("b", False), ("long", True)])
def test_a_kernel_that_leads_is_named_below_half_of_the_time(
    tmp_path: Path, second: str, named: bool
) -> None:
    synth, at = Synth(tmp_path / "r.sqlite").process(10), 0
    for name in ("long", second, "c", "d", "e") * 4:
        synth.launch(name, call=(at, at + 5), gpu=(at + 10, at := at + 10 * MS))
    assert ("40.0% of the time is long." in told(synth)) == named


@pytest.mark.parametrize(("third", "said"), [(1, True), (5, False)])
def test_two_kernels_that_lead_are_both_named(tmp_path: Path, third: int, said: bool) -> None:
    synth, at = Synth(tmp_path / "r.sqlite").process(10), 0
    for name, took in (("long", 5), ("next", 3), ("c", third), ("d", third)) * 4:
        synth.launch(name, call=(at, at + 5), gpu=(at + 10, at := at + took * 10 * MS))
    assert ("% of the time is long, 30.0% is next. Nothing" in told(synth)) is said


@pytest.mark.parametrize(("idle", "said"), [(0, True), (30 * MS, False)])
def test_a_busy_gpus_kernel_is_named_before_what_is_worth_fixing(
    tmp_path: Path, idle: int, said: bool
) -> None:
    synth, at = Synth(tmp_path / "r.sqlite").process(10).gpu(0), 0
    for _ in range(20):
        for name, took, blocks in (("k", 9, 1080), ("a", 5, 1080), ("b", 5, 1080), ("small", 4, 1)):
            work = (at + 10, at := at + took * MS)
            synth.launch(name, call=(work[0] - 10, work[0] - 5), gpu=work, grid=(blocks, 1, 1))
            synth.api("cudaStreamSynchronize_v3020", work[0], at - 20)
        at += idle
    assert ("% of the time is k, 21.7% is a. Worth fixing: small grids" in told(synth)) is said


def test_without_gpu_work_it_says_what_would_record_it(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).mark("begin", 5)
    line = told(synth)
    assert line == "Cannot say: no kernels in this report: record with nsys profile --trace=cuda"


@pytest.mark.parametrize(
    ("text", "severity", "said"),
    [
        ("CUDA tracing failed: driver is too new", 3, "; nsys says: CUDA tracing failed"),
        ("CUDA tracing has started", 1, ""),
        ("NVTX tracing failed", 3, ""),
        ("CUDA device 0: Unified Memory trace is not supported by the current driver.", 3, ""),
        ("No CUDA events collected. Does the process use CUDA?", 2, "; nsys says: No CUDA events"),
    ],
)
def test_without_gpu_work_nsys_is_quoted_on_cuda_alone(
    tmp_path: Path, text: str, severity: int, said: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).osrt("read", 0, 50)
    line = told(synth.diagnostic(text, severity))
    assert said in line
    assert ("nsys says" in line) == bool(said)


def test_without_calls_it_does_not_guess_why_the_gpu_stood_idle(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(6):
        start = (number + number // 3 * 3) * 20 * MS
        synth.kernel(f"k{number}", start, start + 20 * MS)
    assert told(synth) == "GPU 66.7% busy. Why 33.3% is idle cannot be said: no CUDA API calls"


def test_idle_time_below_the_threshold_without_calls_cannot_be_explained(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(300):
        synth.kernel(f"k{number}", number * 50_000, number * 50_000 + 45_000)
    assert "Why 10.0% is idle cannot be said: no CUDA API calls" in told(synth)


def test_a_busy_gpu_without_calls_is_not_called_idle(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(5):
        synth.kernel(f"k{number}", number * 20 * MS, (number + 1) * 20 * MS)
    assert told(synth) == "GPU 100.0% busy. Nothing found that would give back 1%"


@pytest.mark.parametrize("kernel", [False, True])
def test_a_capture_of_set_up_says_that_no_kernel_ran(tmp_path: Path, kernel: bool) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.memcpy(0, 50 * MS).memcpy(50 * MS, 100 * MS)
    if kernel:
        synth.kernel("a", 100 * MS, 101 * MS)
    assert told(synth).startswith("GPU 100.0% busy. No kernel ran, only copies. ") is not kernel


@pytest.mark.parametrize(
    ("calls", "returned", "why"),
    [
        (["cudaMalloc_v3020"], 0, "set-up only, no launch was captured"),
        (["cudaMalloc_v3020", "cudaLaunchKernel_v7000"], 0, "1 call asked for GPU work, none of"),
        (["cuLaunchKernel", "cudaMemcpyAsync_v3020"], 0, "2 calls asked for GPU work, none of"),
        (["cudaMemcpy_v3020"], 209, "1 call, first cudaMemcpy, failed: error 209 (no code for"),
        (["cudaLaunchKernel_v7000"], 209, "1 of 1 launch call failed: error 209 (no code for"),
    ],
)
def test_without_gpu_work_it_says_whether_any_was_asked_for(
    tmp_path: Path, calls: list[str], returned: int, why: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number, name in enumerate(calls):
        synth.api(name, number * MS, number * MS + 10 * US, returned=returned)
    assert f": {why}" in told(synth)


@pytest.mark.parametrize(
    ("name", "returned", "failed"),
    [
        ("cudaLaunchKernel_v7000", 222, "1 of 2 launch calls failed: error 222 (PTX newer than"),
        ("cuLaunchKernelEx", 802, "1 of 2 launch calls failed: error 802"),
        ("cudaMemcpy_v3020", 700, "1 call, first cudaMemcpy, failed: error 700 (illegal address"),
        ("cudaMalloc_v3020", 2, "1 call, first cudaMalloc, failed: error 2 (out of memory)"),
        ("cudaFree_v3020", 700, "1 call, first cudaFree, failed: error 700 (illegal address"),
        ("cudaFreeHost_v3020", 4, ""),
        ("cudaLaunchHostFunc_v10000", 222, ""),
        ("cudaPointerGetAttributes_v4000", 1, ""),
        ("cuCtxSynchronize", 709, ""),
        ("cudaEventQuery_v3020", 600, ""),
    ],
)
def test_calls_that_failed_are_told_first(
    tmp_path: Path, name: str, returned: int, failed: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).api(name, 0, 10 * US, returned=returned)
    synth.launch("a", call=(MS, MS + 5 * US), gpu=(2 * MS, 60 * MS))
    head, _, rest = told(synth).partition(". ")
    assert head.startswith("GPU ")
    assert rest.startswith(failed)
    assert ("failed" in rest) is bool(failed)


@pytest.mark.parametrize(("calls", "severity"), [(5, Severity.MEDIUM), (30, Severity.HIGH)])
def test_calls_that_failed_are_a_finding_with_their_error(
    tmp_path: Path, calls: int, severity: Severity
) -> None:
    case = Case(open_report(failing(tmp_path / "r.sqlite", calls=calls).write()))
    one = next(one for one in find_in(case) if one.rule == "failed_calls")
    assert one.severity is severity
    assert f"{calls} of" in one.title
    assert one.title.endswith("failed: error 701 (too many resources)")
    assert one.advice.startswith("check the error of each call")


def test_a_kernel_that_crashed_is_grave_by_the_error_of_the_wait_after_it(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.layers(20)
    run.report.api("cudaDeviceSynchronize_v3020", run.now, run.now + US, returned=700)
    one = next(one for one in find_in(Case(open_report(run.report.write()))))
    assert one.rule == "failed_calls"
    assert one.severity is Severity.HIGH


def test_a_first_try_is_not_judged(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.launch("a", call=(0, 5), gpu=(10, 500)).launch(
        "b", call=(90_000, 90_010), gpu=(90_020, 99_000)
    )
    assert told(synth) == "One-shot: 9.470 us of GPU work is too little to judge"


@pytest.mark.parametrize(
    ("times", "kernel", "copy", "once"),
    [
        (1, 50 * US, 2 * MS, True),
        (1, 20 * MS, 2 * MS, True),
        (1, 30 * MS, 2 * MS, False),
        (4, 50 * US, 100 * US, True),
        (4, 50 * US, 2 * MS, True),
        (4, 2 * MS, 50 * US, False),
        (20, 20 * US, 20 * US, False),
    ],
)
def test_a_run_is_one_shot_by_its_work_and_not_by_its_span(
    tmp_path: Path, times: int, kernel: int, copy: int, once: bool
) -> None:
    """Requests that come every 50 ms, each of a copy and a kernel."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(2000 * MS)
    for request in range(times):
        start = request * 50 * MS
        synth.memcpy(start, start + copy)
        synth.launch("k", call=(start, start + copy), gpu=(start + copy, start + copy + kernel))
    assert told(synth).startswith("One-shot: ") is once


@pytest.mark.parametrize(
    ("session", "copies", "once"), [(300, 30, True), (20, 30, False), (3000, 900, False)]
)
def test_a_moment_of_a_long_session_is_one_shot(
    tmp_path: Path, session: int, copies: int, once: bool
) -> None:
    """Numbers that are copied one by one, once the program has compiled its code."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(session * MS)
    for number in range(copies):
        start = session * MS - (copies - number) * 50 * US
        synth.memcpy(start, start + 2 * US)
    assert told(synth).startswith("One-shot: ") is once


@pytest.mark.parametrize(("prepares", "once"), [(300, True), (20, False)])
def test_a_moment_of_a_session_of_unknown_length_is_one_shot(
    tmp_path: Path, prepares: int, once: bool
) -> None:
    """Reports of 2020 do not tell how long was recorded: here the first call takes long."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.api("cudaMalloc", 0, prepares * MS)
    for number in range(30):
        start = (prepares + 1) * MS + number * 50 * US
        synth.memcpy(start, start + 2 * US)
    assert told(synth).startswith("One-shot: ") is once


@pytest.mark.parametrize("times", [1, 3])
def test_idle_time_between_a_few_things_done_once_is_no_loss(tmp_path: Path, times: int) -> None:
    """A first try waits for what it sets up; what runs three times may be a run, if a small one."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(2000 * MS)
    synth.memcpy(0, 10 * US)
    synth.api("cudaFree_v3020", 100 * US, 300 * MS)
    for number in range(times):
        start = (310 + 20 * number) * MS
        synth.launch("gemm", call=(start, start + US), gpu=(start + US, start + 200 * US))
    found = find_in(Case(open_report(synth.write())))
    idle = [one.rule for one in found if one.rule in ("gpu_idle", "warm_up")]
    assert ("gpu_idle" in idle) is (times == 3)
    assert "warm_up" in idle
    assert {one.severity for one in found} == {Severity.LOW}


def test_a_run_without_gpu_work_is_no_first_try(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).nvtx("backbone", 0, 900 * MS)
    (one,) = [one for one in find_in(Case(open_report(synth.write()))) if one.rule == "host_only"]
    assert one.severity is Severity.HIGH


@pytest.mark.parametrize(("again", "once"), [(20 * US, True), (400 * US, False)])
def test_short_passes_after_the_main_one_do_not_make_a_run(
    tmp_path: Path, again: int, once: bool
) -> None:
    """A reduction once over all its data, then over what is left of it."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(2000 * MS)
    synth.memcpy(0, MS)
    for number in range(5):
        start = 300 * MS + number * MS
        took = again if number else 500 * US
        synth.launch("reduce", call=(start, start + US), gpu=(start + US, start + US + took))
    assert told(synth).startswith("One-shot: ") is once


@pytest.mark.parametrize(("launches", "once"), [(6, True), (240, False)])
def test_copies_of_several_arrays_are_no_work_that_comes_again(
    tmp_path: Path, launches: int, once: bool
) -> None:
    """Three arrays up, a kernel that is launched again, one array down, in 300 ms."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(300 * MS)
    for array in range(3):
        synth.memcpy((290 + array) * MS, (290 + array) * MS + 500 * US)
    for launch in range(launches):
        at = 293 * MS + launch * 60 * US
        synth.launch("gemm", call=(at, at + 5 * US), gpu=(at + 5 * US, at + 60 * US))
    done = 293 * MS + launches * 60 * US
    synth.memcpy(done, done + 500 * US, kind="DtoH")
    assert told(synth).startswith("One-shot: ") is once


@pytest.mark.parametrize("pages", [2, 200])
def test_pages_that_nobody_asked_for_do_not_make_a_run(tmp_path: Path, pages: int) -> None:
    """They move while the only kernel runs, which waits for them."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(300 * MS)
    synth.launch("add", call=(0, 5 * US), gpu=(5 * US, 3 * MS))
    for page in range(pages):
        at = 10 * US + page * 12 * US
        synth.memcpy(at, at + 10 * US, kind="UVM HtoD", bytes=1 << 16, migrationCause=2)
    assert told(synth).startswith("One-shot: ")


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(("writes", "first"), [(1400, "dominant_kernel"), (2000, "gpu_idle")])
def test_what_has_most_of_the_time_stands_before_idle_time_below_a_fifth_of_it(
    tmp_path: Path, writes: int, first: str, recorded: bool
) -> None:
    """Whether the idle time has a price or nobody knows what the host does."""
    synth = Synth(tmp_path / "r.sqlite").process(10).session(1000 * MS)
    for step in range(40):
        at = step * 10 * MS
        synth.launch(
            "solve", call=(at, at + 5 * US), gpu=(at + 10 * US, at + 10 * MS - writes * US)
        )
        if recorded:
            synth.osrt("write", at + 10 * MS - writes * US, at + 10 * MS - 5 * US)
    found = find_in(Case(open_report(synth.write())))
    assert found[0].rule == first
    assert {one.rule for one in found[:2]} == {"dominant_kernel", "gpu_idle"}
    assert {one.severity for one in found[:2]} == {Severity.HIGH}


def test_idle_time_that_nobody_recorded_is_said_once(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(30):
        start = number * 5 * MS
        synth.launch("k", call=(start, start + 5), gpu=(start + 10, start + MS))
    assert told(synth) == "GPU 20.5% busy. Most of the time (79.5%) is idle, nothing recorded. " + (
        "Nothing else found that would give back 1%"
    )


def test_all_idle_time_of_a_gpu_without_a_record_is_one_sum(tmp_path: Path) -> None:
    """Sixty gaps of 1 ms, and one of 100 ms that is told apart; the GPU works for 8 ms each."""
    synth, t = Synth(tmp_path / "r.sqlite").process(10), 0
    for number in range(60):
        synth.launch("k", call=(t, t + 5 * US), gpu=(t + 10 * US, t + 8 * MS))
        t += 109 * MS if number == 30 else 9 * MS
    line = told(synth)
    assert line.count("is not recorded") == 1
    assert line.endswith("Why 24.9% is idle, most in one gap, is not recorded")


def test_that_gpu_work_covers_little_of_the_session_is_said(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).session(1000 * MS)
    synth.kernel("a", 0, 50 * MS).kernel("b", 50 * MS, 100 * MS)
    line = told(synth)
    assert line.startswith("GPU 100.0% busy in the 100.0 ms of 1.000 s with GPU work. ")


def test_a_session_of_unknown_length_is_as_long_as_its_events(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.kernel("a", 0, 50 * MS).kernel("b", 50 * MS, 100 * MS)
    synth.nvtx("whole", 0, 400 * MS)
    assert told(synth).startswith("GPU 100.0% busy in the 100.0 ms of 400.0 ms with GPU work. ")


def test_what_several_rules_see_counts_once(tmp_path: Path) -> None:
    """A hundred values are read back one by one: small copies, synchronous, and idle time."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(120):
        start = number * MS
        synth.launch("k", call=(start, start + 5), gpu=(start + 10, start + MS // 2))
        synth.api("cudaMemcpy_v3020", start + 20, start + MS - 10, corr=number + 1)
        synth.memcpy(start + 600_000, start + 600_100, kind="DtoH", bytes=4, corr=number + 1)
    line = told(synth)
    assert "Worth fixing: small copies (up to 49.8%); nothing else above 1%" in line


def test_a_slow_gpu_and_who_waits_for_it_are_one_story(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for step in range(10):
        start = step * 10 * MS
        for device, took in ((0, 6 * MS), (1, 9 * MS)):
            synth.kernel("gemm", start, start + took, device=device, stream=7 + device)
            synth.kernel(
                "ncclDevKernel_AllReduce", start + took, start + 10 * MS,
                device=device, stream=9 + device,
            )  # fmt: skip
    case = Case(open_report(synth.write()))
    found = find_in(case)
    story = [one for one in found if one.rule in ("gpu_imbalance", "exposed_communication")]
    assert [one.rule for one in story] == ["gpu_imbalance", "exposed_communication"]
    assert story[1].same_as == "GPU 1 slower than the others"
    line = verdict(case, found)
    assert line.count("up to") == 1
    assert "GPU 1 slower than the others (up to 30.0%)" in line


def test_tiny_kernels_that_are_fused_give_back_more_than_their_gaps(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(3000):
        at = number * 10 * US
        synth.launch("scale", (at, at + 8 * US), (at + 8 * US, at + 11 * US))
    assert "idle around tiny kernels (up to 60.0%, more if fused)" in told(synth)


@pytest.mark.parametrize(("each", "advice"), [(1, "wait once for many of them, "), (3, "capture")])
def test_who_waits_after_each_tiny_kernel_waits_less_often_first(
    tmp_path: Path, each: int, advice: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(1500):
        at = number * 12 * US
        synth.launch("scale", (at, at + 4 * US), (at + 4 * US, at + 7 * US))
        if number % each == 0:
            synth.api("cudaStreamSynchronize_v3020", at + 5 * US, at + 9 * US)
    (tiny,) = [
        one for one in find_in(Case(open_report(synth.write()))) if one.rule == "tiny_kernels"
    ]
    assert tiny.advice.startswith(advice)


def test_of_what_only_names_tell_the_verdict_says_that_it_is_a_guess(tmp_path: Path) -> None:
    line = told(one_after_another(tmp_path / "r.sqlite"))
    assert "copy kernels (up to 25.0%, a guess); nothing else" in line


def test_a_guess_is_named_after_the_first_that_is_known(tmp_path: Path) -> None:
    synth = one_after_another(tmp_path / "r.sqlite")
    synth.kernel("alone", 160 * MS, 168 * MS, grid=(1, 1, 1))
    synth.memcpy(168 * MS, 172 * MS, bytes=100_000_000, src="pinned")
    synth.kernel("last", 172 * MS, 173 * MS, grid=(108, 1, 1))
    line = told(synth)
    assert "Worth fixing: small grids of alone (up to 4.6%); copy kernels (up to 23.1%" in line
    assert "1 more above 1%" in line


@pytest.mark.parametrize(("steps", "little"), [(80, True), (400, False)])
def test_what_is_left_of_a_start_is_not_judged(tmp_path: Path, steps: int, little: bool) -> None:
    """A program compiles for 25 s between its first two kernels, then works for 0.1 or 0.5 s."""
    run = Machine(tmp_path / "r.sqlite")
    run.launch("init", 100 * US)
    run.wait()
    run.now += 25_000 * MS
    for _ in range(steps):
        run.launch("decode", MS)
        run.wait()
        run.now += 300 * US
    case = Case(open_report(run.report.write()))
    findings = find_in(case)
    assert (findings[0].rule == "warm_up") is little
    assert verdict(case, findings).endswith("ms are too little to judge") is little
