"""Large tables read piece by piece straight into the columns that are kept.

Converting each piece while it is in the processor's cache, and touching each kept column once, took
a third of the time of converting whole columns (5 M kernels, 2 cores).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.errors import UnreadableReportError
from nsys_tui.model.arrays import Array, Indices, Int32, Int64
from nsys_tui.model.progress import Progress
from nsys_tui.reader.encode import in_start_order, iter_columns
from nsys_tui.reader.raw_columns import RawColumns
from nsys_tui.reader.sqlite import Database

Arrays: TypeAlias = dict[str, Array]

NOTHING: Final = RawColumns({}, {}, np.empty(0, np.int64), "none")
Convert: TypeAlias = "Callable[[RawColumns], Arrays]"
"""Makes the kept columns of one piece, always the same ones with the same types."""
_DENSE: Final = 1 << 22
_AT_A_TIME: Final = 1 << 17
"""Rows moved at a time: 1 MB of a column stays in the processor's cache."""


class Codebook:
    """Codes for a column of few distinct values, learned as pieces come."""

    def __init__(self) -> None:
        self._table = np.full(1024, -1, np.int32)
        self._known = np.empty(0, np.int64)
        self._code = np.empty(0, np.int32)
        self.values: list[int] = []

    def encode(self, values: Int64) -> Int32:
        """Codes of some values; new values get the next numbers."""
        if not len(values):
            return np.empty(0, np.int32)
        low, high = int(values.min()), int(values.max())
        return self._dense(values, high) if low >= -1 and high < _DENSE else self._wide(values)

    def _dense(self, values: Int64, high: int) -> Int32:
        if high + 2 > len(self._table):
            wider = np.full(2 * (high + 2), -1, np.int32)
            wider[: len(self._table)] = self._table
            self._table = wider
        places = values + 1
        codes = self._table[places]
        if codes.min() < 0:
            self.learn(np.unique(values[codes < 0]))
            codes = self._table[places]
        return codes

    def _wide(self, values: Int64) -> Int32:
        codes = self._look_up(values)
        if codes is None:
            self.learn(np.setdiff1d(values, self._known))
            codes = self._look_up(values)
        assert codes is not None
        return self._code[codes]

    def _look_up(self, values: Int64) -> Indices | None:
        if not len(self._known):
            return None
        position = np.minimum(np.searchsorted(self._known, values), len(self._known) - 1)
        return position if (self._known[position] == values).all() else None

    def learn(self, new: Int64) -> None:
        """Gives the next numbers to values, in their order, that are not known yet."""
        first = len(self.values)
        new = new[~np.isin(new, self._known)]
        self.values += new.tolist()
        numbers = np.arange(first, len(self.values), dtype=np.int32)
        known = np.concatenate([self._known, new])
        order = np.argsort(known)
        self._code = np.concatenate([self._code, numbers])[order]
        self._known = known[order]
        small = (self._known >= -1) & (self._known < len(self._table) - 1)
        self._table[self._known[small] + 1] = self._code[small]

    def ascending(self, codes: Int32) -> tuple[Int64, Int32]:
        """The distinct values in ascending order, and codes changed to match."""
        change = np.empty(len(self._known), np.int32)
        change[self._code] = np.arange(len(self._known), dtype=np.int32)
        if (np.diff(change) == 1).all():
            return self._known, codes
        return self._known, change[codes]


