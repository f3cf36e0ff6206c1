from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from capture_support import stand_in
from synth import Synth

from nsys_tui import cli
from nsys_tui.analysis.stats.query import REPORTS
from nsys_tui.model.table import Column, Table
from nsys_tui.names import escaped
from nsys_tui.text.tables import render

if TYPE_CHECKING:
    from pathlib import Path

NASTY = 'k"1",\n\x1b[31m;\\(int)'


@pytest.fixture
def capture(tmp_path: Path) -> str:
    made = Synth(tmp_path / "r.sqlite").nvtx("step", 0, 50).nvtx("step", 100, 150)
    made.launch(NASTY, (10, 20), (20, 40)).launch("gemm()", (110, 120), (130, 190))
    return str(made.write())


Out = pytest.CaptureFixture[str]


def run(capsys: Out, *words: str) -> tuple[int, str, str]:
    status = cli.main(["stats", *words, "--no-cache"])
    out, err = capsys.readouterr()
    return status, out, err


def test_notices_stand_on_stdout_unless_quiet_or_beside_data(capture: str, capsys: Out) -> None:
    words = (capture, "-r", "gpukernsum")
    notice = "Processing [r.sqlite] with [gpukernsum]...\n"
    status, out, err = run(capsys, *words)
    assert (status, err) == (0, "")
    assert out.startswith(notice)
    assert run(capsys, *words, "-f", "json")[2] == notice
    status, out, err = run(capsys, *words, "-f", "csv")
    table = [row for row in csv.reader(io.StringIO(out, newline="")) if row]
    assert table[0][-1] == "Name"
    assert {row[-1] for row in table[1:]} == {escaped(NASTY), "gemm()"}
    assert err == notice
    assert run(capsys, *words, "-f", "csv", "-q")[2] == ""


@pytest.mark.parametrize("part", ["--by-device", "--by-rank"])
def test_every_figure_of_a_part_is_printed(capture: str, capsys: Out, part: str) -> None:
    _, out, _ = run(capsys, capture, "-r", "cuda_gpu_kern_sum:base", "-f", "csv", "-q", part)
    head, *rows = filter(None, csv.reader(io.StringIO(out, newline="")))
    assert [row[head.index("Total Time (ns)")] for row in rows] == ["60", "20"]
    assert [row[head.index("Instances")] for row in rows] == ["1", "1"]


def test_an_old_name_stands_where_scripts_of_its_time_look_for_it(
    capture: str, tmp_path: Path, capsys: Out
) -> None:
    base = str(tmp_path / "out")
    run(capsys, capture, "-r", "gpukernsum:base,cuda_gpu_kern_sum:base", "-o", base)
    old, new = tmp_path / "out_gpukernsum_base.csv", tmp_path / "out_cuda_gpu_kern_sum_base.csv"
    assert old.read_text() == new.read_text() != ""


def test_several_json_reports_are_one_object(capture: str, capsys: Out) -> None:
    _, out, _ = run(capsys, capture, "-r", "nvtx_sum,osrt_sum", "-r", "cuda_api_sum", "-f", "json")
    found = json.loads(out)
    assert list(found) == ["nvtx_sum", "osrt_sum", "cuda_api_sum"]
    assert found["osrt_sum"] == []
    assert found["nvtx_sum"][0]["Instances"] == 2


def test_one_json_report_is_an_array(capture: str, capsys: Out) -> None:
    _, out, _ = run(capsys, capture, "-r", "cuda_gpu_kern_sum", "-f", "json")
    assert json.loads(out)[1]["Name"] == NASTY


def test_the_default_list_prints_what_is_there(capture: str, capsys: Out) -> None:
    status, out, err = run(capsys, capture)
    assert status == 0
    titles = [line for line in out.splitlines() if line.startswith(" ** ")]
    assert [title.partition("(")[2] for title in titles] == [
        "nvtx_sum):",
        "cuda_api_sum):",
        "cuda_gpu_kern_sum):",
    ]
    assert "SKIPPED: r.sqlite does not contain OS Runtime trace data" in out
    assert "\x1b" not in out
    assert err == ""


def test_nothing_to_print_is_exit_66_and_valid_json(tmp_path: Path, capsys: Out) -> None:
    empty = str(Synth(tmp_path / "e.sqlite").thread(1, "main").write())
    status, out, err = run(capsys, empty, "-r", "osrt_sum", "-f", "json")
    assert (status, json.loads(out)) == (66, [])
    assert "--trace=osrt" in err
    assert json.loads(run(capsys, empty, "-f", "json")[1])["nvtx_sum"] == []


