"""Runs queries over the file of one report: views, limits, and answers as tables."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, TypeAlias

from nsys_tui.errors import CancelledError, NoDataError, UsageError
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.table import Table
from nsys_tui.reader.schema import STRINGS
from nsys_tui.reader.short_names import late_names
from nsys_tui.reader.sqlite import Database, quoted
from nsys_tui.reader.views import (
    EARLY,
    LATE_NAME,
    PROCESS,
    TEMPORARY,
    VIEWS,
    View,
    device_sql,
    name_rows,
    view_sql,
)
from nsys_tui.redaction import redacted
from nsys_tui.sql.answer_table import answer_table, fetched
from nsys_tui.sql.faults import explained
from nsys_tui.sql.filled import DOCUMENTS, FIGURES, coarser, record_columns
from nsys_tui.sql.guard import MEMORY, Guard, TimeLimitError, temporary_folder
from nsys_tui.sql.hidden import copy_without_secrets, hold_secrets
from nsys_tui.sql.strange import strange_values

Parts: TypeAlias = Iterator[list[Sequence[Any]]]

TIMEOUT_S: Final = 60.0
"""Seconds of a query unless more is allowed."""
_LOOK_S: Final = 0.1
"""Seconds after which it is asked again whether a query was cancelled."""
_LOOKS: Final = 20
"""At a query that has to stop since its time is up, or it is cancelled."""
_VALUES: Final = 900
"""Values of ours that one statement stores, where some SQLites take 999."""
_EXPLAIN: Final = re.compile(r"\s*explain\s+(query\s+plan\s+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """What a query gave."""

    table: Table
    more: bool
    """Whether there are more rows than were asked for."""
    notes: tuple[str, ...] = ()
    """What the report lacks of what was asked, and what of it nsys would not have written."""


def columns_of(view: View) -> tuple[str, ...]:
    """Names of a view's columns."""
    columns = record_columns(view.name) if view.name in DOCUMENTS else view.columns
    return tuple(column.name for column in columns)


