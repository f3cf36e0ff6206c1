"""The flame graph of a difference: B's GPU time by NVTX path, painted by the change from A."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from nsys_tui.render.cells import Ink
from nsys_tui.ui.widgets.icicle import IciclePane
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.stacks import DifferentialStacks
    from nsys_tui.model.tree import WeightedTree


class DifferenceIcicle(IciclePane):
    """Blue where B takes less time than A, orange where it takes more; the words say how much."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "stacks_move_left", show=False),
        Binding("right,l", "stacks_move_right", show=False),
        Binding("up,k", "stacks_move_up", show=False),
        Binding("down,j", "stacks_move_down", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.difference: DifferentialStacks | None = None

    def show_difference(self, stacks: DifferentialStacks, threshold: float) -> None:
        """Shows B's tree; changes below the threshold are painted as none."""
        self.difference = stacks
        inks = np.full(len(stacks.change), int(Ink.MUTED))
        inks[stacks.change <= -threshold] = Ink.BETTER
        inks[stacks.change >= threshold] = Ink.WORSE
        self.show(stacks.b)
        self.inks = inks

    def label(self, stacks: WeightedTree, node: int) -> str:
        """Name of a frame and how much time it takes more or less."""
        both = self.difference
        if both is None:
            return super().label(stacks, node)
        name = both.trie.labels[both.trie.label[node]] if node else "all"
        delta = int(both.b.weight[node] - both.a.weight[node])
        return f"{name} {'+' if delta > 0 else ''}{format_duration(delta, 3)}"
