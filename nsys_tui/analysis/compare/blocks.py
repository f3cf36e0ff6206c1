"""Standard errors of figures of a run whose neighbouring steps are alike: the block bootstrap.

Of means the moving-block bootstrap's error has a closed form, the spread of the means of all runs
of neighbours, so nothing is drawn. Quantiles and shares are drawn, with a fixed seed.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.aggregate import GroupStats
from nsys_tui.model.arrays import Bool, Float64, Int64

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
