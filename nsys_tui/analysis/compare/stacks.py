"""GPU time by NVTX path on two sides, in one tree: what grew and what shrank, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.compare.comparison import aligned
from nsys_tui.analysis.compare.plan import Plan
from nsys_tui.analysis.stacks.folding import FrameRules, gpu_stacks, rewrite
from nsys_tui.model.arrays import Float64, Int64
from nsys_tui.model.groups import sums
from nsys_tui.model.tree import Trie, TrieBuilder, WeightedTree
from nsys_tui.names import across, normalise_nvtx

_NUMBERED: Final = FrameRules(rename=(normalise_nvtx,))


@dataclass(frozen=True, eq=False)
class DifferentialStacks:
    """Folded stacks of both sides over one trie; weights are ns, per step where ``by_step``."""

    a: WeightedTree
    b: WeightedTree
    by_step: bool
    """Whether weights are means per steady step, rounded to whole ns."""

    @property
    def trie(self) -> Trie:
        """The frames of both sides, digits of range names as ``#``."""
        return self.a.trie

    def folded(self) -> Iterator[tuple[tuple[str, ...], int, int]]:
        """(frames, A, B) of every stack that has weight of its own on either side."""
        a, b = self.a.self_weight, self.b.self_weight
        for node in np.flatnonzero((a != 0) | (b != 0)).tolist():
            yield self.trie.shown_path(node), int(a[node]), int(b[node])

    @cached_property
    def change(self) -> Float64:
        """Of each node from -1 (gone) over 0 (the same) to 1 (new): a part of the larger weight."""
        a, b = self.a.weight, self.b.weight
        return np.asarray((b - a) / np.maximum(np.maximum(a, b), 1), np.float64)

    @property
    def gone(self) -> tuple[int, int]:
        """Stacks of A that B does not have: how many, and their weight."""
        lost = (self.a.self_weight > 0) & (self.b.self_weight == 0)
        return int(lost.sum()), int(self.a.self_weight[lost].sum())


def differential_stacks(a: Plan, b: Plan) -> DifferentialStacks:
    """Folds both sides.

    Args:
        a: what is folded of A; the steady steps where both have enough, else all of it.
        b: the same of B.

    Raises:
        NoDataError: a side has no GPU work.
    """
    plans = aligned(a, b)
    builder = TrieBuilder()
    folded = [_folded(plan) for plan in plans]
    nodes = [_moved(tree.trie, builder) for tree in folded]
    trees = [
        _placed(builder, tree, moved, len(plan.steps) if plan.by_step else 1)
        for tree, moved, plan in zip(folded, nodes, plans, strict=True)
    ]
    return DifferentialStacks(trees[0], trees[1], plans[0].by_step)


def _folded(plan: Plan) -> WeightedTree:
    return gpu_stacks(plan.report, plan.part, rules=_NUMBERED, names=across(plan.style)).tree


def _moved(trie: Trie, builder: TrieBuilder) -> Int64:
    """Node in ``builder`` of each node of a trie."""
    return rewrite(trie, builder, FrameRules(), np.arange(len(trie)))


def _placed(builder: TrieBuilder, tree: WeightedTree, nodes: Int64, steps: int) -> WeightedTree:
    """A side's weights on the common trie, divided by its steps."""
    weight = sums(nodes, tree.self_weight, len(builder))
    count = sums(nodes, tree.self_count, len(builder))
    if steps > 1:
        weight, count = np.rint(weight / steps).astype(np.int64), -(-count // steps)
    return WeightedTree(builder.trie(), weight, count, tree.unit)
