"""What nsys calls things: every table and column that ``tables.txt`` declares, as data.

Which option records what stands in ``model.capabilities``. Nothing here reads a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.kinds import Kind

Version = tuple[int, ...]

NEWEST: Final = (3, 28, 1)
"""The newest schema version that was looked at, of nsys 2026.4."""

METADATA_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""Where the exporter notes its version and input: since 2023.3, and 2022.1 to 2023.2."""
STRINGS: Final = "StringIds"
BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ("ENUM_CUPTI_OVERHEAD_TYPE",),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("CUPTI_ACTIVITY_KIND_KERNEL",),
    "META_DATA_CAPTURE": METADATA_TABLES[:1],
    "SAMPLING_CALLCHAINS": ("COMPOSITE_EVENTS",),
    "TARGET_INFO_GPU": ("TARGET_INFO_CUDA_DEVICE",),
    "TARGET_INFO_GPU_METRICS": ("GPU_METRICS",),
    **dict.fromkeys(
        (
            "ANALYSIS_DETAILS", "PROCESSES", "TARGET_INFO_SESSION_START_TIME",
            "TARGET_INFO_SYSTEM_ENV", "ThreadNames",
        ),
        METADATA_TABLES,
    ),
}  # fmt: skip
"""Tables that every export holds in which one of some others has rows."""
COPY_KINDS: Final = (
    "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host",
    "Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host",
    "Peer-to-Peer", "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device",
)  # fmt: skip
"""What the numbers in copyKind mean."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table, in every generation that has it."""

    name: str
    """Its name in the newest generation, by which the reader calls it."""
    type: str
    """One of ``i r t s b p``."""
    required: bool = False
    may_be_null: bool = False
    """Whether an event without a value there is whole."""
    not_null: bool = False
    """Whether the exporter declares it so."""
    always: bool = False
    """Whether it has a value in every row all the same."""
    since: Version = ()
    until: Version = ()
    aliases: tuple[str, ...] = ()
    bits: int = 64
    """Of its numbers: 8 without a sign, 32 or 64 with one."""
    beside: str = ""
    """Table without whose rows it is not required."""

    @property
    def field(self) -> str:
        """Its name outside the reader: ``globalTid`` is ``global_tid``, ``nameId`` is ``name``."""
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()
        return snake.removesuffix("_id") if self.type == "s" else snake

    @property
    def filled(self) -> bool:
        """Whether NULL in it says that a fact is lost."""
        return self.not_null or self.always or (self.required and not self.may_be_null)

    def expected(self, version: Version) -> bool:
        """Whether exports of a version have it; those of unknown version only what all have."""
        return _is_between(version, self.since, self.until)


@dataclass(frozen=True, slots=True)
class Table:
    """One table and what is lost without parts of it."""

    name: str
    """``PREFIX_*`` stands for all tables with that prefix."""
    gives: Capability | str
    """What cannot be known where a required column is absent."""
    columns: Mapping[str, Column]
    kind: Kind | None
    lost: Mapping[str, Capability | str]
    """Column -> what cannot be known without it, though the rest of the table is used."""


def in_versions(marks: Iterable[str], version: Version) -> bool:
    """Whether a version is one of those that ``@2022.1`` and ``<2023.3.1`` name."""
    return _is_between(version, *_versions(marks))


def _is_between(version: Version, since: Version, until: Version) -> bool:
    return version >= since and not (until and version >= until)


def _versions(marks: Iterable[str]) -> tuple[Version, Version]:
    """Version that brought what has these marks, and that dropped it; empty for none."""
    edges = {mark[0]: version(mark[1:]) for mark in marks}
    return edges.get("@", ()), edges.get("<", ())


def _column(text: str) -> Column:
    names, kind, *marks = text.split()
    name, *aliases = names.split("|")
    return Column(
        name,
        kind[0],
        "!" in kind or "?" in kind,
        "?" in kind,
        "*" in kind,
        "+" in kind,
        *_versions(marks),
        tuple(aliases),
        int(kind.strip("irtsbp!?*+") or 64),
        next((mark[1:] for mark in marks if mark[0] == "~"), ""),
    )


def version(text: str) -> Version:
    """``2025.5.2.266-x`` as numbers that compare; empty where the text is no version."""
    parts = text.partition("-")[0].split(".")
    return (
        tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else ()
    )


