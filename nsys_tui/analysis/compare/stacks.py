"""GPU time by NVTX path on two sides, in one tree: what grew and what shrank, and where.

Where a side has no GPU work, CPU samples of both by stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.compare.comparison import aligned
from nsys_tui.analysis.compare.plan import Plan
from nsys_tui.analysis.stacks.folding import cpu_stacks, gpu_stacks
from nsys_tui.analysis.stacks.frame_rules import FrameRules, rewrite
from nsys_tui.model.arrays import Float64, Int64
from nsys_tui.model.groups import sums
from nsys_tui.model.tree import Trie, TrieBuilder, WeightedTree
from nsys_tui.names import across, normalise_nvtx
from nsys_tui.units import format_difference

_NUMBERED: Final = FrameRules(rename=(normalise_nvtx,))


@dataclass(frozen=True, eq=False)
class DifferentialStacks:
    """Folded stacks of both sides over one trie; weights are ns, or samples."""

    a: WeightedTree
    b: WeightedTree
    by_step: bool
    """Whether weights are of steady steps: means, rounded to whole ns; samples of as many steps."""

    @property
    def is_sampled(self) -> bool:
        """Whether CPU samples are folded, not GPU time."""
        return self.a.unit == "samples"

    @property
    def steps(self) -> str:
        """What of the reports it is of, in words; empty = all."""
        return ("in as many steady steps" if self.is_sampled else "per steady step") * self.by_step

    def difference(self, node: int) -> str:
        """How much more B has at a node, with a sign."""
        delta = int(self.b.weight[node] - self.a.weight[node])
        return f"{delta:+,} samples" if self.is_sampled else format_difference(delta)

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
        NoDataError: a side has no GPU work, and one no samples.
    """
    plans = aligned(a, b)
    builder = TrieBuilder()
    if all(len(plan.report.operations) for plan in plans) or not all(
        len(plan.report.samples) for plan in plans
    ):
        folded = [_folded(plan) for plan in plans]
    else:
        count = min(len(plan.steps) for plan in plans)
        folded = [cpu_stacks(plan.report, _first(plan, count).part).tree for plan in plans]
    nodes = [_moved(tree.trie, builder) for tree in folded]
    trees = [
        _placed(builder, tree, moved, len(plan.steps) if plan.by_step and tree.unit == "ns" else 1)
        for tree, moved, plan in zip(folded, nodes, plans, strict=True)
    ]
    return DifferentialStacks(trees[0], trees[1], plans[0].by_step)


def _folded(plan: Plan) -> WeightedTree:
    return gpu_stacks(plan.report, plan.part, rules=_NUMBERED, names=across(plan.style)).tree


def _first(plan: Plan, count: int) -> Plan:
    """With the first steady steps alone, where there are any."""
    steps = plan.steps
    return replace(plan, steps=replace(steps, start=steps.start[:count], end=steps.end[:count]))


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
