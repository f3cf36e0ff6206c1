"""Watching a job from the first byte of its log to its end, across any number of connections.

So are short jobs of our own beside a capture (export, import); they survive a cut as it does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.capture import stop
from nsys_tui.capture.events import LogChanged, LogUpdate
from nsys_tui.capture.failures import ConnectionLostError, KeepError
from nsys_tui.capture.job import Job
from nsys_tui.capture.launchers import QueueState
from nsys_tui.capture.output import OutputParser
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import State
from nsys_tui.capture.supervisor import Answer, keeper
from nsys_tui.capture.transport.channel import Stream
from nsys_tui.capture.transport.fetch import RemoteFile, files_in

SILENCE_S: Final = 12.0
"""Three heartbeats of the supervisor, and some."""
_BLOCK: Final = 1 << 20
IDLE_S: Final = 30.0
"""Without a word, processor time and program for so long, nsys hangs."""
MUTE_S: Final = 180.0
"""So it does without a word and program, whatever it computes."""


_AT: Final = {"export": " exporting", "import": " importing"}


@dataclass(frozen=True)
class Outcome:
    """How a job ended: ``exit`` with a status, ``lost``, ``absent`` or ``stillborn``."""

    word: str
    status: int | None = None
    queue: QueueState | None = None


class Follower:
    """Follows one job; what was followed before is read from the local log first.

    A hanging nsys is ended where that loses nothing: in a job of ours (an export, which has a
    name), and with ``once_more`` as long as neither a word nor a program was seen.

    Args:
        job: the job.
        name: of another job of the same capture.
        start: what starts that one, in the request that follows it and looks for its files.
        once_more: whether it may be started again when nsys hangs.
    """

    def __init__(
        self,
        job: Job,
        name: str = "",
        start: Mapping[str, str] | None = None,
        *,
        once_more: bool = False,
    ) -> None:
        self._job = job
        self._name = name
        self._start = start
        self.files: list[RemoteFile] = []
        """Files of ``start`` that were there at the end."""
        self._ours = bool(name) or once_more
        self.parser = OutputParser()
        self.last_words = ""
        """What a job of ours (an export) said last; it has no log on the screen."""
        self._path: Path | None = None if name else job.store.log_path(job.record.id)
        self._offset = 0
        self._kept = 0
        self._queue: QueueState | None = None
        self._ticks = self._stopped = 0
        self._idle = self._mute = time.monotonic()
        self.gave_up = False
        """Whether a hanging nsys was ended, so that it may be started again."""

    async def run(self) -> Outcome:
        """Follows to the end of the job, reconnecting as often as it takes."""
        self._read_local_log()
        self._idle = self._mute = time.monotonic()
        self._job.hangs = False
        while True:
            try:
                values = self._job.values(self._name) | {"OFF": str(self._offset)}
                values["ONCE"] = "yes" if self._ours and not self._name else ""
                verb = "whole" if self._start else "follow"
                async with self._job.link.open(verb, values | dict(self._start or {})) as stream:
                    return await self._watch(stream)
            except ConnectionLostError as error:
                await self._job.link.lost(error)

    def _read_local_log(self) -> None:
        if self._path is None or not self._path.exists():
            return
        with self._path.open("rb") as file:
            while block := file.read(_BLOCK):
                self._show(self.parser.feed(block))
                self._kept += len(block)
        self._offset = self._kept + self._job.record.log_gap

    async def _watch(self, stream: Stream) -> Outcome:
        answers = stream.answers()
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    answer = await anext(answers)
            except TimeoutError as error:
                raise ConnectionLostError("no sign of life", f"for {SILENCE_S:.0f} s") from error
            except StopAsyncIteration:
                raise ConnectionLostError("the answer ended early") from None
            self._job.link.answered()
            if answer.key == "state":
                self.files = await _files(answers)
                return self._ended(answer.value)
            await self._take(answer, stream)

    async def _take(self, answer: Answer, stream: Stream) -> None:
        if answer.key == "data":
            offset, _, count = answer.value.partition(" ")
            if not count.isdigit() or int(offset) != self._offset or int(count) > _BLOCK:
                raise ConnectionLostError("the log does not continue where it ended", answer.value)
            self._keep(await stream.data(int(count)))
        elif answer.key == "gap":
            missed = int(answer.value.split()[1])
            self._offset += missed
            self._job.update(log_gap=self._job.record.log_gap + missed)
            self._show([LogUpdate(f"[{missed} bytes of output were not kept]")])
        elif answer.key == "queue":
            self._queued(printable(answer.value))
        elif answer.key == "began":
            self._ours = False
        elif answer.key == "still":
            await self._judge(*map(int, answer.value.split()))
        self._tell()

    async def _judge(self, ticks: int, others: int, stopped: int) -> None:
        """Notices that nsys hangs: its own processes alone are left, and nothing comes of them.

        One that a signal has stopped is told at the second look: nsys itself may stop for a moment.
        """
        if stopped and stopped == self._stopped:
            said = f"nsys is stopped by a signal such as SIGSTOP: its process {stopped}"
            self._job.remark("warning", said, f"kill -CONT {stopped} there lets it go on")
        self._stopped = stopped
        now = time.monotonic()
        if others or ticks > self._ticks + 1:
            self._ticks, self._idle = ticks, now
        if others:
            self._mute = now
            self._ours = bool(self._name)
            return
        mute = now - max(self._mute, self._job.growth)
        quiet = min(mute, now - self._idle)
        if self._job.hangs or (quiet < IDLE_S and mute < MUTE_S):
            return
        self._job.hangs = True
        idle, importing = quiet >= IDLE_S, self.parser.importing
        lacks = f"{quiet:.0f} s without a word or processor time"
        if not idle:
            lacks = f"{mute:.0f} s without a word, and its program does not run"
        said = f"nsys hangs{_AT.get(self._name.rpartition('-')[2][:6], '')}: {lacks}"
        if self._ours:
            self.gave_up = True
            self._job.remark("note", said, "it is ended, and started once more")
            await self._job.link.ask("signal", self._job.values(self._name) | {"SIG": "KILL"})
        elif idle and importing and await stop.end_importer(self._job):
            self._job.remark("warning", said, "its importer is ended, and started once more")
        else:
            wait = "" if idle or not importing else "a large report may take longer; else "
            again = self._job.again
            self._job.remark("warning", said, f"{wait}stop it, which ends it; then {again}")

    def _keep(self, data: bytes) -> None:
        """Appends to the local log up to its limit; what is beyond is counted, and still read."""
        if self._path is not None:
            room = max(0, self._job.settings.log_limit - self._kept)
            try:
                self._path.touch(mode=0o600)
                with self._path.open("ab") as file:
                    file.write(data[:room])
            except OSError as error:
                raise KeepError(
                    f"{self._path}: cannot be written",
                    error.strerror or str(error),
                    "make room, then attach again; the job goes on meanwhile",
                ) from error
            self._kept += min(room, len(data))
            if room < len(data):
                self._job.update(log_gap=self._job.record.log_gap + len(data) - room)
        self._offset += len(data)
        self._job.growth = time.monotonic()
        self._job.hangs = False
        self._ours = bool(self._name)
        self._show(self.parser.feed(data))

    def _show(self, updates: list[LogUpdate]) -> None:
        if self._name:
            self.last_words = next(
                (u.text.strip() for u in reversed(updates) if u.text), self.last_words
            )
        elif updates:
            self._job.emit(LogChanged(tuple(updates)))

    def _queued(self, line: str) -> None:
        self._queue = state = self._job.plan.target.launcher.read_queue(line)
        if state.job and state.job != self._job.record.slurm_job:
            self._job.update(slurm_job=state.job)

    def _tell(self) -> None:
        if self._name:
            step = self.parser.step
            state = State.IMPORTING if self._name.endswith("import") else State.EXPORTING
            self._job.reach(state, f"{step[2]}%" if step else "")
            return
        for note in self.parser.notes:
            self._job.remark(note.severity, note.text, note.remedy)
        if self._queue is not None and self._queue.queued:
            self._job.reach(State.QUEUED, self._queue.words)
        elif self.parser.importing:
            if self._job.plan.target.remote:
                self._job.link.expect_files()
            step = self.parser.step
            detail = (
                f"{step[2]}%" + (f" of step {step[0]}/{step[1]}" if step[1] > 1 else "")
                if step
                else ""
            )
            self._job.reach(State.IMPORTING, detail)
        else:
            node = self._queue.nodes if self._queue is not None else ""
            self._job.reach(State.RUNNING, f"on {node}" if node else "")

    def _ended(self, value: str) -> Outcome:
        self._show(self.parser.close())
        word, _, status = value.partition(" ")
        return Outcome(word, int(status) if status.isdigit() else None, self._queue)


async def _files(answers: AsyncIterator[Answer]) -> list[RemoteFile]:
    try:
        async with asyncio.timeout(SILENCE_S):
            return files_in([answer async for answer in answers])
    except TimeoutError as error:
        raise ConnectionLostError("no sign of life", f"for {SILENCE_S:.0f} s") from error


async def run_own(job: Job, name: str, script: str, output: str) -> tuple[RemoteFile | None, str]:
    """Runs a script over there, once more if it hangs.

    Args:
        job: the capture that it belongs to.
        name: the job's id.
        script: its ``run.sh``.
        output: the file that it makes.

    Returns:
        The file, if the script ended well and it holds anything (of a full disk nsys's export
        makes an empty one, and ends with 0), and what was said last, without nsys's tags.
    """
    start = {"RUN": script, "WRAP": keeper(), "OWNER": name, "ANYWAY": "yes"}
    for _ in range(2):
        follower = Follower(job, name, start | {"PATHS": output})
        outcome = await follower.run()
        if not follower.gave_up:
            break
        await stop.clear(job, name)
    made = next((file for file in follower.files if file.size), None)
    return made if outcome.status == 0 else None, follower.last_words.rpartition("*] = ")[2]
