"""The app in a real terminal: what is seen first, resizing, leaving, what is left behind."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux"),
]


class Tmux:
    """One tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    def __call__(self, *words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", str(self.socket), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, width: int, height: int, *command: str) -> None:
        size = ["-x", str(width), "-y", str(height)]
        self("new-session", "-d", *size, f"{' '.join(command)}; echo status=$?; sleep 60")

    def screen(self) -> str:
        return self("capture-pane", "-p")

    def wait_for(self, wanted: Callable[[str], bool], seconds: float = 15) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self.screen()
            if wanted(shown):
                return shown
            time.sleep(0.05)
        raise AssertionError(f"not seen in {seconds} s:\n{self.screen()}")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path / "tmux")
    yield server
    server("kill-server")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    synth = Synth(tmp_path / "small.sqlite").process(1, "train").gpu()
    for n in range(20):
        synth.launch("gemm(int)", (n * 100, n * 100 + 5), (n * 100 + 10, n * 100 + 80))
    return Path(synth.write())


def app(report: Path, *flags: str) -> list[str]:
    folders = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("XDG_")]
    program = [sys.executable, "-m", "nsys_tui", str(report), "--no-cache", *flags]
    return ["env", "-u", "COLUMNS", "-u", "LINES", "LANG=C.UTF-8", *folders, *program]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 45)])
def test_the_app_opens_resizes_and_leaves_the_report_alone(
    tmux: Tmux, report: Path, width: int, height: int
) -> None:
    before = hashlib.sha256(report.read_bytes()).hexdigest()
    tmux.start(width, height, *app(report, "--ascii"))
    shown = tmux.wait_for(lambda text: "Findings (" in text and "gemm" in text)
    assert shown.splitlines()[0].startswith(" nsys-tui | small.sqlite")
    assert len(shown.splitlines()) == height
    tmux("resize-window", "-x", "100", "-y", "30")
    tmux.wait_for(lambda text: max(map(len, text.splitlines())) == 100)
    tmux("send-keys", "q")
    tmux.wait_for(lambda text: "status=0" in text)
    assert hashlib.sha256(report.read_bytes()).hexdigest() == before
    assert sorted(path.name for path in report.parent.glob("small*")) == ["small.sqlite"]


def test_what_is_sent_adds_up_to_the_right_screen(tmux: Tmux, report: Path) -> None:
    """Only differences are sent: after much going to and fro, a full repaint changes nothing."""
    tmux.start(100, 30, *app(report, "--unicode"))
    tmux.wait_for(lambda text: "Findings (" in text)
    for key in ("?", "Escape", "C-p", "t", "h", "Escape", "Tab", "C", "Down", "Right", "Escape"):
        tmux("send-keys", key)
        time.sleep(0.15)
    tmux("resize-window", "-x", "120", "-y", "32")
    time.sleep(0.5)
    shown = tmux.wait_for(lambda text: "Findings (" in text and "Palette" not in text)
    tmux("send-keys", "C-l")
    time.sleep(0.5)
    assert tmux.screen() == shown


def test_a_bad_report_is_a_message_and_an_exit_status(tmux: Tmux, tmp_path: Path) -> None:
    bad = tmp_path / "empty.sqlite"
    bad.touch()
    tmux.start(80, 24, *app(bad))
    shown = tmux.wait_for(lambda text: "status=65" in text)
    assert "empty.sqlite" in shown
    assert "Traceback" not in shown