def test_filters(capture: str, capsys: Out) -> None:
    def names(*words: str) -> list[str]:
        _, out, _ = run(capsys, capture, "-r", "cuda_gpu_kern_sum", "-f", "json", *words)
        return [row["Name"] for row in json.loads(out)]

    assert names("--filter-time", "100ns/") == ["gemm()"]
    assert names("--filter-time", "/100") == [NASTY]
    assert names("--filter-nvtx", "step/1") == ["gemm()"]
    assert names("--window", "0/30") == [NASTY]
    assert run(capsys, capture, "--filter-time", "1/2", "--filter-nvtx", "step")[0] == 64


def test_clip_cuts_the_total(capture: str, capsys: Out) -> None:
    words = (capture, "-r", "cuda_gpu_kern_sum", "-f", "json", "--filter-time", "30/140")
    whole = json.loads(run(capsys, *words)[1])
    clipped = json.loads(run(capsys, *words, "--clip")[1])
    assert sum(row["Total Time (ns)"] for row in whole) == 80
    assert sum(row["Total Time (ns)"] for row in clipped) == 20


def test_lists_combine_and_repeat_their_last_element(
    capture: str, capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (
        capture,
        "-r",
        "cuda_gpu_kern_sum:base,nvtx_sum,osrt_sum",
        "-f",
        "csv,json",
        "-o",
        "x,.",
    )
    assert run(capsys, *words)[0] == 0
    assert sorted(path.name for path in tmp_path.glob("*_sum*")) == [
        "r_nvtx_sum.json",
        "x_cuda_gpu_kern_sum_base.csv",
    ]
    assert json.loads((tmp_path / "r_nvtx_sum.json").read_text())[0]["Range"] == "step"
    (tmp_path / "r_nvtx_sum.json").write_text("mine")
    status, out, _ = run(capsys, *words)
    assert status == 0
    assert out.splitlines()[::2] == [
        "Processing [r.sqlite] with [cuda_gpu_kern_sum](base) to [x_cuda_gpu_kern_sum_base.csv]..."
        " SKIPPED: x_cuda_gpu_kern_sum_base.csv exists already (--force-overwrite replaces it)",
        "Processing [r.sqlite] with [nvtx_sum] to [r_nvtx_sum.json]..."
        " SKIPPED: r_nvtx_sum.json exists already (--force-overwrite replaces it)",
        "Processing [r.sqlite] with [osrt_sum] to [r_osrt_sum.json]... SKIPPED: r.sqlite does not"
        " contain OS Runtime trace data (no OS runtime calls in this report: record with"
        " nsys profile --trace=osrt)",
    ]
    assert (tmp_path / "r_nvtx_sum.json").read_text() == "mine"
    assert "to [r_nvtx_sum.json]... PROCESSED" in run(capsys, *words, "--force-overwrite")[1]
    assert (tmp_path / "r_nvtx_sum.json").read_text() != "mine"


def test_a_list_of_outputs_may_begin_with_stdout(
    capture: str, capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, capture, "-r", "nvtx_sum,cuda_api_sum", "-o", "-,x", "-q")
    assert (status, "NVTX Range Summary" in out) == (0, True)
    assert (tmp_path / "x_cuda_api_sum.csv").is_file()


def test_output_into_a_program_needs_no_shell(capture: str, tmp_path: Path) -> None:
    program = f"@{sys.executable} -c 'import sys; print(sys.stdin.readline()[:8], \"$(x)\")'"
    done = subprocess.run(
        [sys.executable, "-m", "nsys_tui", "stats", capture, "-r", "nvtx_sum", "-o", program],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_CACHE_HOME": str(tmp_path)},
    )
    notice = f"Processing [r.sqlite] with [nvtx_sum] to process [{program}]... "
    assert (done.returncode, done.stdout) == (0, f"{notice}Time (%) $(x)\n\n")


@pytest.mark.parametrize(
    ("outputs", "files"),
    [
        ("@true,.", ["r_cuda_api_sum.csv"]),
        ("@true,.,x", ["r_cuda_api_sum.csv", "x_cuda_api_sum.csv"]),
        ("x,@cut -d, -f1", ["x_nvtx_sum.csv"]),
        ("@true,@true", []),
    ],
)
def test_a_comma_in_a_command_belongs_to_it_but_before_what_is_none(
    capture: str,
    capsys: Out,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outputs: str,
    files: list[str],
) -> None:
    (folder := tmp_path / "out").mkdir()
    monkeypatch.chdir(folder)
    words = ("-r", "nvtx_sum,cuda_api_sum", "-o", outputs, "-f", "csv", "-q")
    assert run(capsys, capture, *words)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == files


def test_figures_that_are_not_converted_stay_so_beside_a_time_unit(
    capture: str, capsys: Out
) -> None:
    words = ("-r", "nvtx_sum", "-q", "-f", "csv:noconv")
    assert run(capsys, capture, *words, "--timeunit", "ms") == run(capsys, capture, *words)


def test_a_program_that_does_not_exist_is_a_usage_error(capture: str, capsys: Out) -> None:
    assert run(capsys, capture, "-r", "nvtx_sum", "-o", "@no-such-program-here")[0] == 64


@pytest.mark.parametrize("fmt", ["column", "csv", "json"])
def test_a_reader_that_leaves_early_is_no_error(capture: str, fmt: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m nsys_tui stats {capture} -r nvtx_sum -f {fmt} | head -1"
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert "Traceback" not in done.stderr


def test_help_lists_reports_and_formats(capsys: Out) -> None:
    import nsys_tui.analysis.stats.reports  # noqa: F401 - registers the reports

    assert "* cuda_api_sum" in run(capsys, "--help-reports")[1]
    assert "merged" in run(capsys, "--help-reports=cudaapisum")[1]
    assert run(capsys, "--help-reports=ALL")[1].count(" -- ") == len(REPORTS)
    assert "nofmt" in run(capsys, "--help-formats")[1]
    assert run(capsys, "--help-reports=nonsense")[0] == 64
    assert run(capsys)[0] == 64


def test_an_export_is_made_where_it_is_asked_for(tmp_path: Path, capsys: Out) -> None:
    nsys = stand_in(tmp_path / "bin")
    made = str(Synth(tmp_path / "made.sqlite").process(1).kernel("k", 0, 10).write())
    report = tmp_path / "r.nsys-rep"
    report.write_bytes(b"NsysReport")
    target = tmp_path / "there.sqlite"
    environment = pytest.MonkeyPatch()
    environment.setenv("FAKE_NSYS_SQLITE", made)
    environment.setenv("FAKE_NSYS_SECONDS", "0")
    words = (str(report), "-r", "cuda_gpu_kern_sum", "-f", "csv", "--nsys", str(nsys))
    assert run(capsys, *words, "--quiet", "--sqlite", str(target))[1].count("\n") == 3
    target.write_bytes(b"stale")
    assert run(capsys, *words, "--sqlite", str(target))[0] == 65
    for again in ("--force-export", "--force-export=true"):
        assert run(capsys, *words, "--sqlite", str(target), again)[0] == 0
    assert run(capsys, made, "-r", "cuda_gpu_kern_sum", "--sqlite", str(target))[0] == 64
    environment.undo()


def test_words_of_nsys_that_are_refused_by_name(capture: str, capsys: Out) -> None:
    status, _, err = run(capsys, capture, "--report-dir", "mine")
    assert (status, "scripts of nsys's are not run" in err) == (64, True)
    for words, said in {
        ("--timeunit", "m"): "several time units",
        ("--timeunit", "3"): "unknown time unit",
        ("-f", "csv:dur=parsec"): "one of ns, us, ms, sec",
        ("-f", "csv:mass=kg"): "kind",
        ("-f", "column:colmax=wide"): "whole number",
        ("--force-overwrite=perhaps",): "--force-overwrite=true",
    }.items():
        status, _, err = run(capsys, capture, *words)
        assert (status, said in err) == (64, True), (words, err)


def test_addresses_are_numbers_on_demand() -> None:
    table = Table("t", "T", (Column("CPU Instruction Address"),), (["0x10", "main"],))
    assert render(table, "csv:addr=uint:nohdr") == "16\nmain\n"
    assert render(table, "csv:nohdr") == "0x10\nmain\n"


def test_time_unit_scales_headers_and_values(capture: str, capsys: Out) -> None:
    _, out, _ = run(capsys, capture, "-r", "nvtx_sum", "-f", "json", "--timeunit", "usec")
    assert json.loads(out)[0]["Total Time (us)"] == 0.1


def test_text_in_columns_without_a_type_is_left_out_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 10).write()
    with closing(sqlite3.connect(report)) as connection, connection:
        connection.execute(
            "CREATE TABLE MPI_OTHER_EVENTS (start, end, globalTid, textId, rank, size, tag)"
        )
        connection.executemany(
            "INSERT INTO MPI_OTHER_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(0, 5, "thread", 1, "zero", "big", b"t"), ("soon", 9, 1, 1, 0, 8, 1)],
        )
    words = ["stats", str(report), "-r", "mpi_event_sum,mpi_event_trace", "--format", "csv"]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert "1 row with text in `start` of MPI_OTHER_EVENTS" in printed.err
    assert "unexpected" not in printed.err
