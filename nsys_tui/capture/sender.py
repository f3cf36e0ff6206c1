"""A child that sends files: a shell of the target, outside of the event loop."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Final

from nsys_tui.capture import quoting
from nsys_tui.capture.failures import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STDERR_KEPT: Final = 20_000
LAST_WORDS_S: Final = 5.0
PIPE_SIZE: Final = 1 << 20
_SET_PIPE_SIZE: Final = 1031  # Linux's F_SETPIPE_SZ


class Sender:
    """A child that sends files, and the end of what it complains about."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None) -> None:
        self.child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            env=None if env is None else dict(env),
        )  # fmt: skip
        assert self.child.stdout is not None
        self.stdout: IO[bytes] = self.child.stdout
        _widen(self.stdout)
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def ask(self, script: bytes, *, last: bool) -> None:
        """Writes a script; a child that is gone is noticed by the reader."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(script)
            self.child.stdin.flush()
            if last:
                self.child.stdin.close()

    def kill(self) -> None:
        """Ends our child and whatever it started, such as a proxy command; nothing over there."""
        if self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)

    def end(self) -> None:
        """Ends our child and closes its pipes."""
        self.kill()
        self._thread.join(LAST_WORDS_S / 5)
        with contextlib.suppress(BrokenPipeError), self.child:
            pass

    def _read(self) -> None:
        assert self.child.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while block := os.read(self.child.stderr.fileno(), 4096):
                self._kept += block
                del self._kept[:-STDERR_KEPT]

    def forget(self) -> None:
        """Drops what was said so far."""
        self._kept.clear()

    def lost(self, title: str) -> ConnectionLostError:
        """An error with what the child said last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(LAST_WORDS_S)
        self._thread.join(LAST_WORDS_S / 5)
        error = ConnectionLostError(title)
        error.status = self.child.returncode
        error.stderr = self._kept.decode("utf-8", "replace")
        error.message = quoting.printable(error.stderr)
        return error


def _widen(pipe: IO[bytes]) -> None:
    """Makes a pipe large, where the system allows it."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, PIPE_SIZE)
