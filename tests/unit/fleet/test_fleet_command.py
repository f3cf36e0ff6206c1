from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from paths import REPORTS, needs_reports, report_paths
from unit.fleet.fleet_reports import REDUCED, US, Run

from nsys_tui.cli import main
from nsys_tui.commands.fleet import SECTIONS
from nsys_tui.fleet.files import find_reports
from nsys_tui.fleet.tables import SECTIONS as MAKERS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    Run(ranks=3, steps=4, slow={(2, 1): 150 * US}, begun={1: 200 * US}).write(folder / "node")
    return folder


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["fleet", "--workers", "1", *arguments]) == 0
    return capsys.readouterr().out


def test_help_names_the_sections_there_are() -> None:
    assert set(SECTIONS) == set(MAKERS)


def test_a_folder_is_searched_and_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, str(folder))
    titles = [line for line in out.splitlines() if line and not line.startswith(" ")]
    of = "shares of their spans"
    ranks = [f"Ranks, {of}", f"All 3 GPUs of 3 ranks, {of}"]
    assert titles[:4] == ["Fleet of 3 ranks", "Reports", *ranks]
    assert "Heat map: GPU busy" in titles
    assert "Kernels by name over all ranks, time as a share of all of it" in titles
    assert "12345" not in out, "a token of the environment"


def test_json_holds_exact_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, str(folder), "--format", "json"))
    assert (found["ranks"], found["clock"], found["skipped"]) == (3, "utc", [])
    assert found["verdict"].startswith("rank 2 cost the others ")
    assert found["verdict_rank"] == 2
    sections = found["sections"]
    assert "heat" not in sections
    assert [row["rank"] for row in sections["ranks"]["rows"]] == [0, 1, 2]
    run = Run(ranks=3, steps=4, slow={(2, 1): 150 * US})
    compute = sum(end - start for s in range(4) for start, end in (run.compute(2, s),))
    assert sections["ranks"]["rows"][2]["compute_time_ns"] == compute + 4 * 20 * US
    collective = sections["collectives"]["rows"][0]
    assert (collective["collective"], collective["calls"]) == (REDUCED, 4)
    skews = [max(run.arrivals(s)) - min(run.arrivals(s)) for s in range(4)]
    assert collective["skew_max_ns"] == max(skews)
    assert collective["last_rank"] == 2
    assert "matched by order" in sections["collectives"]["notes"][0]
    steps = sections["steps"]["rows"]
    assert [row["step"] for row in steps] == [f"train step {n}" for n in range(4)]
    kernel = next(r for r in sections["kernels"]["rows"] if r["name"] == "gemm")
    assert (kernel["instances"], kernel["ranks"], kernel["slowest_rank"]) == (12, 3, 2)


def test_csv_prints_one_section(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, str(folder), "--format", "csv", "--section", "calls")
    rows = list(csv.DictReader(io.StringIO(out)))
    run = Run(ranks=3, steps=4, slow={(2, 1): 150 * US})
    assert [int(row["Skew (ns)"]) for row in rows] == [
        max(run.arrivals(s)) - min(run.arrivals(s)) for s in range(4)
    ]
    heat = printed(capsys, str(folder), "--format", "csv", "--section", "heat", "--bins", "32")
    bins = list(csv.DictReader(io.StringIO(heat)))
    assert len(bins) % 3 == 0
    assert 16 <= len(bins) // 3 <= 32


def test_statistics_by_rank_and_other_families_come_on_demand(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(
        capsys, str(folder), "--format", "json", "--section", "api", "--by", "rank",
    )  # fmt: skip
    rows = json.loads(out)["sections"]["api"]["rows"]
    assert [(row["rank"], row["name"], row["instances"]) for row in rows] == [
        (rank, "cudaLaunchKernel", 12) for rank in range(3)
    ]


def test_pace_is_printed_where_it_was_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, str(folder), "--pace", "gemm", "--section", "pace-ranks")
    assert "Pace of gemm by rank" in out
    assert "Drift per instance" in out


def test_a_folder_gets_one_file_per_section(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"{tmp_path / 'figures'}/"
    printed(capsys, str(folder), "--format", "csv", "-o", target)
    written = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"ranks.csv", "steps.csv", "collectives.csv", "heat.csv", "kernels.csv"} <= written
    assert main(["fleet", str(folder), "--format", "csv", "-o", target]) == 64
    assert "exists already" in capsys.readouterr().err


