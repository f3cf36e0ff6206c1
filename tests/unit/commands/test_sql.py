"""``nsys-tui sql``: where queries come from, formats, limits and exit codes."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui import cli

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]
NASTY = "\x1b[31m<b>k|1"


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = Synth(tmp_path / "r.sqlite").launch(NASTY, (10, 20), (20, 40))
    return str(made.launch("gemm", (110, 120), (130, 190)).write())


def run(capsys: Out, *words: str) -> tuple[int, str, str]:
    status = cli.main(["sql", *words, "--no-cache"])
    out, err = capsys.readouterr()
    return status, out, err


def test_every_format_prints_the_same_rows_and_names_stay_harmless(path: str, capsys: Out) -> None:
    query = (
        "select full_name as name, duration_ns, duration_ns / 7.0 as part, null as none"
        " from kernels"
    )
    told = json.loads(run(capsys, path, query, "--format", "json")[1])
    assert told == [
        {"name": NASTY, "duration_ns": 20, "part": 2.857142857143, "none": None},
        {"name": "gemm", "duration_ns": 60, "part": 8.571428571429, "none": None},
    ]
    head, *rows = csv.reader(io.StringIO(run(capsys, path, query, "--format", "csv")[1]))
    assert head == ["name", "duration_ns", "part", "none"]
    assert rows[1] == ["gemm", "60", "8.571428571429", ""]
    for fmt in ("table", "csv", "tsv", "markdown", "html"):
        status, out, _ = run(capsys, path, query, "--format", fmt)
        assert (status, "\x1b" in out) == (0, False)
        assert "gemm" in out


def test_columns_of_one_name_are_told_apart(path: str, capsys: Out) -> None:
    _, out, _ = run(capsys, path, "select 1 as a, 2 as a, 3 as a", "--format", "json")
    assert json.loads(out) == [{"a": 1, "a:2": 2, "a:3": 3}]


def test_a_query_comes_from_a_file_or_standard_input(
    path: str, capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "q.sql"
    file.write_text("-- how many\nselect count(*) as n from kernels;\n")
    assert run(capsys, path, "--file", str(file), "--format", "csv")[1] == "n\n2\n"
    for words in (["-"], ["--file", "-"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO("select 5 as n"))
        assert run(capsys, path, *words, "--format", "csv")[1] == "n\n5\n"


def test_rows_left_out_are_told(path: str, capsys: Out) -> None:
    status, out, err = run(capsys, path, "select id from kernels", "--limit", "1")
    assert (status, out.count("1")) == (0, 1)
    assert "note: the first 1 rows; --limit 0 prints all" in err


def test_tables_lists_views_and_tables(path: str, capsys: Out) -> None:
    _, out, _ = run(capsys, path, "--tables", "--format", "json")
    told = {row["name"]: row for row in json.loads(out)}
    assert told["kernels"]["kind"] == "view"
    assert "duration_ns" in told["kernels"]["columns"].split()
    assert "operation" in told["collectives"]["columns"].split()
    assert told["StringIds"] == {"name": "StringIds", "kind": "table", "columns": "id value"}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["selec 1"], 64, "syntax error near 'selec' in line 1, column 1"),
        (["drop table StringIds"], 64, "not allowed: writing"),
        (["select * from NVTX_EVENTS"], 66, "--trace=nvtx"),
        (["select * from ranges"], 66, "--trace=nvtx"),
        ([], 64, "which query?"),
        (["select 1", "--file", "q"], 64, "exclude each other"),
        (["--file", "nosuch.sql"], 64, "cannot read nosuch.sql"),
        (["select 1", "--timeout", "0"], 64, "in no time"),
        (
            ["with recursive a(x) as (select 1 union all select x + 1 from a) select max(x) from a",
             "--timeout", "0.25"], 130, "longer than 0.25 s",
        ),
    ],
)  # fmt: skip
def test_each_end_has_its_exit_code(
    path: str, capsys: Out, words: list[str], status: int, said: str
) -> None:
    ended, out, err = run(capsys, path, *words)
    assert (ended, out) == (status, "")
    assert said in err


def test_a_report_that_must_be_exported_says_what_it_takes(
    capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "r.nsys-rep"
    file.write_bytes(b"no report")
    status, _, err = run(capsys, str(file), "select 1")
    assert status in (65, 69)
    assert "nsys" in err
