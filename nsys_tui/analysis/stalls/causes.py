"""Causes of idle GPU time, their precedence, and what each host event counts as.

The order of ``Cause`` is the precedence of the definitions: a nanosecond of a host thread goes to
the first class that covers it, and of equal shares the first wins.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.categories import OpKind
from nsys_tui.model.kinds import MPI, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_tui.model.events import ApiCalls, HostEvents, OsrtCalls, Ranges, UInt8
    from nsys_tui.model.report import Report


class Cause(IntEnum):
    """Why a GPU stood idle."""

    LAUNCH_LATENCY = 0
    PROFILER = 1
    MODULE = 2
    QUEUE = 3
    ALLOCATION = 4
    SYNC = 5
    COPY = 6
    MPI = 7
    LOCK = 8
    IO = 9
    SLEEP = 10
    OSRT = 11
    API = 12
    HOST = 13
    OFF_CPU = 14
    NOTHING = 15
    PEER = 16
    PROCESS = 17
    EVENT = 18
    STREAM = 19
    UNKNOWN = 20

    @property
    def key(self) -> str:
        """The cause in the words of the definitions, for JSON and for grouping."""
        return _KEYS[self]

    @property
    def label(self) -> str:
        """A few words for a table: device-side waits say that they are."""
        return f"device: {self.key}" if self in _DEVICE_SIDE else _LABELS.get(self, self.key)


_KEYS: Final = {
    Cause.LAUNCH_LATENCY: "launch latency",
    Cause.PROFILER: "profiler overhead",
    Cause.MODULE: "module load or JIT",
    Cause.QUEUE: "full launch queue",
    Cause.ALLOCATION: "allocation or free",
    Cause.SYNC: "sync call",
    Cause.COPY: "blocking or pageable copy",
    Cause.MPI: "MPI",
    Cause.LOCK: "lock",
    Cause.IO: "I/O",
    Cause.SLEEP: "sleep",
    Cause.OSRT: "OSRT call",
    Cause.API: "other API",
    Cause.HOST: "host compute",
    Cause.OFF_CPU: "off the CPU",
    Cause.NOTHING: "nothing",
    Cause.PEER: "peer",
    Cause.PROCESS: "other process",
    Cause.EVENT: "event",
    Cause.STREAM: "stream order",
    Cause.UNKNOWN: "unknown",
}
_LABELS: Final = {Cause.NOTHING: "nothing recorded on the host"}
_DEVICE_SIDE: Final = frozenset((Cause.PEER, Cause.PROCESS, Cause.EVENT, Cause.STREAM))

SHARES: Final = tuple(Cause)[: Cause.NOTHING + 1]
"""The causes that share out the nanoseconds of a gap, in order of precedence."""

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
    (
        Cause.LOCK,
        r"(pthread|mtx|cnd|thrd|sem)_\w*(?<!un)(lock|wait|join)(_np)?$|sem(timed)?op$|futex|flock|lockf"
        r"|wait(pid|id|3|4)?$|WaitFor(Single|Multiple)",
    ),
    (Cause.SLEEP, r"(clock_)?nanosleep|u?sleep$|thrd_sleep|sched_yield|SleepEx?$"),
    (
        Cause.IO,
        r"_*(p?readv?|p?writev?|f?open|f?close|fdopen|creat|aio|f?dataf?sync|f?sync|msync|f(read|write"
        r"|flush|get[cs]|put[cs]|printf|scanf|seek)|get(c|s|line|delim)|put[cs]|printf|scanf"
        r"|sendfile|send|recv|accept|connect|p?poll|p?select|epoll|splice|copy_file_range|stat|lstat"
        r"|fstat|readdir|preadv|pwritev)",
    ),
)
_MODULE_OVERHEAD: Final = re.compile(r"(?i)\bjit\b|module load|function load|lazy load")
_QUEUE_OVERHEAD: Final = re.compile(r"(?i)command buffer full")
_PROFILER_OVERHEAD: Final = re.compile(
    r"(?i)buffer flush|instrumentation|resource (management|creation|destruction)|profil|cupti"
)


def api_name_class(name: str) -> Cause:
    """What a CUDA API call of this name counts as; pageable copies need their operation too."""
    for cause, pattern in _API_CLASSES:
        if re.match(pattern, name):
            return cause
    return Cause.API


def osrt_name_class(name: str) -> Cause:
    """What a call of the operating system's libraries of this name waits for."""
    for cause, pattern in _OSRT_CLASSES:
        if re.match(pattern, name):
            return cause
    return Cause.OSRT


def osrt_classes(calls: OsrtCalls) -> UInt8:
    """The class of every such call: uint8 [n]; those inside of another call are ``NO_CLASS``."""
    table = np.array([osrt_name_class(name) for name in calls.names], np.uint8)
    classes = table[calls.name] if len(calls) else np.empty(0, np.uint8)
    return np.where(calls.nesting <= 0, classes, NO_CLASS).astype(np.uint8)


def api_classes(report: Report) -> UInt8:
    """The class of every API call: uint8 [n]; backtrace duplicates are ``NO_CLASS``.

    An asynchronous copy to or from pageable memory counts as a blocking copy, because the driver
    stages it.
    """
    api = report.api
    classes = _by_name(api, (api_name_class(name) for name in api.names))
    ops = report.operations
    copies = ops.of_kind(OpKind.MEMCPY)
    pageable = copies[(ops.src_kind[copies] == 0) | (ops.dst_kind[copies] == 0)]
    if len(pageable):
        calls = report.calls[pageable]
        calls = calls[calls >= 0]
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
    found = np.full(len(ranges), NO_CLASS, np.uint8)
    domains = np.array([domain.name == "MPI" for domain in ranges.domains], bool)
    if domains.any():
        calls = np.array([name.startswith("MPI_") for name in ranges.names], bool)
        found[domains[ranges.domain] & calls[ranges.name]] = Cause.MPI
    return found


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
    for number, found in _OVERHEAD_TYPES.items():
        classes[types == number] = found
    return classes


def _overhead_class(name: str) -> int:
    if _MODULE_OVERHEAD.search(name):
        return Cause.MODULE
    if _QUEUE_OVERHEAD.search(name):
        return Cause.QUEUE
    return Cause.PROFILER if _PROFILER_OVERHEAD.search(name) else NO_CLASS


def _by_name(events: ApiCalls, classes: Iterable[Cause]) -> UInt8:
    table = np.array([*classes], np.uint8)
    return table[events.name] if len(events) else np.empty(0, np.uint8)
