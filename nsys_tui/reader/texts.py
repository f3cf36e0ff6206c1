"""Text columns as codes: equal texts are found with numpy, so only distinct ones become ``str``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsys_tui.model.arrays import Bool, Int32, Int64, UInt8
from nsys_tui.reader.cells import unaligned

Words: TypeAlias = NDArray[np.uint64]

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_SLOT_BITS: Final = 16


def distinct(hashes: Words, equal: Callable[[Int64, Int64], Bool]) -> tuple[Int64, Int64]:
    """Groups equal rows.

    Rows meet in slots by parts of their hashes and are compared there; those that meet others in
    every part are left groups of their own. That never merges different rows.

    Args:
        hashes: equal for equal rows; the highest bits count most.
        equal: tells of rows and as many others, given by number, which are equal.

    Returns:
        Group of each row, and the first row of each group.
    """
    groups, firsts = np.empty(len(hashes), np.int64), []
    slots = np.empty(1 << _SLOT_BITS, np.int64)
    left, known = np.arange(len(hashes)), 0
    for part in range(64 - _SLOT_BITS, -1, -_SLOT_BITS):
        slot = (hashes >> np.uint64(part)).view(np.int64) & (1 << _SLOT_BITS) - 1
        slots[slot[::-1]] = left[::-1]  # the first of equal ones is written last
        leader = slots.take(slot)
        leads = np.flatnonzero(leader == left)
        slots[slot[leads]] = np.arange(known, known + len(leads))
        groups[left] = slots.take(slot)
        firsts.append(left[leads])
        known += len(leads)
        differ = np.flatnonzero(~equal(left, leader))
        left, hashes = left[differ], hashes[differ]
        if not len(left):
            break
    groups[left] = np.arange(known, known + len(left))
    return groups, np.concatenate([*firsts, left])


def distinct_rows(rows: Words) -> tuple[Int64, Int64]:
    """Groups equal rows of a matrix; result as of ``distinct``."""
    hashes = np.zeros(len(rows), np.uint64)
    for number, words in enumerate(rows.T):
        hashes ^= words * salt(number)
    whole = rows.view(f"V{rows.shape[1] * rows.itemsize}").reshape(-1)

    def equal(mine: Int64, others: Int64) -> Bool:
        left = rows if len(mine) == len(rows) else rows[mine]
        same = whole.take(others).view(np.uint64).reshape(left.shape) == left
        return np.ones(len(mine), bool) if same.all() else same.all(axis=1)

    return distinct(hashes, equal)


def salt(number: int) -> np.uint64:
    """What the words of some number in all rows are multiplied with, to be added to a hash."""
    return np.uint64(int(_MULTIPLIER) * (2 * number + 1) & 0xFFFF_FFFF_FFFF_FFFF)


_WORD: Final = 8


@dataclass(frozen=True)
class TextSpans:
    """Where the texts of some rows lie in a buffer."""

    buffer: UInt8
    """UTF-8 bytes, at least 8 beyond the last text."""
    offsets: Int64
    """Start of each row's text."""
    lengths: Int64
    """Its bytes; -1 is NULL."""
    rowid: Int64

    def text(self, row: int) -> str | None:
        """One row's text, invalid bytes replaced."""
        start, length = int(self.offsets[row]), int(self.lengths[row])
        return (
            None
            if length < 0
            else self.buffer[start : start + length].tobytes().decode("utf-8", "replace")
        )


class Interner:
    """Gives each distinct text a code, in order of first appearance; NULL is -1."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    @property
    def values(self) -> list[str]:
        """The distinct texts, by code."""
        return list(self._codes)

    def codes(self, texts: Iterable[str | None]) -> Int32:
        """Codes of texts, int32."""
        known = self._codes
        return np.array(
            [-1 if text is None else known.setdefault(text, len(known)) for text in texts],
            np.int32,
        )

    def codes_in(self, spans: TextSpans) -> Int32:
        """Codes of texts that still lie in their pages, int32."""
        groups, firsts = group_equal(spans)
        order = np.argsort(firsts)
        codes = np.empty(len(firsts), np.int32)
        codes[order] = self.codes(map(spans.text, firsts[order].tolist()))
        return codes[groups]


def group_equal(spans: TextSpans) -> tuple[Int64, Int64]:
    """Finds which texts are equal, byte by byte.

    Returns:
        Group of each row, and each group's first row.
    """
    hashes = (spans.lengths + 1).astype(np.uint64) * salt(0)
    words_of_all = _words(spans, np.arange(len(hashes)))
    for number, (rows, words) in enumerate(words_of_all, 1):
        hashes[rows] ^= words * salt(number)

    def equal(mine: Int64, others: Int64) -> Bool:
        same: Bool = spans.lengths[mine] == spans.lengths[others]
        alike = np.flatnonzero(same)
        pairs = zip(_words(spans, mine[alike]), _words(spans, others[alike]), strict=True)
        for (rows, words), (_, twins) in pairs:
            same[alike[rows]] &= words == twins
        return same

    return distinct(hashes, equal)


def _words(spans: TextSpans, picked: Int64) -> Iterator[tuple[Int64, Words]]:
    """Yields the picked texts' k-th 8-byte words for k = 0, 1, …, and which are that long."""
    loads = unaligned(spans.buffer, ">u8")
    offsets, lengths = spans.offsets[picked], spans.lengths[picked]
    rows = np.flatnonzero(lengths > 0)
    done = 0
    while len(rows):
        words = loads[offsets[rows] + done].astype(np.uint64)
        surplus = np.maximum(0, done + _WORD - lengths[rows])
        yield rows, words >> (8 * surplus).astype(np.uint64)
        done += _WORD
        rows = rows[lengths[rows] > done]
