"""The enumeration tables an export carries from 2022.4 on, as far as our rows refer to them."""

from __future__ import annotations

import re
from typing import Final

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
