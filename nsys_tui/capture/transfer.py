"""Moving one file's bytes from a channel to disk: a thread, a pipe, no event loop.

The child's stdout is read here and not by asyncio, so a screen stays live during a fetch; and not
written by the child itself, because a login shell may print a banner into the same stream.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

from nsys_tui.capture import quoting
from nsys_tui.capture.channel import LAST_WORDS_S, STDERR_KEPT, Channel
from nsys_tui.capture.failures import ConnectionLostError, FetchError
from nsys_tui.capture.supervisor import PREFIX, Request, parse_answer
from nsys_tui.units import format_bytes

if TYPE_CHECKING:
    from pathlib import Path

CHUNK: Final = 1 << 20
_SET_PIPE_SIZE: Final = 1031  # Linux's F_SETPIPE_SZ
_HEADER_LIMIT: Final = 1 << 20
_BEHIND_S: Final = 0.005
_FLUSH: Final = 32 << 20
_TRAILER_LIMIT: Final = 1 << 16
_SENT: Final = re.compile(rb"@@nt sent (\d+) (\d+) (\S*)\n@@nt end\n")


@dataclass(frozen=True)
class Sent:
    """The file over there when its last byte had gone: size, time, and hash if it was asked for."""

    size: int
    mtime: int
    digest: str


@dataclass
class Transfer:
    """One attempt to bring the rest of a file home.

    Attributes:
        done: bytes in the part file; read by others while the thread runs.
        digest: running hash of the part file, from its first byte.
        sent: what the far side said at the end; ``None`` when the file grew meanwhile.
    """

    channel: Channel
    request: Request
    part: Path
    hashing: bool = True
    done: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    sent: Sent | None = None
    _child: subprocess.Popen[bytes] | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _complete: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Ends the attempt; what has arrived stays in the part file."""
        self._stopped.set()
        if self._child is not None:
            _end(self._child)

    def run(self) -> None:
        """Appends to the part file all that is missing.

        Raises:
            ConnectionLostError: the sender ended early.
            FetchError: the file is gone over there, the local disk is full, or another process
                writes the same part file.
        """
        self.part.touch(mode=0o600)
        with open(self.part, "r+b", buffering=0) as file:
            _lock(file, self.part)
            self.done = file.seek(0, os.SEEK_END)
            with subprocess.Popen(
                self.channel.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
                env=None if self.channel.env is None else dict(self.channel.env),
            ) as child:  # fmt: skip
                self._child = child
                jobs = [self._flush, *([self._hash] if self.hashing else [])]
                threads = [threading.Thread(target=job, daemon=True) for job in jobs]
                for thread in threads:
                    thread.start()
                try:
                    self._receive(child, file)
                    self._complete.set()
                finally:
                    _end(child)
                    self._over.set()
                    for thread in threads:
                        thread.join()

    def _flush(self) -> None:
        """Has the disk write while the line delivers, so that little is left for the last sync."""
        flushed = self.done
        with open(self.part, "rb", buffering=0) as file, contextlib.suppress(OSError):
            while not self._over.wait(10 * _BEHIND_S):
                if self.done - flushed >= _FLUSH:
                    flushed = self.done
                    os.fdatasync(file.fileno())

    def _hash(self) -> None:
        """Hashes the part file behind the writer, from its first byte, out of the page cache."""
        buffer = memoryview(bytearray(CHUNK))
        with open(self.part, "rb", buffering=0) as file:
            while not self._over.is_set() or self._complete.is_set():
                complete = self._complete.is_set()
                ready = min(CHUNK, self.done - file.tell())
                if ready and (complete or ready == CHUNK):
                    self.digest.update(buffer[: file.readinto(buffer[:ready])])
                elif complete:
                    return
                else:
                    self._over.wait(_BEHIND_S)

    def _receive(self, child: subprocess.Popen[bytes], file: IO[bytes]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        stderr = _Tail(child)
        _widen(child.stdout)
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(quoting.to_bytes(self.channel.wrap(self.request.script)))
            child.stdin.close()
        promised, rest = self._header(child.stdout, stderr)
        stderr.forget()  # what a login shell says is no cause of a later end
        total = self.done + promised
        self._write(file, rest[:promised])
        if not self._splice(child.stdout, file, total):
            self._copy(child.stdout, file, total)
        if self.done != total:
            raise stderr.lost(f"{format_bytes(total - self.done)} are missing")
        self._trailer(rest[promised:], child.stdout)
        os.fsync(file.fileno())

    def _copy(self, stdout: IO[bytes], file: IO[bytes], total: int) -> None:
        buffer = memoryview(bytearray(CHUNK))
        while self.done < total and not self._stopped.is_set():
            count = os.readv(stdout.fileno(), [buffer[: total - self.done]])
            if count == 0:
                return
            self._write(file, buffer[:count])

    def _splice(self, stdout: IO[bytes], file: IO[bytes], total: int) -> bool:
        """Moves the bytes inside the kernel; false when that is not possible here."""
        try:
            while self.done < total and not self._stopped.is_set():
                count = os.splice(stdout.fileno(), file.fileno(), min(CHUNK, total - self.done))
                if count == 0:
                    break
                self.done += count
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise _disk_error(self.part, error) from error
            return False
        return True

    def _header(self, stdout: IO[bytes], stderr: _Tail) -> tuple[int, bytes]:
        """Passes over banners; returns the bytes promised and what came with the header."""
        head = b""
        mark = PREFIX + f"hello 1 {self.request.nonce}\n".encode()
        while len(head) < _HEADER_LIMIT:
            _, greeted, after = head.partition(mark)
            line, ended, rest = after.partition(b"\n")
            if greeted and ended:
                answer = parse_answer(line)
                if answer is not None and answer.key == "bytes":
                    return int(answer.value), rest
                said = quoting.printable(line.decode("utf-8", "replace"))
                raise FetchError("the file is gone over there", said)
            block = os.read(stdout.fileno(), 65536)
            if not block:
                break
            head += block
        raise stderr.lost("the connection ended before the file began")

    def _trailer(self, text: bytes, stdout: IO[bytes]) -> None:
        """Reads size and time of the file at the end of sending; a file that grew has none."""
        while len(text) < _TRAILER_LIMIT and (block := os.read(stdout.fileno(), 4096)):
            text += block
        if match := _SENT.fullmatch(text):
            self.sent = Sent(int(match[1]), int(match[2]), match[3].decode("ascii", "replace"))

    def _write(self, file: IO[bytes], data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            try:
                written = os.write(file.fileno(), view)
            except OSError as error:
                raise _disk_error(self.part, error) from error
            self.done += written
            view = view[written:]


def _widen(pipe: IO[bytes]) -> None:
    """Makes a pipe large, where the system allows it."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, CHUNK)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends our child and whatever it started, such as a proxy command; nothing over there."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


class _Tail:
    """Keeps the end of a child's stderr."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._child.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while block := os.read(self._child.stderr.fileno(), 4096):
                self._kept += block
                del self._kept[:-STDERR_KEPT]

    def forget(self) -> None:
        """Drops what was said so far."""
        self._kept.clear()

    def lost(self, title: str) -> ConnectionLostError:
        """An error with what the child said last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(LAST_WORDS_S)
        self._thread.join(LAST_WORDS_S / 5)
        error = ConnectionLostError(title)
        error.status = self._child.returncode
        error.stderr = self._kept.decode("utf-8", "replace")
        error.message = quoting.printable(error.stderr)
        return error


def _lock(file: IO[bytes], part: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise FetchError(
            f"{part}: another process is fetching this file", hint="wait until it has finished"
        ) from error


def _disk_error(part: Path, error: OSError) -> FetchError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FetchError(
            f"{part.parent}: the disk of this machine is full",
            "what has arrived is kept, and the fetch goes on from there",
            "make room, then attach to the capture again",
        )
    return FetchError(f"{part}: cannot be written", error.strerror or str(error))
