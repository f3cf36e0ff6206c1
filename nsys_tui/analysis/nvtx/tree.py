"""The NVTX tree: per path of range names its instances, host time, and the GPU work it launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.nvtx.attribution import attribute
from nsys_tui.analysis.nvtx.paths import Paths, nvtx_paths
from nsys_tui.analysis.window import Scope, clipped, row_numbers, starting
from nsys_tui.model import intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report
    from nsys_tui.model.tree import Trie


@dataclass(frozen=True, eq=False)
class NvtxTree:
    """One row per path; arrays are indexed by trie node, times in ns (definitions: "Totals")."""

    trie: Trie
    count: Int64
    """Closed instances that start in the window."""
    open: Int64
    """Instances that were never closed; they are in ``gpu`` but not in ``host``."""
    host: Int64
    """Sum of the durations of the closed instances."""
    host_self: Int64
    """The same minus what the ranges inside cover."""
    gpu: Int64
    """Sum of the durations of the operations in the subtree."""
    gpu_count: Int64
    """Operations in the subtree."""
    gpu_self: Int64
    """Operations whose innermost range it is."""
    gpu_busy: Int64
    """Length of the union of the subtree's operations."""
    gpu_start: Int64
    """First start of the subtree's operations; equal to ``gpu_end`` where there are none."""
    gpu_end: Int64
    range_node: Int64
    """Node of each row of ``Report.ranges``, -1 for those that do not nest."""
    operation_rows: NDArray[np.intp]
    """Operations that were attributed."""
    operation_node: Int64
    """Node of each of ``operation_rows``."""

    @property
    def span(self) -> Int64:
        """From the first start to the last end of the subtree's operations."""
        return self.gpu_end - self.gpu_start

    def instances(self, node: int) -> NDArray[np.intp]:
        """Rows of ``Report.ranges`` at a node, in start order."""
        return np.flatnonzero(self.range_node == node)


def nvtx_tree(
    report: Report,
    scope: Scope | None = None,
    *,
    across_threads: bool = False,
    paths: Paths | None = None,
    nodes: NDArray[np.integer] | None = None,
) -> NvtxTree:
    """Builds the tree; it exists without GPU work too.

    Args:
        report: the report.
        scope: what to look at; totals are clipped to its window, instances count where they start.
        across_threads: as for stacks.
        paths: NVTX paths of the report if they are at hand.
        nodes: with ``paths``: the node of every operation of the report, if that is known.
    """
    scope = scope or Scope()
    paths = paths or nvtx_paths(report)
    ops = report.operations
    operations = row_numbers(ops, scope.operations(ops))
    operations = operations[ops.counted[operations]]
    if nodes is not None:
        node: Int64 = nodes[operations].astype(np.int64)
    elif len(operations):
        node = attribute(report, paths, operations, across_threads=across_threads)
    else:
        node = np.empty(0, np.int64)
    trie = paths.builder.trie()
    host = _host(report, scope, paths, len(trie))
    start, end = clipped(ops, operations, scope.window)
    gpu_self = _sum(node, end - start, len(trie))
    first, last, busy = _unions(trie, node, start, end)
    return NvtxTree(
        trie,
        *host,
        gpu=trie.summed(gpu_self),
        gpu_count=trie.summed(_sum(node, np.ones_like(node), len(trie))),
        gpu_self=gpu_self,
        gpu_busy=busy,
        gpu_start=first,
        gpu_end=last,
        range_node=paths.node,
        operation_rows=operations,
        operation_node=node,
    )


def _sum(places: Int64, values: Int64, size: int) -> Int64:
    """Exact int64 sums of values by place (bincount would round to doubles)."""
    total = np.zeros(size, np.int64)
    np.add.at(total, places, values)
    return total


def _host(
    report: Report, scope: Scope, paths: Paths, size: int
) -> tuple[Int64, Int64, Int64, Int64]:
    """Instances, open instances, host time and host self time per node."""
    ranges = report.ranges
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[paths.node[rows] >= 0]
    counting = starting(ranges, rows, scope.window)
    closed = ~ranges.open[rows]
    start, end = clipped(ranges, rows, scope.window)
    node = paths.node[rows]
    own = paths.self_time if scope.window is None else _self_in(paths, scope.window)
    inside = own[rows]
    return (
        _sum(node[counting & closed], np.ones(int((counting & closed).sum()), np.int64), size),
        _sum(node[counting & ~closed], np.ones(int((counting & ~closed).sum()), np.int64), size),
        _sum(node[closed], (end - start)[closed], size),
        _sum(node[closed], inside[closed], size),
    )


def _self_in(paths: Paths, window: tuple[int, int]) -> Int64:
    """Time of a window in which each range is the innermost one of its thread."""
    own = np.zeros(len(paths.node), np.int64)
    for thread in paths.threads.values():
        times = np.clip(thread.times, *window)
        rows = thread.innermost[:-1]
        inside = rows >= 0
        np.add.at(own, rows[inside], np.diff(times)[inside])
    return own


def _unions(trie: Trie, node: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, Int64]:
    """First start, last end and union of the operations in the subtree of every node."""
    size = len(trie)
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
    busy = np.zeros(size, np.int64)
    at = node.copy()
    for depth in range(len(trie.levels) - 1, -1, -1):
        here = np.flatnonzero(trie.depth[at] == depth)
        if len(here):
            groups, lengths, lows, highs = _union_by_group(at[here], start[here], end[here])
            busy[groups], first[groups], last[groups] = lengths, lows, highs
            at[here] = np.maximum(trie.parent[at[here]], 0)
    empty = last < first
    first[empty] = last[empty] = 0
    return first, last, busy


def _union_by_group(group: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """Union length, first start and last end of the intervals of each group that occurs.

    All groups are merged in one pass: each is moved to a stretch of time of its own. The starts
    ascend, so a stable sort by group is enough; on 16 bits it is a radix sort, ten times as fast.
    """
    small = group.max() <= np.iinfo(np.uint16).max
    order = np.argsort(group.astype(np.uint16) if small else group, kind="stable")
    group, start, end = group[order], start[order], np.maximum(start, end)[order]
    heads = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    origin = int(start.min())
    width = int(end.max()) - origin + 1
    number = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(group))))
    move = number * width - origin
    lows, highs = intervals.union(start + move, end + move)
    lengths = np.zeros(len(heads), np.int64)
    np.add.at(lengths, lows // width, highs - lows)
    return group[heads], lengths, start[heads], np.maximum.reduceat(end, heads)
