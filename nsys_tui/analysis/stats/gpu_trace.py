"""Every GPU operation by its start, with launch shape, bytes and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.stats.kern_exec import ordinals
from nsys_tui.analysis.stats.kernels import operation_codes, operation_rows
from nsys_tui.analysis.stats.memops import EITHER
from nsys_tui.analysis.stats.registry import KERNEL_NAMES, Columns, report
from nsys_tui.analysis.stats.summary import NAME, only
from nsys_tui.analysis.window import row_numbers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import MEMORY_KINDS, OpKind
from nsys_tui.model.events import BLOCK, DYNAMIC_SHARED, GRID, REGISTERS, STATIC_SHARED
from nsys_tui.model.groups import factorise_rows
from nsys_tui.model.kinds import OPERATIONS
from nsys_tui.model.table import Column, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.stats.query import Query

_KINDS: Final = (OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
_GREEN: Final = "green_context_id"


@report("CUDA GPU Trace", EITHER, old="gputrace", arguments=KERNEL_NAMES)
def cuda_gpu_trace(query: Query) -> Columns:
    """Every kernel, copy and memset by its start."""
    ops = query.report.operations
    rows = row_numbers(ops, operation_rows(query, *_KINDS))
    codes, names = operation_codes(query, rows)
    kind = ops.kind[rows]
    is_kernel = kind == OpKind.KERNEL
    has_shape = is_kernel & query.report.can(Capability.LAUNCH_SHAPES)
    duration = ops.end[rows] - ops.start[rows]

    def kernels_only(attribute: int) -> NDArray[Any]:
        return only(launch.of(rows, attribute), has_shape)

    def copies_only(values: NDArray[Any]) -> NDArray[Any]:
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
        (Column("SrcMemKd"), _memory(ops.src_kind[rows], ~is_kernel)),
        (Column("DstMemKd"), _memory(ops.dst_kind[rows], kind == OpKind.MEMCPY)),
        (Column("Device"), _devices(query, rows)),
        (Column("Ctx", Unit.NONE), context[ops.stream[rows]]),
    ]
    if any(query.report.has(OPERATIONS[kind], _GREEN) for kind in _KINDS):
        columns.append((Column("GreenCtx", Unit.NONE), _green_contexts(query, rows)))
    columns.append((Column("Strm", Unit.NONE), stream[ops.stream[rows]]))
    columns.append((NAME, np.array(names, object)[codes]))
    return columns


def _memory(kinds: NDArray[np.integer], shown: NDArray[np.bool_]) -> NDArray[Any]:
    labels = np.array([*MEMORY_KINDS, *[None] * (256 - len(MEMORY_KINDS))], object)
    return only(labels[kinds], shown)


def _devices(query: Query, rows: NDArray[np.intp]) -> NDArray[Any]:
    """``name (ordinal)`` of each operation's device."""
    ops = query.report.operations
    codes, pairs = factorise_rows((ops.device[rows], ordinals(ops, rows)))
    texts = [f"{ops.devices[place].name} ({number})" for place, number in pairs.tolist()]
    return np.asarray(np.array(texts, object)[codes])


def _green_contexts(query: Query, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Green context of each operation, None for none (0 or NULL in the file)."""
    ops = query.report.operations
    found = np.full(len(ops), None, object)
    for kind in _KINDS:
        own = ops.of_kind(kind)
        if query.report.has(OPERATIONS[kind], _GREEN) and len(own):
            rowid, context = query.report.numbers(OPERATIONS[kind], _GREEN)
            order = np.argsort(rowid)
            mine = context[order[np.searchsorted(rowid, ops.rowid[own], sorter=order)]]
            found[own[mine > 0]] = mine[mine > 0]
    return found[rows]
