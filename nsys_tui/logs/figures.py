"""Figures of logs, exact, never by way of a binary fraction: as written, mean, median and tail."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction


def decimals(value: Fraction | None, digits: int = 6) -> str | None:
    """A value with fixed decimals, rounded half to even from the exact value."""
    if value is None:
        return None
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        return str(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN))


def seconds(ns: Fraction | int | None) -> str | None:
    """Nanoseconds as seconds with six decimals, as the AWK kit prints them."""
    return None if ns is None else decimals(Fraction(ns) / 10**9)


def exact(value: object) -> Fraction | None:
    """A number that JSON told, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(str(value))


def known(value: int) -> int | None:
    """None for -1."""
    return None if value < 0 else value


@dataclass(frozen=True)
class Spread:
    """One figure over the lines that have it, exact."""

    count: int
    mean: Fraction
    median: Fraction
    p95: Fraction
    min: Fraction
    max: Fraction


def mean_of(values: Sequence[tuple[Fraction | int | None, int]]) -> Fraction | None:
    """Mean of values with their weights; None without any."""
    known = [(value, weight) for value, weight in values if value is not None]
    total = sum(weight for _, weight in known)
    if not total:
        return None
    return sum((Fraction(value) * weight for value, weight in known), Fraction(0)) / total


def weighted_spread(values: Sequence[tuple[Fraction | int | None, int]]) -> Spread | None:
    """Figures of values with the number of steps that each is a mean over."""
    mean = mean_of(values)
    ordered = sorted((Fraction(value), weight) for value, weight in values if value is not None)
    if mean is None:
        return None
    return Spread(
        len(ordered),
        mean,
        _quantile(ordered, Fraction(1, 2)),
        _quantile(ordered, Fraction(95, 100)),
        ordered[0][0],
        ordered[-1][0],
    )


def spread_of(values: Sequence[Fraction | None]) -> Spread | None:
    """Figures of values that count alike."""
    return weighted_spread([(value, 1) for value in values])


def _quantile(ordered: Sequence[tuple[Fraction, int]], q: Fraction) -> Fraction:
    """Quantile of ascending values that each stand for many, linear between neighbours."""
    ends = list(itertools.accumulate(weight for _, weight in ordered))
    at = q * (ends[-1] - 1)
    below = ordered[bisect_right(ends, math.floor(at))][0]
    above = ordered[bisect_right(ends, math.ceil(at))][0]
    return below + (above - below) * (at - math.floor(at))
