"""VirtualTable: any number of rows over columns; sorts, filters, searches and counts them.

Five million rows mount at once, because only what is seen is ever made into text. What takes time
(sorting, searching) runs in a worker; the cursor stays on its row meanwhile and afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nsys_tui.ui.widgets.table.columns import table_of
from nsys_tui.ui.widgets.table.find import FindLine, Sought
from nsys_tui.ui.widgets.table.frequency import FrequencyList
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.rows import Arrangement, Pick, arrange, found, positions
from nsys_tui.ui.widgets.table.work import AT_ONCE, Working

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.model.events import Bool, Int32
    from nsys_tui.model.table import Table
    from nsys_tui.ui.widgets.table.columns import TableColumn, Tally


@dataclass(frozen=True)
class TableView:
    """What a table needs to look as it did: opaque to everybody else."""

    arrangement: Arrangement
    row: int | None
    scroll: int
    column: str


class VirtualTable(Working, Grid, can_focus=True):
    """A table of any size; the arguments are those of ``Grid``."""

    ARRANGE: ClassVar[str] = "arrange"
    SEEK: ClassVar[str] = "seek"

    def __init__(
        self,
        title: str = "",
        *,
        empty: str = "",
        share_filter: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(title, empty=empty, share_filter=share_filter, id=id)
        self.size_all = 0
        """Rows of the table, shown or not."""
        self.arrangement = Arrangement()
        self.pattern = ""
        """What is searched for."""
        self._arranged = self.arrangement
        """What the rows shown are arranged by, while others are being arranged."""
        self._sought = ""
        """The pattern of the matches shown."""
        self._natural: Int32 | None = None
        self._order: Int32 | None = None
        self._matches: Bool | None = None
        self._positions: Int32 | None = None

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
        here = self.columns[self.column].header if self.column < len(self.columns) else ""
        headers = [column.header for column in columns]
        self.columns, self.size_all, self._natural = columns, size, natural
        self.column = headers.index(here) if here in headers else self._start_column(headers)
        self._order = self._matches = self._positions = None
        self.cursor, self._first, self._told = 0, 0, None
        kept = self.arrangement
        sort = kept.sort if kept.sort in headers else ""
        picks = tuple(pick for pick in kept.picks if pick.header in headers)
        self._arrange(replace(kept, sort=sort, picks=picks), row=row)
        self.choose_column(self.column)
        if self.pattern:
            self.seek(self.pattern)

    def empty_text(self) -> str:
        """Why there is nothing to see: no rows, or a filter that hides them."""
        hidden = f"the filter hides all {self.size_all:,} rows: esc clears it"
        return hidden if self.size_all else self.empty

    def _start_column(self, headers: list[str]) -> int:
        """The sorted column is of interest first."""
        return headers.index(self.arrangement.sort) if self.arrangement.sort in headers else 0

    def sort_by(self, place: int) -> None:
        """Sorts by a column; the cursor stays on its row, or on top where it was on top."""
        column = self.columns[place]
        if not column.sortable:
            self.app.say(f"{column.header} has no order")
            return
        wanted = self.arrangement.sorted_by(column.header, column.descending_first)
        self._arrange(wanted, row=None if self.cursor == 0 else self.row)

    def filter_by(self, pattern: str) -> None:
        """Shows only the rows that match a pattern; all for an empty one."""
        if pattern != self.arrangement.pattern:
            self._arrange(replace(self.arrangement, pattern=pattern), row=self.row)

    def pick(self, column: TableColumn, tally: Tally) -> None:
        """Shows only the rows with a value."""
        picks = (*self.arrangement.picks, Pick(column.header, tally))
        self._arrange(replace(self.arrangement, picks=picks), row=self.row)

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
                self.scroll_to(y=scroll, animate=False, immediate=True, force=True)
            elif position is None:
                self.scroll_to(y=0, animate=False, immediate=True, force=True)

        trivial = not (wanted.sort or wanted.pattern or wanted.picks)
        self._run(self.ARRANGE, "sorting", work, take, at_once=trivial)

    def seek(self, pattern: str) -> None:
        """Searches the text columns; ``n`` and ``N`` then go from match to match."""
        columns, size, order = self.columns, self.size_all, self._order
        self.pattern = pattern

        def work() -> tuple[Bool | None, Int32 | None]:
            matches = found(columns, size, pattern) if pattern else None
            return matches, positions(matches, order)

        def take(made: tuple[Bool | None, Int32 | None]) -> None:
            self._sought, self._matches = pattern, made[0]
            self._positions = made[1] if self._order is order else None
            self.refresh()
            self.redraw_heading()

        self._run(self.SEEK, "searching", work, take)

    @property
    def match_positions(self) -> Int32:
        """Positions of the matches in the order shown."""
        if self._positions is None:
            self._positions = positions(self._matches, self._order)
        return np.empty(0, np.int32) if self._positions is None else self._positions

    def action_find_next(self) -> None:
        """The next match; after the last one the first."""
        self._go(int(np.searchsorted(self.match_positions, self.cursor, side="right")))

    def action_find_previous(self) -> None:
        """The match before; before the first one the last."""
        self._go(int(np.searchsorted(self.match_positions, self.cursor, side="left")) - 1)

    def _go(self, place: int) -> None:
        if len(self.match_positions):
            self.put_cursor(int(self.match_positions[place % len(self.match_positions)]))
            self.redraw_heading()
        else:
            self.app.say(f"no match for {self.pattern}" if self.pattern else "/ searches first")

    def action_find_open(self) -> None:
        """Asks for a pattern: Enter searches, Ctrl+F filters."""
        columns, size = self.columns, self.size_all

        def count(pattern: str, tell: Callable[[int], None]) -> None:
            self._run(
                "count",
                "",
                lambda: int(np.count_nonzero(found(columns, size, pattern))),
                tell,
            )

        def sought(answer: Sought | None) -> None:
            if answer is None:
                return
            if answer.as_filter:
                self.seek("")
                self.ask_filter(answer.pattern)
            else:
                self.seek(answer.pattern)
                if self.size_all <= AT_ONCE and not self._on_match():
                    self.action_find_next()

        self.app.push_screen(FindLine(self.pattern, size, count), sought)

    def _on_match(self) -> bool:
        return self.row is not None and self.is_match(self.row)

    def ask_filter(self, pattern: str) -> None:
        """Filters, or lets the screen do it where filters are shared."""
        if self._share:
            self.post_message(self.Filtered(pattern))
        else:
            self.filter_by(pattern)

    def action_table_frequency(self) -> None:
        """Counts the values of the current column; Enter there filters by one."""
        if not self.columns:
            return
        column, order = self.columns[self.column], self._order

        def chosen(tally: Tally | None) -> None:
            if tally is not None:
                self.pick(column, tally)

        def show(result: tuple[list[Tally], int]) -> None:
            tallies, distinct = result
            if not tallies:
                self.app.say(f"{column.header}: nothing to count in this column")
                return
            chooser = FrequencyList(column, tallies, distinct, self.shown)
            self.app.push_screen(chooser, chosen)

        self._run("tally", "counting", lambda: column.tally(order), show)

    def file_rows(self) -> tuple[int, Callable[[], Table]]:
        """The rows that pass the filters, in their order."""
        columns, order, title = self.columns, self._order, self.title
        rows = np.arange(self.size_all, dtype=np.int32) if order is None else order
        return len(rows), lambda: table_of(self.id or "table", title, columns, rows)

    @property
    def restricted(self) -> bool:
        """Whether a filter or a search can be cleared."""
        return bool(self.arrangement.picks or self.arrangement.pattern or self.pattern)

    def action_nav_escape(self) -> None:
        """Stops what is being sorted or searched, else clears a pick, the filter, the search."""
        kept = self.arrangement
        if self.at_work:
            self.stop_work()
            self.arrangement = self._arranged
            self.pattern = self._sought
            self.redraw_heading()
        elif kept.picks:
            self._arrange(replace(kept, picks=kept.picks[:-1]), row=self.row)
        elif kept.pattern:
            self.ask_filter("")
        elif self.pattern:
            self.seek("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the table's only while it has something to clear."""
        if action == "nav_escape":
            return self.restricted or self.at_work
        if action in ("find_next", "find_previous"):
            return bool(self.pattern)
        return super().check_action(action, parameters)

    def view(self) -> TableView:
        """Everything ``restore`` needs."""
        column = self.columns[self.column].header if self.column < len(self.columns) else ""
        return TableView(self.arrangement, self.row, self.scroll_offset.y, column)

    def restore(self, view: TableView) -> None:
        """Takes up an earlier look: sort, filters, cursor and scroll position."""
        headers = [column.header for column in self.columns]
        if view.column in headers:
            self.choose_column(headers.index(view.column))
        if view.arrangement == self.arrangement and not self._under_way(self.ARRANGE):
            position = self.position_of(view.row) if view.row is not None else None
            self.put_cursor(position or 0)
            self.scroll_to(y=view.scroll, animate=False, immediate=True, force=True)
        else:
            self._arrange(view.arrangement, row=view.row, scroll=view.scroll)

    def sort_mark(self, column: TableColumn) -> str:
        """The direction behind the header of the sorted column."""
        if column.header != self.arrangement.sort:
            return ""
        return "v" if self.arrangement.descending else "^"

    def heading_parts(self) -> tuple[str, str]:
        """Title, counts, what is searched and filtered; the sort at the right."""
        shown, whole = self.shown, self.size_all
        count = f"{shown:,} shown / {whole:,}" if whole else ""
        left = "  ".join(part for part in (f"{self.title} {count}".strip(), *self._notes()) if part)
        return left, "  ".join(part for part in (self.hidden_text(), self._sort_text()) if part)

    def _notes(self) -> list[str]:
        kept = self.arrangement
        notes = [f"{self.busy} ..."] if self.busy else []
        if kept.pattern:
            notes.append(f"filter: {kept.pattern}")
        notes += [f"{pick.header} = {pick.tally.text}" for pick in kept.picks]
        if self.pattern:
            positions = self.match_positions
            place = int(np.searchsorted(positions, self.cursor)) + 1
            on = place <= len(positions) and positions[place - 1] == self.cursor
            which = f"{place:,} of " if on else ""
            notes.append(f"/{self.pattern}: {which}{len(positions):,}")
        return [*notes, self.note]

    def _sort_text(self) -> str:
        kept = self.arrangement
        return f"sort: {kept.sort} {'desc' if kept.descending else 'asc'}" if kept.sort else ""
