from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import plain_sql
import pytest
from paths import REPORTS, goldens, needs_reports, report_paths
from synth import Synth

from nsys_tui.analysis.breakdown import coverages, device_splits, ten_figures
from nsys_tui.analysis.overview import (
    missing,
    other_work,
    overview,
    top_kernels,
    top_ranges,
)
from nsys_tui.analysis.pieces import iteration_pieces, range_pieces
from nsys_tui.analysis.window import Scope
from nsys_tui.cli import main
from nsys_tui.names import NameStyle
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path


@needs_reports
@pytest.mark.parametrize(
    "path",
    [path for path in report_paths() if path.name in goldens()["reports"]],
    ids=lambda path: path.stem,
)
def test_the_ten_figures_are_those_of_the_goldens(path: Path) -> None:
    expected = goldens()["reports"][path.name]
    report = open_report(path)
    figures = ten_figures(report)
    assert figures.pop("exposed_communication_ns") == expected["exposed_communication_ns"]
    assert figures == expected["ten_figures_ns"]
    for place, device in enumerate(report.devices):
        alone = expected.get("per_device_ten_figures_ns", {}).get(str(device.id))
        if alone:
            assert ten_figures(report, Scope(devices=frozenset((place,)))) == alone


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_devices_agree_with_plain_sql(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overview", str(path), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    devices = {d["id"]: {k: d[k] for k in ("busy_ns", "kernel_count")} for d in shown["devices"]}
    assert devices == plain_sql.devices(path)
    for device in shown["devices"]:
        assert device["members"]
        assert device["busy_ns"] + device["idle_ns"] == device["base_ns"]


@needs_reports
def test_a_graph_launch_is_gpu_work() -> None:
    (split,) = device_splits(open_report(REPORTS / "cuda-graph-2025.5.sqlite"))
    assert (split.busy_ns, split.sum_ns, split.graph_ns) == (7808, 7808, 3104)
    assert split.exposed_is_upper_bound


def test_overlaps_and_exposed_time_by_category(tmp_path: Path) -> None:
    path = (
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .kernel("gemm", 0, 100, stream=7)
        .kernel("ncclDevKernel_AllReduce", 60, 160, stream=8)
        .memcpy(90, 200, stream=9)
        .memcpy(300, 310, kind="UVM HtoD", stream=0, corr=0)
        .memset(320, 320)
        .write()
    )
    (split,) = device_splits(open_report(path))
    figures = {
        "busy_ns": 210,
        "idle_ns": 110,
        "compute_ns": 100,
        "comm_ns": 100,
        "memory_ns": 120,
        "uvm_ns": 10,
        "exposed_comm_ns": 60,
        "exposed_memory_ns": 50,
        "compute_comm_overlap_ns": 40,
        "compute_memory_overlap_ns": 10,
        "comm_memory_overlap_ns": 70,
        "sum_ns": 320,
        "operation_count": 5,
        "max_gap": (200, 300),
    }
    assert {name: getattr(split, name) for name in figures} == figures


def test_the_longest_gap_of_a_window_is_cut_to_it(tmp_path: Path) -> None:
    report = open_report(
        Synth(tmp_path / "r.sqlite").process(1).kernel("a", 0, 10).kernel("b", 110, 120).write()
    )
    assert device_splits(report)[0].max_gap == (10, 110)
    assert device_splits(report, Scope(window=(40, 60)))[0].max_gap == (40, 60)
    assert device_splits(report, Scope(window=(100, 400)))[0].max_gap == (100, 110)
    assert device_splits(report, Scope(window=(200, 400)))[0].max_gap is None


def test_many_windows_at_once_agree_with_one_at_a_time(tmp_path: Path) -> None:
    import numpy as np

    path = (
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .kernel("gemm", 0, 100)
        .kernel("nccl_x", 60, 160, stream=8)
        .memcpy(90, 200, stream=9)
        .write()
    )
    report = open_report(path)
    (coverage,) = coverages(report)
    windows = [(0, 50), (40, 95), (95, 300), (-10, 0)]
    starts, ends = np.array(windows).T
    figures = coverage.within(starts, ends)
    for place, window in enumerate(windows):
        (split,) = device_splits(report, Scope(window=window))
        for name, values in figures.items():
            assert values[place] == getattr(split, f"{name}_ns"), (window, name)


def test_two_processes_with_the_same_ordinal_may_be_two_gpus(tmp_path: Path) -> None:
    path = (
        Synth(tmp_path / "r.sqlite")
        .gpu(0)
        .gpu(1)
        .process(100, "a")
        .cuda_device(100, 0, 0)
        .kernel("k", 0, 10, corr=1)
        .process(200, "b")
        .cuda_device(200, 0, 1)
        .kernel("k", 5, 25, corr=1)
        .write()
    )
    splits = device_splits(open_report(path))
    assert [(s.device.gpu_id, s.busy_ns) for s in splits] == [(0, 10), (1, 20)]
    assert [s.idle_ns for s in splits] == [15, 5]


def test_kernels_are_grouped_by_the_name_that_is_shown(tmp_path: Path) -> None:
    report = open_report(
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .kernel("void k<int>(int*)", 0, 10)
        .kernel("void k<float>(float*)", 20, 50)
        .write()
    )
    assert [(k.name, k.total_ns, k.count) for k in top_kernels(report)] == [("k", 40, 2)]
    full = top_kernels(report, style=NameStyle.FULL)
    assert [(k.name, k.share) for k in full] == [
        ("void k<float>(float*)", 0.75),
        ("void k<int>(int*)", 0.25),
    ]


def test_open_ranges_are_counted_beside(tmp_path: Path) -> None:
    report = open_report(
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .nvtx("step 1", 0, 10)
        .nvtx("step 2", 10, 30)
        .nvtx("step 3", 30)
        .kernel("k", 0, 90)
        .write()
    )
    assert [(r.name, r.total_ns, r.count) for r in top_ranges(report)] == [("step #", 30, 2)]
    assert overview(report).open_range_count == 1


def test_missing_data_says_what_would_record_it(tmp_path: Path) -> None:
    report = open_report(Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 9).write())
    reasons = {entry.kind: entry.reason for entry in missing(report)}
    assert "--trace=nvtx" in reasons["NVTX ranges"]
    assert "memory sets" not in reasons
    assert "CUDA API calls" in reasons