def _columns(text: str, shared: Mapping[str, tuple[Column, ...]]) -> Iterator[Column]:
    """The columns of a list, in which single words stand for those that tables share."""
    for each in text.split(","):
        yield from shared.get(each.strip()) or (_column(each),)


def _table(text: str, shared: Mapping[str, tuple[Column, ...]]) -> Table:
    declared, *absent = _WITHOUT.split(text)
    head, _, columns = declared.partition("\n")
    called, _, gives = head.partition(": ")
    name, *kind = called.split()
    lost = dict[str, Capability | str]()
    for names, _, what in (each.partition(": ") for each in absent):
        lost |= dict.fromkeys((column.strip() for column in names.split(",")), _named(what))
    known = {column.name: column for column in _columns(columns, shared)}
    return Table(name, _named(gives), known, Kind(*kind) if kind else None, lost)


def _named(what: str) -> Capability | str:
    return Capability.__members__.get(what, what)


def _tables(text: str) -> Iterator[Table]:
    shared: dict[str, tuple[Column, ...]] = {}
    for declared in _DECLARED.findall(text):
        name, is_shared, columns = declared.partition(" =")
        if is_shared:
            shared[name] = tuple(_columns(columns, shared))
        else:
            yield _table(declared, shared)


_DECLARED: Final = re.compile(r"^\w.*(?:\n .*)*", re.MULTILINE)
"""A line that is no comment, and those below it that are indented."""
_WITHOUT: Final = re.compile(r"\n +without ")
_TEXT: Final = Path(__file__).with_name("tables.txt").read_text("utf-8")

TABLES: Final[Mapping[str, Table]] = {table.name: table for table in _tables(_TEXT)}
"""Every table of which a column is read or known, by its name."""

_PREFIXES: Final = tuple(name[:-1] for name in TABLES if name.endswith("*"))
FAMILIES: Final = (
    "CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "MPI_", "CUDA_GRAPH_", "ENUM_NSYS_", *_PREFIXES,
)  # fmt: skip
"""How tables begin that nobody but nsys makes."""
_NOT_READ: Final = frozenset(
    (
        "ANALYSIS_FILE", "CUDA_GPU_MEMORY_POOL_EVENTS", "CUDA_HOST_CALLBACK",
        "DEMOTED_BYTES_EVENTS", "FECS_EVENTS", "GPU_CONTEXT_SWITCH_EVENTS",
        "GPU_MEMORY_BUDGET_EVENTS", "GPU_MEMORY_USAGE_EVENTS", "MEM_DECOMPRESS",
        "NVTX_EVENTS_PAYLOAD_SCHEMAS", "NVTX_EXPORT_TRANSLATION", "NVTX_SCOPES",
        "NV_LOAD_BALANCE_EVENTS", "NV_LOAD_BALANCE_MASTER_EVENTS", "OSRT_FILE_ACCESS_DESCRIPTORS",
        "OSRT_FILE_ACCESS_EVENTS", "SLI_P2P", "SLI_QUERIES", "SLI_STATS", "SOC_METRICS",
        "SYSCALL_CALLCHAINS", "TOTAL_BYTES_RESIDENT_IN_SEGMENT_EVENTS", "UCP_WORKERS",
    )
)  # fmt: skip
_FAMILIES_NOT_READ: Final = (
    "ENUM_", "TARGET_INFO_", "WDDM_", "VULKAN_", "DX11_", "DX12_", "D3D11_", "D3D12_", "OPENGL_",
    "OPENXR_", "GENERIC_EVENT", "NET_", "NVTX_PAYLOAD_", "DYNAMIC_NVTXPAYLOAD_", "PMU_",
    "UNCORE_PMU_", "PERF_EVENT_", "ETW_", "NVVIDEO_", "GPU_VIDEO_ENGINE_", "NVMEDIA_",
)  # fmt: skip


def declared(table: str) -> Table | None:
    """What is known about a table of a file, by its name there."""
    if table in TABLES:
        return TABLES[table]
    prefix = next((prefix for prefix in _PREFIXES if table.startswith(prefix)), None)
    return None if prefix is None else TABLES[f"{prefix}*"]


def is_known(table: str) -> bool:
    """Whether a table is read, or known and not needed."""
    return declared(table) is not None or table in _NOT_READ or table.startswith(_FAMILIES_NOT_READ)


def is_nsys_export(tables: Iterable[str]) -> bool:
    """Tells whether a database with these tables was written by nsys, fully or in part."""
    return any(table in TABLES or table.startswith(FAMILIES) for table in tables)
