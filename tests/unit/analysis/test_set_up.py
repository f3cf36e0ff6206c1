"""What comes once is told alike, whatever it is, and one time is what all shares are of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from machine import MS, US, Machine

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import COPIES, ONCE, bound_line, parts, verdict
from nsys_tui.reader import open_report
from nsys_tui.units import format_duration


def _run(path: Path, before: int, within: int) -> Case:
    """Loads arrays and many small values, then works in 200 launches.

    Args:
        path: of the report.
        before: small values copied before all kernels.
        within: after each kernel.
    """
    run = Machine(path)
    run.call("cudaMalloc_v3020", MS)
    for _ in range(4):
        run.copy(100_000_000, 5, "HtoD", "pageable")
    for _ in range(before):
        run.copy(1_000, 1, "HtoD", "pageable")
        run.now += 5 * US
    for _ in range(200):
        run.launch("scan", MS // 2)
        for _ in range(within):
            run.copy(1_000, 1, "DtoH", "pageable")
            run.now += 5 * US
    return Case(open_report(run.report.write()))


@pytest.mark.parametrize(("before", "within"), [(2_000, 0), (0, 10)])
def test_small_copies_before_all_kernels_come_once(
    before: int, within: int, tmp_path: Path
) -> None:
    case = _run(tmp_path / "r.sqlite", before, within)
    found = find_in(case)
    assert not found[0].is_once
    small = [one for one in found if one.rule == "small_copies"]
    assert [one.is_once for one in small] == [not within]
    told = [one.title.endswith(", only once") for one in small]
    assert told == [not within]
    assert small[0].of_ns == (case.judged_ns if within else case.base_ns)
    assert (small[0].severity is Severity.HIGH) is bool(within)
    assert (small[0].subject in verdict(case, found)) is bool(within)


def test_a_title_names_the_idle_time_that_its_price_is_of(tmp_path: Path) -> None:
    case = _run(tmp_path / "r.sqlite", 5_000, 5)
    (small,) = (one for one in find_in(case) if one.rule == "small_copies")
    assert case.set_up_ns
    assert not small.is_once
    assert f"GPU 0 idle {format_duration(small.saved_ns)} meanwhile" in small.title


def test_copies_of_set_up_are_no_part_of_what_shares_are_of(tmp_path: Path) -> None:
    case = _run(tmp_path / "r.sqlite", 2_000, 0)
    found = find_in(case)
    loading = int(case.report.operations.start[case.first_of_names].max()) - case.base[0]
    assert loading - MS < case.set_up_ns <= loading
    assert "busy, 99." in verdict(case, found)
    bound = parts(case, found)
    assert sum(part.ns for part in bound) == case.base_ns
    assert [part.ns for part in bound if part.name == ONCE] == [case.set_up_ns]
    assert COPIES not in [part.name for part in bound if part.ns > MS]
    assert bound_line(bound).startswith("compute (99.")


@pytest.mark.parametrize("again", [False, True])
def test_a_kernel_leads_though_loading_takes_longer(tmp_path: Path, again: bool) -> None:
    """Unless copies go on beside it: then it has no more than half of the time."""
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc_v3020", MS)
    for _ in range(4):
        run.copy(200_000_000, 5, "HtoD", "pageable")
    for _ in range(200):
        run.launch("scan", MS // 2)
        if again:
            run.copy(5_000_000, 5, "HtoD", "pageable")
    case = Case(open_report(run.report.write()))
    found = find_in(case)
    assert (found[0].rule == "dominant_kernel") is not again
    once = "160.0 ms that came once (most: copies of set-up). Most of the rest (99.8%) is scan"
    assert (once in verdict(case, found)) is not again
    assert again or found[0].title.endswith("99.8% without set-up")


@pytest.mark.parametrize("more", [False, True])
def test_no_other_price_is_not_nothing_else(tmp_path: Path, more: bool) -> None:
    """Beside idle time that has no price, what has one is not all that there is."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(100):
        run.launch("scan", MS)
        run.copy(5_000_000, 5, "DtoH", "pageable")
        run.now += 20 * MS if more else 50 * US
    case = Case(open_report(run.report.write()))
    told = verdict(case, find_in(case))
    assert ("no other price above 1%" in told) is more
    assert ("nothing else above 1%" in told) is not more


