"""Sizes of collectives: per operation, in buckets, by distinct size, per GPU, rank, communicator.

All sums are exact integers, however large. "Bytes" is count × element size of one call, as logged;
the whole buffer and the wire are ``wire``'s business.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from nsys_tui.errors import UsageError
from nsys_tui.logs.line_prefixes import NO_TIME
from nsys_tui.logs.nccl.calls import UNKNOWN_BYTES, CallLog, Calls, rows_by
from nsys_tui.logs.nccl.grammar import datatype_name
from nsys_tui.model.arrays import Array, Integers
from nsys_tui.model.collective_sizes import buffer_bytes, wire_bytes
from nsys_tui.model.groups import factorise

DEFAULT_BOUNDS: Final = (1 << 16, 1 << 20, 1 << 24)
"""64 KiB, 1 MiB and 16 MiB: the AWK kit's buckets; a bound belongs to the bucket above it."""

_DEFAULT_LABELS: Final = ("<64KB", "64KB-1MB", "1MB-16MB", ">16MB")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"\s*(\d{1,19})\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class SizeRow:
    """Sizes of the calls of one operation, or of one operation of one owner."""

    owner: int
    """Index of the GPU, rank or communicator; -1 over all."""
    op: str
    calls: int
    min_bytes: int
    max_bytes: int
    total_bytes: int
    unsized: int
    """Calls of an unknown data type, counted but in no sum."""

    @property
    def mean_bytes(self) -> Fraction:
        """Exact mean over the calls whose size is known."""
        return Fraction(self.total_bytes, max(1, self.calls - self.unsized))


@dataclass(frozen=True)
class BucketRow:
    """Calls of one operation in one size bucket."""

    op: str
    bucket: str
    calls: int


@dataclass(frozen=True)
class DistinctRow:
    """Calls that are equal in operation, count and type."""

    calls: int
    op: str
    count: int
    dtype: str
    bytes: int
    """-1 for an unknown type."""


@dataclass(frozen=True)
class TrafficRow:
    """Buffer and wire bytes of an operation on communicators of one size, by the ring's rule."""

    op: str
    nranks: int
    calls: int
    buffer_bytes: int | None
    """None where no line tells the communicator's size."""
    wire_bytes: Fraction | None
    """Per rank and call summed over the calls; None for an operation without a rule, too."""


@dataclass(frozen=True)
class Rate:
    """How fast calls were issued over all ranks, by the lines' wall clock."""

    first_ns: int
    last_ns: int
    calls_per_s: Fraction
    bytes_per_s: Fraction


def per_op(calls: Calls) -> tuple[SizeRow, ...]:
    """Calls and bytes per operation, by name."""
    return per_owner(calls, np.full(len(calls), -1, dtype=np.int64))


def per_owner(calls: Calls, owner: Array) -> tuple[SizeRow, ...]:
    """Calls and bytes per owner and operation.

    Args:
        calls: the calls.
        owner: integer owner of each call, such as ``calls.gpu`` or ``calls.communicator``.
    """
    rows = []
    for (who, op), at in _groups(owner, calls.op):
        known = at[calls.bytes[at] != UNKNOWN_BYTES]
        sized = calls.bytes[known]
        number = calls.total(at)
        rows.append(
            SizeRow(
                who,
                calls.ops[op],
                number,
                int(sized.min()) if len(sized) else 0,
                int(sized.max(initial=0)),
                total_bytes(calls, known),
                number - calls.total(known),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.owner, row.op)))


def histogram(calls: Calls, bounds: Sequence[int] = DEFAULT_BOUNDS) -> tuple[BucketRow, ...]:
    """Calls per operation and size bucket, by operation and label; empty buckets are left out.

    Args:
        calls: the calls; those of unknown size are in no bucket.
        bounds: ascending sizes in bytes; each is the first size of a bucket.
    """
    labels = bucket_labels(bounds)
    sized = calls.take(calls.bytes != UNKNOWN_BYTES)
    bucket = np.searchsorted(np.array(bounds, dtype=np.int64), sized.bytes, side="right")
    rows = [
        BucketRow(sized.ops[op], labels[which], sized.total(at))
        for (op, which), at in _groups(sized.op, bucket)
    ]
    return tuple(sorted(rows, key=lambda row: (row.op, row.bucket)))


