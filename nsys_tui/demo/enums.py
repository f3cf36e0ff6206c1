"""The enumeration tables an export carries from 2022.4 on, as far as our rows refer to them."""

from __future__ import annotations

from typing import Final

from nsys_tui.reader.schema import COPY_KINDS

ENUM_COLUMNS: Final = "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT"


def _numbered(*labels: str) -> dict[int, str]:
    return dict(enumerate(labels))


_LABELS: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "ENUM_CUDA_MEMCPY_OPER": ("CUDA_MEMCPY_KIND", _numbered(*COPY_KINDS)),
    "ENUM_CUDA_MEM_KIND": (
        "CUDA_MEMOPR_MEMORY_KIND",
        _numbered(
            "Pageable",
            "Pinned",
            "Device",
            "Array",
            "Managed",
            "Device Static",
            "Managed Static",
            "Unknown",
        ),
    ),
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": (
        "CUDA_DEV_MEM_EVENT_OPR",
        {0: "Allocation", 1: "Deallocation"},
    ),
    "ENUM_CUPTI_SYNC_TYPE": (
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE",
        _numbered("Unknown", "Event sync", "Stream wait sync", "Stream sync", "Context sync"),
    ),
    "ENUM_CUPTI_STREAM_TYPE": (
        "CUPTI_ACTIVITY_STREAM_CREATE_FLAG",
        {0: "Unknown", 1: "Default", 2: "Non-blocking", 3: "Null stream"},
    ),
    "ENUM_CUPTI_OVERHEAD_TYPE": (
        "OVERHEAD",
        {
            0: "Undefined",
            1: "Unknown",
            2: "Driver JIT compiler (CUDA)",
            3: "Buffer flush (Profiler)",
            4: "Instrumentation (Profiler)",
            5: "Resource creation/destruction (Profiler)",
            6: "Runtime module loading (CUDA)",
            7: "Lazy function loading (CUDA)",
            8: "Command buffer full (CUDA)",
        },
    ),
    "ENUM_NSYS_EVENT_CLASS": (
        "EVENT_CLASS",
        {
            0: "CUDA runtime API",
            1: "CUDA driver API",
            27: "OS runtime libraries",
            67: "CUDA backtrace",
            94: "CUDA graph exec creation",
            95: "CUDA graph creation",
            103: "CUDA overhead",
        },
    ),
    "ENUM_NSYS_EVENT_TYPE": (
        "EVENT_TYPE",
        {
            33: "NVTX category",
            34: "NVTX mark",
            39: "NVTX thread name",
            59: "NVTX push/pop range",
            60: "NVTX start/end range",
            75: "NVTX domain creation",
            76: "NVTX domain destruction",
        },
    ),
    "ENUM_SAMPLING_THREAD_STATE": (
        "THREAD_STATE",
        _numbered(
            "Unknown",
            "Running",
            "Interruptible",
            "Uninterruptible",
            "Stopped",
            "Terminated",
            "Unscheduled",
            "Waiting",
            "OS runtime",
            "Initialized",
            "Transition",
        ),
    ),
    "ENUM_STACK_UNWIND_METHOD": (
        "UNWIND_METHOD",
        {0: "Unknown", 1: "Frame pointer", 2: "Unwind table", 6: "DWARF EH", 8: "LBR"},
    ),
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": (
        "SEVERITY",
        _numbered("Unknown", "Info", "Warning", "Error", "Verbose"),
    ),
    "ENUM_DIAGNOSTIC_SOURCE_TYPE": (
        "SOURCE",
        _numbered("Unknown", "Injection", "Daemon", "Analysis"),
    ),
    "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE": (
        "TIMESTAMP",
        _numbered("Unknown", "Target", "Host"),
    ),
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": (
        "CUDA_KERNEL_LAUNCH_TYPE",
        {
            0: "Unknown",
            1: "Regular",
            2: "Cooperative single device",
            3: "Cooperative multi device",
        },
    ),
    "ENUM_CUDA_FUNC_CACHE_CONFIG": (
        "CUDA_FUNC_CACHE_CONFIG",
        {0: "None", 1: "Shared", 2: "L1", 3: "Equal"},
    ),
}

MISSPELT: Final = {"ENUM_CUDA_KERNEL_LAUNCH_TYPE": "ENUM_CUDA_KRENEL_LAUNCH_TYPE"}
"""Names that exports before 2023.2.3 spelt wrongly."""


def enum_rows(name: str) -> list[tuple[int, str, str]]:
    """The rows (id, symbol, label) of one enumeration table."""
    prefix, labels = _LABELS[name]
    return [
        (i, f"{prefix}_{label.upper().replace(' ', '_')}", label) for i, label in labels.items()
    ]


def enum_tables(version: tuple[int, ...]) -> dict[str, list[tuple[int, str, str]]]:
    """All enumeration tables of a product version, by the name it uses; none before 2022.4."""
    if version < (2022, 4):
        return {}
    old = version < (2023, 2, 3)
    return {(MISSPELT.get(name, name) if old else name): enum_rows(name) for name in _LABELS}
