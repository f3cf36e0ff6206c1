"""What the line of progress says of work in the background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.units import format_share

if TYPE_CHECKING:
    from nsys_tui.ui.messages import ProgressMoved

LONG: Final = 0.5
"""Seconds from which work is worth a line."""


@dataclass
class Work:
    """Long work in the background, a phase after the other."""

    began: float | None = None
    last: ProgressMoved | None = None
    """Where it stands."""
    phase: str = ""
    phase_began: float = 0.0

    def moved(self, progress: ProgressMoved, now: float) -> None:
        """Notes where the work is; times are seconds of a monotonic clock."""
        self.last = progress
        if self.began is None:
            self.began = now
        if progress.what != self.phase:
            self.phase, self.phase_began = progress.what, now

    def is_long(self, now: float) -> bool:
        """Whether a user should be told about it."""
        return self.began is not None and now - self.began >= LONG

    def text(self, progress: ProgressMoved, now: float) -> str:
        """One line: what, done of total where that is known, rate, time left, how to cancel."""
        done, total, elapsed = progress.done, progress.total, now - self.phase_began
        told = done and elapsed >= LONG / 2
        rate = f"  {done / elapsed:,.0f}/s" if told else ""
        left = f"  {elapsed * (total - done) / done:.0f} s left" if told and done < total else ""
        share = f" of {total:,} ({format_share(done, total)})" if total else ""
        return f"{progress.what}  {done:,}{share}{rate}{left}   esc cancels"