def aggregate(calls: Calls) -> tuple[DistinctRow, ...]:
    """Distinct (operation, count, type) with their number of calls, in that order."""
    code, _ = factorise(calls.count)
    kind = calls.op.astype(np.int64) * (int(calls.datatype.max(initial=0)) + 1) + calls.datatype
    rows = []
    for _, at in _groups(kind, code):
        one = int(at[0])
        rows.append(
            DistinctRow(
                calls.total(at),
                calls.ops[int(calls.op[one])],
                int(calls.count[one]),
                datatype_name(int(calls.datatype[one])),
                int(calls.bytes[one]),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.op, row.count, row.dtype)))


def traffic(calls: Calls) -> tuple[TrafficRow, ...]:
    """Buffer and wire bytes per operation and communicator size; unsized calls are left out."""
    known = calls.take(calls.bytes != UNKNOWN_BYTES)
    rows = []
    for (op, nranks), at in _groups(known.op, known.nranks):
        name, total, number = known.ops[op], total_bytes(known, at), known.total(at)
        if nranks < 1:
            rows.append(TrafficRow(name, -1, number, None, None))
            continue
        wire = wire_bytes(name, total, nranks)
        rows.append(TrafficRow(name, nranks, number, buffer_bytes(name, total, nranks), wire))
    return tuple(sorted(rows, key=lambda row: (row.op, row.nranks)))


def rate(log: CallLog) -> Rate | None:
    """Calls and bytes per second by the clock of the lines; None without one or without a span."""
    times: list[int] = []
    number = total = 0
    for part in log.parts():
        timed = np.flatnonzero((part.time_ns != NO_TIME) & (part.bytes != UNKNOWN_BYTES))
        if len(timed):
            times += [int(part.time_ns[timed].min()), int(part.time_ns[timed].max())]
            number += len(timed)
            total += total_bytes(part, timed)
    first, last = min(times, default=0), max(times, default=0)
    if last == first:
        return None
    per_s = Fraction(10**9, last - first)
    return Rate(first, last, number * per_s, total * per_s)


def total_bytes(calls: Calls, rows: Array) -> int:
    """Sum over rows of known size that cannot overflow, for up to 2**31 calls."""
    size, number = calls.bytes[rows].astype(np.int64), calls.number[rows].astype(np.int64)
    high, low = (size >> 32) * number, (size & 0xFFFFFFFF) * number
    return (int(high.sum()) << 32) + int(low.sum())


def bucket_labels(bounds: Sequence[int]) -> tuple[str, ...]:
    """Names of the buckets that bounds make, such as ``<64KB``, ``64KB-1MB`` and ``>1MB``.

    Raises:
        UsageError: no bounds, or not ascending.
    """
    if not bounds or any(a >= b for a, b in itertools.pairwise(bounds)):
        raise UsageError(
            f"bucket bounds must ascend: {list(bounds)}", hint="such as --buckets 64KB,1MB,16MB"
        )
    if tuple(bounds) == DEFAULT_BOUNDS:
        return _DEFAULT_LABELS
    words = [_size_word(bound) for bound in bounds]
    inner = [f"{a}-{b}" for a, b in itertools.pairwise(words)]
    return (f"<{words[0]}", *inner, f">{words[-1]}")


def parse_bounds(text: str) -> tuple[int, ...]:
    """Parses ``64KB,1MB,16MB`` (powers of 1024, as the kit means them) into bytes.

    Raises:
        UsageError: a word is no size, or the sizes do not ascend.
    """
    bounds = []
    for word in text.split(","):
        match = _SIZE.fullmatch(word)
        if match is None:
            raise UsageError(f"not a size: {word!r}", hint="write it as 65536, 64KB or 1MiB")
        bounds.append(int(match[1]) * _UNITS[match[2].upper()])
    if max(bounds) >= 2**63:
        raise UsageError(f"size out of range in {text!r}")
    bucket_labels(bounds)
    return tuple(bounds)


def _size_word(size: int) -> str:
    for unit in ("T", "G", "M", "K"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}B"
    return f"{size}B"


def _groups(first: Array, second: Array) -> list[tuple[tuple[int, int], Integers]]:
    """Rows of each distinct pair, in ascending order of the pairs."""
    if not len(first):
        return []
    low = int(second.min())
    width = int(second.max()) - low + 1
    key = first.astype(np.int64) * width + (second.astype(np.int64) - low)
    return [((value // width, value % width + low), rows) for value, rows in rows_by(key)]
