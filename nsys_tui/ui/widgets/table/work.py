"""Working: short work at once, long work in a thread, and of each kind only the last result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from textual.message import Message
from textual.widget import Widget

from nsys_tui.errors import NsysTuiError
from nsys_tui.ui.loader import unexpected
from nsys_tui.ui.messages import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

AT_ONCE: Final = 50_000
"""Tables up to this size are sorted and searched in place: it takes a few milliseconds."""


class Done(Message):
    """The result of work in a thread, on its way back to the widget's own thread."""

    bubble = False

    def __init__(self, kind: str, serial: int, deliver: Callable[[], None]) -> None:
        super().__init__()
        self.kind = kind
        self.serial = serial
        self.deliver = deliver


class Working(Widget):
    """Mixin for widgets over many rows; put it before the widget class."""

    size_all = 0
    """Rows that the work goes over."""
    busy = ""
    """What a worker is doing for the widget."""

    if TYPE_CHECKING:

        def redraw_heading(self) -> None:
            """Shows what is being done; the widget has it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._serials: dict[str, int] = {}
        self._at_work: set[str] = set()

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
        serial = self._serials[kind] = self._serials.get(kind, 0) + 1
        if at_once or self.size_all <= AT_ONCE:
            self.busy = ""
            self._at_work.discard(kind)
            done(work())
            return
        self.busy = f"{what} {self.size_all:,} rows, esc cancels" if what else self.busy
        self._at_work.add(kind)
        self.redraw_heading()

        def job() -> None:
            deliver: Callable[[], None] = _nothing
            try:
                value = work()
                deliver = partial(done, value)
            except NsysTuiError as error:
                self.app.post_message(Failed(error))
            except Exception as error:
                self.app.post_message(Failed(unexpected(error)))
            self.post_message(Done(kind, serial, deliver))

        self.run_worker(job, thread=True, group=f"{self.id}-{kind}", exit_on_error=False)

    def stop_work(self) -> None:
        """What threads are still doing for the widget becomes void."""
        for kind in self._at_work:
            self._serials[kind] += 1
        self._at_work.clear()
        self.busy = ""
        self.redraw_heading()

    def _under_way(self, kind: str) -> bool:
        """Whether a thread is at work of this kind."""
        return kind in self._at_work

    def on_done(self, message: Done) -> None:
        """Takes a result in, unless it is void by now."""
        if self._serials.get(message.kind) == message.serial:
            self.busy = ""
            self._at_work.discard(message.kind)
            message.deliver()
            self.redraw_heading()


def _nothing() -> None:
    """What is delivered of work that failed."""
