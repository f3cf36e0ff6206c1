"""Rules on GPU work: each has a run that must trigger it, and one that nearly does and must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from paths import REPORTS, needs_reports, report_paths
from planted_kernels import GEMM
from planted_training import ONE_AN_SM
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import RULES, find
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

MS = 1_000_000
SMS = 108
"""SMs of the GPU that ``Synth`` describes."""


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "r.sqlite").process(10, "train").gpu(0)


def found(synth: Synth, rule: str, scope: Scope | None = None) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False), scope)
    return [*RULES[rule].run(case).findings]


def launched(
    synth: Synth, name: str, start: int, end: int, blocks: int, threads: int = 256
) -> None:
    synth.kernel(
        name, start, end, gridX=blocks, gridY=1, gridZ=1, blockX=threads, blockY=1, blockZ=1
    )


class TestDominantKernel:
    def test_a_kernel_with_most_of_all_gpu_time_is_named_with_its_share(self, synth: Synth) -> None:
        launched(synth, "void heavy<float>(float*)", 0, 60 * MS, SMS)
        launched(synth, "light", 60 * MS, 70 * MS, SMS)
        synth.memcpy(80 * MS, 100 * MS)
        (finding,) = found(synth, "dominant_kernel")
        assert finding.title == "heavy has 66.7% of GPU time: 60.00 ms on GPU 0, 60.0% of the time"
        assert (finding.saved_ns, finding.stake_ns) == (0, 60 * MS)
        assert finding.window == (0, 60 * MS)

    @pytest.mark.parametrize(("blocks", "told"), [(1, True), (2, False)])
    def test_one_block_is_told_where_nobody_knows_how_many_sms_there_are(
        self, tmp_path: Path, blocks: int, told: bool
    ) -> None:
        synth = Synth(tmp_path / "r.sqlite").process(10)
        launched(synth, "reduce", 0, 60 * MS, blocks)
        (finding,) = found(synth, "dominant_kernel")
        assert finding.advice.startswith("it has one block") is told

    @pytest.mark.parametrize(
        ("major", "minor", "model", "formats", "saved"),
        [
            (6, 0, "P100", "", 0),
            (7, 5, "GTX 1650", "", 0),
            (7, 5, "T4", "fp16", 40),
            (8, 0, "A100", "TF32 or bf16", 40),
            (8, 6, "RTX 3090", "TF32 or bf16", 30),
            (12, 0, "RTX 5090", "TF32 or bf16", 30),
        ],
    )
    def test_of_single_precision_products_tensor_cores_save_half_or_more(
        self, tmp_path: Path, major: int, minor: int, model: str, formats: str, saved: int
    ) -> None:
        for name, single in (("ampere_sgemm_128x64_tn", True), (GEMM, False), ("sgemm", False)):
            of_gpu = {"computeMajor": major, "computeMinor": minor}
            synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0, model, **of_gpu)
            launched(synth, name, 0, 60 * MS, SMS)
            (finding,) = found(synth, "dominant_kernel")
            told = bool(formats) and single
            assert (f"no tensor cores: allow {formats}," in finding.advice) is told
            assert finding.saved_ns == saved * MS * told

    @pytest.mark.parametrize(("beside", "told"), [(40, True), (20, False)])
    def test_of_two_that_run_at_a_time_neither_alone_shortens_the_run(
        self, synth: Synth, beside: int, told: bool
    ) -> None:
        launched(synth, "heavy", 0, 60 * MS, SMS)
        synth.kernel("other", 0, beside * MS, stream=8, grid=(SMS, 1, 1))
        finding = found(synth, "dominant_kernel")[0]
        assert finding.subject == ("heavy, others beside it" if told else "heavy")
        assert finding.advice.startswith("shorten what runs beside it") is told

    @pytest.mark.parametrize(("copied", "saved"), [(10, 40), (50, 10)])
    def test_products_end_no_sooner_than_the_copies_that_they_hide(
        self, synth: Synth, copied: int, saved: int
    ) -> None:
        for number in range(2):
            launched(synth, "ampere_sgemm_128x64_tn", number * 30 * MS, (number + 1) * 30 * MS, SMS)
        synth.memcpy(0, copied * MS, stream=8)
        (finding,) = found(synth, "dominant_kernel")
        assert finding.advice.startswith("it uses no tensor cores")
        assert finding.saved_ns == saved * MS

    @pytest.mark.parametrize(
        ("launches", "told"), [(1, "it is one launch"), (2, "fewer or faster")]
    )
    def test_one_launch_cannot_be_made_less_often(
        self, synth: Synth, launches: int, told: str
    ) -> None:
        for number in range(launches):
            launched(synth, "solve", number * 60 * MS, (number + 1) * 60 * MS, SMS)
        (finding,) = found(synth, "dominant_kernel")
        assert finding.advice.startswith(told)

    @pytest.mark.parametrize(
        ("name", "blocks", "threads", "told"),
        [
            ("solve", SMS - 20, 256, True),
            ("solve", 3 * SMS - 20, 256, True),
            ("solve", 5 * SMS - 20, 256, False),
            ("solve", SMS, 256, False),  # sized to the GPU, such as what stays there
            ("solve", SMS - 20, 1024, True),
            ("solve", 2 * SMS - 20, 1024, False),
            (GEMM, SMS - 20, 256, False),
        ],
    )
    def test_blocks_that_leave_half_of_the_room_for_them_are_a_small_grid(
        self, synth: Synth, name: str, blocks: int, threads: int, told: bool
    ) -> None:
        launched(synth, name, 0, 60 * MS, blocks, threads)
        (finding,) = found(synth, "dominant_kernel")
        assert finding.subject.endswith(", a small grid") is told
        assert finding.advice.startswith("its blocks fill") is told

    @pytest.mark.parametrize("graph", [4 * MS, MS])
    def test_a_graph_traced_as_a_whole_with_most_of_the_time_is_named(
        self, synth: Synth, graph: int
    ) -> None:
        for number in range(20):
            synth.graph(number * 10 * MS, number * 10 * MS + graph)
            launched(synth, f"k{number}", number * 10 * MS + graph, number * 10 * MS + 6 * MS, SMS)
        told = [one.title[:21] for one in found(synth, "dominant_kernel")]
        assert told == ["CUDA graph 1 has 66.7"] * (graph == 4 * MS)

    def test_copies_count_as_gpu_time(self, synth: Synth) -> None:
        launched(synth, "heavy", 0, 60 * MS, SMS)
        synth.memcpy(60 * MS, 121 * MS)
        assert found(synth, "dominant_kernel") == []

    def test_of_a_small_grid_only_the_rule_on_grids_tells(self, synth: Synth) -> None:
        launched(synth, "heavy", 0, 60 * MS, 2)
        assert found(synth, "dominant_kernel") == []
        (finding,) = found(synth, "small_grids")
        assert finding.title == "heavy: 2 blocks of 256 threads on 108 SMs, 60.00 ms"

    def test_a_run_of_two_gpus_never_has_more_than_all_of_the_time(self, synth: Synth) -> None:
        synth.gpu(1)
        for device in (0, 1):
            for stream in (7, 8):
                synth.kernel("heavy", 0, 50 * MS, deviceId=device, streamId=stream, gridX=SMS)
        (finding,) = found(synth, "dominant_kernel")
        assert finding.stake_ns == 50 * MS


@pytest.mark.parametrize(
    ("window", "told"), [((0, 999), (30, 29 * 25)), ((150, 330), (6, 6 * 25)), ((325, 331), (1, 4))]
)
def test_a_window_counts_its_own_part_of_a_launch_bound_phase(
    synth: Synth, window: tuple[int, int], told: tuple[int, int]
) -> None:
    us = 1000
    for start in range(30, 930, 30):
        call, gpu = (start - 2) * us, start * us
        synth.launch("k", call=(call, call + us), gpu=(gpu, gpu + 4 * us))
    lo, hi = window
    (finding,) = found(synth, "launch_bound", Scope(window=(lo * us, hi * us)))
    assert finding.title.startswith(f"1 launch-bound phase: {told[0]} short operation")
    assert finding.saved_ns == told[1] * us


@pytest.mark.parametrize(("queued", "step"), [(0, 1000), (10, 1000), (40, 600)])
def test_queued_kernels_would_not_follow_each_other_at_once(
    synth: Synth, queued: int, step: int
) -> None:
    us = 1000
    for number in range(queued):
        begun = 1_000 * us + number * 20_600
        synth.launch("big", (number * us, number * us + 900), (begun, begun + 20 * us))
    for start in range(3_000, 3_900, 30):
        call, gpu = (start - 2) * us, start * us
        synth.launch("k", call=(call, call + us), gpu=(gpu, gpu + 4 * us))
    (finding,) = found(synth, "launch_bound")
    assert "754.0 us idle" in finding.title
    assert finding.saved_ns == 29 * (26 * us - step)


class TestSmallGrids:
    def test_what_could_be_saved_is_the_part_that_stays_empty(self, synth: Synth) -> None:
        launched(synth, "tiny", 0, 54 * MS, 1)
        launched(synth, "wide", 60 * MS, 70 * MS, SMS)
        (finding,) = found(synth, "small_grids")
        assert finding.saved_ns == pytest.approx(54 * MS * (1 - 1 / SMS), abs=1)
        assert finding.title == "tiny: 1 block of 256 threads on 108 SMs, 54.00 ms"

    def test_the_kernel_that_leaves_sms_empty_is_named_and_others_with_it(
        self, synth: Synth
    ) -> None:
        for name, start, stream, blocks in (
            ("beside", 0, 7, 8),
            ("wide", 0, 8, 100),
            ("alone", 60, 8, 27),
            ("too", 120, 8, 54),
        ):
            gpu = (start * MS, (start + 50) * MS)
            synth.kernel(name, *gpu, streamId=stream, gridX=blocks, blockX=256)
        (finding,) = found(synth, "small_grids")
        assert finding.title == (
            "alone: 27 blocks of 256 threads on 108 SMs, 50.00 ms; 1 other kernel: 50.00 ms"
        )
        assert finding.subject == "small grids of alone and others"
        assert finding.saved_ns == pytest.approx(50 * MS * (3 / 4 + 1 / 2), abs=1)

    @pytest.mark.parametrize("last", [False, True])
    def test_what_runs_beside_a_longer_stream_sets_no_length(
        self, synth: Synth, last: bool
    ) -> None:
        for step in range(20):
            begun = 50 * step * MS
            synth.kernel("train", begun, begun + 49 * MS, stream=7, grid=(60, 1, 1))
            until = begun + (59 if last and step == 19 else 40) * MS
            synth.kernel("read", begun + MS, until, stream=8, grid=(8, 1, 1))
        assert bool(found(synth, "small_grids")) is last

    def test_a_window_cuts_the_time_of_a_kernel(self, synth: Synth) -> None:
        launched(synth, "tiny", 0, 54 * MS, 1)
        (finding,) = found(synth, "small_grids", Scope(window=(50 * MS, 60 * MS)))
        assert finding.title == "tiny: 1 block of 256 threads on 108 SMs, 4.000 ms"

    def test_others_that_fill_most_of_the_gpu_are_told_of(self, synth: Synth) -> None:
        for stream in range(3):
            synth.kernel("part", 0, 50 * MS, stream=stream, grid=(30, 1, 1))
        (finding,) = found(synth, "small_grids")
        assert finding.title == (
            "part: 30 blocks of 128 threads on 108 SMs, 150.0 ms beside other work"
        )
        assert finding.saved_ns == pytest.approx(50 * MS * 18 / SMS, abs=1)

    @pytest.mark.parametrize("streams", [1, 4])
    def test_a_few_empty_sms_are_none(self, synth: Synth, streams: int) -> None:
        for stream in range(streams):
            synth.kernel("part", 0, 50 * MS, stream=stream, grid=(104 // streams, 1, 1))
        assert found(synth, "small_grids") == []

    def test_as_many_blocks_as_sms_are_enough(self, synth: Synth) -> None:
        launched(synth, "wide", 0, 54 * MS, SMS)
        assert found(synth, "small_grids") == []

    @pytest.mark.parametrize(
        ("blocks", "threads", "filled", "advice"),
        [
            (SMS, 8, 1 / 16, "give each block at least the 32 threads"),
            (8 * SMS, 8, 1 / 4, "give each block at least the 32 threads"),
            (1, 1, 1 / 128 / SMS, "lanes are empty; use more blocks"),
            (2 * SMS, 32, 1 / 2, "use more blocks"),
            (3 * SMS, 32, 1, ""),
            (SMS, 128, 1, ""),
        ],
    )
    def test_blocks_of_few_threads_leave_lanes_and_schedulers_empty(
        self, synth: Synth, blocks: int, threads: int, filled: float, advice: str
    ) -> None:
        launched(synth, "thin", 0, 10 * MS, blocks, threads=threads)
        told = found(synth, "small_grids")
        assert [advice in one.advice for one in told] == [True] * (filled < 1)
        for one in told:
            assert one.saved_ns == pytest.approx(10 * MS * (1 - filled), abs=1)

    def test_a_library_chooses_its_grids_itself(self, synth: Synth) -> None:
        launched(synth, "ampere_sgemm_128x64_tn", 0, 54 * MS, 27)
        (finding,) = found(synth, "small_grids")
        assert finding.advice.startswith("run others beside it, or give it larger matrices")

    def test_kernels_beside_each_other_fill_the_gpu_together(self, synth: Synth) -> None:
        for stream in range(SMS):
            synth.kernel("tiny", 0, 10 * MS, streamId=stream + 1, gridX=1, blockX=256)
        assert found(synth, "small_grids") == []

    @pytest.mark.parametrize(("streams", "beside"), [(1, False), (4, True)])
    def test_small_grids_that_run_side_by_side_are_told_so(
        self, synth: Synth, streams: int, beside: bool
    ) -> None:
        for number in range(8):
            start = number // streams * 10 * MS
            stream = number % streams + 1
            synth.kernel("tiny", start, start + 10 * MS, streamId=stream, gridX=1, blockX=256)
        (finding,) = found(synth, "small_grids")
        assert ("side by side already" in finding.advice) is beside

    def test_a_kernel_of_another_kind_beside_it_leaves_nothing_empty(self, synth: Synth) -> None:
        launched(synth, "tiny", 0, 10 * MS, 1)
        synth.kernel("ncclDevKernel_AllReduce", 0, 10 * MS, streamId=9, gridX=4)
        assert found(synth, "small_grids") == []

    def test_short_kernels_are_as_short_as_they_get(self, synth: Synth) -> None:
        for number in range(100):
            launched(synth, "tiny", number * 20_000, number * 20_000 + 19_000, 1)
        assert found(synth, "small_grids") == []

    def test_without_the_number_of_sms_nothing_is_said(self, tmp_path: Path) -> None:
        bare = Synth(tmp_path / "bare.sqlite").process(10, "train")
        launched(bare, "tiny", 0, 54 * MS, 1)
        assert found(bare, "small_grids") == []


def rounds(synth: Synth, computes: int) -> None:
    """Five uploads from pageable memory, a kernel before each: so many pay for pinning it."""
    for at in range(0, 5 * (computes + 15 * MS), computes + 15 * MS):
        launched(synth, "k", at, at + computes, SMS)
        synth.memcpy(at + computes, at + computes + 15 * MS, bytes=3 * 10**8, src="pageable")


class TestExposedCopies:
    def test_volume_rate_and_what_to_do(self, synth: Synth) -> None:
        rounds(synth, 10 * MS)
        (finding,) = found(synth, "exposed_copies")
        pinned = 15 * 10**8 // 26
        saved = 50 * MS + 75 * MS - pinned
        assert finding.saved_ns == pytest.approx(saved, abs=1), "hidden, and at the bus's rate"
        assert finding.stake_ns == 75 * MS
        assert finding.title == (
            "GPU 0: 75.00 ms of copies exposed; most Host-to-Device: 1.50 GB at 20.0 GB/s"
        )
        assert "pin the host memory" in finding.advice

    def test_what_kernels_cannot_hide_is_no_more_than_they_take(self, synth: Synth) -> None:
        rounds(synth, 10 * MS // 3)
        (finding,) = found(synth, "exposed_copies")
        assert finding.saved_ns == pytest.approx(
            75 * MS + 5 * (10 * MS // 3) - 15 * 10**8 // 26, abs=3
        )
        assert finding.stake_ns == 75 * MS
        assert finding.advice.startswith("pin the host memory, and copy less")

    def test_copies_in_a_row_are_of_arrays_that_are_copied_once(self, synth: Synth) -> None:
        launched(synth, "k", 0, 30 * MS, SMS)
        for at in (30, 45, 60):
            synth.memcpy(at * MS, (at + 15) * MS, bytes=3 * 10**8, kind="DtoH", dst="pageable")
        for at in range(MS, 20 * MS, MS):
            synth.memcpy(at, at + 1000, bytes=8, kind="DtoH", dst="pageable")
        (finding,) = found(synth, "exposed_copies")
        assert finding.saved_ns == 0
        assert finding.advice.startswith("pin the host memory if it is copied again")

    @pytest.mark.parametrize("streams", [8, 1])
    def test_pieces_hide_all_but_the_first_and_the_last(self, synth: Synth, streams: int) -> None:
        for part in range(8):
            at, stream = part * 10 * MS, 13 + part % streams
            synth.memcpy(at, at + 10 * MS, bytes=10**8, src="pinned", stream=stream)
            synth.kernel("k", at + 10 * MS, at + 20 * MS, stream=stream, grid=(SMS, 1, 1))
        (finding,) = found(synth, "exposed_copies")
        assert "in smaller pieces" in finding.advice

    @pytest.mark.parametrize("others", [0, 20])
    def test_pinning_for_one_copy_saves_nothing(self, synth: Synth, others: int) -> None:
        launched(synth, "k", 0, 40 * MS, SMS)
        synth.memcpy(40 * MS, 60 * MS, bytes=4 * 10**8, src="pageable")
        for at in range(60, 60 + others):
            synth.memcpy(at * MS, (at + 1) * MS, kind="DtoH", bytes=2 * 10**7, dst="pinned")
        (finding,) = found(synth, "exposed_copies")
        assert finding.saved_ns == others * MS, "what the pinned ones can still be hidden"
        assert finding.stake_ns == (20 + others) * MS

    def test_one_slow_copy_saves_what_pinning_leaves(self, synth: Synth) -> None:
        launched(synth, "k", 0, 90 * MS, SMS)
        synth.memcpy(90 * MS, 170 * MS, bytes=13 * 10**7, src="pageable")
        (finding,) = found(synth, "exposed_copies")
        assert finding.saved_ns == 70 * MS, "130 MB are pinned in 20 ms, and touched in 10 of them"

    def test_pinned_memory_needs_no_pinning(self, synth: Synth) -> None:
        synth.memcpy(0, 50 * MS, bytes=10**9, src="pinned")
        (finding,) = found(synth, "exposed_copies")
        assert "pin the" not in finding.advice

    def test_many_small_ones_are_to_be_gathered(self, synth: Synth) -> None:
        for number in range(100):
            synth.memcpy(number * MS, number * MS + 5_000, kind="DtoH", bytes=4)
        (finding,) = found(synth, "exposed_copies")
        assert finding.advice.startswith("gather small copies")
        synth.memcpy(200 * MS, 230 * MS, kind="DtoH", bytes=10**6, src="pinned")
        (finding,) = found(synth, "exposed_copies")
        assert "small" not in finding.advice, "most of the time is in one large copy"

    def test_copies_behind_kernels_cost_nothing(self, synth: Synth) -> None:
        launched(synth, "k", 0, 60 * MS, SMS)
        synth.memcpy(10 * MS, 60 * MS, bytes=10**9)
        assert found(synth, "exposed_copies") == []


def test_a_copy_that_waits_for_a_kernel_gives_back_what_the_gpu_idles(synth: Synth) -> None:
    synth.launch("k", call=(0, 1000), gpu=(1000, 20 * MS))
    synth.api("cudaMemcpy_v3020", 2000, 22 * MS, corr=99)
    synth.memcpy(20 * MS + 200_000, 21 * MS, corr=99, bytes=10**7, src="pageable")
    launched(synth, "next", 23 * MS, 24 * MS, SMS)
    (finding,) = found(synth, "cuda_memcpy_sync")
    assert finding.saved_ns == 200_000 + MS, "before and behind the copy, until the call ends"
    assert "host held up 22.00 ms, GPU idle 1.200 ms of it" in finding.title


FIRST = {
    "cloverleaf-a100-2024.5": ("exposed_copies", "copies exposed, 10.47 ms idle around"),
    "cuda-graph-2025.5": ("warm_up", "at first use of code"),
    "many-kernels-2025.5": ("small_copies", "3,829 small copies, most 4 B Device-to-Host"),
    "mpi-nvtx-callchains-2022.2": (
        "gpu_idle",
        "546.5 ms in 5 gaps after cudaMemcpy, host compute: main",
    ),
    "no-metadata-old": (
        "gpu_idle",
        "GPU 0 idle 4.643 ms in 2 gaps after cudaEventSynchronize, host compute; 977.8 us I/O",
    ),
    "nsys-stats-2023.3": ("small_grids", "nussinov_gpu: 10 blocks of 512 threads on 28 SMs"),
    "pytorch-nccl-2gpu-2026.2": (
        "movement_kernels",
        "elementwise and copy kernels: 84.50 ms on GPU 1, 31.6% of its GPU time",
    ),
    "uvm-migration-2025.1": ("gpu_idle", "host compute: main"),
    "windows-streams-2022.1": ("frequent_allocation", "allocations and frees between GPU"),
}
"""The first finding of real reports, read against their raw tables."""


@needs_reports
@pytest.mark.parametrize("name", FIRST)
def test_the_first_finding_of_a_real_report(name: str) -> None:
    report = open_report(REPORTS / f"{name}.sqlite", use_cache=False)
    first = find(report)[0]
    assert first.rule == FIRST[name][0]
    assert FIRST[name][1] in first.title


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_a_finding_is_one_line_and_saves_no_more_than_there_is(path: Path) -> None:
    report = open_report(path, use_cache=False)
    lo, hi = report.span or (0, 1)
    for one in find(report):
        assert len(one.title) <= 100, one.title
        assert one.doubt, one.rule
        assert one.settle, one.rule
        assert 0 <= one.saved_ns <= hi - lo, one.title


@pytest.mark.parametrize(("names", "said"), [(4, ", 20.00 ms; 3 more"), (1, ", 80.00 ms")])
def test_a_last_wave_says_of_how_many_kernels_its_price_is(
    names: int, said: str, synth: Synth
) -> None:
    for number in range(40):
        name = f"k{number % names}"
        synth.kernel(name, number * 2 * MS, (number + 1) * 2 * MS, **ONE_AN_SM, grid=(109, 1, 1))  # type: ignore[arg-type]
    (one,) = found(synth, "last_waves")
    assert one.title.endswith(said)


@pytest.mark.parametrize(
    ("calls", "copied", "on_host"),
    [
        (["cudaHostAlloc", "cudaFree"], False, True),
        (["cudaMallocHost"], False, True),
        (["cudaHostAlloc"], True, False),
        (["cudaHostAlloc", "cudaMalloc"], False, False),
        (["cudaHostAlloc", "cudaMallocManaged"], False, False),
        ([], False, False),
    ],
)
def test_what_reads_memory_of_the_host_waits_for_the_bus_not_for_a_last_wave(
    calls: list[str], copied: bool, on_host: bool, synth: Synth
) -> None:
    for number, call in enumerate(calls):
        synth.api(f"{call}_v3020", number, number + 1)
    for number in range(40):
        synth.kernel("k", number * 2 * MS, (number + 1) * 2 * MS, **ONE_AN_SM, grid=(109, 1, 1))  # type: ignore[arg-type]
    if copied:
        synth.memcpy(80 * MS, 81 * MS)
    assert (not found(synth, "last_waves")) is on_host
    (one,) = found(synth, "dominant_kernel")
    assert one.advice.startswith("only memory of the host") is on_host


def test_blocks_that_share_an_sm_are_quicker_in_the_last_wave(synth: Synth) -> None:
    """256 on 108 SMs, two at a time: three times as long as one block, where 2.37 would do."""
    two_an_sm = {**ONE_AN_SM, "dynamicSharedMemory": 70 * 1024, "grid": (256, 1, 1)}
    for number in range(10):
        synth.kernel("k", number * 3 * MS, (number + 1) * 3 * MS, **two_an_sm)  # type: ignore[arg-type]
    (one,) = found(synth, "last_waves")
    assert "k: 256 blocks, ≈216 at a time: 40 in the last of 2 waves" in one.title
    assert one.saved_ns == int(30 * MS * (1 - 256 / 108 / 3))


@pytest.mark.parametrize(
    ("name", "blocks", "told"),
    [("k", 256, True), ("k", 216 + 110, False), ("ampere_sgemm_128x64_tn", 256, False)],
)
def test_a_last_wave_that_reaches_every_sm_or_that_a_library_makes_is_none(
    name: str, blocks: int, told: bool, synth: Synth
) -> None:
    two_an_sm = {**ONE_AN_SM, "dynamicSharedMemory": 70 * 1024, "grid": (blocks, 1, 1)}
    for number in range(10):
        synth.kernel(name, number * 3 * MS, (number + 1) * 3 * MS, **two_an_sm)  # type: ignore[arg-type]
    assert bool(found(synth, "last_waves")) is told
