"""Idle gaps as columns, and their causes: precedence, and what each host event counts as.

The order of ``Cause`` is the precedence of the definitions: a nanosecond of a host thread goes to
the first class that covers it, and of equal shares the first wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Final, Self, TypeAlias

import numpy as np

from nsys_tui.model.arrays import Bool, Int16, Int32, Int64, UInt8
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import ApiCalls, HostEvents, OsrtCalls, Ranges
from nsys_tui.model.kinds import MPI, Kind
from nsys_tui.model.report import Report


class Cause(IntEnum):
    """Why a GPU stood idle."""

    key: str
    """The cause in the words of the definitions, for JSON and for grouping."""

    def __new__(cls, value: int, key: str = "") -> Self:
        """A cause by its place in the order and its words."""
        cause = int.__new__(cls, value)
        cause._value_, cause.key = value, key
        return cause

    LAUNCH_LATENCY = 0, "launch latency"
    PROFILER = 1, "profiler overhead"
    MODULE = 2, "module load or JIT"
    QUEUE = 3, "full launch queue"
    ALLOCATION = 4, "allocation or free"
    SYNC = 5, "sync call"
    COPY = 6, "blocking or pageable copy"
    MPI = 7, "MPI"
    LOCK = 8, "lock"
    WAIT = 9, "wait"
    IO = 10, "I/O"
    SLEEP = 11, "sleep"
    OSRT = 12, "OSRT call"
    API = 13, "other API"
    HOST = 14, "host compute"
    OFF_CPU = 15, "off the CPU"
    NOTHING = 16, "nothing recorded"
    PEER = 17, "peer"
    PROCESS = 18, "other process"
    EVENT = 19, "event"
    STREAM = 20, "late start"
    UNKNOWN = 21, "unknown"

    @property
    def label(self) -> str:
        """A few words for a table: device-side waits say that they are."""
        return f"device: {self.key}" if self in _DEVICE_SIDE else self.key


_DEVICE_SIDE: Final = frozenset((Cause.PEER, Cause.PROCESS, Cause.EVENT, Cause.STREAM))

SHARES: Final = tuple(Cause)[: Cause.NOTHING + 1]
"""The causes that share out the nanoseconds of a gap, in order of precedence."""

Shares: TypeAlias = Mapping[Cause, Int64]
"""Nanoseconds of each gap by cause, in order of precedence; what none has may be left out."""

NO_CLASS: Final = 255

_API_CLASSES: Final = (
    (
        Cause.MODULE,
        r"cu(da)?(Module|Library)(Load|Unload|GetFunction|GetKernel|GetModule|GetGlobal)"
        r"|cu(da)?Link|(cuda|cu)KernelGetFunction|nvrtc|nvJitLink|nvPTXCompiler",
    ),
    (
        Cause.ALLOCATION,
        r"cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister|MemPool)"
        r"|cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release"
        r"|Map|Unmap|SetAccess|AddressReserve|AddressFree|Pool)"
        r"|cuArray(3D)?(Create|Destroy)|cuMipmappedArray(Create|Destroy)",
    ),
    (Cause.SYNC, r"cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize"),
    (Cause.COPY, r"(cuda|cu)Memcpy(?!.*Async)"),
)
_OSRT_CLASSES: Final = (
    (Cause.LOCK, r"(pthread|mtx)_\w*(?<!un)lock(_np)?$|flock|lockf"),
    (
        Cause.WAIT,
        r"(pthread|cnd|thrd|sem)_\w*(wait|join)(_np)?$|sem(timed)?op$|futex|wait(pid|id|3|4)?$"
        r"|sig(suspend|(timed)?wait(info)?)$|pause$|msgrcv|mq_(timed)?receive"
        r"|WaitFor(Single|Multiple)|_*(p?poll|p?select|epoll|recv|accept|connect)",
    ),
    (Cause.SLEEP, r"(clock_)?nanosleep|u?sleep$|thrd_sleep|SleepEx?$"),
    (
        Cause.IO,
        r"_*(p?readv?|p?writev?|f?open|f?close|fdopen|creat|aio|f?dataf?sync|f?sync|msync|f(read|write"
        r"|flush|get[cs]|put[cs]|printf|scanf|seek)|get(c|s|line|delim)|put[cs]|printf|scanf"
        r"|sendfile|send|splice|copy_file_range|stat|lstat|fstat|readdir|preadv|pwritev)",
    ),
)
_MODULE_OVERHEAD: Final = re.compile(r"(?i)\bjit\b|module load|function load|lazy load")
_QUEUE_OVERHEAD: Final = re.compile(r"(?i)command buffer full")
_PROFILER_OVERHEAD: Final = re.compile(
    r"(?i)buffer flush|instrumentation|resource (management|creation|destruction)|profil|cupti"
)


def api_name_class(name: str) -> Cause:
    """What a CUDA API call of this name counts as; pageable copies need their operation too."""
    return next((cause for cause, pattern in _API_CLASSES if re.match(pattern, name)), Cause.API)


def osrt_name_class(name: str) -> Cause:
    """What a call of the operating system's libraries of this name waits for."""
    return next((cause for cause, pattern in _OSRT_CLASSES if re.match(pattern, name)), Cause.OSRT)


