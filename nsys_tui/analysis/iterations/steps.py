"""Steps of a program in time order: what each is called, when it is, and what statistics are of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Bool, Float64, Indices, Int64
from nsys_tui.units import out_of

OUTLIER_Z: Final = 3.5
_MAD_TO_SIGMA: Final = 1.4826


class Rule(StrEnum):
    """How the iterations were found."""

    ASKED = "by the pattern asked for"
    NAME = "by NVTX name"
    OUTERMOST = "by the outermost repeated NVTX range"
    NUMBERED = "by numbered NVTX ranges"
    PATTERN = "by pattern"
    NONE = "no iterations found"


CALLED_STEPS: Final = (Rule.NAME, Rule.ASKED)


def counted(never_closed: Bool, *, warm_up: int) -> Bool:
    """Iterations that statistics are of: all but the warm-up and those whose end is not known.

    Args:
        never_closed: a truth value for each, in time order.
        warm_up: how many at the beginning are warm-up.

    Returns:
        A truth value for each; true for all where none would be left.
    """
    kept = ~never_closed
    kept[:warm_up] = False
    return kept if kept.any() else np.ones(len(kept), bool)


def deviations(times: Int64, steady: Int64) -> Float64:
    """Robust distance of times from the median of the steady ones, in deviations (from the MAD).

    0 where nothing is steady; a deviation below 1 % of the median counts as 1 %.
    """
    if not len(steady):
        return np.zeros(len(times))
    median = float(np.median(steady))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(steady - median)))
    return np.asarray((times - median) / max(spread, 0.01 * median, 1.0), np.float64)


@dataclass(frozen=True, eq=False)
class Iterations:
    """Steps in time order; warm-up and what was never closed stay out of mean and deviation."""

    rule: Rule
    name: str
    """What repeats: a range name with digits as ``#``, or the length of a kernel pattern."""
    start: Int64
    own_end: Int64
    """End of each iteration's own range, or of its last kernel."""
    labels: tuple[str, ...]
    rows: Indices
    """Rows of ``Report.ranges``, empty for a kernel pattern."""
    never_closed: Bool
    """Iterations whose end is not known: of what was recorded they have all."""
    process: int = -1
    """globalPid the iterations belong to, -1 for none."""
    first: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Starts of the steps, by whatever name, that come first on their thread."""
    counts_from: int = -1
    """What the names of ranges count up from by one; -1 where they do not."""
    warm_up: int = 0
    """How many at the beginning are warm-up."""
    cuda: tuple[int, int] | None = None
    """From the first to the last row of CUDA of the process; None where it has no GPU work."""

    def __len__(self) -> int:
        return len(self.start)

    def number_of(self, text: str) -> int | None:
        """The iteration of that label, or else of that number; None where there is none."""
        if text in self.labels:
            return self.labels.index(text)
        return int(text) if text.isdecimal() and int(text) < len(self) else None

    @cached_property
    def end(self) -> Int64:
        """Start of the next iteration; the last one ends with its own range."""
        return np.append(self.start[1:], self.own_end[-1:])

    @cached_property
    def duration(self) -> Int64:
        """Time of each iteration in ns."""
        return self.end - self.start

    @cached_property
    def counted(self) -> Bool:
        """Those that statistics are of."""
        return counted(self.never_closed, warm_up=self.warm_up)

    @cached_property
    def recorded(self) -> Bool:
        """Those that CUDA was recorded in: all, unless whole steps lie before or after its rows.

        Then those which its rows only begin or end in are not, either.
        """
        if self.cuda is None:
            return np.ones(len(self), np.bool_)
        first, last = self.cuda
        late = (self.start < first) & (self.end <= first).any()
        early = (self.end > last) & (self.start >= last).any()
        return np.asarray(~(late | early), np.bool_)

    @cached_property
    def usual(self) -> Bool:
        """Those that are counted and recorded; without any, those that are counted."""
        both = self.counted & self.recorded
        return both if both.any() else self.counted

    @property
    def coverage(self) -> str:
        """In how many of them CUDA was recorded, empty for all."""
        if self.recorded.all():
            return ""
        return f"CUDA is recorded in {out_of(int(self.recorded.sum()), len(self))} steps"

    @property
    def unended(self) -> str:
        """What is said of those that were never closed."""
        return "never closed" if self.rule in CALLED_STEPS else "end unknown"

    @property
    def steady(self) -> Int64:
        """Times of those that are counted."""
        return self.duration[self.counted]

    @cached_property
    def z(self) -> Float64:
        """``deviations`` from those that are counted."""
        return deviations(self.duration, self.steady)

    @property
    def outliers(self) -> Indices:
        """Places of steady iterations that are much slower than the others."""
        return np.flatnonzero(self.counted & (self.z > OUTLIER_Z))

    @cached_property
    def typical(self) -> int:
        """The steady step whose time is nearest to the median; the first of several."""
        away = np.abs(self.duration - float(np.median(self.steady)))
        return int(np.argmin(np.where(self.usual, away, np.inf)))

    def only(self, step: int) -> Iterations:
        """One step, with the end that it has among the others."""
        return self._part(step, step + 1)

    @property
    def of_recorded(self) -> Iterations:
        """Those that CUDA was recorded in, with the ends that they have; without any, all."""
        those = np.flatnonzero(self.recorded)
        if len(those) in (0, len(self)):
            return self
        return self._part(int(those[0]), int(those[-1]) + 1)

    def _part(self, begin: int, end: int) -> Iterations:
        part, left_out = slice(begin, end), np.searchsorted(self.first, self.start[begin], "right")
        return replace(
            self,
            start=self.start[part],
            own_end=np.append(self.own_end[begin : end - 1], self.end[end - 1]),
            labels=self.labels[part],
            rows=self.rows[part],
            never_closed=self.never_closed[part],
            first=self.first[max(0, int(left_out) - 1) :],
            counts_from=self.counts_from + begin * (self.counts_from >= 0),
            warm_up=max(0, self.warm_up - begin),
        )
