"""Completes a copy of a report until nsys answers: it skips what an export of its own would have.

What is added holds no row that any report counts: columns without values, tables without rows,
and the labels of enumerations.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_tui.demo.schema import CURRENT, tables
from nsys_tui.demo.write import ENUM_COLUMNS, enum_tables
from nsys_tui.reader.schema import version as as_numbers

if TYPE_CHECKING:
    from pathlib import Path


def complete(path: Path, version: str) -> None:
    """Adds to a copy of a report what an nsys of some version asks for.

    Args:
        path: the copy.
        version: such as ``2023.4.4``.
    """
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        for name, table in tables(CURRENT).items():
            if name not in there:
                columns = ", ".join(
                    f'"{column.name}" {column.affinity}' for column in table.columns
                )
                db.execute(f'CREATE TABLE "{name}" ({columns})')
                continue
            known = {row[1] for row in db.execute(f'PRAGMA table_info("{name}")')}
            for column in table.columns:
                if column.name not in known:
                    db.execute(f'ALTER TABLE "{name}" ADD COLUMN "{column.name}" {column.affinity}')
        for name, rows in enum_tables(as_numbers(version)).items():
            if name not in there:
                db.execute(f'CREATE TABLE "{name}" ({ENUM_COLUMNS})')
                db.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?)', rows)
        db.commit()
