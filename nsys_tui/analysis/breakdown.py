"""Busy time split into compute, communication, memory and graphs, with overlaps and exposed time.

Two definitions live here. ``coverages`` and ``device_splits`` are ours: per GPU, by category.
``ten_figures`` is the older rule by kernel name, with all GPUs in one union, kept for parity under
the name ``breakdown``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeVar

import numpy as np

from nsys_tui.analysis.window import (
    WHOLE_REPORT,
    Rows,
    Scope,
    clipped,
    row_count,
    row_numbers,
    starting,
)
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report
from nsys_tui.model.target import Device

UVM_COPY_KINDS: Final = (11, 12, 13)
"""copyKind of unified-memory migrations."""

OF_CATEGORY: Final = {
    Category.COMPUTE: "compute",
    Category.COMM: "comm",
    Category.MEMORY: "memory",
    Category.GRAPH: "graph",
}
FIGURES: Final = (
    "busy",
    "compute",
    "comm",
    "memory",
    "graph",
    "uvm",
    "compute_comm_overlap",
    "compute_memory_overlap",
    "comm_memory_overlap",
    "exposed_comm",
    "exposed_memory",
)
"""What is measured of a device, each the length of a set of intervals."""
_MANY: Final = 1 << 18
"""Operations of a device from which it is stored when it works: of fewer that is found as fast."""
Figure = TypeVar("Figure", int, "Int64")


@dataclass(frozen=True, eq=False)
class Covered:
    """A normalised set of intervals that tells how much of any window it covers."""

    starts: Int64
    ends: Int64

    @property
    def pair(self) -> Intervals:
        """The set itself."""
        return intervals.Normalised(self.starts, self.ends)

    @cached_property
    def _before(self) -> Int64:
        return intervals.prefix(self.starts, self.ends)

    def total(self) -> int:
        """Length in ns."""
        return int((self.ends - self.starts).sum())

    def within(self, starts: Int64, ends: Int64) -> Int64:
        """Covered ns of each window [start, end): int64 [n]."""
        return intervals.covered(self.pair, starts, ends, self._before)


class Stretches(NamedTuple):
    """What a device did without a pause, be it of no length: int64 [n]."""

    first: Integers
    """Place of the first operation of each among all of them."""
    starts: Int64
    ends: Int64
    facts: Int64
    """Sum of the durations of the operations that count."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """When one device did what, as sets of intervals."""

    report: Report
    device: int
    """Place in ``Report.devices``."""
    rows: Rows
    """The device's operations in scope, as rows of ``Report.operations``."""
    window: tuple[int, int] | None
    """What these are cut to."""

    @cached_property
    def stretches(self) -> Stretches:
        """What it did without a pause; of many operations mapped from the cache."""
        every = self.report.operations.of_devices[self.device]
        count = row_count(self.report.operations, self.rows)
        if self.window is not None or not _MANY <= count == len(every):
            return Stretches(**self._stretches())
        return Stretches(**self.report.derived(f"busy_1_{self.device}", self._stretches))

    def _stretches(self) -> dict[str, Int64]:
        start, end = clipped(self.report.operations, self.rows, self.window)
        lengths, counted = end - start, self.report.operations.counted[self.rows]
        facts = np.array([int((lengths if counted.all() else lengths * counted).sum())], np.int64)
        reach = end if intervals.is_sorted(end) else np.maximum.accumulate(end)
        first = np.flatnonzero(np.append(True, start[1:] > reach[:-1])[: len(start)])
        last = np.append(first, len(start))[1:] - 1
        return {"first": first, "starts": start[first], "ends": reach[last], "facts": facts}

    @cached_property
    def busy(self) -> Covered:
        """When it did anything."""
        starts, ends = self.stretches.starts, self.stretches.ends
        lasting = ends > starts
        return Covered(starts, ends) if lasting.all() else Covered(starts[lasting], ends[lasting])

    @cached_property
    def of(self) -> list[Indices]:
        """Rows of these operations by category."""
        ops = self.report.operations
        rows = row_numbers(ops, self.rows)
        return [rows[places] for places in rows_of_codes(ops.category[rows], len(Category))]

    @cached_property
    def exposed_comm(self) -> Intervals:
        """When it communicated and did not compute."""
        sets = self.sets
        return intervals.subtract(sets["comm"].pair, sets["compute_comm_overlap"].pair)

    @cached_property
    def compute(self) -> Covered:
        """When it computed."""
        return self._covered(self.of[Category.COMPUTE])

    def _covered(self, rows: Indices) -> Covered:
        return Covered(*intervals.union(*clipped(self.report.operations, rows, self.window)))

    @cached_property
    def sets(self) -> dict[str, Covered]:
        """By figure; exposed times follow from the overlaps, for which ``all_three`` is here."""
        copies = self.of[Category.MEMORY]
        uvm = copies[np.isin(self.report.operations.copy_kind[copies], UVM_COPY_KINDS)]
        parts = (self.of[Category.COMM], copies, self.of[Category.GRAPH], uvm)
        sets = {"busy": self.busy, "compute": self.compute}
        sets |= zip(("comm", "memory", "graph", "uvm"), map(self._covered, parts), strict=True)
        compute, comm, memory = (sets[name].pair for name in ("compute", "comm", "memory"))
        compute_comm = intervals.meet(comm, compute)
        overlaps = {
            "compute_comm_overlap": compute_comm,
            "compute_memory_overlap": intervals.meet(memory, compute),
            "comm_memory_overlap": intervals.meet(memory, comm),
            "all_three": intervals.meet(memory, compute_comm),
        }
        return sets | {name: Covered(*pair) for name, pair in overlaps.items()}

    def totals(self) -> dict[str, int]:
        """Every figure in ns."""
        return _with_exposed({name: covered.total() for name, covered in self.sets.items()})

    def within(self, starts: Int64, ends: Int64) -> dict[str, Int64]:
        """Every figure for each of many windows, such as iterations: int64 [n] ns per figure."""
        parts = {name: covered.within(starts, ends) for name, covered in self.sets.items()}
        return _with_exposed(parts)


