"""The flame graph of a difference: B's GPU time by NVTX path, painted by the change from A."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from nsys_tui.analysis.compare.answer import DOCUMENT
from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.stacks import DifferentialStacks, differential_stacks
from nsys_tui.errors import NoDataError
from nsys_tui.export.folded import differential_graph, differential_lines
from nsys_tui.model.tree import WeightedTree
from nsys_tui.render.cells import Ink
from nsys_tui.text.compare import as_markdown
from nsys_tui.text.documents import document_text
from nsys_tui.ui.saving import Writer, text_writer
from nsys_tui.ui.screens.compare.pair import Result
from nsys_tui.ui.widgets.icicle import IciclePane


def comparison_writers(comparison: Comparison) -> dict[str, Writer]:
    """The whole comparison; other suffixes hold the table that is shown."""
    return {
        ".md": text_writer(lambda: [as_markdown(comparison)], 0),
        ".json": text_writer(
            lambda: document_text(DOCUMENT, comparison, None, comparison.notes), 0
        ),
    }


def flame_writers(stacks: DifferentialStacks, title: str) -> dict[str, Writer]:
    """The flame graph of the difference, and its stacks with both weights."""
    return {
        ".svg": text_writer(lambda: [differential_graph(stacks, title)], 0),
        ".folded": text_writer(lambda: (f"{line}\n" for line in differential_lines(stacks)), 0),
    }


def difference_of(result: Result) -> DifferentialStacks | NoDataError:
    """Folds the stacks of both ends; for a worker."""
    first, second = result.plans
    if first is None or second is None:
        return NoDataError("a baseline holds no stacks")
    try:
        return differential_stacks(first, second)
    except NoDataError as error:
        return error


class DifferenceIcicle(IciclePane):
    """Blue or ``<`` where B takes less time than A, orange or ``>`` where it takes more."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "stacks_move_left", show=False),
        Binding("right,l", "stacks_move_right", show=False),
        Binding("up,k", "stacks_move_up", show=False),
        Binding("down,j", "stacks_move_down", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.difference: DifferentialStacks | None = None
        self.result: Result | None = None
        """The comparison whose stacks are folded, or being folded."""

    def begin(self, result: Result) -> bool:
        """Says that a comparison's stacks are folded; False where they are already, or never."""
        if result is self.result:
            return False
        has_stacks = None not in result.plans
        said = "folding ..." if has_stacks else "a baseline holds no stacks"
        self.heading("Flame graph of the difference", said)
        self.result = result if has_stacks else None
        return has_stacks

    def show_difference(
        self, difference: DifferentialStacks | NoDataError, threshold: float
    ) -> None:
        """Shows B's tree; changes below the threshold are painted as none."""
        if isinstance(difference, NoDataError):
            self.heading("Flame graph of the difference", str(difference))
            return
        self.difference = difference
        per = f"{difference.steps.replace('steady ', '')}, " if difference.by_step else ""
        count, lost = difference.gone
        gone = f" (not in it: {count} of A, {difference.a.amount(lost)})" if count else ""
        what = (
            "CPU samples of B by stack" if difference.is_sampled else "GPU time of B by NVTX path"
        )
        palette = self.app.palette
        worse = palette.colour("worse") if palette.kind == "ansi" else "orange"
        signs = f"blue: less, {worse}: more" if self.app.glyphs.solid else "<<: less, >>: more"
        self.heading(f"{what}{gone}", f"{per}{signs}")
        inks = np.full(len(difference.change), int(Ink.MUTED))
        inks[difference.change <= -threshold] = Ink.BETTER
        inks[difference.change >= threshold] = Ink.WORSE
        self.show(difference.b)
        self.inks = inks

    def label(self, stacks: WeightedTree, node: int) -> str:
        """Name of a frame and how much time it takes more or less."""
        both = self.difference
        if both is None:
            return super().label(stacks, node)
        name = both.trie.labels[both.trie.label[node]] if node else "all"
        return f"{name} {both.difference(node)}"
