"""Trees of stacks for tests, from texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.model.tree import TrieBuilder, WeightedTree, weighted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def from_stacks(stacks: Iterable[tuple[Sequence[str], int]]) -> WeightedTree:
    """Folds stacks of texts, outermost frame first."""
    builder = TrieBuilder()
    pairs = [(builder.add(frames), weight) for frames, weight in stacks]
    nodes = np.array([node for node, _ in pairs], np.int64)
    return weighted(builder, nodes, np.array([weight for _, weight in pairs], np.int64), "ns")


def folded(tree: WeightedTree) -> list[tuple[tuple[str, ...], int]]:
    """(frames, weight) of every stack that has weight of its own or a count."""
    nodes = np.flatnonzero((tree.self_weight != 0) | (tree.self_count != 0))
    return [(tree.trie.path(int(node)), int(tree.self_weight[node])) for node in nodes]
