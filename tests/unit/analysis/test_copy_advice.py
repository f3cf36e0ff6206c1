"""Advice on copies: what fits what their data depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import MS, US
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def found(synth: Synth, rule: str) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [one for one in find_in(case) if one.rule == rule]


@pytest.mark.parametrize(
    ("fields", "sizes", "thinks", "keeps"),
    [
        (2, (4_000_000, 4_000_000), 0, True),
        (3, (4_000_000, 4_000_000), MS, True),
        (2, (4_000_000, 5_000_000), 0, False),
        (1, (4_000_000, 4_000_000), 0, False),
        (2, (4_000_000, 4_000_000), 9 * MS, False),
    ],
    ids=["straight", "soon", "others", "one: the next image", "the host makes new data"],
)
def test_fields_that_go_straight_back_stay_on_the_gpu(
    tmp_path: Path, fields: int, sizes: tuple[int, int], thinks: int, keeps: bool
) -> None:
    """What goes both ways is given back, and what the host does between: 400 us for each copy."""
    run, (down, up) = Machine(tmp_path / "r.sqlite"), sizes
    for _ in range(60):
        for _ in range(fields):
            run.copy(up, 10, "HtoD")
        run.launch("step", 20 * US)
        for _ in range(fields):
            run.copy(down, 10, "DtoH")
        run.off("compute", thinks)
    (one,) = found(run.report, "exposed_copies")
    assert one.advice.startswith("keep the data on the GPU: what comes to the host") is keeps
    copied = 59 * 2 * fields * 400 * US
    around = copied + 59 * thinks
    assert (around <= one.saved_ns <= 1.02 * around) is keeps


def test_copies_that_go_both_ways_already_are_not_told_to(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu()
    for n in range(40):
        t = n * 1_100 * US
        synth.memcpy(t, t + MS, bytes=12_000_000, kind="HtoD", src="pinned", stream=7)
        synth.kernel("add", t + MS, t + 1_050 * US, stream=7)
        synth.memcpy(t + 200 * US, t + 900 * US, bytes=8_400_000, kind="DtoH", stream=8)
    (one,) = found(synth, "exposed_copies")
    assert one.advice.startswith("copy less, or keep the data on the GPU")


@pytest.mark.parametrize("recurs", [True, False])
def test_what_is_copied_between_kernels_is_told_without_the_final_download(
    tmp_path: Path, recurs: bool
) -> None:
    """Eight passes, each of which ends with a copy on the GPU: fewer than make a run."""
    synth, t = Synth(tmp_path / "r.sqlite").gpu(), 0
    for _ in range(8):
        synth.kernel("pass", t, t + 4 * MS, grid=(1080, 1, 1))
        t += 4 * MS
        if recurs:
            synth.memcpy(t, t + 2 * MS, bytes=200_000_000, kind="DtoD")
            t += 2 * MS
    synth.memcpy(t, t + 20 * MS, bytes=67_000_000, kind="DtoH", dst="pageable")
    (one,) = found(synth, "exposed_copies")
    assert ("14.00 ms of copies exposed; most Device-to-Device" in one.title) is recurs
    assert one.advice.startswith("swap pointers") is recurs
    assert one.saved_ns == 14 * MS or not recurs


@pytest.mark.parametrize(
    ("works", "told"), [(50 * US, True), (20 * MS, False), (0, False)], ids=["sums", "else", "not"]
)
def test_what_the_host_makes_of_results_is_done_on_the_gpu(
    tmp_path: Path, works: int, told: bool
) -> None:
    """Partial results of 512 kB: the host goes through them in 50 us before it launches on."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        run.launch("dot", 300 * US)
        run.copy(524_288, 5, "DtoH", "pageable")
        run.now += works
    (one,) = found(run.report, "exposed_copies")
    assert one.advice.startswith("do on the GPU what the host makes of these") is told


