"""Everything the NVTX screen shows of a window: the merged tree, its times, the view by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.kernel_table import time_in_parts
from nsys_tui.analysis.nvtx.operation_paths import OperationPaths, SimilarPaths
from nsys_tui.analysis.nvtx.tree import NvtxTree, busy_share, nvtx_tree
from nsys_tui.analysis.tree_order import TreeOrder, tree_order
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, clipped, row_numbers
from nsys_tui.model.arrays import Bool, Float64, Indices, Int64
from nsys_tui.model.events import Operations, Ranges
from nsys_tui.model.groups import factorise, sums
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.tree import ROOT, Trie


@dataclass(frozen=True, eq=False)
class NvtxFlat:
    """One row per name; figures as in ``NvtxTree``, where a name inside itself counts once."""

    label: Int64
    """Label code of each row."""
    count: Int64
    """Closed instances, those inside others of their name too."""
    straddling: Int64
    host: Int64
    host_self: Int64
    gpu: Int64
    gpu_busy: Int64
    """Union of the operations' time on each GPU, summed over the GPUs."""
    gpus: Int64
    """Number of GPUs that the operations ran on."""
    span: Int64
    nodes: tuple[Int64, ...]
    """Nodes of each name that have none of the same name above them."""

    def __len__(self) -> int:
        return len(self.label)

    @property
    def busy_share(self) -> Float64:
        """Busy part of the span, mean of the GPUs that worked; 0 to 1, 0 without operations."""
        return busy_share(self.gpu_busy, self.gpus, self.span)


def outermost(trie: Trie) -> Bool:
    """Nodes without another of the same label above them."""
    layout = tree_order(trie)
    # Labels one after the other on one axis of positions: a node lies inside another of its label
    # where a subtree before it reaches beyond it.
    begin = trie.label.astype(np.int64) * (len(trie) + 1) + layout.position
    order = np.argsort(begin)
    reach = np.maximum.accumulate((begin + layout.size)[order])
    inside = np.zeros(len(trie), bool)
    inside[order[1:]] = reach[:-1] > begin[order[1:]]
    return ~inside


def nvtx_flat(tree: NvtxTree, ops: Operations, scope: Scope, present: Bool) -> NvtxFlat:
    """Sums a tree by name.

    Args:
        tree: the tree.
        ops: the operations of its report.
        scope: what the tree was made for.
        present: nodes with something in the window; names without any are left out.
    """
    trie = tree.trie
    labels = np.unique(trie.label[1:][present[1:]])
    row_of = np.zeros(len(trie.labels), np.int64)
    row_of[labels] = np.arange(len(labels))
    row = row_of[trie.label]
    top = outermost(trie) & present
    top[ROOT] = False
    order = np.flatnonzero(top)
    order = order[np.argsort(row[order], kind="stable")]
    ends = np.searchsorted(row[order], np.arange(len(labels)), side="right")
    nodes = np.split(order, ends)[:-1]
    every = np.flatnonzero(present[1:]) + 1

    def summed(values: Int64, chosen: Int64) -> Int64:
        return sums(row[chosen], values[chosen], len(labels))

    busy, gpus, span = _unions(tree, ops, scope, nodes)
    return NvtxFlat(
        label=labels.astype(np.int64),
        count=summed(tree.count, every),
        straddling=summed(tree.straddling, every),
        host=summed(tree.host, order),
        host_self=summed(tree.host_self, every),
        gpu=summed(tree.gpu, order),
        gpu_busy=busy,
        gpus=gpus,
        span=span,
        nodes=tuple(nodes),
    )


def _unions(
    tree: NvtxTree, ops: Operations, scope: Scope, nodes: list[Int64]
) -> tuple[Int64, Int64, Int64]:
    """Busy time, GPUs and span of the operations under each name."""
    layout = tree_order(tree.trie)
    position = layout.position[tree.operation_node]
    order = np.argsort(position, kind="stable")
    position = position[order]
    busy, gpus, span = (np.zeros(len(nodes), np.int64) for _ in range(3))
    for number, of_row in enumerate(nodes):
        if len(of_row) == 1:
            top = of_row[0]
            busy[number], gpus[number] = tree.gpu_busy[top], tree.gpus[top]
            span[number] = tree.span[top]
            continue
        lows = np.searchsorted(position, layout.position[of_row])
        highs = np.searchsorted(position, layout.position[of_row] + layout.size[of_row])
        pieces = [order[lo:hi] for lo, hi in zip(lows.tolist(), highs.tolist(), strict=True)]
        rows = tree.operations_at(np.sort(np.concatenate(pieces)))
        if len(rows):
            start, end = clipped(ops, rows, scope.window)
            device, codes = factorise(ops.device[rows])
            busy[number] = int(grouped_union(device, start, end, len(codes)).sum())
            gpus[number] = len(codes)
            span[number] = int(end.max()) - int(start.min())
    return busy, gpus, span


