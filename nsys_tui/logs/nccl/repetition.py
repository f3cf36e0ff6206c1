"""What a rank does over and over, and where it once does not."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.model.arrays import Integers

_LONGEST: Final = 4096
"""Calls that may come over and over."""


def comes_over(codes: Integers) -> bool:
    """Whether some calls, the first to the last, come over and over."""
    periods = range(1, min(len(codes) // 2, _LONGEST) + 1)
    return any(
        len(codes) % period == 0
        and (codes[:period] == codes[period : 2 * period]).all()
        and (codes[period:] == codes[:-period]).all()
        for period in periods
    )


def broken(codes: Integers, lacking: int) -> int | None:
    """Where one call lacks in some that come over and over, or another stands in its place.

    None where that is not what they do.
    """
    for period in range(1, min(len(codes) // 2, _LONGEST) + 1):
        first, last = codes[:period], codes[len(codes) - period :]
        if (first != codes[period : 2 * period]).any() and (
            last != codes[len(codes) - 2 * period : len(codes) - period]
        ).any():
            continue
        odd = np.flatnonzero(codes[period:] != codes[:-period])
        for place in (int(odd[0]) + period, int(odd[-1]), int(odd[-1]) + 1) if len(odd) else ():
            for rest in (place, place + 1):
                whole = np.concatenate([codes[:place], [lacking], codes[rest:]])
                if (whole[period:] == whole[:-period]).all():
                    return place
    return None
