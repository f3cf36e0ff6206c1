"""Bringing one file home: resumed where it ended, compared by hash, and never half in place."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.capture.events import Progress, Remark
from nsys_tui.capture.failures import ConnectionLostError, FetchError
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.supervisor import Answer, request
from nsys_tui.capture.transport.reconnecting import Link
from nsys_tui.capture.transport.transfer import Sent, Transfer
from nsys_tui.units import format_bytes

MARGIN: Final = 64 << 20
_TICK_S: Final = 0.25
_RATE_S: Final = 5.0
_SILENCE_S: Final = 60.0
"""After so long without a byte the connection counts as dead: not every one has keep-alives."""
_ALTERED: Final = "what arrived is not what is over there; it is fetched once more"


@dataclass(frozen=True)
class RemoteFile:
    """A file over there as it was last seen: path, bytes, seconds since the epoch."""

    path: str
    size: int
    mtime: int


def read_file_answer(answer: Answer) -> RemoteFile | None:
    """Reads ``file SIZE MTIME PATH``; ``None`` for anything else or a path that is none."""
    if answer.key != "file":
        return None
    size, mtime, path = (*answer.value.split(" ", 2), "", "")[:3]
    if not size.isdigit() or not path.startswith("/"):
        return None
    return RemoteFile(path, int(size), int(mtime) if mtime.isdigit() else 0)


def files_in(answers: Iterable[Answer]) -> list[RemoteFile]:
    """The files that an answer tells of."""
    return [file for file in map(read_file_answer, answers) if file is not None]


class Fetch:
    """One file on its way, over as many connections as it takes.

    Args:
        link: the line to where the file is.
        values: what every verb needs there.
        file: the file as the far side described it.
        target: where it goes; the parts lie beside it until it is whole.
        progress: told four times a second, and of a copy that had to be fetched again.
    """

    def __init__(
        self,
        link: Link,
        values: Mapping[str, str],
        file: RemoteFile,
        target: Path,
        progress: Callable[[Progress | Remark], None],
    ) -> None:
        self.file = file
        self._link = link
        self._values = dict(values) | {"PATHS": file.path, "SUM": "yes"}
        self._target = target
        self._part = target.with_name(target.name + ".part")
        self._bad = target.with_name(target.name + ".bad")
        self._seen = target.with_name(target.name + ".part.json")
        self._progress = progress

    async def run(self) -> str:
        """Brings the file home; returns its hash (empty when the far side has no hash).

        Raises:
            FetchError: it is gone, there is no room here, or it differs twice.
            CaptureError: the connection cannot be made again.
        """
        for attempt in (1, 2):
            transfer = await self._transfer()
            mine, sent = transfer.digest.hexdigest(), transfer.sent
            if sent is not None and self._arrived(mine, sent):
                self._part.replace(self._target)
                self._seen.unlink(missing_ok=True)
                self._bad.unlink(missing_ok=True)
                return sent.digest
            self._part.replace(self._bad)
            self._seen.unlink(missing_ok=True)
            if attempt == 1:
                self._progress(Remark("warning", f"{self._target.name}: {_ALTERED}"))
                await self._look_again()
        raise FetchError(
            f"{printable(self.file.path)} does not arrive as it is over there",
            f"there {sent.digest if sent else 'it changes all the time'}, here {mine}",
            f"the last copy is kept as {self._bad}",
        )

    def _arrived(self, mine: str, sent: Sent) -> bool:
        """Whether this is the file over there: by hash, or without one by size and time."""
        if sent.digest and not sent.digest.startswith("cksum"):
            return mine == sent.digest
        return (sent.size, sent.mtime) == (self.file.size, self.file.mtime)

    async def _transfer(self) -> Transfer:
        while True:
            self._prepare()
            request_ = request("send", **(self._values | {"OFF": str(self._size())}))
            try:
                channel = await self._link.channel()
                transfer = Transfer(channel, request_, self._part)
                await self._watch(transfer)
            except ConnectionLostError as error:
                await self._link.lost(error)
            else:
                self._link.answered()
                return transfer

    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _prepare(self) -> None:
        """Keeps a part that belongs to this very file, and looks for room for the rest."""
        self._target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = {"path": self.file.path, "size": self.file.size, "mtime": self.file.mtime}
        same = False
        with contextlib.suppress(OSError, ValueError):
            same = json.loads(self._seen.read_text()) == seen
        if not same or self._size() > self.file.size:
            self._part.unlink(missing_ok=True)
            self._seen.write_text(json.dumps(seen))
        missing = self.file.size - self._size()
        room = os.statvfs(self._target.parent)
        free = room.f_bavail * room.f_frsize
        if free < missing * 1.05 + MARGIN:
            raise FetchError(
                f"{self._target.parent}: no room for the report",
                f"it needs {format_bytes(missing)} and some, {format_bytes(free)} are free",
                "make room, then attach to the capture again; the report stays where it is",
            )

    async def _watch(self, transfer: Transfer) -> None:
        """Tells the progress while the thread works, and ends it when nothing comes any more."""
        work = asyncio.create_task(asyncio.to_thread(transfer.run))
        points: deque[tuple[float, int]] = deque()
        heard = time.monotonic(), -1
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=_TICK_S)
                points.append((time.monotonic(), transfer.done))
                heard = heard if heard[1] == transfer.done else points[-1]
                while points[-1][0] - points[0][0] > _RATE_S:
                    points.popleft()
                self._tell(points)
                if transfer.done < self.file.size and points[-1][0] - heard[0] > _SILENCE_S:
                    transfer.stop()
            work.result()
        finally:
            if not work.done():
                transfer.stop()
                with contextlib.suppress(Exception):
                    await work

    def _tell(self, points: deque[tuple[float, int]]) -> None:
        (start, before), (end, done) = points[0], points[-1]
        rate = (done - before) / (end - start) if end > start else 0.0
        left = (self.file.size - done) / rate if rate > 0 else None
        self._progress(Progress(self._target.name, done, self.file.size, rate, left))

    async def _look_again(self) -> None:
        """Takes note of the file as it is over there now."""
        answers = await self._link.ask("files", self._values)
        if not (now := files_in(answers)):
            raise FetchError(f"{printable(self.file.path)} is gone over there")
        self.file = now[0]