def test_an_empty_report_is_calm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Synth(tmp_path / "r.sqlite").gpu().write()
    for fmt in ("table", "csv", "markdown"):
        assert main(["overview", str(path), "--format", fmt]) == 0
        assert "Traceback" not in capsys.readouterr().out
    assert main(["overview", str(path), "--format", "json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert shown["devices"] == []
    assert shown["headline"]["busy_share"] is None
    assert any("no GPU work" in note for note in shown["notes"])


def test_what_no_gpu_tells_is_null_and_not_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report without GPU work, and one whose GPU worked outside the window."""
    silent = Synth(tmp_path / "host.sqlite").session(1000).nvtx("step", 0, 900).write()
    worked = Synth(tmp_path / "gpu.sqlite").session(1000).kernel("k", 0, 10).write()
    told: dict[str, Any] = {}
    for name, words in (("silent", [silent]), ("worked", [worked, "--window", "500ns/900ns"])):
        assert main(["overview", *map(str, words), "--format", "json"]) == 0
        told[name] = json.loads(capsys.readouterr().out)
    known = {"session_ns": 1000}
    for part in ("headline", "breakdown"):
        assert {key: ns for key, ns in told["silent"][part].items() if ns is not None} == known
        assert set(told["silent"][part]) == set(told["worked"][part])
    assert told["silent"]["base_ns"] is None
    assert told["worked"]["headline"]["kernel_count"] == 0
    assert told["worked"]["breakdown"]["gpu_active_ns"] == 0
    assert told["worked"]["base_ns"] == [500, 900]
    assert main(["stalls", str(silent), "--format", "json"]) == 66
    assert json.loads(capsys.readouterr().out)["idle_ns"] is None


def test_times_beyond_belief_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(1000).nvtx("r", 2**62, 2**62 + 5)
    synth.kernel("k", 2**62, 2**62 + 10).kernel("k", 2**62, 2**63 - 1)
    assert main(["overview", str(synth.write())]) == 0
    out = capsys.readouterr().out
    far = "with a time more than 36 years from the session's start"
    assert f"2 rows {far} in `start` of CUPTI_ACTIVITY_KIND_KERNEL: cut there" in out
    assert f"1 row {far} in `end` of NVTX_EVENTS: cut there" in out
    assert "0.0% of the recorded session" in out


def test_names_with_control_characters_reach_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = (
        Synth(tmp_path / "r.sqlite")
        .process(1)
        .kernel('evil\x1b[31m;"k\n|', 0, 10)
        .diagnostic("bad\x1b]0;x\x07", severity=2)
        .write()
    )
    for fmt in ("table", "markdown"):
        assert main(["overview", str(path), "--format", fmt]) == 0
        assert "\x1b" not in capsys.readouterr().out
    assert main(["overview", str(path), "--format", "json"]) == 0
    json.loads(capsys.readouterr().out)


def test_csv_is_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import csv
    import io

    path = Synth(tmp_path / "r.sqlite").process(1).kernel('a,"b"', 0, 10).write()
    assert main(["overview", str(path), "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["Busy time (ns)"] == "10"
    assert main(["overview", str(path), "--format", "csv", "--section", "kernels"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["Kernel"] == 'a,"b"'


@pytest.fixture
def stepped(tmp_path: Path) -> Path:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for number in range(4):
        start = number * 100
        synth.nvtx(f"step {number}", start, start + 90).kernel("gemm", start + 10, start + 60)
        synth.kernel("ncclX", start + 50, start + 95, stream=9)
    return synth.nvtx("open step", 400).write()


def test_every_iteration_has_its_own_split(stepped: Path) -> None:
    pieces = iteration_pieces(open_report(stepped))
    assert pieces.what == "step # (by NVTX name)"
    assert pieces.lengths.tolist() == [100, 100, 100, 90]
    (figures,) = pieces.figures
    assert figures["busy"].tolist() == [85, 85, 85, 80]
    assert figures["exposed_comm"].tolist() == [35, 35, 35, 30]


def test_every_instance_of_a_range_has_its_own_split(
    stepped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = range_pieces(open_report(stepped), "step 7")
    assert pieces.labels == ("step 0", "step 1", "step 2", "step 3")
    assert pieces.figures[0]["compute"].tolist() == [50] * 4
    assert main(["overview", str(stepped), "--each", "step #", "--format", "json"]) == 0
    (first, *_) = json.loads(capsys.readouterr().out)["each"]["rows"]
    assert (first["label"], first["devices"][0]["idle_ns"]) == ("step 0", 10)
    assert main(["overview", str(stepped), "--each", "iteration"]) == 0
    assert "Each step # (by NVTX name)" in capsys.readouterr().out
    assert main(["overview", str(stepped), "--each", "nothing"]) == 64


def test_no_iterations_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 9).write()
    assert main(["overview", str(path), "--each", "iteration"]) == 66
    assert "no iterations found" in capsys.readouterr().err


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_top_kernels_agree_with_plain_sql(path: Path) -> None:
    """Total, count and mean by demangled name."""
    expected = plain_sql.kernels(path)
    found = {
        entry.name: (entry.total_ns, entry.count, entry.mean_ns)
        for entry in top_kernels(open_report(path), style=NameStyle.FULL)
    }
    assert found == expected


def test_gpu_memory_is_shown_where_it_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 9)
    assert main(["overview", str(synth.write()), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["gpu_memory"] == []
    synth.memory_usage(3, 4_000_000).memory_usage(5, 4_000_000, free=True)
    assert main(["overview", str(synth.write()), "--format", "json"]) == 0
    (memory,) = json.loads(capsys.readouterr().out)["gpu_memory"]
    assert (memory["peak_bytes"], memory["never_freed"]) == (4_000_000, 0)
    assert main(["overview", str(synth.write())]) == 0
    assert "4.00 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("events", "busy", "kernels"),
    [
        (lambda s: s.kernel("k", 5, 9), 4, 1),
        (lambda s: s.kernel("k", 5, 5), 0, 1),
        (lambda s: s.memcpy(0, 10).memcpy(20, 30, kind="DtoH"), 20, 0),
        (lambda s: s.kernel("k", -50, -20).kernel("k", 0, 10), 40, 2),
    ],
    ids=["one kernel", "no length", "copies only", "before the session"],
)
def test_small_reports_in_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], events: Any, busy: int, kernels: int
) -> None:
    path = str(events(Synth(tmp_path / "r.sqlite").process(1)).write())
    for verb in ("overview", "stalls", "analyze"):
        for fmt in ("table", "csv", "markdown"):
            assert main([verb, path, "--format", fmt]) == 0
    capsys.readouterr()
    assert main(["overview", path, "--format", "json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert (device["busy_ns"], device["kernel_count"]) == (busy, kernels)


def test_shares_are_of_all_gpu_work_and_the_rest_is_named(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 30)
    report = open_report(synth.memcpy(30, 100, kind="HtoD").write())
    (kernel,) = top_kernels(report)
    (copy,) = other_work(report)
    assert (kernel.share, copy.total_ns, copy.share) == (0.3, 70, 0.7)
    (part,) = top_kernels(report, Scope(window=(20, 40)))
    assert part.share == 0.5


def test_without_gpu_work_mpi_calls_are_listed(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").process(5).mpi_rank(3)
    capture.mpi("MPI_Barrier", 0, 10).mpi("MPI_Barrier", 20, 26)
    capture.mpi("MPI_Send", 30, 34, "p2p", size=8, tag=4, remoteRank=1)
    capture.osrt("poll", 1, 9)
    report = open_report(capture.write())
    found = overview(report)
    assert [(call.name, call.total_ns, call.count) for call in found.mpi] == [
        ("MPI_Barrier", 16, 2), ("MPI_Send", 4, 1),
    ]  # fmt: skip
    assert found.called == "MPI"
    (windowed,) = overview(report, Scope(window=(5, 22))).mpi
    assert (windowed.name, windowed.total_ns) == ("MPI_Barrier", 5 + 2)


def test_the_utilisation_has_the_form_of_all_shares_and_says_of_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).kernel("work", 0, 6_138)
    path = synth.session(10_000).write()
    assert main(["overview", str(path), "--section", "breakdown"]) == 0
    assert "utilisation 61.4% of the session" in capsys.readouterr().out
    part = ["--window", "5000ns/10000ns"]
    assert main(["overview", str(path), "--section", "breakdown", *part]) == 0
    said = capsys.readouterr().out
    assert "utilisation 22.8% of the window" in said
    assert "session" not in said
