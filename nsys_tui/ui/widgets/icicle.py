"""IciclePane: folded stacks as an icicle that is walked by keyboard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from nsys_tui.model.tree import ROOT, Trie, WeightedTree
from nsys_tui.render.cells import MUTED, Cells
from nsys_tui.render.icicle import Icicle, draw_icicle, lay_out
from nsys_tui.ui.saving import Saving, save
from nsys_tui.ui.widgets.frame import DrawnPane
from nsys_tui.units import format_share

if TYPE_CHECKING:
    from textual import events

    from nsys_tui.model.arrays import Bool, Int64, Integers
    from nsys_tui.ui.front import FrontScreen
    from nsys_tui.ui.host import Host

CALLERS: Final = 3
"""At most this part of the height shows callers of the frame that is zoomed to."""
TOLD: Final = 0.005
"""Share of the whole from which on a frame says what it took itself."""
LONG: Final = 12
"""Characters of a caller's name from which on a frame does not repeat them."""


def _below_caller(trie: Trie, node: int) -> str:
    """Name of a frame; what it repeats of a long name that stands above it is left out."""
    if not node:
        return "all"
    name, above = (trie.labels[trie.label[n]] for n in (node, int(trie.parent[node])))
    rest = name.removeprefix(above)
    repeats = (
        len(above) >= LONG and rest != name and rest and not (rest[0].isalnum() or rest[0] == "_")
    )
    return f"..{rest}" if repeats else name


