"""Whether two samples differ: change of the mean, its interval, and one of four verdicts.

A side is known by one estimate for each of its runs: the mean and its standard error within the
run (``blocks``). What runs differ by from one to the next is estimated where a side has three runs
or more; else it is assumed, and said to be. Both go into one t interval of the relative change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from nsys_tui.analysis.compare.blocks import Errors, block_length, mean_errors, quantile, upper_tail
from nsys_tui.model.arrays import Float64, Int64

FEWEST: Final = 5
"""Fewer steps or instances on either side allow no verdict."""
ENOUGH_RUNS: Final = 3
"""From so many runs of a side on, what runs differ by is estimated from them."""
THRESHOLD: Final = 0.01
RUN_NOISE: Final = 0.02
"""Assumed standard deviation from run to run where there are too few runs to know it."""
_LARGEST: Final = 100.0
"""Logarithm of a ratio beyond which an interval ends: its upper limit has no number."""
LEVEL: Final = 0.05
"""An interval misses the true change with this probability; also the rate of false discoveries."""
SEED: Final = 20_240_229


class Verdict(StrEnum):
    """What a change means."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    UNKNOWN = "not comparable"

    @property
    def told(self) -> bool:
        """Whether it says which side is better."""
        return self in (Verdict.BETTER, Verdict.WORSE)


@dataclass(frozen=True)
class Estimate:
    """A figure of one run."""

    value: float
    error: float | None
    """Its standard error within the run; None where too few values show it."""
    freedom: float
    """Degrees of freedom of ``error``."""


@dataclass(frozen=True)
class Sample:
    """Values of a side, such as times of steps: exact figures, and an estimate for each run."""

    count: int
    total: int
    least: int
    most: int
    median: float
    runs: tuple[Estimate, ...]

    @property
    def mean(self) -> float:
        """Mean of the runs' figures."""
        return float(np.mean([run.value for run in self.runs])) if self.runs else 0.0

    @classmethod
    def of(cls, values: ArrayLike) -> Sample:
        """A run's values in the order of time."""
        ordered = np.asarray(values, np.int64)
        return samples(ordered[None, :], block_length(ordered))[0]


def samples(values: Int64, block: int) -> list[Sample]:
    """The sample in each row of a matrix.

    Args:
        values: a row for each name, a column for each step, in the order of time.
        block: neighbouring steps that are kept together.
    """
    if not values.shape[1]:
        return [Sample(0, 0, 0, 0, 0.0, (Estimate(0.0, None, 0.0),)) for _ in values]
    totals, medians = values.sum(axis=1), np.median(values, axis=1)
    return figures(
        np.full(len(values), values.shape[1]),
        totals,
        values.min(axis=1),
        values.max(axis=1),
        medians,
        mean_errors(values, block),
    )


