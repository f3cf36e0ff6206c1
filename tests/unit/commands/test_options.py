from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui import __version__, cli
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import RULES
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.config import load_config
from nsys_tui.errors import USAGE, ConfigError
from nsys_tui.model.categories import Category
from nsys_tui.reader import open_configured
from nsys_tui.ui.loader import unexpected

if TYPE_CHECKING:
    from pathlib import Path


def configured(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_own_communication_patterns_change_the_category(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("ring_exchange", 0, 10).write()
    config = load_config(
        configured(tmp_path, '[analysis]\ncommunication = ["^ring_"]\n'), environ={}
    )
    assert open_configured(report, config).operations.category.tolist() == [Category.COMM]
    plain = open_configured(report, load_config(environ={}))
    assert plain.operations.category.tolist() == [Category.COMPUTE]


def test_what_counts_as_launch_bound_is_the_same_for_stalls_and_rule(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1).gpu()
    for start in range(0, 12 * 40_000, 40_000):
        synth.launch("k", (start, start + 5_000), (start + 10_000, start + 25_000))
    path = synth.write()
    few = "[analysis.launch_bound]\noperations = 12\n"
    for text, runs in (
        ("", 0),
        (few, 1),
        (few + 'duration = "15us"\n', 0),
        (few + 'idle = "70%"', 0),
    ):
        report = open_configured(path, load_config(configured(tmp_path, text), environ={}))
        assert len(stalls(report).runs) == runs
        outcome = RULES["launch_bound"].run(Case(report))
        assert (len(outcome.table), len(outcome.findings)) == (runs, runs)
    asked = RULES["launch_bound"].run(Case(report), {"operations": 10, "idle": 25.0})
    assert len(asked.table) == 1


@pytest.mark.parametrize("value", ["0", "true", "2.5", '"many"'])
def test_a_bad_count_names_file_and_key(tmp_path: Path, value: str) -> None:
    path = configured(tmp_path, f"[analysis]\nlaunch_bound = {{ operations = {value} }}\n")
    with pytest.raises(ConfigError, match=r"analysis\.launch_bound\.operations must be a whole"):
        load_config(path, environ={})


@pytest.mark.parametrize("value", ["25", "-0.1", "true", '"some"', '"120%"'])
def test_a_bad_share_names_file_and_key(tmp_path: Path, value: str) -> None:
    path = configured(tmp_path, f"[analysis.launch_bound]\nidle = {value}\n")
    with pytest.raises(ConfigError, match=r"analysis\.launch_bound\.idle must be a percentage"):
        load_config(path, environ={})


def test_a_bad_pattern_names_file_and_key(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 10).write()
    config = load_config(configured(tmp_path, '[analysis]\ncommunication = ["("]\n'), environ={})
    with pytest.raises(ConfigError, match=r"config\.toml: analysis\.communication"):
        open_configured(report, config)


def test_the_cache_folder_of_the_configuration_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS_TUI_CACHE", "")
    monkeypatch.setenv("NSYS_TUI_CACHE_LIMIT", "")
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 10).write()
    folder = tmp_path / "own cache"
    config = load_config(configured(tmp_path, f'[cache]\ndir = "{folder}"\n'), environ={})
    assert len(open_configured(report, config).operations) == 1
    assert any(folder.rglob("operations.columns"))
    assert os.environ["NSYS_TUI_CACHE"] == os.environ["NSYS_TUI_CACHE_LIMIT"] == ""


def test_a_log_tells_the_run_and_where_each_part_came_from(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("gemm", 0, 10).write()
    log = tmp_path / "log"
    env = {**os.environ, "NSYS_TUI_CACHE": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "nsys_tui", "overview", str(report), "--log", str(log)]
    for found in ("operations: built and stored", "operations: from the cache"):
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)
        told = log.read_text()
        assert f"nsys-tui {__version__}" in told
        assert f"opened {report}" in told
        assert found in told
        log.unlink()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_log_on_a_full_disk_is_lost_and_nothing_is_said(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("gemm", 0, 10).write()
    words = [sys.executable, "-m", "nsys_tui", "overview", str(report), "--log", "/dev/full"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gemm" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "overview REPORT --log REPORT",
        "stacks REPORT -o REPORT --force-overwrite",
        "compare REPORT REPORT --step-summary REPORT",
        "demo -o DEMO --truth REPORT --force-overwrite",
    ],
)
def test_nothing_is_written_into_a_report(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Synth(tmp_path / "r.sqlite").kernel("k", 0, 10).write()
    content = report.read_bytes()
    words = words.replace("REPORT", str(report)).replace("DEMO", str(tmp_path / "d.sqlite"))
    assert cli.main(words.split()) == USAGE
    assert f"{report} is a report" in capsys.readouterr().err
    assert report.read_bytes() == content


def test_the_log_says_where_a_fault_was(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with pytest.raises(IndexError) as raised:
        raise IndexError("planted")
    assert "planted" in str(unexpected(raised.value))
    assert "test_the_log_says_where_a_fault_was" in caplog.text


def test_a_process_that_only_has_ranges_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(5).gpu().kernel("k", 0, 10)
    path = str(synth.process(9).nvtx("load", 0, 7).write())
    assert cli.main(["stats", path, "-r", "nvtx_sum", "--process", "9", "--format", "csv"]) == 0
    assert "load" in capsys.readouterr().out
    assert cli.main(["overview", path, "--process", "4"]) == 64
    assert "it has 5, 9" in capsys.readouterr().err
