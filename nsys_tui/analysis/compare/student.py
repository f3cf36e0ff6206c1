"""Student's t distribution: what the standard library and NumPy do not have of it."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

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
