"""VirtualTree: a tree of any size with columns; only the lines in view are made into text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.table import Column, Unit
from nsys_tui.model.tree import ROOT
from nsys_tui.ui.widgets.table.columns import Lazy, table_of
from nsys_tui.ui.widgets.table.find import FindLine, Sought
from nsys_tui.ui.widgets.table.frequency import FrequencyList
from nsys_tui.ui.widgets.table.rows import Pick
from nsys_tui.ui.widgets.tree.folds import FoldingGrid
from nsys_tui.ui.widgets.tree.rows import ancestors

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.table import Table
    from nsys_tui.ui.widgets.table.columns import Tally

PATH_SEPARATOR: Final = " / "


@dataclass(frozen=True)
class TreeView:
    """What a tree needs to look as it did."""

    sort: str
    descending: bool
    open: frozenset[int]
    line: int | None
    scroll: int
    column: str
    bare: bool
    opened: frozenset[int] = field(default_factory=frozenset)


class VirtualTree(FoldingGrid):
    """A columnar tree that can be searched and filtered; the arguments are those of ``Grid``."""

    def action_find_open(self) -> None:
        """Asks for a pattern: Enter searches, Ctrl+F filters."""

        def count(pattern: str, tell: Callable[[int], None]) -> None:
            tell(int(np.count_nonzero(self._found(pattern))))

        def sought(answer: Sought | None) -> None:
            if answer is None:
                return
            if answer.as_filter:
                self.pattern = ""
                self.ask_filter(answer.pattern)
                return
            self.pattern = answer.pattern
            self._match()
            self.refresh()
            self.redraw_heading()
            if self.pattern and not (self.row is not None and self.is_match(self.row)):
                self.action_find_next()

        self.app.push_screen(FindLine(self.pattern, len(self.trie) - 1, count), sought)

    def action_find_next(self) -> None:
        """The next match, also where it is folded away; after the last one the first."""
        self._go(1)

    def action_find_previous(self) -> None:
        """The match before; before the first one the last."""
        self._go(-1)

    def _go(self, step: int) -> None:
        nodes = np.flatnonzero(self._matches & self._keep)
        if not len(nodes):
            self.app.say(f"no match for {self.pattern}")
            return
        places = np.sort(self._order.position[nodes])
        row = self.row
        here = self._order.position[row if row is not None and row >= 0 else ROOT]
        place = (
            int(np.searchsorted(places, here, side="right"))
            if step > 0
            else int(np.searchsorted(places, here, side="left")) - 1
        )
        self.reveal(int(self._order.nodes[places[place % len(places)]]))

    def ask_filter(self, pattern: str) -> None:
        """Filters, or lets the screen do it where filters are shared."""
        if self._share:
            self.post_message(self.Filtered(pattern))
        else:
            self.filter_by(pattern)

    def filter_by(self, pattern: str) -> None:
        """Shows only nodes that match, and those above them."""
        if pattern != self.filter:
            self.filter = pattern
            self._match()
            self.rebuild()

    def action_table_frequency(self) -> None:
        """Counts the values of the current column over the lines seen; Enter filters by one."""
        if not self.columns:
            return
        column, nodes = self.columns[self.column], self._lines[self._lines >= 0]
        tallies, distinct = column.tally(nodes)

        def chosen(tally: Tally | None) -> None:
            if tally is not None:
                self.picks = (*self.picks, Pick(column.header, tally))
                self._match()
                self.rebuild()

        if tallies:
            self.app.push_screen(FrequencyList(column, tallies, distinct, len(nodes)), chosen)
        else:
            self.app.say(f"{column.header}: nothing to count in this column")

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

    @property
    def restricted(self) -> bool:
        """Whether a filter or a search can be cleared."""
        return bool(self.filtered or self.pattern)

    def action_nav_escape(self) -> None:
        """Clears the last filter by value, then the filter, then the search."""
        if self.picks:
            self.picks = self.picks[:-1]
            self._match()
            self.rebuild()
        elif self.filter:
            self.ask_filter("")
        else:
            self.pattern = ""
            self._match()
            self.rebuild()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the tree's only while it has something to clear."""
        if action == "nav_escape":
            return self.restricted
        if action in ("find_next", "find_previous"):
            return bool(self.pattern)
        return super().check_action(action, parameters)

    def action_nav_open(self) -> None:
        """Tells the screen which node was opened; a line for hidden ones shows them."""
        if self.node is None:
            self.action_tree_toggle()
        else:
            super().action_nav_open()

    def heading_parts(self) -> tuple[str, str]:
        """Title, what is searched and filtered; the sort at the right."""
        notes = [self.title]
        if self.filter:
            notes.append(f"filter: {self.filter}")
        notes += [f"{pick.header} = {pick.tally.text}" for pick in self.picks]
        if self.pattern:
            notes.append(f"/{self.pattern}: {int(np.count_nonzero(self._matches)):,}")
        if self.bare:
            notes.append("small ones hidden")
        order = f"sort: {self.sort} {'desc' if self.descending else 'asc'}" if self.sort else ""
        left = "  ".join(part for part in (*notes, self.note) if part)
        return left, "  ".join(part for part in (self.hidden_text(), order) if part)

    def empty_text(self) -> str:
        """Why there is nothing to see."""
        hidden = f"the filter hides all {len(self.trie) - 1:,} lines: esc clears it"
        return hidden if self.filtered and len(self.trie) > 1 else self.empty

    def view(self) -> TreeView:
        """Everything ``restore`` needs."""
        column = self.columns[self.column].header if self.column < len(self.columns) else ""
        return TreeView(
            self.sort,
            self.descending,
            frozenset(np.flatnonzero(self._expanded).tolist()),
            self.row,
            self.scroll_offset.y,
            column,
            self.bare,
            frozenset(self._opened),
        )

    def restore(self, view: TreeView) -> None:
        """Takes up an earlier look of the same tree."""
        headers = [column.header for column in self.columns]
        self.sort, self.descending, self.bare = view.sort, view.descending, view.bare
        self._expanded[:] = False
        self._expanded[[node for node in view.open if node < len(self.trie)]] = True
        self._opened = set(view.opened)
        self._sort_nodes()
        self.rebuild(view.line)
        if view.column in headers:
            self.choose_column(headers.index(view.column))
        self.scroll_to(y=view.scroll, animate=False, immediate=True, force=True)
