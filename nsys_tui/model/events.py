"""Columnar event sets: one frozen dataclass per kind of event, one NumPy array per attribute.

Every set is sorted by (start, rowid). Text and 64-bit identities are dictionary-encoded inside the
set (``name`` indexes ``names``, ``thread`` indexes ``threads``), so that it can be mapped from disk
and grouped with a bincount without knowing any other set. Times are int64 nanoseconds since
session start and may be negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int16, Int32, Int64, Integers, UInt8
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import factorise_rows, rows_of_codes
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kernel_names import short_name, short_names
from nsys_tui.model.kinds import MPI
from nsys_tui.model.target import Device, Stream
from nsys_tui.names import ACROSS, NameStyle, kernel_name

DICTIONARIES: Final = frozenset(
    {"names", "threads", "processes", "devices", "streams", "domains", "kinds", "metrics"}
)
"""Fields of event sets that codes point into; every other field holds one value per event."""

_LONG_NS: Final = 1_000_000
"""Events that last longer are few."""
FARTHEST: Final = 2**60
"""Nanoseconds (36 years) from the start of the session at which the reader cuts times."""


class OpName(NamedTuple):
    """The names of one GPU operation; copies and memsets have the same text in all three."""

    short: str
    demangled: str
    mangled: str

    @property
    def full(self) -> str:
        """The longest name that is known."""
        return self.demangled or self.short


class Domain(NamedTuple):
    """An NVTX domain: numbers are unique only within a process."""

    globalPid: int
    """Serialized process id, or -1 where the row had none."""
    id: int
    name: str
    """Empty for the default domain; ``domain N`` where no row names it."""

    @property
    def is_named(self) -> bool:
        """Whether the program gave it a name."""
        return self.name not in ("", f"domain {self.id}")


def told(values: Integers) -> Bool:
    """Where a result was recorded: the least number of its type stands for none."""
    known: Bool = values != np.iinfo(values.dtype).min
    return known


@dataclass(frozen=True, eq=False)
class EventSet:
    """Base of all event sets: intervals [start, end) with the row they came from."""

    start: Int64
    end: Int64
    rowid: Int64

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def ends_in_time(self) -> bool:
        """Whether no end is before its start."""
        return bool((self.end >= self.start).all())

    @property
    def duration(self) -> Int64:
        """``end - start`` in ns; an end before its start counts as zero length."""
        return self.durations(slice(None))

    def durations(self, rows: Any) -> Int64:
        """``duration`` of some events, chosen by a mask, an index array or a slice.

        For a few of 5 M it spares 80 MB and as many milliseconds.
        """
        length: Int64 = self.end[rows] - self.start[rows]
        return length if self.ends_in_time else np.maximum(length, 0, out=length)

    def runs(self, rows: Any) -> Intervals:
        """When any of some events goes on, as a normalised set."""
        return intervals.union(self.start[rows], self.end[rows])

    def places(self, rows: Indices, times: npt.ArrayLike) -> Indices:
        """Places among ascending rows of the first that starts at each of a few times, or later."""
        return np.searchsorted(rows, np.searchsorted(self.start, times))

    def near(self, spans: Intervals) -> Indices:
        """Rows of events that may overlap some intervals: all that do, and not many others."""
        near = self.end - self.start > _LONG_NS
        first, stop = intervals.union(spans[0] - _LONG_NS, spans[1])
        inside = np.searchsorted(self.start, first), np.searchsorted(self.start, stop)
        near[intervals.stretched(*inside)] = True
        return np.flatnonzero(near)

    def take(self, index: Any) -> Self:
        """Selects events by a boolean mask, an index array or a slice, keeping the dictionaries."""
        rows = {
            f.name: getattr(self, f.name)[index] for f in fields(self) if f.name not in DICTIONARIES
        }
        return replace(self, **rows)

    def bounds(self) -> tuple[int, int] | None:
        """First start and last end, or None for an empty set."""
        if not len(self):
            return None
        return int(self.start[0]), int(max(self.end.max(), self.start[-1]))


@lru_cache(maxsize=8)
def called(names: tuple[OpName, ...], style: str) -> tuple[str, ...]:
    """What operations are called in a name style; in the short one two kernels never alike."""
    if style == NameStyle.SHORT:
        return tuple(short_names([(name.short, name.demangled) for name in names]))
    if style == ACROSS:
        return tuple(short_name(name.full, name.short).name for name in names)
    return tuple(kernel_name(name.short, name.demangled, style) for name in names)


@dataclass(frozen=True, eq=False)
class Operations(EventSet):
    """All GPU work: kernels, copies, memsets and whole-graph launches in one set.

    ``call`` is not here: see ``Report.calls``.
    """

    kind: UInt8
    """``OpKind`` of each operation."""
    category: UInt8
    """``Category``: COMPUTE, COMM, MEMORY or GRAPH."""
    device: Int16
    """Index into ``devices``."""
    stream: Int32
    """Index into ``streams``."""
    process: Int32
    """Index into ``processes``."""
    correlation: Int64
    """Correlation id, unique only within a process; -1 where there is none."""
    name: Int32
    """Index into ``names``."""
    bytes: Int64
    """Bytes moved or set; 0 for kernels and graphs."""
    copy_kind: UInt8
    """CUPTI copyKind of copies, 0 elsewhere."""
    migration: UInt8
    """CUPTI's cause of a migration of unified memory, 1 for one that the program asked for."""
    src_kind: UInt8
    """Memory kind of a copy's source, or of a memset's target; 255 where unknown."""
    dst_kind: UInt8
    """Memory kind of a copy's target; 255 where unknown."""
    graph_node: Int64
    """Node id of an operation traced inside a CUDA graph; 0 for others."""
    counted: Bool
    """False for a graph launch whose nodes were traced too: left out of sums, never of unions."""
    names: tuple[OpName, ...]
    processes: Int64
    """globalPid of each process code."""
    devices: tuple[Device, ...]
    streams: tuple[Stream, ...]

    def texts(self, style: str) -> list[str]:
        """What each name code is called; copies, memsets and graphs have but one name."""
        return list(called(self.names, style))

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Short name by name code."""
        return called(self.names, NameStyle.SHORT)

    def of_kind(self, kind: int) -> Indices:
        """Row numbers of the operations of one ``OpKind``."""
        rows = None if kind == OpKind.KERNEL else self.others
        return np.flatnonzero(self.kind == kind) if rows is None else rows[self.kind[rows] == kind]

    @cached_property
    def of_devices(self) -> list[Indices]:
        """Row numbers of the operations of each device: asked for again and again."""
        return rows_of_codes(self.device, len(self.devices))

    @cached_property
    def others(self) -> Indices:
        """Row numbers of all that are no kernels: mostly few, and asked for again and again."""
        return np.flatnonzero(self.kind != OpKind.KERNEL)


@dataclass(frozen=True, eq=False)
class ThreadEvents(EventSet):
    """Base of events that belong to a host thread and have a name."""

    thread: Int32
    """Index into ``threads``."""
    name: Int32
    """Index into ``names``."""
    names: tuple[str, ...]
    threads: Int64
    """globalTid of each thread code; -1 stands for rows without a thread."""

    @property
    def thread_process(self) -> Int64:
        """globalPid of each thread code, aligned with ``threads``."""
        return np.where(self.threads == -1, -1, self.threads & ~np.int64(0xFFFFFF))


@dataclass(frozen=True, eq=False)
class ApiCalls(ThreadEvents):
    """CUDA runtime and driver calls (RUNTIME), class-67 backtrace duplicates included."""

    correlation: Int64
    event_class: UInt8
    """0 runtime, 1 driver, 67 the enclosing duplicate that carries a backtrace."""
    return_value: Int32
    """See ``told``."""
    callchain: Int64
    """Call-chain id, -1 for none."""

    @property
    def real(self) -> Bool:
        """True for calls proper: the class-67 duplicates are left out."""
        proper: Bool = self.event_class != 67
        return proper

    @cached_property
    def count_of_names(self) -> Int64:
        """How many calls proper have each name."""
        real = self.real
        name = self.name if real.all() else self.name[real]
        return np.bincount(name, minlength=len(self.names)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Ranges(ThreadEvents):
    """NVTX push/pop and start/end ranges of all domains."""

    style: UInt8
    """NVTX event type: 59 and 70 push/pop, 60 and 71 start/end."""
    domain: Int32
    """Index into ``domains``."""
    end_thread: Int64
    """globalTid on which the range ended, -1 where it is the thread that opened it."""
    open: Bool
    """True for a range that was never closed; its end is the end of the capture."""
    color: Int64
    """ARGB, or -1 where unset or transparent."""
    nvtx_category: Int64
    """NVTX category number, 0 for none."""
    domains: tuple[Domain, ...]

    @property
    def nests(self) -> Bool:
        """True for ranges that take part in the path of their thread (definitions: "Path")."""
        push_pop = (self.style == 59) | (self.style == 70)
        same_thread = (self.end_thread == -1) | (self.end_thread == self.threads[self.thread])
        nesting: Bool = push_pop | same_thread
        return nesting


@dataclass(frozen=True, eq=False)
class Payloads:
    """NVTX payloads as JSON text, of the rows that have one, ascending by rowid."""

    rowid: Int64
    text: Int32
    """Index into ``texts``."""
    texts: tuple[str, ...]

    def of(self, rowids: Int64) -> Int32:
        """Code of the payload of each row, -1 for none."""
        if not len(self.rowid):
            return np.full(len(rowids), -1, np.int32)
        position = np.minimum(np.searchsorted(self.rowid, rowids), len(self.rowid) - 1)
        return np.where(self.rowid[position] == rowids, self.text[position], -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Marks(ThreadEvents):
    """NVTX marks: points, start equals end."""

    domain: Int32
    color: Int64
    domains: tuple[Domain, ...]


@dataclass(frozen=True, eq=False)
class OsrtCalls(ThreadEvents):
    """OS runtime library calls, and the markers of when their tracing began and ended."""

    event_class: UInt8
    """27 for calls; 31 and 32 are the markers, which nsys's reports leave out."""
    nesting: Int32
    """0 for the outermost call."""
    callchain: Int64
    """Call-chain id in OSRT_CALLCHAINS, -1 for none."""
    return_value: Int64
    """See ``told``."""


