"""Other views of folded stacks: names merged, recursion collapsed, small frames elided, callers.

Each view is a tree of its own; weights of the whole never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.nvtx import table as by_name
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.groups import sums
from nsys_tui.model.tree import ROOT, Trie, TrieBuilder, WeightedTree
from nsys_tui.names import similar_name

MOST_CALLERS: Final = 1 << 20
"""Nodes of a view of callers from which on what is farther away is counted: the callers of a frame
on every level of a path of n frames are n * n / 2."""


@dataclass(frozen=True, eq=False)
class View:
    """A tree made from another one."""

    tree: WeightedTree
    of_node: Int64
    """Node of the view for each node of the tree it was made from."""


def merge_similar(tree: WeightedTree, *, leaves: bool = False) -> View:
    """Makes one of range frames whose names differ in numbers only: ``Train step #``.

    Frames with weight of their own are operations and keep their names.

    Args:
        tree: folded stacks.
        leaves: those are ranges, too.
    """
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    alike = np.array([builder.label(similar_name(text)) for text in trie.labels], np.int64)
    kept = (tree.self_count > 0) & (not leaves)
    wanted = np.where(kept, labels[trie.label], alike[trie.label])
    return _part(tree, builder, builder.graft(trie.parent, wanted))


def collapse_recursion(tree: WeightedTree) -> View:
    """Makes one frame of a frame that calls itself, however often."""
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    again = trie.label == trie.label[np.maximum(trie.parent, ROOT)]
    wanted = np.where(again, 0, labels[trie.label])
    return _part(tree, builder, builder.graft(trie.parent, wanted))


def hide_small(tree: WeightedTree, share: float = 0.005) -> View:
    """Puts frames below a share of the whole into one counted frame beside their siblings.

    What lies below a hidden frame goes with it.
    """
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    small = tree.weight < share * max(int(tree.weight[ROOT]), 1)
    small[ROOT] = False
    tops = np.flatnonzero(small & (trie.path_sums(small) == 1))
    count = np.bincount(trie.parent[tops], minlength=len(trie))[trie.parent[tops]]
    wanted = np.where(small, 0, labels[trie.label])
    wanted[tops] = [builder.label(f"[{number} smaller]") for number in count.tolist()]
    return _part(tree, builder, builder.graft(trie.parent, wanted))


def _labels(trie: Trie, builder: TrieBuilder) -> Int64:
    """Code in ``builder`` of each label of a trie."""
    return np.array([builder.label(text) for text in trie.labels], np.int64)


def located(trie: Trie, frames: Iterable[str]) -> int:
    """Node of a path, or of as much of it as there is; names that differ in numbers fit too."""
    node = ROOT
    for frame in frames:
        children = trie.children_of(node).tolist()
        names = [trie.labels[code] for code in trie.label[children]]
        if frame not in names:
            names = [similar_name(name) for name in names]
            frame = similar_name(frame)
        if frame not in names:
            break
        node = children[names.index(frame)]
    return node


def outermost(trie: Trie, label: int) -> Indices:
    """Occurrences of a frame that do not lie below another one: recursion counts once."""
    mine = trie.label == label
    mine[ROOT] = False
    return np.flatnonzero(mine & (trie.path_sums(mine) == 1))


def totals(tree: WeightedTree) -> tuple[Int64, Int64]:
    """Weight and count of the stacks through each label; recursion counts once."""
    trie, labels = tree.trie, len(tree.trie.labels)
    top = np.flatnonzero(by_name.outermost(trie))[1:]
    codes = trie.label[top]
    return sums(codes, tree.weight[top], labels), sums(codes, tree.count[top], labels)


def callees(tree: WeightedTree, label: int) -> View:
    """What one frame calls, wherever it occurs: its subtrees laid on top of each other."""
    trie, builder = tree.trie, TrieBuilder()
    top = outermost(trie, label)
    wanted = np.where(trie.below(top), _labels(trie, builder)[trie.label], -1)
    parent = trie.parent.copy()
    parent[top] = ROOT
    of_node = builder.graft(parent, wanted)
    of_node[ROOT] = -1
    return _part(tree, builder, of_node)


def _part(tree: WeightedTree, builder: TrieBuilder, of_node: Int64) -> View:
    """A view of the nodes that have a place in it."""
    size, inside = len(builder), of_node >= 0
    weight = sums(of_node[inside], tree.self_weight[inside], size)
    count = sums(of_node[inside], tree.self_count[inside], size)
    return View(WeightedTree(builder.trie(), weight, count, tree.unit), of_node)


def callers(tree: WeightedTree, label: int) -> View:
    """Who calls one frame: its paths to the root, upside down, weighted by what it took there."""
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    top = outermost(trie, label)
    above = trie.parent[top].astype(np.int64)
    node = np.full(len(top), builder.child(ROOT, int(labels[label])), np.int64)
    while (going := np.flatnonzero(above > ROOT)).size and len(builder) < MOST_CALLERS:
        node[going] = builder.children(node[going], labels[trie.label[above[going]]])
        above[going] = trie.parent[above[going]]
    for place in going.tolist():
        rest = builder.label(f"[... {trie.depth[above[place]]} frames]")
        node[place] = builder.child(int(node[place]), rest)
    size = len(builder)
    weight, count = sums(node, tree.weight[top], size), sums(node, tree.count[top], size)
    of_node = np.full(len(trie), -1, np.int64)
    of_node[top] = node
    return View(WeightedTree(builder.trie(), weight, count, tree.unit), of_node)


def matched_weight(tree: WeightedTree, matches: Bool) -> int:
    """Weight of the stacks with at least one matching frame; nested matches count once."""
    trie = tree.trie
    return int(tree.self_weight[trie.below(matches)].sum())


def first_seen(tree: WeightedTree, node: Integers, times: Int64) -> Int64:
    """Time at which each frame first occurs, for siblings in time order.

    Args:
        tree: the tree.
        node: leaf node of each event.
        times: start of each event.
    """
    first = np.full(len(tree.trie), np.iinfo(np.int64).max)
    np.minimum.at(first, node, times)
    return tree.trie.least(first)


def under(tree: WeightedTree, node: int) -> tuple[WeightedTree, Indices]:
    """The stacks through one node, with the frames above it.

    Returns:
        the tree, and the node of ``tree`` that each of its nodes was.
    """
    trie = tree.trie
    inside = trie.below(node)
    above = node
    while above > ROOT:
        above = int(trie.parent[above])
        inside[above] = True
    kept = np.flatnonzero(inside)
    number = np.cumsum(inside) - 1
    parent = np.where(trie.parent[kept] < 0, -1, number[trie.parent[kept]]).astype(np.int32)
    below = trie.depth[kept] >= trie.depth[node]
    weight, count = tree.self_weight[kept] * below, tree.self_count[kept] * below
    return WeightedTree(Trie(parent, trie.label[kept], trie.labels), weight, count, tree.unit), kept
