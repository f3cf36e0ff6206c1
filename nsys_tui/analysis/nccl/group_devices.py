"""Which calls of a group were made for which GPU, where one process drives several.

NCCL's NVTX ranges name the communicator, which all these GPUs share, and not the GPU. The kernels
that the group launched tell how many there are, and equal calls for each of them tell the order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.nccl.kernel_matching import kernels_inside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.nccl.calls import Calls
    from nsys_tui.analysis.nccl.kernel_matching import NcclKernels
    from nsys_tui.model.events import Int32, Int64


def with_slots(calls: Calls, kernels: NcclKernels) -> Calls:
    """The calls with their ``slot``: numbered within group and communicator, GPU by GPU.

    Calls that are not the same for every GPU keep slot 0, and with it one launch.
    """
    order = np.argsort(calls.launch, kind="stable")
    edges = np.append(np.flatnonzero(np.diff(calls.launch[order], prepend=-1)), len(order))
    several = np.flatnonzero(np.diff(edges) > 1)
    if not len(several) or not len(kernels):
        return calls
    groups = [order[edges[place] : edges[place + 1]] for place in several.tolist()]
    heads = order[edges[several]]
    pids = np.array([process.pid for process in calls.processes], np.int64)[calls.process[heads]]
    begin, until = kernels_inside(
        kernels, pids, calls.thread[heads], calls.start[heads], calls.end[heads]
    )
    slot = calls.slot.copy()
    for rows, first, last in zip(groups, begin.tolist(), until.tolist(), strict=True):
        devices = len(np.unique(kernels.device[first:last]))
        if devices < 2:
            continue
        shared = np.unique(calls.communicator[rows])
        for communicator in shared:
            mine = rows[calls.communicator[rows] == communicator]
            slot[mine] = _slots(calls.op[mine], calls.bytes[mine], devices, len(shared))
    return replace(calls, slot=slot)


def _slots(op: Int32, size: Int64, devices: int, communicators: int) -> NDArray[np.int64]:
    count = len(op)
    calls = np.stack([op.astype(np.int64), size], axis=1)
    for gpus in (devices, devices // communicators):
        if gpus < 2 or count % gpus:
            continue
        each = count // gpus
        in_turn, in_blocks = calls.reshape(each, gpus, 2), calls.reshape(gpus, each, 2)
        if (in_turn == in_turn[:, :1]).all():
            return np.tile(np.arange(gpus), each)
        if (in_blocks == in_blocks[:1]).all():
            return np.repeat(np.arange(gpus), each)
    return np.zeros(count, np.int64)
