"""The rule on kernels that only move data, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import planted_kernels as planted
import pytest
from planted import bare
from planted_kernels import ADD, CAT, COPY, FOREACH, GELU, GEMM, LAYOUT, OWN, one_after_another

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Confidence, Severity
from nsys_tui.analysis.rules.ranking import RULES, find
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding

MS = 1_000_000


def found(synth: Synth) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [*RULES["movement_kernels"].run(case).findings]


@pytest.mark.parametrize(
    ("names", "saved", "title"),
    [
        (
            (GEMM, COPY, COPY),
            40,
            "copy kernels: 40.00 ms on GPU 0, 25.0% of its GPU time, most elementwise copy f32",
        ),
        (
            (GEMM, CAT),
            20,
            "concatenation kernels: 20.00 ms on GPU 0, 14.3% of its GPU time, most cat",
        ),
        (
            (GEMM, LAYOUT),
            20,
            "conversion kernels: 20.00 ms on GPU 0, 14.3% of its GPU time, most"
            " cudnn::ops::nchwToNhwcKernel",
        ),
        (
            (GEMM, GELU, GELU, GELU),
            40,
            "elementwise kernels: 60.00 ms on GPU 0, 33.3% of its GPU time, most elementwise gelu",
        ),
        (
            (GEMM, ADD, GELU, ADD),
            20 * 2 * (0.002 + 2 * 0.998 / 3),
            "elementwise kernels: 60.00 ms on GPU 0, 33.3% of its GPU time, most elementwise"
            " add f32",
        ),
        (
            (GEMM, FOREACH, FOREACH, FOREACH),
            40,
            "optimizer kernels: 60.00 ms on GPU 0, 33.3% of its GPU time, most multi tensor"
            " PointwiseOpList f32",
        ),
        (
            (GEMM, GELU, COPY, GEMM, ADD),
            20,
            "elementwise and copy kernels: 60.00 ms on GPU 0, 20.0% of its GPU time, led by"
            " elementwise gelu",
        ),
    ],
)
def test_copies_may_go_and_of_elementwise_kernels_what_they_hand_on(
    tmp_path: Path, names: Sequence[str], saved: float, title: str
) -> None:
    """Of three tensors of an addition one goes that it writes, or one that it reads."""
    (finding,) = found(one_after_another(tmp_path / "r.sqlite", names))
    assert (finding.saved_ns, finding.title) == (int(saved * MS), title)
    rated = Severity.HIGH if 10 * finding.saved_ns >= finding.of_ns else Severity.MEDIUM
    assert (finding.confidence, finding.severity) == (Confidence.GUESS, rated)


FSDP = (
    "void at::native::(anonymous namespace)::chunk_cat_cuda_kernel<float, c10::BFloat16>(T1 **)",
    "void at::native::split_with_sizes_copy_out_contiguous_no_cast_kernel(char **, char **)",
)


@pytest.mark.parametrize("name", [OWN, "cupy_copy__float32_float32", *FSDP])
def test_of_a_programs_own_copies_nobody_knows_what_could_be_saved(
    tmp_path: Path, name: str
) -> None:
    (finding,) = found(one_after_another(tmp_path / "r.sqlite", (GEMM, name)))
    assert (finding.saved_ns, finding.stake_ns) == (0, 20 * MS)
    assert finding.severity is Severity.LOW


@pytest.mark.parametrize(("until", "saved"), [(310, 40), (330, 0)])
def test_where_the_gpu_mostly_idles_something_else_may_set_the_pace(
    tmp_path: Path, until: int, saved: int
) -> None:
    synth = one_after_another(tmp_path / "r.sqlite")
    synth.kernel("end", (until - 1) * MS, until * MS, grid=(108, 1, 1))
    (finding,) = found(synth)
    assert (finding.saved_ns, finding.stake_ns) == (saved * MS, 40 * MS)


@pytest.mark.parametrize("run", [planted.fused, planted.apart])
def test_fused_kernels_optimizers_and_single_elementwise_ones_are_no_finding(
    tmp_path: Path, run: type[Synth]
) -> None:
    assert not found(run(tmp_path / "r.sqlite"))


@pytest.mark.parametrize(("read", "saved"), [(False, []), (True, [499 * 26_000 // 3])])
def test_where_launches_bind_the_run_only_what_is_waited_for_has_a_price(
    tmp_path: Path, read: bool, saved: list[int]
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    for start in range(0, 500 * 20_000, 20_000):
        name = ADD.replace("_add", "_sub") if start % 40_000 else ADD
        synth.launch(name, (start, start + 6_000), (start + 7_000, start + 19_000))
        if read:
            synth.api("cudaStreamSynchronize_v3020", start + 6_000, start + 19_500)
    assert [one.saved_ns for one in found(synth)] == saved


@pytest.mark.parametrize(("every", "told"), [(200, False), (10, True)])
def test_many_elementwise_kernels_of_one_name_hand_nothing_on(
    tmp_path: Path, every: int, told: bool
) -> None:
    """The same work on many arrays, or that and a little of another name now and then."""
    synth = bare(tmp_path / "r.sqlite")
    for number in range(200):
        name = GELU if number % every == every - 1 else ADD
        synth.kernel(name, number * MS, (number + 1) * MS, grid=(1080, 1, 1))
    assert bool(found(synth)) is told


def test_fused_tiny_kernels_save_the_moments_between_them_too_and_are_one_story(
    tmp_path: Path,
) -> None:
    """Twos of 3 us, of which fusing saves 2 us and half of what is read or written in the third."""
    synth = bare(tmp_path / "r.sqlite")
    for number in range(1000):
        call, start = number * 4_000, 5 * MS + number * 48_000
        for name, at, took in ((GELU, 0, 3_000), (GELU, 4_000, 3_000), (GEMM, 8_000, 39_000)):
            work = (start + at, start + at + took)
            synth.launch(name, (call, call + 1_000), work, grid=(1080, 1, 1))
    findings = find(open_report(synth.write(), use_cache=False))
    told = {one.rule: one for one in findings}
    whole = told["movement_kernels"]
    assert whole.saved_ns == 1000 * (1_000 + 2_000 + 2 * 1_000 // 2)
    assert told["tiny_kernels"].same_as == whole.subject


DEQUANTISING = (
    "void kDequantizeBlockwise<__nv_bfloat16, (int)512, (int)64, (int)8>(float *, unsigned char *)",
    "void dequantize_block_q4_K<__half>(void const *, __half *)",
)


@pytest.mark.parametrize("name", DEQUANTISING)
def test_dequantising_has_an_advice_of_its_own(tmp_path: Path, name: str) -> None:
    (finding,) = found(one_after_another(tmp_path / "r.sqlite", (GEMM, name)))
    assert finding.title.startswith("dequantisation kernels: 20.00 ms on GPU 0, 14.3%")
    assert "quantised weights" in finding.advice
    assert (finding.saved_ns, finding.stake_ns) == (0, 20 * MS)


@pytest.mark.parametrize(
    "name",
    [
        "split_k_reduce_kernel(float *)",
        "chunk_scan_fwd_kernel",
        "dequantize_mul_mat_vec_q4_0_cuda(float *)",
    ],
)
def test_splitting_and_chunks_alone_are_no_move(tmp_path: Path, name: str) -> None:
    assert not found(one_after_another(tmp_path / "r.sqlite", (GEMM, name)))


def test_copies_beside_other_kernels_cost_nothing(tmp_path: Path) -> None:
    assert not found(planted.beside_others(tmp_path / "r.sqlite"))


@pytest.mark.parametrize(("names", "told"), [((OWN, OWN), False), ((GEMM, OWN), True)])
def test_a_program_that_hardly_does_more_than_move_does_so_on_purpose(
    tmp_path: Path, names: Sequence[str], told: bool
) -> None:
    assert bool(found(one_after_another(tmp_path / "r.sqlite", names))) is told


@pytest.mark.parametrize(("after", "told"), [(2, True), (6, False)])
def test_while_pages_migrate_a_copy_waits_for_these(tmp_path: Path, after: int, told: bool) -> None:
    """They come while the product runs, or in the last of each 7 ms, which is the copy's."""
    synth = one_after_another(tmp_path / "r.sqlite", (GEMM, OWN))
    for start in range(after * MS, 140 * MS, 7 * MS):
        synth.memcpy(start + 200, start + 900, kind="UVM HtoD", migrationCause=2)
    assert bool(found(synth)) is told


@pytest.mark.parametrize(
    ("heads", "takes", "last", "told"),
    [
        (8, "exp", "div", True),
        (1, "exp", "div", False),
        (8, "gelu", "div", False),
        (8, "exp", "log", False),
    ],
    ids=["attention", "not batched", "no exponential", "loss"],
)
def test_scores_between_batched_products_are_attention_written_out(
    tmp_path: Path, heads: int, takes: str, last: str, told: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite")
    torch = "void at::native::vectorized_elementwise_kernel<4, at::native::{}_kernel_cuda>(int)"
    names = (GEMM, planted.REDUCE, torch.format(takes), torch.format(last), GEMM)
    for number in range(100):
        start = number * MS
        synth.kernel(names[number % 5], start, start + MS, grid=(40, 1, heads))
    told_of = {one.subject: one for one in found(synth)}
    assert ("attention written out" in told_of) is told
    if told:
        assert told_of["attention written out"].saved_ns == 60 * MS
