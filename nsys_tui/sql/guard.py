"""What a query may do: read tables, call harmless functions, and stop when it is told to.

Everything that is not listed here is refused by SQLite's authorizer before a statement runs, so
that a statement that SQLite learns tomorrow is refused too. What tables mean stands elsewhere.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from math import isqrt
from typing import Final, TypeVar

from nsys_tui.errors import CancelledError, UsageError
from nsys_tui.reader.views import EARLY, LATE_NAME

_Part = TypeVar("_Part")

MEMORY: Final = 2 << 30
"""Bytes that SQLite may take at most; of the whole process, since SQLite knows no other bound."""
DISK: Final = 4 << 30
"""Bytes of temporary files of a query: what is sorted goes there, a third of the time in memory.

They have no names, so what is watched is the room that is left where they lie.
"""
LONGEST_VALUE: Final = 8 << 20
"""Bytes of one text, blob or row."""
SLOW: Final = {"like": 1024, "glob": 1024, "instr": 512, "replace": 512, "trim": 128,
               "ltrim": 128, "rtrim": 128, "json_patch": 128, "unhex": 32}  # fmt: skip
"""Functions that compare all of one value with all of another, and KiB of a value in their queries.

Nothing stops a call of them before its end: of values so long it takes a second or two.
"""
LONGEST_QUERY: Final = 100_000
"""Bytes of a query."""
_STEPS: Final = 20_000
"""Instructions of SQLite after which it is asked whether to go on: some 0.3 ms."""
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: LONGEST_QUERY,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_FUNCTIONS: Final = """
abs changes char coalesce concat concat_ws glob hex if ifnull iif instr last_insert_rowid length
like likelihood likely lower ltrim max min nullif octet_length quote random randomblob replace
round rtrim sign soundex sqlite_version substr substring total_changes trim typeof unhex unicode
unistr unistr_quote unlikely upper zeroblob avg count group_concat median percentile
percentile_cont percentile_disc string_agg sum total row_number rank dense_rank percent_rank
cume_dist ntile lag lead first_value last_value nth_value date time datetime julianday unixepoch
strftime timediff current_date current_time current_timestamp acos acosh asin asinh atan atan2
atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin
sinh sqrt tan tanh trunc json json_array json_array_length json_error_position json_extract
json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote
json_remove json_replace json_set json_type json_valid -> ->>
"""
FUNCTIONS: Final = frozenset(_FUNCTIONS.split())
"""Functions that a query may call: those that SQLite documents and that have no side effects.

