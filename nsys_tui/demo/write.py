"""Writes rows as an SQLite export, repeating the training loop where a large report is asked for.

The loop is stored once in a temporary table and copied by ``INSERT ... SELECT`` with shifted times
and correlation ids: five million kernels are a matter of SQLite's speed, not of Python's.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from nsys_tui.demo import schema
from nsys_tui.demo.enums import ENUM_COLUMNS, enum_tables
from nsys_tui.demo.events import Phase
from nsys_tui.demo.rows import Rows
from nsys_tui.demo.schema import Table
from nsys_tui.demo.tables import Row
from nsys_tui.demo.tiling import Tiling

_TIMES: Final = {"start", "end", "timestamp", "rawTimestamp"}
_COUNTED: Final = {"correlationId", "gridId"}
_STEP: Final = "Train step "


def write(path: Path, rows: Rows, tiling: Tiling) -> None:
    """Writes the report; an existing file is replaced only once the new one is complete."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _fill(partial, rows, tiling)
        partial.replace(path)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def _fill(path: Path, rows: Rows, tiling: Tiling) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("BEGIN")
        for table in schema.tables(rows.generation).values():
            if table.name in rows.tables:
                _write_table(connection, table, rows.tables[table.name], tiling)
        for name, labels in enum_tables(schema.product_of(rows.generation)).items():
            connection.execute(f'CREATE TABLE "{name}" ({ENUM_COLUMNS})')
            connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?)', labels)
        connection.execute("COMMIT")


def _write_table(
    connection: sqlite3.Connection,
    table: Table,
    rows: Sequence[tuple[Phase, Row]],
    tiling: Tiling,
) -> None:
    connection.execute(table.sql)
    repeated = tiling.copies > 1 and any(c.name in _TIMES for c in table.columns)
    if not repeated:
        _insert(connection, table.name, table, [row for _, row in rows])
        return
    _insert(connection, table.name, table, [row for phase, row in rows if phase is Phase.SETUP])
    loop = f"loop_{table.name}"
    connection.execute(f'CREATE TEMP TABLE "{loop}" AS SELECT * FROM "{table.name}" WHERE 0')
    _insert(connection, loop, table, [row for phase, row in rows if phase is Phase.LOOP])
    copy = f'INSERT INTO "{table.name}" SELECT {_shifted(table)} FROM "{loop}"'
    for number in range(tiling.copies):
        connection.execute(copy, tiling.shift(number))
    connection.execute(f'DELETE FROM "{loop}"')
    _insert(connection, loop, table, [row for phase, row in rows if phase is Phase.EPILOGUE])
    connection.execute(copy, tiling.shift(tiling.copies - 1))
    connection.execute(f'DROP TABLE "{loop}"')


def _shifted(table: Table) -> str:
    """The columns of a copy of the loop: later times, further ids, higher step numbers."""
    parts = []
    for column in table.columns:
        name = f'"{column.name}"'
        if column.name in _TIMES:
            name = f"{name} + :time"
        elif column.name in _COUNTED:
            name = f"{name} + :count"
        elif table.name == "NVTX_EVENTS" and column.name == "text":
            number = f"CAST(substr(text, {len(_STEP) + 1}) AS INTEGER) + :step"
            name = f"CASE WHEN text LIKE '{_STEP}%' THEN '{_STEP}' || ({number}) ELSE text END"
        parts.append(name)
    return ", ".join(parts)


def _insert(connection: sqlite3.Connection, into: str, table: Table, rows: Sequence[Row]) -> None:
    blank = {
        c.name: ("" if c.affinity == "TEXT" else 0) if c.not_null else None for c in table.columns
    }
    marks = ", ".join("?" * len(blank))
    connection.executemany(
        f'INSERT INTO "{into}" VALUES ({marks})',
        ([row.get(name, default) for name, default in blank.items()] for row in rows),
    )
