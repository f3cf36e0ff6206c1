"""The tail of step times: p95, p99 and the share of slow steps, each with its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.compare.blocks import block_length, redrawn
from nsys_tui.analysis.compare.side import WHOLE
from nsys_tui.analysis.compare.stats import FEWEST, SEED, Estimate, Sample
from nsys_tui.analysis.iterations.warm_up import SLOW
from nsys_tui.model.arrays import Int64

TAILS: Final = {"p95": 40, "p99": 200, "slow": FEWEST}
"""Figures of the tail, and the steps from which each is known."""


def tails(times: Int64, seed: int = SEED) -> dict[str, Sample]:
    """Figures of the tail that a run's steps are enough for.

    Args:
        times: of the steady steps, in their order, ns.
        seed: of the moving-block bootstrap.
    """
    count = len(times)
    known = [key for key, fewest in TAILS.items() if count >= fewest]
    if not known:
        return {}
    block = block_length(times)
    drawn = redrawn(times, block, seed)
    makers: dict[str, Callable[[Any], Any]] = {
        "p95": lambda rows: np.percentile(rows, 95, axis=-1),
        "p99": lambda rows: np.percentile(rows, 99, axis=-1),
        "slow": _slow_share,
    }
    by_metric = {}
    for key in known:
        value = float(makers[key](times))
        error = float(np.std(makers[key](drawn), ddof=1))
        if key == "slow":
            error = max(error, _least_error(value, count, block))
        estimate = Estimate(value, error, max(count / block - 1, 1.0))
        whole = round(value)
        by_metric[key] = Sample(count, whole * count, whole, whole, value, (estimate,))
    return by_metric


def _slow_share(rows: Int64) -> Any:
    """Share of the steps above ``SLOW`` medians of their own run, in billionths."""
    limit = SLOW * np.median(rows, axis=-1, keepdims=True)
    return WHOLE * (rows > limit).mean(axis=-1)


def _least_error(share: float, count: int, block: int) -> float:
    """No share is known better than by one step more or less: none seen is not none."""
    part = (share / WHOLE * count + 0.5) / (count + 1)
    return WHOLE * math.sqrt(part * (1 - part) * block / count)
