"""Grid: what tables and trees share: header, cursor, scrolling, drawing of the rows in view."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partialmethod
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar, Final, cast

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from nsys_tui.names import both_ends, cell_len, normalise_kernel, pad, told_apart, visible
from nsys_tui.render.cells import BOLD, MUTED, Emphasis, style
from nsys_tui.render.glyphs import Glyphs, is_drawn
from nsys_tui.ui.saving import Saving, save, table_writers
from nsys_tui.ui.widgets.frame import ScrolledPane
from nsys_tui.ui.widgets.table.layout import Slot, first_for, order_of, slots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events

    from nsys_tui.model.table import Table
    from nsys_tui.ui.front import FrontScreen
    from nsys_tui.ui.widgets.table.columns import TableColumn

LONGEST_TEXT: Final = 4_000
"""Characters of a name that are looked at: a kernel name may have 100 000."""


def shown_cell(text: str, width: int, column: TableColumn, ascii_only: bool) -> str:
    """A cell of exactly ``width`` cells: safe to show, aligned, shortened where it must be."""
    text = visible(text[:LONGEST_TEXT], ascii_only)
    if column.right:
        return pad(text, width) if cell_len(text) > width else text.rjust(width)
    if column.names and cell_len(text) > width:
        text = both_ends(normalise_kernel(text), width)
    return pad(text, width)


def joined(runs: list[tuple[str, int]], over: int) -> list[tuple[str, int]]:
    """Neighbours of one style as one run: fewer bytes to the terminal."""
    joined: list[tuple[str, int]] = []
    for text, code in runs:
        if joined and joined[-1][1] == code:
            joined[-1] = (joined[-1][0] + text, code)
        else:
            joined.append((text, code))
    if joined and joined[-1][1] != over:
        joined.append(("", over))
    return joined


HEADER: Final = MUTED
HEADER_HERE: Final = style(emphasis=Emphasis.BOLD | Emphasis.UNDERLINE)
CURSOR: Final = style(emphasis=Emphasis.REVERSE | Emphasis.BOLD)
RESTING: Final = BOLD
ON_ROWS: Final = ("nav_open", "copy_", "table_", "tree_")
"""What actions begin with that need a row."""
EMPHASIS_SHIFT: Final = 16
MATCH: Final = int(Emphasis.UNDERLINE) << EMPHASIS_SHIFT


class Grid(ScrolledPane):
    """Rows under a header line that stays; subclasses say what a position holds.

    Args:
        title: what the frame's upper edge says first.
        empty: what stands in the place of rows where there are none.
        share_filter: filters are announced by ``Filtered`` instead of being applied: the screen
            shares them with others and gives them back through ``filter_by``.
    """

    PINNED: ClassVar[bool] = False
    """Whether the first column stays when the others scroll."""

    @dataclass
    class RowMessage(Message):
        """Something about a row."""

        grid: Grid
        row: int | None

    class Opened(RowMessage):
        """Enter or a double click on a row."""

        row: int

    class Moved(RowMessage):
        """The cursor is on another row; only the last of several waiting ones is delivered."""

        def can_replace(self, message: Message) -> bool:
            """A later one of the same grid makes this one pointless."""
            return isinstance(message, Grid.Moved) and message.grid is self.grid

    @dataclass
    class Counted(Message):
        """Another number of rows is shown."""

        grid: Grid

    @dataclass
    class Filtered(Message):
        """A filter pattern was entered or cleared where filters are shared."""

        pattern: str

    def __init__(
        self,
        title: str = "",
        *,
        empty: str = "",
        share_filter: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self.title = title
        self.note = ""
        self.empty = empty
        self.shares_filter = share_filter
        self.estimated = False
        """Whether the figures come from a sample."""
        self.columns: Sequence[TableColumn] = ()
        self.cursor = 0
        """Position of the cursor among the rows shown."""
        self.column = 0
        """Place of the current column."""
        self._first = 0
        self._laid_out: tuple[object, list[Slot]] | None = None
        self._told: int | None = None
        self._names: tuple[tuple[TableColumn, int, list[int]], dict[str, str]] | None = None
        """Long names in view as they are told apart, and what that was made for."""

    @property
    @abstractmethod
    def shown(self) -> int:
        """Rows shown."""

    @abstractmethod
    def row_at(self, position: int) -> int:
        """The row at a position."""

    def cell(self, row: int, column: TableColumn) -> tuple[str, int]:
        """Text and style code of a cell."""
        return column.text(row), column.ink(row)

    @abstractmethod
    def is_match(self, row: int) -> bool:
        """Whether a search found the row."""

    @abstractmethod
    def sort_mark(self, column: TableColumn) -> str:
        """``v`` or ``^`` behind the header of the sorted column."""

    @abstractmethod
    def sort_by(self, place: int) -> None:
        """Sorts by a column."""

    @property
    def row(self) -> int | None:
        """The row under the cursor, None in an empty table."""
        return self.row_at(self.cursor) if self.cursor < self.shown else None

    @property
    def page_rows(self) -> int:
        """Rows that fit below the header."""
        return max(1, self.size.height - 1)

    @property
    def glyphs(self) -> Glyphs:
        """Characters of this terminal."""
        return self.app.glyphs

    def resized(self) -> None:
        """The number of rows changed: scroll range, cursor and heading follow."""
        self.virtual_size = Size(0, self.shown + 1)
        self.cursor = min(max(self.cursor, 0), max(self.shown - 1, 0))
        self.follow()
        self.refresh()
        self.redraw_heading()
        self.post_message(self.Counted(self))
        self._tell()

    def put_cursor(self, position: int) -> None:
        """Moves the cursor and keeps it in view."""
        old = self.cursor
        self.cursor = min(max(position, 0), max(self.shown - 1, 0))
        before = self.scroll_offset.y
        self.follow()
        if self.scroll_offset.y == before and old != self.cursor:
            self._refresh_row(old)
            self._refresh_row(self.cursor)
        else:
            self.refresh()
        self._tell()

    def follow(self) -> None:
        """Scrolls as little as needed to see the cursor."""
        top = self.scroll_offset.y
        target = min(max(top, self.cursor - self.page_rows + 1), self.cursor)
        if target != top:
            self.scroll_to(y=target, animate=False, immediate=True, force=True)

    def _refresh_row(self, position: int) -> None:
        y = position - self.scroll_offset.y + 1
        if 0 < y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _tell(self) -> None:
        row = self.row
        if row != self._told:
            self._told = row
            self.post_message(self.Moved(self, row))

    def action_move(self, step: int) -> None:
        """Moves the cursor by rows."""
        self.put_cursor(self.cursor + step)

    @property
    def header(self) -> str:
        """Header of the current column."""
        return self.columns[self.column].header if self.column < len(self.columns) else ""

    def _step_column(self, step: int) -> None:
        """Makes the next (1) or previous (-1) column the current one."""
        if not self.columns:
            return
        order = order_of(self._marked(), self.room)
        position = order.index(self.column) if self.column in order else 0
        self.choose_column(order[min(max(position + step, 0), len(order) - 1)])

    action_table_column_next = partialmethod(_step_column, 1)
    action_table_column_previous = partialmethod(_step_column, -1)

    def choose_column(self, place: int) -> None:
        """Makes a column the current one and scrolls to it."""
        self.column = place
        self._first = first_for(self._marked(), self.room, place, self._first, self.PINNED)
        self.refresh()
        self.redraw_heading()

    def action_nav_open(self) -> None:
        """Tells the screen which row was opened."""
        if self.row is not None:
            self.post_message(self.Opened(self, self.row))

    def action_table_sort(self) -> None:
        """Sorts by the current column; again: the other way round."""
        if self.column < len(self.columns):
            self.sort_by(self.column)

    def action_copy_cell(self) -> None:
        """Copies the cell under the cursor."""
        if self.row is not None and self.columns:
            text = self.cell(self.row, self.columns[self.column])[0]
            self.app.copy(text.strip(), f"1 cell: {self.columns[self.column].header}")

    def action_copy_row(self) -> None:
        """Copies the row under the cursor as tab-separated text."""
        if self.row is not None:
            cells = [self.cell(self.row, column)[0].strip() for column in self.columns]
            self.app.copy("\t".join(cells), "1 row")

    @abstractmethod
    def file_rows(self) -> tuple[int, Callable[[], Table]]:
        """How many rows a file would have, and what makes its table; called in a worker."""

    def action_export_view(self) -> None:
        """Asks for a file name and writes all rows in the order shown."""
        rows, table = self.file_rows()
        screen = cast("FrontScreen", self.screen)
        writers = screen.writers()
        part = "" if screen.exported is self else f"-{self.id}"
        suffix = next(iter(writers), ".csv")
        name = f"{Path(screen.session.name).stem}.{screen.SCREEN}{part}{suffix}"
        what = f"{self.title or screen.long_name}: {rows:,} row{'s' * (rows != 1)}"
        save(self.app, Saving(f"Write {what}", name, {**table_writers(table, rows), **writers}))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is empty or an estimate is not written; without a row nothing works here."""
        if action == "export_view":
            return self.shown > 0 and not self.estimated
        if self.row is None and action.startswith(ON_ROWS):
            return False
        return super().check_action(action, parameters)

    def on_click(self, event: events.Click) -> None:
        """A click on the header sorts, on a row moves the cursor; a double click opens."""
        spot = event.get_content_offset(self)
        if spot is None:
            return
        if spot.y == 0:
            self._click_header(spot.x)
            return
        position = self.scroll_offset.y + spot.y - 1
        if position >= self.shown:
            return
        self.put_cursor(position)
        if event.chain > 1:
            self.action_nav_open()

    def _click_header(self, x: int) -> None:
        for slot in self._slots():
            if slot.x <= x < slot.x + slot.width:
                self.column = slot.column
                self.sort_by(slot.column)
                self.refresh()

    def on_resize(self) -> None:
        """The scroll position may have become impossible, the current column hidden."""
        if self.columns:
            self._first = 0
            self.column = min(self.column, len(self.columns) - 1)
            self.choose_column(self.column)
        self.follow()

    def redraw_heading(self) -> None:
        """Title, counts and notes on the frame's upper edge."""
        self.heading(*self.heading_parts())

    @abstractmethod
    def heading_parts(self) -> tuple[str, str]:
        """Left and right part of the heading."""

    def hidden_text(self) -> str:
        """How many columns are out of sight, and the key that brings them."""
        hidden = len(self.columns) - len(self._slots())
        return f"+{hidden} column{'s' * (hidden > 1)} < >" if hidden > 0 else ""

    @abstractmethod
    def empty_text(self) -> str:
        """Why there is nothing to see."""

    def _slots(self) -> list[Slot]:
        key = (self.columns, self.room, self._first, [self.sort_mark(c) for c in self.columns])
        if self._laid_out is None or self._laid_out[0] != key:
            self._laid_out = (key, slots(self._marked(), self.room, self._first, self.PINNED))
        return self._laid_out[1]

    def _marked(self) -> list[TableColumn]:
        """The columns, of which a sorted one is so wide that its mark fits behind its header."""
        return [
            replace(column, width=max(column.width, cell_len(column.header + mark)))
            if (mark := self.sort_mark(column))
            else column
            for column in self.columns
        ]

    def render_line(self, y: int) -> Strip:
        """The header, or one row."""
        width, inks = self.room, self.app.inks
        runs = self._header() if y == 0 else self._line(self.scroll_offset.y + y - 1)
        segments, used = [], 0
        for text, code in runs:
            segments.append(Segment(text, inks[code]))
            used += cell_len(text)
        if used < width:
            segments.append(Segment(" " * (width - used), inks[runs[-1][1] if runs else 0]))
        return Strip(segments, max(used, width)).crop(0, width)

    def _header(self) -> list[tuple[str, int]]:
        runs: list[tuple[str, int]] = []
        x = 0
        for slot in self._slots():
            column = self.columns[slot.column]
            mark = self.sort_mark(column)
            if mark and cell_len(column.header) + 2 <= slot.width:
                mark = f" {mark}"
            header = column.header[: max(0, slot.width - len(mark))] + mark
            here = slot.column == self.column and self.has_focus
            lead = slot.width - cell_len(header) if column.right else 0
            runs.append((" " * (slot.x - x + lead), HEADER))
            runs.append((header, HEADER_HERE if here else HEADER))
            runs.append((" " * (slot.width - lead - cell_len(header)), HEADER))
            x = slot.x + slot.width
        return runs

    def _empty_line(self, position: int) -> list[tuple[str, int]]:
        texts = [visible(text, self.app.ascii) for text in self.empty_text().splitlines()]
        lines = [line for text in texts for line in wrap(text, max(self.room - 2, 1))]
        return [(f" {lines[position]}", HEADER)] if position < len(lines) else []

    def _line(self, position: int) -> list[tuple[str, int]]:
        if not self.shown:
            return self._empty_line(position)
        if position >= self.shown:
            return []
        row = self.row_at(position)
        here = position == self.cursor
        focused = here and self.has_focus
        over = CURSOR if focused else RESTING if here else 0
        match = MATCH if self.is_match(row) else 0
        runs: list[tuple[str, int]] = [(">" if here else " ", over)]
        x = 1
        for slot in self._slots():
            column = self.columns[slot.column]
            text, code = self.cell(row, column)
            if focused and not is_drawn(text):
                code = over | (MATCH if slot.column == self.column else 0)
            else:
                code |= (BOLD if focused else over) | (match if column.is_text else 0)
            if slot.x > x:
                runs.append((" " * (slot.x - x), over))
            if column.names and cell_len(text) > slot.width:
                text = self._apart(slot, text)
            runs.append((shown_cell(text, slot.width, column, self.app.ascii), code))
            x = slot.x + slot.width
        return joined(runs, over)

    def _apart(self, slot: Slot, text: str) -> str:
        """A name that is too long, as it is told from the others in view."""
        column, top = self.columns[slot.column], self.scroll_offset.y
        rows = [self.row_at(p) for p in range(top, min(top + self.page_rows, self.shown))]
        key = (column, slot.width, rows)
        if self._names is None or self._names[0] != key:
            texts = {self.cell(row, column)[0] for row in rows} | {text}
            names = {name: normalise_kernel(visible(name[:LONGEST_TEXT])) for name in texts}
            told = told_apart([*names.values()], slot.width)
            self._names = (key, dict(zip(names, told, strict=True)))
        return self._names[1].get(text, text)
