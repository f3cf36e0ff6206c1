"""Whether two samples differ: ratio of medians, a seeded bootstrap interval, and a verdict.

The bootstrap draws no resamples. The median of a resample of a sorted sample is one of its values,
and which one is known in distribution: the k-th smallest of n uniform numbers follows
Beta(k, n - k + 1). So a draw costs the same for five steps and for five million kernels, and only
the middle of a large sample has to be kept.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from nsys_tui.analysis.aggregate import GroupStats
    from nsys_tui.model.events import Int64

FEWEST: Final = 5
"""Fewer steps or instances on either side allow no verdict."""
THRESHOLD: Final = 0.01
DRAWS: Final = 2000
TAIL: Final = 2.5
"""Percent cut off at either side of the draws: a 95 % interval."""
SEED: Final = 20_240_229
KEPT: Final = 4096
"""Samples up to this size are kept whole."""
_REACH: Final = 5
"""Places kept around the middle, in square roots of the size: ten standard deviations of the place
of a resample's median."""


class Verdict(StrEnum):
    """What a change means."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNKNOWN = "not comparable"

    @property
    def swapped(self) -> Verdict:
        """The verdict with the sides exchanged."""
        return {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}.get(self, self)


@dataclass(frozen=True, eq=False)
class Spread:
    """A sample: exact figures, and as many of its sorted values as a bootstrap can ask for."""

    count: int
    total: int
    least: int
    most: int
    first: int
    """Place of ``middle[0]`` in the sorted sample."""
    middle: Int64
    """Sorted values from there on."""

    @classmethod
    def of(cls, ordered: Int64) -> Spread:
        """Keeps what is needed of a sorted sample."""
        count = len(ordered)
        if not count:
            return cls(0, 0, 0, 0, 0, ordered)
        reach = int(_REACH * count**0.5) + 1
        first = 0 if count <= KEPT else max(0, count // 2 - reach)
        last = count if count <= KEPT else min(count, count // 2 + reach)
        middle = ordered[first:last].astype(np.int64)
        return cls(count, int(ordered.sum()), int(ordered[0]), int(ordered[-1]), first, middle)

    @classmethod
    def single(cls, value: int) -> Spread:
        """A sample of one value."""
        return cls.of(np.array([value], np.int64))

    @cached_property
    def median(self) -> float:
        """Middle value, 0 of an empty sample."""
        if not self.count:
            return 0.0
        return float(self._at(np.array([(self.count - 1) // 2, self.count // 2])).mean())

    def equals(self, other: Spread) -> bool:
        """Whether both are the same sample."""
        mine = (self.count, self.total, self.least, self.most, self.first)
        theirs = (other.count, other.total, other.least, other.most, other.first)
        return mine == theirs and np.array_equal(self.middle, other.middle)

    def resampled(self, random: np.random.Generator, draws: int = DRAWS) -> NDArray[np.float64]:
        """Medians of ``draws`` resamples (with replacement, of the sample's own size)."""
        half = (self.count + 1) // 2
        if self.count % 2:
            place = random.beta(half, self.count - half + 1, draws)
            return self._at(self._places(place)).astype(np.float64)
        # Given the upper of the two middle ones, the lower is the largest of ``half`` numbers
        # that are uniform below it.
        upper = random.beta(half + 1, self.count - half, draws)
        lower = upper * random.random(draws) ** (1 / half)
        return (self._at(self._places(lower)) + self._at(self._places(upper))) / 2

    def _places(self, parts: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.minimum((parts * self.count).astype(np.int64), self.count - 1)

    def _at(self, places: NDArray[np.int64]) -> Int64:
        inside = np.clip(places - self.first, 0, len(self.middle) - 1)
        found: Int64 = self.middle[inside]
        return found


def spreads(stats: GroupStats) -> list[Spread]:
    """The sample of every group."""
    edges = itertools.pairwise(stats.offsets.tolist())
    return [Spread.of(stats.ordered[lo:hi]) for lo, hi in edges]


def rows_as_spreads(values: ArrayLike) -> list[Spread]:
    """The sample in each row of a matrix."""
    return [Spread.of(row) for row in np.sort(np.asarray(values, np.int64), axis=1)]


@dataclass(frozen=True)
class Change:
    """From the median of one sample to that of another."""

    a: float
    b: float
    ratio: float | None
    """``b / a - 1``; None where A's median is 0 and B's is not."""
    interval: tuple[float, float] | None
    """95 % bootstrap interval of ``ratio``; None where there is none."""
    verdict: Verdict

    @property
    def delta(self) -> float:
        """``b - a``."""
        return self.b - self.a


def judge(
    a: Spread,
    b: Spread,
    random: np.random.Generator,
    *,
    threshold: float = THRESHOLD,
    more_is_better: bool = False,
    interval: bool = True,
) -> Change:
    """Compares two samples of which less is better.

    Args:
        a: the first sample.
        b: the second.
        random: draws; equal states give equal intervals.
        threshold: smaller relative changes count as none.
        more_is_better: turns the verdict round.
        interval: False draws none for a change below the threshold, which is none anyway.
    """
    if a.equals(b):
        return Change(a.median, b.median, 0.0, (0.0, 0.0), Verdict.SAME)
    ratio = relative(a.median, b.median)
    if min(a.count, b.count) < FEWEST:
        return Change(a.median, b.median, ratio, None, Verdict.UNKNOWN)
    if not interval and ratio is not None and abs(ratio) < threshold:
        return Change(a.median, b.median, ratio, None, Verdict.SAME)
    before, after = a.resampled(random), b.resampled(random)
    return _judged(a.median, b.median, before, after, threshold, more_is_better)


def judge_together(
    pairs: Sequence[tuple[Spread, Spread]],
    weights: Sequence[float],
    random: np.random.Generator,
    *,
    threshold: float = THRESHOLD,
) -> Change:
    """Compares weighted sums of medians, such as the time of the same mix of kernels.

    Args:
        pairs: samples of each name in A and B, of at least ``FEWEST`` values.
        weights: how often each name counts.
        random: draws.
        threshold: smaller relative changes count as none.
    """
    before, after = np.zeros(DRAWS), np.zeros(DRAWS)
    a = b = 0.0
    for (first, second), weight in zip(pairs, weights, strict=True):
        a += weight * first.median
        b += weight * second.median
        same = first.equals(second)
        before += weight * (first.median if same else first.resampled(random))
        after += weight * (second.median if same else second.resampled(random))
    return _judged(a, b, before, after, threshold, more_is_better=False)


def relative(a: float, b: float) -> float | None:
    """``b / a - 1``, exact for exact shares; None where there is nothing to be relative to."""
    if a:
        return (b - a) / a
    return None if b else 0.0


def _judged(
    a: float,
    b: float,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    threshold: float,
    more_is_better: bool,
) -> Change:
    ratio = relative(a, b)
    if a and before.all():
        low, high = np.percentile((after - before) / before, (TAIL, 100 - TAIL)).tolist()
        interval = (low, high)
    else:
        low, high = np.percentile(after - before, (TAIL, 100 - TAIL)).tolist()
        interval = None
    sure = low > 0 or high < 0
    if not sure or (ratio is not None and abs(ratio) < threshold):
        return Change(a, b, ratio, interval, Verdict.SAME)
    grew = b > a
    verdict = Verdict.BETTER if grew == more_is_better else Verdict.WORSE
    return Change(a, b, ratio, interval, verdict)
