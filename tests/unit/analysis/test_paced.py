"""What kernels of small grids cost where something else than their GPU sets the pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import FULL, MS, US, Machine
from synth import Synth

from nsys_tui.analysis.rules.ranking import find
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

STEPS = 10
SMALL = (27, 1, 1)
"""A fourth of the SMs of the GPU that ``Synth`` describes."""
PART_MS = 8
SPARE = 3 * PART_MS * MS // 4


def small_grids(synth: Synth) -> Finding:
    report = open_report(synth.write(), use_cache=False)
    (one,) = [one for one in find(report) if one.rule == "small_grids"]
    report.close()
    return one


def stepping(
    path: Path,
    waits: Sequence[bool],
    *,
    seen: bool = True,
    name: str = "part",
    grid: tuple[int, int, int] = SMALL,
) -> Synth:
    """Steps of one kernel, after which the host works on for 4 ms, or for 12 without a wait.

    Args:
        path: of the report.
        waits: whether the host waits for the kernel of each step before.
        seen: the scheduler's events are recorded.
        name: of the kernel.
        grid: of it.
    """
    synth, now = Synth(path).process(10, "solver").gpu(0), 0
    for waited in waits:
        done = now + 10 * US + PART_MS * MS
        synth.launch(name, (now, now + 5 * US), (now + 10 * US, done), grid=grid)
        if waited:
            synth.api("cudaStreamSynchronize_v3020", now + 6 * US, done + 2 * US)
        now = done + 4 * MS
    if seen:
        synth.sched(0, True).sched(now, False)
    return synth


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize(
    ("waits", "needed"),
    [([True] * STEPS, STEPS), ([False] * STEPS, 1), ([True, False] * (STEPS // 2), STEPS // 2 + 1)],
)
def test_shorter_kernels_save_only_what_their_host_waits_for(
    tmp_path: Path, waits: list[bool], needed: int, seen: bool
) -> None:
    finding = small_grids(stepping(tmp_path / "r.sqlite", waits, seen=seen))
    assert finding.saved_ns == pytest.approx(needed * SPARE, abs=STEPS * 10 * US)
    if needed == 1:
        assert finding.saved_ns + finding.held_ns == STEPS * SPARE
        assert finding.advice.startswith("60.00 ms once the host is quicker")


@pytest.mark.parametrize(("call", "needed"), [("cudaMalloc_v3020", 0), ("cudaFree_v3020", STEPS)])
def test_allocating_memory_is_no_wait_but_freeing_it_is(
    tmp_path: Path, call: str, needed: int
) -> None:
    """As long as the kernel beside them, both: what is shorter lets a host that frees go on."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(STEPS):
        run.launch("part", PART_MS * MS, grid=SMALL)
        run.call(call, PART_MS * MS)
    run.wait()
    finding = small_grids(run.report)
    assert finding.saved_ns == pytest.approx(needed * SPARE, abs=MS)


@pytest.mark.parametrize(("beside", "waits"), [(0, True), (2, True), (4, True), (4, False)])
def test_shorter_kernels_save_no_more_than_their_host_waits(
    tmp_path: Path, beside: int, waits: bool
) -> None:
    """The host works beside kernels of 8 ms that could take 2: without a wait it paces them."""
    run, left = Machine(tmp_path / "r.sqlite"), (PART_MS - beside) * MS
    for _ in range(STEPS):
        run.launch("part", PART_MS * MS, grid=SMALL)
        run.off("read", beside * MS)
        if waits:
            run.wait()
    finding = small_grids(run.report)
    assert finding.saved_ns == pytest.approx(min(SPARE, left) * STEPS, abs=5 * MS)


@pytest.mark.parametrize(
    ("call", "needed"), [("", 1), ("cudaLaunchHostFunc_v10000", STEPS), ("cudaEventQuery", STEPS)]
)
def test_a_host_that_polls_waits_for_its_gpu_only_if_somebody_is_told_of_it(
    tmp_path: Path, call: str, needed: int
) -> None:
    synth = stepping(tmp_path / "r.sqlite", [False] * STEPS)
    for step in range(STEPS):
        begun, done = (
            step * (PART_MS + 4) * MS + some * US for some in (20, PART_MS * 1000 + 3990)
        )
        synth.osrt("poll", begun, done)
        if call:
            synth.api(call, done, done + US, tid=11)
    finding = small_grids(synth)
    assert finding.saved_ns == pytest.approx(needed * SPARE, abs=STEPS * 10 * US)


