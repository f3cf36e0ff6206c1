"""NVTX ranges and the GPU work launched inside them: projections and kernels by range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import group_stats, grouped_union
from nsys_tui.analysis.stats.kernels import kernel_rows, operation_codes
from nsys_tui.analysis.stats.nvtx import (
    NAMES,
    Launches,
    Nesting,
    Runs,
    closed_ranges,
    enclosed,
    enclosed_in_process,
    label_codes,
    launches,
    nesting,
    parent_ids,
)
from nsys_tui.analysis.stats.query import KERNEL_NAMES, Columns, Needs, Query, report
from nsys_tui.analysis.stats.summary import RANGE, moments, only, pids, rank, tids
from nsys_tui.analysis.stretch_stats import Wavelet, stretch_stats, stretch_unions
from nsys_tui.analysis.window import row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Float64, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import Operations, Ranges
from nsys_tui.model.groups import factorise, factorise_rows, pair_codes, sums
from nsys_tui.model.table import Column, Unit

WORK: Final = {
    "work": "ours: graph launches count as operations, ranges that end on another thread hold the"
    " launches of their process, and GPU Busy is the union of the operations' time"
}
RANGES_AND_WORK: Final = Needs(
    "NV Tools Extension (NVTX) range around GPU work",
    "--trace=cuda,nvtx",
    (Capability.NVTX, Capability.KERNELS, Capability.LAUNCH_CALLS),
)


@dataclass(frozen=True, eq=False)
class Projection:
    """Ranges with GPU work, from first to last operation launched inside each."""

    ranges: Ranges
    nested: Nesting
    """Over all ranges, those without GPU work included."""
    place: Int64
    """Place in ``ranges`` of each projected range; the arrays below are aligned with it."""
    start: Int64
    end: Int64
    operations: Int64
    """Number of operations."""
    busy: Int64
    """Union of the operations' time, per device, summed over the devices."""

    @property
    def children(self) -> Int64:
        """Ranges with GPU work directly inside each projected range."""
        above = self.nested.parent[self.place]
        count = np.bincount(above[above >= 0], minlength=len(self.ranges))
        return count[self.place].astype(np.int64)


def project(query: Query) -> Projection:
    """Projects the ranges in scope onto the GPU.

    Raises:
        NoDataError: no range encloses a launch.
    """
    everything = query.report.ranges
    ours = query.has("work")
    rows = query.events(everything, None if ours else everything.nests)
    ranges = closed_ranges(query.report, rows)
    kinds = (OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET)
    ops = query.report.operations
    touching = query.operations(*kinds, *((OpKind.GRAPH,) if ours else ()))
    operations = row_numbers(ops, query.counted(ops, touching))
    made = launches(query.report, operations[ops.counted[operations]])
    n = len(ranges)
    start = np.full(n, np.iinfo(np.int64).max)
    end, count, busy = (
        np.full(n, np.iinfo(np.int64).min),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )
    kinds_of_runs = [enclosed(ranges, made), *([enclosed_in_process(ranges, made)] if ours else [])]
    for runs in kinds_of_runs:
        operation = made.operation[runs.launch]
        begins, finishes = ops.start[operation], ops.end[operation]
        np.minimum.at(start, runs.which, _reduced(np.minimum, begins, runs))
        np.maximum.at(end, runs.which, _reduced(np.maximum, finishes, runs))
        np.add.at(count, runs.which, runs.last - runs.first)
    if ours:
        _add_busy(query, made, kinds_of_runs, busy)
    place = np.flatnonzero(count)
    if not len(place):
        raise NoDataError("no NVTX range encloses a launch")
    return Projection(
        ranges, nesting(ranges), place, start[place], end[place], count[place], busy[place]
    )


def _add_busy(query: Query, made: Launches, kinds_of_runs: list[Runs], busy: Int64) -> None:
    """Adds the union of the operations of each range, device by device."""
    ops = query.report.operations
    devices = max(len(ops.devices), 1)
    for runs in kinds_of_runs:
        for which, launch in _add_stretches(ops, made, runs, busy).pairs():
            operation = made.operation[launch]
            codes, projected = factorise(which)
            on_device = codes * devices + ops.device[operation]
            union = grouped_union(
                on_device, ops.start[operation], ops.end[operation], len(projected) * devices
            )
            busy[projected] = union.reshape(-1, devices).sum(axis=1)


