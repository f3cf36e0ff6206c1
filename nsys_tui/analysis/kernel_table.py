"""GPU work grouped for a table: by name, launch shape, stream, GPU, category or NVTX range.

Totals and counts follow definitions ("Totals"): time is clipped to the window, statistics are of
whole operations that start in it, and those that reach in from before are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.analysis.aggregate import aggregate
from nsys_tui.analysis.nvtx.operation_paths import OperationPaths
from nsys_tui.analysis.window import WHOLE_REPORT, Rows, Scope, clipped, masked
from nsys_tui.model.arrays import Float64, Indices, Int32, Int64, Integers, UInt8
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import SHAPE, Operations
from nsys_tui.model.groups import first_rows, pair_codes, regroup, sums
from nsys_tui.model.lanes import cell_edges
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle, normalise_nvtx

PARTS: Final = 24
"""Parts of the window in ``KernelTable.when``."""
_TABLE: Final = 10_000_000
"""Largest table of flags (one byte each) that is made to find distinct pairs."""


class GroupBy(StrEnum):
    """What makes two operations fall into one row."""

    NAME = "name"
    SHAPE = "name, grid, block"
    STREAM = "stream"
    DEVICE = "GPU"
    CATEGORY = "category"
    RANGE = "NVTX range"


@dataclass(frozen=True, eq=False)
class KernelTable:
    """One row a group, largest total first; figures in ns. Groups without work are left out."""

    by: GroupBy
    labels: tuple[str, ...]
    category: UInt8
    """Category of the group's first operation."""
    total: Int64
    """Time of the operations inside the window."""
    count: Int64
    """Operations that start in the window."""
    straddling: Int64
    """Operations that reach into the window from before it."""
    mean: Float64
    """NaN, as all statistics, where no operation starts in the window."""
    median: Float64
    min: Int64
    """Masked, as the largest, where no operation starts in the window."""
    max: Int64
    p99: Float64
    std: Float64
    when: Int64
    """Time in each of ``PARTS`` parts of the window, shape (groups, PARTS)."""
    rows: Rows
    """Operations that were grouped."""
    codes: NDArray[np.unsignedinteger]
    """Group of each of ``rows``, in as few bytes as do."""
    devices: tuple[tuple[int, ...], ...]
    """Places in ``Report.devices`` of each group."""
    streams: tuple[tuple[int, ...], ...]
    """Places in ``Report.streams`` of each group."""

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def share(self) -> Float64:
        """Part of the summed time of all groups, 0 to 1."""
        whole = int(self.total.sum())
        return self.total / whole if whole else np.zeros(len(self))

    def instances(self, group: int) -> Indices:
        """Rows of ``Report.operations`` in a group, in start order."""
        places = np.flatnonzero(self.codes == group)
        return places if isinstance(self.rows, slice) else self.rows[places]


def kernel_table(
    report: Report,
    by: GroupBy = GroupBy.NAME,
    scope: Scope = WHOLE_REPORT,
    *,
    style: NameStyle = NameStyle.SHORT,
    paths: OperationPaths | None = None,
    among: Indices | None = None,
    progress: Progress = silent,
) -> KernelTable:
    """Groups the GPU work of a report.

    Args:
        report: the report.
        by: what to group by.
        scope: window, devices, processes, streams.
        style: how kernels are named, and so which are one.
        paths: needed for ``GroupBy.RANGE``.
        among: rows of the operations to look at, ascending and in scope; None for all in scope.
        progress: told how many operations were looked at.

    Returns:
        kernels, copies, memsets and graph launches; a graph launch whose nodes were traced is not
        among them (definitions: "GPU operation").
    """
    ops = report.operations
    chosen = scope.operations(ops) if among is None else among
    rows = masked(chosen, ops.counted[chosen])
    progress("grouping GPU work", 0, len(ops))
    codes, labels = _grouped(report, by, rows, style, paths)
    return _table(ops, by, rows, codes, labels, scope, progress)


def _grouped(
    report: Report, by: GroupBy, rows: Rows, style: NameStyle, paths: OperationPaths | None
) -> tuple[Integers, list[str]]:
    ops = report.operations
    if by is GroupBy.STREAM:
        return ops.stream[rows], stream_labels(report)
    if by is GroupBy.DEVICE:
        return ops.device[rows], [device.label for device in ops.devices]
    if by is GroupBy.CATEGORY:
        return ops.category[rows], [category.name.lower() for category in Category]
    if by is GroupBy.RANGE:
        if paths is None:
            raise ValueError("grouping by range needs paths")
        nodes = paths.node[rows]
        return regroup(nodes, [normalise_nvtx(label) for label in paths.innermost_labels])
    codes, names = regroup(ops.name[rows], ops.texts(style))
    return (codes, names) if by is GroupBy.NAME else _by_shape(report, rows, codes, names)


def stream_labels(report: Report) -> list[str]:
    """``GPU 0 str 7`` for each stream; its process too where there are several."""
    streams, devices = report.streams, report.devices
    several = len({stream.globalPid for stream in streams}) > len(devices)
    labels = []
    for stream in streams:
        where = devices[stream.device].label if 0 <= stream.device < len(devices) else "GPU ?"
        process = f"{report.process_name(stream.globalPid)} " if several else ""
        labels.append(f"{process}{where} {stream.label}")
    return labels