Not printf and format: of ``%.999999999c`` they make nothing for seconds, and cannot be stopped."""
PRAGMAS: Final = frozenset(
    ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo")
)
"""Pragmas that only tell what there is, as statements and as tables ``pragma_NAME``."""
TABLE_FUNCTIONS: Final = ("json_each", "json_tree", *sorted(f"pragma_{n}" for n in PRAGMAS))
"""Tables that are functions; each is looked at once before the guard stands."""
_SCHEMA: Final = ("sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema")
_OTHERS: Final = (
    "SELECT name FROM sqlite_master UNION SELECT name FROM pragma_module_list"
    " UNION SELECT 'sqlite_dbpage' UNION SELECT 'sqlite_stmt' UNION SELECT 'dbstat'"
)
"""Whatever else has a name: views and virtual tables of the file, and tables that are functions."""
_DENIED: Final = {
    sqlite3.SQLITE_ATTACH: "ATTACH and VACUUM: a query reads one report",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_INSERT: "writing: a report is never changed",
    sqlite3.SQLITE_UPDATE: "writing: a report is never changed",
    sqlite3.SQLITE_DELETE: "writing: a report is never changed",
    sqlite3.SQLITE_TRANSACTION: "transactions",
    sqlite3.SQLITE_SAVEPOINT: "transactions",
}


@cache
def temporary_folder() -> str | None:
    """Where SQLite puts temporary files; None where it finds no place."""
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    places = (*named, "/var/tmp", "/usr/tmp", "/tmp", tempfile.gettempdir())
    return next((p for p in places if p and os.path.isdir(p) and os.access(p, os.W_OK)), None)


def _room() -> int:
    """Bytes that are free there."""
    try:
        return shutil.disk_usage(temporary_folder() or ".").free
    except OSError:
        return 0


class TimeLimitError(CancelledError):
    """A query took longer than ``--timeout`` allows."""


class Guard:
    """Stands before one connection for as long as that is open.

    Args:
        connection: read-only already; from now on every statement on it is looked at.
        readable: tables and views that a query may name, in lower case.
        hidden: tables of the file, in lower case, that temporary ones of the same name stand for.

    Attributes:
        read: (table, column) pairs of the query and of what is behind its views.
        slow: those of ``SLOW`` that the query calls, as often as it does.
        denied: what the query was refused; empty for nothing.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        readable: Collection[str],
        hidden: Collection[str] = (),
    ) -> None:
        self._connection, self._hidden = connection, hidden
        self._readable = frozenset((*readable, *TABLE_FUNCTIONS, *_SCHEMA))
        others = connection.execute(_OTHERS).fetchall()
        self._others = frozenset(name.lower() for (name,) in others) - self._readable
        self._deadline, self._least_room = float("inf"), 0
        self._check: Callable[[], None] = lambda: None
        self.stopped: BaseException | None = None
        self.read: set[tuple[str, str]] = set()
        self.slow: list[str] = []
        self.denied = ""
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        for table in TABLE_FUNCTIONS:
            connection.execute(f"SELECT * FROM {table}('{{}}') LIMIT 0").close()
        connection.execute(f"PRAGMA hard_heap_limit = {MEMORY}").close()
        self.stand()

    def stand(self) -> None:
        """Looks at every statement from now on."""
        self._connection.execute("PRAGMA query_only = ON").close()
        self._connection.set_authorizer(self._authorise)
        self._connection.set_progress_handler(self._go_on, _STEPS)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.longest)

    @property
    def longest(self) -> int:
        """Bytes of one value of the query."""
        most = min((SLOW[name] << 10 for name in self.slow), default=LONGEST_VALUE)
        return most // isqrt(max(len(self.slow), 1))

    def step_aside(self) -> None:
        """Lets our own statements fill temporary tables."""
        self._connection.set_authorizer(None)
        self._connection.set_progress_handler(None, 0)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        self._connection.execute("PRAGMA query_only = OFF").close()

    def begin(self, seconds: float, check: Callable[[], None]) -> None:
        """A new query begins.

        Args:
            seconds: it may take.
            check: is called now and then; what it raises stops the query.
        """
        self._deadline = time.monotonic() + seconds
        self._least_room = _room() - DISK
        self._check, self.stopped = check, None
        self.read, self.slow, self.denied = set(), [], ""

    def checked(self, parts: Iterator[_Part]) -> Iterator[_Part]:
        """Rows of ours for a query, some at a time; raises what stops it."""
        for part in parts:
            if self._go_on() and self.stopped is not None:
                raise self.stopped
            yield part

    def _go_on(self) -> int:
        """0 while the query may go on."""
        try:
            self._check()
        except BaseException as error:
            self.stopped = error
            return 1
        if time.monotonic() > self._deadline:
            self.stopped = TimeLimitError("the query took longer than allowed")
        elif _room() < self._least_room:
            self.stopped = UsageError(
                f"the query needs more than {DISK >> 20} MiB of temporary files",
                hint="ask for fewer rows or columns, or aggregate",
            )
        return int(self.stopped is not None)

    def _authorise(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        view: str | None,
    ) -> int:
        """Called while a statement is compiled, which itself may be made to take forever."""
        if self.denied or self._go_on():
            return sqlite3.SQLITE_DENY
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            return self._reading((first or "").lower(), (second or "").lower(), database)
        if action == sqlite3.SQLITE_FUNCTION:
            name = (second or "").lower()
            self.slow += [name] if name in SLOW else []
            ours = view is not None and name in (EARLY, LATE_NAME)
            return self._ruled(ours or name in FUNCTIONS, f"the function {name}")
        if action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            return self._ruled(name in PRAGMAS, f"PRAGMA {name}")
        if action == sqlite3.SQLITE_UPDATE and first in _SCHEMA:  # how SQLite makes such tables
            return self._ruled(False, "a table that is a function")
        return self._ruled(False, _DENIED.get(action, "this statement: a query only reads"))

    def _reading(self, table: str, column: str, database: str | None) -> int:
        """Rows of a recursive WITH that are only counted come as a table without a column."""
        if database == "main" and table in self._hidden:
            return self._ruled(False, f"reading main.{table}, which holds secrets: leave out main.")
        self.read.add((table, column))
        counted = not column and table not in self._others
        return self._ruled(counted or table in self._readable, f"reading {table}")

    def _ruled(self, allowed: bool, what: str) -> int:
        if allowed:
            return sqlite3.SQLITE_OK
        self.denied = what
        return sqlite3.SQLITE_DENY
