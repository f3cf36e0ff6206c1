"""Writes rows as an SQLite export, the training loop repeated where a large report is asked for.

The loop is stored once in a temporary table and copied by ``INSERT ... SELECT`` with shifted times
and correlation ids: five million kernels are a matter of SQLite's speed, not of Python's.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from nsys_tui.demo import schema
from nsys_tui.demo.events import Phase
from nsys_tui.demo.rows import Rows
from nsys_tui.demo.schema import Table
from nsys_tui.demo.tables import Row
from nsys_tui.demo.tiling import Tiling
from nsys_tui.reader.schema import COPY_KINDS

ENUM_COLUMNS: Final = "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT"


_TABLES: Final = """
CUDA_MEMCPY_OPER CUDA_MEMCPY_KIND: {copies}
CUDA_MEM_KIND CUDA_MEMOPR_MEMORY_KIND: Pageable, Pinned, Device, Array, Managed, Device Static,
  Managed Static, Unknown
CUDA_DEV_MEM_EVENT_OPER CUDA_DEV_MEM_EVENT_OPR: Allocation, Deallocation
CUPTI_SYNC_TYPE CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE: Unknown, Event sync, Stream wait sync,
  Stream sync, Context sync
CUPTI_STREAM_TYPE CUPTI_ACTIVITY_STREAM_CREATE_FLAG: Unknown, Default, Non-blocking, Null stream
CUPTI_OVERHEAD_TYPE OVERHEAD: Undefined, Unknown, Driver JIT compiler (CUDA),
  Buffer flush (Profiler), Instrumentation (Profiler), Resource creation/destruction (Profiler),
  Runtime module loading (CUDA), Lazy function loading (CUDA), Command buffer full (CUDA)
NSYS_EVENT_CLASS EVENT_CLASS: CUDA runtime API, CUDA driver API, 27 OS runtime libraries,
  67 CUDA backtrace, 94 CUDA graph exec creation, 95 CUDA graph creation, 103 CUDA overhead
NSYS_EVENT_TYPE EVENT_TYPE: 33 NVTX category, 34 NVTX mark, 39 NVTX thread name,
  59 NVTX push/pop range, 60 NVTX start/end range, 75 NVTX domain creation,
  76 NVTX domain destruction
SAMPLING_THREAD_STATE THREAD_STATE: Unknown, Running, Interruptible, Uninterruptible, Stopped,
  Terminated, Unscheduled, Waiting, OS runtime, Initialized, Transition
STACK_UNWIND_METHOD UNWIND_METHOD: Unknown, Frame pointer, Unwind table, 6 DWARF EH, 8 LBR
DIAGNOSTIC_SEVERITY_LEVEL SEVERITY: Unknown, Info, Warning, Error, Verbose
DIAGNOSTIC_SOURCE_TYPE SOURCE: Unknown, Injection, Daemon, Analysis
DIAGNOSTIC_TIMESTAMP_SOURCE TIMESTAMP: Unknown, Target, Host
CUDA_KERNEL_LAUNCH_TYPE CUDA_KERNEL_LAUNCH_TYPE: Unknown, Regular, Cooperative single device,
  Cooperative multi device
CUDA_FUNC_CACHE_CONFIG CUDA_FUNC_CACHE_CONFIG: None, Shared, L1, Equal
"""
"""Name of a table without ``ENUM_``, what its symbols begin with, and the labels.

A label without a number has that of its place among them."""
_LABEL: Final = re.compile(r"(?:(\d+) )?(.+)")

MISSPELT: Final = {"ENUM_CUDA_KERNEL_LAUNCH_TYPE": "ENUM_CUDA_KRENEL_LAUNCH_TYPE"}
"""Names that exports before 2023.2.3 spelt wrongly."""


def enum_tables(version: tuple[int, ...]) -> dict[str, list[tuple[int, str, str]]]:
    """Rows (id, symbol, label) of all enumeration tables, by the names a product version uses.

    There are none before 2022.4.
    """
    if version < (2022, 4):
        return {}
    old = version < (2023, 2, 3)
    text = _TABLES.format(copies=", ".join(COPY_KINDS)).replace("\n  ", " ")
    tables = {}
    for line in text.strip().splitlines():
        head, _, labels = line.partition(": ")
        name, prefix = head.split()
        name = f"ENUM_{name}"
        rows = [_row(prefix, place, label) for place, label in enumerate(labels.split(", "))]
        tables[MISSPELT.get(name, name) if old else name] = rows
    return tables


def _row(prefix: str, place: int, text: str) -> tuple[int, str, str]:
    match = _LABEL.fullmatch(text)
    assert match is not None
    number, label = match.groups()
    return int(number or place), f"{prefix}_{label.upper().replace(' ', '_')}", label


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