def _with_exposed(parts: dict[str, Figure]) -> dict[str, Figure]:
    """Adds exposed times: what remains of a category without its overlaps."""
    hidden = parts["compute_memory_overlap"] + parts["comm_memory_overlap"]
    parts["exposed_comm"] = parts["comm"] - parts["compute_comm_overlap"]
    parts["exposed_memory"] = parts["memory"] - (hidden - parts["all_three"])
    return {name: parts[name] for name in FIGURES}


@dataclass(frozen=True)
class DeviceSplit:
    """Where the time of one device went, in ns, over ``base``."""

    index: int
    """Place in ``Report.devices``."""
    device: Device
    base: tuple[int, int]
    """The interval whose length the shares are of: the window, or the span of all devices."""
    busy_ns: int
    idle_ns: int
    compute_ns: int
    comm_ns: int
    memory_ns: int
    graph_ns: int
    uvm_ns: int
    """Unified-memory migrations, a part of ``memory_ns``."""
    exposed_comm_ns: int
    """Communication while nothing computes."""
    exposed_memory_ns: int
    """Copies and memsets while nothing computes or communicates."""
    compute_comm_overlap_ns: int
    compute_memory_overlap_ns: int
    comm_memory_overlap_ns: int
    sum_ns: int
    """Sum of the operations' durations: more than ``busy_ns`` where they overlap."""
    kernel_count: int
    operation_count: int
    """Operations that start in the window; a graph launch whose nodes were traced is none."""
    straddling_count: int
    """Operations that reach into the window but start before it."""
    max_gap: tuple[int, int] | None
    """Longest idle interval between two operations, cut to the window."""
    longest_exposed_comm: tuple[int, int] | None
    """Longest stretch of communication while nothing computes."""
    exposed_is_upper_bound: bool
    """True where graph launches hide what ran inside them."""
    comm_waiting_ns: int | None = None
    """Communication that only waits for other ranks; None where partners are not known."""
    exposed_waiting_ns: int | None = None
    """The part of it that no compute hides."""

    @property
    def base_ns(self) -> int:
        """Length of ``base``."""
        return self.base[1] - self.base[0]

    @property
    def comm_transfer_ns(self) -> int | None:
        """Communication that is no waiting."""
        return None if self.comm_waiting_ns is None else self.comm_ns - self.comm_waiting_ns

    @property
    def max_gap_ns(self) -> int:
        """Length of ``max_gap``, 0 where there is none."""
        return self.max_gap[1] - self.max_gap[0] if self.max_gap else 0


def coverages(report: Report, scope: Scope = WHOLE_REPORT) -> Iterator[Coverage]:
    """When each device in scope did what; one at a time, since the sets may be large."""
    for device, rows in scope.by_device(report):
        yield Coverage(report, device, rows, scope.window)


def device_splits(report: Report, scope: Scope = WHOLE_REPORT) -> list[DeviceSplit]:
    """Where the time of each device in scope went."""
    # Without a name for each: the last one would stay, 190 MB, while the next is made.
    return [*map(partial(split_of, report, scope=scope), coverages(report, scope))]


