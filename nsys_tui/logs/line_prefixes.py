"""Who wrote a line: host, process, thread, device and time, from what stands before a message.

Heads repeat on almost every line, so they are parsed once each and remembered. A time makes every
line different: so stamps of the shapes that a block's samples show are read as arrays and cut out
before it is parsed. A stamp that is missed is no harm: ``Heads`` reads it where it stands, slower.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.logs.nccl.grammar import (
    HEADER,
    LONGEST_HEAD,
    ONLY_A_TIME,
    RANK_LABELS,
    STAMP,
    UNDATED,
)
from nsys_tui.model.arrays import Bool, Int64, UInt8

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
        number = self._index.get(key)
        if number is None:
            number = self._index[key] = len(self.seen)
            self.seen.append(Process(host.decode("utf-8", "replace"), int(pid)))
        return number

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
        heads = list(HEADER.finditer(text))
        if not heads:
            return Head(NO_PROCESS, -1, -1, "", 0, -1, NO_TIME, text, b"")
        first, last = heads[0], heads[-1]
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
            len(heads),
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


_SHORT_STAMP: Final = re.compile(rb"\b(\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d)")


def parse_own_stamp(text: str) -> int:
    """Time that a program put in its line: the last one, as a collector's stands before it.

    One without a year counts within a leap year, for distances alone.
    """
    data = text.encode()
    begin = end = 0
    for match in STAMP.finditer(data):
        begin, end = match.span()
    if short := _SHORT_STAMP.search(data, end):
        month, day, clock = short.groups()
        return parse_stamp(b"2000-%b-%b %b" % (month, day, clock))
    return parse_stamp(data[begin:])


@lru_cache(maxsize=1024)
def _seconds(text: bytes) -> int | None:
    year, month, day, hour, minute, second = map(int, _DIGITS.findall(text))
    midnight = _midnight(year, month, day)
    return None if midnight == NO_TIME else midnight + hour * 3600 + minute * 60 + second


_SAMPLES: Final = 96
_LONGEST_FRONT: Final = 400
"""Bytes of a line in which its stamp and header are looked for."""
_CLOSING: Final = re.compile(rb"[\])]?:? ")
_LONGEST_STAMP: Final = 64
_MICROS: Final = 16
"""Digits of microseconds since 1970 at most, until the year 2286."""
_ZERO, _NINE, _SPACE = ord("0"), ord("9"), ord(" ")
_MORE: Final = np.frombuffer(b"0123456789.,", np.uint8)
_CLOCK: Final = (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18)
"""Where a stamp has its digits: year, month, day, hour, minute, second."""


@dataclass(frozen=True, eq=False)
class Lines:
    """A block of lines without the stamps that were lifted off."""

    data: bytes
    starts: Int64
    ends: Int64
    time_ns: Int64
    """Time lifted off each line, ``NO_TIME`` without one."""
    source: bytes
    """The block as it was."""
    _source_starts: Int64
    _cut_at: Int64
    _cut: Int64

    def __len__(self) -> int:
        return len(self.starts)

    def whole(self, at: int, most: int) -> bytes:
        """A line as it was, of at most ``most`` bytes."""
        begin = int(self._source_starts[at])
        length = int(self.ends[at] - self.starts[at] + self._cut[at])
        return self.source[begin : begin + min(length, most)]

    def fills(self, at: int, length: int, most: int) -> bool:
        """Whether a message with its header filled a buffer; NCCL's own stamp counts with it."""
        if length < most - _LONGEST_STAMP:
            return False
        return length >= most or length + int(self._cut[at]) + 1 == most

    def with_stamp(self, at: int, text: bytes) -> bytes:
        """Text of a line with its stamp in front, if it had one."""
        if not self._cut[at]:
            return text
        begin = int(self._source_starts[at] + self._cut_at[at])
        return self.source[begin : begin + int(self._cut[at])] + b" " + text


def lift(data: bytes, starts: Int64, ends: Int64) -> Lines:
    """Cuts the stamps out of the lines of a block.

    Args:
        data: whole lines.
        starts: int64 offsets of the lines in ``data``.
        ends: int64 offsets of their line ends.
    """
    count = len(starts)
    time_ns = np.full(count, NO_TIME, np.int64)
    cut_at, cut = np.zeros(count, np.int64), np.zeros(count, np.int64)
    shapes = _shapes(data, starts, ends)
    if not shapes:
        return Lines(data, starts, ends, time_ns, data, starts, cut_at, cut)
    text = np.frombuffer(data, np.uint8)
    keep = np.ones(len(data), np.bool_)
    for shape in shapes:
        width = len(shape.pattern)
        rows = np.flatnonzero((cut == 0) & (starts + shape.offset + width < ends))
        rows = rows[shape.ends_before(text[starts[rows] + shape.offset + width])]
        columns = (starts[rows] + shape.offset)[:, None] + np.arange(width)
        window = text[columns]
        digit = (window >= _ZERO) & (window <= _NINE)
        same = (np.where(digit, _ZERO, window) == shape.template).all(axis=1)
        time_ns[rows[same]] = shape.times(window[same] - _ZERO)
        cut_at[rows[same]], cut[rows[same]] = shape.offset, width
        keep[columns[same]] = False
    removed = np.cumsum(cut)
    short = text[keep].tobytes()
    return Lines(short, starts - removed + cut, ends - removed, time_ns, data, starts, cut_at, cut)


