"""Runs after public stories in which an expert found the cause, and others that nearly have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from machine import Machine
from planted import FULL, MS, US, bare, copies_of
from planted_programs import blocking_tiny, halo
from planted_training import weights
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def found(synth: Synth, rule: str) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [one for one in find_in(case) if one.rule == rule]


def migrating(path: Path, cause: int) -> Synth:
    """Two kernels by turns, with ten migrations of a page in each; ten pages come back after it."""
    synth = bare(path)
    for number in range(20):
        start = number * 4 * MS
        call, gpu = (start, start + 5 * US), (start + 10 * US, start + MS)
        synth.launch(f"sort_{number % 2}", call, gpu, grid=FULL)
        for page in range(10):
            for kind, begun in (("UVM HtoD", 100 * US), ("UVM DtoH", 2 * MS)):
                begun += start + page * 50 * US
                why = 2 if kind == "UVM HtoD" else cause
                synth.memcpy(begun, begun + 20 * US, kind=kind, bytes=65536, migrationCause=why)
    return synth


def test_pages_cost_what_all_kernels_wait_for_them(tmp_path: Path) -> None:
    (one,) = found(migrating(tmp_path / "r.sqlite", 2), "migrations_in_kernels")
    faults = 9 * 50 * US + 20 * US  # of each launch; the first fault is not recorded
    assert "kernels run, led by sort_0" in one.title
    assert one.saved_ns == pytest.approx(20 * faults, rel=0.1)
    assert one.saved_ns <= 20 * faults
    assert one.advice.startswith("prefetch the pages")


@pytest.mark.parametrize("works", [0, 60 * MS])
def test_pages_of_a_first_launch_need_the_bus_unless_work_before_hides_them(
    tmp_path: Path, works: int
) -> None:
    synth, begin = bare(tmp_path / "r.sqlite"), 100 * MS
    if works:
        synth.launch("fill", (0, 5 * US), (begin - works, begin), grid=FULL)
    for number in range(8):
        lasts = (10 + 60 * (not number)) * MS
        synth.launch("jacobi", (begin - US, begin), (begin + 5 * US, begin + lasts), grid=FULL)
        for page in range(0 if number else 300):
            came = begin + 10 * US + page * 200 * US
            synth.memcpy(came, came + 180 * US, kind="UVM HtoD", bytes=2**21, migrationCause=2)
        synth.api("cudaDeviceSynchronize_v3020", begin, begin + lasts + US)
        begin += lasts + 10 * US
    (one,) = found(synth, "migrations_in_kernels")
    moves = 0 if works else 300 * 180 * US
    assert one.title.endswith(": 60.00 ms longer than without")
    assert one.saved_ns == pytest.approx(60 * MS - moves, abs=MS)


@pytest.mark.parametrize(("pages", "told"), [(10, True), (1, False)])
def test_a_kernel_that_waits_for_pages_says_so(tmp_path: Path, pages: int, told: bool) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(20):
        start = number * 1_010 * US
        synth.launch("sort", (start, start + 5 * US), (start + 10 * US, start + MS), grid=FULL)
        for page in range(pages):
            begun = start + 100 * US + page * 40 * US
            synth.memcpy(begun, begun + 20 * US, kind="UVM HtoD", bytes=65536, migrationCause=2)
    (one,) = found(synth, "dominant_kernel")
    assert ("of it are waits for pages: prefetch them" in one.advice) is told


def test_evicted_pages_are_not_to_be_prefetched(tmp_path: Path) -> None:
    (one,) = found(migrating(tmp_path / "r.sqlite", 4), "migrations_in_kernels")
    assert "fit the GPU's memory" in one.advice


def reading_results(path: Path, loops: int, kind: str = "UVM DtoH", work: int = 5 * MS) -> Synth:
    """The host works on managed pages for 4 ms after each kernel, and these come back to it."""
    synth = bare(path)
    for at in range(0, loops * 10 * MS, 10 * MS):
        synth.launch("add", (at, at + 5 * US), (at + 10 * US, at + work), grid=FULL)
        synth.api("cudaDeviceSynchronize", at + 10 * US, at + work + 5 * US)
        for page in range(40):
            begun = at + work + 50 * US + page * 100 * US
            synth.memcpy(begun, begun + 20 * US, kind=kind, bytes=65536, migrationCause=2)
    return synth.sched(0, True).sched(loops * 10 * MS, False)


def test_no_gpu_waits_for_results_that_the_host_reads_at_the_end(tmp_path: Path) -> None:
    report = open_report(reading_results(tmp_path / "r.sqlite", 2).write(), use_cache=False)
    findings = find_in(case := Case(report))
    (one,) = [one for one in findings if one.subject == "the host reading managed results"]
    assert one.saved_ns == 0
    assert one.stake_ns == pytest.approx(40 * 80 * US, rel=0.05)
    assert verdict(case, findings).endswith("% is the host reading managed results")
    report.close()


def test_pages_that_the_host_works_on_between_kernels_are_to_be_left(tmp_path: Path) -> None:
    every = found(reading_results(tmp_path / "r.sqlite", 5), "gpu_idle")
    (one,) = [one for one in every if "host compute" in one.title]
    assert one.advice.startswith("the host works on pages of the GPU")
    assert " at most" not in one.advice
    assert 4 * 4 * MS < one.saved_ns < 4 * 5 * MS  # not after the last kernel
    assert not [one for one in every if "managed results" in one.title]  # a twelfth of the run


def test_a_little_work_hides_only_as_much_of_what_the_host_does_with_pages(tmp_path: Path) -> None:
    every = found(reading_results(tmp_path / "r.sqlite", 5, work=MS), "gpu_idle")
    both = [one for one in every if "host compute" in one.title]  # within pages, and after them
    assert all(one.advice.startswith("the host works on pages of the GPU") for one in both)
    assert both[0].advice.endswith(" ms at most, quicker code the rest")


@pytest.mark.parametrize(("kind", "one_story"), [("UVM DtoH", True), ("DtoH", False)])
def test_pages_that_come_back_are_part_of_what_the_host_does_with_them(
    tmp_path: Path, kind: str, one_story: bool
) -> None:
    report = open_report(reading_results(tmp_path / "r.sqlite", 5, kind).write(), use_cache=False)
    (one,) = [one for one in find_in(Case(report)) if one.rule == "exposed_copies"]
    assert one.same_as.startswith("idle, host compute") is one_story
    report.close()


@pytest.mark.parametrize("size", [1 << 20, 1 << 16])
def test_large_pages_tell_the_rate_of_the_bus(tmp_path: Path, size: int) -> None:
    synth, lasts = bare(tmp_path / "r.sqlite"), size // 10
    synth.launch("add", (0, 5 * US), (20 * US, 20 * US + 19 * lasts), grid=FULL)
    for page in range(10):
        begun = 20 * US + page * 2 * lasts
        synth.memcpy(begun, begun + lasts, kind="UVM HtoD", bytes=size, migrationCause=2)
        synth.memcpy(6 * MS + begun, 6 * MS + begun + lasts, kind="UVM DtoH", bytes=size)
    (one,) = found(synth, "migrations_in_kernels")
    rate = 10 if size > 1_000_000 else 26
    assert one.saved_ns == pytest.approx(19 * lasts - 10 * size / rate, rel=0.01)


@pytest.mark.parametrize("same", [True, False])
def test_two_savings_on_one_kernel_are_no_more_than_it_takes(tmp_path: Path, same: bool) -> None:
    """One block works for 40 ms, and pages move while that kernel, or another one, runs."""
    synth, at = bare(tmp_path / "r.sqlite"), 0 if same else 40 * MS
    synth.launch("add", (0, 5 * US), (20 * US, 40 * MS), grid=(1, 1, 1))
    if not same:
        synth.launch("scale", (6 * US, 11 * US), (at + 20 * US, at + 40 * MS), grid=FULL)
    for page in range(150):
        begun = at + 30 * US + page * 110 * US
        synth.memcpy(begun, begun + 100 * US, kind="UVM HtoD", bytes=1 << 16, migrationCause=2)
    case = Case(open_report(synth.write(), use_cache=False))
    line = verdict(case, find_in(case))
    assert "small grids of add" in line, line
    assert f"pages migrate in {'add' if same else 'scale'}" in line, line
    assert ("of it the same time" in line) is same, line


@pytest.mark.parametrize(("call", "told"), [("MemPrefetchAsync", 20 * MS), ("MemAdvise", 0)])
def test_pages_that_the_host_touches_after_the_last_kernel_have_no_price(
    tmp_path: Path, call: str, told: int
) -> None:
    """Half of the time goes to them, by a prefetch that was asked for, or as no call asks."""
    synth = bare(tmp_path / "r.sqlite")
    synth.api(f"cuda{call}_v8000", 6 * US, 10 * US)
    synth.launch("add", (0, 5 * US), (20 * US, 30 * MS), grid=FULL)
    for page in range(20):
        at = 31 * MS + page * 2 * MS
        synth.memcpy(at, at + MS, kind="UVM DtoH", bytes=1 << 20, migrationCause=1)
    assert sum(one.stake_ns for one in found(synth, "exposed_copies")) == told
    assert found(synth, "warm_up") == []


@pytest.mark.parametrize(("kernels", "one_shot"), [(9, True), (20, False)])
def test_copies_around_a_handful_of_kernels_are_no_run(
    tmp_path: Path, kernels: int, one_shot: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(kernels):
        at = number * 200 * US
        synth.memcpy(at, at + 2 * US, bytes=8192, src="pageable")
        synth.launch("k", (at + 5 * US, at + 10 * US), (at + 11 * US, at + 15 * US))
        for copy in (20 * US, 30 * US):
            synth.memcpy(at + copy, at + copy + 2 * US, bytes=8192, kind="DtoH", dst="pageable")
    case = Case(open_report(synth.write(), use_cache=False))
    assert verdict(case, find_in(case)).startswith("One-shot") == one_shot


def test_loading_code_once_is_no_price_of_tiny_kernels(tmp_path: Path) -> None:
    """Of 200 kernels, one a millisecond, the first launch alone loads code for 80 ms."""
    synth = bare(tmp_path / "r.sqlite").memcpy(0, 10 * US, bytes=1 << 20)
    for number in range(200):
        begin = 20 * US + (number > 0) * 80 * MS + number * MS
        call = begin, begin + 20 * US + (number == 0) * 80 * MS
        synth.launch("filter", call, (call[1] + US, call[1] + 6 * US), grid=FULL)
        synth.memcpy(call[1] + 10 * US, call[1] + MS - 30 * US, bytes=1 << 20)
    found_ = find_in(Case(open_report(synth.write(), use_cache=False)))
    (tiny,) = [one for one in found_ if one.rule == "tiny_kernels"]
    assert tiny.saved_ns == pytest.approx(199 * 19 * US, rel=0.01)
    (once,) = [one for one in found_ if one.rule == "warm_up" and "idle" in one.title]
    assert once.saved_ns == pytest.approx(80 * MS, rel=0.01)


def allocating(path: Path, library: int) -> Synth:
    """A kernel after each of 20 allocations of 20 us; a library allocates before the first one."""
    synth = bare(path).memcpy(0, 10 * US, bytes=1 << 20)
    synth.api("cudaMalloc", 20 * US, 20 * US + library)
    synth.api("cudaFree", 30 * US + library, 30 * US + library + library // 2)
    for number in range(20):
        at = 2 * library + number * 200 * US
        synth.api("cudaMalloc", at, at + 20 * US)
        synth.launch("gemm", (at + 20 * US, at + 25 * US), (at + 26 * US, at + 200 * US), grid=FULL)
    return synth


def test_what_a_library_allocates_once_is_set_up(tmp_path: Path) -> None:
    report = allocating(tmp_path / "r.sqlite", 20 * MS)
    found_ = find_in(Case(open_report(report.write(), use_cache=False)))
    frequent, once = (
        sum(one.saved_ns for one in found_ if one.rule == rule and not one.same_as)
        for rule in ("frequent_allocation", "warm_up")
    )
    assert frequent <= 20 * 26 * US
    assert once == pytest.approx(40 * MS, rel=0.01)  # with what it does beside


@pytest.mark.parametrize("back", [True, False])
def test_small_copies_that_stage_messages_of_mpi_are_told_as_such(
    tmp_path: Path, back: bool
) -> None:
    """A value that is only read, as for the sum over all ranks, is no staged message."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(120):
        run.launch("smooth", 200 * US)
        run.copy(8000, 6, "DtoH")
        run.report.mpi("MPI_Waitall", run.now, run.now + 25 * US, "wait")
        run.now += 25 * US
        if back:
            run.copy(8000, 6, "HtoD")
    (one,) = found(run.report, "small_copies")
    assert ("GPU-aware MPI" in one.advice) is back


