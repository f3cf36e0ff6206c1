"""CUDA calls, copies and memsets; GPU summaries that mix them with kernels; every operation."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import Aggregate, group_stats
from nsys_tui.analysis.stats.kernels import (
    BUSY,
    KERNELS,
    hidden_graphs,
    operation_codes,
    operation_rows,
    operation_sums,
    ordinals,
)
from nsys_tui.analysis.stats.query import KERNEL_NAMES, Columns, Needs, Query, report
from nsys_tui.analysis.stats.summary import (
    NAME,
    OPERATION,
    by_total,
    moments,
    only,
    pick,
    summarise,
    thread_columns,
    time_columns,
)
from nsys_tui.analysis.window import Rows, masked, row_count, row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Array, Indices, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import MEMORY_KINDS, OpKind
from nsys_tui.model.events import BLOCK, DYNAMIC_SHARED, GRID, REGISTERS, STATIC_SHARED, told
from nsys_tui.model.groups import factorise_rows, pair_codes, regroup
from nsys_tui.model.kinds import OPERATIONS
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name

CALLS = Needs("CUDA trace", "--trace=cuda", (Capability.API,))
MERGED = {
    "merged": "one row per function whatever its version suffix, backtrace duplicates left out"
}


def api_summary(query: Query, *, printed: bool = False) -> tuple[Aggregate, list[str]]:
    """CUDA calls by name: one group per recorded name, or by function with ``merged``.

    With ``printed``, names that are printed alike are one group.

    NVIDIA's rule keeps a row for each recorded name, prints it without ``_v`` and four digits, and
    counts the class-67 rows that enclose a call with a backtrace. Merged is ours.
    """
    api = query.report.api
    merged = query.has("merged")
    rows = query.events(api, api.real if merged else None)
    texts = [api_name(name, nsys_compatible=not merged) for name in api.names]
    codes, keys = regroup(api.name[rows], texts if merged or printed else list(api.names))
    shown = dict(zip(api.names, texts, strict=True))
    return summarise(query, api, rows, codes, len(keys)), [shown.get(key, key) for key in keys]


@report("CUDA API Summary", CALLS, old="cudaapisum", arguments=MERGED)
def cuda_api_sum(query: Query) -> Columns:
    """CUDA runtime and driver calls by function and their execution times on the host."""
    summary, names = api_summary(query)
    if not summary.present.any():
        raise NoDataError("no CUDA calls")
    return time_columns(summary, "Num Calls", [(NAME, names)])


@report("CUDA API Trace", CALLS, old="cudaapitrace")
def cuda_api_trace(query: Query) -> Columns:
    """Every CUDA call by its start; Result is the returned error code, 0 for success."""
    api = query.report.api
    rows = query.events(api)
    if not row_count(api, rows):
        raise NoDataError("no CUDA calls")
    results = api.return_value[rows]
    names = np.array([api_name(name, nsys_compatible=True) for name in api.names], object)
    threads = api.threads[api.thread[rows]]
    return [
        (Column("Start", Unit.NS), api.start[rows]),
        (Column("Duration", Unit.NS), api.end[rows] - api.start[rows]),
        (NAME, names[api.name[rows]]),
        (Column("Result", Unit.NONE), only(results, told(results))),
        (Column("CorrID", Unit.NONE), api.correlation[rows]),
        *thread_columns(query, threads),
    ]


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


def _without_calls(query: Query) -> tuple[str, ...]:
    lacking = query.report.lacks(Capability.API)
    return (*hidden_graphs(query), *([f"{lacking}: none is listed"] if lacking else ()))


CALLS_AND_WORK: Final = replace(KERNELS, data="CUDA trace", by_device=False, notes=_without_calls)


def _names(query: Query, rows: Rows) -> tuple[Integers, list[str]]:
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


def _by_category(query: Query, rows: Rows) -> tuple[Integers, Columns]:
    """Codes and labels of operations by (category, name)."""
    codes, names = operation_codes(query, rows)
    kinds = sorted(set(CATEGORIES.values()))
    of_kind = np.zeros(len(OpKind), np.int64)
    for operation, label in CATEGORIES.items():
        of_kind[operation] = kinds.index(label)
    kind = of_kind[query.report.operations.kind[rows]]
    joined, name, category = pair_codes(codes, kind, len(kinds))
    return joined, [
        (CATEGORY, [kinds[code] for code in category.tolist()]),
        (OPERATION, [names[code] for code in name.tolist()]),
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
    push above 100%.
    """
    chosen = operation_rows(query)
    rows = masked(chosen, query.report.operations.counted[chosen])
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