def test_most_of_the_time_is_more_than_half_of_it(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc_v3020", MS)
    for _ in range(4):
        run.copy(100_000_000, 5, "HtoD", "pageable")
    run.now += 400 * MS
    for turn in range(300):
        run.launch(f"scan{turn % 4}", MS // 4)
    case = Case(open_report(run.report.write()))
    assert "Most of the time" not in verdict(case, find_in(case))


@pytest.mark.parametrize(
    ("times", "new", "joins", "once"),
    [
        (1, False, (), True),
        (1, False, (2,), True),
        (1, False, range(40, 50), False),
        (10, False, (), False),
        (1, True, (), False),
    ],
    ids=["tried", "another is set up, too", "another works on", "a phase", "new work later"],
)
def test_kernels_that_only_the_first_of_equal_rounds_tries_are_set_up(
    times: int, new: bool, joins: Sequence[int], once: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc_v3020", MS)
    run.report.api("cudaMalloc_v3020", 0, MS, tid=11)
    for turn in range(50):
        if turn in joins:
            # Another thread, which called nothing since, launches a kernel after a pause.
            run.wait()
            run.now += 300 * US * len(joins)
            call, gpu = (run.now, run.now + 5 * US), (run.now + 9 * US, run.now + 99 * US)
            run.report.launch("gemm", call, gpu, tid=11)
            run.now += 100 * US
        run.layers(tag="later_" if new and turn else "")
        for trial in range(20 * times if turn == 0 else 0):
            run.now += 2 * MS
            run.call("cudaMalloc_v3020", 200 * US)
            run.launch(f"trial_{trial % 20}", 2 * MS // times)
            run.wait()
            run.call("cudaFree_v3020", 200 * US)
    case = Case(open_report(run.report.write()))
    trials = case.report.operations.durations(case.first_of_names).max() * 20 * times
    assert 0.05 < trials / case.splits[0].busy_ns < 1 / 3
    assert (case.set_up_ns > 20 * 2 * MS) is once


@pytest.mark.parametrize("more", [10, 400])
def test_a_gap_that_set_up_has_most_of_is_told_whole(tmp_path: Path, more: int) -> None:
    """Verdict and finding say the same; what has most of a gap is as much of it as they count."""
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc_v3020", MS)
    run.layers(1, 100 * US)
    run.wait()
    run.call("cudaMalloc_v3020", 200 * MS)
    run.off("poll", more * MS)
    run.layers(200)
    case = Case(open_report(run.report.write()))
    once = [one for one in find_in(case) if one.rule == "warm_up"]
    assert [abs(one.saved_ns - case.set_up_ns) < MS for one in once] == [True]


@pytest.mark.parametrize("early", [False, True])
def test_copies_cost_nothing_in_what_comes_once(tmp_path: Path, early: bool) -> None:
    """The host is late after the first read of a value, while code is loaded."""
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc_v3020", MS)
    for turn in range(60):
        run.launch("step", 5 * MS)
        run.copy(4, 1, "DtoH", "pageable")
        if turn == 0 if early else turn > 50:
            run.now += 200 * MS
            if early:
                run.call("cuModuleLoadData", 30 * MS)
    case = Case(open_report(run.report.write()))
    (small,) = (one for one in find_in(case) if one.rule == "small_copies")
    gap = case.stalls.gaps.idle.max()
    assert gap > 200 * MS
    assert (small.saved_ns < 3 * MS) is early


@pytest.mark.parametrize("again", [False, True])
def test_memory_that_only_the_first_of_many_launches_allocate_is_set_up(
    tmp_path: Path, again: bool
) -> None:
    """A library that tries its kernels allocates for each; their work is a good part of all."""
    run = Machine(tmp_path / "r.sqlite")
    for step in range(150):
        for _ in range(20 if step == 0 or (again and step == 9) else 0):
            run.call("cudaMalloc_v3020", MS)
            run.launch("conv", 5 * MS)
            run.wait()
            run.call("cudaFree_v3020", MS)
        for _ in range(10):
            run.launch("conv", MS)
        run.wait()
    found = find_in(Case(open_report(run.report.write())))
    assert ("frequent_allocation" in [one.rule for one in found]) is again


@pytest.mark.parametrize("launched", [False, True])
def test_graphs_that_are_all_made_before_one_is_launched_are_set_up(
    tmp_path: Path, launched: bool
) -> None:
    """However much of the work warms them up; a graph that is launched and made anew is not."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(30):
        for name in ("gemm", "norm"):
            run.launch(name, MS)
        run.wait()
        run.call("cudaStreamBeginCapture_v10000", 50 * US)
        run.now += 30 * MS
        run.call("cudaGraphInstantiate_v12000", 5 * MS)
        if launched:
            run.call("cudaGraphLaunch_v10000", 5 * US)
    for _ in range(30):
        run.call("cudaGraphLaunch_v10000", 5 * US)
        run.launch("sample", MS // 2)
        run.wait()
    case = Case(open_report(run.report.write()))
    found = [one for one in find_in(case) if one.rule == "gpu_idle" and one.stake_ns > 100 * MS]
    assert bool(found) is launched


@pytest.mark.parametrize("waits_from", [0, 600])
def test_what_lasts_from_set_up_to_the_end_is_no_phase(tmp_path: Path, waits_from: int) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.launch("fill", 9 * US)
    run.wait()
    run.call("cudaMalloc_v3020", 400 * MS)
    for turn in range(900):
        run.launch(("sweep", "edge")[turn % 2], 40 * US)
        if turn >= waits_from:
            run.wait()
            run.now += 30 * US
    idle = find_in(Case(open_report(run.report.write())))[0]
    assert bool(idle.phase) is (waits_from > 0), "of the time that shares are of"


@pytest.mark.parametrize(("call", "quicker"), [("pread64", True), ("pthread_cond_wait", False)])
def test_what_is_read_once_before_the_work_could_be_read_quicker(
    call: str, quicker: bool, tmp_path: Path
) -> None:
    """A mesh is read before it is solved on: who only times the solver leaves that out."""
    run = Machine(tmp_path / "r.sqlite")
    run.copy(64, 1, "HtoD", "pageable")
    for _ in range(20):
        run.off(call, 30 * MS)
    run.copy(100_000_000, 5, "HtoD", "pageable")
    for number in range(200):
        run.launch(f"sweep_{number % 4}", MS)
    run.wait()
    case = Case(open_report(run.report.write()))
    found = find_in(case)
    (one,) = [one for one in found if one.rule == "warm_up" and call in one.title]
    assert one.advice.endswith(", or make that quicker") is quicker
    assert f"(most: idle before most of its work, longest in {call})" in verdict(case, found)