@pytest.mark.parametrize("within", [True, False])
def test_copies_that_mpi_makes_itself_are_not_to_be_left_to_it(
    tmp_path: Path, within: bool
) -> None:
    """A strided type goes piece by piece: MPI has the GPU's buffers already."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("advect", 2 * MS)
        for way, name in (("DtoH", "MPI_Issend"), ("HtoD", "MPI_Wait")):
            begun = run.now
            for _ in range(10):
                run.copy(24, 6, way)
            start = begun if within else run.now
            run.report.mpi(name, start, start + run.now - begun + US, "wait")
            run.now = start + run.now - begun + US
    (one,) = found(run.report, "small_copies")
    assert one.advice.startswith("MPI makes these copies") is within
    assert ("GPU-aware MPI" in one.advice) is not within


@pytest.mark.parametrize(("last", "rate"), [(True, 12), (True, 3), (False, 12)])
def test_results_fetched_after_all_kernels_are_no_copies_to_hide(
    tmp_path: Path, last: bool, rate: int
) -> None:
    """They come once: kernels before the last could not hide them, nor does pinning them pay.

    To pages touched first by them they are slow, and pinning these touches them first, too.
    """
    run = Machine(tmp_path / "r.sqlite")
    for number in range(99):
        run.launch("triad", MS)
        if not last and number % 33 == 0:
            run.copy(120_000_000, 12, "DtoH", "pageable")
    for _ in range(3 * last):
        run.copy(120_000_000, rate, "DtoH", "pageable")
    case = Case(open_report(run.report.write(), use_cache=False))
    findings = find_in(case)
    once = [one for one in findings if "after its last kernel: only once" in one.title]
    hidden = [one for one in findings if one.rule == "exposed_copies" and one.saved_ns]
    assert (len(once), len(hidden)) == (last, not last)
    assert not any(one.saved_ns for one in once)
    assert ("Worth fixing: copies" in verdict(case, findings)) is not last


@pytest.mark.parametrize(("copied", "told"), [(0, True), (6_000_000, True), (24_000_000, False)])
def test_where_only_kernels_run_the_one_that_leads_is_named(
    tmp_path: Path, copied: int, told: bool
) -> None:
    """It has 30 per cent, more than copies of a fourteenth, and no more than those of a quarter."""
    run = Machine(tmp_path / "r.sqlite")
    for number in range(80):
        run.launch(f"stage{number % 4}_kernel", (8 if number % 4 == 0 else 4 + number % 4) * MS)
        if copied:
            run.copy(copied, 12, "DtoH", "pageable")
    findings = found(run.report, "dominant_kernel")
    assert [one.title.startswith("stage0_kernel has ") for one in findings[:1]] == [True] * told


@pytest.mark.parametrize("once", [True, False])
def test_input_copied_once_decides_less_than_the_kernel_that_leads(
    tmp_path: Path, once: bool
) -> None:
    """It has 27 per cent, less than copies and idle time have."""
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc", 200 * US)
    for number in range(80):
        if once and not number:
            run.copy(2_400_000_000, 12, "HtoD", "pageable")
        elif not once:
            run.copy(30_000_000, 12, "HtoD", "pageable")
        run.launch(f"stage{number % 4}_kernel", (12 if number % 4 == 0 else 4 + number % 4) * MS)
        run.wait()
        run.off("read", MS)
    assert bool(found(run.report, "dominant_kernel")) is once


@pytest.mark.parametrize(("lasts", "little"), [(20 * US, True), (300 * US, False), (2 * MS, False)])
def test_what_hardly_computes_hides_no_copies(tmp_path: Path, lasts: int, little: bool) -> None:
    """However much quicker pinned memory would be: kernels have to last for half of that time."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        run.copy(8_000_000, 8, "HtoD", "pageable")
        run.launch("jacobi", lasts)
        run.copy(4_000_000, 8, "DtoH", "pageable")
    case = Case(open_report(run.report.write(), use_cache=False))
    findings = find_in(case)
    (one,) = [one for one in findings if one.rule == "exposed_copies"]
    assert one.advice.startswith("pin the host memory")
    assert ("too little runs to hide copies behind" in one.advice) is little
    assert ("copy both ways at once" in one.advice) is little
    assert ("more if less is copied)" in verdict(case, findings)) is little


