"""By which tables a database is recognised as an export of nsys, whatever its generation.

What the tables mean stands beside the code that reads them; which option records what stands in
``model.capabilities``. Nothing here reads a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

METADATA_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""Where the exporter notes its version and input: since 2023.3, and 2022.1 to 2023.2."""

_OWN_NAMES: Final = frozenset(
    {
        *METADATA_TABLES,
        "ANALYSIS_DETAILS",
        "COMPOSITE_EVENTS",
        "DIAGNOSTIC_EVENT",
        "GPU_METRICS",
        "META_DATA_CAPTURE",
        "NVTX_EVENTS",
        "OSRT_API",
        "PROCESSES",
        "PROFILER_OVERHEAD",
        "SCHED_EVENTS",
        "StringIds",
        "ThreadNames",
    }
)
_OWN_PREFIXES: Final = ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "MPI_", "CUDA_GRAPH_", "ENUM_NSYS_")

TIMED: Final = (
    *(f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")),
    *(f"CUPTI_ACTIVITY_KIND_{name}" for name in ("RUNTIME", "SYNCHRONIZATION")),
    "NVTX_EVENTS",
    "OSRT_API",
)
"""Tables of events that last; without their times nothing of them can be shown."""


def without_times(tables: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The tables of ``TIMED`` that lack the column ``start`` or ``end``.

    Args:
        tables: table names with their columns.
    """
    return tuple(t for t in TIMED if t in tables and not {"start", "end"} <= {*tables[t]})


def is_nsys_export(tables: Iterable[str]) -> bool:
    """Tells whether a database with these tables was written by nsys, fully or in part."""
    return any(table in _OWN_NAMES or table.startswith(_OWN_PREFIXES) for table in tables)
