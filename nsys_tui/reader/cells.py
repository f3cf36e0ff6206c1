"""Pages of SQLite's table b-trees, taken apart into cells and checked, many pages at once.

The layout is that of https://www.sqlite.org/fileformat2.html, section 1.6. Nothing here is taken
on trust: what SQLite would not have written is refused. Which pages belong to a table, and what
the cells hold, is no business of this module.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.model.arrays import Array, Int64, UInt8

INTERIOR: Final = 5
LEAF: Final = 13
SMALLEST_CELL: Final = 4
_HEADER_SIZES: Final = {INTERIOR: 12, LEAF: 8}
_SMALLEST_FREE_BLOCK: Final = 4


class PagesRefusedError(Exception):
    """The pages hold something this decoder does not handle; read the table through sqlite3."""


class PagesDamagedError(PagesRefusedError):
    """The pages are not as SQLite writes them; what sqlite3 makes of them counts."""


def cell_positions(buffer: UInt8, pages: Int64, usable: int, kind: int) -> tuple[Int64, Int64]:
    """Finds the cells of pages.

    Args:
        buffer: the pages' bytes.
        pages: offset of each page in ``buffer``.
        usable: bytes of a page without its reserved end.
        kind: ``LEAF`` or ``INTERIOR``.

    Returns:
        Offsets of all cells in ``buffer``, page after page in order of their keys, and the
        number of cells on each page.

    Raises:
        PagesDamagedError: a page of another kind or without cells, or a cell out of its place.
    """
    if (buffer[pages] != kind).any():
        raise PagesDamagedError("a page of an unexpected kind in the tree")
    header = _HEADER_SIZES[kind]
    counts = unaligned(buffer, ">u2")[pages + 3].astype(np.int64)
    content = header + 2 * counts
    if (content + SMALLEST_CELL * counts > usable).any():
        raise PagesDamagedError("more cells than a page can hold")
    if not counts.all():
        raise PagesDamagedError("an empty page in the tree")
    most = int(counts.max())
    pointers = windows(buffer, pages + header, 2 * most).view(">u2")
    offsets = pointers[np.arange(most) < counts[:, np.newaxis]].astype(np.int64)
    if (offsets < np.repeat(content, counts)).any() or (offsets > usable - SMALLEST_CELL).any():
        raise PagesDamagedError("a cell outside of its page's content")
    return offsets + np.repeat(pages, counts), counts


def require_filled(buffer: UInt8, pages: Int64, usable: int, cells: Int64) -> None:
    """Adds up cells and free room of leaf pages: no cells overlap, none is longer than it was.

    Args:
        buffer: the pages' bytes.
        pages: offset of each page in ``buffer``.
        usable: bytes of a page without its reserved end.
        cells: bytes that each page's cells take together.

    Raises:
        PagesDamagedError: on some page they are not what is in use by its header.
    """
    halfwords = unaligned(buffer, ">u2")
    content = halfwords[pages + 5].astype(np.int64)
    content[content == 0] = 1 << 16
    counts = halfwords[pages + 3].astype(np.int64)
    used = cells + buffer[pages + 7] + _free_blocks(halfwords, pages, usable)
    if (content < _HEADER_SIZES[LEAF] + 2 * counts).any() or (used != usable - content).any():
        raise PagesDamagedError("cells and free room of a page do not add up")


def _free_blocks(halfwords: NDArray[np.uint16], pages: Int64, usable: int) -> Int64:
    """Bytes in the chain of free blocks of each page."""
    free = np.zeros(len(pages), np.int64)
    block = halfwords[pages + 1].astype(np.int64)
    going = np.flatnonzero(block)
    while len(going):
        at = block[going]
        if (at > usable - _SMALLEST_FREE_BLOCK).any():
            raise PagesDamagedError("a free block outside of its page")
        following = halfwords[pages[going] + at].astype(np.int64)
        size = halfwords[pages[going] + at + 2]
        if ((following > 0) & (following < at + size)).any():
            raise PagesDamagedError("free blocks that do not ascend")
        free[going] += size
        block[going] = following
        going = going[following > 0]
    return free


def unaligned(buffer: UInt8, dtype: str) -> Array:
    """Views ``buffer`` as numbers of ``dtype`` that start at every single byte."""
    kind = np.dtype(dtype)
    return np.ndarray((len(buffer) - kind.itemsize + 1,), kind, buffer=buffer, strides=(1,))


def windows(buffer: UInt8, at: Int64, width: int) -> UInt8:
    """Copies ``width`` bytes from each offset on.

    One move for each: 64 bytes cost no more than one unaligned number (5 ns).

    Returns:
        uint8 of shape ``(len(at), width)``.
    """
    return unaligned(buffer, f"V{width}")[at].view(np.uint8).reshape(len(at), width)


def varints(buffer: UInt8, at: Int64) -> tuple[Int64, Int64]:
    """Decodes SQLite's variable-length integers (big-endian, 7 bits a byte, the ninth whole).

    Args:
        buffer: bytes, at least 9 beyond the last offset.
        at: offsets of the first bytes.

    Returns:
        Values and their lengths in bytes, both of ``at``'s shape.
    """
    words = unaligned(buffer, ">i8")[at].astype(np.int64)
    common = _common_width(words)
    if common is not None:
        return _digits(words, common), np.full(len(at), common, np.int64)
    values, widths, more = _digits(words, 1), np.ones(len(at), np.int64), words < 0
    for width in range(2, 9):
        if not more.any():
            break
        widths += more
        np.copyto(values, _digits(words, width), where=more)
        more &= words << 8 * (width - 1) < 0
    else:
        widths += more
        np.copyto(values, values << 8 | buffer.take(at + 8), where=more)
    return values, widths


def _common_width(words: Int64) -> int | None:
    """Bytes of the varints that words begin with, where all have as many, up to eight."""
    first = int(words[0]) if len(words) else 0
    for width in range(1, 9):
        if first << 8 * (width - 1) & 1 << 63 == 0:
            marks = np.uint64(0x8080_8080_8080_8080 >> 64 - 8 * width << 64 - 8 * width)
            ending = np.uint64(0x80 << 64 - 8 * width)
            return width if (words.view(np.uint64) & marks == marks ^ ending).all() else None
    return None


def _digits(words: Int64, width: int) -> Int64:
    """Values of varints of one width, at most eight bytes."""
    values = words >> 56 & 0x7F
    for byte in range(1, width):
        values <<= 7
        values |= words >> 56 - 8 * byte & 0x7F
    return values
