"""Kernels by name and launch shape, and their launch and execution: call, queue, kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import GroupStats, group_stats, grouped_union
from nsys_tui.analysis.stats.nvtx import innermost
from nsys_tui.analysis.stats.query import KERNEL_NAMES, Columns, Needs, Query, report
from nsys_tui.analysis.stats.summary import NAME, moments, only, pids, summarise, tids, time_columns
from nsys_tui.analysis.window import Rows, clipped, row_count, row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Array, Bool, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import BLOCK, GRID, SHAPE, Operations, OpName
from nsys_tui.model.groups import factorise_rows, pair_codes, regroup
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of
from nsys_tui.names import api_name

BUSY: Final = {"busy": "add the union of each row's time: busy ns, and its share of the span"}
"""Argument of the GPU summaries that offers our busy share beside the summed one."""


def kernel_text(query: Query, name: OpName) -> str:
    """A kernel's name as the arguments ``base`` and ``mangled`` want it."""
    if query.has("base"):
        return name.short
    return name.mangled if query.has("mangled") else name.demangled


def operation_codes(query: Query, rows: Rows) -> tuple[Integers, list[str]]:
    """Code of each operation's printed name, and the names.

    ``nvtx-name`` puts the range, without its domain, before the names of kernels.
    """
    ops = query.report.operations
    codes, names = regroup(ops.name[rows], [kernel_text(query, name) for name in ops.names])
    if not query.has("nvtx-name"):
        return codes, names
    code, ranges = innermost(query.report, rows)
    prefix = np.zeros(len(code), np.int64)
    named = (code >= 0) & (ops.kind[rows] == OpKind.KERNEL)
    prefix[named] = 1 + ranges.name[code[named]]
    prefixes = ["", *(f"{name}/" for name in ranges.names)]
    joined, outer, inner = pair_codes(prefix, codes, max(len(names), 1))
    texts = [prefixes[o] + names[i] for o, i in zip(outer.tolist(), inner.tolist(), strict=True)]
    return regroup(joined, texts)


def busy_columns(query: Query, rows: Rows, codes: Integers, n: int) -> Columns:
    """Busy Time and Busy: the union of a row's operations per device, summed over the devices.

    The share is of (devices x span), or of (devices x window); unlike the summed share it never
    counts a moment of a device twice, and never exceeds 100%.
    """
    if not query.has("busy"):
        return []
    ops = query.report.operations
    start, end = clipped(ops, rows, query.scope.window)
    devices = max(len(ops.devices), 1)
    union = grouped_union(
        np.asarray(codes, np.int64) * devices + ops.device[rows], start, end, n * devices
    )
    busy = union.reshape(n, devices).sum(axis=1)
    lo, hi = query.scope.base(query.report)
    whole = (hi - lo) * max(len(query.scope.device_rows(query.report)), 1)
    share = 100.0 * busy / whole if whole else np.full(n, np.nan)
    return [(Column("Busy Time", Unit.NS), busy), (Column("Busy", Unit.PERCENT, 1), share)]


def hidden_graphs(query: Query) -> tuple[str, ...]:
    """A note when whole-graph launches hide the kernels inside them."""
    graphs = query.report.operations.of_kind(OpKind.GRAPH)
    if not len(graphs):
        return ()
    return (
        f"{len(graphs)} CUDA graph launches were traced as a whole: the kernels inside them are"
        " not listed (gpu_work_sum counts the launches; record the nodes with nsys profile"
        " --cuda-graph-trace=node)",
    )


KERNELS: Final = Needs(
    "CUDA kernel", "--trace=cuda", (Capability.KERNELS,), by_device=True, notes=hidden_graphs
)


LAUNCHES: Final = replace(KERNELS, kinds=(Capability.KERNELS, Capability.LAUNCH_CALLS))


def operation_rows(query: Query, *kinds: int) -> Rows:
    """Rows of the operations of some kinds in scope.

    Raises:
        NoDataError: there are none.
    """
    rows = query.operations(*kinds)
    if not row_count(query.report.operations, rows):
        raise NoDataError("no operations of that kind")
    return rows


def kernel_rows(query: Query) -> Rows:
    """Rows of the kernels in scope; see ``operation_rows``."""
    return operation_rows(query, OpKind.KERNEL)