def figures(
    counts: Int64,
    totals: Int64,
    least: Int64,
    most: Int64,
    medians: Float64,
    errors: Errors,
) -> list[Sample]:
    """Samples from columns of figures, one entry for each."""
    columns = (counts, totals, least, most, medians, *errors)
    return [
        Sample(n, total, low, high, middle, (_estimate(total / n if n else 0.0, n, error, free),))
        for n, total, low, high, middle, error, free in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def _estimate(value: float, count: int, error: float, freedom: float) -> Estimate:
    return Estimate(value, error if count >= FEWEST else None, freedom)


def pooled(several: Sequence[Sample | None]) -> Sample:
    """One sample of several runs; a run that lacks the name spent no time in it."""
    known = [sample for sample in several if sample is not None]
    runs = [sample.runs if sample else (Estimate(0.0, 0.0, math.inf),) for sample in several]
    return Sample(
        sum(sample.count for sample in known),
        sum(sample.total for sample in known),
        min(sample.least for sample in known),
        max(sample.most for sample in known),
        float(np.mean([sample.median if sample else 0.0 for sample in several])),
        tuple(run for each in runs for run in each),
    )


def of_one_run(sample: Sample) -> Sample:
    """A sample of ranks of one run: they have its noise in common, so it is known but once."""
    errors = [run.error for run in sample.runs if run.error is not None]
    error = float(np.mean(errors)) if errors else None
    freedom = min((run.freedom for run in sample.runs), default=0.0)
    return replace(sample, runs=(Estimate(sample.mean, error, freedom),))


@dataclass(frozen=True)
class Rules:
    """How changes are judged."""

    threshold: float = THRESHOLD
    """Smaller relative changes count as none."""
    noise: float = RUN_NOISE
    """Standard deviation from run to run where the runs do not show it; relative."""
    more_is_better: bool = False
    absolute: float | None = None
    """A threshold in the figure's own unit, instead of a relative one."""


@dataclass(frozen=True)
class Change:
    """From the mean of one sample to that of another."""

    a: float
    b: float
    ratio: float | None
    """``b / a - 1``; None where A is 0 and B is not."""
    interval: tuple[float, float] | None
    """95 % interval of ``ratio``; None where there is none."""
    verdict: Verdict
    medians: tuple[float, float] = (0.0, 0.0)
    chance: float = 1.0
    """Of so large a change where the true one is within the threshold (p value, two-sided)."""
    spread: float = 0.0
    """Standard deviation from run to run that was estimated or assumed, relative."""

    @property
    def delta(self) -> float:
        """``b - a``."""
        return self.b - self.a


def relative(a: float, b: float) -> float | None:
    """``b / a - 1``, exact for exact shares; None where there is nothing to be relative to."""
    if a:
        return (b - a) / a
    return None if b else 0.0


def judge(a: Sample, b: Sample, rules: Rules = Rules()) -> Change:
    """Compares two samples of which less is better, unless the rules say otherwise."""
    medians = a.median, b.median
    ratio = relative(a.mean, b.mean)
    if a == b:
        return Change(a.mean, b.mean, 0.0, (0.0, 0.0), Verdict.SAME, medians)
    if not (_known(a.runs) and _known(b.runs)):
        return Change(a.mean, b.mean, ratio, None, Verdict.UNKNOWN, medians)
    return replace(judge_runs(a.runs, b.runs, rules), medians=medians)


def _known(runs: Sequence[Estimate]) -> bool:
    return len(runs) >= ENOUGH_RUNS or all(run.error is not None for run in runs)


def judge_runs(a: Sequence[Estimate], b: Sequence[Estimate], rules: Rules) -> Change:
    """Compares a figure of the runs of two sides."""
    before, after = (float(np.mean([run.value for run in side])) for side in (a, b))
    in_logs = rules.absolute is None and all(run.value > 0 for run in (*a, *b))
    noise = rules.noise if in_logs else rules.noise * max(before, after)
    first, second = (_scaled(side, in_logs) for side in (a, b))
    difference = _difference(first, second, noise)
    if in_logs:
        limits = math.log(max(1 - rules.threshold, 1e-9)), math.log1p(rules.threshold)
    else:
        limit = rules.threshold * before if rules.absolute is None else rules.absolute
        limits = -limit, limit
    reach = quantile(1 - LEVEL / 2, difference.freedom) * difference.error
    low, high = difference.value - reach, difference.value + reach
    verdict = _verdict(low, high, limits, rules.more_is_better)
    interval = None
    if in_logs:
        # The mean of the ratio's interval is that of means: the logs are of each run's own mean.
        interval = math.expm1(low), math.expm1(min(high, _LARGEST))
    elif before:
        interval = low / before, high / before
    return Change(
        before,
        after,
        relative(before, after),
        interval,
        verdict,
        chance=difference.chance(limits),
        spread=difference.spread,
    )


def _scaled(runs: Sequence[Estimate], in_logs: bool) -> list[Estimate]:
    if not in_logs:
        return [*runs]
    return [
        Estimate(
            math.log(run.value), None if run.error is None else run.error / run.value, run.freedom
        )
        for run in runs
    ]


def _verdict(low: float, high: float, limits: tuple[float, float], more_is_better: bool) -> Verdict:
    if low > limits[1] or high < limits[0]:
        return Verdict.BETTER if (low > limits[1]) == more_is_better else Verdict.WORSE
    if limits[0] <= low and high <= limits[1]:
        return Verdict.SAME
    return Verdict.INCONCLUSIVE


@dataclass(frozen=True)
class _Difference:
    """B minus A, and how sure it is."""

    value: float
    error: float
    freedom: float
    spread: float
    """From run to run."""

    def chance(self, limits: tuple[float, float]) -> float:
        """Two-sided p value of the change lying within the limits."""
        outside = max(self.value - limits[1], limits[0] - self.value)
        if not self.error:
            return 0.0 if outside > 0 else 1.0
        return min(1.0, 2 * upper_tail(outside / self.error, self.freedom))


def _difference(a: Sequence[Estimate], b: Sequence[Estimate], noise: float) -> _Difference:
    """The difference of the means of runs; parts of its variance each with degrees of freedom."""
    first, second = (np.array([run.value for run in side]) for side in (a, b))
    within = [_within(side) for side in (a, b)]
    many = [len(side) >= ENOUGH_RUNS for side in (a, b)]
    parts: list[tuple[float, float]] = []
    if all(many):
        parts += [(float(each.var(ddof=1)) / len(each), len(each) - 1) for each in (first, second)]
        spread = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    elif any(many):
        known, other = (0, 1) if many[0] else (1, 0)
        values, fewer = ((first, second), (second, first))[known]
        between = float(values.var(ddof=1))
        parts.append((between * (1 / len(values) + 1 / len(fewer)), len(values) - 1))
        more = max(0.0, within[other][0] - within[known][0])
        parts.append((more / len(fewer), max(within[other][1], 1.0)))
        spread = math.sqrt(between)
    else:
        shown = [values.var(ddof=1) for values in (first, second) if len(values) > 1]
        spread = max(noise, math.sqrt(float(np.mean(shown))) if shown else 0.0)
        parts.append((spread**2 * (1 / len(first) + 1 / len(second)), math.inf))
        for values, (inner, freedom) in zip((first, second), within, strict=True):
            parts.append((inner / len(values), freedom))
    variance = sum(part for part, _ in parts)
    weights = sum(part**2 / freedom for part, freedom in parts if freedom > 0)
    return _Difference(
        float(second.mean() - first.mean()),
        math.sqrt(variance),
        variance**2 / weights if weights else math.inf,
        spread,
    )


def _within(runs: Sequence[Estimate]) -> tuple[float, float]:
    """Mean variance of the runs' figures within each, and its degrees of freedom."""
    known = [run for run in runs if run.error is not None]
    if not known:
        return 0.0, math.inf
    variance = float(np.mean([(run.error or 0.0) ** 2 for run in known]))
    return variance, max(1.0, sum(run.freedom for run in known))


def discovered(changes: Sequence[Change]) -> list[Change]:
    """A family of changes, of which false discoveries are ``LEVEL`` at most (Benjamini-Hochberg).

    Those that are told and do not pass are inconclusive.
    """
    order = np.argsort([change.chance for change in changes], kind="stable")
    chances = np.array([changes[place].chance for place in order])
    passed = np.flatnonzero(chances <= LEVEL * np.arange(1, len(chances) + 1) / len(chances))
    kept = set(order[: passed[-1] + 1].tolist()) if len(passed) else set()
    return [
        replace(change, verdict=Verdict.INCONCLUSIVE)
        if change.verdict.told and place not in kept
        else change
        for place, change in enumerate(changes)
    ]


def weighted(several: Iterable[tuple[Sample, float]]) -> list[Estimate]:
    """Weighted sums of means in each run, such as the time of the same mix of kernels."""
    columns = [[(run, weight) for run in sample.runs] for sample, weight in several]
    return [
        Estimate(
            sum(run.value * weight for run, weight in row),
            math.sqrt(sum(((run.error or 0.0) * weight) ** 2 for run, weight in row)),
            max((run.freedom for run, _ in row), default=1.0),
        )
        for row in zip(*columns, strict=True)
    ]