@pytest.mark.parametrize(("size", "value"), [(4, True), (4096, False)])
def test_values_that_the_host_waits_for_cannot_be_gathered(
    tmp_path: Path, size: int, value: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(60):
        run.launch("sweep", 40 * US)
        run.copy(size, 8, "DtoH")
    (one,) = found(run.report, "small_copies")
    assert one.advice.startswith("decide on the GPU, or read only each n-th") is value


@pytest.mark.parametrize(("each", "value"), [(1, True), (20, False)])
def test_no_graph_holds_short_kernels_whose_values_the_host_reads(
    tmp_path: Path, each: int, value: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for n in range(200):
        run.launch("sweep", 3 * US)
        if n % each == 0:
            run.copy(4, 8, "DtoH")
    (one,) = found(run.report, "launch_bound")
    assert one.advice.startswith("decide on the GPU") is value


@pytest.mark.parametrize(("count", "told"), [(60, True), (15, False)])
def test_small_copies_of_whatever_sizes_are_one_series(
    tmp_path: Path, count: int, told: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for n in range(count):
        run.copy(44 + 8 * n, 8, "HtoD", "pageable")
        run.launch("level", 20 * US)
    one = found(run.report, "small_copies")
    assert [text.title.startswith(f"{count} small copies") for text in one] == [True] * told


@pytest.mark.parametrize(("size", "told"), [(65_536, False), (65_537, True)])
def test_small_uploads_of_pageable_memory_hold_nobody_up(
    tmp_path: Path, size: int, told: bool
) -> None:
    """The driver takes their data into the launch, however few they are."""
    synth = Synth(tmp_path / "r.sqlite").gpu()
    for n in range(15):
        t, corr = n * MS, synth.next_correlation()
        synth.api("cudaMemcpyAsync_v3020", t, t + 200 * US, corr=corr)
        synth.memcpy(t + 190 * US, t + 200 * US, bytes=size, corr=corr, src="pageable")
        synth.kernel("level", t + 210 * US, t + 700 * US)
    assert bool(found(synth, "cuda_memcpy_async")) is told


def pages(path: Path, *, cause: int = 1, computes: int = 0) -> Synth:
    """Pages are prefetched for a kernel, behind others or none."""
    synth = Synth(path).gpu().api("cudaMemPrefetchAsync_v8000", 0, 10 * US)
    if computes:
        synth.kernel("before", 0, computes)
    for n in range(20):
        begun = 10 * US + n * 100 * US + computes
        synth.memcpy(begun, begun + 90 * US, bytes=2**21, kind="UVM HtoD", migrationCause=cause)
    synth.kernel("add", computes + 10 * MS, computes + 11 * MS)
    return synth


@pytest.mark.parametrize(
    ("computes", "told"), [(0, "let a kernel fill these pages"), (5 * MS, "prefetch earlier")]
)
def test_a_prefetch_that_nothing_hides_comes_no_earlier(
    tmp_path: Path, computes: int, told: str
) -> None:
    (one,) = found(pages(tmp_path / "r.sqlite", computes=computes), "exposed_copies")
    assert one.advice.startswith(told)


@pytest.mark.parametrize("waits", [True, False])
def test_pages_that_come_back_after_all_prefetches_are_read(tmp_path: Path, waits: bool) -> None:
    """No cause is recorded; what comes before the host has waited may be prefetched, too."""
    synth = pages(tmp_path / "r.sqlite", cause=0)
    for n in range(40):
        begun = 12 * MS + n * MS
        synth.memcpy(begun, begun + 170 * US, bytes=2**21, kind="UVM DtoH")
    if waits:
        synth.api("cudaDeviceSynchronize_v3020", 20 * US, 11 * MS)
    synth.kernel("add", 60 * MS, 61 * MS)
    (one,) = found(synth, "exposed_copies")
    assert one.advice.startswith("the host works on pages of the GPU") is waits


@pytest.mark.parametrize("gpu", [0, 1], ids=["its own calls", "those of another GPU"])
def test_copies_have_the_idle_time_in_their_calls_too(tmp_path: Path, gpu: int) -> None:
    """Each of 30 copies of 2 ms takes a call that begins 1 ms before it."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1)
    for n in range(30):
        t, corr = n * 5 * MS, synth.next_correlation()
        synth.launch("step", call=(t, t + 5 * US), gpu=(t + 10 * US, t + MS), device=gpu)
        synth.api("cudaMemcpy_v3020", t + MS, t + 4 * MS, corr=corr)
        synth.memcpy(
            t + 2 * MS, t + 4 * MS, bytes=20_000_000, src="pageable", corr=corr, device=gpu
        )
        synth.memcpy(t + 2 * MS, t + 4_900 * US, bytes=72_000_000, kind="DtoH", stream=8)
        if gpu:
            synth.kernel("other", t + MS, t + 2 * MS, stream=9)
    case = Case(open_report(synth.write(), use_cache=False))
    by_rule = {one.rule: one for one in find_in(case)}
    whole, part = by_rule["exposed_copies"], by_rule["cuda_memcpy_sync"]
    assert (" idle around;" in whole.title) is (gpu == whole.device)
    assert (part.same_as == whole.subject) is (part.device == whole.device)


@pytest.mark.parametrize(
    ("frees", "behind"), [("", True), ("cudaFreeAsync_v11020", True), ("cudaFree_v3020", False)]
)
def test_a_read_back_holds_up_nothing_that_a_free_holds_up_after_it(
    tmp_path: Path, frees: str, behind: bool
) -> None:
    """Without the reads of values the host would wait for the GPU in ``cudaFree``."""
    run = Machine(tmp_path / "r.sqlite")
    for n in range(100):
        run.launch(f"k{n % 3}", 2 * MS)
        run.copy(4, 8, "DtoH", "pageable")
        if frees:
            run.call(frees, 500 * US)
        run.now += 500 * US
    (one,) = found(run.report, "small_copies")
    assert (one.saved_ns > 10 * MS) is behind


def saving(path: Path, *, waits: bool = False, polls: bool = False, works: int = 30 * MS) -> Synth:
    """Work of 6 ms, then a copy of 5 ms of pinned memory, while the host writes a file."""
    run = Machine(path)
    for _ in range(40):
        run.launch("step", 6 * MS)
        run.wait()
        run.upload(5 * MS)
        run.now += 10 * US if waits or polls else works
        if polls:
            run.call("cudaStreamQuery_v3020", 2 * US)
            run.now += 5 * MS
        run.wait()
        run.now += works if waits or polls else 0
    return run.report


@pytest.mark.parametrize(
    ("waits", "polls", "works", "priced"),
    [
        (False, False, 30 * MS, False),
        (True, False, 30 * MS, True),
        (False, True, 30 * MS, True),
        (False, False, 10 * US, True),
    ],
    ids=["nobody waits", "the host waits", "the host asks again and again", "it is soon back"],
)
def test_copies_give_back_only_what_something_waits_for(
    tmp_path: Path, waits: bool, polls: bool, works: int, priced: bool
) -> None:
    synth = saving(tmp_path / "r.sqlite", waits=waits, polls=polls, works=works)
    (one,) = found(synth, "exposed_copies")
    assert (one.saved_ns > MS) is priced
