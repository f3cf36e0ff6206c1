"""Facts of GPU work in the terms of its kind: kernels, copies, collectives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from nsys_tui.analysis.kernel_facts import LIMITS, blocks_per_sm
from nsys_tui.analysis.nccl.collectives import collectives
from nsys_tui.analysis.nccl.rank_matching import Traced
from nsys_tui.analysis.nccl.result import Collectives
from nsys_tui.analysis.nccl.waiting import collective_waits
from nsys_tui.model.categories import MEMORY_KINDS, OpKind
from nsys_tui.model.events import Operations
from nsys_tui.model.report import Report
from nsys_tui.units import format_bytes, format_duration, format_rate, format_share

Fact: TypeAlias = tuple[str, str]

LARGE: Final = 1 << 20
"""Bytes from which on a copy tells what its way allows: smaller ones are all latency."""
_PAGEABLE, _PINNED = (MEMORY_KINDS.index(kind) for kind in ("Pageable", "Pinned"))
_GB: Final = 1e9
_COLLECTIVES: WeakKeyDictionary[Report, Collectives] = WeakKeyDictionary()
"""Those of each report that was asked about."""


def resident_facts(
    ops: Operations, row: int, threads: int, blocks: int, registers: int, shared: int
) -> Iterator[Fact]:
    """Occupancy and waves of a kernel; ``-`` where the export does not tell the GPU's limits.

    Args:
        ops: the work.
        row: the kernel.
        threads: of a block.
        blocks: of the grid.
        registers: of a thread.
        shared: bytes of shared memory of a block.
    """
    gpu = ops.devices[int(ops.device[row])].info
    ask = (np.array([value], np.int64) for value in (threads, registers, shared))
    most = None if gpu is None else blocks_per_sm(gpu, *ask)
    if gpu is None or most is None or not gpu.max_warps_per_sm:
        yield ("occ", "- (the export has no GPU limits)")
        return
    warps, per_sm = -(-threads // (gpu.threads_per_warp or 32)), int(most.min())
    share = per_sm * warps / gpu.max_warps_per_sm
    yield ("occ", f"≈{format_share(share)} ({LIMITS[int(most[:, 0].argmin())]})")
    if gpu.sm_count and per_sm:
        yield ("waves", f"≈{blocks / (per_sm * gpu.sm_count):.2f}")


def transfer_facts(ops: Operations, row: int) -> Iterator[Fact]:
    """Bytes, speed, how much of it the way allows, and the kinds of memory of a copy or memset."""
    size, duration = int(ops.bytes[row]), int(ops.end[row] - ops.start[row])
    source, target = int(ops.src_kind[row]), int(ops.dst_kind[row])
    yield ("bytes", format_bytes(size))
    if duration > 0:
        yield ("speed", f"{format_rate(size * 1e9 / duration)}")
    if ops.kind[row] == OpKind.MEMCPY and duration > 0 and (best := _fastest(ops, row)):
        share = format_share(size / duration, best)
        told = f"{format_rate(best * 1e9)}, measured: large copies here of the same way"
        yield ("of fastest", f"{share} ({told})")
    ends = [MEMORY_KINDS[kind] for kind in (source, target) if kind < len(MEMORY_KINDS)]
    if ends and set(ends) != {"Unknown"}:
        staged = " (not pinned: staged through a buffer of the driver)"
        yield ("memory", " -> ".join(ends) + staged * (_PAGEABLE in (source, target)))


def _fastest(ops: Operations, row: int) -> float:
    """Bytes per ns of the fastest large copy between host and device as this one; 0 without any.

    Pinned memory stands for pageable, whose copies take the same bus.
    """
    kinds = {_PAGEABLE: _PINNED}
    source, target = (int(column[row]) for column in (ops.src_kind, ops.dst_kind))
    same = (ops.kind == OpKind.MEMCPY) & (ops.bytes >= LARGE) & (ops.end > ops.start)
    same &= ops.device == ops.device[row]
    for column, kind in ((ops.src_kind, source), (ops.dst_kind, target)):
        same &= (column == kind) | (column == kinds.get(kind, kind))
    rows = np.flatnonzero(same)
    if not len(rows):
        return 0.0
    return float((ops.bytes[rows] / (ops.end[rows] - ops.start[rows])).max())


def collective_facts(report: Report, row: int) -> Iterator[Fact]:
    """Bytes and bandwidths of the collective of a kernel, and its waiting apart from the transfer.

    Args:
        report: its report, with all events loaded.
        row: a kernel of communication.
    """
    ops = report.operations
    duration = int(ops.end[row] - ops.start[row])
    waits = collective_waits(report)
    position = int(np.searchsorted(waits.row, row))
    if position < len(waits) and waits.row[position] == row:
        waited, last = (
            max(int(waits.until[position] - ops.start[row]), 0),
            int(waits.last[position]),
        )
        came = f"{format_duration(waited)} for {ops.devices[int(ops.device[last])].label}"
        yield ("waited", "not: it came last" if last == row else came)
        yield ("transfer", format_duration(duration - waited))
    else:
        yield ("waited", "- (its kernels on other GPUs are not known)")
    if report not in _COLLECTIVES:
        _COLLECTIVES[report] = collectives([Traced(report)])
    known = _COLLECTIVES[report]
    mine = np.flatnonzero(known.parts.row == row)
    if not len(mine):
        return
    number = int(known.parts.collective[mine[0]])
    if known.bytes[number] >= 0:
        yield ("bytes", format_bytes(int(known.bytes[number])))
    rates = (("algbw", known.algorithm_bandwidth), ("busbw", known.bus_bandwidth))
    for name, rate in rates:
        if not np.isnan(rate[number]):
            estimated = "≈" if known.estimated[number] else ""
            yield (name, f"{estimated}{format_rate(rate[number])}")