@dataclass(frozen=True)
class _Shape:
    """A stamp as some lines have it: where it starts, and its text with every digit as 0."""

    offset: int
    pattern: bytes
    kind: str
    """``date``, ``micros`` (since 1970), or ``clock`` for one without a date, which is no time."""

    @property
    def template(self) -> UInt8:
        return np.frombuffer(self.pattern, np.uint8)

    def ends_before(self, following: UInt8) -> Bool:
        """Whether bytes that follow a stamp are no more of it, such as a fraction of a second."""
        if self.kind == "date":
            return np.equal(following, _SPACE)
        return ~np.isin(following, _MORE)

    def times(self, digits: UInt8) -> Int64:
        """ns since 1970 of rows that have the shape, from the values of their digits."""
        if self.kind == "clock":
            return np.full(len(digits), NO_TIME, np.int64)
        if self.kind == "micros":
            micros = _value(digits[:, : len(self.pattern) - 1])
            return np.where(micros <= LATEST_MICROS, micros * 1000, NO_TIME)
        stamp = STAMP.search(self.pattern)
        if stamp is None:
            raise ValueError(f"no date in {self.pattern!r}")
        seconds = _seconds_of(digits[:, [stamp.start() + place for place in _CLOCK]])
        fraction = digits[:, slice(*stamp.span(2))]
        ns = _value(fraction) * 10 ** (9 - fraction.shape[1])
        zone = stamp[3] or b"Z"
        if zone != b"Z":
            begin, end = stamp.span(3)
            offset = _value(digits[:, begin + 1 : begin + 3]) * 3600
            offset += _value(digits[:, end - 2 : end]) * 60
            seconds = seconds + np.where(
                seconds == NO_TIME, 0, offset * (-1 if zone[0] == 43 else 1)
            )
        return np.where(seconds == NO_TIME, NO_TIME, seconds * 10**9 + ns)


def _shapes(data: bytes, starts: Int64, ends: Int64) -> dict[_Shape, None]:
    """Shapes of stamps in some of the lines, first seen first."""
    shapes: dict[_Shape, None] = {}
    step = max(1, len(starts) // _SAMPLES)
    for begin, end in zip(starts[::step].tolist(), ends[::step].tolist(), strict=True):
        front = data[begin : min(end, begin + _LONGEST_FRONT)]
        if (header := HEADER.search(front)) and (shape := _shape(front, header)):
            shapes[shape] = None
    return shapes


def _shape(front: bytes, header: re.Match[bytes]) -> _Shape | None:
    if header["micros"]:
        begin, end = header.span("micros")
        return _cut(front, begin, end + 1, "micros") if end - begin <= _MICROS else None
    if stamp := STAMP.search(front, 0, header.start()):
        closing = _CLOSING.fullmatch(front, stamp.end(), header.start())
        if closing is None:
            return None
        opened = stamp.start() > 0 and front[stamp.start() - 1 : stamp.start()] in (b"[", b"(")
        # One space stays, so that the header still does not begin the line.
        return _cut(front, stamp.start() - opened, closing.end() - 1, "date")
    if clock := UNDATED.search(front, 0, header.start()):
        return _cut(front, *clock.span(), "clock")
    return None


def _cut(front: bytes, begin: int, end: int, kind: str) -> _Shape:
    return _Shape(begin, re.sub(rb"\d", b"0", front[begin:end]), kind)


def _value(digits: UInt8) -> Int64:
    """The number that each row of digits is."""
    powers = 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)
    made: Int64 = digits.astype(np.int64) @ powers
    return made


def _seconds_of(digits: UInt8) -> Int64:
    """Seconds since 1970 of rows of yyyymmddhhmmss; ``NO_TIME`` for what is no date."""
    dates, which = np.unique(_value(digits[:, :8]), return_inverse=True)
    days = np.array(
        [_midnight(d // 10_000, d // 100 % 100, d % 100) for d in dates.tolist()], np.int64
    )[which]
    hours, minutes, seconds = (_value(digits[:, at : at + 2]) for at in (8, 10, 12))
    return np.where(days == NO_TIME, NO_TIME, days + hours * 3600 + minutes * 60 + seconds)


def _midnight(year: int, month: int, day: int) -> int:
    if not (1970 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= 31):
        return NO_TIME
    return calendar.timegm((year, month, day, 0, 0, 0))