@pytest.mark.parametrize(("down", "both"), [(4_000_000, True), (40_000, False)])
def test_copies_the_other_way_are_named_where_they_give_the_price(
    tmp_path: Path, down: int, both: bool
) -> None:
    """Three arrays up and one down, by pinned copies as quick as the bus."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        for _ in range(3):
            run.copy(4_000_000, 8, "HtoD")
        run.launch("sum", 20 * US)
        run.copy(down, 8, "DtoH")
    (one,) = found(run.report, "exposed_copies")
    assert one.advice.startswith("copy both ways at once") is both


def test_launches_of_tiny_kernels_wait_where_those_of_long_ones_do(tmp_path: Path) -> None:
    """The GPU's work can hide as much of the 20 us between each two; a graph comes after that."""
    findings = find_in(Case(open_report(blocking_tiny(tmp_path / "r.sqlite").write())))
    first, *others = findings
    assert first.title.startswith("400 launches return only when their kernel is done")
    assert "idle 7.980 ms" in first.title
    assert first.saved_ns == (80 * 40 + 320 * 6) * US
    (tiny,) = [one for one in others if one.rule == "tiny_kernels"]
    assert tiny.same_as == first.subject


@pytest.mark.parametrize(("down", "keeps"), [(8_000_000, True), (400_000, False)])
def test_what_comes_back_as_large_as_it_goes_may_stay_on_the_gpu(
    tmp_path: Path, down: int, keeps: bool
) -> None:
    """Fields that a routine copies to the GPU and back; batches of which a loss is read."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        run.copy(8_000_000, 8, "HtoD", "pageable")
        run.launch("tendencies", 2 * MS)
        run.copy(down, 8, "DtoH", "pageable")
    (one,) = found(run.report, "exposed_copies")
    assert one.advice.startswith("pin the host memory, then copy on a stream of its own")
    assert one.advice.endswith("or keep the data on the GPU") is keeps


@pytest.mark.parametrize("again", [False, True])
def test_input_and_results_of_a_program_go_one_way_each(tmp_path: Path, again: bool) -> None:
    """No data come back to the GPU that could stay there, unless it goes on with its results."""
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMalloc", 200 * US)
    for _ in range(2 if again else 1):
        for _ in range(3):
            run.copy(8_000_000, 4, "HtoD", "pageable")
        for _ in range(15):
            run.launch("sum", 2 * MS)
        for _ in range(3):
            run.copy(8_000_000, 3, "DtoH", "pageable")
    (one,) = found(run.report, "exposed_copies")
    assert one.advice.startswith("pin the host memory if it is copied again")
    assert one.advice.endswith("or keep the data on the GPU") is again


def test_one_way_alone_is_copied_no_more_than_once_at_a_time(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        run.copy(8_000_000, 8, "HtoD")
        run.launch("jacobi", 20 * US)
    (one,) = found(run.report, "exposed_copies")
    assert one.advice.startswith("copy less, or keep the data on the GPU")


@pytest.mark.parametrize("ranges", [True, False])
def test_time_after_a_wait_that_nobody_recorded_is_placed_by_its_range(
    tmp_path: Path, ranges: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("sweep", 2 * MS)
        run.wait()
        begun = run.now
        run.now += 4 * MS
        if ranges:
            run.named("Verify", begun)
    idle = [one for one in found(run.report, "gpu_idle") if " after cudaDevice" in one.title]
    assert [("in Verify" in one.title) for one in idle] == [ranges]


@pytest.mark.parametrize(("last", "alike"), [(200 * US, True), (400 * US, False)])
def test_one_thread_that_launches_for_all_gpus_makes_the_last_one_late(
    tmp_path: Path, last: int, alike: bool
) -> None:
    """The first one waits for it, then: as for one that has more work, of which it may give."""
    run = Machine(tmp_path / "r.sqlite", gpus=4)
    for _ in range(100):
        for gpu in range(4):
            corr = run.report.next_correlation()
            run.call("cudaMemsetAsync_v3020", 8 * US, corr)
            run.report.memset(run.now, run.now + US, device=gpu, corr=corr)
            run.free[gpu, 7] = run.now + US
            run.launch("jacobi", last if gpu == 3 else 200 * US, device=gpu)
        run.wait()
    case = Case(open_report(run.report.write(), use_cache=False))
    idle = {one.title.split(", ")[-1]: one for one in find_in(case) if " idle " in one.title}
    (waits,) = [one for title, one in idle.items() if title.startswith("cudaDeviceSync")]
    assert waits.advice.startswith("it has no more work") is alike
    assert waits.advice.startswith("spread that GPU's work") is not alike


@pytest.mark.parametrize("ranges", [True, False])
def test_calls_of_mpi_that_older_nsys_writes_as_ranges_tell_who_is_late(
    tmp_path: Path, ranges: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite")
    for rank, lasts in enumerate((2 * MS, 3 * MS)):
        synth.process(10 + rank).gpu(rank).domain(5, "MPI")
        for step in range(40):
            start = step * (3 * MS + 50 * US)
            done, until = start + 10 * US + lasts, start + 3 * MS + 30 * US
            where: Any = {"device": rank, "context": rank + 1, "grid": FULL}
            synth.launch("flux", (start, start + 5 * US), (start + 10 * US, done), **where)
            if ranges:
                synth.nvtx("MPI_Allreduce", done, until, domain=5)
            else:
                synth.mpi("MPI_Allreduce", done, until)
    (one,) = [one for one in found(synth, "gpu_idle") if "MPI: MPI_Allreduce" in one.title]
    assert one.advice == "see what the rank of GPU 1 does before: the others wait for it"


@pytest.mark.parametrize("of_mpi", [True, False])
def test_pages_that_mpi_pulls_to_the_host_are_not_to_be_prefetched(
    tmp_path: Path, of_mpi: bool
) -> None:
    """The same pages, where the program itself sums them: MPI is called later."""
    synth = migrating(tmp_path / "r.sqlite", 2)
    for number in range(20):
        begun = number * 4 * MS + (2 if of_mpi else 3) * MS
        synth.mpi("MPI_Allreduce", begun, begun + 600 * US)
    (one,) = found(synth, "migrations_in_kernels")
    assert one.advice.startswith("MPI works on these pages") is of_mpi


def test_large_copies_that_stage_messages_still_are(tmp_path: Path) -> None:
    (one,) = found(halo(tmp_path / "r.sqlite"), "exposed_copies")
    assert "GPU-aware MPI" in one.advice


@pytest.mark.parametrize("discrete", [0, 1])
def test_a_gpu_that_shares_the_hosts_memory_needs_no_copies(tmp_path: Path, discrete: int) -> None:
    synth = copies_of(tmp_path / "r.sqlite", [(6, "pinned")] * 12)
    synth.rows["TARGET_INFO_GPU"][0]["isDiscrete"] = discrete
    (one,) = found(synth, "exposed_copies")
    assert one.advice.endswith("so no copy is needed") is (discrete == 0)


@pytest.mark.parametrize("streams", [1, 4])
def test_threads_that_share_a_stream_are_told_to_have_their_own(
    tmp_path: Path, streams: int
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(100):
        start, thread = number * MS, number % 4
        call, gpu = (start, start + 5 * US), (start + 10 * US, start + 950 * US)
        stream = 13 + thread % streams
        synth.launch("search", call, gpu, tid=10 + thread, stream=stream, grid=(24, 1, 1))
    (one,) = found(synth, "small_grids")
    assert ("each of the 4 threads" in one.advice) is (streams == 1)


@pytest.mark.parametrize(
    ("call", "launches", "advice"),
    [
        ("cudaGraphInstantiate_v12000", True, "build the graph once"),
        ("cudaGraphInstantiate_v12000", False, "leave the call out"),
        ("cudaGraphicsMapResources_v3020", True, "leave the call out"),
        ("cudaStreamCreate_v3020", True, "create them once"),
        ("cudaMemGetInfo_v3020", True, "leave the call out"),
    ],
)
def test_what_calls_make_is_kept_and_used_again(
    tmp_path: Path, call: str, launches: bool, advice: str
) -> None:
    """Graphs that are not launched before the next one is made may all be different."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("gemm", 2 * MS)
        run.wait()
        run.call(call, MS)
        if launches:
            run.call("cudaGraphLaunch_v10000", 5 * US)
    (one,) = [one for one in found(run.report, "gpu_idle") if call[:9] in one.title]
    assert one.advice.startswith(advice)