def _add_stretches(ops: Operations, made: Launches, runs: Runs, busy: Int64) -> Runs:
    """The same for ranges of one stretch, however deeply they nest; gives those that are left."""
    operation = made.operation[runs.launch]
    if not len(operation):
        return runs
    start, end = ops.start[operation], ops.end[operation]
    # Each device has a time axis of its own, one behind the other.
    lane = ops.device[operation].astype(np.int64) * (int(end.max()) - int(start.min()) + 1)
    once = np.bincount(runs.which)[runs.which] == 1
    unions = stretch_unions(start + lane, end + lane, runs.first[once], runs.last[once])
    if unions is None:
        return runs
    busy[runs.which[once]] = unions
    return Runs(runs.launch, runs.which[~once], runs.first[~once], runs.last[~once])


@report(
    "NVTX GPU Projection Trace", RANGES_AND_WORK, old="nvtxgpuproj nvtx_gpu_proj", arguments=WORK
)
def nvtx_gpu_proj_trace(query: Query) -> Columns:
    """Every range with GPU work: from the start of its first to the end of its last operation.

    An operation belongs to each range that fully encloses its launching call on the same thread.
    The projected time is a span and includes idle time; ``work`` adds the busy time beside it.
    """
    projected = project(query)
    order = np.argsort(projected.ranges.rowid[projected.place])
    place = projected.place[order]
    ranges = projected.ranges.take(place)
    label, texts = label_codes(ranges)
    threads = ranges.threads[ranges.thread]
    columns: Columns = [
        (Column("Name"), np.array(texts, object)[label]),
        (Column("Projected Start", Unit.NS), projected.start[order]),
        (Column("Projected Duration", Unit.NS), (projected.end - projected.start)[order]),
    ]
    if query.has("work"):
        columns.append((Column("GPU Busy", Unit.NS), projected.busy[order]))
    return [
        *columns,
        (Column("Orig Start", Unit.NS), ranges.start),
        (Column("Orig Duration", Unit.NS), ranges.end - ranges.start),
        (Column("Style"), NAMES[ranges.style]),
        (Column("PID", Unit.NONE), pids(threads)),
        (Column("TID", Unit.NONE), tids(threads)),
        (Column("NumGPUOps", Unit.NONE), projected.operations[order]),
        (Column("Lvl", Unit.NONE), projected.nested.level[place]),
        (Column("NumChild", Unit.NONE), projected.children[order]),
        (Column("RangeId", Unit.NONE), ranges.rowid),
        (Column("ParentId", Unit.NONE), parent_ids(projected.ranges, projected.nested)[place]),
        (Column("RangeStack"), [projected.nested.stack[p] for p in place.tolist()]),
    ]


