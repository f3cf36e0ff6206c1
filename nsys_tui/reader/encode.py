"""Columns of a file by the names of the schema, and their encoding: few values become small codes.

The only way in which event sets reach columns: what is absent, or declared as another type, is left
out, and what reads a column here knows that it is not there.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Array, Bool, Int32, Int64, Integers
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise, factorise_rows, regroup
from nsys_tui.model.progress import Progress
from nsys_tui.reader import columns as stored
from nsys_tui.reader.columns import read_text
from nsys_tui.reader.raw_columns import EARLY, RawColumns, Wanted, note_strange
from nsys_tui.reader.schema import declared
from nsys_tui.reader.sqlite import Database


def read_columns(
    db: Database, table: str, columns: Sequence[str], progress: Progress | None = None
) -> RawColumns:
    """Whole columns of numbers; arguments and errors are those of ``columns.read_columns``."""
    names, actual, wanted = _asked(db, table, columns)
    raw = _renamed(stored.read_columns(db, table, actual, progress, wanted), names)
    _note_times(db, table, _strange_times(raw))
    return raw


def iter_columns(
    db: Database, table: str, columns: Sequence[str], progress: Progress | None = None
) -> Iterator[RawColumns]:
    """The same piece by piece, as ``columns.iter_columns``."""
    names, actual, wanted = _asked(db, table, columns)
    strange: Counter[tuple[str, str]] = Counter()
    for piece in stored.iter_columns(db, table, actual, progress, wanted):
        raw = _renamed(piece, names)
        strange += _strange_times(raw)
        yield raw
    _note_times(db, table, strange)


def sample_columns(db: Database, table: str, columns: Sequence[str], rows: int) -> RawColumns:
    """About so many rows, as ``columns.sample_columns``."""
    names, actual, wanted = _asked(db, table, columns)
    raw = stored.sample_columns(db, table, actual, rows, wanted)
    return _renamed(raw, names)


def read_text_column(db: Database, table: str, column: str) -> tuple[Int32, list[str]]:
    """A column of text as codes and distinct values, as ``columns.read_text_column``."""
    name = db.schema.names(table, (column,)).get(column)
    if name is None:
        return np.empty(0, np.int32), []
    return stored.read_text_column(db, table, name)


def _asked(
    db: Database, table: str, columns: Sequence[str]
) -> tuple[dict[str, str], list[str], dict[str, Wanted]]:
    """Names in the file by those of the schema, each once, and what their values should be."""
    names = db.schema.names(table, tuple(columns))
    known = declared(table)
    pairs = [(known.columns[name], actual) for name, actual in names.items()] if known else []
    wanted = {
        a: Wanted(c.filled, c.required and not c.may_be_null, c.bits)
        for c, a in pairs
        if c.filled or c.bits != Wanted().bits
    }
    return names, list(dict.fromkeys(names.values())), wanted


def _renamed(raw: RawColumns, names: dict[str, str]) -> RawColumns:
    """Values under the names of the schema; one column of the file may stand for two."""
    if all(name == actual for name, actual in names.items()):
        return raw
    return replace(
        raw,
        values={name: raw.values[actual] for name, actual in names.items()},
        nulls={name: raw.nulls[a] for name, a in names.items() if a in raw.nulls},
        bad={name: raw.bad[a] for name, a in names.items() if a in raw.bad},
    )


_FAR: Final = "a time more than 36 years from the session's start"


def _strange_times(raw: RawColumns) -> Counter[tuple[str, str]]:
    """By column and what is strange, how many times ``instants`` and ``ends`` change."""
    found: Counter[tuple[str, str]] = Counter()
    for name in raw.values.keys() & {"start", "end", "timestamp"}:
        values = raw.values[name]
        if len(values) and (values.min() < -FARTHEST or values.max() > FARTHEST):
            found[name, _FAR] = int(((values < -FARTHEST) | (values > FARTHEST)).sum())
    if {"start", "end"} <= raw.values.keys():
        early = raw.values["end"] < raw.values["start"]
        if early.any():
            found["end", EARLY] = int((early & ~is_null(raw, "end")).sum())
    return +found


def _note_times(db: Database, table: str, strange: Counter[tuple[str, str]]) -> None:
    for (name, kind), count in sorted(strange.items()):
        then = ": taken for moments" if kind == EARLY else ": cut there"
        note_strange(db.notes, table, name, {kind: count}, then)


NO_ID = -1


def codes(values: Int64) -> tuple[Int64, Int32]:
    """Distinct values of a column (int64, ascending) and the code of each row (int32)."""
    code, distinct = factorise(values)
    return distinct, code.astype(np.int32, copy=False)


def combine(columns: Sequence[Int64]) -> tuple[list[Int64], Int32]:
    """Encodes rows of several columns: one code per distinct combination.

    Returns:
        for each column, its value in each distinct combination; and the code of each row.
    """
    code, rows = factorise_rows(columns)
    return list(rows.T), code.astype(np.int32, copy=False)


def column(raw: RawColumns, name: str, default: int = NO_ID) -> Int64:
    """One column with NULLs and a missing column replaced by ``default``."""
    values = raw.values.get(name)
    if values is None:
        return np.full(len(raw.rowid), default, np.int64)
    nulls = raw.nulls.get(name)
    if nulls is None:
        return values
    return np.where(nulls, default, values)


def instants(raw: RawColumns, name: str) -> Int64:
    """A column of times, NULLs as 0, cut to ``FARTHEST``: no difference or short sum overflows."""
    values = column(raw, name, 0)
    if len(values) and (values.min() < -FARTHEST or values.max() > FARTHEST):
        return np.clip(values, -FARTHEST, FARTHEST)
    return values


def is_null(raw: RawColumns, name: str) -> Bool:
    """True where a column holds NULL or does not exist."""
    if name not in raw.values:
        return np.ones(len(raw.rowid), bool)
    return raw.nulls.get(name, np.zeros(len(raw.rowid), bool))


def note_unknown(
    db: Database, table: str, name: str, values: Integers, known: Sequence[int], then: str
) -> None:
    """Says how many values of an enum nobody knows here, and what became of their rows."""
    if strange := np.count_nonzero(~np.isin(values, known)):
        note_strange(db.notes, table, name, {"unknown values": int(strange)}, then)


def ends(raw: RawColumns) -> Int64:
    """The ``end`` column; an event without an end, or with one before its start, is a point."""
    start = instants(raw, "start")
    return np.maximum(start, np.where(is_null(raw, "end"), start, instants(raw, "end")))


def in_start_order(arrays: dict[str, Array]) -> dict[str, Array]:
    """Sorts the columns of an event set by (start, rowid), one after the other and in their place.

    Args:
        arrays: columns of equal length with at least ``start`` and ``rowid``; used up.
    """
    start, rowid = arrays["start"], arrays["rowid"]
    rising = bool((rowid[1:] > rowid[:-1]).all())
    if (start[1:] > start[:-1]).all() or (rising and (start[1:] >= start[:-1]).all()):
        return arrays
    order = np.argsort(start, kind="stable") if rising else np.lexsort((rowid, start))
    for name in arrays:
        arrays[name] = arrays[name][order]
    return arrays


UNNAMED = "[unnamed]"


class Strings:
    """Names by id, read once on first use.

    An id without a row (trimmed files) reads as ``[string N]``, a NULL id as ``[unnamed]``.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._values: dict[int, str] | None = None

    def _load(self) -> dict[int, str]:
        with self._lock:
            if self._values is None:
                if "StringIds" in self._db.tables:
                    ids, values = read_text(self._db, "StringIds", "id", "value")
                    self._values = dict(zip(ids.tolist(), values, strict=True))
                else:
                    self._values = {}
            return self._values

    def get(self, string_id: int) -> str:
        """The name of one id; -1 stands for NULL."""
        if string_id == -1:
            return UNNAMED
        return self._load().get(string_id, f"[string {string_id}]")

    def encode(self, ids: Int64) -> tuple[tuple[str, ...], Int32]:
        """Dictionary-encodes a column of ids: the names that occur, each once, and rows' codes."""
        distinct, code = codes(ids)
        return self.named(distinct.tolist(), code)

    def named(self, ids: Sequence[int], code: Int32) -> tuple[tuple[str, ...], Int32]:
        """The names of some ids, each once though two ids may have it, and codes to match."""
        merged, names = regroup(code, [self.get(number) for number in ids])
        return tuple(names), merged.astype(np.int32, copy=False)

    def merge(
        self, ids: Int64, texts: list[str], text_codes: Int32
    ) -> tuple[tuple[str, ...], Int32]:
        """Encodes rows by their string; by their inline text (code >= 0) where they have none."""
        strings = self._load()
        distinct, code = codes(ids)
        lacking = np.array([number not in strings for number in distinct.tolist()], bool)
        inline = lacking[code] & (text_codes >= 0)
        merged = (*map(self.get, distinct.tolist()), *texts)
        code = np.where(inline, text_codes + len(distinct), code)
        used, final = codes(code.astype(np.int64))
        one_each, names = regroup(final, [merged[i] for i in used])
        return tuple(names), one_each.astype(np.int32, copy=False)
