"""Records of SQLite leaf pages: where each value lies, and its integers and texts.

The layout is that of https://www.sqlite.org/fileformat2.html, section 2.1: a record is a header of
serial types and then the values. Few different headers occur on neighbouring pages, so each is
taken apart once, and all rows that have it share the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Bool, Int64, UInt8
from nsys_tui.reader.cells import (
    LEAF,
    SMALLEST_CELL,
    PagesDamagedError,
    PagesRefusedError,
    cell_positions,
    require_filled,
    unaligned,
    varints,
    windows,
)
from nsys_tui.reader.texts import distinct_rows

_INTEGER_SIZES: Final = np.array((0, 1, 2, 3, 4, 6, 8, 8, 0, 0), np.int64)
"""Bytes of a value by its serial type."""
_SHIFTS: Final = np.array([64 - 8 * min(8, size or 8) for size in _INTEGER_SIZES], np.int64)
"""Bits by which a value loaded as eight bytes is too far left."""
_NULL: Final = 0
_FLOAT: Final = 7
_ZERO: Final = 8
_ONE: Final = 9
_FIRST_BLOB: Final = 12
_LONGEST: Final = 2**31 - 1
_WIDEST: Final = 5
"""Bytes that lengths and serial types take at most."""
_COPIED: Final = 128
"""Bytes of each record that are copied next to each other; from there numbers load in a quarter of
the time (1 in place of 5 ns)."""
_FEW: Final = 3
"""Different places of a column in the records up to which loading from all of them is quicker."""
_MOST_HEADER_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Layouts:
    """What some record headers say; a row for each header, a column for each of the table's."""

    types: Int64
    """SQLite's serial types; NULL in records that end before the column."""
    offsets: Int64
    """Bytes from the record's begin to the value."""
    sizes: Int64
    """Bytes of the value."""
    columns: Int64
    """How many values a record of this header has."""
    lengths: Int64
    """Bytes of a whole record."""


class Records:
    """All rows on some leaf pages.

    Attributes:
        buffer: the pages' bytes and padding.
        rowid: int64 ids of shape ``(rows,)``, ascending on each page.
        counts: rows on each page.
    """

    def __init__(self, buffer: UInt8, pages: Int64, usable: int, columns: int) -> None:
        """Finds and checks the records.

        Args:
            buffer: the pages, followed by at least as many bytes as a page has.
            pages: offset of each page in ``buffer``.
            usable: bytes of a page without its reserved end.
            columns: how many the table has.

        Raises:
            PagesDamagedError: these are no intact leaf pages of a rowid table.
            PagesRefusedError: a record's header is not all on its page.
        """
        self.buffer = buffer
        cells, self.counts = cell_positions(buffer, pages, usable, LEAF)
        length, length_width = varints(buffer, cells)
        self.rowid, rowid_width = varints(buffer, cells + length_width)
        if length_width.max() > _WIDEST or length.max() > _LONGEST:
            raise PagesDamagedError("a record of an absurd length")
        self._start = cells + length_width + rowid_width
        self._local, chained = _local_sizes(length, usable)
        self._has_overflow = isinstance(chained, np.ndarray)
        ends = self._start + self._local + chained
        if (ends > np.repeat(pages + usable, self.counts)).any():
            raise PagesDamagedError("a record does not fit its page")
        first = np.cumsum(self.counts) - self.counts
        sizes = np.add.reduceat(np.maximum(ends - cells, SMALLEST_CELL), first)
        require_filled(buffer, pages, usable, sizes)
        self._headers, self._layouts = self._read_headers(columns)
        if (self._layouts.lengths.take(self._headers) != length).any():
            raise PagesDamagedError("a record's values are not as long as the record")

    def _read_headers(self, columns: int) -> tuple[Int64, Layouts]:
        """Which layout each record has, and the layouts."""
        sizes = self.buffer.take(self._start).astype(np.int64)
        widths = np.ones_like(sizes)
        if sizes.max() > 127:
            sizes, widths = varints(self.buffer, self._start)
        if (sizes < widths).any():
            raise PagesDamagedError("a record's header is too short")
        if (sizes > self._local).any():
            raise PagesRefusedError("a record's header on an overflow page")
        longest = int(sizes.max() + 7) & -8
        if longest * len(sizes) > _MOST_HEADER_BYTES:
            raise PagesRefusedError("headers of very many columns")
        headers = windows(self.buffer, self._start, longest).view(np.uint64)
        kept = np.where(np.tri(longest + 1, longest, -1, bool), 0xFF, 0).astype(np.uint8)
        if sizes.min() == sizes.max():
            headers[:, -1] &= kept[sizes[0]].view(np.uint64)[-1]
        else:
            headers &= windows(kept.reshape(-1), sizes * longest, longest).view(np.uint64)
        codes, rows = distinct_rows(headers)
        heads = headers[rows].view(np.uint8)
        return codes, _layouts(heads, sizes[rows], widths[rows], columns)

    @cached_property
    def _copies(self) -> UInt8:
        """The beginnings of the records, a row for each."""
        return windows(self.buffer, self._start, min(_COPIED, int(self._local.max()) + 8))

    def lacks(self, column: int) -> bool:
        """Whether some records end before a column: they were written before it was added."""
        return bool((self._layouts.columns <= column).any())

    def integers(self, column: int) -> tuple[Int64, Bool | None]:
        """Loads a column.

        Args:
            column: number of the column in the table.

        Returns:
            int64 values, 0 for NULL, and where the NULLs are (None without any).

        Raises:
            PagesRefusedError: a value is no integer, or on an overflow page.
        """
        types = self._layouts.types[:, column]
        if ((types == _FLOAT) | (types > _ONE)).any():
            raise PagesRefusedError("a value that is no integer")
        self._require_local(column)
        low, high = int(types.min()), int(types.max())
        if low == high:
            return self._uniform(column, high), np.ones(len(self.rowid), bool) if not low else None
        values = self._load(column, ">i8")
        values >>= _SHIFTS[types].take(self._headers)
        if low == _NULL or high >= _ZERO:
            constant = ((types == _NULL) | (types >= _ZERO)).take(self._headers)
            np.copyto(values, (types == _ONE).take(self._headers), where=constant)
        return values, (types == _NULL).take(self._headers) if low == _NULL else None

    def texts(self, column: int) -> tuple[Int64, Int64]:
        """Finds the texts of a column.

        Args:
            column: number of the column in the table.

        Returns:
            Offsets into the buffer and lengths in bytes; length -1 is NULL.

        Raises:
            PagesRefusedError: a value that is no text, or lies on an overflow page.
        """
        types = self._layouts.types[:, column]
        if ((types != _NULL) & ((types <= _FIRST_BLOB) | (types & 1 == 0))).any():
            raise PagesRefusedError("a value that is no text")
        self._require_local(column)
        lengths = np.where(types == _NULL, -1, self._layouts.sizes[:, column])
        offsets = self._layouts.offsets[:, column]
        return self._start + offsets.take(self._headers), lengths.take(self._headers)

    def _require_local(self, column: int) -> None:
        if self._has_overflow:
            ends = self._layouts.offsets[:, column] + self._layouts.sizes[:, column]
            if (ends.take(self._headers) > self._local).any():
                raise PagesRefusedError("a value on an overflow page")

    def _uniform(self, column: int, kind: int) -> Int64:
        """Loads values that all have one serial type, an integer's."""
        if kind in (_NULL, _ZERO, _ONE):
            return np.full(len(self.rowid), int(kind == _ONE), np.int64)
        size = int(_INTEGER_SIZES[kind])
        if size in (1, 2, 4, 8):
            return self._load(column, f">i{size}")
        values = self._load(column, ">i8")
        values >>= _SHIFTS[kind]
        return values

    def _load(self, column: int, dtype: str) -> Int64:
        """Loads numbers of one type from where the column's values begin."""
        offsets, kind = self._layouts.offsets[:, column], np.dtype(dtype)
        distinct = np.unique(offsets).tolist()
        count, width = self._copies.shape
        if len(distinct) > _FEW or distinct[-1] + kind.itemsize > width:
            at = self._start + offsets.take(self._headers)
            loads: Int64 = unaligned(self.buffer, dtype)[at].astype(np.int64)
            return loads
        values = np.empty(count, np.int64)
        for offset in distinct:
            here = True if len(distinct) == 1 else (offsets == offset).take(self._headers)
            np.copyto(values, np.ndarray(count, kind, self._copies, offset, width), where=here)
        return values


