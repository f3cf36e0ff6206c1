"""Copies of a real report with what no report at hand has, by SQL."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from paths import REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REPORT: Final = "windows-streams-2022.1"
_OPERATIONS: Final = "KERNEL MEMCPY MEMSET"
_EVENTS: Final = f"{_OPERATIONS} RUNTIME"
_NEXT_PROCESS: Final = 3 << 24


def _each(tables: str, change: str) -> str:
    return ";".join(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET {change}" for table in tables.split())


ALTERED: Final = {
    "unclosed": "UPDATE NVTX_EVENTS SET end = NULL WHERE eventType IN (59, 60) AND rowid % 7 = 3",
    "crossing": (
        "UPDATE NVTX_EVENTS SET end = 2 * end - start WHERE eventType = 59 AND rowid % 3 = 1"
    ),
    "twins": (
        "CREATE TEMP TABLE t AS SELECT * FROM NVTX_EVENTS WHERE eventType = 59 AND rowid % 5 = 1;"
        "UPDATE t SET text = 'twin'; INSERT INTO NVTX_EVENTS SELECT * FROM t"
    ),
    "interleaved": (
        f"UPDATE NVTX_EVENTS SET globalTid = globalTid + {_NEXT_PROCESS} WHERE rowid % 2;"
    )
    + _each("MEMCPY", f"srcKind = 0, globalPid = globalPid + {_NEXT_PROCESS} WHERE rowid % 2"),
    "equal": _each(
        _EVENTS, "end = start / 100000 * 100000 + 1000, start = start / 100000 * 100000"
    ),
    "shared": _each(_OPERATIONS, "correlationId = correlationId / 3 * 3 WHERE rowid % 2")
    + ";"
    + _each(_OPERATIONS, "contextId = 3 + rowid % 4"),
    "odd": _each("MEMCPY", "copyKind = CASE rowid % 3 WHEN 0 THEN 99 ELSE 8 END")
    + ";"
    + _each("MEMSET", "memKind = 4")
    + ";UPDATE StringIds SET value = replace(value, 'Async', '') WHERE value LIKE 'cudaMem%'",
    "named twice": (
        "UPDATE NVTX_EVENTS SET textId = (SELECT min(id) FROM StringIds WHERE value LIKE 'cuda%')"
        " WHERE eventType IN (59, 75) AND rowid % 2;"
        "UPDATE NVTX_EVENTS SET textId = (SELECT max(id) + 9 FROM StringIds) WHERE eventType = 59"
        " AND rowid % 4 = 0;"
        "UPDATE NVTX_EVENTS SET domainId = domainId + 1, text = 'by text' WHERE eventType = 59"
        " AND rowid % 5 = 0"
    ),
}
"""What is done to a report, by what it is then called."""


def altered(folder: Path) -> Iterator[Path]:
    """The report once as each alteration leaves it."""
    for name, change in ALTERED.items():
        path = folder / f"{name}.sqlite"
        shutil.copyfile(REPORTS / f"{_REPORT}.sqlite", path)
        with closing(sqlite3.connect(path)) as db:
            db.executescript(change)
        yield path
