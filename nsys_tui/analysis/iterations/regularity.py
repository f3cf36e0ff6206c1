"""Whether repeats of a kernel pattern look like steps: in length, in coverage, and on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report

ALIKE: Final = 0.25
"""Share of the median by which a step by pattern may differ from it."""
MOSTLY: Final = 0.75
"""Share of repeats that have to be alike: else they are a loop in a program, not its steps."""
SAME: Final = 0.9
"""Share of the launches of repeats that come from one thread, by the calls of the one before."""


def are_alike(values: Int64) -> bool:
    """Whether most of some values are near their median."""
    middle = float(np.median(values))
    return float((np.abs(values - middle) <= ALIKE * middle).mean()) >= MOSTLY


def is_launched_alike(report: Report, rows: NDArray[np.intp], period: int) -> bool:
    """Whether the host launches each repeat of a pattern in the same way.

    One thread launches it, by the same calls in the same order, and makes about as many calls from
    one repeat to the next. True where the launching calls were not recorded.

    Args:
        report: the report.
        rows: kernels of the pattern, in time order.
        period: kernels of a repeat.
    """
    calls = report.calls[rows]
    if not len(report.api) or 2 * int((calls >= 0).sum()) < len(calls):
        return True
    api, known = report.api, calls >= 0
    thread = np.where(known, api.thread[calls], -1)
    usual = int(np.bincount(thread[known]).argmax())
    name = np.where(known, api.name[calls], -1)
    same = (name[:-period] == name[period:]).mean() if len(name) > period else 1.0
    if min(float((thread == usual).mean()), float(same)) < SAME:
        return False
    heads = calls[::period]
    mine = np.flatnonzero((api.thread == usual) & api.real)
    place = np.searchsorted(api.start[mine], api.start[heads[heads >= 0]])
    between = np.diff(place)
    return bool((between >= 0).mean() >= SAME) and are_alike(between) if len(between) else True
