"""Running the supervisor somewhere: a child process whose stdin is a script.

A :class:`Channel` knows how to get a POSIX shell at the target (this machine, ssh, a container, a
pod, or one inside the other) and nothing about captures. Limits in time are ``asyncio.timeout``:
``asyncio.wait_for`` of Python 3.11 loses a cancellation that comes together with the answer. A
:class:`Sender` is such a child for files, outside of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Protocol

from nsys_tui.capture import quoting
from nsys_tui.capture.failures import CaptureError, ConnectionLostError
from nsys_tui.capture.supervisor import Answer, Request, is_hello, parse_answer

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


_SOON_S: Final = 0.005
LINE_LIMIT: Final = 1 << 20
Wrap = Callable[[str], str]


@dataclass
class Channel:
    """A way to a shell.

    Attributes:
        argv: the child; it ends in a POSIX shell that reads a script from stdin.
        wrap: turns the script for the innermost shell into the one that the child reads.
        env: environment of the child; ``None`` = that of this process.
        standing: whether a child stays for the next verb, where each costs a log-in.
        senders: children that stay for the next transfer.
    """

    argv: Sequence[str]
    wrap: Wrap = field(default=lambda script: script)
    env: Mapping[str, str] | None = None
    standing: bool = False
    senders: list[Sender] = field(default_factory=list)
    _idle: list[Stream] = field(default_factory=list, init=False)

    async def ask(self, request: Request, timeout_s: float = 60) -> list[Answer]:
        """Sends one verb and reads its whole answer.

        Raises:
            ConnectionLostError: the answer did not come, or not to its end, or not in time; the
                message is what the child said last.
        """
        try:
            async with asyncio.timeout(timeout_s), self.open(request) as stream:
                return [answer async for answer in stream.answers()]
        except TimeoutError as error:
            raise ConnectionLostError(
                f"no answer within {timeout_s:.0f} s", hint="try again, or check the machine"
            ) from error

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Starts a verb; a child that does not stay is ended when the block is left."""
        stream = await self._take()
        stream.begin(request.nonce, self.text(request), last=not self.standing)
        try:
            yield stream
        finally:
            if self.standing and stream.ended:
                self._idle.append(stream)
            else:
                await stream.close()

    def expect_files(self) -> None:
        """Logs in for the next transfer while something else goes on."""
        if self.standing and not self.senders:
            self.senders.append(Sender(self.argv, self.env))

    def take_senders(self) -> Iterator[Sender]:
        """Children that stayed for the next transfer; any thread may ask, each is given once."""
        with contextlib.suppress(IndexError):
            while True:
                yield self.senders.pop()

    def text(self, request: Request) -> bytes:
        """What the child reads: it ends when the verb fails, so that its silence is noticed."""
        return quoting.to_bytes(f"(\n{self.wrap(request.script)}\n) || exit\n")

    async def _take(self) -> Stream:
        """A child that stayed, or a new one."""
        while self._idle:
            stream = self._idle.pop()
            if stream.alive:
                return stream
            await stream.close()
        process = await asyncio.create_subprocess_exec(
            *self.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=None if self.env is None else dict(self.env),
            limit=LINE_LIMIT,
        )
        return Stream(process)

    async def close(self) -> None:
        """Ends the children that stayed; those still at work end when they have finished."""
        self.standing = False
        idle, self._idle = self._idle, []
        ending = [asyncio.to_thread(sender.end) for sender in self.take_senders()]
        await asyncio.gather(*ending, *(stream.close() for stream in idle))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends our child only; what runs at the target is not touched by that.

    ``os.killpg`` and not ``process.terminate``, which polls: before Python 3.12 that takes the exit
    status away from asyncio's own watcher, and the status is then reported as 255.
    """
    for signal_number, patience_s in ((None, 0.1), (signal.SIGTERM, 2), (signal.SIGKILL, 10)):
        if process.returncode is not None:
            return
        if signal_number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal_number)
        for _ in range(round(patience_s / _SOON_S)):  # wait() also waits for its pipes' end
            if process.returncode is not None:
                return
            await asyncio.sleep(_SOON_S)


def release(process: asyncio.subprocess.Process) -> None:
    """Closes our ends of the pipes; an ssh master may hold the others for a minute more."""
    process._transport.close()  # type: ignore[attr-defined]


class Stream:
    """A child and the answers of its present verb as they arrive."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._nonce = ""
        self.ended = False
        """Whether the whole answer was read."""
        self._stderr = bytearray()
        self._stderr_ended = asyncio.Event()
        self._errors = asyncio.create_task(self._drain_stderr())

    @property
    def alive(self) -> bool:
        """Whether the child can be asked again."""
        return self._process.returncode is None

    def begin(self, nonce: str, script: bytes, *, last: bool) -> None:
        """Writes a script; a child that is gone is noticed by the reader."""
        assert self._process.stdin is not None
        self._nonce, self.ended = nonce, False
        self._process.stdin.write(script)
        if last:
            self._process.stdin.close()

    async def close(self) -> None:
        """Ends the child."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await _end(self._process)
        self._errors.cancel()
        await asyncio.gather(self._errors, return_exceptions=True)
        release(self._process)

    async def _drain_stderr(self) -> None:
        """Keeps the end of what the child complains about."""
        assert self._process.stderr is not None
        while block := await self._process.stderr.read(4096):
            self._stderr += block
            del self._stderr[:-STDERR_KEPT]
        self._stderr_ended.set()

    async def answers(self) -> AsyncIterator[Answer]:
        """Answers up to ``end``.

        Raises:
            ConnectionLostError: the output ended before that.
        """
        stdout = self._process.stdout
        assert stdout is not None
        greeted = False
        while True:
            try:
                line = await stdout.readline()
            except ValueError as error:
                raise ConnectionLostError("an answer without end", str(error)) from error
            if not line:
                raise await self._lost()
            if not greeted:
                greeted = is_hello(line, self._nonce)
                if greeted:
                    self._stderr.clear()  # what a login shell says is no cause of a later end
                continue
            answer = parse_answer(line)
            if answer is None:
                continue
            if answer.key == "end":
                self.ended = True
                return
            yield answer

    async def data(self, count: int) -> bytes:
        """Exactly ``count`` bytes that follow a ``data`` answer."""
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.readexactly(count)
        except asyncio.IncompleteReadError as error:
            raise await self._lost() from error

    async def _lost(self) -> ConnectionLostError:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._process.wait()
        with contextlib.suppress(TimeoutError):  # a master connection may hold it open
            async with asyncio.timeout(LAST_WORDS_S / 5):
                await self._stderr_ended.wait()
        text = quoting.printable(self._stderr.decode("utf-8", "replace").replace("\r", ""), 4000)
        error = ConnectionLostError("the connection ended", text)
        error.status = self._process.returncode
        error.stderr = self._stderr.decode("utf-8", "replace")
        return error


def local_channel() -> Channel:
    """A shell on this machine."""
    return Channel(["sh", "-s"], env=dict(os.environ))


def inner(argv: Sequence[str], outer: Wrap | None = None) -> Wrap:
    """A wrap that hands the script to another program, which reads it from its stdin.

    The outer shell's own stdin cannot be shared, because shells read ahead.
    """

    def wrap(script: str) -> str:
        handed = (
            f"nt_script={quoting.word(script)}\n"
            f"printf '%s\\n' \"$nt_script\" | {quoting.words(argv)}\n"
        )
        return outer(handed) if outer else handed

    return wrap


class Connector(Protocol):
    """Makes channels to one target."""

    async def connect(self) -> Channel:
        """A channel that answers; asks the user where the target asks.

        Raises:
            CaptureError: with the cause and the next step.
        """

    def explain(self, error: ConnectionLostError) -> CaptureError:
        """A lost connection in the words of this kind of target."""

    async def close(self) -> None:
        """Gives back whatever connecting took."""
