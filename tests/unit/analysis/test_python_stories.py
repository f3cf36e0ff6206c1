"""Runs after Python programs whose tables are public, and others that nearly have the fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import FULL, MS, US, bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def found(synth: Synth, rule: str) -> list[Finding]:
    return [one for one in every(synth) if one.rule == rule]


def every(synth: Synth) -> list[Finding]:
    return [*find_in(Case(open_report(synth.write(), use_cache=False)))]


@pytest.mark.parametrize(("kind", "part"), [("DtoD", 1.0), ("HtoD", 0.5)])
def test_copies_within_a_gpu_are_queued_like_the_tiny_kernels_beside_them(
    tmp_path: Path, kind: str, part: float
) -> None:
    """Of a loop that exchanges ghost cells a graph has the copies, too; not the host's memory."""
    synth = bare(tmp_path / "r.sqlite")
    for number in range(800):
        start = number * 12 * US
        if number % 4 == 3:
            corr = synth.next_correlation()
            synth.api("cudaMemcpyAsync_v3020", start, start + 4 * US, corr=corr)
            synth.memcpy(start + 5 * US, start + 7 * US, kind=kind, bytes=4096, corr=corr)
        else:
            synth.launch("stencil", (start, start + 4 * US), (start + 5 * US, start + 7 * US))
    (one,) = found(synth, "tiny_kernels")
    idle = 799 * 10 * US
    assert one.saved_ns <= part * idle
    assert one.saved_ns == pytest.approx(part * idle, rel=0.15)


@pytest.mark.parametrize(
    ("module", "leaf", "told"),
    [
        ("libllvmlite.so", "lower", "host compiles code: "),
        ("libllama.so", "lower", "host compute"),
        ("libc.so.6", "__memmove_avx_unaligned_erms", "host copies memory"),
        ("libc.so.6", "__memset_avx2", "host compute"),
    ],
)
def test_time_in_a_compiler_or_a_copy_is_told_as_such(
    tmp_path: Path, module: str, leaf: str, told: str
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(20):
        start = number * 20 * MS
        synth.launch(f"k{number % 2}", (start, start + 5 * US), (start + 10 * US, start + MS))
        for sample in range(2, 19):
            synth.sample(start + sample * MS, (leaf, "main"), module=f"/opt/{module}")
    one = found(synth, "gpu_idle")[0]
    assert told in one.title
    assert one.advice.startswith("code is compiled here") is ("compiles" in told)


@pytest.mark.parametrize("before", [False, True])
def test_a_library_that_sets_itself_up_before_its_first_kernel_does_so_once(
    tmp_path: Path, before: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for number in range(40):
        start = (number + 75 * (number >= 20)) * MS
        name = "gemm" if number == 20 or before else "scale"
        synth.launch(name, (start, start + 5 * US), (start + 10 * US, start + 900 * US))
    synth.api("cudaFree_v3020", 20 * MS, 94 * MS)
    told = {one.rule for one in every(synth) if "cudaFree" in one.title}
    assert told == {"gpu_idle" if before else "warm_up"}


@pytest.mark.parametrize(
    ("family", "major", "told"),
    [
        ("ampere_sgemm_", 8, "FP32 GEMM"),
        ("ampere_sgemm_", 6, "gemm f32"),
        ("ampere_s16816gemm_", 8, "gemm"),
    ],
)
def test_products_of_many_shapes_count_together(
    tmp_path: Path, family: str, major: int, told: str
) -> None:
    """No shape has half of the time; GPUs have tensor cores from Volta on, and some use them."""
    synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0, computeMajor=major, computeMinor=0)
    for number in range(200):
        name = "softmax" if number % 4 == 3 else f"{family}{32 << number % 4}x64_tn"
        synth.kernel(name, number * MS, (number + 1) * MS, grid=FULL)
    first, _ = found(synth, "dominant_kernel")
    assert first.title.startswith(f"{told} (3 variants) has 75.0% of GPU time")
    assert ("no tensor cores" in first.advice) is told.startswith("FP32")


@pytest.mark.parametrize(
    ("every", "unit", "told"), [(6, MS, True), (24, MS, False), (6, 15 * US, False)]
)
def test_single_precision_products_are_told_of_from_a_twentieth_beside_the_kernel_that_leads(
    tmp_path: Path, every: int, unit: int, told: bool
) -> None:
    """Short ones take as long as a kernel takes at least."""
    synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0, computeMajor=8, computeMinor=0)
    for number in range(240):
        name = "ampere_sgemm_64x64_nn" if number % every == 0 else "solve"
        synth.kernel(name, number * unit, (number + 1) * unit, grid=FULL)
    subjects = [one.subject for one in found(synth, "dominant_kernel")]
    assert sorted(subjects) == ["gemm f32 64x64 NN"] * told + ["solve"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("void implicit_convolve_sgemm<float, float, (int)128>(int)", True),
        ("void implicit_convolve_sgemm<__half, __half, (int)128>(int)", False),
        ("void cudnn::cnn::wgrad_alg0_engine<float, (int)128>(int)", True),
        ("void cudnn::cnn::conv2d_grouped_direct_kernel<float, float>(int)", False),
        ("maxwell_scudnn_128x64_relu_interior_nn_v1", True),
    ],
)
def test_convolutions_of_single_precision_count_as_products(
    tmp_path: Path, name: str, told: bool
) -> None:
    """Those of a group each, and of 16-bit numbers, are none."""
    synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0, computeMajor=7, computeMinor=0)
    for number in range(60):
        used = name if number % 3 else "batch_norm"
        synth.kernel(used, number * MS, (number + 1) * MS, grid=FULL)
    first, *_ = found(synth, "dominant_kernel")
    assert first.advice.startswith("it uses no tensor cores: allow fp16") is told


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((7, 7, 6), "rotate (2 variants) has 70.0% of GPU time"),
        ((11, 3, 6), "rotate left has 55.0% of GPU time"),
    ],
)
def test_variants_of_a_kernel_count_together_where_none_has_most(
    tmp_path: Path, parts: tuple[int, ...], told: str
) -> None:
    names, synth, now = ("rotate<left>", "rotate<right>", "reduce"), bare(tmp_path / "r.sqlite"), 0
    for name, part in zip(names * 10, parts * 10, strict=True):
        synth.kernel(f"void {name}(int)", now, now := now + part * MS, grid=FULL)
    assert found(synth, "dominant_kernel")[0].title.startswith(told)


