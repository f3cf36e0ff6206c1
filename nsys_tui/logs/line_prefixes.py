"""Who wrote a line: host, process, thread, device and time, from what stands before a message.

Heads repeat on almost every line, so they are parsed once each and remembered.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from nsys_tui.logs.grammar import HEADER, LONGEST_HEAD, ONLY_A_TIME, RANK_LABELS, STAMP

NO_TIME: Final = -(2**63)
NO_PROCESS: Final = -1
_REMEMBERED: Final = 1 << 16
LATEST_MICROS: Final = 2**62 // 1000
"""Microseconds since 1970 beyond this are no time."""
_DIGITS: Final = re.compile(rb"\d+")


class Head(NamedTuple):
    """What stands before a message."""

    process: int
    """Index into ``Processes.seen``, or ``NO_PROCESS`` when no header was found."""
    thread: int
    device: int
    """The calling thread's current CUDA device, which is not the communicator's; -1 if absent."""
    level: str
    headers: int
    """Whole headers in the text; more than one means a torn line."""
    column: int
    """Where the first header starts."""
    time_ns: int
    """Wall clock in ns since 1970 as printed, without a zone's help; ``NO_TIME`` if absent."""
    text: bytes
    """What follows the last header: the message, or the operation of a COLL line."""
    before: bytes
    """What stands before the first header."""


@dataclass(slots=True)
class Process:
    """A process as its headers name it; hosts are corrected at the end of reading."""

    host: str
    pid: int
    label_rank: int = -1
    """Rank that a launcher puts before its lines."""
    clean: bool = False
    """Whether a header of it ever began a line."""
    lines: int = 0


class Processes:
    """All processes of the logs that are read together."""

    def __init__(self) -> None:
        self.seen: list[Process] = []
        self._index: dict[tuple[bytes, bytes], int] = {}

    def index(self, host: bytes, pid: bytes) -> int:
        """Index of a process, new or known."""
        key = (host, pid)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.seen)
            self.seen.append(Process(host.decode("utf-8", "replace"), int(pid)))
        return found

    def unify(self) -> list[int]:
        """Drops processes that do not exist, and says which one each really is.

        Cut text glued before a host (``nrc0b5`` for ``c0b5``) makes a process that does not exist:
        its host ends in the host of another process with the same pid, or in one that began lines.
        """
        hosts = {process.host for process in self.seen if process.clean}
        by_key = {(process.host, process.pid): i for i, process in enumerate(self.seen)}
        result = []
        for i, process in enumerate(self.seen):
            result.append(i)
            for start in range(1, len(process.host)):
                host = process.host[start:]
                other = by_key.get((host, process.pid))
                if other is not None and self.seen[other].lines > process.lines:
                    result[i] = other
                    break
                if host in hosts and not process.clean:
                    result[i] = by_key.setdefault((host, process.pid), i)
                    process.host = host
                    break
        real = sorted(set(result))
        self.seen = [self.seen[i] for i in real]
        position = {old: new for new, old in enumerate(real)}
        return [position[i] for i in result]


class Heads:
    """Parses heads of one file and remembers them."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._known: dict[bytes, Head] = {}

    def __call__(self, text: bytes) -> Head:
        """The head in ``text``, which ends where the message (or its body) starts."""
        text = text[-LONGEST_HEAD:]
        head = self._known.get(text)
        if head is not None:
            return head
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        head = self._known[text] = self._parse(text)
        return head

    def _parse(self, text: bytes) -> Head:
        found = list(HEADER.finditer(text))
        if not found:
            return Head(NO_PROCESS, -1, -1, "", 0, -1, NO_TIME, text, b"")
        first, last = found[0], found[-1]
        index = self._processes.index(last["host"], last["pid"])
        process = self._processes.seen[index]
        before = text[: first.start()]
        process.clean |= last is first and ONLY_A_TIME.fullmatch(before) is not None
        labels = (label.search(before) for label in RANK_LABELS)
        if last is first and (label := next(filter(None, labels), None)):
            process.label_rank = int(label[1])
        return Head(
            index,
            int(last["tid"]),
            int(last["dev"]) if last["dev"] else -1,
            last["level"].decode(),
            len(found),
            first.start(),
            _micros_ns(last["micros"]) if last["micros"] else parse_stamp(before),
            text[last.end() :],
            before,
        )


def _micros_ns(digits: bytes) -> int:
    """Microseconds since 1970 as ns; ``NO_TIME`` where they are too many to be a time."""
    value = int(digits)
    return value * 1000 if value <= LATEST_MICROS else NO_TIME


def parse_stamp(text: bytes) -> int:
    """Wall-clock time in ``text`` as ns since 1970 or ``NO_TIME``; a printed zone is applied."""
    match = STAMP.search(text)
    seconds = _seconds(match[1]) if match else None
    if match is None or seconds is None:
        return NO_TIME
    zone = match[3]
    if zone and zone != b"Z":
        digits = zone[1:].replace(b":", b"")
        offset = int(digits[:2]) * 3600 + int(digits[2:]) * 60
        seconds -= offset if zone[:1] == b"+" else -offset
    return seconds * 1_000_000_000 + int((match[2] or b"0").ljust(9, b"0"))


@lru_cache(maxsize=1024)
def _seconds(text: bytes) -> int | None:
    year, month, day, hour, minute, second = (int(part) for part in _DIGITS.findall(text))
    if not (1970 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    return calendar.timegm((year, month, day, hour, minute, second))