@pytest.mark.parametrize(("copies", "rate"), [(1, 6), (6, 6), (1, 1)])
def test_pinning_pays_for_what_is_copied_again_or_slowly(
    tmp_path: Path, copies: int, rate: int
) -> None:
    """What is copied once need not be copied again, however slowly."""
    synth = copies_of(tmp_path / "r.sqlite", [(rate, "pageable")] * copies)
    (one,) = found(synth, "exposed_copies")
    assert one.advice.startswith("pin the host memory")
    assert ("if it is copied again" in one.advice) is (copies == 1)


@pytest.mark.parametrize("megabytes", [1, 100, 5000])
@pytest.mark.parametrize("rate", [3, 1])
def test_a_host_pins_no_quicker_for_a_quick_bus(tmp_path: Path, megabytes: int, rate: int) -> None:
    """Pages are pinned at 3 to 6.5 GB/s, and to touch them takes half of that either way."""
    synth = bare(tmp_path / "r.sqlite")
    synth.rows["TARGET_INFO_GPU"][0]["computeMajor"] = 9
    lasts = megabytes * MS // rate
    synth.memcpy(15 * lasts, 16 * lasts, bytes=megabytes * 1_000_000, src="pageable")
    for number in range(30):
        start = lasts * (number + (number >= 15))
        synth.kernel(f"k{number % 3}", start, start + lasts, grid=FULL)
    (one,) = found(synth, "exposed_copies")
    assert one.advice.startswith("pin the host memory")
    assert "if it is copied again" in one.advice
    assert one.saved_ns <= megabytes * MS / rate - megabytes * MS / 13 + US


