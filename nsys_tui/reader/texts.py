"""Text columns as codes: equal texts are found with numpy, so only distinct ones become ``str``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.reader.records import unaligned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]
    Words = NDArray[np.uint64]

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_FOLD: Final = np.uint64(29)
_WORD: Final = 8


@dataclass(frozen=True)
class TextSpans:
    """Where the texts of some rows lie in a buffer."""

    buffer: NDArray[np.uint8]
    """UTF-8 bytes, at least 8 beyond the last text."""
    offsets: Longs
    """Start of each row's text."""
    lengths: Longs
    """Its bytes; -1 is NULL."""
    rowid: Longs

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

    def codes(self, texts: Iterable[str | None]) -> NDArray[np.int32]:
        """Codes of texts, int32."""
        known = self._codes
        return np.array(
            [-1 if text is None else known.setdefault(text, len(known)) for text in texts],
            np.int32,
        )

    def codes_in(self, spans: TextSpans) -> NDArray[np.int32]:
        """Codes of texts that still lie in their pages, int32."""
        groups, firsts = group_equal(spans)
        return self.codes(map(spans.text, firsts.tolist()))[groups]


def group_equal(spans: TextSpans) -> tuple[Longs, Longs]:
    """Finds which texts are equal.

    Texts are grouped by a 64-bit hash and each group is compared byte by byte with its first
    text; if two different texts ever share a hash, every text is its own group.

    Returns:
        Group of each row, and each group's first row; groups in order of first appearance.
    """
    hashes = (spans.lengths + 1).astype(np.uint64) * _MULTIPLIER
    for rows, words in _words(spans, slice(None)):
        mixed = (hashes[rows] ^ words) * _MULTIPLIER
        hashes[rows] = mixed ^ (mixed >> _FOLD)
    _, firsts, groups = np.unique(hashes, return_index=True, return_inverse=True)
    if not _all_equal(spans, firsts[groups]):
        return np.arange(len(hashes)), np.arange(len(hashes))
    order = np.argsort(firsts)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[groups], firsts[order]


def _all_equal(spans: TextSpans, others: Longs) -> bool:
    if (spans.lengths != spans.lengths[others]).any():
        return False
    pairs = zip(_words(spans, slice(None)), _words(spans, others), strict=True)
    return all(bool((words == twins).all()) for (_, words), (_, twins) in pairs)


def _words(spans: TextSpans, picked: Longs | slice) -> Iterator[tuple[Longs, Words]]:
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