class Tuples:
    """Codes for combinations of columns, learned as pieces come."""

    def __init__(self, columns: int) -> None:
        self._parts = [Codebook() for _ in range(columns)]
        self._whole = Codebook()
        self._bits = [63 // columns] * columns
        """Bits that the code of each column takes in the key of a combination."""

    def encode(self, columns: Sequence[Int64]) -> Int32:
        """One code per row for its combination of values.

        Raises:
            UnreadableReportError: the columns differ too much to be combined: they are damaged.
        """
        codes = [part.encode(values) for part, values in zip(self._parts, columns, strict=True)]
        needed = [(len(part.values) - 1).bit_length() for part in self._parts]
        if any(need > bits for need, bits in zip(needed, self._bits, strict=True)):
            self._make_room(needed)
        key = np.zeros(len(columns[0]), np.int64)
        for code, bits in zip(codes, self._bits, strict=True):
            key = (key << bits) | code
        return self._whole.encode(key)

    @property
    def values(self) -> list[tuple[int, ...]]:
        """The combination of each code."""
        return [
            tuple(part.values[code] for part, code in zip(self._parts, codes, strict=True))
            for codes in self._combinations()
        ]

    def _combinations(self) -> list[tuple[int, ...]]:
        keys = self._whole.values
        parts: list[list[int]] = []
        for bits in reversed(self._bits):
            parts.append([key & ((1 << bits) - 1) for key in keys])
            keys = [key >> bits for key in keys]
        return list(zip(*reversed(parts), strict=True))

    def _make_room(self, needed: Sequence[int]) -> None:
        """Gives each column as many bits as it needs and shares the rest; codes stay."""
        spare = (63 - sum(needed)) // len(needed)
        if spare < 0:
            raise UnreadableReportError(
                "cannot read the report",
                "the ids of its events are all different from each other, as in a damaged file",
                "export or copy the report again",
            )
        known = np.array(self._combinations(), np.int64).reshape(-1, len(needed))
        self._bits = [need + spare for need in needed]
        keys = np.zeros(len(known), np.int64)
        for codes, bits in zip(known.T, self._bits, strict=True):
            keys = (keys << bits) | codes
        self._whole = Codebook()
        self._whole.learn(keys)


class _Asked(dict[str, Any]):
    """The columns of no rows, which notes those that it is asked for."""

    def __contains__(self, name: object) -> bool:
        self[str(name)] = None
        return False

    def get(self, name: str, default: Any = None) -> Any:
        """Nothing, noted."""
        self[name] = None
        return default


def asked_by(convert: Convert) -> tuple[list[str], Arrays]:
    """The columns that ``convert`` looks at, and what it makes of no rows."""
    asked = _Asked()
    kept = convert(replace(NOTHING, values=asked))
    return list(asked), kept


def gather(
    db: Database, table: str, convert: Convert, progress: Progress | None, more: int = 0
) -> Arrays:
    """Reads a table into columns of their final types.

    Args:
        db: the open report.
        table: a table; a missing one has no rows.
        convert: what it looks at is read.
        progress: told the rows that are done.
        more: rows that ``merge`` will add to the columns, where they then stay.

    Returns:
        the kept columns, each as long as the table.
    """
    room = db.row_count(table) + more
    columns, nothing = asked_by(convert)
    kept = _room_for(nothing, room)
    done = 0
    for piece in iter_columns(db, table, columns, progress):
        stop = done + len(piece.rowid)
        if stop > room:
            room = max(stop, 2 * room)
            kept = {name: _grown(array, room) for name, array in kept.items()}
        for name, values in convert(piece).items():
            kept[name][done:stop] = values
        done = stop
    db.check_unchanged()
    return {name: array[:done] for name, array in kept.items()}


def _room_for(model: Mapping[str, Array], rows: int) -> Arrays:
    return {
        name: np.empty((rows, *values.shape[1:]), values.dtype) for name, values in model.items()
    }


def _grown(array: Array, rows: int) -> Array:
    """The array with more rows at its end: where it lies if it is the beginning of such a one."""
    base = array.base
    if isinstance(base, np.ndarray) and len(base) >= rows and _begin(base) == _begin(array):
        return base[:rows]
    wider = np.empty((rows, *array.shape[1:]), array.dtype)
    wider[: len(array)] = array
    return wider


def _begin(array: Array) -> tuple[int, np.dtype[Any], int]:
    return array.ctypes.data, array.dtype, array.ndim


def merge(parts: Sequence[Arrays]) -> Arrays:
    """Puts tables together in order of start; a column that a part lacks is zero there.

    The small tables are sorted together and then inserted into the largest, which stays in order
    and where it lies: a sort of everything took ten times as long, and new memory for five million
    operations costs more time than moving them.

    Args:
        parts: columns by name, each part with ``start`` and ``rowid``; they are used up.
    """
    *rest, largest = sorted(map(in_start_order, parts), key=lambda part: len(part["start"]))
    if not rest:
        return largest
    names = {name: values.dtype for part in (*rest, largest) for name, values in part.items()}
    small = {
        name: np.concatenate([_column_of(part, name, dtype) for part in rest])
        for name, dtype in names.items()
    }
    order = np.argsort(small["start"], kind="stable")
    position = np.searchsorted(largest["start"], small["start"][order], side="right")
    position += np.arange(len(order))
    rows = len(order) + len(largest["start"])
    merged: Arrays = {}
    for name, dtype in names.items():
        if name in largest:
            merged[name] = insert(largest.pop(name), position, small[name][order])
        else:
            merged[name] = np.zeros(rows, dtype)
            merged[name][position] = small[name][order]
    return merged


def insert(column: Array, position: Indices, values: Array | int) -> Array:
    """Moves a column's rows apart, from its end, and puts others in between.

    Args:
        column: the rows; where ``gather`` left room behind them, they stay in their memory.
        position: where the others are then, ascending.
        values: the others, or one number for all.

    Returns:
        the column with as many rows more.
    """
    column = _grown(column, len(column) + len(position))
    for start in range(len(column) - 1 & -_AT_A_TIME, -1, -_AT_A_TIME):
        lo, hi = np.searchsorted(position, (start, start + _AT_A_TIME)).tolist()
        if not hi:
            break
        part = column[start : start + _AT_A_TIME]
        kept = np.ones(len(part), bool)
        kept[position[lo:hi] - start] = False
        part[kept] = column[start - lo : start + len(part) - hi].copy()
        part[~kept] = values if isinstance(values, int) else values[lo:hi]
    return column


def _column_of(part: Arrays, name: str, dtype: np.dtype[Any]) -> Array:
    return part[name] if name in part else np.zeros(len(part["start"]), dtype)
