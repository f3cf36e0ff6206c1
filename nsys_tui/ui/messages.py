"""What the loader tells the app; small dataclasses, posted from worker threads."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from nsys_tui.errors import NsysTuiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from textual.message_pump import MessagePump

    from nsys_tui.state import Mark
    from nsys_tui.ui.session import Session


@dataclass
class ReportOpened(Message):
    """A report's metadata are there; its parts follow."""

    session: Session
    marks: Mapping[str, Mark]
    """Bookmarks saved for it."""


@dataclass
class PartLoaded(Message):
    """One of the report's ``PARTS`` is complete."""

    session: Session
    part: str


@dataclass
class LoadFinished(Message):
    """All parts are complete, or loading was cancelled."""

    session: Session
    cancelled: bool = False


@dataclass
class Failed(Message):
    """Something in a worker went wrong; the bar shows it until it is seen."""

    error: NsysTuiError
    unread: Session | None = None
    """The report that could not be read, where that is what went wrong."""


@contextmanager
def failures_shown(app: MessagePump) -> Iterator[None]:
    """What cannot be done as asked ends here, and the bar says why."""
    try:
        yield
    except NsysTuiError as error:
        app.post_message(Failed(error))


@dataclass
class WorkEnded(Message):
    """Long work of a screen is over, one way or another."""


@dataclass
class ProgressMoved(Message):
    """Work in the background got on; floods coalesce."""

    what: str
    done: int
    total: int

    def can_replace(self, message: Message) -> bool:
        """Only the last of several waiting messages is delivered."""
        return isinstance(message, ProgressMoved)
