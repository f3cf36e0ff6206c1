"""Values that nsys would not have written, such as text among numbers, behind a query's answer."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from nsys_tui.errors import UnreadableReportError
from nsys_tui.model.notes import Notes
from nsys_tui.reader.btree import TablePages
from nsys_tui.reader.cells import PagesRefusedError
from nsys_tui.reader.raw_columns import EARLY, KINDS, note_strange
from nsys_tui.reader.schema import declared
from nsys_tui.reader.sqlite import Database, quoted

log = logging.getLogger(__name__)

FIRST: Final = 100_000
"""Rows of a table that are looked at: a query of a large one is not held up for more."""
_TAKEN: Final = ": taken as they are"
_USUAL: Final = dict.fromkeys("isp", "'integer'") | {"r": "'integer', 'real'", "t": "'text'"}
"""What SQLite calls the values of a column, by its type in the schema; ``b`` holds anything."""
_OR_NULL: Final = ", 'null'"


def strange_values(
    db: Database, read: Collection[tuple[str, str]], early: Mapping[str, Collection[int]]
) -> tuple[str, ...]:
    """Sentences on values of other kinds in the columns that a query reads.

    Args:
        db: the open file.
        read: tables and columns in lower case, those behind views among them.
        early: rows by table that the query met and that end before their start.
    """
    notes = Notes()
    for table, columns in db.schema.columns.items():
        known = declared(table)
        kinds = {
            actual: _USUAL[one.type] + ("" if one.filled else _OR_NULL)
            for name, actual in columns.items()
            if known and (table.lower(), actual.lower()) in read
            if (one := known.columns[name]).type in _USUAL
        }
        with suppress(UnreadableReportError):  # the query itself tells of damage that it meets
            for column, kinds_of in _found(db, table, kinds):
                note_strange(notes, table, column, kinds_of, _among(db, table) + _TAKEN)
            end = columns.get("end", "")
            if "start" in columns and (table.lower(), end.lower()) in read:
                met = len(early.get(table, ()))
                count = max(_early(db, table, columns["start"], end), met)
                then = (_among(db, table) if count > met else "") + _TAKEN
                note_strange(notes, table, end, {EARLY: count} if count else {}, then)
            if kinds and _among(db, table):
                log.debug("only the first %d rows of %s were searched for odd values", FIRST, table)
    return notes.texts


def _among(db: Database, table: str) -> str:
    more = db.query(f"SELECT 1 FROM main.{quoted(table)} LIMIT 1 OFFSET {FIRST}")
    return f", of the first {FIRST:,} that were looked at" if more else ""


def _early(db: Database, table: str, start: str, end: str) -> int:
    """How many ends of the first rows stand before their start."""
    rows = f"SELECT {quoted(start)} a, {quoted(end)} b FROM main.{quoted(table)} LIMIT {FIRST}"
    return int(
        db.query(f"SELECT count(*) FROM ({rows}) WHERE b < a AND typeof(a) = 'integer'")[0][0]
    )


def _found(
    db: Database, table: str, kinds: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Columns with values of other kinds than the usual ones, and how many of each."""
    numbers = [c for c, usual in kinds.items() if usual.removesuffix(_OR_NULL) == "'integer'"]
    filled = {column for column, usual in kinds.items() if not usual.endswith(_OR_NULL)}
    if numbers and _are_integers(db, table, numbers, filled):
        kinds = {column: usual for column, usual in kinds.items() if column not in numbers}
    rows = f"(SELECT {', '.join(map(quoted, kinds))} FROM main.{quoted(table)} LIMIT {FIRST})"
    tests = {c: f"typeof({quoted(c)}) NOT IN ({usual})" for c, usual in kinds.items()}
    if not tests:
        return
    sums = ", ".join(f"sum({test})" for test in tests.values())
    counts = db.query(f"SELECT {sums} FROM {rows}")[0]
    for column in (name for name, count in zip(tests, counts, strict=True) if count):
        counted = db.query(
            f"SELECT min({quoted(column)}), count(*) FROM {rows} WHERE {tests[column]}"
            f" GROUP BY typeof({quoted(column)})"
        )
        yield column, {KINDS[type(value)]: count for value, count in counted}


def _are_integers(
    db: Database, table: str, columns: Sequence[str], filled: Collection[str]
) -> bool:
    """Whether the first rows hold nothing else, and of some columns no NULL, by their pages.

    SQL takes ten times as long.
    """
    rows = 0
    try:
        pages = TablePages.open(db, table)
        if not pages.reals.isdisjoint(columns):
            return False
        for chunk in pages.chunks():
            piece = pages.decode(chunk, columns)
            if any(null.any() for name, null in piece.nulls.items() if name in filled):
                return False
            rows += len(piece.rowid)
            if rows >= FIRST:
                break
    except PagesRefusedError:
        return False
    return True