def test_parquet_holds_the_same_figures(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: nsys-terminal[parquet]")
    path = tmp_path / "stragglers.parquet"
    asked = ("--section", "stragglers")
    printed(capsys, str(folder), "--format", "parquet", "-o", str(path), *asked)
    rows = json.loads(printed(capsys, str(folder), "--format", "json", *asked))
    stored = parquet.read_table(path).to_pylist()
    expected = rows["sections"]["stragglers"]["rows"]
    assert [row["Waited (ns)"] for row in stored] == [row["waited_ns"] for row in expected]
    assert [row["Rank"] for row in stored] == [row["rank"] for row in expected]


def test_a_broken_report_is_told_on_stderr_and_the_status_stays_0(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_text("nothing\x1b[31m")
    arguments = ["fleet", str(folder), str(broken), "--workers", "1", "--format", "json"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert f"skipped: cannot read {broken}" in err
    assert json.loads(out)["skipped"][0]["report"] == str(broken)
    assert main([*arguments, "--strict"]) == 65
    capsys.readouterr()
    assert main(["fleet", str(broken)]) == 65
    err = capsys.readouterr().err
    assert err.startswith("nsys-tui: none of the reports can be read")
    assert err.count(str(broken)) == 1, "the cause is told once"
    assert main(["fleet", str(broken), str(folder / "no.sqlite")]) == 65
    assert capsys.readouterr().err.count(str(broken)) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], "from 1 on"),
        (["--bins", "5000"], "from 1 to 1024"),
        (["--format", "parquet"], "Parquet is no text"),
        (["--format", "json", "-o", "x"], "-o writes csv and parquet"),
        (["--iteration", "("], "not a regular expression"),
        (["--map", "nobody", "--section", "heat"], "no map 'nobody'"),
        (["--open", "--step", "3"], "--step is for the printed fleet"),
        (["--window", "5s"], "not a time window"),
        (["--window", "1s/2s", "--step", "3"], "not allowed with argument"),
        (["--slurm", "--scheduler", "tcp://x:1"], "not allowed with argument"),
        (["--workers", "2", "--scheduler", "tcp://x:1"], "not allowed with --scheduler"),
        (["--sbatch=--mem=1G"], "--sbatch is for --slurm"),
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(
    folder: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(folder), *arguments]) == 64
    assert words in capsys.readouterr().err


def test_an_empty_folder_says_what_was_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(tmp_path)]) == 64
    assert ".nsys-rep" in capsys.readouterr().err


def test_of_a_report_and_its_export_one_is_taken(tmp_path: Path) -> None:
    for name in ("r_2.nsys-rep", "r_2.sqlite", "r_10.sqlite", "r_1.qdstrm", "notes.txt"):
        (tmp_path / name).touch()
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "x.sqlite").touch()
    found = find_reports([str(tmp_path), str(tmp_path / "r_10.sqlite")])
    assert [str(path.relative_to(tmp_path)) for path in found] == [
        "a/b/x.sqlite",
        "r_1.qdstrm",
        "r_2.nsys-rep",
        "r_10.sqlite",
    ]


@pytest.mark.parametrize("fmt", ["table", "json"])
def test_a_reader_that_leaves_early_is_no_error(folder: Path, fmt: str) -> None:
    command = f"{sys.executable} -m nsys_tui fleet {folder} --workers 1 --format {fmt} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_ctrl_c_stops_cleanly_and_says_how_far_it_came(
    folder: Path, tmp_path: Path, own_folders: Path
) -> None:
    for number in range(200):
        copy = tmp_path / f"r_{number}.sqlite"
        copy.write_bytes((folder / "node" / "report_0.sqlite").read_bytes())
    process = subprocess.Popen(
        [sys.executable, "-m", "nsys_tui", "fleet", str(tmp_path), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    while not list((own_folders / "cache").rglob("summary-*")) and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "of 200 reports done: the same command goes on from there" in err
    assert "Traceback" not in err
    assert out == ""


@needs_reports
def test_reports_of_all_kinds_make_a_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(path) for path in report_paths()]
    found: dict[str, Any] = json.loads(printed(capsys, *paths, "--format", "json"))
    assert found["skipped"] == []
    reports = found["sections"]["reports"]["rows"]
    assert len(reports) == len(paths) + 1, "one report holds two processes"
    assert len({row["rank"] for row in reports}) == len(reports)
    mpi = next(r for r in reports if r["report"] == "mpi-nvtx-callchains-2022.2.sqlite")
    assert (mpi["rank"], mpi["rank_from"]) == (0, "MPI")


@needs_reports
def test_figures_of_a_real_report_are_those_of_its_overview(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite")
    assert main(["overview", path, "--format", "json"]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    rows = json.loads(printed(capsys, path, "--format", "json"))["sections"]["ranks"]["rows"]
    for device, row in zip(devices, rows, strict=True):
        for name in ("busy", "compute", "comm", "exposed_comm", "memory", "idle"):
            assert row[f"{name}_time_ns"] == device[f"{name}_ns"], name
        assert row["kernels"] == device["kernel_count"]
