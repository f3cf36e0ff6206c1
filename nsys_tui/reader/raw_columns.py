"""Integer columns of a table as they were read; what becomes of rows that lack a number.

A row without a number that it must have is left out, counted and told: a default in its place
would be a fact that nobody recorded, an event at time 0, on GPU -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.model.arrays import Bool, Int64
from nsys_tui.model.notes import Note, Notes

KINDS: Final = {
    str: "text",
    bytes: "a blob",
    float: "a fraction",
    int: "a number",
    type(None): "NULL",
}
"""What stands where something else is expected, for sentences."""
EARLY: Final = "a time before its start"


class Wanted(NamedTuple):
    """What the values of a column should be; others are counted."""

    filled: bool = False
    """Whether NULL is counted too."""
    required: bool = False
    """Whether a row without a number there is left out."""
    bits: int = 64


_BYTE: Final = 8
_WIDEST: Final = 64


@dataclass(frozen=True)
class RawColumns:
    """Integer columns of one table, row for row in the order of the file's rowids.

    ``values[name]`` has shape ``(rows,)``; a NULL reads as 0 there and is True in ``nulls[name]``.
    """

    values: dict[str, Int64]
    """Asked columns; those that the table lacks are absent."""
    nulls: dict[str, Bool]
    """Only for columns that hold NULLs."""
    rowid: Int64
    """The row's id; a running number from 1 where the table has none."""
    method: str
    """``pages`` or ``sqlite3``."""
    why: str = ""
    """Reason for falling back to ``sqlite3``."""
    bad: dict[str, Counter[str]] = field(default_factory=dict)
    """Column -> how many values of which other kind it has: NULL here, or in a row left out."""
    left_out: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Places among all rows read of those that are not here: a required value is no integer."""


def _fitting(piece: RawColumns, wanted: Mapping[str, Wanted]) -> RawColumns:
    """The same with NULL for the numbers that have more bits than their column's."""
    values, nulls, bad = dict(piece.values), dict(piece.nulls), dict(piece.bad)
    for name, (_, _, bits) in wanted.items():
        numbers = piece.values.get(name)
        if bits == _WIDEST or numbers is None or not len(numbers):
            continue
        low, high = (0, 255) if bits == _BYTE else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if numbers.min() < low or numbers.max() > high:
            beyond = (numbers < low) | (numbers > high)
            values[name] = np.where(beyond, 0, numbers)
            nulls[name] = beyond | nulls.get(name, False)
            kind = f"a number beyond {bits} bits"
            bad[name] = bad.get(name, Counter()) + Counter({kind: np.count_nonzero(beyond)})
    return replace(piece, values=values, nulls=nulls, bad=bad)


def whole_rows(piece: RawColumns, wanted: Mapping[str, Wanted]) -> RawColumns:
    """The rows that have a number in every required column; the others are counted."""
    if any(one.bits != _WIDEST for one in wanted.values()):
        piece = _fitting(piece, wanted)
    filled = {name: one.required for name, one in wanted.items() if one.filled}
    lacking = {name: null for name, null in piece.nulls.items() if name in filled}
    if not lacking:
        return piece
    bad = dict(piece.bad)
    for name, null in lacking.items():
        kinds = bad.get(name, Counter())
        bad[name] = kinds + Counter({KINDS[type(None)]: np.count_nonzero(null) - kinds.total()})
    left_out = np.zeros(len(piece.rowid), bool)
    for name, null in lacking.items():
        if filled[name]:
            left_out |= null
    kept = ~left_out
    return replace(
        piece,
        values={name: values[kept] for name, values in piece.values.items()},
        nulls={n: null[kept] for n, null in piece.nulls.items() if not filled.get(n)},
        rowid=piece.rowid[kept],
        bad=bad,
        left_out=np.flatnonzero(left_out),
    )


def note_strange(
    notes: Notes, table: str, column: str, kinds: Mapping[str, int], then: str
) -> None:
    """Says how many values of a column are of other kinds, and what became of them."""
    for kind, count in kinds.items():
        rows = "row" if count == 1 else "rows"
        text = f"{count:,} {rows} with {kind} in `{column}` of {table}{then}"
        notes.add(Note(text, table, column))


class Collector:
    """Puts pieces together without holding them twice."""

    def __init__(self, columns: Sequence[str], expected: int) -> None:
        self._rowid = np.empty(expected, np.int64)
        self._values = {name: np.empty(expected, np.int64) for name in columns}
        self._nulls: dict[str, Bool] = {}
        self._bad: dict[str, Counter[str]] = {}
        self._left_out = [np.empty(0, np.int64)]
        self._seen = 0
        self._done = 0
        self._method, self._why = "pages", ""

    def add(self, piece: RawColumns) -> None:
        """Takes the next piece."""
        start, stop = self._done, self._done + len(piece.rowid)
        self._reserve(stop)
        self._rowid[start:stop] = piece.rowid
        for name, values in piece.values.items():
            self._values[name][start:stop] = values
        for name, null in piece.nulls.items():
            if name not in self._nulls:
                self._nulls[name] = np.zeros(len(self._rowid), np.bool_)
            self._nulls[name][start:stop] = null
        for name, kinds in piece.bad.items():
            self._bad.setdefault(name, Counter()).update(kinds)
        self._left_out.append(self._seen + piece.left_out)
        self._seen += len(piece.rowid) + len(piece.left_out)
        self._method, self._why = piece.method, piece.why
        self._done = stop

    def result(self) -> RawColumns:
        """All pieces as one."""
        done = self._done
        return RawColumns(
            {name: array[:done] for name, array in self._values.items()},
            {name: array[:done] for name, array in self._nulls.items()},
            self._rowid[:done],
            self._method,
            self._why,
            self._bad,
            left_out=np.concatenate(self._left_out),
        )

    def _reserve(self, rows: int) -> None:
        capacity = len(self._rowid)
        if rows <= capacity:
            return
        more = max(rows, 2 * capacity) - capacity
        self._rowid = np.concatenate([self._rowid, np.empty(more, np.int64)])
        for name, array in self._values.items():
            self._values[name] = np.concatenate([array, np.empty(more, np.int64)])
        for name, mask in self._nulls.items():
            self._nulls[name] = np.concatenate([mask, np.zeros(more, np.bool_)])