class IciclePane(DrawnPane, can_focus=True):
    """Draws a tree; the selected frame is always visible."""

    app: Host

    @dataclass
    class Moved(Message):
        """Another frame was selected, or the zoom changed."""

        node: int

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.stacks: WeightedTree | None = None
        self.icicle: Icicle | None = None
        self.root = ROOT
        self.selected = ROOT
        self.matches: Bool | None = None
        self.inks: Integers | None = None
        """Ink of each node; None colours by the frame's name."""
        self.tells_own = True
        """Whether frames say what they took themselves: callers upside down took nothing."""
        self.message: tuple[str, ...] = ()
        """Said instead of stacks."""
        self._zoomed: list[int] = []
        """What filled the pane before it was zoomed."""
        self._skip = 0

    def show(
        self, tree: WeightedTree, order: Int64 | None = None, laid: Icicle | None = None
    ) -> None:
        """Shows another tree, zoomed out.

        Args:
            tree: the stacks.
            order: when each frame comes among its siblings; the heaviest first by default.
            laid: the same laid out, where a worker has done so.
        """
        self.stacks = tree
        self.icicle = laid or lay_out(tree.trie, tree.weight, order)
        self.root = self.selected = ROOT
        self.matches, self._skip, self._zoomed = None, 0, []
        self.redraw()

    def say(self, *lines: str) -> None:
        """Says why there are no stacks."""
        self.stacks = self.icicle = None
        self.message = lines
        self.refresh()

    def mark(self, matches: Bool | None) -> None:
        """Underlines frames."""
        self.matches = matches
        self.redraw()

    def label(self, stacks: WeightedTree, node: int) -> str:
        """Text of a frame with its share of the whole, and what it took itself beside others."""
        mine, self_weight = int(stacks.weight[node]), int(stacks.self_weight[node])
        whole = max(int(stacks.weight[ROOT]), 1)
        beside = (
            f" (self {format_share(self_weight, whole)})"
            if self.tells_own and mine > self_weight >= TOLD * whole
            else ""
        )
        return f"{_below_caller(stacks.trie, node)} {format_share(mine, whole)}{beside}"

    def select(self, node: int) -> None:
        """Moves to a frame; zooms out if it lies outside what is shown."""
        if self.stacks is None or self.icicle is None:
            return
        trie = self.stacks.trie
        while not (self._inside(self.icicle, self.root, node) or self._calls_root(node)):
            self.root = int(trie.parent[self.root])
        self.selected = node
        depth = int(trie.depth[node])
        height = max(self.size.height, 1)
        self._skip = min(max(self._skip, depth - height + 1), depth)
        self.refresh()
        self.post_message(self.Moved(node))

    def zoom(self, node: int) -> None:
        """Makes one frame as wide as the pane, below the nearest of its callers."""
        if node != self.root:
            self._zoomed.append(self.root)
        self._fill_with(node)
        self.select(node)

    def zoom_out(self) -> bool:
        """To what filled the pane before, or further out; False where nothing was zoomed."""
        if self.root == ROOT or self.stacks is None:
            return False
        before = [node for node in self._zoomed if self._calls_root(node)]
        self._zoomed = before[:-1]
        self._fill_with(before[-1] if before else ROOT)
        self.select(self.selected)
        return True

    def _fill_with(self, node: int) -> None:
        self.root = node
        depth = 0 if self.stacks is None else int(self.stacks.trie.depth[node])
        self._skip = max(0, depth - self.size.height // CALLERS)

    def _inside(self, icicle: Icicle, root: int, node: int) -> bool:
        """Whether a node is another one or lies below it."""
        left, right, depth = icicle.left, icicle.right, icicle.trie.depth
        inside = left[root] <= left[node] and right[node] <= right[root]
        return bool(inside and depth[node] >= depth[root])

    def _calls_root(self, node: int) -> bool:
        """Whether a node is a caller of the one that fills the width."""
        icicle = self.icicle
        return icicle is not None and node != self.root and self._inside(icicle, node, self.root)

    def render_line(self, y: int) -> Strip:
        """One level of frames, or why there are none."""
        width, inks = self.size.width, self.app.inks
        if self.stacks is not None:
            return super().render_line(y)
        said = dict(enumerate(self.message, 2)).get(y, "")
        return Strip([Segment(f"   {said}", inks[MUTED])]).adjust_cell_length(width, inks[0])

    def depends_on(self) -> tuple[object, ...]:
        """Which frames are seen."""
        return self.root, self._skip, self.selected

    def draw(self) -> Cells:
        """The levels in view."""
        if self.icicle is None or self.stacks is None:
            return []
        return draw_icicle(
            self.icicle,
            *self.size,
            self.app.glyphs,
            partial(self.label, self.stacks),
            root=self.root,
            skip=self._skip,
            selected=self.selected,
            matches=self.matches,
            inks=self.inks,
        )

    def action_stacks_move_up(self) -> None:
        """To the caller."""
        if self.stacks is not None and self.selected != ROOT:
            self.select(int(self.stacks.trie.parent[self.selected]))

    def action_stacks_move_down(self) -> None:
        """To the heaviest callee; of a caller of the zoomed frame, towards that."""
        if self.stacks is None:
            return
        trie, weight, node = self.stacks.trie, self.stacks.weight, self.root
        if self._calls_root(self.selected):
            while int(trie.parent[node]) != self.selected:
                node = int(trie.parent[node])
            self.select(node)
            return
        children = trie.children_of(self.selected)
        if len(children) and int(weight[children].max()) > 0:
            self.select(int(children[np.argmax(weight[children])]))

    def _beside(self, step: int) -> None:
        """To the frame at the left (-1) or right (1) on the same level."""
        if self.icicle is None or self.stacks is None:
            return
        level = self.icicle.seen(self.root, int(self.stacks.trie.depth[self.selected]))
        place = int(np.flatnonzero(level == self.selected)[0]) + step
        if 0 <= place < len(level):
            self.select(int(level[place]))

    action_stacks_move_left = partialmethod(_beside, -1)
    action_stacks_move_right = partialmethod(_beside, 1)

    def action_nav_open(self) -> None:
        """Zooms to the selected frame."""
        self.zoom(self.selected)

    def action_export_view(self) -> None:
        """Writes the picture, or its stacks as text."""
        screen = cast("FrontScreen", self.screen)
        name = f"{Path(screen.session.name).stem}.{screen.SCREEN}.svg"
        save(self.app, Saving("Write the flame graph", name, screen.writers()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without stacks there is nothing to choose or to write."""
        if action.startswith(("export_", "nav_open", "stacks_move", "stacks_same")):
            return self.stacks is not None and int(self.stacks.weight[ROOT]) > 0
        return super().check_action(action, parameters)

    def on_click(self, event: events.Click) -> None:
        """A click selects, a double click zooms."""
        spot = event.get_content_offset(self)
        if spot is None or self.icicle is None:
            return
        node = self.icicle.node_at(self.root, self.size.width, spot.x, spot.y + self._skip)
        if node is not None:
            self.select(node)
            if event.chain > 1:
                self.zoom(node)
