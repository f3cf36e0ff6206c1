"""VirtualTable: any number of rows over columns; sorts, filters, searches and counts them.

Five million rows mount at once, because only what is seen is ever made into text. What takes time
(sorting, searching) runs in a worker; the cursor stays on its row meanwhile and afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from nsys_tui.model.arrays import Bool, Int32, Integers
from nsys_tui.model.table import Table
from nsys_tui.ui.widgets.table.columns import TableColumn, table_of
from nsys_tui.ui.widgets.table.rows import Arrangement, arrange, found, positions
from nsys_tui.ui.widgets.table.sifted import GridView, SiftedGrid
from nsys_tui.units import out_of


class VirtualTable(SiftedGrid):
    """A table of any size; the arguments are those of ``Grid``."""

    ARRANGE: ClassVar[str] = "arrange"
    SEEK: ClassVar[str] = "seek"
    _arranged = Arrangement()
    """What the rows shown are arranged by, while others are being arranged."""
    _sought = ""
    """The pattern of the matches shown."""
    _natural: Int32 | None = None
    _order: Int32 | None = None
    _matches: Bool | None = None
    _positions: Int32 | None = None

    @property
    def shown(self) -> int:
        """Rows that pass the filters."""
        return self.size_all if self._order is None else len(self._order)

    def row_at(self, position: int) -> int:
        """The row at a position."""
        return position if self._order is None else int(self._order[position])

    def is_match(self, row: int) -> bool:
        """Whether the search found the row."""
        return self._matches is not None and bool(self._matches[row])

    def position_of(self, row: int) -> int | None:
        """Where a row is shown, None where a filter hides it."""
        if self._order is None:
            return row if 0 <= row < self.size_all else None
        places = np.flatnonzero(self._order == row)
        return int(places[0]) if len(places) else None

    def go_to_row(self, row: int | None) -> None:
        """Puts the cursor on a row, where that is shown."""
        position = None if row is None else self.position_of(row)
        if position is not None:
            self.put_cursor(position)

    def show_rows(
        self,
        columns: Sequence[TableColumn],
        size: int,
        *,
        row: int | None = None,
        natural: Int32 | None = None,
    ) -> None:
        """Replaces the content; sort, filters and search stay as far as their columns exist.

        Args:
            columns: the new columns.
            size: number of rows.
            row: where the cursor goes; None for the first row shown.
            natural: all rows in the order they have without a sort; None for that of their numbers.
        """
        wanted = (self.header, self.arrangement.sort)
        headers = [column.header for column in columns]
        self.columns, self.size_all, self._natural = columns, size, natural
        self.column = next((headers.index(name) for name in wanted if name in headers), 0)
        self._order = self._matches = self._positions = None
        self.cursor, self._first, self._told = 0, 0, None
        kept = self.arrangement
        sort = kept.sort if kept.sort in headers else ""
        picks = tuple(pick for pick in kept.picks if pick.header in headers)
        self._arrange(replace(kept, sort=sort, picks=picks), row=row)
        self.choose_column(self.column)
        if self.pattern:
            self.seek(self.pattern)

    def say(self, text: str) -> None:
        """Shows a text in the place of rows."""
        self.empty = text
        self.show_rows((), 0)

    def sift(self, wanted: Arrangement) -> None:
        """Arranges the rows otherwise; a cursor on top stays there when they are sorted."""
        now = self.arrangement
        sorted_anew = (wanted.sort, wanted.descending) != (now.sort, now.descending)
        self._arrange(wanted, row=None if sorted_anew and self.cursor == 0 else self.row)

    def _arrange(self, wanted: Arrangement, row: int | None, scroll: int | None = None) -> None:
        columns, size, natural = self.columns, self.size_all, self._natural
        matches, self.arrangement = self._matches, wanted

        def work() -> tuple[Int32 | None, Int32 | None]:
            order = arrange(columns, size, wanted, natural)
            return order, positions(matches, order)

        def take(made: tuple[Int32 | None, Int32 | None]) -> None:
            self._order, self._arranged = made[0], wanted
            self._positions = made[1] if self._matches is matches else None
            position = self.position_of(row) if row is not None else None
            self.cursor = position or 0
            self.resized()
            if scroll is not None:
                self.jump_to(scroll)
            elif position is None:
                self.jump_to(0)

        trivial = not (wanted.sort or wanted.pattern or wanted.picks)
        self._run(self.ARRANGE, "sorting", work, take, at_once=trivial)

    def seek(self, pattern: str) -> None:
        """Searches the text columns; ``n`` and ``N`` then go from match to match."""
        find, order = self.finder(pattern), self._order
        self.pattern = pattern

        def work() -> tuple[Bool | None, Int32 | None]:
            matches = find() if pattern else None
            return matches, positions(matches, order)

        def take(made: tuple[Bool | None, Int32 | None]) -> None:
            self._sought, self._matches = pattern, made[0]
            self._positions = made[1] if self._order is order else None
            self.refresh()
            self.redraw_heading()

        self._run(self.SEEK, "searching", work, take)

    def finder(self, pattern: str) -> Callable[[], Bool]:
        """Looks through the text columns."""
        return partial(found, self.columns, self.size_all, pattern)

    @property
    def counted_rows(self) -> Integers | None:
        """The rows that pass the filters."""
        return self._order

    def matches(self) -> tuple[Integers, int]:
        """Positions of the matches in the order shown, and the cursor's."""
        if self._positions is None:
            self._positions = positions(self._matches, self._order)
        found_ = np.empty(0, np.int32) if self._positions is None else self._positions
        return found_, self.cursor

    def go_to_match(self, place: int) -> None:
        """Puts the cursor on a position."""
        self.put_cursor(place)

    def file_rows(self) -> tuple[int, Callable[[], Table]]:
        """The rows that pass the filters, in their order."""
        columns, order, title = self.columns, self._order, self.title
        rows = np.arange(self.size_all, dtype=np.int32) if order is None else order
        return len(rows), lambda: table_of(self.id or "table", title, columns, rows)

    def action_nav_escape(self) -> None:
        """Stops what is being sorted or searched, else clears what restricts."""
        if self.at_work:
            self.stop_work()
            self.arrangement, self.pattern = self._arranged, self._sought
            self.redraw_heading()
        else:
            super().action_nav_escape()

    def restore(self, view: GridView) -> None:
        """Takes up an earlier look: sort, filters, cursor and scroll position."""
        self.choose_header(view.column)
        if view.arrangement == self.arrangement and not self._under_way(self.ARRANGE):
            position = self.position_of(view.row) if view.row is not None else None
            self.put_cursor(position or 0)
            self.jump_to(view.scroll)
        else:
            self._arrange(view.arrangement, row=view.row, scroll=view.scroll)

    def counted_title(self) -> str:
        """Title, and how many rows there are."""
        size = out_of(self.shown, self.size_all) if self.size_all else ""
        return f"{self.title} {size}".strip()
