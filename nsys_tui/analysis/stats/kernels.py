"""Kernel summaries: by name, by name and launch shape; and how the reports name kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.stats.enclosing import innermost
from nsys_tui.analysis.stats.query import KERNEL_NAMES, Columns, Needs, report
from nsys_tui.analysis.stats.summary import NAME, summarise, time_columns
from nsys_tui.analysis.window import clipped, row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import SHAPE
from nsys_tui.model.groups import factorise_rows, pair_codes, regroup
from nsys_tui.model.table import Column, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.window import Rows
    from nsys_tui.model.events import OpName

BUSY: Final = {"busy": "add the union of each row's time: busy ns, and its share of the span"}
"""Argument of the GPU summaries that offers our busy share beside the summed one."""


def kernel_text(query: Query, name: OpName) -> str:
    """A kernel's name as the arguments ``base`` and ``mangled`` want it."""
    if query.has("base"):
        return name.short
    return name.mangled if query.has("mangled") else name.demangled


def operation_codes(query: Query, rows: Rows) -> tuple[NDArray[np.integer], list[str]]:
    """Code of each operation's printed name, and the names.

    ``nvtx-name`` puts the range, without its domain, before the names of kernels.
    """
    ops = query.report.operations
    codes, names = regroup(ops.name[rows], [kernel_text(query, name) for name in ops.names])
    if not query.has("nvtx-name"):
        return codes, names
    place, ranges = innermost(query.report, rows)
    prefix = np.zeros(len(place), np.int64)
    named = (place >= 0) & (ops.kind[rows] == OpKind.KERNEL)
    prefix[named] = 1 + ranges.name[place[named]]
    prefixes = ["", *(f"{name}/" for name in ranges.names)]
    joined, outer, inner = pair_codes(prefix, codes, max(len(names), 1))
    texts = [prefixes[o] + names[i] for o, i in zip(outer.tolist(), inner.tolist(), strict=True)]
    return regroup(joined, texts)


def busy_columns(query: Query, rows: Rows, codes: NDArray[np.integer], n: int) -> Columns:
    """Busy Time and Busy: the union of a row's operations per device, summed over the devices.

    The share is of (devices x span), or of (devices x window); unlike the summed share it never
    counts a moment of a device twice, and never exceeds 100 %.
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
    query: Query, rows: Rows, codes: NDArray[np.integer], labels: Columns, count: str = "Instances"
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


def xyz(numbers: NDArray[np.integer]) -> str:
    """Three sizes as nsys prints them: ``  64   1   1``."""
    return " ".join(f"{number:4d}" for number in numbers.tolist())