def _by_shape(
    report: Report, rows: Rows, names: Integers, texts: list[str]
) -> tuple[Integers, list[str]]:
    if not report.can(Capability.LAUNCH_SHAPES):
        return names, texts
    launch = report.launch_attributes
    of_shape, shapes = launch.alike(rows, launch.table[:, SHAPE].T)
    codes, outer, of_call = pair_codes(names, of_shape, len(shapes))
    shape = [tuple(sizes) for sizes in shapes[of_call].tolist()]
    is_kernel = np.zeros(len(outer), bool)
    is_kernel[codes] = report.operations.kind[rows] == OpKind.KERNEL
    return codes, [
        f"{texts[name]}  {shape_text(launch_shape)}" if kernel else texts[name]
        for name, launch_shape, kernel in zip(
            outer.tolist(), shape, is_kernel.tolist(), strict=True
        )
    ]


def shape_text(shape: tuple[int, ...]) -> str:
    """``1024,1,1 x 256,1,1`` for grid and block."""
    grid, block = shape[:3], shape[3:]
    return f"{','.join(map(str, grid))} x {','.join(map(str, block))}"


def _table(
    ops: Operations,
    by: GroupBy,
    rows: Rows,
    codes: Integers,
    labels: list[str],
    scope: Scope,
    progress: Progress,
) -> KernelTable:
    n = len(labels)
    start, end = clipped(ops, rows, scope.window)
    lo, hi = scope.window or ops.bounds() or (0, 1)
    when = time_in_parts(start, end, codes, n, lo, hi, progress)
    progress("statistics of groups", 0, len(start))
    present, total = np.bincount(codes, minlength=n), when.sum(axis=1)
    # Groups with work, largest first; ties by label.
    kept = sorted(np.flatnonzero(present).tolist(), key=lambda g: (-int(total[g]), labels[g]))
    row = np.full(max(n, 1), -1, np.int32)
    row[kept] = np.arange(len(kept))
    group: Int32 = row[codes]
    groups = aggregate(ops, rows, group, len(kept), scope.window)
    stats, some = groups.instances, groups.counts > 0
    progress("statistics of groups", len(start), len(start))
    return KernelTable(
        by=by,
        labels=tuple(labels[group] for group in kept),
        category=ops.category[rows][first_rows(group)],
        total=total[kept],
        count=groups.counts,
        straddling=groups.straddling,
        mean=stats.mean,
        median=stats.median,
        min=np.ma.masked_array(stats.min, ~some),
        max=np.ma.masked_array(stats.max, ~some),
        p99=stats.quantile(0.99),
        std=stats.std,
        when=when[kept],
        rows=rows,
        codes=group.astype(np.min_scalar_type(len(kept))),
        devices=_members(group, ops.device[rows], len(kept)),
        streams=_members(group, ops.stream[rows], len(kept)),
    )


def _members(codes: Integers, values: Integers, n: int) -> tuple[tuple[int, ...], ...]:
    """Distinct values of each group, ascending."""
    if not len(codes):
        return ((),) * n
    width = int(values.max()) + 1
    keys = codes.astype(np.int64)
    keys *= width
    keys += values
    if n * width <= _TABLE:
        seen = np.zeros(n * width, bool)
        seen[keys] = True
        pairs = np.flatnonzero(seen)
    else:
        pairs = np.unique(keys)
    cuts = np.searchsorted(pairs // width, np.arange(1, n))
    return tuple(tuple((part % width).tolist()) for part in np.split(pairs, cuts))


def time_in_parts(
    start: Int64,
    end: Int64,
    codes: Integers,
    n: int,
    lo: int,
    hi: int,
    progress: Progress = silent,
) -> Int64:
    """Time of each group in each of ``PARTS`` equal parts of [lo, hi), split exactly.

    Args:
        start: int64 ns, ascending, inside the window.
        end: int64 ns, inside the window.
        codes: group of each.
        n: number of groups.
        lo: start of the window.
        hi: its end.
        progress: told how many of them were summed.

    Returns:
        int64 (n, PARTS) ns; overlapping operations count each.
    """
    edges = cell_edges(lo, max(hi, lo + PARTS), PARTS)
    cuts = np.searchsorted(start, edges)
    cuts[-1] = len(start)
    time = np.zeros((n, PARTS), np.int64)
    ongoing = np.empty(0, np.intp)
    for part in range(PARTS):
        within = slice(int(cuts[part]), int(cuts[part + 1]))
        right = edges[part + 1]
        progress("summing time", within.start, len(start))
        time[:, part] = sums(codes[within], np.minimum(end[within], right) - start[within], n)
        if len(ongoing):
            inside = np.minimum(end[ongoing], right) - edges[part]
            time[:, part] += sums(codes[ongoing], inside, n)
            ongoing = ongoing[end[ongoing] > right]
        ongoing = np.append(ongoing, within.start + np.flatnonzero(end[within] > right))
    return time
