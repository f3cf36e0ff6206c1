"""Latest: one job at a time, and of the wishes that came meanwhile only the last one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from nsys_tui.errors import CancelledError, NsysTuiError
from nsys_tui.ui.loader import unexpected
from nsys_tui.ui.messages import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.progress import Progress
    from nsys_tui.ui.screens.base import ReportScreen

T = TypeVar("T")


class Latest(Generic[T]):
    """Runs jobs of one kind for a screen; held keys never queue up work.

    Args:
        screen: whose worker threads run the jobs.
        group: name of the kind, for ``ReportScreen.compute``.
        done: takes a result, on the screen's own thread.
        stopped: is called there after Esc cancelled a job.
    """

    def __init__(
        self,
        screen: ReportScreen,
        group: str,
        done: Callable[[T], None],
        stopped: Callable[[], None] | None = None,
    ) -> None:
        self._screen, self._group, self._done, self._stopped = screen, group, done, stopped
        self._waiting: Callable[[], None] | None = None
        self.busy = False

    def reset(self) -> None:
        """Forgets everything, after another report came to the front."""
        self._waiting, self.busy = None, False

    def ask(self, work: Callable[[], T]) -> None:
        """Runs ``work`` in a thread now, or when the job under way is over."""
        self._ask(lambda: self._screen.compute(self._group, lambda: _attempt(work), self._finish))

    def ask_telling(self, work: Callable[[Progress], T]) -> None:
        """The same for work that lasts: it gets a progress callback, and Esc cancels it."""
        self._ask(
            lambda: self._screen.compute_telling(
                self._group, lambda progress: _attempt(partial(work, progress)), self._finish
            )
        )

    def _ask(self, start: Callable[[], None]) -> None:
        if self.busy:
            self._waiting = start
        else:
            self.busy = True
            start()

    def _finish(self, result: T | Exception) -> None:
        self.busy = False
        following, self._waiting = self._waiting, None
        if isinstance(result, CancelledError):
            if self._stopped is not None and following is None:
                self._stopped()
        elif isinstance(result, NsysTuiError):
            self._screen.app.post_message(Failed(result))
        elif isinstance(result, Exception):
            self._screen.app.post_message(Failed(unexpected(result)))
        elif following is None:
            self._done(result)
        if following is not None:
            self._ask(following)


def _attempt(work: Callable[[], T]) -> T | Exception:
    """A failed job must not leave the next ones waiting, so its error is a result."""
    try:
        return work()
    except Exception as error:
        return error
