"""What the operations of one row have in common: launch shapes, callers, waiting, NVTX ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.analysis.launches import launches, stream_gaps
from nsys_tui.analysis.nvtx.operation_paths import OperationPaths
from nsys_tui.model.arrays import Float64, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import BLOCK, GRID, REGISTERS, Operations
from nsys_tui.model.groups import rows_of_codes, sums
from nsys_tui.model.report import Report
from nsys_tui.model.target import GpuInfo
from nsys_tui.names import api_name, normalise_nvtx

MOST_STREAMS: Final = 16
"""Up to so many streams are looked at one by one."""
LISTED: Final = 8
"""Shapes, callers, ranges and names that are listed; the rest is counted."""


@dataclass(frozen=True)
class Part:
    """One of several values and how much of the row it makes up."""

    text: str
    share: float
    """0 to 1."""


@dataclass(frozen=True)
class Parts:
    """The largest values, and how many more there are."""

    listed: tuple[Part, ...]
    more: int = 0


@dataclass(frozen=True, eq=False)
class KernelFacts:
    """Facts about some operations; times in ns."""

    count: int
    names: tuple[str, ...]
    """Demangled names, at most ``LISTED``."""
    name_count: int
    shapes: Parts
    """``grid G block B``, by operations."""
    registers: tuple[int, int] | None
    """Least and most registers per thread; None without kernels."""
    shared: tuple[int, int] | None
    """Least and most bytes of shared memory per block, static and dynamic."""
    gap: float | None
    """Median idle time of the stream before the operation; None for firsts of a stream only."""
    latency: float | None
    """Median time from the start of the API call to the start of the operation."""
    uncalled: int
    """Operations without a known API call."""
    callers: Parts
    """API calls that launched them, by operations."""
    ranges: Parts
    """Innermost NVTX ranges around the launch with digits as ``#``, by time."""
    bytes: int
    """Bytes moved or set."""
    time: int
    """Sum of their durations."""


def kernel_facts(report: Report, rows: Indices, paths: OperationPaths) -> KernelFacts:
    """Looks at some operations together.

    Args:
        report: the report.
        rows: rows of its operations.
        paths: NVTX paths of all operations.
    """
    ops = report.operations
    duration = np.maximum(ops.end[rows] - ops.start[rows], 0)
    kernels = rows[ops.kind[rows] == OpKind.KERNEL]
    shaped = kernels if report.can(Capability.LAUNCH_SHAPES) else kernels[:0]
    launch = report.launch_attributes
    names = np.unique(ops.name[rows])
    started = launches(report, rows)
    before = gaps_before(ops, rows)
    return KernelFacts(
        count=len(rows),
        names=tuple(ops.names[code].demangled for code in names[:LISTED].tolist()),
        name_count=len(names),
        shapes=_shapes(launch.of(shaped, GRID), launch.of(shaped, BLOCK)),
        registers=_range(launch.of(shaped, REGISTERS)),
        shared=_range(launch.shared[launch.code[shaped]]),
        gap=_median(before[before >= 0]),
        latency=_median(started.latency[started.called]),
        uncalled=int(len(rows) - started.called.sum()),
        callers=_callers(report, rows),
        ranges=_ranges(paths, rows, duration),
        bytes=int(ops.bytes[rows].sum()),
        time=int(duration.sum()),
    )


def gaps_before(ops: Operations, rows: Indices) -> Int64:
    """Idle time of its stream before each of some operations; -1 for the first of a stream.

    As ``stream_gaps`` for all, but only the streams of these operations are looked at.

    Args:
        ops: all operations.
        rows: some of them, ascending.
    """
    streams = ops.stream[rows]
    distinct = np.unique(streams)
    if len(distinct) > MOST_STREAMS:
        return stream_gaps(ops)[rows]
    gaps = np.full(len(rows), -1, np.int64)
    for stream in distinct.tolist():
        every, mine = np.flatnonzero(ops.stream == stream), np.flatnonzero(streams == stream)
        reach = np.maximum.accumulate(ops.end[every])
        position = np.searchsorted(every, rows[mine])
        later = position > 0
        start = ops.start[rows[mine[later]]]
        gaps[mine[later]] = np.maximum(start - reach[position[later] - 1], 0)
    return gaps


def _median(values: Integers) -> float | None:
    return float(np.median(values)) if len(values) else None


def _range(values: Integers) -> tuple[int, int] | None:
    return (int(values.min()), int(values.max())) if len(values) else None


def _shapes(grid: Integers, block: Integers) -> Parts:
    if not len(grid):
        return Parts(())
    both = np.ascontiguousarray(np.hstack((grid, block)).astype(np.int32))
    # Six sizes side by side as one value: 5 M rows compare as bytes and not column by column.
    packed = both.view(np.dtype((np.void, both.dtype.itemsize * 6))).reshape(-1)
    distinct, counts = np.unique(packed, return_counts=True)
    shapes = distinct.view(np.int32).reshape(-1, 6)
    texts = []
    for shape in np.argsort(-counts, kind="stable").tolist():
        sizes = [str(size) for size in shapes[shape].tolist()]
        texts.append((f"grid {','.join(sizes[:3])} block {','.join(sizes[3:])}", counts[shape]))
    return _parts(texts, len(grid))