def split_of(report: Report, coverage: Coverage, scope: Scope) -> DeviceSplit:
    """Where the time of one device went, from its coverage."""
    ops, rows, base = report.operations, coverage.rows, scope.base(report)
    figures = {f"{name}_ns": total for name, total in coverage.totals().items()}
    counted, done = ops.counted[rows], coverage.stretches
    begun = counted if scope.window is None else counted & starting(ops, rows, scope.window)
    active = done.starts, done.ends
    if scope.window is not None:
        every = dict(scope.at_any_time().by_device(report))[coverage.device]
        active = clipped(ops, every, None)
    return DeviceSplit(
        index=coverage.device,
        device=report.devices[coverage.device],
        base=base,
        idle_ns=base[1] - base[0] - figures["busy_ns"],
        sum_ns=int(done.facts[0]),
        kernel_count=int(np.count_nonzero(begun & (ops.kind[rows] == OpKind.KERNEL))),
        operation_count=int(np.count_nonzero(begun)),
        straddling_count=int(np.count_nonzero(counted & ~begun)),
        max_gap=_longest_gap(coverage.sets["busy"], _active(*active, scope.window)),
        longest_exposed_comm=_longest_exposed(coverage),
        exposed_is_upper_bound=len(coverage.of[Category.GRAPH]) > 0,
        **figures,
    )


def _longest_exposed(coverage: Coverage) -> tuple[int, int] | None:
    starts, ends = coverage.exposed_comm
    if not len(starts):
        return None
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest])


def _longest_gap(busy: Covered, active: tuple[int, int]) -> tuple[int, int] | None:
    """The longest idle interval between two operations; ``active`` spans all of them."""
    if not len(busy.starts):
        return active if active[1] > active[0] else None
    gaps = [(active[0], int(busy.starts[0])), (int(busy.ends[-1]), active[1])]
    if len(busy.starts) > 1:
        longest = int(np.argmax(busy.starts[1:] - busy.ends[:-1]))
        gaps.insert(1, (int(busy.ends[longest]), int(busy.starts[longest + 1])))
    gap = max(gaps, key=lambda pair: pair[1] - pair[0])
    return gap if gap[1] > gap[0] else None


def _active(start: Int64, end: Int64, window: tuple[int, int] | None) -> tuple[int, int]:
    """From the first of some operations to the end of the last, cut to the window."""
    if not len(start):
        return 0, 0
    first, last = int(start[0]), int(end.max())
    lo, hi = window or (first, last)
    return max(lo, first), min(hi, last)


_NOT_COMPUTE: Final = ("nccl", "memcpy", "memset", "mem_copy")


def ten_figures(
    report: Report, scope: Scope = WHOLE_REPORT, rows: Rows | None = None
) -> dict[str, int | float | None]:
    """The ten figures of the old breakdown, and exposed communication beside them.

    Communication is every kernel with ``nccl`` in its demangled name, compute every kernel whose
    name holds none of nccl, memcpy, memset, mem_copy, memory every copy and memset; graph launches
    are left out. All devices in scope share one union. The session is the recorded duration, or the
    window; without either, idle time and utilisation are None.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        rows: the operations of the scope, where they are known.
    """
    ops = report.operations
    rows = scope.operations(ops) if rows is None else rows
    starts, ends = clipped(ops, rows, scope.window)
    kind, name = ops.kind[rows], ops.name[rows]
    kernel = kind == OpKind.KERNEL
    is_comm, is_compute = np.zeros((2, len(ops.names)), bool)
    # Only of names that occur: it is asked for each device, and each may have names of its own.
    for code in np.flatnonzero(np.bincount(name)).tolist():
        lowered = ops.names[code].demangled.lower()
        is_comm[code] = "nccl" in lowered
        is_compute[code] = not any(part in lowered for part in _NOT_COMPUTE)
    compute, comm, memory, active = (
        intervals.union(starts[mask], ends[mask])
        for mask in (
            kernel & is_compute[name],
            kernel & is_comm[name],
            (kind == OpKind.MEMCPY) | (kind == OpKind.MEMSET),
            kind != OpKind.GRAPH,
        )
    )
    session = _session(report, scope)
    busy = intervals.total(*active)
    hidden = intervals.overlap_length(compute, comm)
    return {
        "session_ns": session,
        "gpu_active_ns": busy,
        "gpu_idle_ns": None if session is None else session - busy,
        "compute_ns": intervals.total(*compute),
        "communication_ns": intervals.total(*comm),
        "memory_ns": intervals.total(*memory),
        "compute_comm_overlap_ns": hidden,
        "compute_memory_overlap_ns": intervals.overlap_length(compute, memory),
        "comm_memory_overlap_ns": intervals.overlap_length(comm, memory),
        "utilisation_percent": round(100 * busy / session, 2) if session else None,
        "exposed_communication_ns": intervals.total(*comm) - hidden,
    }


def _session(report: Report, scope: Scope) -> int | None:
    if scope.window:
        return scope.window[1] - scope.window[0]
    return report.metadata.session_duration_ns
