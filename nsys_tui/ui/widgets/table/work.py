"""Working: short work of a widget at once, long work in a thread, told in the heading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from nsys_tui.ui.runtime.task import Task
from nsys_tui.ui.widgets.table.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

AT_ONCE: Final = 50_000
"""Tables up to this size are sorted and searched in place: it takes a few milliseconds."""


class Working(Grid):
    """A grid over many rows."""

    size_all = 0
    """Rows that the work goes over."""
    busy = ""
    """What a worker is doing for the widget."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tasks: dict[str, Task] = {}

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
