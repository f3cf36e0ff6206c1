"""Columnar trees in display order: where each node stands when everything is open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.groups import by_code
from nsys_tui.model.tree import Trie


@dataclass(frozen=True, eq=False)
class TreeOrder:
    """Nodes of a trie in preorder; a subtree is a contiguous stretch of it."""

    position: Int64
    """Place of each node; the root is first."""
    size: Int64
    """Nodes in each subtree, its own root included."""

    @property
    def nodes(self) -> Indices:
        """Nodes by position."""
        node = np.empty(len(self.position), np.intp)
        node[self.position] = np.arange(len(self.position))
        return node

    def inside(self, node: int, others: Integers) -> Bool:
        """Which of some nodes lie in the subtree of a node."""
        first = self.position[node]
        places = self.position[others]
        within: Bool = (places >= first) & (places < first + self.size[node])
        return within


def tree_order(trie: Trie, ranked: Integers | None = None) -> TreeOrder:
    """Lays a trie out: siblings as they are ranked, by number without a ranking.

    Args:
        trie: the tree.
        ranked: all nodes in the order in which siblings shall stand.
    """
    count = len(trie)
    size = trie.summed(np.ones(count, np.int64))
    if ranked is None:
        order: Integers = trie.children[0]
        edges = trie.children[1]
    else:
        places, edges = by_code(trie.parent[ranked] + 1, count + 1)
        order, edges = ranked[places], edges[1:]
    # The first in this order is the root; behind it stand the children of node after node.
    sizes = size[order]
    before = np.cumsum(sizes) - sizes
    families = np.diff(edges)
    before[1:] -= np.repeat(before[np.minimum(edges[:-1], count - 1)], families)
    offset = np.empty(count, np.int64)
    offset[order] = before
    offset += 1
    offset[0] = 0
    return TreeOrder(trie.path_sums(offset), size)
