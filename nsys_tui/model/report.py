"""Report: everything one nsys report holds, loaded part by part on first use.

The parts are loaded through a ``Source`` that the reader provides, so that this module knows no
file format. All access is thread-safe: a worker may load parts while the app draws others.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from nsys_tui.config import LaunchBoundConfig
from nsys_tui.model.capabilities import LINUX_ONLY, Capability, explain, is_lost, unmet
from nsys_tui.model.target import Device, Metadata, Stream, pid_of, tid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.model.arrays import Indices, Int32, Int64
    from nsys_tui.model.events import (
        ApiCalls,
        CallChains,
        EventSet,
        GpuMetrics,
        HostEvents,
        LaunchAttributes,
        Marks,
        MemoryUsage,
        Operations,
        OpName,
        OsrtCalls,
        Payloads,
        Ranges,
        Samples,
        Syncs,
    )
    from nsys_tui.model.kinds import Kind
    from nsys_tui.model.notes import Notes
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.source import Arrays, RawRow, RawTable, Source

T = TypeVar("T")
Events = TypeVar("Events", bound="EventSet")

PARTS = (
    "operations",
    "api",
    "ranges",
    "marks",
    "osrt",
    "host_events",
    "syncs",
    "samples",
    "memory_usage",
    "gpu_metrics",
)
"""Event sets in the order in which the app loads them."""
NOTHING = (0, 1)
"""Extent of a report without events."""


class EventPart(Generic[Events]):
    """An attribute of a report: an event set that is loaded when it is first asked for."""

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, report: None, owner: type) -> Self: ...

    @overload
    def __get__(self, report: Report, owner: type) -> Events: ...

    def __get__(self, report: Report | None, owner: type) -> Self | Events:
        if report is None:
            return self
        if self._name not in report._parts:
            report.load(self._name)
        part: Events = report._parts[self._name]
        return part


class Report:
    """One open report. Attribute access loads the part; ``loaded`` tells without loading.

    Args:
        source: the reader's side of the open file.
        launch_bound: what the user calls a launch-bound phase.
    """

    operations: EventPart[Operations] = EventPart()
    """All GPU operations."""
    api: EventPart[ApiCalls] = EventPart()
    """CUDA API calls, class-67 duplicates included (see ``ApiCalls.real``)."""
    ranges: EventPart[Ranges] = EventPart()
    """NVTX ranges; open ones end at the end of the extent."""
    marks: EventPart[Marks] = EventPart()
    """NVTX marks."""
    osrt: EventPart[OsrtCalls] = EventPart()
    """OS runtime calls."""
    host_events: EventPart[HostEvents] = EventPart()
    """MPI calls, profiler overhead and other host ranges, told apart by ``kind``."""
    syncs: EventPart[Syncs] = EventPart()
    """Host-side waits on the device."""
    samples: EventPart[Samples] = EventPart()
    """CPU samples."""
    memory_usage: EventPart[MemoryUsage] = EventPart()
    """Allocations and frees of GPU memory."""
    gpu_metrics: EventPart[GpuMetrics] = EventPart()
    """Sampled hardware counters."""

    def __init__(self, source: Source, launch_bound: LaunchBoundConfig | None = None) -> None:
        self._source = source
        self._parts: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._guard = threading.Lock()
        self.path = source.path
        self.metadata: Metadata = source.metadata
        self.launch_bound = launch_bound or LaunchBoundConfig()

    @property
    def name(self) -> str:
        """File name for titles."""
        return self.path.name

    @property
    def notes(self) -> Notes:
        """What of the file was not believed or not understood; grows while parts are read."""
        return self._source.notes

    def can(self, capability: Capability) -> bool:
        """Whether the report holds rows of this kind."""
        return capability in self._source.capabilities

    def lacks(self, capability: Capability) -> str:
        """Why a kind of data is missing and what would record it; empty when it is there."""
        if self.can(capability):
            return ""
        if not self.may_hold(capability):
            return f"no {capability} in this report: nsys records none on Windows"
        return self.doubt(capability) or self._unmet(capability) or explain(capability)

    def may_hold(self, capability: Capability) -> bool:
        """Whether nsys records a kind of data on the system that the report is of."""
        return capability not in LINUX_ONLY or not self.on_windows

    @cached_property
    def on_windows(self) -> bool:
        """Whether it is of Windows: its OS says so, or, where that is not recorded, all programs.

        Those of Linux may be called .exe, too: what nsys records there alone tells them apart.
        """
        if self.metadata.os or LINUX_ONLY & self._source.capabilities:
            return self.metadata.os.startswith("Windows")
        named = [name for name in self._source.process_names.values() if name]
        return bool(named) and all(name.lower().endswith(".exe") for name in named)

    def traced(self, capability: Capability) -> bool:
        """Whether a kind of data was looked for, so that none of it means that there was none."""
        asked_for = bool(self._unmet(capability))
        lost = is_lost(capability, self._source.capabilities)
        return self.can(capability) or (asked_for and not lost)

    def _unmet(self, capability: Capability) -> str:
        return unmet(capability, self.metadata.capture_settings, self._source.capabilities)

    def doubt(self, capability: Capability) -> str:
        """Why a kind of data in the file is not believed; empty where it is, or is not there."""
        return self._source.doubts.get(capability, "")

    @property
    def gpu_doubt(self) -> str:
        """Why the file's GPU work is not believed: a doubt about a part is one about all of it."""
        return self.doubt(Capability.KERNELS)

    def loaded(self, part: str) -> bool:
        """Whether a part is in memory (or mapped) already."""
        return part in self._parts

    def _part(self, key: str, load: Callable[[], T]) -> T:
        if key not in self._parts:
            with self._guard:
                lock = self._locks.setdefault(key, threading.RLock())
            with lock:
                if key not in self._parts:
                    self._parts[key] = load()
        value: T = self._parts[key]
        return value

    def load(self, part: str, progress: Progress | None = None) -> None:
        """Loads one of ``PARTS``, ``calls`` or ``launch_attributes`` with progress."""
        loaders: dict[str, Callable[[], Any]] = {
            "calls": lambda: self.calls,
            "launch_attributes": lambda: self.launch_attributes,
            "ranges": lambda: self._ranges(progress),
        }
        self._part(part, loaders.get(part) or (lambda: self._source.part(part, progress)))

    def sampled_operations(self, rows: int = 100_000) -> Operations:
        """An evenly spaced sample of the GPU work, for first figures marked as estimates."""
        return self._source.sampled_operations(rows)

    @property
    def kernel_names(self) -> tuple[OpName, ...]:
        """Names of all kernels, read alone where operations are not at hand."""
        if self.loaded("operations"):
            return self.operations.names
        return self._part("kernel_names", self._source.kernel_names)

    def with_sample(self, ops: Operations) -> Report:
        """This report with a sample as its operations: shares computed from it are estimates."""
        sampled = Report(self._source, self.launch_bound)
        sampled._parts["operations"] = ops
        return sampled

    @property
    def calls(self) -> Int32:
        """Row in ``api`` of the call that launched each operation, -1 for none.

        The join is on (process, correlation id) over calls of eventClass 0 and 1; of several, the
        earliest start.
        """
        return self._part("calls", lambda: self._source.calls(self.operations, self.api))

    def called(self, rows: Indices) -> tuple[Indices, Int32]:
        """Those of some operations whose call is known, and the calls."""
        calls = self.calls[rows]
        known = calls >= 0
        return rows[known], calls[known]

    def derived(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays that follow from the report, such as its events in another order.

        They are made once and then mapped from the cache, also at later openings, so that they take
        no memory of their own.

        Args:
            name: a plain file name, other than that of any part.
            make: makes them from parts of this report.
        """
        return self._part(f"derived {name}", lambda: self._source.derived(name, make))

    def stored(self, name: str) -> Arrays | None:
        """``derived`` where the arrays were made before, else None."""
        key = f"derived {name}"
        if key not in self._parts and (kept := self._source.stored(name)) is not None:
            self._parts[key] = kept
        return self._parts.get(key)

    @property
    def launch_attributes(self) -> LaunchAttributes:
        """Grid, block, registers and shared memory, aligned with ``operations``."""
        return self._part(
            "launch_attributes", lambda: self._source.launch_attributes(self.operations)
        )

    def _ranges(self, progress: Progress | None) -> Ranges:
        ranges: Ranges = self._source.part("ranges", progress)
        if not ranges.open.any():
            return ranges
        bounds = [ranges.bounds(), *(self._bounds(part) for part in PARTS if part != "ranges")]
        ends = [bound[1] for bound in bounds if bound]
        if self.metadata.session_duration_ns:
            ends.append(self.metadata.session_duration_ns)
        end = ranges.end.copy()
        end[ranges.open] = max(ends)
        return replace(ranges, end=end)

    @property
    def payloads(self) -> Payloads:
        """NVTX payloads as JSON text; empty where the export holds none."""
        return self._part("payloads", self._source.payloads)

    def chains(self, kind: Kind) -> CallChains:
        """Stack frames of CPU samples, CUDA calls or OS runtime calls; ``kind`` is a chain."""
        return self._part(f"chains:{kind}", lambda: self._source.chains(kind, None))

    @property
    def devices(self) -> tuple[Device, ...]:
        """Physical GPUs that ran work."""
        return self.operations.devices

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Streams that ran work."""
        return self.operations.streams

    def _bounds(self, part: str) -> tuple[int, int] | None:
        bounds: tuple[int, int] | None = self._part(
            f"bounds:{part}", lambda: getattr(self, part).bounds()
        )
        return bounds

    @property
    def extent(self) -> tuple[int, int]:
        """The whole trace: first start to last end of events with a lane, joined with the session.

        Loads all event sets; ``NOTHING`` for a report without events.
        """
        return self._part("extent", lambda: self._extent(PARTS))

    @property
    def known_extent(self) -> tuple[int, int]:
        """``extent`` over the parts loaded so far."""
        return self._extent(tuple(part for part in PARTS if self.loaded(part)))

    def _extent(self, parts: tuple[str, ...]) -> tuple[int, int]:
        bounds = [bound for part in parts if (bound := self._bounds(part))]
        if self.metadata.session_duration_ns:
            bounds.append((0, self.metadata.session_duration_ns))
        if not bounds:
            return NOTHING
        start = min(lo for lo, _ in bounds)
        return start, max(max(hi for _, hi in bounds), start + 1)

    @property
    def span(self) -> tuple[int, int] | None:
        """First operation's start to last operation's end over all devices."""
        return self._part("span", lambda: self.operations.bounds())

    def thread_name(self, global_tid: int) -> str:
        """Name of a thread, or its number: ``pt_autograd_0``, ``tid 4411``."""
        return self._source.thread_names.get(int(global_tid)) or f"tid {tid_of(int(global_tid))}"

    def process_name(self, global_pid: int) -> str:
        """Name of a process, or its number."""
        return self._source.process_names.get(int(global_pid)) or f"pid {pid_of(int(global_pid))}"

    @property
    def ranks(self) -> Mapping[int, int]:
        """globalPid -> MPI rank, as MPI or the names of its threads tell it."""
        return self._source.ranks

    def has(self, kind: Kind, *fields: str) -> bool:
        """Whether the file has a table of a kind, with all these fields if any are named."""
        return self._source.has(kind, fields)

    def table_of(self, kind: Kind) -> str:
        """What the file calls the table of a kind, for people who look into the file."""
        return self._source.table_of(kind)

    def row(self, kind: Kind, rowid: int) -> RawRow:
        """Every attribute of one event, for a detail pane."""
        return self._source.row(kind, rowid)

    def rows(self, kind: Kind, *fields: str) -> RawTable:
        """All rows of a rarely used kind; empty when its table is missing."""
        return self._source.rows(kind, fields)

    def numbers(self, kind: Kind, *names: str) -> tuple[Int64, ...]:
        """Rowids and values of fields of numbers, -1 where a row, or its table, has none."""
        return self._source.numbers(kind, names)

    def close(self) -> None:
        """Closes the file; parts already loaded stay usable."""
        self._source.close()
