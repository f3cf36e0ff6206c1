"""Which tables and columns an nsys export has, in every generation that the demo can write.

What the reader knows of them, and in which order, is what is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nsys_tui.reader.schema import TABLES, Version, in_versions, version
from nsys_tui.reader.schema import Column as Known

GENERATIONS: Final[dict[str, tuple[str, str]]] = {
    "2021": ("2021.3.1.54", ""),
    "2022.1": ("2022.1.1.61", "2.9.1"),
    "2022.4": ("2022.4.2.1", "3.0.0"),
    "2023.3": ("2023.3.3.42", "3.4.0"),
    "2023.4": ("2023.4.4.54", "3.7.2"),
    "2024.5": ("2024.5.1.113", "3.13.2"),
    "2025.1": ("2025.1.3.140", "3.17.2"),
    "2025.5": ("2025.5.2.266", "3.24.0"),
    "2026.2": ("2026.2.1.210", "3.25.0"),
}
"""Generation -> (product version, schema version; empty before exports named one)."""

CURRENT: Final = "2026.2"

_AFFINITIES: Final = {"r": "REAL", "t": "TEXT", "b": "TEXT"}
_TABLES: Final = (
    "StringIds, ProcessStreams, TARGET_INFO_SYSTEM_ENV @2022.1,"
    " TARGET_INFO_SESSION_START_TIME @2022.1, ANALYSIS_DETAILS @2022.1, PROCESSES @2022.1,"
    " ThreadNames, DIAGNOSTIC_EVENT @2024.2.3, UnwindMethodType <2023.3.1, SCHED_EVENTS,"
    " COMPOSITE_EVENTS, SAMPLING_CALLCHAINS, PROFILER_OVERHEAD, OSRT_API, OSRT_CALLCHAINS,"
    " CUPTI_ACTIVITY_KIND_RUNTIME, CUDA_CALLCHAINS, CUPTI_ACTIVITY_KIND_KERNEL,"
    " CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,"
    " CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_OVERHEAD @2025.5.2,"
    " CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUDA_GRAPH_EVENTS, CUDA_GRAPH_NODE_EVENTS @2022.4,"
    " CUDA_GPU_MEMORY_USAGE_EVENTS, CUDA_UM_CPU_PAGE_FAULT_EVENTS, CUDA_UM_GPU_PAGE_FAULT_EVENTS,"
    " CUDNN_EVENTS, CUBLAS_EVENTS, NVTX_EVENTS, NVTX_PAYLOAD_SCHEMAS @2026.2,"
    " NVTX_PAYLOAD_SCHEMA_ENTRIES @2026.2, TARGET_INFO_GPU, TARGET_INFO_CUDA_NULL_STREAM <2023.4.4,"
    " TARGET_INFO_CUDA_DEVICE @2025.1.1, TARGET_INFO_CUDA_CONTEXT_INFO @2023.4.4,"
    " TARGET_INFO_CUDA_STREAM, TARGET_INFO_NVTX_CUDA_DEVICE, TARGET_INFO_NVTX_CUDA_CONTEXT,"
    " TARGET_INFO_NVTX_CUDA_STREAM, TARGET_INFO_GPU_METRICS, GPU_METRICS,"
    " TARGET_INFO_NETWORK_METRICS, TARGET_INFO_NIC_INFO @2023.1.2, NET_NIC_METRIC, MPI_RANKS,"
    " MPI_COMMUNICATORS, MPI_P2P_EVENTS, MPI_START_WAIT_EVENTS, MPI_COLLECTIVES_EVENTS,"
    " MPI_OTHER_EVENTS, META_DATA_CAPTURE @2023.3.1, META_DATA_EXPORT @2023.3.1,"
    " EXPORT_META_DATA @2022.1.1 <2023.3.1, OPENGL_WORKLOAD, VULKAN_WORKLOAD, DX12_WORKLOAD"
)
"""Tables in the order of the files; ``@`` and ``<`` as in the reader's schema."""
_KEYS: Final = {"StringIds": "id", "UnwindMethodType": "number", "COMPOSITE_EVENTS": "id"}
_CHAIN_KEY: Final = "PRIMARY KEY (id, stackDepth)"
_OFTEN_NULL: Final = {("TARGET_INFO_SYSTEM_ENV", "globalVid"): (2023, 1)}
"""Columns that were declared NOT NULL before a version."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column as nsys declares it."""

    name: str
    affinity: str
    not_null: bool
    primary: bool

    @property
    def sql(self) -> str:
        """The column's part of ``CREATE TABLE``."""
        return (
            f'"{self.name}" {self.affinity}'
            + (" NOT NULL" if self.not_null else "")
            + (" PRIMARY KEY" if self.primary else "")
        )


@dataclass(frozen=True, slots=True)
class Table:
    """One table of one generation."""

    name: str
    columns: tuple[Column, ...]
    key: str
    """A ``PRIMARY KEY (...)`` clause over several columns, or an empty string."""

    @property
    def sql(self) -> str:
        """The ``CREATE TABLE`` statement."""
        parts = [column.sql for column in self.columns] + ([self.key] if self.key else [])
        return f'CREATE TABLE "{self.name}" ({", ".join(parts)})'


def product_of(generation: str) -> Version:
    """The product version of a generation, as numbers that compare."""
    return version(GENERATIONS[generation][0])


def _column(table: str, known: Known, product: Version) -> Column:
    edge = _OFTEN_NULL.get((table, known.name))
    return Column(
        known.name,
        _AFFINITIES.get(known.type, "INTEGER"),
        known.not_null if edge is None else product < edge,
        known.name == _KEYS.get(table),
    )


def tables(generation: str = CURRENT) -> dict[str, Table]:
    """The tables (without enumerations) that an export of that generation may hold, by name.

    Raises:
        KeyError: the generation is not in ``GENERATIONS``.
    """
    product = product_of(generation)
    made = {}
    for entry in _TABLES.split(","):
        name, *marks = entry.split()
        if in_versions(marks, product):
            known = [one for one in TABLES[name].columns.values() if one.expected(product)]
            columns = tuple(_column(name, one, product) for one in known)
            made[name] = Table(name, columns, _CHAIN_KEY if "CALLCHAINS" in name else "")
    return made
