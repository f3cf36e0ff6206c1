from __future__ import annotations

import csv
import io
import json
import statistics
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports
from synth import Synth

from nsys_tui.analysis.iterations.flops import TENSOR, peak_of
from nsys_tui.cli import main
from nsys_tui.errors import NoDataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Steps of 100, 100, 130, 100, 100 ns: forward 40, backward 30 to 60, and a gap of 10."""
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    start = 0
    for number, width in enumerate((100, 100, 130, 100, 100)):
        synth.nvtx(f"Train step {number}", start, start + width - 10)
        synth.nvtx("forward", start + 5, start + 45)
        synth.nvtx("backward", start + 45, start + width - 25)
        synth.launch("k", call=(start + 6, start + 8), gpu=(start + 10, start + 60))
        start += width
    return synth.write()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["iterations", *arguments, "--no-cache"]) == 0
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return dict(json.loads(run(capsys, *arguments, "--format", "json")))


def test_statistics_leave_the_warm_up_out(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(training))
    assert (found["rule"], found["name"], found["count"]) == ("by NVTX name", "Train step #", 5)
    # The last one ends with its own range.
    assert [entry["time_ns"] for entry in found["iterations"]] == [100, 100, 130, 100, 90]
    steady = [100, 130, 100, 90]
    assert found["steady"]["mean_ns"] == statistics.mean(steady)
    assert found["steady"]["median_ns"] == statistics.median(steady)
    assert found["steady"]["stddev_ns"] == pytest.approx(statistics.stdev(steady))
    assert (found["steady"]["min_ns"], found["steady"]["max_ns"]) == (90, 130)
    assert [entry["warm_up"] for entry in found["iterations"]] == [True, *[False] * 4]


def test_phases_and_what_no_range_covers(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(training))
    assert [phase["name"] for phase in found["phases"]] == [
        "forward", "backward", "[not annotated]",
    ]  # fmt: skip
    assert [phase["mean_ns"] for phase in found["phases"]] == [40, (30 + 60 + 30 + 30) / 4, 27.5]
    assert found["iterations"][2]["phases_ns"] == {
        "forward": 40, "backward": 60, "[not annotated]": 30,
    }  # fmt: skip


def test_outliers_and_busy_shares_are_told(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(training))
    assert [entry["outlier"] for entry in found["iterations"]] == [False, False, True, False, False]
    assert {entry["gpu_busy_ns"] for entry in found["iterations"]} == {50}
    text = run(capsys, str(training))
    line = next(line for line in text.splitlines() if "Train step 2" in line)
    assert "130.0%" in line, "of the median of 100 ns"
    assert "38.5%" in line, "50 of 130 ns busy"
    assert "outlier" in line
    assert "warm-up" in next(line for line in text.splitlines() if "Train step 0" in line)


def test_csv_has_every_phase_and_every_iteration(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(csv.DictReader(io.StringIO(run(capsys, str(training), "--format", "csv"))))
    assert len(rows) == 5
    assert rows[2]["backward (ns)"] == "60"
    assert rows[2]["[not annotated] (ns)"] == "30"


def test_limit_says_how_many_are_left_out(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = run(capsys, str(training), "--limit", "2")
    assert "Train step 1" in text
    assert "Train step 2" not in text
    assert "3 more iterations (--limit 0)" in text


def test_markdown_has_both_tables(training: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, str(training), "--format", "markdown")
    assert text.startswith("## 5 iterations: Train step # (by NVTX name)")
    assert "## Each iteration" in text


def test_a_regular_expression_chooses_other_ranges(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(training), "--iteration", "^backward$")
    assert (found["rule"], found["count"]) == ("by the pattern asked for", 5)
    assert found["iterations"][0]["time_ns"] == 100


def test_what_was_never_closed_stays_out_of_the_statistics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1000).kernel("k", 0, 5_000)
    for number in range(4):
        synth.nvtx(f"step {number}", number * 100, None if number == 3 else number * 100 + 90)
    path = str(synth.write())
    found = as_json(capsys, path)
    assert [entry["closed"] for entry in found["iterations"]] == [True, True, True, False]
    assert found["steady"]["max_ns"] == 100
    assert "1 never closed: in no statistics" in run(capsys, path)


def test_of_steps_without_a_gpu_it_is_not_told_how_long_one_was_busy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    for number in range(4):
        synth.nvtx(f"step {number}", number * 100, number * 100 + 90)
    (step, *_) = as_json(capsys, str(synth.write()))["iterations"]
    assert (step["gpu_busy_ns"], step["gpu_busy_share"], step["parts_ns"]) == (None, None, None)
    assert step["time_ns"] == 100


def test_fleet_and_iterations_give_a_rank_the_same_statistics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    for number, time in enumerate((500, 100, 110, 140, 70)):
        at = 1000 * number
        synth.launch("k", (at + 5, at + 8), (at + 10, at + 10 + time // 10))
        synth.nvtx(f"step {number}", at, None if number == 4 else at + time)
    path = str(synth.write())
    assert (
        main(["fleet", path, "--section", "step-ranks", "--section", "steps", "--format", "json"])
        == 0
    )
    sections = json.loads(capsys.readouterr().out)["sections"]
    (row,) = sections["step_ranks"]["rows"]
    own = as_json(capsys, path)["steady"]
    assert row["steps"] == 3
    assert [row[f"{name}_ns"] for name in ("mean", "median", "stddev", "max")] == [
        own[f"{name}_ns"] for name in ("mean", "median", "stddev", "max")
    ]
    assert row["median_compute_ns"] == 11
    assert "end unknown, so in no statistics: step 4" in sections["steps"]["notes"]


def test_no_iterations_are_an_error_with_the_next_step(
    tmp_path: Path, training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lonely = Synth(tmp_path / "one.sqlite").process(1).kernel("k", 0, 10).write()
    assert main(["iterations", str(lonely), "--no-cache"]) == NoDataError.exit_code
    assert "--trace=nvtx" in capsys.readouterr().err
    assert (
        main(["iterations", str(training), "--iteration", "xyz", "--no-cache"])
        == NoDataError.exit_code
    )
    assert "'xyz'" in capsys.readouterr().err
    assert (
        main(["iterations", str(training), "--iteration", "(", "--no-cache"])
        == UsageError.exit_code
    )


@needs_reports
def test_a_pattern_of_kernels_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, str(REPORTS / "cloverleaf-a100-2024.5.sqlite"))
    assert "iterations: 250 kernels (by pattern)" in text
    assert "a repeat may be several steps" in text  # sweeps along x and y take turns


def test_steps_of_the_demo_have_their_true_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_report(tmp_path / "d.sqlite", truth_path=tmp_path / "t.json")
    assert made.truth is not None
    truth = json.loads(made.truth.read_text())
    found = as_json(capsys, str(made.report))
    rank = next(device["rank"] for device in truth["devices"] if device["pid"] == found["pid"])
    steps = [step for step in truth["step_times"] if step["rank"] == rank]
    closed = [entry for entry in found["iterations"] if entry["closed"]]
    assert [(entry["label"], entry["time_ns"]) for entry in closed] == [
        (step["name"], step["time_ns"]) for step in steps
    ]
    slow = next(p["step"] for p in truth["problems"] if p["kind"] == "slow_step")
    outliers = [entry["label"] for entry in closed if entry["outlier"]]
    assert f"Train step {slow}" in outliers


def test_the_critical_path_of_a_step_adds_up_to_it(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(training), "--critical-path", "slowest")["critical_path"]
    assert (found["label"], found["time_ns"]) == ("Train step 2", 130)
    assert sum(one["time_ns"] for one in found["segments"]) == 130
    assert sum(one["time_ns"] for one in found["work"]) == 130
    # The host goes on without waiting for its kernel, so the kernel is not on the path.
    assert {one["what"] for one in found["segments"]} == {"host", "CUDA call"}
    same = as_json(capsys, str(training), "--critical-path", "Train step 2")["critical_path"]
    assert same == found == as_json(capsys, str(training), "--critical-path", "2")["critical_path"]
    text = run(capsys, str(training), "--critical-path", "2")
    assert "Critical path of Train step 2: 130 ns" in text
    assert main(["iterations", str(training), "--critical-path", "none", "--no-cache"]) == 64
    assert "no step 'none'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kernel", "tensor"),
    [
        ("turing_h1688gemm_128x128_nn", True),
        ("cutlass_80_tensorop_f16_s16816gemm_relu_f16", True),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwc_tilesize128x64", True),
        ("sm86_xmma_fprop_implicit_gemm_f32f32_f32_tilesize128x64x8_g1_ffma_aligna4", False),
        ("cutlass_80_simt_sgemm_128x128_8x4_nn", False),
        ("ampere_sgemm_128x128_tn", False),
    ],
)
def test_tensor_cores_are_told_by_shapes_and_instructions(kernel: str, tensor: bool) -> None:
    assert bool(TENSOR.search(kernel)) is tensor


def test_flops_utilisation_is_of_the_peak_of_the_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0, "NVIDIA A100-SXM4-80GB").process(10)
    synth.cuda_device(10, 0, 0)
    for number in range(4):
        start = number * 1_000_000_000
        synth.nvtx(f"step {number}", start, start + 1_000_000_000)
        synth.kernel("ampere_bf16_s16816gemm_bf16_128x64(int)", start + 10, start + 310)
        synth.kernel("add(int)", start + 400, start + 500)
    path = str(synth.write())
    found = as_json(capsys, path, "--flops", "156e12")["flops"]
    assert found["peak_flops"] == 312e12
    assert found["peak_source"].startswith("NVIDIA A100 data sheet: dense 16-bit")
    assert found["utilisation_share"] == pytest.approx(0.5)
    assert found["tensor_share"] == pytest.approx(300 / 400)
    text = run(capsys, path, "--flops", "156e12")
    assert "model FLOPs utilisation 50.0%: 156.0 TFLOP/s in a usual step of 312" in text
    assert "more than there is" not in text
    assert "more than there is" in run(capsys, path, "--flops", "313e12")
    assert "next to nothing: are these FLOPs" in run(capsys, path, "--flops", "156")
    given = as_json(capsys, path, "--flops", "156e12", "--peak", "624e12")["flops"]
    assert (given["utilisation_share"], given["peak_source"]) == (pytest.approx(0.25), "as given")
    assert "flops" not in as_json(capsys, path)
    assert main(["iterations", path, "--flops", "-1"]) == 64
    assert "not a number above 0: '-1'" in capsys.readouterr().err


@pytest.mark.parametrize(("whole", "share"), [(True, None), (False, 0.0)])
def test_kernels_in_graphs_traced_as_a_whole_have_no_tensor_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], whole: bool, share: float | None
) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(10)
    for start in range(0, 4_000, 1_000):
        synth.nvtx(f"step {start}", start, start + 1_000)
        synth.kernel("add(int)", start + 400, start + 500)
        synth.graph(start + 600, start + 900, corr=start + 1)
        if not whole:
            synth.kernel("mul(int)", start + 600, start + 900, corr=start + 1, graphNodeId=7)
    found = as_json(capsys, str(synth.write()), "--flops", "1e3")["flops"]
    assert found["tensor_share"] == share


def test_flops_utilisation_is_of_the_gpus_steps_where_the_host_runs_ahead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0, "NVIDIA A100-SXM4-80GB").process(10)
    synth.cuda_device(10, 0, 0)
    for number in range(40):
        call, begun = number * 10**6, number * 10**7 + 10
        synth.nvtx(f"step {number}", call, call + 10**6)
        synth.launch("gemm(int)", (call, call + 5), (begun, begun + 10**7))
    found = as_json(capsys, str(synth.write()), "--flops", "2e12")["flops"]
    assert found["utilisation_share"] == pytest.approx(200 / 312, rel=0.01)


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM-64GB", None),
        ("NVIDIA A40-48Q", None),
        ("Tesla V100-PCIE-16GB", 112.0),
        ("Tesla V100-SXM2-16GB", 125.0),
        ("Tesla T4", 65.0),
        # Names that only begin alike, and a GPU that no row is about.
        ("NVIDIA T400 4GB", None),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_a_peak_is_known_by_the_whole_name(name: str, peak: float | None) -> None:
    found, source = peak_of(name)
    assert found == (peak and peak * 1e12)
    assert bool(source) is (found is not None)
