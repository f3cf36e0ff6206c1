"""Secrets in the tables that a query reads: it gets copies of such tables that are without them.

What is redacted in an answer alone can be had in pieces, by ``substr`` or one comparison a letter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from nsys_tui.reader.sqlite import quoted
from nsys_tui.redaction import redacted

_FUNCTION = "_without_secrets"


def hold_secrets(connection: sqlite3.Connection, table: str, columns: Iterable[str]) -> bool:
    """Whether a secret stands in one of the columns of a table of the file."""
    connection.create_function(_FUNCTION, 1, _without_secrets, deterministic=True)
    tests = [
        f"({column} >= '' AND {_call(column)} IS NOT NULL)"  # texts and blobs alone
        for column in map(quoted, columns)
    ]
    query = f"SELECT 1 FROM main.{quoted(table)} WHERE {' OR '.join(tests)} LIMIT 1"
    return connection.execute(query).fetchone() is not None


def copy_without_secrets(connection: sqlite3.Connection, table: str) -> None:
    """Makes a temporary table of the same name, which stands before that of the file."""
    columns = connection.execute(
        "SELECT name, type, pk AND upper(type) = 'INTEGER' FROM pragma_table_xinfo(?, 'main')",
        (table,),
    ).fetchall()
    made = ", ".join(
        f"{quoted(name)} {'INTEGER PRIMARY KEY' if keyed else kind and quoted(kind)}"
        for name, kind, keyed in columns
    )
    rowid = [] if any(keyed for *_, keyed in columns) else ["rowid"]
    names = [quoted(name) for name, *_ in columns]
    values = [f"coalesce({_call(name)}, {name})" for name in names]
    connection.execute(f"CREATE TEMP TABLE {quoted(table)} ({made})").close()
    connection.execute(
        f"INSERT INTO temp.{quoted(table)} ({', '.join(rowid + names)})"
        f" SELECT {', '.join(rowid + values)} FROM main.{quoted(table)}"
    ).close()


def _call(column: str) -> str:
    return f"{_FUNCTION}(CAST({column} AS BLOB))"


def _without_secrets(value: bytes | None) -> str | None:
    """The text without its secrets, None where it holds none; also of UTF-16."""
    if not value:
        return None
    text = value.replace(b"\0", b"").decode("utf-8", "replace")
    shown = redacted(text)
    return shown if shown != text else None
