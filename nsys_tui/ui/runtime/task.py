"""Task: work of one kind in the background, of which only the latest result counts.

Textual 8.2.8 runs workers in threads, but an exclusive one that is overtaken runs on beside the
next, and a fault in what takes its result ends the widget that takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nsys_tui.errors import CancelledError
from nsys_tui.freed_memory import give_back_freed_memory
from nsys_tui.ui.runtime.threads import counted, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.dom import DOMNode

T = TypeVar("T")


@dataclass(eq=False)
class Job(Generic[T]):
    """One wish: what is to be done, and who takes what comes of it."""

    work: Callable[[Callable[[], None]], T]
    done: Callable[[T], None]
    stopped: Callable[[], None] | None
    failed: Callable[[Exception], None] | None

    def failure(self, error: Exception) -> Callable[[], None] | None:
        """What tells of the first fault."""
        tell, self.failed = self.failed, None
        return None if tell is None else partial(tell, error)


class Task:
    """One job at a time, and of the wishes that came meanwhile only the last one.

    So held keys never queue up work. Results are taken on the owner's own thread; a fault of the
    work, or of what takes its result, is shown and leaves everything working.

    Args:
        owner: the screen or widget whose workers run the jobs.
        name: the kind of work, for Textual's group of workers.
    """

    def __init__(self, owner: DOMNode, name: str) -> None:
        self._owner = owner
        self._name = name
        self._job: Job[Any] | None = None
        self._next: Job[Any] | None = None

    @property
    def busy(self) -> bool:
        """Whether a job is under way."""
        return self._job is not None

    def drop(self) -> None:
        """What is under way becomes void; the next wish does not wait for it."""
        self._job = self._next = None

    def run(
        self,
        work: Callable[[], T],
        done: Callable[[T], None],
        stopped: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Does some work in a thread, now or when the job under way is over.

        Args:
            work: is done in the thread.
            done: takes its result.
            stopped: is called instead when it was cancelled.
            failed: is called with a fault instead, which is shown already.
        """
        self.run_checked(lambda _: work(), done, stopped, failed)

    def run_checked(
        self,
        work: Callable[[Callable[[], None]], T],
        done: Callable[[T], None],
        stopped: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """The same for work that calls its argument now and then: that ends it once it is void."""
        job = Job(work, done, stopped, failed)
        if self._job is None:
            self._start(job)
        else:
            self._next = job

    def _start(self, job: Job[Any]) -> None:
        self._job = job
        in_thread = once(partial(self._in_thread, job))
        self._owner.run_worker(in_thread, thread=True, group=self._name, exit_on_error=False)

    def _in_thread(self, job: Job[T]) -> None:
        app: Any = self._owner.app
        take: Callable[[], None] | None
        try:
            with counted(app.jobs):
                take = partial(job.done, job.work(partial(self._check, job)))
        except CancelledError:
            take = job.stopped
        except Exception as error:
            app.report_fault(error)
            take = job.failure(error)
        self._owner.call_later(self._end, job, take)
        del take
        give_back_freed_memory()

    def _check(self, job: Job[Any]) -> None:
        if job is not self._job or self._next is not None:
            raise CancelledError("overtaken")

    def _end(self, job: Job[Any], take: Callable[[], None] | None) -> None:
        if job is not self._job:
            return
        self._job, following, self._next = None, self._next, None
        if following is not None:
            self._start(following)
        elif take is not None:
            self._take(job, take)

    def _take(self, job: Job[Any], take: Callable[[], None]) -> None:
        try:
            take()
        except Exception as error:
            app: Any = self._owner.app
            app.report_fault(error)
            tell = job.failure(error)
            if tell is not None:
                tell()
