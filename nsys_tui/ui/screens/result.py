"""ResultScreen: a screen over one result of the report in front, made anew when that needs it.

A subclass says what is made (``work``), how it is shown (``show_result``), and what is shown
without one (``clear``, ``say_busy``, ``say_stopped``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.state import Selection, ViewState
from nsys_tui.ui.loader import unexpected
from nsys_tui.ui.scoping import same_scope
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.widgets.table.grid import Grid

T = TypeVar("T")

AGAIN: Final = "R reads the report again"
CANCELLED: Final = f"cancelled: {AGAIN}"


class ResultScreen(ReportScreen, Generic[T]):
    """Waits for a result, shows it, and keeps to window, scope, filter and selection."""

    KIND: ClassVar[str] = "table"
    """Kind of the work that makes the result."""
    GOES_BACK: ClassVar[bool] = False
    """Whether the cursor goes to the selection in every new result, not in the first alone."""
    BY_NAMES: ClassVar[bool] = False
    """Whether the result depends on how kernels are named."""

    def __init__(self) -> None:
        super().__init__()
        self.result: T | None = None
        self._pending: Any = None
        """The look to take up when the result is there."""
        self._is_sent = False
        """Whether the result that is being made is for a selection that came with it."""

    def work(self, report: Report) -> Callable[[Progress], T]:
        """What a worker does to make the result that is wanted now."""
        raise NotImplementedError

    def show_result(self, report: Report, result: T) -> None:
        """Shows a result; ``self.result`` is this one already."""
        raise NotImplementedError

    def clear(self) -> None:
        """Shows that nothing is known of the report yet."""
        raise NotImplementedError

    def say_busy(self) -> None:
        """Shows that a result is being made."""

    def say_stopped(self, why: str) -> None:
        """Shows why there is no new result; an earlier one stays."""

    def go_to(self, selection: Selection) -> None:
        """Puts the cursor on what is selected, if it is shown."""

    def filter_by(self, pattern: str) -> None:
        """Restricts what is shown to the shared filter."""

    def needs_new(self, old: ViewState, new: ViewState) -> bool:
        """Whether another view state needs another result."""
        renamed = self.BY_NAMES and old.display.names != new.display.names
        return renamed or not same_scope(old, new)

    @property
    def can_begin(self) -> bool:
        """Whether as much of the report is read as the result needs."""
        return self.report is not None and self.session.finished

    @property
    def is_making(self) -> bool:
        """Whether a result is on its way."""
        return self.task_of(self.KIND).busy

    def show_report(self) -> None:
        """A new report: nothing is known yet."""
        self.result = self._pending = None
        self.clear()

    def load_finished(self) -> None:
        """Everything is there."""
        self.make()

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """Window and scope need another result; filter and selection are followed in this one."""
        chosen = old.selection != new.selection and new.selection is not None
        if self.needs_new(old, new):
            self._is_sent = chosen
            self.make()
        if self.result is None:
            return
        if not self.needs_new(old, new):
            self.display_changed(old, new)
        if old.filter.pattern != new.filter.pattern:
            self.filter_by(new.filter.pattern)
        if chosen and new.selection is not None:
            self.go_to(new.selection)

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Shows the same result as the display wants it now."""

    def make(self) -> None:
        """Has the result made that is wanted now."""
        if not self.can_begin:
            return
        self.say_busy()
        report = cast("Report", self.report)  # a screen of several reports asks for none
        take = partial(self._take, report)
        cancelled = partial(self.say_stopped, CANCELLED)
        self.compute_telling(self.KIND, self.work(report), take, cancelled, self._failed)

    def _failed(self, error: Exception) -> None:
        self.say_stopped(failure_text(error))

    def _take(self, report: Report, result: T) -> None:
        first, self.result = self.result is None, result
        self.show_result(report, result)
        if self._pending is not None:
            view, self._pending = self._pending, None
            self.restore(view)
        elif (first or self.GOES_BACK or self._is_sent) and self.state.selection is not None:
            self.go_to(self.state.selection)
        self._is_sent = False

    def on_grid_filtered(self, message: Grid.Filtered) -> None:
        """The filter is shared by all screens of one report."""
        if self.OF_ONE_REPORT:
            shared = replace(self.state.filter, pattern=message.pattern)
            self.app.set_state(replace(self.state, filter=shared))

    def action_timeline_whole(self) -> None:
        """The whole trace again."""
        self.app.show(self.SCREEN, window=None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The whole trace can be shown where it is not."""
        if action == "timeline_whole":
            return self.state.window is not None
        return super().check_action(action, parameters)


def failure_text(error: Exception) -> str:
    """What a pane says that could not be filled; the error bar has the details."""
    return f"{unexpected(error).title}\n{AGAIN}"