def _layouts(headers: UInt8, sizes: Int64, widths: Int64, columns: int) -> Layouts:
    """Takes record headers apart.

    Args:
        headers: a row of bytes for each.
        sizes: bytes of each header.
        widths: bytes at its begin that say its size.
        columns: how many the table has.

    Raises:
        PagesDamagedError: SQLite writes no such header.
    """
    byte = np.arange(headers.shape[1])
    within = (byte >= widths[:, np.newaxis]) & (byte < sizes[:, np.newaxis])
    data, owner = headers[within].astype(np.int64), np.nonzero(within)[0]
    lasts = np.flatnonzero(data < 0x80)
    types, owner, ends = data[lasts], owner[lasts], np.cumsum(sizes - widths)
    spans = np.diff(lasts, prepend=-1)
    if (data[ends[sizes > widths] - 1] >= 0x80).any() or spans.max(initial=0) > _WIDEST:
        raise PagesDamagedError("a record's header that does not end where it says")
    for back in range(1, int(spans.max(initial=0))):
        wide = spans > back
        types[wide] |= (data[lasts[wide] - back] & 0x7F) << 7 * back
    if ((types > _ONE) & (types < _FIRST_BLOB)).any():
        raise PagesDamagedError("a value of a type that SQLite does not write")
    counts = np.bincount(owner, minlength=len(headers))
    if counts.max() > columns:
        raise PagesDamagedError("a record of more values than the table has columns")
    table = np.zeros((len(headers), columns), np.int64)
    table[owner, np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]] = types
    value_sizes = np.where(
        table < _FIRST_BLOB, _INTEGER_SIZES[np.minimum(table, _ONE)], table - _FIRST_BLOB >> 1
    )
    ends_of_values = sizes[:, np.newaxis] + np.cumsum(value_sizes, axis=1)
    lengths = sizes + value_sizes.sum(axis=1)
    return Layouts(table, ends_of_values - value_sizes, value_sizes, counts, lengths)


def _local_sizes(length: Int64, usable: int) -> tuple[Int64, Int64 | int]:
    """How many bytes of each payload lie on the leaf itself, by the format's overflow rule.

    Returns:
        Those, and the bytes of the page number of an overflow page that follow them.
    """
    largest = usable - 35
    if length.max() <= largest:
        return length, 0
    smallest = (usable - 12) * 32 // 255 - 23
    kept = smallest + (length - smallest) % (usable - 4)
    kept = np.where(kept > largest, smallest, kept)
    return np.where(length > largest, kept, length), np.where(length > largest, 4, 0)