def _callers(report: Report, rows: Indices) -> Parts:
    api = report.api
    codes, counts = np.unique(api.name[report.called(rows)[1]], return_counts=True)
    merged: dict[str, int] = {}
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        name = api_name(api.names[code])
        merged[name] = merged.get(name, 0) + count
    return _parts(sorted(merged.items(), key=lambda pair: -pair[1]), len(rows))


def _ranges(paths: OperationPaths, rows: Indices, duration: Int64) -> Parts:
    time = sums(paths.node[rows], duration, len(paths.trie))
    merged: dict[str, int] = {}
    for node in np.unique(paths.node[rows]).tolist():
        label = normalise_nvtx(paths.innermost_labels[node])
        merged[label] = merged.get(label, 0) + int(time[node])
    return _parts(sorted(merged.items(), key=lambda pair: -pair[1]), int(duration.sum()))


def _parts(pairs: Sequence[tuple[str, int]], whole: int) -> Parts:
    listed = tuple(
        Part(text, int(amount) / whole if whole else 0.0) for text, amount in pairs[:LISTED]
    )
    return Parts(listed, max(0, len(pairs) - LISTED))


REGISTER_UNIT: Final = 256
LIMITS: Final = ("warps", "blocks", "registers", "shared memory")


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Occupancy of some kernels, aligned with the rows asked for."""

    share: Float64
    """Resident warps / the most an SM holds, 0 to 1; NaN where the GPU's limits are unknown."""
    limit: NDArray[np.int8]
    """Which of ``LIMITS`` allows the fewest blocks; -1 where unknown."""


def occupancy(report: Report, rows: Indices) -> Occupancy:
    """Theoretical occupancy of some operations; NaN for those that are no kernels.

    Args:
        report: the report; launch attributes are loaded.
        rows: rows of ``Report.operations``.
    """
    ops, launch = report.operations, report.launch_attributes
    share, limit = np.full(len(rows), np.nan), np.full(len(rows), -1, np.int8)
    known = report.can(Capability.LAUNCH_SHAPES)
    kernels = np.flatnonzero(ops.kind[rows] == OpKind.KERNEL) if known else rows[:0]
    by_device = rows_of_codes(ops.device[rows[kernels]], len(ops.devices))
    for device, own in zip(ops.devices, by_device, strict=True):
        mine = kernels[own]
        if device.info is None or not len(mine):
            continue
        of_kernels = rows[mine]
        threads = launch.threads[launch.code[of_kernels]]
        blocks = blocks_per_sm(
            device.info,
            threads,
            launch.of(of_kernels, REGISTERS).astype(np.int64),
            launch.shared[launch.code[of_kernels]],
        )
        if blocks is None or not device.info.max_warps_per_sm:
            continue
        warps = _warps(device.info, threads)
        share[mine] = blocks.min(axis=0) * warps / device.info.max_warps_per_sm
        limit[mine] = blocks.argmin(axis=0)
    return Occupancy(share, limit)


def _warps(gpu: GpuInfo, threads: Int64) -> Int64:
    return -(-np.maximum(threads, 1) // (gpu.threads_per_warp or 32))


def blocks_per_sm(gpu: GpuInfo, threads: Int64, registers: Int64, shared: Int64) -> Int64 | None:
    """Blocks per SM that each of ``LIMITS`` allows: int64 [4, n], or None without the limits.

    Args:
        gpu: properties of the device.
        threads: threads per block, int64 [n].
        registers: registers per thread, int64 [n].
        shared: static and dynamic shared memory per block, bytes, int64 [n].
    """
    if not gpu.max_warps_per_sm or not gpu.max_registers_per_sm or not gpu.max_shared_per_sm:
        return None
    warps = _warps(gpu, threads)
    most = np.full(len(threads), gpu.max_blocks_per_sm or gpu.max_warps_per_sm, np.int64)
    per_warp = -(-registers * (gpu.threads_per_warp or 32) // REGISTER_UNIT) * REGISTER_UNIT
    resident = gpu.max_registers_per_sm // np.maximum(per_warp, 1)
    new = (gpu.compute_capability or (0, 0)) >= (8, 0)
    unit, reserved = (128, 1024) if new else (256, 0)
    per_block = -(-(shared + reserved) // unit) * unit
    return np.stack(
        (
            gpu.max_warps_per_sm // warps,
            most,
            np.where(registers > 0, resident // warps, most),
            np.where(shared > 0, gpu.max_shared_per_sm // np.maximum(per_block, 1), most),
        )
    )