def reducing(path: Path, took: Sequence[int], small: Sequence[bool]) -> Synth:
    """GPUs that compute, each for some time in ms, and reduce together, over and over."""
    synth, begin = Synth(path), 0
    for gpu in range(len(took)):
        synth.gpu(gpu)
    for _ in range(STEPS):
        end = begin + max(took) * MS + 100 * US
        for gpu, (ms, few) in enumerate(zip(took, small, strict=True)):
            done = begin + ms * MS
            synth.process(10 + gpu)
            name, grid = ("part", SMALL) if few else ("whole", FULL)
            synth.kernel(name, begin, done, device=gpu, stream=7 + gpu, grid=grid)
            synth.kernel("ncclDevKernel_AllReduce", done, end, device=gpu, stream=7 + gpu)
        begin = end
    return synth


@pytest.mark.parametrize(
    ("took", "small", "sooner"),
    [
        ((PART_MS, 12), (True, False), 0),
        ((12, PART_MS), (True, False), 4),
        ((12, 12), (True, True), 9),
        ((12, 8, 10), (True, False, True), 4),
        ((12, 8, 12), (True, False, False), 0),
    ],
)
def test_shorter_kernels_save_only_what_the_last_gpu_comes_sooner(
    tmp_path: Path, took: tuple[int, ...], small: tuple[bool, ...], sooner: int
) -> None:
    finding = small_grids(reducing(tmp_path / "r.sqlite", took, small))
    assert finding.saved_ns == pytest.approx(STEPS * sooner * MS, rel=0.01, abs=US)
    if not sooner:
        assert "once GPU" in finding.advice


@pytest.mark.parametrize(
    ("waits", "needed"),
    [([True] * STEPS, STEPS), ([False] * STEPS, 1), ([True, False] * (STEPS // 2), STEPS // 2 + 1)],
)
def test_quicker_products_save_only_what_their_host_waits_for(
    tmp_path: Path, waits: list[bool], needed: int
) -> None:
    synth = stepping(tmp_path / "r.sqlite", waits, name="ampere_sgemm_128x64_tn", grid=FULL)
    found = find(open_report(synth.write(), use_cache=False))
    (one,) = [one for one in found if one.rule == "dominant_kernel"]
    assert one.saved_ns == pytest.approx(needed * PART_MS * MS * 2 / 3, rel=0.01)
    assert ("once the host is quicker: it uses no tensor cores" in one.advice) is (needed == 1)


@pytest.mark.parametrize("waits", [False, True])
def test_quicker_products_save_no_more_than_their_host_waits(tmp_path: Path, waits: bool) -> None:
    """Waits that end at once are over whenever the kernels before them are."""
    synth, now = Synth(tmp_path / "r.sqlite").process(10, "solver").gpu(0), MS
    name = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma_cublas"
    for _ in range(STEPS):
        begun, done = now + 10 * US, now + 10 * US + PART_MS * MS
        synth.api("cudaStreamSynchronize_v3020", now - 30 * US, now - 5 * US)
        synth.launch(name, (now, now + 5 * US), (begun, done), grid=FULL)
        synth.launch("step", (begun, begun + 5 * US), (done, done + MS), grid=FULL)
        if waits:
            synth.api("cudaStreamSynchronize_v3020", begun + 10 * US, done + MS + US)
        now = done + 5 * MS
    synth.launch("last", (now, now + 5 * US), (now + 10 * US, now + MS), grid=FULL)
    found = find(open_report(synth.write(), use_cache=False))
    (one,) = [one for one in found if one.rule == "dominant_kernel"]
    assert one.saved_ns == pytest.approx(waits * STEPS * PART_MS * MS * 2 / 3, rel=0.02, abs=2 * MS)
    assert ("once the host is quicker: it uses no tensor cores" in one.advice) is not waits


@pytest.mark.parametrize("kind", ["exposed_copies", "memsets", "migrations_in_kernels"])
@pytest.mark.parametrize("waits", [False, True])
def test_copies_memsets_and_pages_save_only_what_their_host_waits_for(
    tmp_path: Path, kind: str, waits: bool
) -> None:
    machine = Machine(tmp_path / "r.sqlite")
    for _ in range(STEPS):
        machine.launch("gemm", 6 * MS)
        if kind == "memsets":
            machine.clear(4 * MS)
        elif kind == "exposed_copies":
            machine.upload(4 * MS)
        else:
            machine.faults("stencil", MS, 4 * MS)
        if waits:
            machine.wait()
        machine.off("read", 12 * MS)
    found = find(open_report(machine.report.write(), use_cache=False))
    (one,) = [one for one in found if one.rule == kind]
    assert one.saved_ns == pytest.approx((STEPS if waits else 1) * 4 * MS, rel=0.02)
