"""Groups of events: small integer codes for values, sums by code, and which rows have a code.

The only place where values are factorised. Columns that come piece by piece while a file is read
have a code book of their own (``reader.gather``), because their values are not known at the start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import prod
from typing import Final, TypeVar

import numpy as np

from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers, UInt8

Key = TypeVar("Key", bound=Hashable)

_DENSE: Final = 1 << 22
"""Range of values up to which a table of flags tells which of them occur."""
_KEY_BITS: Final = 63
_SAMPLE: Final = 4096
_FEW: Final = 8
"""Codes up to which a pass for each takes less time than a sort."""
_RADIX: Final = 1 << 15
"""Codes below this are sorted by radix: 6 M in 0.05 s, not 0.5 s."""


def factorise(values: Integers) -> tuple[Integers, Int64]:
    """Codes of a column by its sorted distinct values: ``np.unique`` where sorting all is too slow.

    Values within a range of 4 M, or of twice their number, are looked up in a table of flags. Of
    others, the distinct ones of a sample are tried first: most columns hold few.

    Returns:
        The code of each value (int32, or int64 where all had to be sorted), and the distinct
        values, ascending.
    """
    if not len(values):
        return np.empty(0, np.int32), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < max(_DENSE, 2 * len(values)):
        present = np.zeros(high - low + 1, bool)
        shifted = np.subtract(values, low, dtype=np.intp)
        present[shifted] = True
        distinct = np.flatnonzero(present)
        lookup = np.zeros(len(present), np.int32)
        lookup[distinct] = np.arange(len(distinct))
        return lookup[shifted], distinct.astype(np.int64) + low
    distinct = np.unique(values[:: max(1, len(values) // _SAMPLE)])
    codes = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    if not (distinct[codes] == values).all():
        distinct, codes = np.unique(values, return_inverse=True)
    return codes, distinct.astype(np.int64)


def factorise_rows(
    columns: Sequence[Integers],
) -> tuple[Integers, Int64]:
    """Codes of rows of several columns.

    Columns whose ranges multiply to few are factorised at once, as one number.

    Returns:
        The code of each row, and the distinct rows in ascending order, shape (codes, columns).
    """
    ranges = [(int(column.min(initial=0)), int(column.max(initial=0))) for column in columns]
    sizes = [high - low + 1 for low, high in ranges]
    if prod(sizes) < max(_DENSE, 2 * len(columns[0])):
        packed = np.zeros(len(columns[0]), np.int64)
        for column, (low, _), size in zip(columns, ranges, sizes, strict=True):
            packed *= size
            packed += column
            if low:
                packed -= low
        codes, keys = factorise(packed)
        lows = np.array([low for low, _ in ranges], np.int64)
        return codes, np.column_stack(np.unravel_index(keys, sizes)).astype(np.int64) + lows
    codes, distinct = factorise(columns[0])
    rows = distinct.reshape(-1, 1)
    for column in columns[1:]:
        other, values = factorise(column)
        if len(values) == 1:
            rows = np.column_stack((rows, np.repeat(values, len(rows))))
            continue
        codes, first, second = pair_codes(codes, other, len(values))
        rows = np.column_stack((rows[first], values[second]))
    return codes, rows


def pair_codes(first: Integers, second: Integers, size: int) -> tuple[Integers, Int64, Int64]:
    """One code for each pair of codes that occurs.

    Args:
        first: codes of any range, not negative.
        second: codes in [0, size), aligned with ``first``.
        size: number of values of ``second``.

    Returns:
        The new codes, and the first and second code of each.
    """
    both = np.multiply(first, size, dtype=np.int64)
    both += second
    codes, keys = factorise(both)
    return codes, keys // max(size, 1), keys % max(size, 1)


def regroup(codes: Integers, keys: Sequence[Key]) -> tuple[Integers, list[Key]]:
    """Merges codes whose keys are equal.

    Args:
        codes: index into ``keys`` per event.
        keys: what each code is called; may repeat; anything hashable.

    Returns:
        New codes, and the distinct keys in the order of their first code.
    """
    places: dict[Key, int] = {}
    mapped = np.array([places.setdefault(key, len(places)) for key in keys], np.int32)
    distinct = list(places)
    return (codes if len(distinct) == len(keys) else mapped[codes]), distinct


def sums(codes: Integers, values: Integers, count: int) -> Int64:
    """Exact sum of the values of each code in [0, count).

    ``bincount`` adds in doubles, which lose single nanoseconds beyond 2**53, and takes longer: 0.06
    against 0.04 s for 5 M values.
    """
    total = np.zeros(count, np.int64)
    # Of another width they would take ten times as long.
    np.add.at(total, codes, values.astype(np.int64, copy=False))
    return total


def sorted_places(values: Integers, *, descending: bool = False) -> Int32:
    """Places of the values in their order, equal ones as they stand."""
    if not len(values):
        return np.empty(0, np.int32)
    low, high = int(values.min()), int(values.max())
    place_bits = (len(values) - 1).bit_length()
    if (high - low).bit_length() + place_bits > _KEY_BITS:
        return np.argsort(~values if descending else values, kind="stable").astype(np.int32)
    # Key and place packed into one integer: 5 M rows in 0.2 s, a third of a stable argsort.
    packed = values.astype(np.int64)
    if descending:
        np.subtract(high, packed, out=packed)
    else:
        packed -= low
    packed <<= place_bits
    packed |= np.arange(len(packed))
    packed.sort()
    packed &= (1 << place_bits) - 1
    return packed.astype(np.int32)


def used(codes: Integers) -> Indices:
    """Which codes occur, ascending; codes are not negative."""
    present = np.zeros(int(codes.max(initial=-1)) + 1, bool)
    present[codes] = True
    return np.flatnonzero(present)


def among(codes: UInt8, some: Iterable[int]) -> Bool:
    """Which codes are some of these: ``np.isin`` takes three times as long."""
    table = np.zeros(256, bool)
    table[[*some]] = True
    return table[codes]


def first_rows(codes: Integers) -> Indices:
    """The first row of each code that occurs, by code; codes are not negative."""
    if int(codes.max(initial=0)) >= _DENSE:
        codes, _ = factorise(codes)
    first = np.full(int(codes.max(initial=-1)) + 1, -1, np.intp)
    # Of equal places the last that is assigned stays.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first[first >= 0]


def by_code(codes: Integers, count: int) -> tuple[Indices, Indices]:
    """Rows in the order of their codes, of equal codes in ascending order, and each code's begin.

    Args:
        codes: of each row, in [0, count).
        count: number of codes.

    Returns:
        int64 (n,) and (count + 1,).
    """
    edges = np.zeros(count + 1, np.intp)
    np.cumsum(np.bincount(codes, minlength=count), out=edges[1:])
    if count <= _RADIX:
        return np.argsort(codes.astype(np.int16), kind="stable"), edges
    # Code and row in one integer: a plain sort takes a tenth of a stable argsort.
    bits = max(len(codes) - 1, 0).bit_length()
    packed = codes.astype(np.int64) << bits
    packed |= np.arange(len(codes))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed, edges


def rows_of_values(values: Integers) -> Iterator[tuple[int, Indices]]:
    """Each distinct value, ascending, with its rows."""
    codes, distinct = factorise(values)
    return zip(distinct.tolist(), rows_of_codes(codes, len(distinct)), strict=True)


def rows_of_codes(codes: Integers, count: int) -> list[Indices]:
    """Rows of each code in [0, count), ascending; an empty array for a code without rows."""
    if count <= _FEW:
        return [np.flatnonzero(codes == code) for code in range(count)]
    order, edges = by_code(codes, count)
    return np.split(order, edges[1:-1])
