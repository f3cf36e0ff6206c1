"""A terminal that goes away, signals and strange bytes: the app ends, or goes on, as it should."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from synth import Synth

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e

PATIENCE = 60


class Session:
    """The app on a terminal of its own."""

    def __init__(self, path: Path) -> None:
        self.near, far = pty.openpty()
        self.seen = b""
        self.app = subprocess.Popen(
            [sys.executable, "-m", "nsys_tui", str(path)],
            stdin=far, stdout=far, stderr=far, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        )  # fmt: skip
        os.close(far)

    def until(self, text: bytes) -> None:
        """Reads until something was written."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.near], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.near, 65536)
                except OSError:
                    break
        assert text in self.seen

    def ended(self) -> int:
        return self.app.wait(PATIENCE)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Synth(tmp_path / "r.sqlite").process(100, "train").gpu(0)
    session = Session(made.launch("gemm", call=(10, 20), gpu=(100, 400)).write())
    session.until(b"Top kernels")
    return session


def test_without_its_terminal_the_app_ends(session: Session) -> None:
    os.close(session.near)
    assert session.ended() == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(session: Session, number: int) -> None:
    session.app.send_signal(number)
    session.until(b"\x1b[?1004l")
    assert session.ended() == 128 + number
    for restored in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l"):
        assert restored in session.seen


def test_a_byte_that_is_not_utf8_is_no_key_and_no_fault(session: Session) -> None:
    os.write(session.near, b"\xe9")
    os.write(session.near, b"?")
    session.until(b"EVERYWHERE")
    os.write(session.near, b"\x1b")
    time.sleep(0.5)
    os.write(session.near, b"q")
    session.until(b"\x1b[?1004l")
    assert session.ended() == 0
