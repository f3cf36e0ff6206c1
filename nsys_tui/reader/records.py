"""Records of SQLite leaf pages, walked column by column for all rows at once.

The layout is that of https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1: a cell is a
payload length, a rowid and a record; a record is a header of serial types and then the values.
Which pages belong to a table is no business of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]

LEAF: Final = 13
PADDING: Final = 32
"""Bytes that must follow the last page in a buffer, so that a load may reach past its end."""

_LEAF_HEADER: Final = 8
_SMALLEST_CELL: Final = 4
_INTEGER_SIZES: Final = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)
_SIZES: Final = np.array(
    [*_INTEGER_SIZES, *((code - 12) // 2 for code in range(len(_INTEGER_SIZES), 128))], np.int64
)
_SHIFTS: Final = np.array([64 - 8 * min(8, size or 8) for size in _SIZES], np.int64)
_NULL: Final = 0
_FLOAT: Final = 7
_ZERO: Final = 8
_ONE: Final = 9
_FIRST_TEXT: Final = 12


class PagesRefusedError(Exception):
    """The pages hold something this decoder does not handle; read the table through sqlite3."""


@dataclass(frozen=True, slots=True)
class SerialTypes:
    """The type of one column in every row, and with it the value's size."""

    codes: NDArray[np.int64] | NDArray[np.uint8]
    """SQLite's serial type by row; NULL in records that end before this column."""
    lowest: int
    highest: int
    sizes: Positions | int
    """Bytes of the value: by row, or one number for all."""
    widths: Positions | int
    """Bytes that the type itself takes in the record's header."""


@dataclass(slots=True)
class Cursor:
    """An offset for each row; a step that all rows share costs no array operation."""

    base: Positions
    ahead: int = 0

    def step(self, by: Positions | int) -> None:
        """Moves every row on, by its own or a common number of bytes."""
        if isinstance(by, int):
            self.ahead += by
        else:
            self.base = self.base + by

    def positions(self) -> Positions:
        """The offsets themselves."""
        return self.base + self.ahead


