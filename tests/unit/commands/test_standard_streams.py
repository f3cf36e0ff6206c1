"""Output that nobody reads, closed streams and signals end a verb quietly, whichever it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from demo_making import make_report

from nsys_tui.cli import VERBS

if TYPE_CHECKING:
    from pathlib import Path

VERB = [sys.executable, "-m", "nsys_tui"]
CLOSED = {
    "stdout": ">&-",
    "stdout and stderr": ">&- 2>&-",
    "all three": "<&- >&- 2>&-",
    "a reader that left": "2>&1 | true; exit ${PIPESTATUS[0]}",
}


def in_shell(words: list[str], how: str) -> subprocess.CompletedProcess[str]:
    """Runs a command line of ours with its streams arranged by bash."""
    line = ["bash", "-c", f'"$@" {how}', "bash", *VERB, *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("how", CLOSED.values(), ids=CLOSED.keys())
@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["completion", "bash"], ["capture", "--list-presets"]],
    ids=lambda words: words[0],
)
def test_output_without_a_reader_is_no_fault(words: list[str], how: str) -> None:
    done = in_shell(words, how)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_runs_without_standard_output(verb: str, tmp_path: Path) -> None:
    done = in_shell([verb, "--help"], ">&-")
    assert (done.returncode, done.stderr) == (0, "")
    done = in_shell([verb, str(tmp_path / "absent.sqlite")], ">&-")
    assert done.returncode != 99
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["overview", "stats", "stacks", "open"])
def test_a_report_is_not_printed_into(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    demo_report = tmp_path / "demo.sqlite"
    make_report(demo_report, steps=1)
    before = demo_report.read_bytes()
    done = in_shell([verb, str(demo_report)], ">&-")
    assert done.returncode == 0
    assert "unexpected" not in done.stderr
    assert demo_report.read_bytes() == before


def test_a_full_disk_under_the_output_is_told_once() -> None:
    done = in_shell(["completion", "bash"], "> /dev/full")
    assert done.returncode == 64
    assert done.stderr == "nsys-tui: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    ("number", "status", "told"),
    [
        (signal.SIGTERM, 143, ""),
        (signal.SIGHUP, 129, ""),
        (signal.SIGINT, 130, "nsys-tui: interrupted\n"),
    ],
)
def test_a_signal_ends_a_verb_quietly_and_leaves_nothing(
    number: signal.Signals, status: int, told: str, tmp_path: Path
) -> None:
    words = ["demo", "--kernels", "90000000", "-o", str(tmp_path / "big.sqlite")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    as_usual = ["env", "--default-signal=INT,TERM,HUP"]  # a script's background job ignores INT
    process = subprocess.Popen([*as_usual, *VERB, *words], stderr=subprocess.PIPE, env=environment)
    try:
        while not (any(tmp_path.iterdir()) or process.poll() is not None):
            time.sleep(0.02)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors.decode()) == (status, told)
    assert list(tmp_path.iterdir()) == []
