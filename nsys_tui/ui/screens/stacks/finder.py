"""Frames of the icicle by name: the same frame elsewhere, and a regular expression over all."""

from __future__ import annotations

import re

import numpy as np
from textual.getters import query_one

from nsys_tui.analysis.stacks import views as stack_views
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Indices
from nsys_tui.model.tree import ROOT
from nsys_tui.patterns import compiled
from nsys_tui.ui.dialogs.picker import Prompt
from nsys_tui.ui.screens.result import ResultScreen
from nsys_tui.ui.screens.stacks.panes import Shown
from nsys_tui.ui.widgets.icicle import IciclePane
from nsys_tui.units import format_share, plural


class FrameFinder(ResultScreen[Shown | NoDataError]):
    """Actions that look for frames."""

    def __init__(self) -> None:
        super().__init__()
        self.pattern = ""
        """What is looked for; empty for nothing."""
        self._hits: Indices = np.empty(0, np.intp)

    icicle = query_one("#icicle", IciclePane)
    """The picture of the stacks."""

    def action_stacks_same(self) -> None:
        """The next place of the same frame, by weight."""
        pane = self.icicle
        if pane.stacks is not None:
            trie = pane.stacks.trie
            same = np.flatnonzero(trie.label == trie.label[pane.selected])
            self._go_to(same[np.argsort(-pane.stacks.weight[same], kind="stable")])

    def _go_to(self, nodes: Indices, step: int = 1) -> None:
        pane = self.icicle
        if not len(nodes):
            return
        here = np.flatnonzero(nodes == pane.selected)
        place = (int(here[0]) + step) % len(nodes) if len(here) else 0
        pane.select(int(nodes[place]))

    def action_find_open(self) -> None:
        """Asks for a regular expression over frames."""

        def done(text: str) -> None:
            self.pattern = text
            self.search_again()
            self._go_to(self._hits, 0)

        hint = "regular expression; empty clears"
        self.app.ask(Prompt("Find frames", hint, self.pattern, compiled), done)

    def search_again(self) -> None:
        """Marks what fits in the present stacks."""
        pane = self.icicle
        if pane.stacks is None:
            return
        if not self.pattern:
            self._hits = np.empty(0, np.intp)
            pane.mark(None)
            pane.post_message(IciclePane.Moved(pane.selected))
            return
        test = re.compile(self.pattern, re.IGNORECASE)
        trie = pane.stacks.trie
        fits = np.array([bool(text) and test.search(text) is not None for text in trie.labels])
        matches = fits[trie.label]
        hits = np.flatnonzero(matches)
        self._hits = hits[np.argsort(-pane.stacks.weight[hits], kind="stable")]
        pane.mark(matches)
        pane.post_message(IciclePane.Moved(pane.selected))

    def found_text(self) -> str:
        """What the search found, for the facts; empty without one."""
        pane = self.icicle
        if not self.pattern or pane.stacks is None or pane.matches is None:
            return ""
        weight = stack_views.matched_weight(pane.stacks, pane.matches)
        share = format_share(weight, int(pane.stacks.weight[ROOT]))
        here = np.flatnonzero(self._hits == pane.selected)
        place = f"{here[0] + 1} of " if len(here) else ""
        frames = plural(len(self._hits), "frame")
        return f"/{self.pattern}: {place}{frames}, {pane.stacks.amount(weight)}, {share} of all"

    def action_find_next(self) -> None:
        """Next match by weight."""
        self._go_to(self._hits)

    def action_find_previous(self) -> None:
        """Previous match by weight."""
        self._go_to(self._hits, -1)
