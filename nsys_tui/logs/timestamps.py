"""Times in front of NCCL's lines, lifted off a whole block at once.

A stamp makes every line different, and what repeats is what the rest of this room is fast at. So
stamps of the shapes that a block's samples show are read as arrays and cut out before it is parsed.
A stamp that is missed is no harm: ``heads`` reads it where it stands, only slower.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.logs.grammar import HEADER, STAMP, UNDATED
from nsys_tui.logs.line_prefixes import LATEST_MICROS, NO_TIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    """Time lifted off each line, ``NO_TIME`` without one."""
    source: bytes
    """The block as it was."""
    _source_starts: NDArray[np.int64]
    _cut_at: NDArray[np.int64]
    _cut: NDArray[np.int64]

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


def lift(data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Lines:
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
    def template(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.pattern, np.uint8)

    def ends_before(self, following: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Whether bytes that follow a stamp are no more of it, such as a fraction of a second."""
        if self.kind == "date":
            return np.equal(following, _SPACE)
        return ~np.isin(following, _MORE)

    def times(self, digits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """ns since 1970 of rows that have the shape, from the values of their digits."""
        if self.kind == "clock":
            return np.full(len(digits), NO_TIME, np.int64)
        if self.kind == "micros":
            micros = _value(digits[:, : len(self.pattern) - 1])
            return np.where(micros <= LATEST_MICROS, micros * 1000, NO_TIME)
        stamp = STAMP.search(self.pattern)
        if stamp is None:
            raise ValueError(f"no date in {self.pattern!r}")
        seconds = _seconds(digits[:, [stamp.start() + place for place in _CLOCK]])
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


def _shapes(data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> dict[_Shape, None]:
    """Shapes of stamps in some of the lines, first seen first."""
    found: dict[_Shape, None] = {}
    step = max(1, len(starts) // _SAMPLES)
    for begin, end in zip(starts[::step].tolist(), ends[::step].tolist(), strict=True):
        front = data[begin : min(end, begin + _LONGEST_FRONT)]
        if (header := HEADER.search(front)) and (shape := _shape(front, header)):
            found[shape] = None
    return found


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
    return _Shape(begin, _zeros(front[begin:end]), kind)


def _zeros(text: bytes) -> bytes:
    return re.sub(rb"\d", b"0", text)


def _value(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The number that each row of digits is."""
    powers = 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)
    made: NDArray[np.int64] = digits.astype(np.int64) @ powers
    return made


def _seconds(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Seconds since 1970 of rows of yyyymmddhhmmss; ``NO_TIME`` for what is no date."""
    dates, which = np.unique(_value(digits[:, :8]), return_inverse=True)
    days = np.array([_midnight(date) for date in dates.tolist()], np.int64)[which]
    hours, minutes, seconds = (_value(digits[:, at : at + 2]) for at in (8, 10, 12))
    return np.where(days == NO_TIME, NO_TIME, days + hours * 3600 + minutes * 60 + seconds)


def _midnight(date: int) -> int:
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    if not (1970 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= 31):
        return NO_TIME
    return calendar.timegm((year, month, day, 0, 0, 0))
