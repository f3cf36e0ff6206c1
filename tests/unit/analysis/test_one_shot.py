"""Runs too small to judge, and small ones that recur and are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import MS, US, Machine

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000 * MS


def judged(run: Machine, session: int = 5 * SECOND) -> tuple[bool, set[Severity]]:
    """Whether a run is one-shot, and how grave its findings are."""
    case = Case(open_report(run.report.session(session).write(), use_cache=False))
    found = find_in(case)
    is_once = verdict(case, found).startswith("One-shot: ")
    return is_once, {one.severity for one in found}


def launched(run: Machine, count: int, ns: int, rest: int, device: int = 0) -> None:
    for _ in range(count):
        run.launch("linear", ns, device)
        run.wait()
        run.now += rest


@pytest.mark.parametrize(
    ("count", "rest", "session", "once"),
    [
        (200, 5 * US, 5 * SECOND, True),
        (200, 5 * US, 50 * MS, False),  # all that was captured
        (4000, 5 * US, 5 * SECOND, False),
        (200, MS, 5 * SECOND, False),  # steps of 1 ms
    ],
)
def test_hundreds_of_short_kernels_after_seconds_are_no_run(
    tmp_path: Path, count: int, rest: int, session: int, once: bool
) -> None:
    """After 40 ms of set-up, kernels of 2 us each a little after the one before."""
    run = Machine(tmp_path / "r.sqlite")
    run.launch("fill", 2 * US)
    run.now += 40 * MS
    launched(run, count, 2 * US, rest)
    is_once, grave = judged(run, session)
    assert is_once is once
    assert (grave == {Severity.LOW}) is once


@pytest.mark.parametrize(("steps", "once"), [(3, True), (300, False)])
def test_few_steps_on_several_gpus_are_no_run(tmp_path: Path, steps: int, once: bool) -> None:
    """Two GPUs wait 200 ms for each other at first; then each works 300 us a step."""
    run = Machine(tmp_path / "r.sqlite", gpus=2)
    for device in (0, 1):
        run.launch("join", 10 * US, device)
    run.now += 200 * MS
    for _ in range(steps):
        for device in (0, 1):
            launched(run, 10, 30 * US, 20 * US, device)
    assert judged(run)[0] is once


def burst(run: Machine, streams: int, apart: int, ns: int) -> Machine:
    """Kernels of one name, one on each stream; each begins some time after the one before."""
    for stream in range(streams):
        begin, corr = run.now + stream * apart, run.report.next_correlation()
        run.report.api("cudaLaunchKernel_v7000", begin, begin + 5 * US, corr=corr)
        start = begin + 10 * US
        run.report.kernel("spin", start, start + ns, corr=corr, stream=7 + stream, grid=(1, 1, 1))
    return run


@pytest.mark.parametrize(
    ("streams", "apart", "ns", "session", "once"),
    [
        (32, 10 * US, 18 * MS, 5 * SECOND, True),
        (32, 10 * US, 18 * MS, 60 * MS, False),  # most of what was captured
        (32, 10 * US, 30 * MS, 5 * SECOND, False),  # one long piece of work
        (18, MS, MS - 2 * US, 5 * SECOND, False),  # one after the other
        (36, 500 * US, MS, 5 * SECOND, False),  # two at a time
    ],
)
def test_a_burst_of_kernels_side_by_side_is_no_run(
    tmp_path: Path, streams: int, apart: int, ns: int, session: int, once: bool
) -> None:
    run = burst(Machine(tmp_path / "r.sqlite"), streams, apart, ns)
    assert judged(run, session)[0] is once


@pytest.mark.parametrize(("copy", "once"), [(4 * MS, True), (14 * MS, False)])
def test_long_copies_are_judged_whatever_runs_once(tmp_path: Path, copy: int, once: bool) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.upload(copy)
    run.launch("linear", 8 * MS)
    run.wait()
    assert judged(run)[0] is once


def met(path: Path, worked: int) -> Machine:
    """Two GPUs compute after 20 ms in which one waits for the other in a collective."""
    run = Machine(path, gpus=2)
    for device, start in ((0, 0), (1, 20 * MS)):
        for at, ns, name in (
            (start, 20_100 * US - start, "ncclDevKernel_AllReduce_Sum_f32"),
            (20_200 * US, worked, "linear"),
        ):
            corr = run.report.next_correlation()
            begin = max(0, at - 10 * US)
            run.report.api("cudaLaunchKernel_v7000", begin, begin + 5 * US, corr=corr)
            run.report.kernel(name, at, at + ns, device=device, corr=corr)
    return run


@pytest.mark.parametrize(("worked", "once"), [(200 * US, True), (30 * MS, False)])
def test_waiting_for_other_ranks_is_no_work(tmp_path: Path, worked: int, once: bool) -> None:
    case = Case(open_report(met(tmp_path / "r.sqlite", worked).report.session(5 * SECOND).write()))
    told = verdict(case, find_in(case))
    assert told.startswith("One-shot: ") is once
    if once:
        assert told.startswith("One-shot: 600")  # both kernels, and 0.1 ms of the collective


@pytest.mark.parametrize(("kind", "told"), [("UVM DtoH", False), ("DtoH", True)])
def test_pages_read_after_the_last_kernel_are_no_set_up(
    tmp_path: Path, kind: str, told: bool
) -> None:
    """A host reads results 10 ms after a lone kernel: pages that it touches, or a copy."""
    run = Machine(tmp_path / "r.sqlite")
    run.launch("solve", 4 * MS)
    run.wait()
    run.now += 10 * MS
    run.report.memcpy(run.now, run.now + 100 * US, kind=kind)
    found = find_in(Case(open_report(run.report.session(SECOND).write(), use_cache=False)))
    assert ("warm_up" in {one.rule for one in found}) is told
    assert not any("managed results" in one.title for one in found)


@pytest.mark.parametrize(
    ("rounds", "session", "once"),
    [(12, SECOND, True), (12, 200 * MS, False), (18, SECOND, False)],
    ids=["less than a frame", "much of the session", "more than a frame"],
)
def test_what_is_over_in_a_frame_is_no_run_however_often_it_repeats(
    tmp_path: Path, rounds: int, session: int, once: bool
) -> None:
    """Each ms memory is made, filled, worked on and given back."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(rounds):
        run.call("cudaMalloc_v3020", 250 * US)
        for _ in range(4):
            run.copy(65_536, 5, "HtoD", "pageable")
        run.launch("gemm", 300 * US)
        run.wait()
        run.call("cudaFree_v3020", 300 * US)
    assert judged(run, session)[0] is once
