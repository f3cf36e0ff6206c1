"""Other views of folded stacks: names merged, recursion collapsed, small frames elided, callers.

Each view is a tree of its own; weights of the whole never change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.model.tree import ROOT, Trie, TrieBuilder, WeightedTree
from nsys_tui.names import normalise_nvtx

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64


@dataclass(frozen=True, eq=False)
class View:
    """A tree made from another one."""

    tree: WeightedTree
    of_node: Int64
    """Node of the view for each node of the tree it was made from."""

    def sources(self, node: int) -> NDArray[np.intp]:
        """Nodes of the original tree that one node of the view stands for."""
        return np.flatnonzero(self.of_node == node)


def _moved(tree: WeightedTree, builder: TrieBuilder, of_node: Int64) -> View:
    size = len(builder)
    weight, count = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(weight, of_node, tree.self_weight)
    np.add.at(count, of_node, tree.self_count)
    return View(WeightedTree(builder.trie(), weight, count, tree.unit), of_node)


def merge_similar(tree: WeightedTree) -> View:
    """Makes one of range frames whose names differ in numbers only: ``Train step #``.

    Frames with weight of their own are operations and keep their names.
    """
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    alike = np.array([builder.label(normalise_nvtx(text)) for text in trie.labels], np.int64)
    wanted = np.where(tree.self_count > 0, labels[trie.label], alike[trie.label])
    of_node = np.zeros(len(trie), np.int64)
    for level in trie.levels[1:]:
        of_node[level] = builder.children(of_node[trie.parent[level]], wanted[level])
    return _moved(tree, builder, of_node)


def collapse_recursion(tree: WeightedTree) -> View:
    """Makes one frame of a frame that calls itself, however often."""
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    of_node = np.zeros(len(trie), np.int64)
    for level in trie.levels[1:]:
        above = of_node[trie.parent[level]]
        again = trie.label[level] == trie.label[trie.parent[level]]
        of_node[level] = above
        fresh = level[~again]
        if len(fresh):
            of_node[fresh] = builder.children(above[~again], labels[trie.label[fresh]])
    return _moved(tree, builder, of_node)


def hide_small(tree: WeightedTree, share: float = 0.005) -> View:
    """Puts frames below a share of the whole into one counted frame beside their siblings.

    What lies below a hidden frame goes with it.
    """
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    small = tree.weight < share * max(int(tree.weight[ROOT]), 1)
    of_node = np.zeros(len(trie), np.int64)
    hidden = np.zeros(len(trie), bool)
    for level in trie.levels[1:]:
        parent = trie.parent[level]
        inside, new = hidden[parent], small[level] & ~hidden[parent]
        hidden[level] = inside | new
        of_node[level] = of_node[parent]
        kept = level[~hidden[level]]
        if len(kept):
            parents = of_node[trie.parent[kept]]
            of_node[kept] = builder.children(parents, labels[trie.label[kept]])
        first = level[new]
        if len(first):
            above, number, sizes = np.unique(
                of_node[parent[new]], return_inverse=True, return_counts=True
            )
            elided = [
                builder.child(int(node), builder.label(f"[{size} smaller]"))
                for node, size in zip(above, sizes, strict=True)
            ]
            of_node[first] = np.array(elided, np.int64)[number]
    return _moved(tree, builder, of_node)


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
            names = [normalise_nvtx(name) for name in names]
            frame = normalise_nvtx(frame)
        if frame not in names:
            break
        node = children[names.index(frame)]
    return node


def outermost(trie: Trie, label: int) -> NDArray[np.intp]:
    """Occurrences of a frame that do not lie below another one: recursion counts once."""
    below = np.zeros(len(trie), bool)
    found = []
    for level in trie.levels[1:]:
        mine = trie.label[level] == label
        inside = below[trie.parent[level]]
        found.append(level[mine & ~inside])
        below[level] = inside | mine
    return np.concatenate(found) if found else np.empty(0, np.intp)


def callees(tree: WeightedTree, label: int) -> View:
    """What one frame calls, wherever it occurs: its subtrees laid on top of each other."""
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    of_node = np.full(len(trie), -1, np.int64)
    of_node[outermost(trie, label)] = builder.child(ROOT, int(labels[label]))
    for level in trie.levels[1:]:
        above = of_node[trie.parent[level]]
        inside = (above >= 0) & (of_node[level] < 0)
        if inside.any():
            of_node[level[inside]] = builder.children(
                above[inside], labels[trie.label[level[inside]]]
            )
    return _part(tree, builder, of_node)


def _part(tree: WeightedTree, builder: TrieBuilder, of_node: Int64) -> View:
    """A view of the nodes that have a place in it."""
    size, inside = len(builder), of_node >= 0
    weight, count = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(weight, of_node[inside], tree.self_weight[inside])
    np.add.at(count, of_node[inside], tree.self_count[inside])
    return View(WeightedTree(builder.trie(), weight, count, tree.unit), of_node)


def callers(tree: WeightedTree, label: int) -> View:
    """Who calls one frame: its paths to the root, upside down, weighted by what it took there."""
    trie, builder = tree.trie, TrieBuilder()
    labels = _labels(trie, builder)
    top = outermost(trie, label)
    above = trie.parent[top].astype(np.int64)
    node = np.full(len(top), builder.child(ROOT, int(labels[label])), np.int64)
    while (going := np.flatnonzero(above > ROOT)).size:
        node[going] = builder.children(node[going], labels[trie.label[above[going]]])
        above[going] = trie.parent[above[going]]
    size = len(builder)
    weight, count = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(weight, node, tree.weight[top])
    np.add.at(count, node, tree.count[top])
    of_node = np.full(len(trie), -1, np.int64)
    of_node[top] = node
    return View(WeightedTree(builder.trie(), weight, count, tree.unit), of_node)


def matched_weight(tree: WeightedTree, matches: NDArray[np.bool_]) -> int:
    """Weight of the stacks with at least one matching frame; nested matches count once."""
    trie = tree.trie
    inside = matches.copy()
    for level in trie.levels[1:]:
        inside[level] |= inside[trie.parent[level]]
    return int(tree.self_weight[inside].sum())


def first_seen(tree: WeightedTree, node: Int64, times: Int64) -> Int64:
    """Time at which each frame first occurs, for siblings in time order.

    Args:
        tree: the tree.
        node: leaf node of each event.
        times: start of each event.
    """
    first = np.full(len(tree.trie), np.iinfo(np.int64).max)
    np.minimum.at(first, node, times)
    for level in reversed(tree.trie.levels[1:]):
        np.minimum.at(first, tree.trie.parent[level], first[level])
    return first


def under(tree: WeightedTree, node: int) -> tuple[WeightedTree, NDArray[np.intp]]:
    """The stacks through one node, with the frames above it.

    Returns:
        the tree, and the node of ``tree`` that each of its nodes was.
    """
    trie = tree.trie
    inside = np.zeros(len(trie), bool)
    inside[node] = True
    for level in trie.levels[int(trie.depth[node]) + 1 :]:
        inside[level] = inside[trie.parent[level]]
    above = node
    while above > ROOT:
        above = int(trie.parent[above])
        inside[above] = True
    kept = np.flatnonzero(inside)
    number = np.cumsum(inside) - 1
    parent = np.where(trie.parent[kept] < 0, -1, number[trie.parent[kept]]).astype(np.int32)
    own = trie.depth[kept] >= trie.depth[node]
    weight, count = tree.self_weight[kept] * own, tree.self_count[kept] * own
    return WeightedTree(Trie(parent, trie.label[kept], trie.labels), weight, count, tree.unit), kept
