"""What SQLite says about a query, as an error that tells where and what to do next."""

from __future__ import annotations

import difflib
import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from nsys_tui.errors import NoDataError, NsysTuiError, UnreadableReportError, UsageError
from nsys_tui.names import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.sql.guard import Guard

_NEAR: Final = re.compile(r'near "(.*)": syntax error', re.DOTALL)
_MISSING: Final = re.compile(r"no such (table|column|function): (\S+)")
_DAMAGED: Final = ("image is malformed", "malformed database", "not a database", "disk I/O")


class QueryError(UsageError):
    """A query that cannot be answered; ``offset`` is where in it, in characters, if known."""

    def __init__(self, title: str, message: str = "", hint: str = "", offset: int = -1) -> None:
        super().__init__(title, message, hint)
        self.offset = offset


def explained(
    sql: str,
    error: Exception,
    guard: Guard,
    tables: Mapping[str, tuple[str, ...]],
    why_missing: Callable[[str], str],
    compiles: Callable[[str], str],
) -> NsysTuiError:
    """The error for what SQLite says.

    Args:
        sql: the query.
        error: what was raised.
        guard: what looked at the query.
        tables: what may be read, with the columns.
        why_missing: what would have recorded a table that the report lacks.
        compiles: what SQLite says about a beginning of the query.
    """
    said = visible(str(error))
    if denied := guard.denied:
        word = denied.rpartition(" ")[2]
        return QueryError(
            f"not allowed: {visible(denied)}", hint="a query may only read the views and tables of"
            " the report", offset=_word(sql, word),
        )  # fmt: skip
    if any(word in said for word in _DAMAGED):
        return UnreadableReportError(f"SQLite says: {said}", hint="export the report again")
    if "too big" in said:
        if guard.slow:
            slow = ", ".join(sorted(set(guard.slow)))
            hint = f"{slow} cannot be stopped: shorten it by substr, or leave longer ones out"
            return UsageError(f"a value is larger than {guard.longest >> 10} KiB", hint=hint)
        return UsageError(f"a value is larger than {guard.longest >> 20} MiB")
    if "one statement" in said:
        return QueryError("one statement at a time", hint="ask the second one by itself")
    if "bindings" in said:
        return QueryError("a query has no parameters", hint="write the value itself")
    if match := _MISSING.search(str(error)):
        return _missing(sql, match[1], match[2], tables, why_missing)
    if match := _NEAR.search(str(error)):
        offset = _syntax_offset(sql, match[1], str(error), compiles)
        return QueryError(f"syntax error near {visible(match[1])!r}{_place(sql, offset)}",
                          offset=offset)  # fmt: skip
    if isinstance(error, UnicodeEncodeError):
        return QueryError("the query is no UTF-8 text")
    if "incomplete input" in said:
        return QueryError("the query is not finished", offset=len(sql.rstrip()))
    return QueryError(f"SQLite says: {said}")


def _missing(
    sql: str,
    kind: str,
    name: str,
    tables: Mapping[str, tuple[str, ...]],
    why_missing: Callable[[str], str],
) -> NsysTuiError:
    bare = name.rpartition(".")[2]
    if kind == "table" and (why := why_missing(bare)):
        return NoDataError(why)
    known = {"table": [*tables], "column": [*{*chain(*tables.values())}]}.get(kind, [])
    near = difflib.get_close_matches(bare, sorted({*known} - {bare}), 3, 0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    if kind == "table" and bare in tables:
        hint = f"it is called {bare}"
    elif kind == "table" and not near:
        hint = f"views: {', '.join(list(tables)[:9])}; {len(tables) - 9} tables of nsys"
    offset = _word(sql, bare)
    return QueryError(f"no such {kind}: {visible(name)}{_place(sql, offset)}", "", hint, offset)


def _word(sql: str, word: str) -> int:
    """Where a word first stands as such; -1 for nowhere."""
    match = re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", sql, re.IGNORECASE) if word else None
    return match.start() if match else -1


def _syntax_offset(sql: str, token: str, said: str, compiles: Callable[[str], str]) -> int:
    """The first place of a token up to whose end SQLite says the same as of the whole."""
    place = sql.find(token)
    while place >= 0:
        if compiles(sql[: place + len(token)]) == said:
            return place
        place = sql.find(token, place + 1)
    return -1


def _place(sql: str, offset: int) -> str:
    """`` in line 2, column 7``; empty where nobody knows."""
    if offset < 0:
        return ""
    line = sql.count("\n", 0, offset)
    column = offset - (sql.rfind("\n", 0, offset) + 1)
    return f" in line {line + 1}, column {column + 1}"
