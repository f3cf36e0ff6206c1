"""Loads a report part by part in a worker thread and tells the app as it goes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nsys_tui.errors import CancelledError, NsysTuiError
from nsys_tui.freed_memory import give_back_freed_memory
from nsys_tui.model.report import PARTS, Report
from nsys_tui.reader.ahead import read_ahead
from nsys_tui.reader.filecheck import report_id
from nsys_tui.ui.marks import load_marks
from nsys_tui.ui.messages import Failed, LoadFinished, PartLoaded, ProgressMoved, ReportOpened

if TYPE_CHECKING:
    from textual.message import Message

    from nsys_tui.model.progress import Progress
    from nsys_tui.ui.session import Session

log = logging.getLogger(__name__)

SAMPLE_FROM_BYTES: Final = 30_000_000
"""Smaller files are complete before a sample could be drawn (30 MB: 0.3 s)."""

MESSAGE_INTERVAL: Final = 0.25
"""Progress is told at most four times a second."""

Post = Callable[["Message"], object]
Opener = Callable[["Progress"], "Report"]


def load(session: Session, opener: Opener, post: Post) -> None:
    """Opens the report and loads its parts in order; every outcome is a message.

    Args:
        session: where the report goes; setting ``session.cancel`` stops the work.
        opener: opens the file, given a progress callback.
        post: thread-safe delivery of a message to the app.
    """
    progress = telling(session, post)
    try:
        session.report = report = opener(progress)
        session.report_id = report_id(report.path)
        post(ReportOpened(session, load_marks(session.report_id)))
        if session.path.stat().st_size >= SAMPLE_FROM_BYTES and not report.loaded("operations"):
            session.sample = report.sampled_operations()
            post(PartLoaded(session, "sample"))
        for part in PARTS:
            _load_part(session, report, part, progress, post)
            read_ahead.set(False)  # the other processor draws what is there
        session.sample = None
        post(LoadFinished(session))
        give_back_freed_memory()
    except CancelledError:
        post(LoadFinished(session, cancelled=True))
    except Exception as error:
        post(Failed(unexpected(error), session))
        post(LoadFinished(session))


def _load_part(session: Session, report: Report, part: str, progress: Progress, post: Post) -> None:
    if session.cancel.is_set():
        raise CancelledError("cancelled")
    try:
        report.load(part, progress)
    except CancelledError:
        raise
    except Exception as error:
        post(Failed(unexpected(error)))
    else:
        post(PartLoaded(session, part))


def telling(session: Session, post: Post) -> Progress:
    """A progress callback that tells the app, and stops the work once the session is cancelled."""
    last = 0.0

    def progress(what: str, done: int, total: int) -> None:
        nonlocal last
        if session.cancel.is_set():
            raise CancelledError("cancelled")
        now = time.monotonic()
        if now - last >= MESSAGE_INTERVAL:
            last = now
            post(ProgressMoved(what, done, total))

    return progress


def unexpected(error: Exception) -> NsysTuiError:
    """What the error bar shows of a fault: of one of the program itself the log gets the place."""
    if isinstance(error, NsysTuiError):
        return error
    log.debug("unexpected fault", exc_info=error)
    return NsysTuiError(
        f"internal error: {type(error).__name__}: {error}",
        hint="run with --log FILE for the details; the rest of the app still works",
    )
