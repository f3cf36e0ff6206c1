"""Standard errors of a run whose neighbouring steps are alike (block bootstrap); Student's t.

Of means the moving-block bootstrap's error has a closed form, the spread of the means of all runs
of neighbours, so nothing is drawn. Quantiles and shares are drawn, with a fixed seed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.aggregate import GroupStats
from nsys_tui.model.arrays import Bool, Float64, Int64

_NORMAL: Final = NormalDist()
_LARGE: Final = 1e5
"""From so many degrees of freedom on it is the normal distribution."""


def upper_tail(t: float, freedom: float) -> float:
    """Probability of a value above ``t``."""
    if freedom >= _LARGE:
        return _NORMAL.cdf(-t)
    tail = 0.5 * _beta(freedom / (freedom + t * t), freedom / 2, 0.5)
    return tail if t > 0 else 1 - tail


@lru_cache(maxsize=4096)
def quantile(p: float, freedom: float) -> float:
    """The value that a part ``p`` of above one half lies below."""
    if freedom >= _LARGE:
        return _NORMAL.inv_cdf(p)
    half = (freedom + 1) / 2
    scale = math.exp(math.lgamma(half) - math.lgamma(freedom / 2)) / math.sqrt(math.pi * freedom)
    # From below: the tail is convex, so Newton's steps never go beyond.
    found = _NORMAL.inv_cdf(p)
    for _ in range(200):
        density = scale * math.exp(-half * math.log1p(found * found / freedom))
        more = (upper_tail(found, freedom) - (1 - p)) / density
        found += more
        if abs(more) < 1e-13 * found:
            break
    return found


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, 400):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(value - before) < 1e-13 * abs(value):
            break
    return front * value


DRAWS: Final = 400
CELLS: Final = 1 << 22
"""Most values drawn of one sample: a long one is drawn less often."""
BATCHES: Final = 32
"""Parts, in the order of time, into which the instances of a name are cut."""


class Errors(NamedTuple):
    """Standard errors of means, and the degrees of freedom of each."""

    error: Float64
    freedom: Float64


def block_length(values: Int64) -> int:
    """How many neighbouring values belong together (Politis and White 2004, corrected 2009).

    Args:
        values: in the order of time.
    """
    count = len(values)
    away = values - values.mean() if count else values.astype(np.float64)
    if count < 8 or not away.any():
        return 1
    most = max(1, min(math.ceil(3 * math.sqrt(count)), count // 4))
    size = 1 << (2 * count - 1).bit_length()
    power = np.abs(np.fft.rfft(away, size)) ** 2
    covariance = np.fft.irfft(power, size)[: count // 2] / count
    quiet = max(5, math.ceil(math.sqrt(math.log10(count))))
    loud = np.abs(covariance[1:] / covariance[0]) > 2 * math.sqrt(math.log10(count) / count)
    last = _last_before_quiet(loud, quiet)
    if not last:
        return 1
    lags = np.arange(1, min(2 * last, len(covariance) - 1) + 1)
    taper = np.clip(2 - 2 * lags / (2 * last), 0, 1)
    weighted = taper * covariance[lags]
    slope, level = 2 * float(lags @ weighted), covariance[0] + 2 * float(weighted.sum())
    if level <= 0:
        return most
    length = (1.5 * (slope / level) ** 2 * count) ** (1 / 3)
    return int(min(max(1, math.ceil(length)), most))


def _last_before_quiet(loud: Bool, quiet: int) -> int:
    """The last lag that counts before ``quiet`` ones that do not; 0 for none."""
    last = 0
    for place in np.flatnonzero(loud).tolist():
        if place - last >= quiet:
            break
        last = place + 1
    return last


def mean_errors(values: Int64, block: int) -> Errors:
    """Standard error of the mean of each row, as the moving-block bootstrap has it.

    Args:
        values: a row for each name, a column for each step.
        block: columns that are kept together.
    """
    rows, count = values.shape
    block = min(block, max(count // 2, 1))
    if count < 2:
        return Errors(np.zeros(rows), np.ones(rows))
    means = values.mean(axis=1, keepdims=True)
    if block == 1:
        squares = values.var(axis=1)
    else:
        summed = np.cumsum(values, axis=1, dtype=np.int64)
        moving = summed[:, block - 1 :].copy()
        moving[:, 1:] -= summed[:, :-block]
        squares = block * np.square(moving / block - means).mean(axis=1)
    freedom = count / block - 1
    return Errors(np.sqrt(squares / (count - block)), np.full(rows, max(freedom, 1.0), np.float64))


def instance_errors(groups: GroupStats) -> Errors:
    """Standard error of the mean of each group, from batches of its values in their order."""
    counts, size = groups.counts, len(groups)
    if not len(groups.values):
        return Errors(np.zeros(size), np.ones(size))
    narrow = groups.codes.astype(np.uint16) if size <= 1 << 16 else groups.codes
    values = groups.values[np.argsort(narrow, kind="stable")]
    batches = np.minimum(counts, BATCHES)
    owner = np.repeat(np.arange(size), batches)
    first = np.repeat(np.cumsum(batches) - batches, batches)
    number = np.arange(len(owner)) - first
    edges = groups.offsets[owner] + number * counts[owner] // batches[owner]
    lengths = np.diff(np.append(edges, len(values)))
    away = np.add.reduceat(values, edges) - np.nan_to_num(groups.mean)[owner] * lengths
    squares = np.bincount(owner, away * away, minlength=size)
    spare = np.maximum(batches - 1, 1)
    return Errors(
        np.sqrt(squares * batches / spare) / np.maximum(counts, 1), spare.astype(np.float64)
    )


def redrawn(values: Int64, block: int, seed: int) -> Int64:
    """Moving-block resamples of a sample, a row each."""
    count = len(values)
    draws = int(min(DRAWS, max(50, CELLS // count)))
    random = np.random.default_rng(seed)
    starts = random.integers(0, count - block + 1, (draws, -(-count // block)))
    places = (starts[:, :, None] + np.arange(block)).reshape(draws, -1)[:, :count]
    return np.asarray(values[places], np.int64)