@dataclass(frozen=True, eq=False)
class HostEvents(ThreadEvents):
    """Other host ranges with a thread and a name: MPI, profiler overhead, syscalls."""

    kind: UInt8
    """Index into ``kinds``."""
    overhead: UInt8
    """CUPTI overheadType of overhead rows (2 JIT, 6 module and 7 lazy loading), 0 elsewhere."""
    kinds: tuple[str, ...]
    """Table each kind comes from."""

    @property
    def of_mpi(self) -> Bool:
        """Which of them are MPI calls."""
        return np.array([kind in MPI for kind in self.kinds], bool)[self.kind]


@dataclass(frozen=True, eq=False)
class Syncs(EventSet):
    """Host-side waits on the device (SYNCHRONIZATION)."""

    sync_type: UInt8
    """1 event, 2 stream wait event, 3 stream, 4 context."""
    process: Int32
    correlation: Int64
    device: Int32
    """CUDA ordinal inside the process."""
    stream: Int64
    """Stream id inside the process, -1 for a context-wide wait."""
    processes: Int64


@dataclass(frozen=True, eq=False)
class Samples(EventSet):
    """CPU samples; start equals end."""

    thread: Int32
    cpu: Int32
    chain: Int64
    """Id in the sampling call chains."""
    state: UInt8
    threads: Int64