@report("NVTX GPU Projection Summary", RANGES_AND_WORK, arguments=WORK)
def nvtx_gpu_proj_sum(query: Query) -> Columns:
    """Ranges with GPU work by name and style: projected time, host time, operations, nesting."""
    trace = project(query)
    ranges = trace.ranges.take(trace.place)
    label, texts = label_codes(ranges)
    keys = label.astype(np.int64) * 256 + ranges.style
    codes, groups = factorise(keys)
    n = len(groups)
    projected = group_stats(codes, trace.end - trace.start, n)
    names = [texts[int(key) // 256] for key in groups]
    order = np.lexsort((rank(names), -projected.totals))

    def total(values: Int64) -> Int64:
        return sums(codes, values, n)[order]

    def mean(values: Int64) -> Float64:
        return group_stats(codes, values, n).mean[order]

    columns: Columns = [
        (RANGE, [names[code] for code in order.tolist()]),
        (Column("Style"), NAMES[groups[order] % 256]),
        (Column("Total Proj Time", Unit.NS), projected.totals[order]),
    ]
    if query.has("work"):
        columns.append((Column("Total GPU Busy", Unit.NS), total(trace.busy)))
    return [
        *columns,
        (Column("Total Range Time", Unit.NS), total(ranges.end - ranges.start)),
        (Column("Range Instances", Unit.COUNT), projected.counts[order]),
        *moments(projected, order, Unit.NS, 1, "Proj "),
        (Column("Total GPU Ops", Unit.COUNT), total(trace.operations)),
        (Column("Avg GPU Ops", Unit.NONE, 1), mean(trace.operations)),
        (Column("Avg Range Lvl", Unit.NONE, 1), mean(trace.nested.level[trace.place])),
        (Column("Avg Num Child", Unit.NONE, 1), mean(trace.children)),
    ]


@report(
    "NVTX Range Kernel Summary",
    replace(RANGES_AND_WORK, by_device=True),
    old="nvtxkernsum",
    arguments={key: KERNEL_NAMES[key] for key in ("base", "mangled")},
)
def nvtx_kern_sum(query: Query) -> Columns:
    """Kernels by the ranges that enclose their launch; a kernel counts in every one of them.

    One in two ranges of a name is one instance, with its time in both.

    Kernels that no range encloses have rows without a range, for each thread that launched them.
    """
    every, ops = query.report.ranges, query.report.operations
    rows = row_numbers(ops, query.counted(ops, kernel_rows(query)))
    if not len(every):
        raise NoDataError("no NVTX ranges")
    ranges = closed_ranges(query.report, query.events(every, every.nests))
    made = launches(query.report, rows)
    runs = enclosed(ranges, made)
    inside = made.operation[runs.launch]
    # Behind the launches stand the kernels that no range encloses: a stretch for each thread.
    edge = np.bincount(runs.first, minlength=len(inside) + 1)
    edge -= np.bincount(runs.last, minlength=len(inside) + 1)
    outside = np.setdiff1d(rows, inside[np.cumsum(edge)[:-1] > 0])
    api, calls = query.report.api, query.report.calls[outside]
    by = np.append(api.thread, -1)[calls]  # a kernel without a call has call -1, and thread -1
    outside, by = outside[np.argsort(by, kind="stable")], np.sort(by)
    operation = np.concatenate((inside, outside))
    ends = np.append(np.flatnonzero(by[1:] != by[:-1]) + 1, len(by))[: len(by)]
    alone = np.append(0, ends)[: len(ends)]
    kernel, kernels = operation_codes(query, operation)
    by_kernel = Wavelet(kernel, len(kernels))
    stretch, name, first, last = by_kernel.split(
        np.append(runs.first, len(inside) + alone).astype(np.int64),
        np.append(runs.last, len(inside) + ends).astype(np.int64),
    )
    label, texts = label_codes(ranges)
    per_range, kinds = factorise_rows((label, ranges.style, ranges.thread))
    places = np.arange(len(alone))
    which = np.append(runs.which, len(ranges) + places).astype(np.int64)[stretch]
    of_range = np.append(per_range, len(kinds) + places)[which]
    codes, group, name = pair_codes(of_range, name, max(len(kernels), 1))
    durations = ops.durations(operation[by_kernel.order])
    stats = stretch_stats(codes, first, last, durations, len(group))
    kernels_once = grouped_union(codes, first, last, len(group))
    owned = which < len(ranges)
    pairs = _distinct_pairs(codes[owned], which[owned])
    instances = np.bincount(pairs, minlength=len(group))
    ranged = group < len(kinds)
    threads = np.append(ranges.threads[kinds[:, 2]], np.append(api.threads, -1)[by[ends - 1]])[
        group
    ]
    kinds = np.vstack((kinds.reshape(-1, 3), np.zeros((len(alone), 3), np.int64)))[group]
    known = threads >= 0
    pid, tid = (np.where(known, part(threads), -1) for part in (pids, tids))
    names = [
        texts[at] if in_range else "" for at, in_range in zip(kinds[:, 0], ranged, strict=True)
    ]
    order = np.lexsort((-stats.totals, tid, pid, rank(names)))
    return [
        (Column("NVTX Range"), [names[code] or None for code in order.tolist()]),
        (Column("Style"), only(NAMES[kinds[order, 1]], ranged[order])),
        (Column("PID", Unit.NONE), only(pid[order], known[order])),
        (Column("TID", Unit.NONE), only(tid[order], known[order])),
        (Column("NVTX Inst", Unit.COUNT), instances[order]),
        (Column("Kern Inst", Unit.COUNT), kernels_once[order]),
        (Column("Total Time", Unit.NS), stats.totals[order]),
        *moments(stats, order, Unit.NS, 1),
        (Column("Kernel Name"), [kernels[code] for code in name[order]]),
    ]


def _reduced(least: np.ufunc, values: Int64, runs: Runs) -> Int64:
    """The least or greatest value of each stretch."""
    if not len(runs.which):
        return np.empty(0, np.int64)
    # Every second slice of ``reduceat`` is between stretches; a last value keeps ends in range.
    edges = np.column_stack((runs.first, runs.last)).ravel()
    return np.asarray(least.reduceat(np.append(values, 0), edges)[::2], np.int64)


def _distinct_pairs(codes: Integers, which: Indices) -> Int64:
    """The code of each distinct (code, range) pair."""
    size = int(which.max(initial=0)) + 1
    pairs = codes.astype(np.int64) * size + which
    return np.asarray(np.unique(pairs) // size, np.int64)
