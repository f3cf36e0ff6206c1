"""Columnar trees of stack frames: NVTX paths, call stacks, anything that is drawn as an icicle."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers
from nsys_tui.model.groups import by_code, factorise, sums
from nsys_tui.units import format_count, format_duration

ROOT = 0
MOST_FRAMES: Final = 500
"""Frames of one path in texts: those of a chain of n ranges grow with the square of n."""
_HALF: Final = MOST_FRAMES // 2
_LABEL_BITS: Final = 32
_LABEL_MASK: Final = (1 << _LABEL_BITS) - 1


@dataclass(frozen=True, eq=False)
class Trie:
    """Distinct paths of frames; node 0 is the empty path and parents come before children."""

    parent: Int32
    """Parent of each node, -1 for the root."""
    label: Int32
    """Index into ``labels``; 0 for the root."""
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def depth(self) -> Int32:
        """Depth of each node, 0 for the root."""
        return self.path_sums((self.parent >= 0).astype(np.int64)).astype(np.int32)

    @cached_property
    def levels(self) -> list[Indices]:
        """Nodes of each depth, in id order."""
        order, edges = by_code(self.depth, int(self.depth.max()) + 1)
        return [order[lo:hi] for lo, hi in itertools.pairwise(edges)]

    def path(self, node: int, most: int | None = None) -> tuple[str, ...]:
        """Frames from the outermost, or the last ``most``, to the node's own; none for the root."""
        frames: list[str] = []
        parent, label, labels = self.parent.item, self.label.item, self.labels
        while node > ROOT and len(frames) != most:
            frames.append(labels[label(node)])
            node = parent(node)
        return tuple(reversed(frames))

    def shown_path(self, node: int) -> tuple[str, ...]:
        """``shortened(path)`` that looks at no frame between."""
        depth = int(self.depth[node])
        if depth <= MOST_FRAMES:
            return self.path(node)
        innermost = self.path(node, _HALF - 1)
        return (*self.path(self._trunk[node]), _left_out(depth), *innermost)

    @cached_property
    def _trunk(self) -> Int64:
        """The node on the path to each that ends the outermost frames of a cut path."""
        return self.path_sums(np.where(self.depth == _HALF, np.arange(len(self)), 0))

    def _ancestors(self) -> Iterator[tuple[Indices, Int32]]:
        """Nodes with an ancestor 1, 2, 4 ... steps above, and that ancestor.

        As many rounds as the depth has bits: a path of a million frames takes twenty, and 100 000
        nodes of ordinary depth 3 ms, where a pass for each level takes 14 ms.
        """
        above = self.parent
        while len(nodes := np.flatnonzero(above >= 0)):
            yield nodes, above[nodes]
            further = np.full(len(above), -1, np.int32)
            further[nodes] = above[above[nodes]]
            above = further

    def summed(self, weight: Int64) -> Int64:
        """Adds every node's value to all its ancestors: total time from self time."""
        total = weight.copy()
        for nodes, above in self._ancestors():
            np.add.at(total, above, total[nodes])
        return total

    def path_sums(self, weight: Integers | Bool) -> Int64:
        """Sum of the values along the path to each node, its own included."""
        total = weight.astype(np.int64)
        for nodes, above in self._ancestors():
            total[nodes] += total[above]
        return total

    def least(self, values: Int64) -> Int64:
        """Smallest value of each node's subtree, its own included."""
        least = values.copy()
        for nodes, above in self._ancestors():
            np.minimum.at(least, above, least[nodes])
        return least

    def below(self, chosen: Integers | Bool | int) -> Bool:
        """Nodes that are chosen (a mask, or numbers of nodes) or have a chosen one above them."""
        marks = np.zeros(len(self), np.int64)
        marks[chosen] = 1
        return self.path_sums(marks) > 0

    @cached_property
    def children(self) -> tuple[Indices, Indices]:
        """Nodes sorted by parent, and where each parent's children begin (length m + 1)."""
        order, edges = by_code(self.parent + 1, len(self.parent) + 1)
        return order, edges[1:]

    def children_of(self, node: int) -> Indices:
        """Children of one node in id order."""
        order, edges = self.children
        return order[edges[node] : edges[node + 1]]


