"""The NVTX tree: per path of range names its instances, host time, and the GPU work it launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.nvtx.paths import Paths
from nsys_tui.analysis.window import Rows, Scope, clipped, masked, row_numbers, starting
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Indices, Int32, Int64, Integers
from nsys_tui.model.groups import sums
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.tree import Trie

PIECE: Final = 500_000
"""Operations merged at a time: bounds the memory for five million of them."""


@dataclass(frozen=True, eq=False)
class NvtxTree:
    """One row per path; arrays are indexed by trie node, times in ns (definitions: "Totals")."""

    trie: Trie
    count: Int64
    """Closed instances that start in the window."""
    straddling: Int64
    """Those that began before it and reach into it."""
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
    gpu_busy: Int64
    """Length of the union of the subtree's operations on each GPU, summed over the GPUs."""
    gpus: Int64
    """Number of GPUs that the subtree's operations ran on."""
    gpu_start: Int64
    """First start of the subtree's operations; equal to ``gpu_end`` where there are none."""
    gpu_end: Int64
    range_node: Int64
    """Node of each row of ``Report.ranges``, -1 for those that do not nest."""
    operation_rows: Rows
    """Operations that were attributed."""
    operation_node: Int32
    """Node of each of ``operation_rows``."""

    @property
    def span(self) -> Int64:
        """From the first start to the last end of the subtree's operations."""
        return self.gpu_end - self.gpu_start

    @property
    def busy_share(self) -> Float64:
        """Busy part of the span, mean of the GPUs that worked; 0 to 1, 0 without operations."""
        return busy_share(self.gpu_busy, self.gpus, self.span)

    def operations_at(self, places: Indices) -> Indices:
        """Rows of ``Report.operations`` for places in ``operation_node``."""
        return places if isinstance(self.operation_rows, slice) else self.operation_rows[places]


def busy_share(busy: Int64, gpus: Int64, span: Int64) -> Float64:
    """Busy time of some GPUs as a part of (GPUs x span), 0 to 1; 0 where there is no span."""
    return np.asarray(busy / np.maximum(gpus * span, 1), np.float64)


def nvtx_tree(
    report: Report,
    scope: Scope,
    paths: Paths,
    nodes: Integers,
    progress: Progress = silent,
) -> NvtxTree:
    """Builds the tree; it exists without GPU work too.

    Args:
        report: the report.
        scope: what to look at; totals are clipped to its window, instances count where they start.
        paths: NVTX paths of the report.
        nodes: the node of every operation of the report.
        progress: told how many operations are merged.
    """
    ops = report.operations
    counted = scope.operations(ops)
    operations = masked(counted, ops.counted[counted])
    node: Int32 = nodes[operations].astype(np.int32, copy=False)
    trie = paths.builder.trie()
    host = _host(report, scope, paths, len(trie))
    start, end = clipped(ops, operations, scope.window)
    first, last, busy, gpus = _unions(trie, node, ops.device[operations], start, end, progress)
    return NvtxTree(
        trie,
        *host,
        gpu=trie.summed(sums(node, end - start, len(trie))),
        gpu_count=trie.summed(np.bincount(node, minlength=len(trie))),
        gpu_busy=busy,
        gpus=gpus,
        gpu_start=first,
        gpu_end=last,
        range_node=paths.node,
        operation_rows=operations,
        operation_node=node,
    )


def _host(
    report: Report, scope: Scope, paths: Paths, size: int
) -> tuple[Int64, Int64, Int64, Int64, Int64]:
    """Per node: instances, those that straddle, open ones, host time and host self time."""
    ranges = report.ranges
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[paths.node[rows] >= 0]
    counting = starting(ranges, rows, scope.window)
    closed = ~ranges.open[rows]
    start, end = clipped(ranges, rows, scope.window)
    node = paths.node[rows]
    self_ns = paths.self_time if scope.window is None else _self_in(paths, scope.window)
    inside = self_ns[rows]
    return (
        np.bincount(node[counting & closed], minlength=size),
        np.bincount(node[~counting & closed], minlength=size),
        np.bincount(node[counting & ~closed], minlength=size),
        sums(node[closed], (end - start)[closed], size),
        sums(node[closed], inside[closed], size),
    )


def _self_in(paths: Paths, window: tuple[int, int]) -> Int64:
    """Time of a window in which each range is the innermost one of its thread."""
    self_ns = np.zeros(len(paths.node), np.int64)
    for thread in paths.threads.values():
        times = np.clip(thread.times, *window)
        rows = thread.innermost[:-1]
        inside = rows >= 0
        np.add.at(self_ns, rows[inside], np.diff(times)[inside])
    return self_ns


def _unions(
    trie: Trie,
    node: Int32,
    device: Integers,
    start: Int64,
    end: Int64,
    progress: Progress,
) -> tuple[Int64, Int64, Int64, Int64]:
    """Of the operations in every node's subtree: first start, last end, busy time and its GPUs.

    A group is a node on a GPU. Starts ascend, so what a group covers from an operation's start on
    reaches to the last end so far: pieces of the operations are merged one after the other.
    """
    devices = int(device.max(initial=0)) + 1
    size = len(trie) * devices
    first, reach = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
    busy = np.zeros(size, np.int64)
    for begin in range(0, len(node), PIECE):
        progress("GPU time of NVTX ranges", begin, len(node))
        part = slice(begin, begin + PIECE)
        at = node[part].astype(np.int64)
        for depth in range(len(trie.levels) - 1, -1, -1):
            here = np.flatnonzero(trie.depth[at] == depth)
            if len(here):
                group = at[here] * devices + device[part][here]
                fresh = np.maximum(start[part][here], reach[group])
                groups, lengths, lows, highs = _union_by_group(group, fresh, end[part][here])
                busy[groups] += lengths
                first[groups] = np.minimum(first[groups], lows)
                reach[groups] = np.maximum(reach[groups], highs)
                at[here] = np.maximum(trie.parent[at[here]], 0)
    by_node = (len(trie), devices)
    used = reach >= first
    first[~used] = np.iinfo(np.int64).max
    lows, highs = first.reshape(by_node).min(axis=1), reach.reshape(by_node).max(axis=1)
    empty = highs < lows
    lows[empty] = highs[empty] = 0
    return lows, highs, busy.reshape(by_node).sum(axis=1), used.reshape(by_node).sum(axis=1)


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
    lengths = sums(lows // width, highs - lows, len(heads))
    return group[heads], lengths, start[heads], np.maximum.reduceat(end, heads)
