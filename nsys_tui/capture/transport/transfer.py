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
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from nsys_tui.capture import quoting
from nsys_tui.capture.failures import FetchError
from nsys_tui.capture.supervisor import PREFIX, Request, parse_answer
from nsys_tui.capture.transport.channel import PIPE_SIZE, Channel, Sender
from nsys_tui.units import format_bytes

CHUNK: Final = PIPE_SIZE
_HEADER_LIMIT: Final = 1 << 20
_BEHIND_S: Final = 0.005
_FLUSH: Final = 32 << 20
_TRAILER_LIMIT: Final = 1 << 16
_SENT: Final = re.compile(rb"@@nt sent (\d+) (\d+) (\S*)\n")
_END: Final = b"@@nt end\n"


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
    done: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    sent: Sent | None = None
    _sender: Sender | None = None
    _ready: bool = False
    _stopped: threading.Event = field(default_factory=threading.Event)
    _complete: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Ends the attempt; what has arrived stays in the part file."""
        self._stopped.set()
        if self._sender is not None:
            self._sender.kill()

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
            self._sender = sender = self._take_sender()
            jobs = (self._flush, self._hash)
            threads = [threading.Thread(target=job, daemon=True) for job in jobs]
            for thread in threads:
                thread.start()
            try:
                self._receive(sender, file)
                self._complete.set()
            finally:
                if self._ready and self.channel.standing:
                    self.channel.senders.append(sender)
                else:
                    sender.end()
                self._over.set()
                for thread in threads:
                    thread.join()

    def _take_sender(self) -> Sender:
        """A child that stayed from the last transfer, or a new one."""
        for sender in self.channel.take_senders():
            if sender.child.poll() is None:
                return sender
            sender.end()
        return Sender(self.channel.argv, self.channel.env)

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

    def _receive(self, sender: Sender, file: IO[bytes]) -> None:
        sender.ask(self.channel.text(self.request), last=not self.channel.standing)
        promised, rest = self._header(sender)
        sender.forget()  # what a login shell says is no cause of a later end
        total = self.done + promised
        self._write(file, rest[:promised])
        if not self._splice(sender.stdout, file, total):
            self._copy(sender.stdout, file, total)
        if self.done != total:
            raise sender.lost(f"{format_bytes(total - self.done)} are missing")
        self._trailer(rest[promised:], sender.stdout)
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

    def _header(self, sender: Sender) -> tuple[int, bytes]:
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
            block = os.read(sender.stdout.fileno(), 65536)
            if not block:
                break
            head += block
        raise sender.lost("the connection ended before the file began")

    def _trailer(self, text: bytes, stdout: IO[bytes]) -> None:
        """Reads size and time of the file at the end of sending; a file that grew has none."""
        while (
            not text.endswith(_END)
            and len(text) < _TRAILER_LIMIT
            and (block := os.read(stdout.fileno(), 4096))
        ):
            text += block
        self._ready = text.endswith(_END)
        if match := _SENT.fullmatch(text.removesuffix(_END)):
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
