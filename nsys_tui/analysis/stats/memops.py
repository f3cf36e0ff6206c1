"""Copies and memsets: by time, by size; and GPU summaries that mix them with kernels and calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.stats.api import api_summary
from nsys_tui.analysis.stats.kernels import (
    BUSY,
    KERNELS,
    operation_codes,
    operation_rows,
    operation_sums,
)
from nsys_tui.analysis.stats.registry import KERNEL_NAMES, Columns, Needs, report
from nsys_tui.analysis.stats.summary import (
    OPERATION,
    by_total,
    moments,
    pick,
    summarise,
    time_columns,
)
from nsys_tui.analysis.window import masked, row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import pair_codes, regroup
from nsys_tui.model.table import Column, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.window import Rows

CATEGORIES = {
    OpKind.KERNEL: "CUDA_KERNEL",
    OpKind.MEMCPY: "MEMORY_OPER",
    OpKind.MEMSET: "MEMORY_OPER",
    OpKind.GRAPH: "CUDA_GRAPH",
}
CATEGORY = Column("Category")


MEMORY: Final = Needs("GPU memory", "--trace=cuda", (Capability.COPIES,), by_device=True)
EITHER: Final = replace(KERNELS, data="CUDA kernel or GPU memory")
ANY_WORK: Final = Needs("GPU", "--trace=cuda", (Capability.KERNELS,), by_device=True)
CALLS_AND_WORK: Final = replace(KERNELS, data="CUDA trace", by_device=False)


def _names(query: Query, rows: Rows) -> tuple[NDArray[np.integer], list[str]]:
    ops = query.report.operations
    return regroup(ops.name[rows], [name.demangled for name in ops.names])


@report("CUDA GPU MemOps Summary (by Time)", MEMORY, old="gpumemtimesum", arguments=BUSY)
def cuda_gpu_mem_time_sum(query: Query) -> Columns:
    """Copies by direction and memsets, by their execution times."""
    rows = operation_rows(query, OpKind.MEMCPY, OpKind.MEMSET)
    codes, names = _names(query, rows)
    return operation_sums(query, rows, codes, [(OPERATION, names)], "Count")


@report("CUDA GPU MemOps Summary (by Size)", MEMORY, old="gpumemsizesum")
def cuda_gpu_mem_size_sum(query: Query) -> Columns:
    """Copies by direction and memsets, by the bytes they move or set; MB are 10**6 bytes."""
    ops = query.report.operations
    rows = query.counted(ops, operation_rows(query, OpKind.MEMCPY, OpKind.MEMSET))
    codes, names = _names(query, rows)
    stats = group_stats(codes, ops.bytes[rows], len(names))
    order = by_total(stats, names)
    return [
        (Column("Total", Unit.MB), stats.totals[order]),
        (Column("Count", Unit.COUNT), stats.counts[order]),
        *moments(stats, order, Unit.MB, 3),
        (OPERATION, pick(names, order)),
    ]


def _by_category(query: Query, rows: Rows) -> tuple[NDArray[np.integer], Columns]:
    """Codes and labels of operations by (category, name)."""
    codes, names = operation_codes(query, rows)
    kinds = sorted(set(CATEGORIES.values()))
    of_kind = np.zeros(len(OpKind), np.int64)
    for operation, label in CATEGORIES.items():
        of_kind[operation] = kinds.index(label)
    kind = of_kind[query.report.operations.kind[rows]]
    joined, name, category = pair_codes(codes, kind, len(kinds))
    return joined, [
        (CATEGORY, [kinds[place] for place in category.tolist()]),
        (OPERATION, [names[place] for place in name.tolist()]),
    ]


@report("CUDA GPU Summary (Kernels/MemOps)", EITHER, old="gpusum", arguments=KERNEL_NAMES | BUSY)
def cuda_gpu_sum(query: Query) -> Columns:
    """Kernels, copies and memsets by name and their execution times."""
    rows = operation_rows(query, OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
    return operation_sums(query, rows, *_by_category(query, rows))


@report("GPU Work Summary (Kernels/MemOps/Graphs)", ANY_WORK, arguments=KERNEL_NAMES)
def gpu_work_sum(query: Query) -> Columns:
    """All GPU work, whole-graph launches included, with the busy share beside the summed one.

    Ours, not NVIDIA's: a graph launch counts as GPU work unless its nodes were traced too, and Busy
    is the union of a row's time per device as a share of (devices x span), which overlaps cannot
    push above 100 %.
    """
    found = operation_rows(query)
    rows = masked(found, query.report.operations.counted[found])
    with_busy = replace(query, arguments={**query.arguments, "busy": ""})
    return operation_sums(with_busy, rows, *_by_category(query, rows))


@report(
    "CUDA Summary (API/Kernels/MemOps)", CALLS_AND_WORK, old="apigpusum", arguments=KERNEL_NAMES
)
def cuda_api_gpu_sum(query: Query) -> Columns:
    """CUDA calls, kernels, copies and memsets in one list; percentages mix host and GPU time."""
    ops = query.report.operations
    rows = query.operations(OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
    codes, labels = _by_category(query, rows)
    (_, kinds), (_, texts) = labels
    work = summarise(query, ops, rows, codes, len(kinds))
    calls, names = api_summary(query, printed=True)
    if not len(names) and not row_count(ops, rows):
        raise NoDataError("neither CUDA calls nor GPU work")
    combined: Columns = [
        (CATEGORY, [*kinds, *["CUDA_API"] * len(names)]),
        (OPERATION, [*texts, *names]),
    ]
    return time_columns(work.beside(calls), "Instances", combined)