@dataclass(frozen=True, eq=False)
class CallChains:
    """Stack frames of one call-chain table, sorted by (id, depth); depth 0 is the leaf."""

    id: Int64
    depth: Int32
    symbol: Int32
    """Index into ``symbols``."""
    module: Int32
    """Index into ``modules``."""
    symbols: tuple[str, ...]
    modules: tuple[str, ...]

    def frames(self, chain: int) -> list[tuple[str, str]]:
        """(symbol, module) of one chain, leaf first; empty for an unknown chain."""
        lo, hi = np.searchsorted(self.id, [chain, chain + 1])
        return [
            (self.symbols[s], self.modules[m])
            for s, m in zip(self.symbol[lo:hi], self.module[lo:hi], strict=True)
        ]


@dataclass(frozen=True, eq=False)
class MemoryUsage(EventSet):
    """Allocations and frees of GPU memory; start equals end."""

    operation: UInt8
    """0 allocation, 1 deallocation."""
    process: Int32
    device: Int16
    """Index into ``devices``."""
    address: Int64
    bytes: Int64
    memory_kind: UInt8
    correlation: Int64
    processes: Int64
    devices: tuple[Device, ...]


@dataclass(frozen=True, eq=False)
class GpuMetrics(EventSet):
    """Sampled hardware counters; start equals end."""

    gpu: Int32
    """TARGET_INFO_GPU.id (the low byte of typeId)."""
    metric: Int32
    """Index into ``metrics``."""
    value: Int64
    metrics: tuple[str, ...]


GRID, BLOCK, SHAPE = slice(0, 3), slice(3, 6), slice(0, 6)
REGISTERS, STATIC_SHARED, DYNAMIC_SHARED = 6, 7, 8
"""Columns of ``LaunchAttributes.table``."""


@dataclass(frozen=True, eq=False)
class LaunchAttributes:
    """Launch configurations: few are distinct. Operations that are no kernels have one of zeros."""

    code: Int32
    """Row of ``table``, aligned with ``Operations``."""
    table: Int32
    """Grid, block (three each), registers, static and dynamic shared memory in bytes: (k, 9)."""

    def of(self, rows: Any, columns: int | slice) -> Int32:
        """Some columns of ``table`` for some operations."""
        attributes: Int32 = self.table[:, columns][self.code[rows]]
        return attributes

    def alike(self, rows: Any, columns: Iterable[Integers]) -> tuple[Integers, Int64]:
        """Codes of some operations by columns made of ``table``, and the distinct values."""
        codes, distinct = factorise_rows([*columns])
        return codes[self.code[rows]], distinct

    @property
    def blocks(self) -> Int64:
        """Blocks of the grid of each configuration."""
        count: Int64 = self.table[:, GRID].prod(axis=1, dtype=np.int64)
        return count

    @property
    def threads(self) -> Int64:
        """Threads of a block of each configuration."""
        count: Int64 = self.table[:, BLOCK].prod(axis=1, dtype=np.int64)
        return count

    @property
    def shared(self) -> Int64:
        """Shared memory of a block of each configuration, bytes."""
        return self.table[:, STATIC_SHARED].astype(np.int64) + self.table[:, DYNAMIC_SHARED]
