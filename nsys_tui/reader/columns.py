"""Columns of a table as numpy arrays: from SQLite's pages where possible, else through sqlite3.

A few rows of every decoded piece are compared with what ``sqlite3`` reads, and a fall-back says why
it was needed. Meanings of columns are no business of this module.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final

import numpy as np

from nsys_tui.model.arrays import Int32, Int64
from nsys_tui.model.notes import Note
from nsys_tui.model.progress import Progress, silent
from nsys_tui.reader.ahead import read_ahead
from nsys_tui.reader.btree import Piece, TablePages
from nsys_tui.reader.cells import PagesDamagedError, PagesRefusedError
from nsys_tui.reader.raw_columns import (
    KINDS,
    Collector,
    RawColumns,
    Wanted,
    note_strange,
    whole_rows,
)
from nsys_tui.reader.sqlite import Database, quoted
from nsys_tui.reader.texts import Interner, TextSpans

log = logging.getLogger(__name__)

_ROWS_AT_A_TIME: Final = 4096
_AHEAD: Final = 2
"""Pieces decoded before they are asked for."""
_SAMPLE_PLACES: Final = 32
_ROWS_CHECKED: Final = 4
_DIFFERENT: Final = "the decoded rows differ from what SQLite reads"
_LARGEST: Final = 2**63 - 1
_ANY: Final[Mapping[str, Wanted]] = {}
_NUMBER: Final = Wanted()
_INT64: Final = range(-(2**63), 2**63)


def read_columns(
    db: Database,
    table: str,
    columns: Sequence[str],
    progress: Progress | None = None,
    wanted: Mapping[str, Wanted] = _ANY,
) -> RawColumns:
    """Reads whole integer columns of a table.

    Args:
        db: the open report.
        table: a table; a missing one has no rows.
        columns: names; those that the table lacks are left out of the result.
        progress: told the rows that are done; may raise ``CancelledError``.
        wanted: what values should be: a row is left out where a required one is NULL, text, a
            blob, a fraction or too large. The last four become NULL in other columns. All that
            is noted.

    Raises:
        UnreadableReportError: the file is damaged there, or changed meanwhile.
        CancelledError: raised by ``progress``.
    """
    present = [name for name in columns if name in db.tables.get(table, ())]
    collected = Collector(present, db.row_count(table))
    for piece in iter_columns(db, table, present, progress, wanted):
        collected.add(piece)
    db.check_unchanged()
    return collected.result()


def iter_columns(
    db: Database,
    table: str,
    columns: Sequence[str],
    progress: Progress | None = None,
    wanted: Mapping[str, Wanted] = _ANY,
) -> Iterator[RawColumns]:
    """Reads integer columns piece by piece, for figures that grow while the file is read.

    Arguments and errors are those of ``read_columns``; the caller may end early. Pieces decoded
    from pages were checked against ``sqlite3``; where pages are refused, the rest of the table
    comes through ``sqlite3``.
    """
    present = [name for name in columns if name in db.tables.get(table, ())]
    if table not in db.tables:
        return
    told, total, done = progress or silent, db.row_count(table), 0
    told(table, 0, total)
    bad: dict[str, Counter[str]] = {}
    for piece in _pieces(db, table, present):
        done += len(piece.rowid)
        kept = whole_rows(piece, wanted)
        yield kept
        for name, kinds in kept.bad.items():
            bad.setdefault(name, Counter()).update(kinds)
        told(table, done, max(done, total))
    for name, kinds in bad.items():
        then = " left out" if wanted.get(name, _NUMBER).required else ": taken as missing"
        note_strange(db.notes, table, name, kinds, then)


def sample_columns(
    db: Database,
    table: str,
    columns: Sequence[str],
    rows: int,
    wanted: Mapping[str, Wanted] = _ANY,
) -> RawColumns:
    """Reads about ``rows`` rows from places evenly spread over the table, for first estimates.

    Raises:
        UnreadableReportError: the file is damaged there.
    """
    total = db.row_count(table)
    if total <= rows:
        return read_columns(db, table, columns, wanted=wanted)
    present = [name for name in columns if name in db.tables[table]]
    collected = Collector(present, rows)
    try:
        pages = TablePages.open(db, table)
        for picked in pages.sample(max(1, rows * len(pages.leaves) // total)):
            piece = _checked(db, table, pages.decode(picked, present))
            collected.add(whole_rows(piece, wanted))
    except PagesRefusedError as refusal:
        _note_damage(db, table, refusal)
        collected = Collector(present, rows)
        for piece in _spread(db, table, present, rows, str(refusal)):
            collected.add(whole_rows(piece, wanted))
    return collected.result()


def read_text(db: Database, table: str, key: str, text: str) -> tuple[Int64, list[str]]:
    """Reads a table of texts by integer key, such as StringIds.

    Invalid UTF-8 is replaced; control characters stay, to be escaped where text is shown.

    Returns:
        Keys of shape ``(rows,)`` and as many texts; a NULL text is empty. Rows whose key is no
        integer are left out.
    """
    columns = db.tables.get(table, ())
    if key not in columns or text not in columns:
        return np.empty(0, np.int64), []
    rows = [row for row in db.select(table, (key, text)) if type(row[0]) is int]
    keys = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    return keys, [_as_text(row[1]) or "" for row in rows]


def read_text_column(db: Database, table: str, column: str) -> tuple[Int32, list[str]]:
    """Reads a text column as codes into its distinct values.

    Returns:
        Codes of shape ``(rows,)`` in rowid order, -1 for NULL, and the values in order of first
        appearance. A missing column or table has no codes and no values.
    """
    if column not in db.tables.get(table, ()):
        return np.empty(0, np.int32), []
    try:
        codes, values = _text_from_pages(db, table, column)
    except PagesRefusedError as refusal:
        _note_damage(db, table, refusal)
        codes, values = _text_through_sqlite(db, table, column)
    db.check_unchanged()
    return codes, values


def _decoded(
    db: Database, table: str, pages: TablePages, columns: Sequence[str]
) -> Iterator[RawColumns]:
    """Checked pieces in order; the next ones are decoded while the caller converts the present.

    numpy lets other threads run, so two cores share the work. An error comes out at its place.
    """

    def decode(chunk: Int64) -> RawColumns:
        return _checked(db, table, pages.decode(chunk, columns))

    chunks = pages.chunks()
    if not read_ahead.get():
        yield from map(decode, chunks)
        return
    with ThreadPoolExecutor(1, "decode") as second:
        ahead = deque(second.submit(decode, chunk) for chunk in islice(chunks, _AHEAD))
        while ahead:
            piece = ahead.popleft().result()
            ahead.extend(second.submit(decode, chunk) for chunk in islice(chunks, 1))
            yield piece


def _pieces(db: Database, table: str, columns: Sequence[str]) -> Iterator[RawColumns]:
    done = 0
    try:
        pages = TablePages.open(db, table)
        for piece in _decoded(db, table, pages, columns):
            yield piece
            done += len(piece.rowid)
    except PagesRefusedError as refusal:
        _note_damage(db, table, refusal)
        yield from _through_sqlite(db, table, columns, str(refusal), done)


def _note_damage(db: Database, table: str, refusal: PagesRefusedError) -> None:
    """Says that a table is read in another way, unless that is quite usual."""
    if isinstance(refusal, PagesDamagedError):
        db.notes.add(Note(f"pages of {table} look damaged ({refusal}): read through SQLite", table))


def _checked(db: Database, table: str, piece: Piece) -> RawColumns:
    """Compares a few decoded rows with what ``sqlite3`` reads.

    Raises:
        PagesDamagedError: they differ.
    """
    rowid, names = db.rowid_name(table), list(piece.values)
    terms = ", ".join(["1", *map(quoted, names)])
    sql = f"SELECT {terms} FROM {quoted(table)} NOT INDEXED WHERE {rowid} = ?"
    for row in _rows_to_check(len(piece.rowid)):
        mine = [
            None if name in piece.nulls and piece.nulls[name][row] else int(piece.values[name][row])
            for name in names
        ]
        values = db.query(sql, (int(piece.rowid[row]),))
        if len(values) != 1 or [_integer(value) for value in values[0][1:]] != mine:
            raise PagesDamagedError(_DIFFERENT)
    nulls = {name: null for name, null in piece.nulls.items() if null.any()}
    return RawColumns(piece.values, nulls, piece.rowid, "pages")


def _rows_to_check(count: int) -> list[int]:
    """Picks a few of ``count`` rows, the first and the last among them."""
    picks = np.linspace(0, count - 1, min(count, _ROWS_CHECKED))
    return [int(pick) for pick in picks]


def _spread(
    db: Database, table: str, columns: Sequence[str], rows: int, why: str
) -> Iterator[RawColumns]:
    """Reads short runs of rows at evenly spaced rowids."""
    rowid, name = db.rowid_name(table), quoted(table)
    first, last = db.query(
        f"SELECT (SELECT min({rowid}) FROM {name}), (SELECT max({rowid}) FROM {name})"
    )[0]
    step = (last - first) // _SAMPLE_PLACES + 1
    where = f"WHERE {rowid} >= ? AND {rowid} < ? ORDER BY {rowid} LIMIT ?"
    for start in range(first, last + 1, step):
        bounds = (start, min(start + step, _LARGEST), max(1, rows // _SAMPLE_PLACES))
        yield from _selected(db, table, columns, why, where, bounds)


def _text_from_pages(db: Database, table: str, column: str) -> tuple[Int32, list[str]]:
    pages, interner = TablePages.open(db, table), Interner()
    parts = [np.empty(0, np.int32)]
    for chunk in pages.chunks():
        spans = pages.texts(chunk, column)
        _check_texts(db, table, column, spans)
        parts.append(interner.codes_in(spans))
    return np.concatenate(parts), interner.values


def _check_texts(db: Database, table: str, column: str, spans: TextSpans) -> None:
    """Does for texts what ``_checked`` does for integers."""
    rowid, name = db.rowid_name(table), quoted(column)
    sql = f"SELECT {name} FROM {quoted(table)} NOT INDEXED WHERE {rowid} = ?"
    for row in _rows_to_check(len(spans.rowid)):
        if db.query(sql, (int(spans.rowid[row]),)) != [(spans.text(row),)]:
            raise PagesDamagedError(_DIFFERENT)


def _text_through_sqlite(db: Database, table: str, column: str) -> tuple[Int32, list[str]]:
    rowid, interner = db.rowid_name(table), Interner()
    order = f"ORDER BY {rowid}"
    stream = db.stream(f"SELECT {quoted(column)} FROM {quoted(table)} NOT INDEXED {order}")
    parts, kinds = [np.empty(0, np.int32)], Counter[str]()
    for rows in stream:
        parts.append(interner.codes(_as_text(value) for (value,) in rows))
        kinds.update(KINDS[type(value)] for (value,) in rows if not isinstance(value, str | None))
    note_strange(db.notes, table, column, kinds, ": read as text")
    return np.concatenate(parts), interner.values


def _as_text(value: object) -> str | None:
    """Turns whatever a text column holds into text."""
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _through_sqlite(
    db: Database, table: str, columns: Sequence[str], why: str, done: int
) -> Iterator[RawColumns]:
    """Reads a table in its order, from behind the rows that are done."""
    rowid = db.rowid_name(table)
    tail = f"ORDER BY {rowid} LIMIT -1 OFFSET ?"
    return _selected(db, table, columns, why, tail, (done,))


def _selected(
    db: Database,
    table: str,
    columns: Sequence[str],
    why: str,
    tail: str,
    params: Sequence[object],
) -> Iterator[RawColumns]:
    """Reads rows through ``sqlite3``; ``tail`` says which."""
    log.debug("%s through sqlite3: %s", table, why)
    rowid = db.rowid_name(table)
    terms = ", ".join([str(rowid), *map(quoted, columns)])
    sql = f"SELECT {terms} FROM {quoted(table)} NOT INDEXED {tail}"
    for rows in db.stream(sql, params, _ROWS_AT_A_TIME):
        ids, *fields = zip(*rows, strict=True)
        part = RawColumns({}, {}, np.array(ids, np.int64), "sqlite3", why)
        for name, values in zip(columns, fields, strict=True):
            _store(part, name, values)
        yield part


def _store(part: RawColumns, name: str, values: tuple[Any, ...]) -> None:
    """Puts one column's values into ``part``; what is no integer becomes NULL and is counted."""
    if set(map(type, values)) == {int}:
        part.values[name] = np.array(values, np.int64)
        return
    numbers = [_integer(value) for value in values]
    null = np.fromiter((number is None for number in numbers), np.bool_, len(numbers))
    part.values[name] = np.fromiter((number or 0 for number in numbers), np.int64, len(numbers))
    if null.any():
        part.nulls[name] = null
    pairs = zip(numbers, values, strict=True)
    kinds = Counter(KINDS[type(v)] for number, v in pairs if number is None and v is not None)
    if kinds:
        part.bad[name] = kinds


def _integer(value: object) -> int | None:
    """The value as int64 if it is a whole number, else None."""
    if isinstance(value, float) and value.is_integer() and int(value) in _INT64:
        return int(value)
    return value if isinstance(value, int) else None
