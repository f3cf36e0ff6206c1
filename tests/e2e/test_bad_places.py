"""Reports and folders that an ordinary user may not read or write, and disks that are full.

As root, commands run without the right to override permissions, as anybody else's do.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import pytest
from synth import Synth

from nsys_tui.errors import UNREADABLE, USAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OVERRIDES: Final = "-dac_override,-dac_read_search"
PROGRAM: Final = (sys.executable, "-m", "nsys_tui")
LIMIT: Final = 16_384
"""Bytes that a file may grow to on the disk that is full."""


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Words before a command that make it an ordinary user's."""
    if os.geteuid():
        return []
    words = ["setpriv", f"--bounding-set={OVERRIDES}", f"--inh-caps={OVERRIDES}"]
    closed = tmp_path_factory.mktemp("closed") / "file"
    closed.write_text("x")
    closed.chmod(0)
    if not shutil.which("setpriv") or not subprocess.run([*words, "cat", closed]).returncode:
        pytest.skip("runs as root, and setpriv does not take its rights away")
    return words


@pytest.fixture
def report(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    made = Synth(folder / "r.sqlite").process(100, "train").gpu(0).nvtx("step", 0, 900)
    return made.launch("gemm", call=(10, 20), gpu=(100, 400)).write()


@pytest.fixture(params=["file", "folder"])
def closed(request: pytest.FixtureRequest, report: Path) -> Iterator[Path]:
    """A report that may not be read, or one in a folder that may not be searched."""
    shut = report if request.param == "file" else report.parent
    shut.chmod(0)
    yield report
    shut.chmod(0o755)


def run(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


def calm(said: str) -> bool:
    return not any(word in said for word in ("Traceback", "unexpected fault", "Errno", "Exception"))


@pytest.mark.parametrize(
    "verb",
    [
        *("overview", "stats", "analyze", "stalls", "stacks", "iterations", "fleet", "doctor"),
        "export --table operations",
    ],
)
def test_a_report_without_read_permission_is_named(
    verb: str, closed: Path, ordinary: list[str]
) -> None:
    ran = run([*ordinary, *PROGRAM, *verb.split(), str(closed)])
    assert ran.returncode == UNREADABLE
    said = ran.stderr + (ran.stdout if verb == "doctor" else "")
    assert str(closed) in said
    assert "permission" in said
    assert calm(ran.stdout + ran.stderr)


def test_the_app_leaves_with_that_reason(closed: Path, ordinary: list[str]) -> None:
    near, far = os.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color"}
    words = [*ordinary, *PROGRAM, str(closed)]
    with subprocess.Popen(words, stdin=far, stdout=far, stderr=far, env=env) as process:
        os.close(far)
        received = b""
        with suppress(OSError):  # the terminal's end when the app left
            while block := os.read(near, 65536):
                received += block
        os.close(near)
    last = received.decode().rpartition("\x1b[?1049l")[2]
    assert process.returncode == UNREADABLE
    assert "permission denied" in last
    assert calm(last)


def test_a_folder_that_may_not_be_listed_is_no_empty_fleet(
    report: Path, ordinary: list[str]
) -> None:
    report.parent.chmod(0)
    ran = run([*ordinary, *PROGRAM, "fleet", str(report.parent)])
    report.parent.chmod(0o755)
    assert ran.returncode == USAGE
    assert "permission denied" in ran.stderr


@pytest.mark.parametrize("by_link", [False, True])
def test_a_report_in_a_folder_without_write_permission_is_read(
    by_link: bool, report: Path, tmp_path: Path, ordinary: list[str]
) -> None:
    before = hashlib.sha256(report.read_bytes()).hexdigest()
    report.chmod(0o444)
    report.parent.chmod(0o555)
    path = report
    if by_link:
        path = tmp_path / "link.sqlite"
        path.symlink_to(report)
    words = [*ordinary, *PROGRAM, "overview", str(path)]
    env = {**os.environ, "NSYS_TUI_CACHE": str(report.parent / "cache")}
    stored, kept = run(words), run(words, env=env)
    report.parent.chmod(0o755)
    assert stored.returncode == kept.returncode == 0
    assert stored.stdout == kept.stdout
    assert calm(stored.stderr + kept.stderr)
    assert [file.name for file in report.parent.iterdir()] == ["r.sqlite"]
    assert hashlib.sha256(report.read_bytes()).hexdigest() == before


def full_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def test_a_full_disk_costs_the_cache_and_nothing_else(report: Path, tmp_path: Path) -> None:
    env = {**os.environ, "NSYS_TUI_CACHE": str(tmp_path / "cache")}
    words = [*PROGRAM, "stats", str(report), "-r", "cuda_gpu_trace", "-f", "csv"]
    short, whole = run(words, env=env, preexec_fn=full_disk), run(words)
    assert short.returncode == whole.returncode == 0
    assert short.stdout == whole.stdout
    assert calm(short.stderr)


@pytest.mark.parametrize(
    "verb", ["export {} --perfetto", "export {} --table ranges -o", "stacks {} --format svg -o"]
)
def test_a_file_that_does_not_fit_is_told_and_does_not_stay(verb: str, tmp_path: Path) -> None:
    made = Synth(tmp_path / "many.sqlite").process(100, "train").gpu(0)
    for place in range(600):
        at = place * 1000
        made.nvtx(f"range {place} of many", at, at + 900)
        made.launch("gemm", call=(at + 10, at + 20), gpu=(at + 100, at + 400))
    report, target = made.write(), tmp_path / "out"
    words = [word.replace("{}", str(report)) for word in verb.split()]
    ran = run([*PROGRAM, *words, str(target)], preexec_fn=full_disk)
    assert ran.returncode == USAGE
    assert f"cannot write {target}" in ran.stderr
    assert calm(ran.stderr)
    assert not target.exists()


def test_a_demo_report_that_does_not_fit_is_told_and_does_not_stay(tmp_path: Path) -> None:
    ran = run([*PROGRAM, "demo", "--output", str(tmp_path / "d.sqlite")], preexec_fn=full_disk)
    assert ran.returncode == USAGE
    assert "cannot write the demo report" in ran.stderr
    assert calm(ran.stderr)
    assert list(tmp_path.glob("*.sqlite*")) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("verb", ["overview {}", "overview {} --format json", "completion bash"])
def test_a_standard_output_that_is_full_is_told(verb: str, report: Path) -> None:
    words = [*PROGRAM, *verb.replace("{}", str(report)).split()]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert ran.returncode == USAGE
    assert "cannot write the output: No space left" in ran.stderr
    assert calm(ran.stderr)


def test_a_log_that_cannot_be_written_is_told(report: Path, tmp_path: Path) -> None:
    ran = run([*PROGRAM, "overview", str(report), "--log", str(tmp_path)])
    assert ran.returncode == USAGE
    assert f"cannot write {tmp_path}" in ran.stderr
    assert calm(ran.stderr)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_report_that_is_being_written_is_refused_and_left_to_its_writer(
    mode: str, report: Path
) -> None:
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(report, isolation_level=None, timeout=60)) as db:
            db.execute(f"PRAGMA journal_mode = {mode}")
            number = 10**6
            while not stop.is_set():
                db.execute("BEGIN")
                rows = [(number + row, "x" * 50) for row in range(200)]
                db.executemany("INSERT INTO StringIds VALUES (?, ?)", rows)
                db.execute("COMMIT")
                number += 200

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while report.stat().st_size < 200_000:
            time.sleep(0.01)
        ran = run([*PROGRAM, "overview", str(report)])
    finally:
        stop.set()
        writer.join()
    assert ran.returncode in (0, UNREADABLE)
    assert "writ" in ran.stderr or ran.returncode == 0
    assert calm(ran.stderr)
    with closing(sqlite3.connect(report)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert run([*PROGRAM, "overview", str(report)]).returncode == 0
