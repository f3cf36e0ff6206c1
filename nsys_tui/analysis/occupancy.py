"""Theoretical occupancy of a launch: how many of an SM's warps its blocks can fill, an estimate.

Follows the CUDA programming guide: warps, block slots, registers and shared memory limit the blocks
of an SM. Registers are handed out per warp in units of 256, shared memory in units of 128 bytes
(256 before compute capability 8.0) plus, from 8.0 on, 1 KiB a block that the system keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import REGISTERS
from nsys_tui.model.groups import rows_of_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report
    from nsys_tui.model.target import GpuInfo

REGISTER_UNIT: Final = 256
LIMITS: Final = ("warps", "blocks", "registers", "shared memory")


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Occupancy of some kernels, aligned with the rows asked for."""

    share: NDArray[np.float64]
    """Resident warps / the most an SM holds, 0 to 1; NaN where the GPU's limits are unknown."""
    limit: NDArray[np.int8]
    """Which of ``LIMITS`` allows the fewest blocks; -1 where unknown."""


def occupancy(report: Report, rows: NDArray[np.intp]) -> Occupancy:
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
