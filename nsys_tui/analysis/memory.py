"""GPU memory that the program allocated: over time, its peak, and what was never freed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import MemoryUsage
from nsys_tui.model.report import Report
from nsys_tui.model.target import Device

HOST_KINDS: Final = (0, 1)
"""Pageable and pinned memory lie on the host, though a GPU's context allocated them."""


@dataclass(frozen=True, eq=False)
class DeviceMemory:
    """Memory of one GPU that all processes together held."""

    device: Device
    times: Int64
    """Times at which it changed, ns, ascending."""
    used: Int64
    """Bytes held from each time on."""
    allocations: int
    frees: int
    unmatched_frees: int
    """Frees of memory whose allocation was not recorded; they change nothing."""
    never_freed: Indices
    """Rows of ``Report.memory_usage`` of allocations that were never freed, largest first."""
    never_freed_bytes: int

    @property
    def peak(self) -> tuple[int, int]:
        """Most bytes held at once, and when that was first reached; (0, 0) for none."""
        if not len(self.used):
            return 0, 0
        most = int(np.argmax(self.used))
        return int(self.used[most]), int(self.times[most])

    def at(self, times: Int64) -> Int64:
        """Bytes held at each time: int64 [n]."""
        before = np.searchsorted(self.times, times, side="right")
        return np.append(0, self.used)[before]


def recorded_memory(report: Report) -> list[DeviceMemory]:
    """GPU memory of each GPU; none where it was not recorded."""
    return device_memory(report) if report.can(Capability.GPU_MEMORY) else []


def device_memory(report: Report) -> list[DeviceMemory]:
    """GPU memory in use over time, for each device with recorded allocations.

    Raises:
        NoDataError: the report holds no memory usage; the hint says what records it.
    """
    if not report.can(Capability.GPU_MEMORY):
        raise NoDataError(
            f"{report.name}: GPU memory was not recorded", hint=report.lacks(Capability.GPU_MEMORY)
        )
    usage = report.memory_usage
    on_gpu = ~np.isin(usage.memory_kind, HOST_KINDS)
    return [
        _of_device(usage, device, np.flatnonzero(on_gpu & (usage.device == device)))
        for device in np.unique(usage.device[on_gpu]).tolist()
    ]


def _of_device(usage: MemoryUsage, device: int, rows: Indices) -> DeviceMemory:
    frees = usage.operation[rows] == 1
    allocation = _freed_allocation(usage, rows, frees)
    matched = allocation >= 0
    change = np.where(frees, 0, usage.bytes[rows])
    change[matched] = -usage.bytes[rows[allocation[matched]]]
    kept = ~frees
    kept[allocation[matched]] = False
    times, used = usage.start[rows], np.cumsum(change)
    last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, bool)
    never = rows[kept]
    never = never[np.argsort(-usage.bytes[never], kind="stable")]
    return DeviceMemory(
        device=usage.devices[device],
        times=times[last],
        used=used[last],
        allocations=int((~frees).sum()),
        frees=int(frees.sum()),
        unmatched_frees=int((frees & ~matched).sum()),
        never_freed=never,
        never_freed_bytes=int(usage.bytes[never].sum()),
    )


def _freed_allocation(usage: MemoryUsage, rows: Indices, frees: Bool) -> Indices:
    """For each free the position of its allocation: the event before it at the same address.

    -1 for allocations, and for frees that no allocation precedes.
    """
    order = np.lexsort((np.arange(len(rows)), usage.address[rows], usage.process[rows]))
    allocation = np.full(len(rows), -1, np.intp)
    address, process = usage.address[rows][order], usage.process[rows][order]
    same = (address[1:] == address[:-1]) & (process[1:] == process[:-1])
    pairs = same & frees[order][1:] & ~frees[order][:-1]
    allocation[order[1:][pairs]] = order[:-1][pairs]
    return allocation
