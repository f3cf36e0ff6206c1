"""NVTX ranges by name, whatever their path: recursion counts once per name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.nvtx.tree import busy_share
from nsys_tui.analysis.tree_order import tree_order
from nsys_tui.analysis.window import clipped
from nsys_tui.model.groups import factorise, sums
from nsys_tui.model.tree import ROOT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.nvtx.tree import NvtxTree
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.events import Bool, Int64, Operations
    from nsys_tui.model.tree import Trie


@dataclass(frozen=True, eq=False)
class NvtxFlat:
    """One row per name; figures as in ``NvtxTree``, where a name inside itself counts once."""

    label: Int64
    """Label code of each row."""
    count: Int64
    """Closed instances, those inside others of their name too."""
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
    def busy_share(self) -> NDArray[np.float64]:
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
    place = np.zeros(len(trie.labels), np.int64)
    place[labels] = np.arange(len(labels))
    row = place[trie.label]
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
    place = layout.position[tree.operation_node]
    order = np.argsort(place, kind="stable")
    place = place[order]
    busy, gpus, span = (np.zeros(len(nodes), np.int64) for _ in range(3))
    for number, own in enumerate(nodes):
        if len(own) == 1:
            top = own[0]
            busy[number], gpus[number] = tree.gpu_busy[top], tree.gpus[top]
            span[number] = tree.span[top]
            continue
        lows = np.searchsorted(place, layout.position[own])
        highs = np.searchsorted(place, layout.position[own] + layout.size[own])
        pieces = [order[lo:hi] for lo, hi in zip(lows.tolist(), highs.tolist(), strict=True)]
        rows = tree.operations_at(np.sort(np.concatenate(pieces)))
        if len(rows):
            start, end = clipped(ops, rows, scope.window)
            device, codes = factorise(ops.device[rows])
            busy[number] = int(grouped_union(device, start, end, len(codes)).sum())
            gpus[number] = len(codes)
            span[number] = int(end.max()) - int(start.min())
    return busy, gpus, span
