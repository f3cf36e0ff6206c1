"""IciclePane: folded stacks as an icicle that is walked by keyboard."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from nsys_tui.model.tree import ROOT
from nsys_tui.render.icicle import Drawn, Icicle, draw_icicle, lay_out
from nsys_tui.ui.saving import Saving, save
from nsys_tui.ui.widgets.frame import Framed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from textual import events

    from nsys_tui.model.events import Int64
    from nsys_tui.model.tree import Trie, WeightedTree
    from nsys_tui.ui.front import FrontScreen
    from nsys_tui.ui.host import Host


class IciclePane(Framed, can_focus=True):
    """Draws a tree; the selected frame is always visible."""

    app: Host

    class Moved(Message):
        """Another frame was selected, or the zoom changed."""

        def __init__(self, node: int) -> None:
            super().__init__()
            self.node = node

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.stacks: WeightedTree | None = None
        self.icicle: Icicle | None = None
        self.root = ROOT
        self.selected = ROOT
        self.matches: NDArray[np.bool_] | None = None
        self.inks: NDArray[np.integer] | None = None
        """Ink of each node; None colours by the frame's name."""
        self._skip = 0
        self._drawn: tuple[object, Drawn] | None = None

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
        self.matches, self._skip, self._drawn = None, 0, None
        self.refresh()

    def mark(self, matches: NDArray[np.bool_] | None) -> None:
        """Underlines frames."""
        self.matches, self._drawn = matches, None
        self.refresh()

    def label(self, stacks: WeightedTree, node: int) -> str:
        """Text of a frame with its share of the whole."""
        trie, weight = stacks.trie, stacks.weight
        name = trie.labels[trie.label[node]] if node else "all"
        return f"{name} {100 * int(weight[node]) / max(int(weight[ROOT]), 1):.0f}%"

    def select(self, node: int) -> None:
        """Moves to a frame; zooms out if it lies outside what is shown."""
        if self.stacks is None or self.icicle is None:
            return
        trie = self.stacks.trie
        while self.root != ROOT and not self._inside(self.icicle, trie, node):
            self.root = int(trie.parent[self.root])
        self.selected = node
        depth = self._depth(trie, node)
        height = max(self.size.height, 1)
        self._skip = min(max(self._skip, depth - height + 1), depth)
        self.refresh()
        self.post_message(self.Moved(node))

    def zoom(self, node: int) -> None:
        """Makes one frame as wide as the pane."""
        self.root, self._skip = node, 0
        self.select(node)

    def zoom_out(self) -> bool:
        """One zoom back; False where nothing was zoomed."""
        if self.root == ROOT or self.stacks is None:
            return False
        self.root, self._skip = int(self.stacks.trie.parent[self.root]), 0
        self.select(self.selected)
        return True

    def _depth(self, trie: Trie, node: int) -> int:
        return int(trie.depth[node] - trie.depth[self.root])

    def _inside(self, icicle: Icicle, trie: Trie, node: int) -> bool:
        left, right = icicle.left, icicle.right
        inside = left[self.root] <= left[node] and right[node] <= right[self.root]
        return bool(inside) and self._depth(trie, node) >= 0

    def render_line(self, y: int) -> Strip:
        """One level of frames."""
        width, inks = self.size.width, self.app.inks
        if self.icicle is None or self.stacks is None:
            return Strip.blank(width, inks[0])
        drawn = self._draw(self.icicle, self.stacks, width, self.size.height)
        return Strip([Segment(text, inks[code]) for text, code in drawn.rows[y].runs()], width)

    def _draw(self, icicle: Icicle, stacks: WeightedTree, width: int, height: int) -> Drawn:
        inks = self.app.inks
        key = (width, height, self.root, self._skip, self.selected, id(inks), self.app.ascii)
        if self._drawn is None or self._drawn[0] != key:
            drawn = draw_icicle(
                icicle,
                width,
                height,
                self.app.glyphs,
                partial(self.label, stacks),
                root=self.root,
                skip=self._skip,
                selected=self.selected,
                matches=self.matches,
                inks=self.inks,
            )
            self._drawn = (key, drawn)
        return self._drawn[1]

    def action_stacks_move_up(self) -> None:
        """To the caller."""
        if self.stacks is not None and self.selected != self.root:
            self.select(int(self.stacks.trie.parent[self.selected]))

    def action_stacks_move_down(self) -> None:
        """To the heaviest callee."""
        if self.stacks is None:
            return
        children = self.stacks.trie.children_of(self.selected)
        if len(children) and int(self.stacks.weight[children].max()) > 0:
            self.select(int(children[np.argmax(self.stacks.weight[children])]))

    def action_stacks_move_left(self) -> None:
        """To the frame at the left on the same level."""
        self._beside(-1)

    def action_stacks_move_right(self) -> None:
        """To the frame at the right on the same level."""
        self._beside(1)

    def _beside(self, step: int) -> None:
        if self.icicle is None or self.stacks is None or self.selected == self.root:
            return
        level = self.icicle.below(self.root, self._depth(self.stacks.trie, self.selected))
        place = int(np.flatnonzero(level == self.selected)[0]) + step
        if 0 <= place < len(level):
            self.select(int(level[place]))

    def action_nav_open(self) -> None:
        """Zooms to the selected frame."""
        self.zoom(self.selected)

    def action_export_view(self) -> None:
        """Writes the picture, or its stacks as text."""
        screen = cast("FrontScreen", self.screen)
        name = f"{Path(screen.session.name).stem}.{screen.SCREEN}.svg"
        save(self.app, Saving("Write the flame graph", name, screen.writers()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There may be nothing to write."""
        if action == "export_view":
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
