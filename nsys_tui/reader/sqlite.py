"""The user's SQLite file, opened so that nothing can be written and nothing in it can act.

The only module that holds a ``sqlite3`` connection for reports. It serves small tables, text and
every table whose pages ``btree.py`` refuses. What the tables mean is no business of this module.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final
from urllib.parse import quote

from nsys_tui.errors import UnreadableReportError
from nsys_tui.model.arrays import Int64
from nsys_tui.model.notes import Notes
from nsys_tui.names import visible
from nsys_tui.reader.cache import cache_at
from nsys_tui.reader.filecheck import (
    Header,
    Stamp,
    open_descriptor,
    read_header,
    reading,
    require_whole,
    stamp,
    unreadable,
)
from nsys_tui.reader.raw_columns import KINDS, note_strange
from nsys_tui.reader.recovery import left_over, recovered_copy
from nsys_tui.reader.resolved import Export, Resolved, as_declared, decoded, resolve
from nsys_tui.reader.schema import METADATA_TABLES, Column, declared, is_nsys_export

_SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA query_only = ON",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
)
_SMALLEST_ROW = 4
_API: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_TROUBLE = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, OverflowError)
"""What ``sqlite3`` raises on damaged files; a message may quote names that are no UTF-8."""


class Database:
    """A report's SQLite file, strictly read-only.

    Safe to share between threads: one connection, one lock, and one descriptor for page reads.

    Attributes:
        path: the file as the user named it.
        tables: real tables (no views, no virtual tables) with their column names in file order;
            without those that the schema does not believe.
        schema: which declared tables and columns the file has.
        views: views under names of nsys; what they ask for may take forever.
        header: the file's SQLite header.
        descriptor: open descriptor of the file that is really read, for positional reads.
        generated: tables that hold generated columns, whose records differ from their columns.
        leaves: pages of tables, and the largest rowid of each, once ``btree.py`` listed them.
        notes: what was not believed, from whoever reads here.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        header: Header,
        connection: sqlite3.Connection,
        copy: Path | None,
    ) -> None:
        self.path = path
        self.descriptor = descriptor
        self.header = header
        self._connection = connection
        self._copy = copy
        self._lock = threading.RLock()
        self._opened: Stamp = stamp(descriptor)
        self._closed = False
        self._release = weakref.finalize(self, os.close, descriptor)
        self.notes = Notes()
        self.generated: frozenset[str] = frozenset()
        self.leaves: dict[str, tuple[Int64, Int64]] = {}
        self.schema = Resolved()
        self.views: tuple[str, ...] = ()
        self.tables: Mapping[str, tuple[str, ...]] = {}

    @classmethod
    def open(cls, path: Path, scratch: Path | None = None) -> Database:
        """Opens an nsys export.

        A left-over write-ahead log or hot journal is applied to a copy below ``scratch``, never
        in place; nothing is written or created beside the report.

        Args:
            path: the ``.sqlite`` file.
            scratch: folder for such a copy; the user's cache folder by default.

        Raises:
            UnreadableReportError: the file cannot be a report; says why and what to do.
        """
        path = Path(path)
        descriptor, copy = open_descriptor(path), None
        try:
            header = read_header(path, descriptor)
            actual = path.resolve()
            log = left_over(actual, descriptor, header)
            if log is not None:
                copy = recovered_copy(actual, log, scratch or cache_at().copies)
                actual = copy
                original, descriptor = descriptor, open_descriptor(copy)
                os.close(original)
                header = read_header(path, descriptor)
            require_whole(path, descriptor, header)
            connection = _connect(path, actual, descriptor)
        except BaseException:
            os.close(descriptor)
            _remove(copy)
            raise
        _remove(copy)
        database = cls(path, descriptor, header, connection, copy)
        try:
            database._read_tables()
        except BaseException:
            database.close()
            raise
        return database

    def _read_tables(self) -> None:
        rows = self.query(
            "SELECT m.name, c.name, c.hidden, c.type"
            " FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c"
            " WHERE m.type = 'table' AND m.rootpage > 0 AND m.name NOT GLOB 'sqlite_*'"
            " ORDER BY m.rowid, c.cid"
        )
        columns: dict[str, dict[str, str]] = {}
        for table, column, _, kind in rows:
            columns.setdefault(table, {})[column] = kind
        self.generated = frozenset(table for table, _, hidden, _ in rows if hidden)
        views = self.query("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name")
        self.views = tuple(name for (name,) in views if is_nsys_export([name]))
        self.tables = {name: tuple(types) for name, types in columns.items()}
        cause = ""
        if not is_nsys_export(columns):
            cause = (
                "it is a SQLite database, but not one that nsys exported: it has no table of nsys"
            )
        elif without := self._without_rowid():
            cause = f"its {without} has no rowid, which tells rows apart: nsys makes no such table"
        if cause:
            raise unreadable(
                self.path, cause, "export one: nsys export --type sqlite REPORT.nsys-rep"
            )
        self.schema = resolve(
            columns, self._export(), self._may_have_rows, lambda: self.only_process() is not None
        )
        self.notes.add(*self.schema.notes)
        believed = {t: names for t, names in self.tables.items() if t not in self.schema.off}
        self.tables = MappingProxyType(believed)

    def _without_rowid(self) -> str:
        """A declared table whose rows have no numbers; empty for none."""
        asked = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%rowid%'"
        names = (name for (name,) in self.query(asked) if declared(name))
        return next((name for name in names if self.rowid_name(name) is None), "")

    def _export(self) -> Export:
        """What the exporter says about itself; nothing where its table is not believed."""
        pairs: dict[object, object] = {}
        for table in METADATA_TABLES:
            if {"name", "value"} <= {*self.tables.get(table, ())}:
                pairs |= dict(self.query(f"SELECT name, value FROM {quoted(table)}"))
        product, schema = (pairs.get(f"EXPORT_{key}_VERSION") for key in ("PRODUCT", "SCHEMA"))
        return Export(str(product or ""), str(schema or ""))

    def _may_have_rows(self, table: str) -> bool:
        """Whether a table has a row, or is so damaged that it cannot be told."""
        try:
            return self.has_rows(table)
        except UnreadableReportError:
            return True

    def only_process(self) -> int | None:
        """globalPid of the process that made all CUDA calls, if there is just one."""
        if "globalTid" not in self.tables.get(_API, ()):
            return None
        known = self.query(f"SELECT DISTINCT globalTid & ~16777215 FROM {_API} LIMIT 2")
        is_one = len(known) == 1 and isinstance(known[0][0], int)
        return known[0][0] if is_one else None

    @property
    def recovered(self) -> bool:
        """Whether a copy is read, to which a log beside the file was applied."""
        return self._copy is not None

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        return self._opened.size

    @property
    def page_count(self) -> int:
        """Pages of the database: fewer than the file has, where its header says so."""
        pages = self.size // self.header.page_size
        return min(pages, self.header.page_count or pages)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection itself, for who makes statements of their own of it and guards them."""
        return self._connection

    def has_rows(self, table: str) -> bool:
        """Tells whether the table exists and has a row (lazy exports leave tables out)."""
        if table not in self.tables:
            return False
        return bool(self.query(f"SELECT 1 FROM {quoted(table)} LIMIT 1"))

    def row_count(self, table: str) -> int:
        """Estimates the number of rows from the span of rowids; 0 for a missing table.

        The span costs two looks at the tree. Where it cannot be a count, rows are counted.
        """
        if table not in self.tables:
            return 0
        name = quoted(table)
        rowid = self.rowid_name(table)
        if rowid is not None:
            ends = f"SELECT (SELECT min({rowid}) FROM {name}), (SELECT max({rowid}) FROM {name})"
            first, last = self.query(ends)[0]
            if first is None:
                return 0
            if 0 <= last - first < self.size // _SMALLEST_ROW:
                return int(last - first + 1)
        return int(self.query(f"SELECT count(*) FROM {name}")[0][0])

    def rowid_name(self, table: str) -> str | None:
        """Finds a name by which SQL reaches the rowid; None if the table has no rowid."""
        taken = {column.lower() for column in self.tables[table]}
        for name in ("rowid", "_rowid_", "oid"):
            if name in taken:
                continue
            try:
                self.query(f"SELECT {name} FROM {quoted(table)} LIMIT 0")
            except UnreadableReportError:
                return None
            return name
        return None

    def query(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement with bound parameters and fetches all rows.

        Raises:
            UnreadableReportError: SQLite refuses the statement or finds the file damaged.
        """
        with self._lock, self._explained():
            return self._connection.execute(sql, params).fetchall()

    def stream(
        self, sql: str, params: Sequence[object] = (), size: int = 4096
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Runs a statement and yields its rows in lists of up to ``size``.

        Raises:
            UnreadableReportError: as ``query``, also in the midst of the rows.
        """
        with self._lock, self._explained():
            cursor = self._connection.execute(sql, params)
        try:
            while True:
                with self._lock, self._explained():
                    rows = cursor.fetchmany(size)
                if not rows:
                    return
                yield rows
        finally:
            cursor.close()

    def select(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Fetches columns of a small table of the schema in file order.

        Args:
            table: the table; a missing one has no rows.
            columns: names of the schema; a column that the file lacks comes as None, and so does
                a value of another type, which is noted.
        """
        if table not in self.tables:
            return []
        if declared(table) is None:
            names = {name: name for name in columns if name in self.tables[table]}
        else:
            names = self.schema.names(table, tuple(columns))
        terms = ", ".join(quoted(names[name]) if name in names else "NULL" for name in columns)
        rows = self.query(f"SELECT {terms} FROM {quoted(table)} NOT INDEXED")
        if (known := declared(table)) is None or not rows:
            return rows
        typed = [
            self._typed(table, known.columns[name], values) if name in names else values
            for name, values in zip(columns, zip(*rows, strict=True), strict=True)
        ]
        return list(zip(*typed, strict=True))

    def _typed(self, table: str, column: Column, values: Sequence[Any]) -> Sequence[Any]:
        """The values of a column, None for those that are not of its type; such are noted."""
        typed = as_declared(column.type, values)
        if typed is values and not (column.filled and None in values):
            return values
        pairs = list(zip(values, typed, strict=True))
        lost = (v for v, t in pairs if t is None and (v is not None or column.filled))
        read = (v for v, t in pairs if isinstance(t, str) and not isinstance(v, str))
        for strange, then in ((lost, ": taken as missing"), (read, ": read as text")):
            kinds = Counter(KINDS[type(value)] for value in strange)
            note_strange(self.notes, table, column.name, kinds, then)
        return typed

    def check_unchanged(self) -> None:
        """Makes sure that nobody wrote into the file since it was opened.

        Raises:
            UnreadableReportError: size, time or change counter differ, so what was read may mix
                old and new pages.
        """
        with reading(self.path):
            now = stamp(self.descriptor)
        if now != self._opened:
            hint = "wait until the program that writes it has finished, then open it again"
            raise unreadable(self.path, "the file changed while it was being read", hint)

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._connection.close()
            self._release()
            _remove(self._copy)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except _TROUBLE as error:
            if self._closed:
                raise unreadable(self.path, "it is closed", "open it again") from error
            self.check_unchanged()
            hint = "if the file is damaged, export or copy the report again"
            raise _refused_by_sqlite(self.path, error, hint) from error


def _refused_by_sqlite(path: Path, error: Exception, hint: str) -> UnreadableReportError:
    """The error for what SQLite says, which may quote anything that stands in the file."""
    return unreadable(path, f"SQLite says: {visible(str(error))}", hint)


def quoted(name: str) -> str:
    """Quotes an identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _connect(path: Path, actual: Path, descriptor: int) -> sqlite3.Connection:
    """Connects to ``actual`` without locks, logs or files of its own; hardens the session."""
    uri = f"file:{quote(os.fsencode(actual.as_posix()))}?immutable=1&mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
    except sqlite3.Error as error:
        raise _refused_by_sqlite(path, error, "check the path and permissions") from error
    try:
        connection.text_factory = decoded
        for setting in _SETTINGS:
            connection.execute(setting).close()
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not os.path.samestat(os.stat(actual), os.fstat(descriptor)):
            raise unreadable(
                path, "the file was replaced while it was being opened", "open it again"
            )
    except _TROUBLE as error:
        connection.close()
        hint = "export or copy the report again"
        raise unreadable(path, f"the database is damaged: {visible(str(error))}", hint) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _remove(copy: Path | None) -> None:
    """Removes a recovered copy; where open files cannot be removed, the second call does it."""
    if copy is not None:
        shutil.rmtree(copy.parent, ignore_errors=True)
