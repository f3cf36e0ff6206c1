"""What the line of progress says: what is done, how fast, how long it still takes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.ui.messages import ProgressMoved


@contextmanager
def counted(jobs: set[int]) -> Iterator[None]:
    """Keeps the number of the running thread in ``jobs`` while its work lasts."""
    me = get_ident()
    jobs.add(me)
    try:
        yield
    finally:
        jobs.discard(me)


LONG: Final = 0.5
"""Seconds from which work is worth a line."""


@dataclass
class Work:
    """Long work in the background, a phase after the other."""

    began: float | None = None
    phase: str = ""
    phase_began: float = 0.0

    def moved(self, what: str, now: float) -> None:
        """Notes that the work is at ``what``; times are seconds of a monotonic clock."""
        if self.began is None:
            self.began = now
        if what != self.phase:
            self.phase, self.phase_began = what, now

    def is_long(self, now: float) -> bool:
        """Whether a user should be told about it."""
        return self.began is not None and now - self.began >= LONG

    def text(self, progress: ProgressMoved, now: float) -> str:
        """One line: what, done of total where that is known, rate, time left, how to cancel."""
        done, total, elapsed = progress.done, progress.total, now - self.phase_began
        rate = f"  {done / elapsed:,.0f}/s" if elapsed > 0 and done else ""
        left = f"  {elapsed * (total - done) / done:.0f} s left" if 0 < done < total else ""
        share = f" of {total:,} ({100 * done // total}%)" if total else ""
        return f"{progress.what}  {done:,}{share}{rate}{left}   esc cancels"
