"""What a capture tells its watchers while it goes on: a screen, a narrator on stderr, a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nsys_tui.capture.options.draft import Check
from nsys_tui.capture.record import Record, State
from nsys_tui.units import format_duration, format_rate, format_share


@dataclass(frozen=True)
class StateChanged:
    """The capture is in this state; ``detail`` is for a reader (``Resources``, ``33%``)."""

    state: State
    detail: str = ""

    def line(self) -> str:
        """In words."""
        return f"{self.state}{': ' if self.detail else ''}{self.detail}"


@dataclass(frozen=True)
class LogUpdate:
    """One change of the log on a screen: a line to add, or a new text for the last line."""

    text: str
    replaces: bool = False


@dataclass(frozen=True)
class LogChanged:
    """New lines of nsys's and the program's output, in order."""

    updates: tuple[LogUpdate, ...]


@dataclass(frozen=True)
class Progress:
    """How far a fetch is: bytes, bytes a second over the last 5 s, seconds left (or ``None``)."""

    name: str
    done: int
    total: int
    rate: float = 0.0
    left_s: float | None = None

    def line(self) -> str:
        """In words; rate and time left only once they can be told."""
        rate = f", {format_rate(self.rate)}" if self.rate else ""
        left = self.left_s and self.done < self.total
        wait = f", {format_duration(int((self.left_s or 0) * 1e9))} left" if left else ""
        return f"fetching {self.name}: {format_share(self.done, self.total)}{rate}{wait}"


@dataclass(frozen=True)
class Remark:
    """Something to know that changes nothing: severity (error, warning, note), text, remedy."""

    severity: str
    text: str
    remedy: str = ""

    def line(self) -> str:
        """In words."""
        return f"{self.severity}: {self.text}" + (f" ({self.remedy})" if self.remedy else "")


@dataclass(frozen=True)
class Checked:
    """The preflight's findings."""

    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Reconnecting:
    """The connection is gone; the next try comes in ``wait_s`` seconds."""

    attempt: int
    wait_s: float
    reason: str
    meanwhile: str

    def line(self) -> str:
        """In words."""
        again = f"try {self.attempt} in {self.wait_s:.0f} s"
        return f"reconnecting ({again}): {self.reason}; {self.meanwhile}"


@dataclass(frozen=True)
class StopStuck:
    """The job survived INT and TERM; only KILL is left, which loses the report: ask the user."""

    waited_s: float


@dataclass(frozen=True)
class Finished:
    """Nothing more will happen; the record says how it ended."""

    record: Record


Event = (
    StateChanged | LogChanged | Progress | Remark | Checked | Reconnecting | StopStuck | Finished
)
Listener = Callable[[Event], None]
