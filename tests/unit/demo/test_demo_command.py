from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from nsys_tui.cli import main
from nsys_tui.errors import USAGE


def test_writes_the_report_and_prints_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, truth, log = tmp_path / "a" / "d.sqlite", tmp_path / "t.json", tmp_path / "n.log"
    words = ["demo", "--output", str(output), "--truth", str(truth), "--nccl-log", str(log)]
    assert main([*words, "--steps", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{output}\n"
    assert str(truth) in printed.err
    assert truth.read_text().startswith("{")
    assert log.read_text().count("Init COMPLETE") == 2
    assert sqlite3.connect(output).execute("SELECT count(*) FROM StringIds").fetchone()[0] > 50
    assert os.listdir(output.parent) == ["d.sqlite"]


@pytest.mark.parametrize("option", ["--output", "--truth", "--nccl-log"])
def test_no_file_is_replaced_unasked(
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "my.txt"
    mine.write_text("precious")
    words = ["demo", "--steps", "1", option, str(mine)]
    assert main(words) == USAGE
    assert f"{mine} exists already\n--force-overwrite replaces it" in capsys.readouterr().err
    assert mine.read_text() == "precious"
    assert os.listdir() == ["my.txt"]
    assert main([*words, "--force-overwrite"]) == 0
    assert mine.read_bytes() != b"precious"


def test_the_default_file_is_not_replaced_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo.sqlite").write_text("precious")
    assert main(["demo", "--steps", "1"]) == USAGE
    assert Path("demo.sqlite").read_text() == "precious"


def test_a_pipe_is_no_place_for_a_report(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = ["demo", "--steps", "1", "--force-overwrite", "--output", str(tmp_path / "pipe")]
    assert main(words) == USAGE
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_in_a_terminal_it_goes_to_the_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NSYS_TUI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["demo", "--steps", "1"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'cache' / 'demo.sqlite'}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "0"], "1 to 500"),
        (["--steps", "9999999999"], "1 to 500"),
        (["--kernels", "9999999999999"], "1 to 100000000"),
        (["--gpus", "9"], "2 to 8"),
        (["--kernels", "many"], "a whole number"),
        (["--schema", "1999"], "invalid choice"),
    ],
)
def test_says_what_is_wrong_with_an_option(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *words]) == USAGE
    assert message in capsys.readouterr().err


def test_says_where_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "--steps", "1", "--output", str(tmp_path / "file" / "d.sqlite")]) == USAGE
    printed = capsys.readouterr().err
    assert str(tmp_path / "file") in printed
    assert "--output" in printed


def test_the_script_writes_demo_sqlite_into_the_current_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        # without site-packages: it needs Python alone
        [sys.executable, "-S", ROOT / "demo" / "make_report.py", "--steps", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "demo.sqlite\n"
    assert (tmp_path / "demo.sqlite").stat().st_size > 100_000


def test_demo_run_is_valid_and_names_what_is_missing(tmp_path: Path) -> None:
    """With no Python to be found the script says what to install and ends."""
    script = tmp_path / "demo" / "run"
    script.parent.mkdir()
    for name in ("run", "venv.sh"):
        (script.parent / name).write_bytes((ROOT / "demo" / name).read_bytes())
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "cksum", "cat", "dirname"):
        (tools / tool).symlink_to(Path("/usr/bin") / tool)
    (tmp_path / "pyproject.toml").write_text("")
    done = subprocess.run(
        ["/usr/bin/env", "bash", str(script)],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 69
    assert "python3-venv" in done.stderr
