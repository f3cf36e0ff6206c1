"""The app as a person sees it: a real terminal (tmux), real keys, the installed command."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest
from demo_making import make_report
from paths import REPORTS, ROOT, needs_reports, report_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux: apt-get install tmux"),
]


NUMBERS: Final = count()
"""A server that was told to end may still take a session in and drop it: names come once."""


class Terminal:
    """One tmux session of a server of its own."""

    def __init__(self, columns: int, lines: int, environment: dict[str, str]) -> None:
        self._socket = f"nsys-tui-{os.getpid()}-{next(NUMBERS)}"
        self._environment = environment
        self._size = ["-x", str(columns), "-y", str(lines)]

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", "/dev/null", *words]
        run = subprocess.run(
            command, capture_output=True, text=True, check=False, env=self._environment
        )
        return run.stdout

    def start(self, *arguments: str) -> None:
        told = ["sh", "-c", '"$@"; echo "ended with status $?"; exec sleep 600', "sh"]
        command = [*told, sys.executable, "-m", "nsys_tui", *arguments]
        self._tmux("new-session", "-d", "-s", "t", *self._size, "-c", str(ROOT), *command)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "t", *keys)

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(lines))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "t")

    def until(self, wanted: str | Callable[[str], bool], seconds: float = 30) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            screen = self.screen()
            if wanted(screen) if callable(wanted) else wanted in screen:
                return screen
            time.sleep(0.1)
        raise AssertionError(f"never saw {wanted!r}:\n{self.screen()}")

    def end(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def make(columns: int = 80, lines: int = 24, **environment: str) -> Terminal:
        own = {**os.environ, "TMUX": "", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        own |= {
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_CONFIG_HOME": str(tmp_path / "conf"),
        }
        opened.append(Terminal(columns, lines, own | environment))
        return opened[-1]

    yield make
    for session in opened:
        session.end()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.sqlite"
    make_report(path, steps=4)
    return path


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_every_screen_of_the_demo_opens_and_the_report_stays_as_it_was(
    terminal: Callable[..., Terminal], demo: Path, size: tuple[int, int]
) -> None:
    before = hashlib.sha256(demo.read_bytes()).hexdigest()
    session = terminal(*size)
    session.start(str(demo))
    session.until("Findings (")
    session.until(lambda screen: "computing" not in screen and "Findings" in screen)
    for key, sign in (
        ("2", "Timeline"),
        ("3", "AllReduce"),
        ("4", "Train step"),
        ("6", "GPU time by NVTX path"),  # after 5 it may be of the gap under the cursor
        ("5", "Idle gaps"),
        ("9", "Which kernels take the time?"),
        ("1", "Top kernels"),
    ):
        session.press(key)
        screen = session.until(sign)
        assert "Traceback" not in screen
        assert "unexpected" not in screen
    session.press("q")
    session.until("ended with status 0", 10)
    assert hashlib.sha256(demo.read_bytes()).hexdigest() == before
    assert sorted(path.name for path in demo.parent.iterdir()) == ["demo.sqlite"]


def test_resizing_live_keeps_the_screen_and_too_small_says_so(
    terminal: Callable[..., Terminal], demo: Path
) -> None:
    session = terminal(80, 24)
    session.start(str(demo))
    session.until("Findings (")
    session.press("3")
    session.until("AllReduce")
    session.resize(160, 45)
    session.until("Instances")
    session.resize(60, 20)
    session.until("needs")
    session.resize(80, 24)
    session.until("AllReduce")


def test_ascii_and_no_color_send_plain_characters_only(
    terminal: Callable[..., Terminal], demo: Path
) -> None:
    session = terminal(80, 24, NO_COLOR="1", LC_ALL="C")
    session.start("--ascii", str(demo))
    session.until("Findings (")
    session.press("2")
    session.until("Timeline")
    assert session.screen().isascii()


@needs_reports
def test_every_real_report_opens_and_shows_its_timeline(terminal: Callable[..., Terminal]) -> None:
    for path in report_paths():
        session = terminal(100, 30)
        session.start(str(path))
        session.until("[1 Over")
        session.press("2")
        session.until("[2 Time")
        session.press("3")
        screen = session.until("[3 Kern")
        assert "unexpected" not in screen
        session.press("q")
        session.until("ended with status 0", 20)
        session.end()


def test_a_file_that_is_no_report_ends_with_a_plain_message(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.write_bytes(b"")
    session = terminal()
    session.start(str(bad))
    screen = session.until("ended with status 65")
    assert "bad.sqlite" in screen.replace("\n", "")
    assert "Traceback" not in screen


def test_the_folder_of_real_reports_is_untouched() -> None:
    if not REPORTS.is_dir():
        pytest.skip("needs the real reports in ../shared/reports")
    left = [path.name for path in REPORTS.iterdir() if path.name.endswith(("-wal", "-shm"))]
    assert not left
