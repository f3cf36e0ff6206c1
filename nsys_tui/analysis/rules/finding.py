"""Finding: one problem, how much it costs, where it shows and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.rules.severity import Severity
    from nsys_tui.model.events import EventSet
    from nsys_tui.model.intervals import Intervals


class Confidence(StrEnum):
    """How firmly a finding is known."""

    MEASURED = "measured"
    """Events say so."""
    INFERRED = "inferred"
    """A rule over events."""
    GUESS = "guess"
    """By a name or a pattern alone."""


_OF_WORK: Final = 20
_FIGURES: Final = re.compile(r" \([^)]*\)| [\d.,]+ ?(%|x)")
"""Shares and factors in a subject, and what stands in brackets."""


@dataclass(frozen=True)
class Finding:
    """One problem found in a report."""

    rule: str
    """Name of the rule that found it."""
    severity: Severity
    title: str
    """What is wrong, with its figures, in one line."""
    subject: str
    """The same in a few words, as a list names it."""
    advice: str
    """What to do, in one line."""
    saved_ns: int
    """Time that could be saved at most, ns; 0 where it cannot be told."""
    window: tuple[int, int] | None
    """Where it shows best, ns; None for a finding about the report itself."""
    place: int | None
    """Device in ``Report.devices`` on which it shows best, or None."""
    screen: str
    """Number key of the screen that shows it."""
    command: str
    """Command that shows it, with ``REPORT`` for the file."""
    stake_ns: int = 0
    """Time that it is about, where what could be saved of it cannot be told or is less."""
    confidence: Confidence = Confidence.GUESS
    doubt: str = ""
    """How it could be wrong, in one sentence."""
    settle: str = ""
    """The command or capture that would settle the doubt, with ``REPORT`` for the file."""
    lost: Intervals | None = field(default=None, compare=False, repr=False)
    """When the GPU is idle because of it, where that is known: findings of one time are one."""
    late: int = -1
    """Place of the GPU that it mostly waits for, -1 for none."""
    metrics: str = ""
    """What sampled hardware counters say of its time, empty for nothing."""
    same_as: str = ""
    """Subject of the finding above that could give most of this time back, too."""

    @property
    def id(self) -> str:
        """What is the same in another report of the program: rule, subject and GPU, no figures."""
        about = _FIGURES.sub("", self.subject).strip().replace(" ", "-")
        return f"{self.rule}:{about}" + ("" if self.place is None else f"@{self.place}")

    @property
    def weight_ns(self) -> int:
        """By what it is rated."""
        return max(self.saved_ns, self.stake_ns)

    @property
    def order_ns(self) -> int:
        """By what it is ordered: of what nobody knows to be saved a small part counts."""
        return max(self.saved_ns, self.stake_ns // _OF_WORK)


def longest_of(events: EventSet, rows: NDArray[np.integer]) -> tuple[int, int]:
    """When the longest of some events was, as evidence."""
    row = int(rows[np.argmax(events.durations(rows))])
    return int(events.start[row]), int(events.end[row])