class Console:
    """Questions to one report. Safe to share between threads: they are answered in turn.

    Args:
        report: the report; what SQL cannot tell is computed from it when a query asks for it.
        patterns: the user's own regular expressions for communication kernels.
        redacts: whether queries see texts without tokens and passwords.

    Raises:
        UnreadableReportError: the file can no longer be read.
    """

    def __init__(
        self, report: Report, patterns: tuple[str, ...] = (), *, redacts: bool = False
    ) -> None:
        self._report, self._patterns, self._redacts = report, patterns, redacts
        self._lock = threading.Lock()
        self._asking = False
        """Whether SQLite is at a query, and at nothing of ours: then it may be interrupted."""
        self.stuck = False
        """Whether a query could not be stopped: nothing can be asked here any more."""
        self._db = Database.open(report.path)
        self._filled: set[str] = set()
        self._lacking: dict[str, str] = {}
        self._early: defaultdict[str, set[int]] = defaultdict(set)
        """Rows by table that a query met and that end before their start."""
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views."""
        return tuple(view.name for view in VIEWS)

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """Views, then tables of the file, each with its columns."""
        views = {view.name: columns_of(view) for view in VIEWS}
        return views | {name: each for name, each in self._raw.items() if name not in views}

    def close(self) -> None:
        """Closes the file, unless a query that cannot be stopped still reads it."""
        if not self.stuck:
            with self._lock:
                self._db.close()

    def _prepare(self) -> None:
        connection = self._db.connection
        connection.execute("PRAGMA query_only = OFF").close()
        if temporary_folder() is not None:
            connection.execute("PRAGMA temp_store = FILE").close()
        rows = connection.execute(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c"
            " WHERE m.type = 'table' AND m.rootpage > 0 AND m.name NOT GLOB 'sqlite_*'"
        ).fetchall()
        self._raw: dict[str, tuple[str, ...]] = {}
        for table, column in rows:
            self._raw[table] = (*self._raw.get(table, ()), column)
        for table, columns in TEMPORARY.items():
            connection.execute(f"CREATE TEMP TABLE {table} ({columns})").close()
        connection.create_function(LATE_NAME, 1, self._late_name, deterministic=True)
        self._searched: set[tuple[str, str]] = set()
        self._hidden: set[str] = set()
        self._view_settings = self._settings()
        connection.create_function(EARLY, 2, self._meet_early)
        for view in VIEWS:
            if view.name not in DOCUMENTS:
                self._create(view)
        self._waiting = [view for view in VIEWS if view.name in DOCUMENTS]
        """Views whose columns the analyses know: made when a query may ask for them."""
        known = (*self._raw, *TEMPORARY, *(view.name for view in VIEWS))
        self._guard = Guard(connection, [name.lower() for name in known], self._hidden)

    def _meet_early(self, table: str, row: int) -> int:
        self._early[table].add(row)
        return 0

    def _settings(self) -> dict[str, str]:
        """What stands for words in views: it depends on the file as a whole."""
        self._fill("_devices")
        numbers = self._db.query(
            "SELECT process, ordinal, number FROM _devices ORDER BY process = -1"
        )
        keyed = self._db.query(
            "SELECT 1 FROM pragma_table_info(?) WHERE name = 'id' AND pk = 1"
            " AND upper(type) = 'INTEGER'",
            (STRINGS,),
        )
        utc, process = self._report.metadata.session_start_utc_ns, self._db.only_process()
        if not keyed and STRINGS in self._raw:
            self._fill("_strings")
        return ({} if keyed else {"strings": "temp._strings"}) | {
            "device": device_sql(numbers),
            "utc": "NULL" if utc is None else str(utc),
            PROCESS: "NULL" if process is None else str(process),
        }

    def _create(self, view: View) -> None:
        connection, name = self._db.connection, quoted(view.name)
        names = self._db.schema.columns.get(view.table, {})
        if not view.table:
            listed = ", ".join(map(quoted, columns_of(view)))
            connection.execute(f"CREATE TEMP TABLE {name} ({listed})").close()
        elif names:
            database = self._database(view.table)
            settings = {
                "strings": f"{self._database(STRINGS)}.{STRINGS}",
                "table": f"'{view.table}'",
                **self._view_settings,
            }
            select = view_sql(view, names, settings, database)
            connection.execute(f"CREATE TEMP VIEW {name} AS {select}").close()
        else:
            nulls = ", ".join(f"NULL AS {quoted(column.name)}" for column in view.columns)
            connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {nulls} WHERE 0").close()

    def _create_named(self, sql: str) -> None:
        named = [view for view in self._waiting if view.name in sql or "pragma" in sql]
        self._waiting = [view for view in self._waiting if view not in named]
        self._guard.step_aside()
        for view in named:
            self._create(view)
        self._guard.stand()

    def _database(self, table: str) -> str:
        """Where views read a table: its copy without secrets stands among the temporary ones."""
        return "temp" if table.lower() in self._hidden else "main"

    def _hide(self, read: set[tuple[str, str]]) -> None:
        """Lets the query, and views, read copies of the tables that hold secrets in its columns."""
        connection = self._db.connection
        for table, columns in self._raw.items():
            new = {(table.lower(), column.lower()) for column in columns} & read - self._searched
            self._searched |= new
            if not new or table.lower() in self._hidden:
                continue
            if hold_secrets(connection, table, [column for _, column in new]):
                copy_without_secrets(connection, table)
                self._hidden.add(table.lower())
                for view in (view for view in VIEWS if view.table):
                    connection.execute(f"DROP VIEW temp.{quoted(view.name)}").close()
                    self._create(view)

    def _fill(self, table: str, checked: Callable[[Parts], Parts] = iter) -> None:
        """Fills a temporary table, once; what ``checked`` raises on the way leaves it empty."""
        if table in self._filled:
            return
        rows = (
            FIGURES[table](self._report)
            if table in FIGURES
            else name_rows(table, self._db, self._report, self._patterns)
        )
        connection = self._db.connection
        width = len(connection.execute(f"SELECT * FROM temp.{table} LIMIT 0").description)
        rows, size = iter(rows), _VALUES // width
        places = f"({', '.join('?' * width)})"
        try:
            for part in checked(iter(lambda: [*islice(rows, size)], [])):
                insert = f"INSERT OR REPLACE INTO temp.{table} VALUES "
                values = [*chain.from_iterable(part)]
                if self._redacts:
                    values = [redacted(v) if isinstance(v, str) else v for v in values]
                connection.execute(insert + ", ".join([places] * len(part)), values).close()
        except NoDataError as error:
            self._lacking[table] = "; ".join(part for part in (error.title, error.hint) if part)
        except CancelledError:
            connection.execute(f"DELETE FROM temp.{table}").close()
            raise
        self._filled.add(table)

    @cached_property
    def _late_names(self) -> dict[str, str]:
        return late_names(self._report)

    def _late_name(self, full: str | None) -> str | None:
        """The short name of a kernel that was not among those found early."""
        name = None if full is None else self._late_names.get(full)
        return redacted(name) if name and self._redacts else name

    def run(
        self,
        sql: str,
        *,
        limit: int | None = None,
        timeout_s: float = TIMEOUT_S,
        progress: Progress = silent,
    ) -> Answer:
        """Answers one query.

        Args:
            sql: one SELECT; nothing else is allowed.
            limit: rows at most; None for all.
            timeout_s: seconds that it may take, those for filling views among them.
            progress: raising in it stops the query.

        Raises:
            QueryError: the query cannot be understood, or may not be asked; says where.
            NoDataError: the report has nothing of all that was asked for.
            TimeLimitError: it took longer than ``timeout_s``.
            UsageError: the answer, or what it takes to find it, is too large.
        """
        answer: Future[Answer] = Future()
        ended, self._asking = threading.Event(), False

        def work() -> None:
            try:
                answer.set_result(self._answer(sql, limit, timeout_s, ended))
            except BaseException as error:
                answer.set_exception(error)

        with self._lock:
            threading.Thread(target=work, name="query", daemon=True).start()
            try:
                return self._awaited(answer, timeout_s, progress)
            finally:
                ended.set()
                self.stuck = not self._is_stopped(answer)

    def _is_stopped(self, answer: Future[Answer]) -> bool:
        """Interrupts SQLite until it ends: one that comes before its first step has no effect."""
        for _ in range(_LOOKS):
            if self._asking:
                self._db.connection.interrupt()
            if wait([answer], _LOOK_S).done:
                return True
        return False

    def _awaited(self, answer: Future[Answer], timeout_s: float, progress: Progress) -> Answer:
        """The answer of another thread, which one call of SQLite may hold for a second or two.

        Such a call (``instr`` of two long texts) heeds neither progress handler nor interrupt.
        """
        end = time.monotonic() + timeout_s
        while not wait([answer], _LOOK_S).done:
            progress("asking", 0, 0)
            if time.monotonic() > end:
                raise _too_long(timeout_s)
        return answer.result()

    def _answer(
        self, sql: str, limit: int | None, timeout_s: float, ended: threading.Event
    ) -> Answer:
        def check() -> None:
            if ended.is_set():
                raise CancelledError("the query was cancelled")

        with self._explained(sql, timeout_s):
            self._create_named(sql.lower())
            self._guard.begin(timeout_s, check)
            self._early.clear()
            self._db.connection.execute(f"EXPLAIN {_unexplained(sql)}").close()
            notes = self._ready()
            self._asking = True
            cursor = self._db.connection.execute(sql)
            try:
                rows, more = fetched(cursor, limit)
                headers = [name for name, *_ in cursor.description or ()]
            finally:
                cursor.close()
                self._asking = False
            notes += self._strange()
        return Answer(answer_table(headers, rows), more, notes)

    def _ready(self) -> tuple[str, ...]:
        """Fills what the query reads, as the guard noted it; says what is lacking of it."""
        read, views = self._guard.read, [view for view in VIEWS if _is_read(view, self._guard.read)]
        wanted = [view.name for view in views if not view.table]
        wanted += [
            column.needs
            for view in views
            for column in view.columns
            if column.needs and (view.name, column.name) in read
        ]
        self._guard.step_aside()
        try:
            if self._redacts:
                self._hide(read)
            for table in dict.fromkeys(wanted):
                self._fill(table, self._guard.checked)
        finally:
            self._guard.stand()
        lacks = {view.name: self._lacks(view) for view in views}
        others = {table for table, _ in read} & {name.lower() for name in self._raw}
        behind = {view.table.lower() for view in views} | {STRINGS.lower()}
        reasons = [why for why in lacks.values() if why]
        if reasons and len(reasons) == len(views) and not others - behind:
            raise NoDataError(f"{self._report.name}: {reasons[0]}")
        empty = tuple(f"{name} is empty: {why}" for name, why in lacks.items() if why)
        return empty + coarser(self._report, read)

    def _strange(self) -> tuple[str, ...]:
        self._guard.step_aside()
        try:
            return strange_values(self._db, self._guard.read, self._early)
        finally:
            self._guard.stand()

    def _lacks(self, view: View) -> str:
        told = self._lacking.get(view.name, "")
        return told or (self._report.lacks(view.gives) if view.gives else "")

    @contextmanager
    def _explained(self, sql: str, timeout_s: float) -> Iterator[None]:
        try:
            yield
        except MemoryError as error:
            raise UsageError(
                f"the query needs more than {MEMORY >> 20} MiB of memory",
                hint="ask for fewer rows or columns, or aggregate",
            ) from error
        except (sqlite3.Error, sqlite3.Warning, ValueError, TimeLimitError) as error:
            stopped = self._guard.stopped
            if isinstance(stopped, TimeLimitError):
                raise _too_long(timeout_s) from error
            if stopped is not None:
                raise stopped from error
            raise explained(
                sql, error, self._guard, self.tables, self._why_missing, self._compiles
            ) from error

    def _why_missing(self, table: str) -> str:
        """What would have recorded a table of nsys that the file lacks; empty for unknown ones."""
        from nsys_tui.model.capabilities import Capability
        from nsys_tui.reader.schema import declared

        known = declared(table)
        if known is None or table in self._raw:
            return ""
        if isinstance(known.gives, Capability):
            return self._report.lacks(known.gives) or f"this report has no table {table}"
        return f"this report has no table {table}, which would tell {known.gives}"

    def _compiles(self, sql: str) -> str:
        """SQLite's word on a beginning of the query."""
        try:
            self._db.connection.execute(f"EXPLAIN {sql}").close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            return str(error)
        return ""


def _too_long(timeout_s: float) -> TimeLimitError:
    return TimeLimitError(
        f"stopped: the query took longer than {timeout_s:g} s",
        hint="narrow it, or allow more with --timeout",
    )


def _is_read(view: View, read: set[tuple[str, str]]) -> bool:
    return any(table == view.name for table, _ in read)


def _unexplained(sql: str) -> str:
    """The statement proper: EXPLAIN EXPLAIN is none."""
    return _EXPLAIN.sub("", sql, count=1)