UNINTERESTING = 0.01
"""Nodes with less than this part of the whole host time and GPU time are uninteresting."""


@dataclass(frozen=True, eq=False)
class NvtxTable:
    """The tree of a window with what is drawn beside it; arrays by node."""

    report: Report
    scope: Scope
    tree: NvtxTree
    labels: tuple[str, ...]
    """What each node is called."""
    names: tuple[str, ...]
    """What each label of the trie is called."""
    when: Int64
    """Host time in each of ``PARTS`` parts of the window, shape (nodes, PARTS).

    On the whole trace: of the time with ranges or GPU work.
    """

    @property
    def trie(self) -> Trie:
        """The tree's shape."""
        return self.tree.trie

    @cached_property
    def order(self) -> TreeOrder:
        """Its layout."""
        return tree_order(self.trie)

    @cached_property
    def flat(self) -> NvtxFlat:
        """The same by name; costly, so ask for it in a worker."""
        return nvtx_flat(self.tree, self.report.operations, self.scope, self.present)

    @cached_property
    def dull(self) -> Bool:
        """Nodes that take little time of host and GPU, and whatever lies below them."""
        tops = self.trie.children_of(0)
        host, gpu = int(self.tree.host[tops].sum()), int(self.tree.gpu[tops].sum())
        small = (self.tree.host < UNINTERESTING * host) | (host == 0)
        little: Bool = small & ((self.tree.gpu < UNINTERESTING * gpu) | (gpu == 0))
        little[0] = False
        return self.trie.below(little)

    @cached_property
    def present(self) -> Bool:
        """Nodes with ranges or operations in the window, in themselves or below."""
        tree = self.tree
        some = (tree.count + tree.open + tree.gpu_count > 0) | (tree.host > 0)
        return self.trie.summed(some.astype(np.int64)) > 0

    def instances(self, nodes: Int64) -> Indices:
        """Ranges at some nodes that touch the window, in start order."""
        ranges = self.report.ranges
        rows = row_numbers(ranges, self.scope.threads(ranges))
        chosen = np.zeros(len(self.trie) + 1, bool)
        chosen[nodes] = True
        return rows[chosen[self.tree.range_node[rows]]]

    def operations(self, nodes: Int64) -> Indices:
        """GPU operations launched under some nodes."""
        inside = np.zeros(len(self.tree.operation_node), bool)
        for node in nodes.tolist():
            inside |= self.order.inside(node, self.tree.operation_node)
        return self.tree.operations_at(np.flatnonzero(inside))


def nvtx_table(
    report: Report,
    raw: OperationPaths,
    similar: SimilarPaths,
    scope: Scope = WHOLE_REPORT,
    progress: Progress = silent,
) -> NvtxTable:
    """Builds the tree of a window.

    Args:
        report: the report.
        raw: paths of its operations.
        similar: the same paths with similar names merged.
        scope: window, devices, processes.
        progress: told how far the work is.
    """
    nodes = similar.node[raw.node]
    tree = nvtx_tree(report, scope, similar.paths, nodes, progress)
    ranges = report.ranges
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[tree.range_node[rows] >= 0]
    start, end = clipped(ranges, rows, scope.window)
    lo, hi = scope.window or _bounds(report)
    when = time_in_parts(start, end, tree.range_node[rows], len(tree.trie), lo, hi, progress)
    own = partial(_without_domain, ranges)
    return NvtxTable(report, scope, tree, own(similar.labels), own(similar.names), when)


def _without_domain(ranges: Ranges, labels: Sequence[str]) -> tuple[str, ...]:
    """A domain that all ranges share tells none of them apart, and takes the room of names."""
    domains = {ranges.domains[code].name for code in np.unique(ranges.domain)}
    if len(domains) != 1 or "" in domains:
        return tuple(labels)
    return tuple(label.removeprefix(f"{min(domains)}:") for label in labels)


def _bounds(report: Report) -> tuple[int, int]:
    """First start and last end of ranges and GPU work: often a small part of the session."""
    bounds = [part for part in (report.ranges.bounds(), report.span) if part is not None]
    return min((lo for lo, _ in bounds), default=0), max((hi for _, hi in bounds), default=1)