class Records:
    """A cursor over the columns of all cells on some leaf pages.

    Attributes:
        buffer: the pages' bytes and padding.
        rowid: int64 ids of shape ``(rows,)``, ascending.
        short: whether some records end before the current column (columns added later).
    """

    def __init__(self, buffer: NDArray[np.uint8], page_starts: Positions, usable: int) -> None:
        """Finds the cells.

        Args:
            buffer: the pages, followed by ``PADDING`` bytes.
            page_starts: offset of each page in ``buffer``.
            usable: bytes of a page without its reserved end.

        Raises:
            PagesRefusedError: these are no intact leaf pages of a rowid table.
        """
        self.buffer = buffer
        cells, counts = self._cell_positions(page_starts, usable)
        length, width = varints(self.buffer, cells)
        self.rowid, rowid_width = self._rowids(cells + width, counts)
        start = cells + width + rowid_width
        page_ends = np.repeat(page_starts + usable, counts)
        self._local_end = start + _local_sizes(length, usable)
        header_size, width = varints(self.buffer, start)
        self._header_end = start + header_size
        self._type = Cursor(start + width)
        self._value = Cursor(self._header_end)
        types_left = header_size - width
        self._sure_types = int(types_left.min()) if len(types_left) else 0
        self.short = False
        sound = (types_left >= 0) & (self._header_end <= self._local_end)
        if not (sound & (self._local_end <= page_ends) & (length < 2**31)).all():
            raise PagesRefusedError("a record does not fit its page")

    def _cell_positions(
        self, page_starts: Positions, usable: int
    ) -> tuple[Positions, NDArray[np.int64]]:
        if (self.buffer[page_starts] != LEAF).any():
            raise PagesRefusedError("a page that is no leaf of a table")
        halfwords = unaligned(self.buffer, ">u2")
        counts = halfwords[page_starts + 3].astype(np.int64)
        if (_LEAF_HEADER + counts * (2 + _SMALLEST_CELL) > usable).any():
            raise PagesRefusedError("more cells than a page can hold")
        first = np.cumsum(counts) - counts
        pointers = np.repeat(page_starts + _LEAF_HEADER - 2 * first, counts)
        pointers += 2 * np.arange(len(pointers))
        offsets = halfwords[pointers].astype(np.int64)
        if (offsets > usable - _SMALLEST_CELL).any():
            raise PagesRefusedError("a cell outside of its page")
        return offsets + np.repeat(page_starts, counts), counts

    def _rowids(self, at: Positions, counts: NDArray[np.int64]) -> tuple[Positions, Positions]:
        """Decodes rowids and their widths.

        Rowids ascend on a page, so a page whose last minus first is its count minus one holds
        consecutive ones: two varints then stand for all of its cells.
        """
        counts = counts[counts > 0]
        ends = np.cumsum(counts)
        first_row, last_row = ends - counts, ends - 1
        first, first_width = varints(self.buffer, at[first_row])
        last, last_width = varints(self.buffer, at[last_row])
        rowid = np.repeat(first - first_row, counts) + np.arange(len(at))
        widths = np.repeat(first_width, counts)
        simple = (last - first == counts - 1) & (first_width == last_width)
        if not simple.all():
            others = np.flatnonzero(~np.repeat(simple, counts))
            rowid[others], widths[others] = varints(self.buffer, at[others])
        if (np.diff(rowid) <= 0).any():
            raise PagesRefusedError("rowids that do not ascend")
        return rowid, widths

    def serial_types(self) -> SerialTypes:
        """Reads the types of the current column."""
        if self._sure_types > 0:
            at, absent, self.short = None, None, False
            codes = self.buffer[self._type.ahead :].take(self._type.base)
        else:
            at = self._type.positions()
            absent = at >= self._header_end
            at[absent] = 0
            self.short = bool(absent.any())
            codes = self.buffer.take(at)
            codes[absent] = _NULL
        lowest, highest = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
        if highest < 128:
            sizes = int(_SIZES[highest]) if lowest == highest else _SIZES.take(codes)
            widths = 1 if absent is None else 1 - absent.astype(np.int64)
            return SerialTypes(codes, lowest, highest, sizes, widths)
        wide, widths = varints(self.buffer, self._type.positions() if at is None else at)
        if absent is not None:
            wide[absent], widths[absent] = _NULL, 0
        sizes = np.where(wide < 128, _SIZES.take(np.minimum(wide, 127)), (wide - _FIRST_TEXT) >> 1)
        return SerialTypes(wide, lowest, int(wide.max()), sizes, widths)

    def step(self, types: SerialTypes) -> None:
        """Moves on to the next column."""
        self._value.step(types.sizes)
        self._type.step(types.widths)
        self._sure_types -= int(np.max(types.widths, initial=0))

    def require_local(self, types: SerialTypes) -> None:
        """Makes sure that all values up to the current column lie on the leaves themselves.

        Raises:
            PagesRefusedError: some lie on overflow pages, so what was loaded is no value.
        """
        if (self._value.positions() + types.sizes > self._local_end).any():
            raise PagesRefusedError("a value on an overflow page")

    def integers(self, types: SerialTypes) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Loads the current column; ``require_local`` says afterwards whether that was right.

        Returns:
            int64 values, 0 for NULL, and where the NULLs are (None without any).

        Raises:
            PagesRefusedError: a value is no integer.
        """
        low, high = types.lowest, types.highest
        if high > _ONE or _FLOAT in (low, high) or (low < _FLOAT < high and self._floats(types)):
            raise PagesRefusedError("a value that is no integer")
        if low == high:
            return self._uniform(high), np.ones(len(self.rowid), np.bool_) if high == 0 else None
        values = self._load(">i8")
        values >>= _SHIFTS.take(types.codes)
        if low == _NULL or high >= _ZERO:
            constant = (types.codes == _NULL) | (types.codes >= _ZERO)
            values[constant] = types.codes[constant] == _ONE
        return values, types.codes == _NULL if low == _NULL else None

    def texts(self, types: SerialTypes) -> tuple[Positions, Positions]:
        """Finds the texts of the current column.

        Returns:
            Offsets into the buffer and lengths in bytes; length -1 is NULL.

        Raises:
            PagesRefusedError: a value that is no text, or lies on an overflow page.
        """
        codes = types.codes.astype(np.int64)
        null = codes == _NULL
        if not (null | ((codes > _FIRST_TEXT) & (codes & 1 == 1))).all():
            raise PagesRefusedError("a value that is no text")
        self.require_local(types)
        return self._value.positions(), np.where(null, -1, (codes - _FIRST_TEXT - 1) >> 1)

    def _floats(self, types: SerialTypes) -> bool:
        return bool((types.codes == _FLOAT).any())

    def _uniform(self, code: int) -> NDArray[np.int64]:
        """Loads values that all have one serial type, an integer's."""
        if code in (_NULL, _ZERO, _ONE):
            return np.full(len(self.rowid), int(code == _ONE), np.int64)
        size = _INTEGER_SIZES[code]
        exact = size in (1, 2, 4, 8)
        values = self._load(f">i{size if exact else 8}")
        if not exact:
            values >>= int(_SHIFTS[code])
        return values

    def _load(self, dtype: str) -> NDArray[np.int64]:
        loads = unaligned(self.buffer[self._value.ahead :], dtype)
        return loads[self._value.base].astype(np.int64)


def unaligned(buffer: NDArray[np.uint8], dtype: str) -> NDArray[np.signedinteger]:
    """Views ``buffer`` as numbers of ``dtype`` that start at every single byte."""
    kind = np.dtype(dtype)
    return np.ndarray((len(buffer) - kind.itemsize + 1,), kind, buffer=buffer, strides=(1,))


def varints(data: NDArray[np.uint8], at: Positions) -> tuple[NDArray[np.int64], Positions]:
    """Decodes SQLite's variable-length integers (big-endian, 7 bits a byte, the ninth whole).

    Args:
        data: bytes, at least 9 beyond the last position.
        at: offsets of the first bytes.

    Returns:
        Values and their lengths in bytes, both of ``at``'s shape.
    """
    byte = data.take(at)
    values = (byte & 0x7F).astype(np.int64)
    widths = np.ones(len(at), np.int64)
    going = np.flatnonzero(byte & 0x80)
    for index in range(1, 9):
        if not len(going):
            break
        byte = data.take(at[going] + index)
        if index < 8:
            values[going] = (values[going] << 7) | (byte & 0x7F)
        else:
            values[going] = (values[going] << 8) | byte
        widths[going] += 1
        going = going[(byte & 0x80) != 0]
    return values, widths


def _local_sizes(length: NDArray[np.int64], usable: int) -> NDArray[np.int64]:
    """How many bytes of each payload lie on the leaf itself, by the format's overflow rule."""
    largest = usable - 35
    if not len(length) or length.max() <= largest:
        return length
    smallest = (usable - 12) * 32 // 255 - 23
    kept = smallest + (length - smallest) % (usable - 4)
    kept = np.where(kept > largest, smallest, kept)
    return np.where(length > largest, kept, length)
