"""Regular expressions that a user wrote, with a limit on how long they may take."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterable, Iterator
from typing import Final

from nsys_tui.errors import UsageError

SECONDS: Final = 2.0


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression, ready to be used.

    Raises:
        UsageError: it is none, or too large or too deep a one.
    """
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"not a regular expression: {pattern!r}", str(error)) from error


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names in which a pattern occurs.

    Raises:
        UsageError: it is no regular expression, or takes more than ``SECONDS``.
    """
    test = compiled(pattern)
    with time_limit(SECONDS, f"too slow a regular expression: {pattern!r}"):
        return [name for name in names if test.search(name)]


@contextlib.contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raises a usage error in the middle of the work; signals reach the main thread alone."""
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise UsageError(what, hint="repetitions within repetitions, such as (a+)+, take for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
