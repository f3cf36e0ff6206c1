"""Columnar trees in display order: where each node stands when everything is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64
    from nsys_tui.model.tree import Trie


@dataclass(frozen=True, eq=False)
class TreeOrder:
    """Nodes of a trie in preorder; a subtree is a contiguous stretch of it."""

    position: Int64
    """Place of each node; the root is first."""
    size: Int64
    """Nodes in each subtree, its own root included."""

    @property
    def nodes(self) -> NDArray[np.intp]:
        """Nodes by position."""
        found = np.empty(len(self.position), np.intp)
        found[self.position] = np.arange(len(self.position))
        return found

    def inside(self, node: int, others: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which of some nodes lie in the subtree of a node."""
        first = self.position[node]
        places = self.position[others]
        found: NDArray[np.bool_] = (places >= first) & (places < first + self.size[node])
        return found


def tree_order(trie: Trie, rank: NDArray[np.integer] | None = None) -> TreeOrder:
    """Lays a trie out: siblings by rank, by number without one.

    Args:
        trie: the tree.
        rank: place of each node among its siblings, any integers; ties by node number.
    """
    count = len(trie)
    size = trie.summed(np.ones(count, np.int64))
    order = np.arange(count) if rank is None else np.argsort(rank, kind="stable")
    order = order[np.argsort(trie.parent[order], kind="stable")]
    own = size[order]
    before = np.cumsum(own) - own
    parents = trie.parent[order]
    heads = np.flatnonzero(np.append(True, parents[1:] != parents[:-1]))
    before -= np.repeat(before[heads], np.diff(np.append(heads, count)))
    offset = np.empty(count, np.int64)
    offset[order] = before
    position = np.zeros(count, np.int64)
    for nodes in trie.levels[1:]:
        position[nodes] = position[trie.parent[nodes]] + 1 + offset[nodes]
    return TreeOrder(position, size)