MEMORY_LABELS: Final = np.array([*MEMORY_KINDS, *[None] * (256 - len(MEMORY_KINDS))], object)
"""What kinds of memory are called, by their code."""
_KINDS: Final = (OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
_GREEN: Final = "green_context_id"


@report("CUDA GPU Trace", EITHER, old="gputrace", arguments=KERNEL_NAMES)
def cuda_gpu_trace(query: Query) -> Columns:
    """Every kernel, copy and memset by its start."""
    ops = query.report.operations
    rows = row_numbers(ops, operation_rows(query, *_KINDS))
    rows = rows[np.lexsort((ops.rowid[rows], ops.kind[rows], ops.start[rows]))]
    codes, names = operation_codes(query, rows)
    kind = ops.kind[rows]
    is_kernel = kind == OpKind.KERNEL
    has_shape = is_kernel & query.report.can(Capability.LAUNCH_SHAPES)
    duration = ops.end[rows] - ops.start[rows]

    def kernels_only(attribute: int) -> Array:
        return only(launch.of(rows, attribute), has_shape)

    def copies_only(values: Array) -> Array:
        return only(values, ~is_kernel)

    moved = ops.bytes[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        throughput = np.where(duration > 0, moved * 1e9 / duration, np.nan)
    launch = query.report.launch_attributes
    streams = ops.streams
    context = np.array([max(s.context, 0) for s in streams], np.int64)
    stream = np.array([max(s.id, 0) for s in streams], np.int64)
    columns: Columns = [
        (Column("Start", Unit.NS), ops.start[rows]),
        (Column("Duration", Unit.NS), duration),
        (Column("CorrId", Unit.NONE), np.maximum(ops.correlation[rows], 0)),
    ]
    columns += [
        (Column(f"{what}{axis}", Unit.NONE), kernels_only(first + place))
        for what, first in (("Grd", GRID.start), ("Blk", BLOCK.start))
        for place, axis in enumerate("XYZ")
    ]
    columns += [
        (Column("Reg/Trd", Unit.NONE), kernels_only(REGISTERS)),
        (Column("StcSMem", Unit.MB), kernels_only(STATIC_SHARED)),
        (Column("DymSMem", Unit.MB), kernels_only(DYNAMIC_SHARED)),
        (Column("Bytes", Unit.MB), copies_only(moved)),
        (Column("Throughput", Unit.MB_PER_S), copies_only(throughput)),
        (Column("SrcMemKd"), only(MEMORY_LABELS[ops.src_kind[rows]], ~is_kernel)),
        (Column("DstMemKd"), only(MEMORY_LABELS[ops.dst_kind[rows]], kind == OpKind.MEMCPY)),
        (Column("Device"), _devices(query, rows)),
        (Column("Ctx", Unit.NONE), context[ops.stream[rows]]),
    ]
    if any(query.report.has(OPERATIONS[kind], _GREEN) for kind in _KINDS):
        columns.append((Column("GreenCtx", Unit.NONE), _green_contexts(query, rows)))
    columns.append((Column("Strm", Unit.NONE), stream[ops.stream[rows]]))
    columns.append((NAME, np.array(names, object)[codes]))
    return columns


def _devices(query: Query, rows: Indices) -> Array:
    """``name (ordinal)`` of each operation's device."""
    ops = query.report.operations
    codes, pairs = factorise_rows((ops.device[rows], ordinals(ops, rows)))
    texts = [f"{ops.devices[device].name} ({number})" for device, number in pairs.tolist()]
    return np.asarray(np.array(texts, object)[codes])


def _green_contexts(query: Query, rows: Indices) -> Array:
    """Green context of each operation, None for none (0 or NULL in the file)."""
    ops = query.report.operations
    contexts = np.full(len(ops), None, object)
    for kind in _KINDS:
        own = ops.of_kind(kind)
        if query.report.has(OPERATIONS[kind], _GREEN) and len(own):
            rowid, context = query.report.numbers(OPERATIONS[kind], _GREEN)
            order = np.argsort(rowid)
            mine = context[order[np.searchsorted(rowid, ops.rowid[own], sorter=order)]]
            contexts[own[mine > 0]] = mine[mine > 0]
    return contexts[rows]