def shortened(frames: Sequence[str]) -> tuple[str, ...]:
    """Frames of a path, of more than ``MOST_FRAMES`` the outermost and innermost, counted."""
    if len(frames) <= MOST_FRAMES:
        return tuple(frames)
    return (*frames[:_HALF], _left_out(len(frames)), *frames[1 - _HALF :])


def _left_out(depth: int) -> str:
    return f"[... {depth - 2 * _HALF + 1} frames]"


class TrieBuilder:
    """Grows a ``Trie``: interns labels and (parent, label) pairs."""

    def __init__(self) -> None:
        self._labels: dict[str, int] = {"": 0}
        self._nodes: dict[int, int] = {}
        self._parent = [-1]
        self._label = [0]

    def __len__(self) -> int:
        return len(self._parent)

    def label(self, text: str) -> int:
        """The code of a frame's text."""
        return self._labels.setdefault(text, len(self._labels))

    def child(self, parent: int, label: int) -> int:
        """The node for a frame below ``parent``."""
        key = parent << _LABEL_BITS | label
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self._parent)
            self._parent.append(parent)
            self._label.append(label)
        return node

    def add(self, frames: Iterable[str], below: int = ROOT) -> int:
        """The node of a whole path of texts."""
        for frame in frames:
            below = self.child(below, self.label(frame))
        return below

    def children(self, parents: Int64, labels: Int64) -> Int64:
        """``child`` for many pairs at once; the loop runs over distinct pairs only."""
        inverse, distinct = factorise((parents << _LABEL_BITS) | labels)
        keys = distinct.tolist()
        new = [key for key in keys if key not in self._nodes]
        self._nodes.update(zip(new, range(len(self), len(self) + len(new)), strict=True))
        self._parent += [key >> _LABEL_BITS for key in new]
        self._label += [key & _LABEL_MASK for key in new]
        nodes = np.fromiter(map(self._nodes.__getitem__, keys), np.int64, len(keys))
        return nodes[inverse]

    def graft(self, parent: Integers, labels: Integers) -> Int64:
        """Adds the nodes of another tree, parents before their children.

        Args:
            parent: parent of each node in the other tree; that of its root, the first, is -1.
            labels: code here of each node's frame; 0 leaves the frame out, what is below it moves
                up; -1 leaves out whatever is below too.

        Returns:
            The node here of each node, int64 (n,); -1 where it is left out with all below.
        """
        nodes = [ROOT]
        for place, label in zip(parent[1:].tolist(), labels[1:].tolist(), strict=True):
            above = nodes[place]
            if label > 0 and above >= 0:
                above = self.child(above, label)
            nodes.append(above if label >= 0 else -1)
        return np.array(nodes, np.int64)

    def trie(self) -> Trie:
        """The tree as it stands."""
        return Trie(
            np.array(self._parent, np.int32),
            np.array(self._label, np.int32),
            tuple(self._labels),
        )


@dataclass(frozen=True, eq=False)
class WeightedTree:
    """Folded stacks: a trie with what was measured at each node's own frame."""

    trie: Trie
    self_weight: Int64
    """Weight of the stacks that end at each node (ns or samples)."""
    self_count: Int64
    """Operations, calls or samples that end at each node."""
    unit: str
    """``ns`` or ``samples``."""

    @cached_property
    def weight(self) -> Int64:
        """Self weight plus that of all descendants."""
        return self.trie.summed(self.self_weight)

    @cached_property
    def count(self) -> Int64:
        """Self count plus that of all descendants."""
        return self.trie.summed(self.self_count)

    def amount(self, weight: int) -> str:
        """A weight as text: ``3.2 ms``, ``12 samples``."""
        return format_duration(weight) if self.unit == "ns" else f"{format_count(weight)} samples"


def weighted(builder: TrieBuilder, nodes: Int64, weights: Int64, unit: str) -> WeightedTree:
    """Folds stacks given by their node and weight into a tree.

    Args:
        builder: the trie that the nodes belong to.
        nodes: node of each stack, int64 (n,).
        weights: weight of each stack, int64 (n,).
        unit: ``ns`` or ``samples``.
    """
    size = len(builder)
    count = np.bincount(nodes, minlength=size).astype(np.int64)
    return WeightedTree(builder.trie(), sums(nodes, weights, size), count, unit)