def osrt_classes(calls: OsrtCalls) -> UInt8:
    """The class of every such call: uint8 [n]; those inside of another call are ``NO_CLASS``."""
    classes = _by_name(calls, map(osrt_name_class, calls.names))
    return np.where(calls.nesting <= 0, classes, NO_CLASS).astype(np.uint8)


def api_classes(report: Report) -> UInt8:
    """The class of every API call: uint8 [n]; backtrace duplicates are ``NO_CLASS``.

    An asynchronous copy to or from pageable memory counts as a blocking copy, because the driver
    stages it.
    """
    api = report.api
    classes = _by_name(api, map(api_name_class, api.names))
    ops = report.operations
    copies = ops.of_kind(OpKind.MEMCPY)
    pageable = copies[(ops.src_kind[copies] == 0) | (ops.dst_kind[copies] == 0)]
    if len(pageable):
        _, calls = report.called(pageable)
        classes[calls] = np.minimum(classes[calls], Cause.COPY)
    classes[~api.real] = NO_CLASS
    return classes


def host_event_classes(events: HostEvents) -> UInt8:
    """The class of every other host event: uint8 [n].

    Overhead is the profiler's or, where its name says so, CUDA's own loading and compiling; library
    calls as other API calls; system calls as none.
    """
    classes = np.full(len(events), NO_CLASS, np.uint8)
    by_name = np.array([_overhead_class(name) for name in events.names], np.uint8)
    for place, kind in enumerate(events.kinds):
        rows = np.flatnonzero(events.kind == place)
        if kind == Kind.PROFILER_OVERHEAD:
            untyped = np.full(len(rows), Cause.PROFILER, np.uint8)
            classes[rows] = _overhead_by_type(events.overhead[rows], untyped)
        elif kind == Kind.CUDA_OVERHEAD:
            classes[rows] = _overhead_by_type(events.overhead[rows], by_name[events.name[rows]])
        elif kind != Kind.SYSCALL:
            classes[rows] = Cause.MPI if kind in MPI else Cause.API
    return classes


def range_classes(ranges: Ranges) -> UInt8:
    """The class of every range: uint8 [n]; older nsys writes MPI calls as ranges of a domain."""
    classes = np.full(len(ranges), NO_CLASS, np.uint8)
    domains = np.array([domain.name == "MPI" for domain in ranges.domains], bool)
    if domains.any():
        calls = np.array([name.startswith("MPI_") for name in ranges.names], bool)
        classes[domains[ranges.domain] & calls[ranges.name]] = Cause.MPI
    return classes


_OVERHEAD_TYPES: Final = {
    2: Cause.MODULE,
    3: Cause.PROFILER,
    4: Cause.PROFILER,
    5: Cause.PROFILER,
    6: Cause.MODULE,
    7: Cause.MODULE,
    8: Cause.QUEUE,
}
"""Driver JIT compiler, module and lazy function loading are CUDA's own cost, and so is a full
command buffer (8), for which the launch waits."""


def _overhead_by_type(types: UInt8, untyped: UInt8) -> UInt8:
    classes = untyped.copy()
    for number, cause in _OVERHEAD_TYPES.items():
        classes[types == number] = cause
    return classes


