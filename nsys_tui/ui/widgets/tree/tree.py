"""VirtualTree: a tree of any size with columns; only the lines in view are made into text.

The lines of a columnar tree with folds, sorted siblings and hidden rests, in the grid of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from textual import events

from nsys_tui.analysis.timeline.search import matcher
from nsys_tui.analysis.tree_order import TreeOrder, tree_order
from nsys_tui.model.arrays import Bool, Int64, Integers
from nsys_tui.model.table import Column, Table, Unit
from nsys_tui.model.tree import ROOT, Trie, TrieBuilder
from nsys_tui.ui.widgets.table.columns import Lazy, TableColumn, table_of
from nsys_tui.ui.widgets.table.grid import HEADER
from nsys_tui.ui.widgets.table.rows import Arrangement, sorted_rows
from nsys_tui.ui.widgets.table.sifted import GridView, SiftedGrid
from nsys_tui.ui.widgets.tree.rows import (
    ancestors,
    first_folds,
    owner_of,
    rest_of,
    tree_lines,
    with_ancestors,
)

PATH_SEPARATOR: Final = " / "
LEAF: Final = "-"
INDENT: Final = 2
NAME_ROOM: Final = 16
"""Cells that indentation leaves to the name, however deep it is."""
FIRST_LINES: Final = 20
"""Nodes are opened at first as long as no more lines than these are seen."""


@dataclass(frozen=True)
class TreeView(GridView):
    """What a tree needs to look as it did."""

    open: frozenset[int]
    bare: bool
    opened: frozenset[int]


class VirtualTree(SiftedGrid):
    """A columnar tree; its first column holds the names and stays in sight."""

    PINNED: ClassVar[bool] = True
    LINES: ClassVar[str] = "lines"
    bare = False
    """Whether uninteresting nodes are hidden."""
    _opened: frozenset[int] = frozenset()
    """Nodes whose uninteresting children are shown nevertheless."""
    _labels: Sequence[str] = ()
    _unfiltered: Bool | None = None
    """Folds as they were before a filter."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.trie: Trie = TrieBuilder().trie()
        self._order: TreeOrder = tree_order(self.trie)
        self._expanded = self._dull = self._found = self._keep = np.zeros(1, bool)
        self._present = np.ones(1, bool)
        self._lines = np.empty(0, np.int64)

    @property
    def shown(self) -> int:
        """Lines that are seen somewhere."""
        return len(self._lines)

    def row_at(self, position: int) -> int:
        """A node, or the negative number of a line that stands for hidden ones."""
        return int(self._lines[position])

    @property
    def node(self) -> int | None:
        """The node under the cursor; None on a line that stands for hidden ones."""
        row = self.row
        return row if row is not None and row >= 0 else None

    def position_of(self, line: int) -> int | None:
        """Where a line is seen."""
        places = np.flatnonzero(self._lines == line)
        return int(places[0]) if len(places) else None

    def show_tree(
        self,
        trie: Trie,
        labels: Sequence[str],
        columns: Sequence[TableColumn],
        *,
        dull: Bool | None = None,
        present: Bool | None = None,
        weight: Int64 | None = None,
        keep_folds: bool = False,
    ) -> None:
        """Replaces the content; sort, search and filter stay.

        Args:
            trie: the tree; node 0 is not shown.
            labels: text of each node.
            columns: the first one is drawn with folds before it.
            dull: uninteresting nodes; nodes below them are so too.
            present: nodes that are shown at all; all by default.
            weight: the heaviest nodes are opened at first, while all lines fit.
            keep_folds: the nodes are those shown before: folds and cursor stay.
        """
        here = self.header or self.arrangement.sort
        same = keep_folds and len(self._expanded) == len(trie)
        line = self.row if same else None
        self.trie, self._labels, self.columns = trie, labels, columns
        self.size_all = len(trie) - 1
        headers = [column.header for column in columns]
        self.column = headers.index(here) if here in headers else 0
        self._dull = np.zeros(len(trie), bool) if dull is None else dull
        self._present = np.ones(len(trie), bool) if present is None else present
        if not same:
            self._expanded = first_folds(trie, FIRST_LINES, self._present, weight)
            self._unfiltered = None
            self._opened = frozenset()
        self._told = None
        self._sort_nodes()
        self._filter()
        self.seek(self.pattern)
        self.rebuild(line)
        self.choose_column(self.column)

    def _sort_nodes(self) -> None:
        sort = self.arrangement.sort
        keys = next((column.keys() for column in self.columns if column.header == sort), None)
        ranked = None if keys is None else sorted_rows(keys, None, self.arrangement.descending)
        self._order = tree_order(self.trie, ranked)

    def rebuild(self, line: int | None = None) -> None:
        """Makes the lines anew; the cursor goes to ``line``, or stays on its own."""
        wanted = self.row if line is None and self.cursor < self.shown else line
        hidden = np.zeros(len(self.trie), bool)
        if self.bare:
            hidden = self._dull.copy()
            for owner in self._opened:
                hidden[self.trie.children_of(owner)] = False
        self._lines = tree_lines(self.trie, self._order, self._expanded, hidden, self._keep)
        position = self.position_of(wanted) if wanted is not None else None
        if position is not None:
            self.cursor = position
        self.resized()

    def cell(self, row: int, column: TableColumn) -> tuple[str, int]:
        """The name with its folds, or a figure; hidden ones have only a name."""
        first = column is self.columns[0]
        if row < 0:
            return (self._rest_line(owner_of(row)), HEADER) if first else ("", 0)
        if not first:
            return column.text(row), column.ink(row)
        return self._indent(row) + self._sign(row) + column.text(row), column.ink(row)

    def _indent(self, node: int, deeper: int = 0) -> str:
        depth = int(self.trie.depth[node]) - 1 + deeper
        room = max(0, self._slots()[0].width - NAME_ROOM)
        return " " * min(INDENT * depth, room)

    def _sign(self, node: int) -> str:
        if not self._has_children(node):
            return f"{LEAF} "
        return f"{self.glyphs.opened if self._expanded[node] else self.glyphs.closed} "

    def _has_children(self, node: int) -> bool:
        return bool(self._present[self.trie.children_of(node)].any())

    def _rest_line(self, owner: int) -> str:
        children = self.trie.children_of(owner)
        hidden = int(np.count_nonzero(self._dull[children] & self._keep[children]))
        return f"{self._indent(owner, 1)}... {hidden:,} small"

    def is_match(self, row: int) -> bool:
        """Whether the search found the node."""
        return row >= 0 and bool(self._found[row])

    def action_tree_toggle(self) -> None:
        """Opens or closes a node, or shows what a line stands for."""
        row = self.row
        if row is None:
            return
        if row < 0:
            self._open_rest(owner_of(row))
        elif self._has_children(row):
            self._expanded[row] = not self._expanded[row]
            self.rebuild()

    def _open_rest(self, owner: int) -> None:
        self._opened |= {owner}
        first = next(n for n in self.trie.children_of(owner).tolist() if self._dull[n])
        self.rebuild(first)

    def action_tree_expand_subtree(self) -> None:
        """Opens everything below a node; closes it where all is open."""
        node = self.node
        if node is None:
            return
        below = self._order.inside(node, np.arange(len(self.trie)))
        inner = below & (np.bincount(self.trie.parent[1:], minlength=len(self.trie)) > 0)
        self._expanded[below] = not bool(self._expanded[inner].all())
        self.rebuild()

    def action_tree_in(self) -> None:
        """Opens a node; where it is open, goes to its first child."""
        row = self.row
        if row is None or row < 0 or not self._expanded[row]:
            if row is not None and (row < 0 or self._has_children(row)):
                self.action_tree_toggle()
            return
        self.put_cursor(self.cursor + 1)

    def action_tree_out(self) -> None:
        """Closes a node; where it is closed, goes to its parent."""
        row = self.row
        if row is None:
            return
        if row >= 0 and self._expanded[row] and self._has_children(row):
            self.action_tree_toggle()
            return
        above = owner_of(row) if row < 0 else int(self.trie.parent[row])
        position = self.position_of(above) if above > ROOT else None
        if position is not None:
            self.put_cursor(position)

    def action_tree_uninteresting(self) -> None:
        """Hides uninteresting nodes behind counted lines, or shows them again."""
        self.bare = not self.bare
        self._opened = frozenset()
        row = self.row
        if self.bare and row is not None and row >= 0 and self._dull[row]:
            row = self._nearest_kept(row)
        self.rebuild(row)

    def _nearest_kept(self, node: int) -> int:
        above = [node, *ancestors(self.trie, node)]
        kept = [line for line in above if not self._dull[line]]
        return kept[0] if kept else rest_of(ROOT)

    def reveal(self, node: int) -> None:
        """Opens what is above a node and puts the cursor on it."""
        self._expanded[ancestors(self.trie, node)] = True
        if self.bare and self._dull[node]:
            self._opened |= {ROOT, *ancestors(self.trie, node)}
        self.rebuild(node)

    def sift(self, wanted: Arrangement) -> None:
        """Sorts siblings and filters otherwise; the cursor stays on its node."""
        before, self.arrangement = self.arrangement, wanted
        self._sort_nodes()
        if (wanted.pattern, wanted.picks) != (before.pattern, before.picks):
            self._filter()
        self.rebuild()

    def _filter(self) -> None:
        """Finds what the filters keep in the present tree, and opens it."""
        kept = self.arrangement
        chosen = self.finder(kept.pattern)() if kept.pattern else self._present.copy()
        by_header = {column.header: column for column in self.columns}
        for pick in kept.picks:
            if pick.header in by_header:
                chosen &= by_header[pick.header].within(pick.tally.low, pick.tally.high)
        chosen[ROOT] = False
        self._keep = self._present
        if kept.filters:
            self._keep = self._present & with_ancestors(self.trie, chosen)
            self._unfiltered = self._expanded if self._unfiltered is None else self._unfiltered
            self._expanded = self._unfiltered | with_ancestors(self.trie, chosen)
        elif self._unfiltered is not None:
            self._expanded, self._unfiltered = self._unfiltered, None

    def finder(self, pattern: str) -> Callable[[], Bool]:
        """Looks through the labels."""
        return partial(matching_nodes, self._labels, self._present, pattern)

    def seek(self, pattern: str) -> None:
        """Searches the labels."""
        self.pattern, self._found = pattern, self.finder(pattern)()
        self.refresh()
        self.redraw_heading()

    def matches(self) -> tuple[Int64, int]:
        """Places of the matches where all is open, folded away or not, and the cursor's."""
        places = np.sort(self._order.position[np.flatnonzero(self._found & self._keep)])
        return places, int(self._order.position[self.node or ROOT])

    def go_to_match(self, place: int) -> None:
        """Opens what is above a match."""
        self.reveal(int(self._order.nodes[place]))

    @property
    def counted_rows(self) -> Integers:
        """The nodes that are seen."""
        return self._lines[self._lines >= 0]

    def remarks(self) -> tuple[str, ...]:
        """Whether something is hidden."""
        return ("small ones hidden" if self.bare else "", self.note)

    def action_nav_open(self) -> None:
        """Tells the screen which node was opened; a line for hidden ones shows them."""
        if self.node is None:
            self.action_tree_toggle()
        else:
            super().action_nav_open()

    def file_rows(self) -> tuple[int, Callable[[], Table]]:
        """All nodes that pass the filters, folded away or not, each with its path."""
        kept = self._keep & ~self._dull if self.bare else self._keep
        nodes = self._order.nodes
        nodes = nodes[kept[nodes] & (nodes != ROOT)]
        trie, labels, columns, title = self.trie, self._labels, self.columns, self.title

        def path(place: int) -> str:
            node = int(nodes[place])
            above = [*reversed(ancestors(trie, node)), node]
            return PATH_SEPARATOR.join(labels[each] for each in above)

        def table() -> Table:
            plain = table_of(self.id or "tree", title, columns, nodes)
            places = (Column("depth", Unit.COUNT), Column("path"))
            data = (trie.depth[nodes], Lazy(len(nodes), path))
            return replace(plain, columns=plain.columns + places, data=plain.data + data)

        return len(nodes), table

    def view(self) -> TreeView:
        """Everything ``restore`` needs."""
        expanded = frozenset(np.flatnonzero(self._expanded).tolist())
        return TreeView(**vars(super().view()), open=expanded, bare=self.bare, opened=self._opened)

    def restore(self, view: TreeView) -> None:
        """Takes up an earlier look of the same tree; filters stay."""
        sort, descending = view.arrangement.sort, view.arrangement.descending
        self.arrangement = replace(self.arrangement, sort=sort, descending=descending)
        self.bare, self._opened = view.bare, view.opened
        self._expanded[:] = False
        self._expanded[[node for node in view.open if node < len(self.trie)]] = True
        self._sort_nodes()
        self.rebuild(view.row)
        self.choose_header(view.column)
        self.jump_to(view.scroll)

    def on_click(self, event: events.Click) -> None:
        """A click on a fold mark opens or closes."""
        spot = event.get_content_offset(self)
        if spot is None or spot.y == 0 or event.chain > 1:
            return
        position = self.scroll_offset.y + spot.y - 1
        if position >= self.shown or (row := self.row_at(position)) < 0:
            return
        start = self._slots()[0].x + len(self._indent(row))
        if start <= spot.x < start + INDENT:
            self.put_cursor(position)
            self.action_tree_toggle()


def matching_nodes(labels: Sequence[str], present: Bool, pattern: str) -> Bool:
    """Nodes below the root whose label matches a pattern; none for an empty one."""
    matching = np.zeros(len(present), bool)
    if pattern.strip() and labels:
        test = matcher(pattern)
        passed = {label: test(label) for label in set(labels)}
        matching[:] = [passed[label] for label in labels]
        matching &= present
        matching[ROOT] = False
    return matching
