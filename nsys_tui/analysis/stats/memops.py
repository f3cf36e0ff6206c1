"""Copies and memsets: by time, by size; and GPU summaries that mix them with kernels and calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.stats.api import api_summary
from nsys_tui.analysis.stats.kernels import (
    BUSY,
    busy_columns,
    hidden_graphs,
    operation_codes,
)
from nsys_tui.analysis.stats.query import masked
from nsys_tui.analysis.stats.registry import KERNEL_NAMES, Columns, report
from nsys_tui.analysis.stats.summary import (
    OPERATION,
    moments,
    pick,
    rank,
    summarise,
    time_columns,
)
from nsys_tui.analysis.window import row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import pair_codes, regroup
from nsys_tui.model.table import Column, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.aggregate import Aggregate
    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.window import Rows

CATEGORIES = {
    OpKind.KERNEL: "CUDA_KERNEL",
    OpKind.MEMCPY: "MEMORY_OPER",
    OpKind.MEMSET: "MEMORY_OPER",
    OpKind.GRAPH: "CUDA_GRAPH",
}
CATEGORY = Column("Category")


def _operations(query: Query, *kinds: int) -> Rows:
    rows = query.operations(*kinds)
    if not row_count(query.report.operations, rows):
        raise NoDataError("no operations of that kind")
    return rows


def _names(query: Query, rows: Rows) -> tuple[NDArray[np.integer], list[str]]:
    ops = query.report.operations
    return regroup(ops.name[rows], [name.demangled for name in ops.names])


@report(
    "CUDA GPU MemOps Summary (by Time)",
    data="GPU memory",
    option="--trace=cuda",
    old=("gpumemtimesum",),
    arguments=BUSY,
    by_device=True,
)
def cuda_gpu_mem_time_sum(query: Query) -> Columns:
    """Copies by direction and memsets, by their execution times."""
    rows = _operations(query, OpKind.MEMCPY, OpKind.MEMSET)
    codes, names = _names(query, rows)
    summary = summarise(query, query.report.operations, rows, codes, len(names))
    busy = busy_columns(query, rows, codes, len(names))
    return time_columns(summary, "Count", [(OPERATION, names)], busy)


@report(
    "CUDA GPU MemOps Summary (by Size)",
    data="GPU memory",
    option="--trace=cuda",
    old=("gpumemsizesum",),
    by_device=True,
)
def cuda_gpu_mem_size_sum(query: Query) -> Columns:
    """Copies by direction and memsets, by the bytes they move or set; MB are 10**6 bytes."""
    ops = query.report.operations
    rows = query.counted(ops, _operations(query, OpKind.MEMCPY, OpKind.MEMSET))
    codes, names = _names(query, rows)
    stats = group_stats(codes, ops.bytes[rows], len(names))
    kept = np.flatnonzero(stats.counts > 0)
    by = np.lexsort((rank(pick(names, kept)), -stats.counts[kept], -stats.totals[kept]))
    order = kept[by]
    return [
        (Column("Total", Unit.MB), stats.totals[order]),
        (Column("Count", Unit.COUNT), stats.counts[order]),
        *moments(stats, order, Unit.MB, 3),
        (OPERATION, pick(names, order)),
    ]


def _gpu_summary(query: Query, rows: Rows) -> tuple[Aggregate, Columns, Columns]:
    """Operations by (category, name): the summary, the busy columns and the labels."""
    ops = query.report.operations
    codes, names = operation_codes(query, rows)
    kinds = {kind: place for place, kind in enumerate(sorted(set(CATEGORIES.values())))}
    of_kind = np.array([kinds[CATEGORIES[OpKind(kind)]] for kind in range(len(CATEGORIES))])
    joined, name, kind = pair_codes(codes, of_kind[ops.kind[rows]], len(kinds))
    labels: Columns = [
        (CATEGORY, [list(kinds)[place] for place in kind.tolist()]),
        (OPERATION, [names[place] for place in name.tolist()]),
    ]
    summary = summarise(query, ops, rows, joined, len(name))
    return summary, busy_columns(query, rows, joined, len(name)), labels


@report(
    "CUDA GPU Summary (Kernels/MemOps)",
    data="CUDA kernel or GPU memory",
    option="--trace=cuda",
    old=("gpusum",),
    arguments=KERNEL_NAMES | BUSY,
    by_device=True,
    notes=hidden_graphs,
)
def cuda_gpu_sum(query: Query) -> Columns:
    """Kernels, copies and memsets by name and their execution times."""
    rows = _operations(query, OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
    summary, busy, labels = _gpu_summary(query, rows)
    return time_columns(summary, "Instances", labels, busy)


@report(
    "GPU Work Summary (Kernels/MemOps/Graphs)",
    data="GPU",
    option="--trace=cuda",
    arguments=KERNEL_NAMES,
    by_device=True,
)
def gpu_work_sum(query: Query) -> Columns:
    """All GPU work, whole-graph launches included, with the busy share beside the summed one.

    Ours, not NVIDIA's: a graph launch counts as GPU work unless its nodes were traced too, and Busy
    is the union of a row's time per device as a share of (devices x span), which overlaps cannot
    push above 100 %.
    """
    ops = query.report.operations
    found = _operations(query)
    rows = masked(found, ops.counted[found])
    with_busy = replace(query, arguments={**query.arguments, "busy": ""})
    summary, busy, labels = _gpu_summary(with_busy, rows)
    return time_columns(summary, "Instances", labels, busy)


@report(
    "CUDA Summary (API/Kernels/MemOps)",
    data="CUDA trace",
    option="--trace=cuda",
    old=("apigpusum",),
    arguments=KERNEL_NAMES,
    notes=hidden_graphs,
)
def cuda_api_gpu_sum(query: Query) -> Columns:
    """CUDA calls, kernels, copies and memsets in one list; percentages mix host and GPU time."""
    rows = query.operations(OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
    work, _, labels = _gpu_summary(query, rows)
    calls, names = api_summary(query)
    if not len(names) and not row_count(query.report.operations, rows):
        raise NoDataError("neither CUDA calls nor GPU work")
    (category, kinds), (operation, texts) = labels
    combined: Columns = [
        (category, [*kinds, *["CUDA_API"] * len(names)]),
        (operation, [*texts, *names]),
    ]
    return time_columns(work.beside(calls), "Instances", combined)