@pytest.mark.parametrize(
    ("most", "copied", "rule"),
    [
        ("solve", 2, "dominant_kernel"),
        ("solve", 5, "dominant_kernel"),
        ("solve", 12, "exposed_copies"),
        ("sm80_xmma_gemm_tf32f32_tf32f32_f32_tn_n_tilesize128x128x32", 5, "dominant_kernel"),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32", 2, "dominant_kernel"),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32", 5, "exposed_copies"),
    ],
)
def test_a_kernel_of_two_fifths_comes_before_what_gives_back_little(
    tmp_path: Path, most: str, copied: int, rule: str
) -> None:
    """Copies that pinned memory could hide have two to ten per cent of the time.

    Of a product that is as quick as tensor cores are, less can go than of other kernels.
    """
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(40):
        run.copy(copied * 5_000_000, 5, "HtoD", "pageable")
        for name, lasts in ((most, 40), ("a", 15), ("b", 15), ("c", 14), ("d", 14)):
            run.launch(name, lasts * MS)
    assert every(run.report)[0].rule == rule


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("ampere_sgemm_64x64_nn", "FP32 GEMM (2 variants) has 80.0%"),
        ("ampere_s16816gemm_64x64_nn", "gemm f32 128x64 TN has 60.0%"),
    ],
)
def test_single_precision_products_count_together_beside_one_that_has_most(
    tmp_path: Path, other: str, told: str
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0, computeMajor=8, computeMinor=0)
    names = (*["ampere_sgemm_128x64_tn"] * 3, other, "softmax")
    for number in range(200):
        synth.kernel(names[number % 5], number * MS, (number + 1) * MS, grid=FULL)
    (one,) = found(synth, "dominant_kernel")
    assert one.title.startswith(told)


def test_small_grids_of_many_shapes_are_told_with_all_of_their_time(tmp_path: Path) -> None:
    """What could be saved is never more than the time named, whatever else is small for a while."""
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for blocks in range(40, 0, -1):
        synth.kernel("factor", now, now := now + MS, grid=(blocks, 1, 1))
    synth.kernel("once", now, now := now + MS, grid=(1, 1, 1))
    (one,) = found(synth, "small_grids")
    assert one.title.startswith("factor: 1 block of ")
    assert one.title.endswith("40.00 ms")
    assert 20 * MS < one.saved_ns <= 40 * MS
