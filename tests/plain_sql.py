"""Figures of a report by plain SQL and a plain loop, to check the analyses against."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GPU_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


def devices(path: Path) -> dict[int, dict[str, int]]:
    """Busy ns and number of kernels by CUDA ordinal, intervals merged one by one."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    rows: dict[int, list[tuple[int, int]]] = {}
    kernels: dict[int, int] = {}
    for table in GPU_TABLES:
        name = f"CUPTI_ACTIVITY_KIND_{table}"
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone():
            continue
        for device, start, end in db.execute(f'SELECT deviceId, start, "end" FROM {name}'):
            rows.setdefault(device, []).append((start, end))
            kernels[device] = kernels.get(device, 0) + (table == "KERNEL")
    db.close()
    found = {}
    for device, events in rows.items():
        busy, reach = 0, -(2**62)
        for start, end in sorted(events):
            busy += max(0, end - max(start, reach))
            reach = max(reach, end)
        found[device] = {"busy_ns": busy, "kernel_count": kernels[device]}
    return found


def kernels(path: Path) -> dict[str, tuple[int, int, float]]:
    """Total ns, count and mean of the kernels of each demangled name."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        rows = db.execute(
            """SELECT s.value, sum(k."end" - k.start), count(*), avg(k."end" - k.start)
            FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
            GROUP BY s.value"""
        ).fetchall()
    except sqlite3.OperationalError:
        rows = []
    db.close()
    return {name: (total, count, mean) for name, total, count, mean in rows}
