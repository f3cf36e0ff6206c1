"""Everything the NVTX screen shows of a window: the merged tree, its times, the view by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.kernel_table import time_in_parts
from nsys_tui.analysis.nvtx.flat import NvtxFlat, nvtx_flat
from nsys_tui.analysis.nvtx.tree import NvtxTree, nvtx_tree
from nsys_tui.analysis.tree_order import TreeOrder, tree_order
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, clipped, row_numbers
from nsys_tui.model.progress import Progress, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.nvtx.operation_paths import OperationPaths
    from nsys_tui.analysis.nvtx.similar import SimilarPaths
    from nsys_tui.model.events import Bool, Int64
    from nsys_tui.model.report import Report
    from nsys_tui.model.tree import Trie

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
        found: Bool = small & ((self.tree.gpu < UNINTERESTING * gpu) | (gpu == 0))
        found[0] = False
        return self.trie.below(found)

    @cached_property
    def present(self) -> Bool:
        """Nodes with ranges or operations in the window, in themselves or below."""
        tree = self.tree
        some = (tree.count + tree.open + tree.gpu_count > 0) | (tree.host > 0)
        found: Bool = self.trie.summed(some.astype(np.int64)) > 0
        return found

    def instances(self, nodes: Int64) -> NDArray[np.intp]:
        """Ranges at some nodes that touch the window, in start order."""
        ranges = self.report.ranges
        rows = row_numbers(ranges, self.scope.threads(ranges))
        chosen = np.zeros(len(self.trie) + 1, bool)
        chosen[nodes] = True
        return rows[chosen[self.tree.range_node[rows]]]

    def operations(self, nodes: Int64) -> NDArray[np.intp]:
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
    return NvtxTable(report, scope, tree, similar.labels, similar.names, when)


def _bounds(report: Report) -> tuple[int, int]:
    """First start and last end of ranges and GPU work: often a small part of the session."""
    found = [part for part in (report.ranges.bounds(), report.span) if part is not None]
    return min((lo for lo, _ in found), default=0), max((hi for _, hi in found), default=1)