def operation_sums(
    query: Query, rows: Rows, codes: Integers, labels: Columns, count: str = "Instances"
) -> Columns:
    """Operations by code: ``time_columns`` with the busy columns that were asked for.

    Args:
        query: the report and its restrictions.
        rows: the operations.
        codes: row of the result of each of these.
        labels: columns that say what each row is.
        count: header of the count.
    """
    size = len(labels[0][1])
    summary = summarise(query, query.report.operations, rows, codes, size)
    return time_columns(summary, count, labels, busy_columns(query, rows, codes, size))


@report("CUDA GPU Kernel Summary", KERNELS, old="gpukernsum", arguments=KERNEL_NAMES | BUSY)
def cuda_gpu_kern_sum(query: Query) -> Columns:
    """Kernels by name and their execution times."""
    rows = kernel_rows(query)
    codes, names = operation_codes(query, rows)
    return operation_sums(query, rows, codes, [(NAME, names)])


@report(
    "CUDA GPU Kernel/Grid/Block Summary",
    KERNELS,
    old="gpukerngbsum",
    arguments=KERNEL_NAMES | BUSY,
)
def cuda_gpu_kern_gb_sum(query: Query) -> Columns:
    """Kernels by name, grid and block, and their execution times."""
    rows = kernel_rows(query)
    if lacking := query.report.lacks(Capability.LAUNCH_SHAPES):
        raise NoDataError(lacking)
    codes, names = operation_codes(query, rows)
    launch = query.report.launch_attributes
    of_shape, sizes = launch.alike(rows, launch.table[:, SHAPE].T)
    joined, groups = factorise_rows([of_shape, codes])
    labels: Columns = [
        (Column("GridXYZ"), [xyz(sizes[shape, :3]) for shape, _ in groups]),
        (Column("BlockXYZ"), [xyz(sizes[shape, 3:]) for shape, _ in groups]),
        (NAME, [names[name] for _, name in groups]),
    ]
    return operation_sums(query, rows, joined, labels)


def xyz(numbers: Integers) -> str:
    """Three sizes as nsys prints them: ``  64   1   1``."""
    return " ".join(f"{number:4d}" for number in numbers.tolist())


@dataclass(frozen=True, eq=False)
class Launched:
    """Kernels with the call that launched each; kernels without a call are left out."""

    operation: Indices
    call: Integers
    call_start: Int64
    call_end: Int64
    start: Int64
    end: Int64
    thread: Int64
    """globalTid of the launching thread."""
    ordinal: Int64
    """CUDA ordinal of the device inside its process."""
    name: Integers
    names: list[str]

    @property
    def queued(self) -> Bool:
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
        (number, member.pid): member.ordinal
        for number, device in enumerate(ops.devices)
        for member in device.members
    }


def ordinals(ops: Operations, rows: Rows) -> Int64:
    """CUDA ordinal that the device of each operation has in its process; -1 for none."""
    codes, pairs = factorise_rows((ops.device[rows], ops.process[rows]))
    known = member_ordinals(ops)
    columns = [
        known.get((device, pid_of(int(ops.processes[process]))), -1)
        for device, process in pairs.tolist()
    ]
    return np.asarray(np.array(columns, np.int64)[codes])


def _names(query: Query) -> list[str]:
    return [api_name(name, nsys_compatible=True) for name in query.report.api.names]


@report(
    "CUDA Kernel Launch & Exec Time Summary", LAUNCHES, old="kernexecsum", arguments=KERNEL_NAMES
)
def cuda_kern_exec_sum(query: Query) -> Columns:
    """Launches by thread, device, call and kernel: total, call (A), queue (Q) and kernel (K) time.

    Queue time is kernel start minus call end and only counts where it is not negative (QCount).
    """
    made = launched(query)
    call, calls = regroup(query.report.api.name[made.call], _names(query))
    codes, groups = factorise_rows((made.thread, made.ordinal, call, made.name))
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
        (Column("API Name"), [calls[call] for call in groups[order, 2]]),
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

    def shapes(columns: slice) -> Array:
        known = query.report.can(Capability.LAUNCH_SHAPES)
        texts = np.array([xyz(sizes) for sizes in launch.table[:, columns]], object)
        return only(texts[launch.code[made.operation[order]]], np.full(len(order), known))

    def where_queued(values: Int64) -> Array:
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
        (
            Column("API Function"),
            np.array(_names(query), object)[query.report.api.name[made.call[order]]],
        ),
        (Column("GridXYZ"), shapes(GRID)),
        (Column("BlockXYZ"), shapes(BLOCK)),
        (Column("Kernel Name"), name[made.name[order]]),
    ]
