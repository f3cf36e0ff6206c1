"""TableScreen: a result in a table or tree; DetailScreen: beside it what belongs to a row of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, TypeVar, cast

from textual import events
from textual.getters import query_one

from nsys_tui.model.report import Report
from nsys_tui.ui.screens.result import CANCELLED, ResultScreen, failure_text
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.sifted import GridView, SiftedGrid
from nsys_tui.ui.widgets.table.table import VirtualTable

T = TypeVar("T")
D = TypeVar("D")

AROUND_ROWS: Final = 7
"""Lines of a screen that are no rows of its table: tabs, frames, header, footer, and one left."""
WIDE = 120
"""Columns from which details stand beside each other and sparklines are wide."""


@dataclass(frozen=True)
class Look:
    """How a screen looked, for the history."""

    wish: Any
    grid: GridView
    inner: GridView | None = None
    """Set while another table of the screen was walked."""


class TableScreen(ResultScreen[T]):
    """Shows its result in the table or tree that ``AUTO_FOCUS`` names."""

    READING: ClassVar[str]
    """What stands in the table while the report is being read."""
    MAKING: ClassVar[str]
    """What stands there while the first result is being made."""
    BUSY: ClassVar[str]
    """What the heading says while another one is being made."""
    ON_ROWS: ClassVar[tuple[str, ...]] = ("table_", "tree_", "timeline_iteration_")
    """What actions begin with that do nothing without a row."""
    SORTED_BY: ClassVar[str] = ""
    """Header of the column that rows are sorted by, the largest first, until another is chosen."""
    GROWS_FROM: ClassVar[int] = 0
    """Lines that the lower part has on a tall screen, where it takes more if rows leave them.

    0 where folding a row would move it.
    """
    wish: Any = None
    """What decides, beside the view state, which result is wanted."""
    DEFAULT_CSS: ClassVar[str] = """
    TableScreen.-bare #lower, TableScreen.-bare #under, TableScreen.-bare #scene { display: none; }
    """
    _made: Any = None
    """The wish of the result that is shown."""

    @property
    def main(self) -> SiftedGrid:
        """The table or tree of the result."""
        return cast("SiftedGrid", self.query_one(str(self.AUTO_FOCUS)))

    @property
    def table(self) -> VirtualTable:
        """The same where it is a table."""
        return self.query_one(str(self.AUTO_FOCUS), VirtualTable)

    def change(self, wish: Any) -> None:
        """Has another result made."""
        self.wish = wish
        self.make()

    def clear(self) -> None:
        """Nothing is known of the report yet."""
        for grid in self.query(VirtualTable):
            grid.say("")
        for pane in self.query(LinePane):
            pane.show([])
        self.main.empty = self.READING

    def say_busy(self) -> None:
        """The rows there are stay meanwhile."""
        self.main.busy = self.BUSY
        if self.result is None:
            self.main.empty = self.MAKING
            self.main.refresh()
        self.main.redraw_heading()

    def say_stopped(self, why: str) -> None:
        """What is shown stays; without that, the table says why it is empty."""
        self.main.busy, self.main.empty = "", why
        if self.result is not None:
            self.wish = self._made
            if why == CANCELLED:
                self.app.say("cancelled: what was there stays")
        self.main.refresh()
        self.main.redraw_heading()

    def _take(self, report: Report, result: T) -> None:
        """The result is the one that was wished for; beside a table without rows is nothing."""
        self._made, self.main.busy = self.wish, ""
        self.prefer()
        super()._take(report, result)
        self.set_class(not self.main.shown and not self.main.restricted, "-bare")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Beside a table without rows there is nothing to do with one."""
        if action.startswith(self.ON_ROWS) and self.has_class("-bare"):
            return False
        return super().check_action(action, parameters)

    def on_grid_counted(self, message: Grid.Counted) -> None:
        """More or fewer rows."""
        if message.grid is self.main:
            self._share_room()

    @property
    def in_instances(self) -> bool:
        """Whether the instances of a row are walked, which have the room then."""
        return False

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002
        """Another height; Textual calls the handlers of all classes."""
        self._share_room()

    def _share_room(self) -> None:
        height = self.size.height
        free = min(height - AROUND_ROWS - self.main.shown, height // 2)
        if self.GROWS_FROM:
            roomy = free > self.GROWS_FROM and not self.in_instances
            self.query_one("#lower").styles.height = free if roomy else None

    def prefer(self) -> None:
        """The rows to come are sorted as is usual here, and filtered as on the other screens."""
        shared = self.state.filter.pattern if self.main.shares_filter else None
        self.main.prefer(self.SORTED_BY, shared)

    def filter_by(self, pattern: str) -> None:
        """Only rows whose text fits, where the filter is one of all screens."""
        if self.main.shares_filter:
            self.main.filter_by(pattern)

    def look_at(
        self, kind: str, work: Callable[[], D], show: Callable[[D], None], *panes: str
    ) -> None:
        """Computes what is known about a row; while that lasts, only the last wish is kept.

        Args:
            kind: the kind of work.
            work: is done in a thread.
            show: takes its result.
            panes: selectors of the panes that are filled so; a fault is told there.
        """
        self.compute(kind, work, show, failed=partial(self.say_fault, *panes))

    def say_fault(self, *panes_and_error: Any) -> None:
        """Panes that could not be filled say why."""
        *panes, error = panes_and_error
        for selector in panes:
            pane = self.query_one(selector)
            if isinstance(pane, VirtualTable | LinePane):
                pane.say(failure_text(error))

    def view(self) -> Look:
        """What is wished for, sort, scroll and cursor."""
        return Look(self.wish, self.main.view())

    def restore(self, view: Any) -> None:
        """Takes them up again, at once or when the rows are there."""
        if not isinstance(view, Look):
            return
        if self.result is not None and self.wish == view.wish and not self.is_making:
            self.take_up(view)
            return
        self._pending = view
        if self.wish != view.wish or not self.is_making:
            self.change(view.wish)

    def take_up(self, view: Look) -> None:
        """The rows of an earlier look are there."""
        self.main.restore(view.grid)


class DetailScreen(TableScreen[T]):
    """The instances of a row take the lower part on demand; sparklines have two widths."""

    DEFAULT_CSS: ClassVar[str] = """
    DetailScreen #lower { height: 7; }
    DetailScreen.-medium #lower { height: 10; }
    DetailScreen.-tall #lower { height: 13; }
    """
    wide = False
    """Whether sparklines are wide."""

    instances = query_one("#instances", VirtualTable)
    """The instances of the current row."""

    def on_resize(self, event: events.Resize) -> None:
        """The sparkline column has two widths."""
        wide = event.size.width >= WIDE
        if wide != self.wide:
            self.wide = wide
            if self.report is not None and self.result is not None:
                self.show_result(self.report, self.result)

    def action_table_instances(self) -> None:
        """Goes to the instances of the row, or back."""
        if self.instances.has_focus:
            self.leave_instances()
        elif self.main.shown:
            self.add_class("-instances")
            self._share_room()
            self.call_after_refresh(self.instances.focus)

    def leave_instances(self) -> None:
        """Back to the rows."""
        self.remove_class("-instances")
        self.main.focus()
        self.call_after_refresh(self._share_room)

    @property
    def in_instances(self) -> bool:
        """Whether the instances are walked."""
        return self.has_class("-instances") or self.instances.has_focus

    def action_nav_escape(self) -> None:
        """Leaves the instances."""
        self.leave_instances()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the screen's only while there is something to leave."""
        if action == "nav_escape":
            return self.in_instances
        return super().check_action(action, parameters)
