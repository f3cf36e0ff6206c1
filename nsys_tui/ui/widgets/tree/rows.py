"""Which lines of a tree are seen: folds, filters and lines that stand for what is left out."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from nsys_tui.analysis.tree_order import TreeOrder
from nsys_tui.model.arrays import Bool, Int64
from nsys_tui.model.tree import ROOT, Trie


def rest_of(node: int) -> int:
    """The line that stands for the hidden children of a node; negative, unlike nodes."""
    return -node - 1


def owner_of(line: int) -> int:
    """The node whose hidden children a line stands for."""
    return -line - 1


def tree_lines(trie: Trie, order: TreeOrder, expanded: Bool, hidden: Bool, keep: Bool) -> Int64:
    """Lines from top to bottom: nodes, and ``rest_of`` where children are hidden.

    Args:
        trie: the tree; its root is no line and always open.
        order: sorted layout.
        expanded: whether a node's children are seen.
        hidden: nodes that a line of their parent's stands for.
        keep: nodes that pass the filter.
    """
    seen = np.zeros(len(trie), bool)
    seen[ROOT] = True
    for nodes in trie.levels[1:]:
        above = trie.parent[nodes]
        opened = expanded[above] | (above == ROOT)
        seen[nodes] = seen[above] & opened & ~hidden[nodes] & keep[nodes]
    lines = np.flatnonzero(seen[1:]) + 1
    lines = lines[np.argsort(order.position[lines])]
    return _with_rests(trie, order, lines, expanded & seen, hidden & keep)


def _with_rests(trie: Trie, order: TreeOrder, lines: Int64, opened: Bool, hidden: Bool) -> Int64:
    """Puts a line behind the last child of every open node that hides children."""
    opened[ROOT] = True
    owns = np.zeros(len(trie), bool)
    owns[trie.parent[np.flatnonzero(hidden[1:]) + 1]] = True
    owners = np.flatnonzero(owns & opened)
    if not len(owners):
        return lines
    last = order.position[owners] + order.size[owners]
    # Where several subtrees end together, the innermost one's line comes first.
    by = np.lexsort((-trie.depth[owners], last))
    places = np.searchsorted(order.position[lines], last[by])
    return np.insert(lines, places, -owners[by].astype(np.int64) - 1)


def with_ancestors(trie: Trie, chosen: Bool) -> Bool:
    """Nodes that are chosen or have a chosen one below them."""
    return trie.summed(chosen.astype(np.int64)) > 0


def ancestors(trie: Trie, node: int) -> list[int]:
    """Nodes above a node, the nearest first; without the root."""
    above = []
    while (node := int(trie.parent[node])) > ROOT:
        above.append(node)
    return above


def first_folds(trie: Trie, most: int, present: Bool, weight: Int64 | None = None) -> Bool:
    """Opens the heaviest of the lines seen, again and again, while no more than ``most`` are seen.

    Args:
        trie: the tree.
        most: lines that fit.
        present: nodes that are shown at all.
        weight: what makes a node worth opening; without it, the first ones are.
    """
    expanded = np.zeros(len(trie), bool)
    tops = [node for node in trie.children_of(ROOT).tolist() if present[node]]
    lines = len(tops)
    waiting = [(-int(weight[node]) if weight is not None else 0, node) for node in tops]
    heapify(waiting)
    while waiting:
        _, node = heappop(waiting)
        below = [child for child in trie.children_of(node).tolist() if present[child]]
        if lines + len(below) > most:
            break
        expanded[node] = True
        lines += len(below)
        for child in below:
            heappush(waiting, (-int(weight[child]) if weight is not None else 0, child))
    return expanded
