"""SiftedGrid: what tables and trees share beyond drawing: sort, filters, search, counts of values.

What lasts runs in a worker; the cursor stays on its row meanwhile and afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from nsys_tui.model.arrays import Bool, Integers
from nsys_tui.ui.dialogs.find_line import FindLine, Sought
from nsys_tui.ui.runtime.task import Task
from nsys_tui.ui.widgets.table.columns import TableColumn, Tally
from nsys_tui.ui.widgets.table.frequency import FrequencyList
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.rows import Arrangement, Pick
from nsys_tui.units import out_of

T = TypeVar("T")

AT_ONCE: Final = 50_000
"""Tables up to this size are sorted and searched in place: it takes a few milliseconds."""


@dataclass(frozen=True)
class GridView:
    """What a table or tree needs to look as it did: opaque to everybody else."""

    arrangement: Arrangement
    row: int | None
    scroll: int
    column: str


class SiftedGrid(Grid):
    """Rows that can be sorted, filtered, searched and counted; the arguments are ``Grid``'s."""

    LINES: ClassVar[str] = "rows"
    """What rows are called."""
    size_all = 0
    """Rows that the work goes over."""
    busy = ""
    """What a worker is doing for the widget."""
    arrangement = Arrangement()
    """Sort and filters that are wanted."""
    pattern = ""
    """What is searched for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tasks: dict[str, Task] = {}

    @abstractmethod
    def sift(self, wanted: Arrangement) -> None:
        """Sorts and filters otherwise; the cursor stays on its row."""

    @abstractmethod
    def seek(self, pattern: str) -> None:
        """Searches; ``n`` and ``N`` then go from match to match."""

    @abstractmethod
    def finder(self, pattern: str) -> Callable[[], Bool]:
        """What finds the rows that match a pattern, in a worker."""

    @property
    @abstractmethod
    def counted_rows(self) -> Integers | None:
        """Rows whose values are counted; None for all."""

    @abstractmethod
    def matches(self) -> tuple[Integers, int]:
        """Places of the matches from top to bottom, and that of the cursor among them."""

    @abstractmethod
    def go_to_match(self, place: int) -> None:
        """Puts the cursor on the match at a place."""

    def prefer(self, sort: str = "", pattern: str | None = None) -> None:
        """How the rows to come are arranged.

        Args:
            sort: header of a column, from the largest down, where no sort was chosen yet.
            pattern: the filter; None for the present one.
        """
        kept = self.arrangement
        if sort and not kept.sort:
            kept = replace(kept, sort=sort, descending=True)
        self.arrangement = kept if pattern is None else replace(kept, pattern=pattern)

    def sort_by(self, place: int) -> None:
        """Sorts by a column."""
        column = self.columns[place]
        self.sift(self.arrangement.sorted_by(column.header, column.descending_first))

    def sort_mark(self, column: TableColumn) -> str:
        """The direction behind the header of the sorted column."""
        if column.header != self.arrangement.sort:
            return ""
        return "v" if self.arrangement.descending else "^"

    def filter_by(self, pattern: str) -> None:
        """Shows only the rows that match a pattern; all for an empty one."""
        if pattern != self.arrangement.pattern:
            self.sift(replace(self.arrangement, pattern=pattern))

    def ask_filter(self, pattern: str) -> None:
        """Filters, or lets the screen do it where filters are shared."""
        if self.shares_filter:
            self.post_message(self.Filtered(pattern))
        else:
            self.filter_by(pattern)

    def action_find_open(self) -> None:
        """Asks for a pattern: Enter searches, Ctrl+F filters."""

        def count(pattern: str, tell: Callable[[int], None]) -> None:
            find = self.finder(pattern)
            self._run("count", "", lambda: int(np.count_nonzero(find())), tell)

        def sought(answer: Sought) -> None:
            self.seek("" if answer.as_filter else answer.pattern)
            if answer.as_filter:
                self.ask_filter(answer.pattern)
            elif self.pattern and not self.at_work and not self._on_match():
                self.action_find_next()

        self.app.ask(FindLine(self.pattern, count, self.size_all), sought)

    def _on_match(self) -> bool:
        return self.row is not None and self.is_match(self.row)

    def action_find_next(self) -> None:
        """The next match; after the last one the first."""
        places, here = self.matches()
        self._go(places, int(np.searchsorted(places, here, side="right")))

    def action_find_previous(self) -> None:
        """The match before; before the first one the last."""
        places, here = self.matches()
        self._go(places, int(np.searchsorted(places, here, side="left")) - 1)

    def _go(self, places: Integers, number: int) -> None:
        if len(places):
            self.go_to_match(int(places[number % len(places)]))
            self.redraw_heading()
        else:
            self.app.say(f"no match for {self.pattern}")

    def action_table_frequency(self) -> None:
        """Counts the values of the current column; Enter there filters by one."""
        if not self.columns:
            return
        column, rows = self.columns[self.column], self.counted_rows
        size = self.size_all if rows is None else len(rows)

        def chosen(tally: Tally) -> None:
            picks = (*self.arrangement.picks, Pick(column.header, tally))
            self.sift(replace(self.arrangement, picks=picks))

        def show(result: tuple[list[Tally], int]) -> None:
            if result[0]:
                self.app.ask(FrequencyList(column, *result, size), chosen)
            else:
                self.app.say(f"{column.header}: nothing to count in this column")

        self._run("tally", "counting", lambda: column.tally(rows), show)

    @property
    def restricted(self) -> bool:
        """Whether a filter or a search can be cleared."""
        return self.arrangement.filters or bool(self.pattern)

    def action_nav_escape(self) -> None:
        """Clears the last filter by value, then the filter, then the search."""
        kept = self.arrangement
        if kept.picks:
            self.sift(replace(kept, picks=kept.picks[:-1]))
        elif kept.pattern:
            self.ask_filter("")
        else:
            self.seek("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the table's only while it has something to clear or to stop."""
        if action == "nav_escape":
            return self.restricted or self.at_work
        if action in ("find_next", "find_previous"):
            return bool(self.pattern)
        return super().check_action(action, parameters)

    def empty_text(self) -> str:
        """Why there is nothing to see: no rows, or a filter that hides them."""
        hidden = f"the filter hides all {self.size_all:,} {self.LINES}: esc clears it"
        return hidden if self.size_all and self.arrangement.filters else self.empty

    def heading_parts(self) -> tuple[str, str]:
        """Title, counts, what is searched and filtered; the sort at the right."""
        kept = self.arrangement
        notes = [
            self.counted_title(),
            self.busy and f"{self.busy} ...",
            kept.pattern and f"filter: {kept.pattern}",
            *(f"{pick.header} = {pick.tally.text}" for pick in kept.picks),
            self.pattern and f"/{self.pattern}: {self._matches_text()}",
            *self.remarks(),
        ]
        direction = "desc" if kept.descending else "asc"
        ends = [self.hidden_text(), kept.sort and f"sort: {kept.sort} {direction}"]
        return "  ".join(filter(None, notes)), "  ".join(filter(None, ends))

    def counted_title(self) -> str:
        """The title, with the number of rows where that is of interest."""
        return self.title

    def remarks(self) -> tuple[str, ...]:
        """What is to be said beside filters and search."""
        return (self.note,)

    def _matches_text(self) -> str:
        places, here = self.matches()
        number = int(np.searchsorted(places, here))
        on = number < len(places) and places[number] == here
        return out_of(number + 1, len(places)) if on else f"{len(places):,}"

    def view(self) -> GridView:
        """Everything ``restore`` needs."""
        return GridView(self.arrangement, self.row, self.scroll_offset.y, self.header)

    @abstractmethod
    def restore(self, view: Any) -> None:
        """Takes up an earlier look, which ``view`` gave."""

    def jump_to(self, scroll: int) -> None:
        """Scrolls at once."""
        self.scroll_to(y=scroll, animate=False, immediate=True, force=True)

    def choose_header(self, header: str) -> None:
        """Makes the column of a header the current one, if there is one."""
        headers = [column.header for column in self.columns]
        if header in headers:
            self.choose_column(headers.index(header))

    def _run(
        self,
        kind: str,
        what: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        *,
        at_once: bool = False,
    ) -> None:
        """Runs ``work`` here if it is short, else in a thread; a later call makes it void."""
        task = self._tasks.setdefault(kind, Task(self, f"{self.id}-{kind}"))
        if at_once or self.size_all <= AT_ONCE:
            task.drop()
            self.busy = ""
            done(work())
            return

        def ended() -> None:
            self.busy = ""
            self.redraw_heading()

        def take(result: T) -> None:
            self.busy = ""
            done(result)
            self.redraw_heading()

        self.busy = f"{what} {self.size_all:,} rows, esc cancels" if what else self.busy
        self.redraw_heading()
        task.run(work, take, ended, lambda _: ended())

    def stop_work(self) -> None:
        """What threads are still doing for the widget becomes void."""
        for task in self._tasks.values():
            task.drop()
        self.busy = ""
        self.redraw_heading()

    @property
    def at_work(self) -> bool:
        """Whether a thread works for the widget."""
        return any(task.busy for task in self._tasks.values())

    def _under_way(self, kind: str) -> bool:
        """Whether a thread is at work of this kind."""
        return kind in self._tasks and self._tasks[kind].busy