@pytest.mark.parametrize(("rate", "pays"), [(3, True), (14, False)])
def test_pinning_pays_later_where_pageable_copies_are_quick(
    tmp_path: Path, rate: int, pays: bool
) -> None:
    """Three times 20 MB at 3 and 14 GB/s, on a bus of 26 GB/s: pinning them takes 3.08 ms."""
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for number in range(3):
        end = now + 20 * MS // rate
        synth.memcpy(now, end, bytes=20_000_000, src="pageable")
        synth.kernel(f"k{number}", end, end + 10 * MS, grid=FULL)
        now = end + 10 * MS
    (one,) = found(synth, "exposed_copies")
    assert ("if it is copied again" not in one.advice) is pays
    assert (one.saved_ns > 0) is pays


def test_kernels_that_convert_layouts_are_told_and_have_no_price(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for number in range(60):
        run.launch("nchwToNhwcKernel", 90 * US)
        run.launch(f"conv_{number % 5}", 400 * US)
    case = Case(open_report(run.report.write(), use_cache=False))
    findings = find_in(case)
    assert verdict(case, findings).endswith("Nothing found that would give back 1%")
    assert ("copy kernels", 0) in [(one.subject, one.saved_ns) for one in findings]


@pytest.mark.parametrize("unloads", [True, False])
def test_code_that_is_unloaded_each_time_is_to_be_kept(tmp_path: Path, unloads: bool) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(40):
        run.call("cuModuleLoadData", 200 * US)
        run.launch("raw", 300 * US)
        run.wait()
        if unloads:
            run.call("cuModuleUnload", 60 * US)
    (one,) = found(run.report, "module_loading")
    assert one.advice.startswith("keep it loaded") is unloads


@pytest.mark.parametrize("whole", [True, False])
def test_compute_in_graphs_may_hide_communication_however_they_are_traced(
    tmp_path: Path, whole: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(100):
        start = number * 2 * MS
        if whole:
            synth.graph(start, start + MS)
        else:
            synth.kernel("gemv", start, start + MS, grid=FULL, graphNodeId=7)
        synth.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + MS, start + 2 * MS)
    (one,) = found(synth, "exposed_communication")
    assert one.saved_ns == 100 * MS


def test_what_is_copied_once_saves_what_pinning_it_leaves(tmp_path: Path) -> None:
    (one,) = found(weights(tmp_path / "r.sqlite"), "warm_up")
    assert "30.00 ms of copies before the first step" in one.title
    pinned, pinning = 150e6 / 26, 150e6 / (26 / 4)
    assert one.saved_ns == pytest.approx(30 * MS - pinned - pinning, rel=0.01)
    assert one.stake_ns == 30 * MS
    assert "even once" in one.advice, "the advice is of what the price is of"


@pytest.mark.parametrize(("more", "once"), [(250 * US, True), (750 * US, False)])
def test_what_is_mostly_copied_before_the_work_is_set_up(
    more: int, once: bool, tmp_path: Path
) -> None:
    synth = bare(tmp_path / "r.sqlite").api("cudaMalloc_v3020", 0, MS)
    for part in range(3):
        at = (1 + 10 * part) * MS
        synth.memcpy(at, at + 10 * MS, bytes=40_000_000, src="pageable")
    for number in range(40):
        at = 31 * MS + number * 3 * MS
        synth.memcpy(at, at + more, bytes=more, src="pinned")
        synth.kernel(f"gemm_{number % 3}", at + more, at + 3 * MS, grid=FULL)
    told = [one for one in found(synth, "warm_up") if "of copies before" in one.title]
    assert [one.stake_ns for one in told] == [pytest.approx(30 * MS + 3 * more, rel=0.02)] * once


@pytest.mark.parametrize("late", [0, 200 * MS])
def test_waiting_for_a_rank_that_sets_up_longer_is_no_work(tmp_path: Path, late: int) -> None:
    synth = bare(tmp_path / "r.sqlite").gpu(1)
    synth.api("cudaMalloc_v3020", 0, MS).sched(0, True)
    for device, begun in ((0, MS), (1, MS + late)):
        where: dict[str, Any] = {"device": device, "stream": 7 + device}
        synth.kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL", begun, 2 * MS + late, **where)
        for step in range(40):
            start = 502 * MS + late + step * 3 * MS
            call, gpu = (start - 20 * US, start - 10 * US), (start, start + 2 * MS)
            synth.launch(f"gemm_{step % 3}", call, gpu, grid=FULL, **where)
    case = Case(open_report(synth.write(), use_cache=False))
    assert case.set_up_until.min() > 500 * MS + late
    once, *_ = [one for one in find_in(case) if one.is_once]
    assert once.saved_ns == pytest.approx(500 * MS, rel=0.01)


@pytest.mark.parametrize(("every", "where"), [(8, " in 3 of 24 steps"), (2, ""), (1, "")])
def test_copies_of_a_few_steps_say_so(every: int, where: str, tmp_path: Path) -> None:
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for step in range(24):
        begun = now
        synth.memcpy(now, now + MS, bytes=20_000_000, src="pinned")
        synth.kernel(f"k{step % 3}", now + MS, now + 6 * MS, grid=FULL)
        now += 6 * MS
        for _ in range(4 * (step % every == every - 1)):  # a checkpoint
            synth.memcpy(now, now + 5 * MS, bytes=20_000_000, kind="DtoH", dst="pageable")
            now += 5 * MS
        synth.nvtx(f"step {step}", begun, now)
    case = Case(open_report(synth.write(), use_cache=False))
    titles = {one.rule: one.title for one in find_in(case)}
    (which, _) = titles["slow_copies"].split(" run at 4.00 GB/s")
    count = 96 // every
    all_of_them = f"{count} " if where else f"{count} of {count} large "
    assert which == f"{all_of_them}Device-to-Host copies{where}"
    assert titles["exposed_copies"].endswith(f"at 4.00 GB/s{where}")


def layers_on(path: Path, gpus: int, size: int = 64) -> Case:
    """One thread gives each GPU its layers in turn, and reads the result of the last one."""
    run = Machine(path, gpus=gpus)
    for _ in range(30):
        for gpu in range(gpus):
            before = max(run.free.values(), default=0)
            run.free[gpu, 7] = max(run.free.get((gpu, 7), 0), before)
            for _ in range(8):
                run.launch("layer", 400 * US, device=gpu)
        corr, start, device = run.report.next_correlation(), max(run.free.values()), gpus - 1
        last = run.free[device, 7] = start + 2 * US + size // 6
        run.report.memcpy(
            start + US, last, bytes=size, kind="DtoH", corr=corr, device=device, src="device",
            dst="pageable",
        )  # fmt: skip
        run.call("cudaMemcpyAsync_v3020", last + 4 * US - run.now, corr)
    return Case(open_report(run.report.write(), use_cache=False))


@pytest.mark.parametrize("size", [64, 6_000_000])
def test_a_read_waits_for_gpus_by_turns_and_holds_none_up(tmp_path: Path, size: int) -> None:
    case = layers_on(tmp_path / "r.sqlite", 4, size)
    findings = find_in(case)
    first = findings[0]
    assert "cudaMemcpyAsync waits for GPUs by turns" in first.title
    assert first.advice.startswith("let them overlap")
    once = 30 * 8 * 400 * US  # what each GPU computes: all could work at once
    assert first.saved_ns == pytest.approx(3 * once, rel=0.08)
    copied = [one for one in findings if "cop" in one.rule or "memcpy" in one.rule]
    assert all(one.saved_ns < 30 * size // 6 + once / 10 for one in copied)
    assert "is not recorded" not in verdict(case, findings)


def test_on_one_gpu_a_read_waits_for_nobody_else(tmp_path: Path) -> None:
    findings = find_in(layers_on(tmp_path / "r.sqlite", 1))
    assert not any("waits for" in one.title for one in findings)


@pytest.mark.parametrize("once", [False, True])
def test_copies_that_come_again_before_each_step_are_no_set_up(tmp_path: Path, once: bool) -> None:
    """Weights go to the host between rollout and training of each round, or come before all."""
    run = Machine(tmp_path / "r.sqlite")
    if once:
        run.copy(240_000_000, 4, "HtoD", "pageable")
    for _ in range(6):
        since = run.now
        run.layers(4)
        run.wait()
        run.named("rollout", since)
        if not once:
            run.copy(40_000_000, 4, "DtoH", "pageable")
        since = run.now
        run.layers(6, tag="train_")
        run.wait()
        run.named("train", since)
    case = Case(open_report(run.report.write(), use_cache=False))
    findings = find_in(case)
    assert any("of copies before the first step" in one.title for one in findings) is once
    assert any("60.00 ms of copies exposed" in one.title for one in findings) is not once


def loading(path: Path, sizes: Callable[[int], int], later: int = 2) -> list[Finding]:
    """24 copies of such sizes come before all work, then one of a batch before each step."""
    synth, now = bare(path).api("cudaMalloc_v3020", 0, MS), MS
    for number in range(24):
        synth.memcpy(now, now + MS, bytes=sizes(number), src="pageable")
        now += MS
    for step in range(40):
        synth.memcpy(now, now + MS, bytes=8_000_000 + step % later, src="pageable")
        synth.kernel(f"gemm_{step % 3}", now + MS, now + 9 * MS, grid=FULL)
        now += 9 * MS
    return found(synth, "exposed_copies") + found(synth, "warm_up")


def test_weights_that_are_copied_once_are_no_part_of_what_each_step_copies(tmp_path: Path) -> None:
    steps, once = loading(tmp_path / "r.sqlite", lambda number: 6_000_000 + 64 * number)
    assert steps.title.startswith("GPU 0: 38.00 ms of copies exposed")
    assert "26.00 ms of copies before most of its work: only once" in once.title


@pytest.mark.parametrize(("own", "later"), [(0, 2), (6_000_000, 40)])
def test_copies_are_no_weights_whose_sizes_come_again_or_where_none_does(
    own: int, later: int, tmp_path: Path
) -> None:
    def size(number: int) -> int:
        return own + 64 * number if own else 8_000_000 + number % 2

    (one,) = loading(tmp_path / "r.sqlite", size, later)
    assert one.title.startswith("GPU 0: 64.00 ms of copies exposed")


@pytest.mark.parametrize(("memory", "told"), [("pageable", False), ("pinned", True)])
def test_pageable_copies_slower_than_others_of_such_memory_are_to_be_pinned(
    tmp_path: Path, memory: str, told: bool
) -> None:
    """Why one is slower than the other matters not: both are slow."""
    synth = copies_of(tmp_path / "r.sqlite", [(9, memory), (2, "pageable")] * 8)
    assert bool(found(synth, "slow_copies")) is told
    (one,) = found(synth, "exposed_copies") or found(synth, "slow_copies")
    assert one.advice.startswith("pin the host memory")


def test_beside_exposed_communication_the_kernel_that_leads_is_named(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(30):
        for number in range(4):
            run.launch(f"stage{number}_kernel", (20, 12, 11, 10)[number] * MS)
        run.launch("ncclDevKernel_SendRecv", 6 * MS)
    one, _ = found(run.report, "dominant_kernel")
    assert one.title.startswith("stage0_kernel has 33.9%")


@pytest.mark.parametrize(("function", "once"), [("cudnnCreate", True), ("customCreate", False)])
def test_a_library_that_is_set_up_is_no_work_to_launch_ahead_of(
    tmp_path: Path, function: str, once: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for start in range(0, 60 * MS, 3 * MS):
        synth.launch("apply", (start, start + 5 * US), (start + 10 * US, start + MS), grid=FULL)
        for at in range(start + MS + 50 * US, start + 3 * MS, 100 * US):
            synth.sample(at, ("load", function, "main") if once else (function, "main"))
    (one,) = found(synth.sched(0, True).sched(60 * MS, False), "gpu_idle")
    assert f"host {'sets a library up' if once else 'compute'}: {function}" in one.title
    assert one.advice.startswith("do so once" if once else "launch ahead")


@pytest.mark.parametrize(("caller", "library"), [("cusolverDnCreate", True), ("solve", False)])
def test_allocations_of_a_library_that_is_set_up_are_its_own(
    tmp_path: Path, caller: str, library: bool
) -> None:
    """Samples hit the driver in each allocation, below the function that allocates."""
    synth = bare(tmp_path / "r.sqlite")
    for start in range(0, 60 * MS, 2 * MS):
        synth.launch("solve", (start, start + 5 * US), (start + 10 * US, start + MS), grid=FULL)
        synth.api("cudaMalloc_v3020", start + MS + 50 * US, start + 2 * MS - 50 * US)
        for at in range(start + MS + 100 * US, start + 2 * MS - 50 * US, 200 * US):
            synth.sample(at, ("ioctl", "cuMemAlloc_v2", caller, "main"))
    (one,) = found(synth, "frequent_allocation")
    assert one.advice.startswith("a library makes them" if library else "allocate once before")


@pytest.mark.parametrize("again", [True, False])
def test_what_is_allocated_at_first_and_freed_at_last_is_allocated_once(
    tmp_path: Path, again: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for layer in range(30):  # weights
        at = layer * 300 * US
        synth.memcpy(at, at + 100 * US, bytes=MS)
        synth.api("cudaMalloc_v3020", at + 200 * US, at + 290 * US)
    for step in range(40):
        start = 10 * MS + step * 2 * MS
        call, gpu = (start - 20 * US, start - 10 * US), (start, start + MS)
        synth.launch("gemm", call, gpu, grid=FULL)
        if again:
            synth.api("cudaFree_v3020", start + MS, start + MS + 300 * US)
            synth.api("cudaMalloc_v3020", start + MS + 300 * US, start + MS + 600 * US)
    for layer in range(30):
        at = 100 * MS + layer * 300 * US
        synth.api("cudaFree_v3020", at, at + 250 * US)
    synth.memset(120 * MS, 120 * MS + US)
    titles = [one.title for one in found(synth, "frequent_allocation")]
    assert (
        titles
        == ["80 allocations and frees between GPU work: GPU 0 idle 24.00 ms meanwhile"][:again]
    )
