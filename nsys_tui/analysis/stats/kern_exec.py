"""Launch and execution of kernels: call, queue, kernel; summary and trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.aggregate import GroupStats, Int64, group_stats
from nsys_tui.analysis.stats.kernels import (
    LAUNCHES,
    kernel_rows,
    operation_codes,
    xyz,
)
from nsys_tui.analysis.stats.query import KERNEL_NAMES, Columns, report
from nsys_tui.analysis.stats.summary import moments, only, pids, tids
from nsys_tui.analysis.window import row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import BLOCK, GRID
from nsys_tui.model.groups import factorise_rows
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of
from nsys_tui.names import api_name

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.window import Rows
    from nsys_tui.model.events import Operations


@dataclass(frozen=True, eq=False)
class Launched:
    """Kernels with the call that launched each; kernels without a call are left out."""

    operation: NDArray[np.intp]
    call: NDArray[np.integer]
    call_start: Int64
    call_end: Int64
    start: Int64
    end: Int64
    thread: Int64
    """globalTid of the launching thread."""
    ordinal: Int64
    """CUDA ordinal of the device inside its process."""
    name: NDArray[np.integer]
    names: list[str]

    @property
    def queued(self) -> NDArray[np.bool_]:
        """Kernels that started after the call had returned: the others have no queue time."""
        return self.start >= self.call_end

    @property
    def queue(self) -> Int64:
        """Kernel start minus call end; negative where there is no queue time."""
        return self.start - self.call_end

    @property
    def total(self) -> Int64:
        """From the start of the call to the end of the call or the kernel, the later of them."""
        return np.maximum(self.call_end, self.end) - self.call_start


def launched(query: Query) -> Launched:
    """Kernels in scope joined with their calls on process and correlation id."""
    ops, api = query.report.operations, query.report.api
    kernels = row_numbers(ops, query.counted(ops, kernel_rows(query)))
    codes, names = operation_codes(query, kernels)
    calls = query.report.calls[kernels]
    with_call = calls >= 0
    kernels, calls, codes = kernels[with_call], calls[with_call], codes[with_call]
    if not len(kernels):
        raise NoDataError("no kernel with its launching call")
    return Launched(
        kernels,
        calls,
        api.start[calls],
        api.end[calls],
        ops.start[kernels],
        ops.end[kernels],
        api.threads[api.thread[calls]],
        ordinals(ops, kernels),
        codes,
        names,
    )


def member_ordinals(ops: Operations) -> dict[tuple[int, int], int]:
    """CUDA ordinal by place of the device and process id."""
    return {
        (place, member.pid): member.ordinal
        for place, device in enumerate(ops.devices)
        for member in device.members
    }


def ordinals(ops: Operations, rows: Rows) -> Int64:
    """CUDA ordinal that the device of each operation has in its process; -1 for none."""
    codes, pairs = factorise_rows((ops.device[rows], ops.process[rows]))
    known = member_ordinals(ops)
    found = [
        known.get((place, pid_of(int(ops.processes[process]))), -1)
        for place, process in pairs.tolist()
    ]
    return np.asarray(np.array(found, np.int64)[codes])


def _names(query: Query) -> NDArray[Any]:
    names = [api_name(name, nsys_compatible=True) for name in query.report.api.names]
    return np.array(names, object)


@report(
    "CUDA Kernel Launch & Exec Time Summary", LAUNCHES, old="kernexecsum", arguments=KERNEL_NAMES
)
def cuda_kern_exec_sum(query: Query) -> Columns:
    """Launches by thread, device, call and kernel: total, call (A), queue (Q) and kernel (K) time.

    Queue time is kernel start minus call end and only counts where it is not negative (QCount).
    """
    made = launched(query)
    api = query.report.api
    codes, groups = factorise_rows((made.thread, made.ordinal, api.name[made.call], made.name))
    n = len(groups)
    total = group_stats(codes, made.total, n)
    queue = group_stats(codes[made.queued], made.queue[made.queued], n)
    parts: list[tuple[str, GroupStats]] = [
        ("T", total),
        ("A", group_stats(codes, made.call_end - made.call_start, n)),
        ("Q", queue),
        ("K", group_stats(codes, made.end - made.start, n)),
    ]
    order = np.lexsort((np.arange(n), -total.mean))
    thread = groups[order, 0]
    columns: Columns = [
        (Column("PID", Unit.NONE), pids(thread)),
        (Column("TID", Unit.NONE), tids(thread)),
        (Column("DevId", Unit.NONE), groups[order, 1]),
        (Column("Count", Unit.COUNT), total.counts[order]),
        (Column("QCount", Unit.COUNT), queue.counts[order]),
    ]
    for prefix, stats in parts:
        columns += moments(stats, order, Unit.NS, 1, prefix)
    return [
        *columns,
        (Column("API Name"), _names(query)[groups[order, 2]]),
        (Column("Kernel Name"), [made.names[name] for name in groups[order, 3]]),
    ]


@report(
    "CUDA Kernel Launch & Exec Time Trace", LAUNCHES, old="kernexectrace", arguments=KERNEL_NAMES
)
def cuda_kern_exec_trace(query: Query) -> Columns:
    """Every kernel launch with its call, queue and kernel time, by the start of the call."""
    made = launched(query)
    order = np.lexsort((made.start, made.call_start))
    launch = query.report.launch_attributes
    queued = made.queued[order]
    name = np.array(made.names, object)

    def shapes(columns: slice) -> NDArray[Any]:
        known = query.report.can(Capability.LAUNCH_SHAPES)
        texts = np.array([xyz(sizes) for sizes in launch.table[:, columns]], object)
        return only(texts[launch.code[made.operation[order]]], np.full(len(order), known))

    def where_queued(values: Int64) -> NDArray[Any]:
        return only(values[order], queued)

    return [
        (Column("API Start", Unit.NS), made.call_start[order]),
        (Column("API Dur", Unit.NS), (made.call_end - made.call_start)[order]),
        (Column("Queue Start", Unit.NS), where_queued(made.call_end)),
        (Column("Queue Dur", Unit.NS), where_queued(made.queue)),
        (Column("Kernel Start", Unit.NS), made.start[order]),
        (Column("Kernel Dur", Unit.NS), (made.end - made.start)[order]),
        (Column("Total Dur", Unit.NS), made.total[order]),
        (Column("PID", Unit.NONE), pids(made.thread[order])),
        (Column("TID", Unit.NONE), tids(made.thread[order])),
        (Column("DevId", Unit.NONE), made.ordinal[order]),
        (Column("API Function"), _names(query)[query.report.api.name[made.call[order]]]),
        (Column("GridXYZ"), shapes(GRID)),
        (Column("BlockXYZ"), shapes(BLOCK)),
        (Column("Kernel Name"), name[made.name[order]]),
    ]