def _overhead_class(name: str) -> int:
    if _MODULE_OVERHEAD.search(name):
        return Cause.MODULE
    if _QUEUE_OVERHEAD.search(name):
        return Cause.QUEUE
    return Cause.PROFILER if _PROFILER_OVERHEAD.search(name) else NO_CLASS


def _by_name(events: ApiCalls | OsrtCalls, classes: Iterable[Cause]) -> UInt8:
    table = np.array([*classes], np.uint8)
    return table[events.name] if len(events) else np.empty(0, np.uint8)


class Edge(IntEnum):
    """Where a gap lies among the operations of its device."""

    INNER = 0
    HEAD = 1
    TAIL = 2
    RUN = 3
    """Between the operations of a launch-bound run, all of its gaps in one row."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Idle gaps, one value each; rows of operations and calls are rows of the report's sets.

    A launch-bound run is one row, from its first operation to its last.
    """

    device: Int16
    """Place of the device in ``Report.devices``."""
    start: Int64
    """Start of the whole gap or run, ns."""
    end: Int64
    idle: Int64
    """Idle time inside the window."""
    edge: UInt8
    """``Edge``: before the first operation, after the last, between two, or in a run."""
    previous: Int32
    """Row of the operation that ends where the gap starts, -1 before the first."""
    next: Int32
    """Row of the operation that ends the gap, -1 after the last; of a run, its first one."""
    call: Int32
    """Row in ``Report.api`` of the call that launched ``next``, -1 where unknown."""
    caller: Int32
    """Place in ``Report.api.threads`` of the thread that ``next`` waited for, -1 where unknown."""
    cause: UInt8
    """``Cause``."""
    shares: Shares
    """Zeros where the cause is no sharing one."""
    what: Int32
    """Name code of what took longest within the cause, such as the sync call; -1 for none."""
    range: Int32
    """Name code of the innermost NVTX range in which the host spent most of it, or in which a run
    begins; -1 for none."""
    count: Int32
    """Gaps that the row stands for: 1, or those of the run."""
    run: Int32
    """Place in ``Stalls.runs``, -1 for a gap."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def outside(self) -> Bool:
        """Which lie before the first operation or after the last: no loss of the work."""
        return np.isin(self.edge, (Edge.HEAD, Edge.TAIL))

    def time(self, *causes: Cause) -> Int64:
        """Nanoseconds of each gap that some causes have together."""
        return sum((self.shares[one] for one in causes if one in self.shares), self._none)

    @property
    def _none(self) -> Int64:
        return np.zeros(len(self), np.int64)

    def take(self, index: Any) -> Gaps:
        """Some of the gaps, by mask or row numbers; a mask of all copies none."""
        rows = index
        if index.dtype == bool:
            if index.all():
                return self
            rows = np.flatnonzero(index)
        shares = {cause: time[rows] for cause, time in self.shares.items()}
        return Gaps(**{name: getattr(self, name)[rows] for name in _COLUMNS}, shares=shares)

    def beside(self, *others: Gaps) -> Gaps:
        """In one set, one behind the other."""
        parts = [part for part in (self, *others) if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else self
        columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _COLUMNS}
        causes = sorted({cause for part in parts for cause in part.shares})
        shares = {one: np.concatenate([part.time(one) for part in parts]) for one in causes}
        return Gaps(**columns, shares=shares)

    def by_time(self) -> Gaps:
        """The earlier first, of equals by device."""
        if (self.start[1:] > self.start[:-1]).all():
            return self
        return self.take(np.lexsort((self.device, self.start)))


_COLUMNS: Final = tuple(field.name for field in fields(Gaps) if field.name != "shares")


def unexplained(edge: UInt8, **columns: Any) -> Gaps:
    """Gaps of which only the place is known, not yet the cause."""
    blank = np.full(len(edge), -1, np.int32)
    cause, count = np.full(len(edge), Cause.UNKNOWN, np.uint8), np.ones(len(edge), np.int32)
    others = {"what": blank, "range": blank, "count": count, "run": blank}
    return Gaps(edge=edge, cause=cause, shares={}, **{"previous": blank} | others | columns)
