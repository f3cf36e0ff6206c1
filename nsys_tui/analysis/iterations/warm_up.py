"""Whether the first step of a capture is warm-up."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.stalls.causes import Cause, api_name_class
from nsys_tui.analysis.window import Scope
from nsys_tui.model.arrays import Bool, Int64
from nsys_tui.model.report import Report

SLOW: Final = 1.5
"""So many times as long as the median a step is slow."""


def warms_up(report: Report, scope: Scope, begin: int, times: Int64) -> bool:
    """Whether the first of some steps shows what only the first of a run does.

    Memory is allocated before it, code is loaded before its end, or it takes far longer than the
    others.

    Args:
        report: the report.
        scope: in which the steps were looked for.
        begin: of the first step, ns.
        times: of all steps, ns.
    """
    slow = slow_after_first(times)[:1].any()
    return bool(slow) or sets_up(report, scope, begin + int(times[0]), begin)


def slow_after_first(times: Int64) -> Bool:
    """Which steps take far longer than the median of all but the first."""
    usual = np.median(times[1:]) if len(times) > 1 else np.inf
    return np.asarray(times > SLOW * usual, np.bool_)


def sets_up(report: Report, scope: Scope, loads: int, allocates: int) -> bool:
    """Whether code is loaded before a time, or memory allocated before another one.

    More calls must allocate than in any stretch as long after it: else that is done all the time.
    Those that free do not count: they come when a run ends.
    """
    api, rows = report.api, scope.threads(report.api)
    classes = np.array([api_name_class(name) for name in api.names], np.int64)[api.name[rows]]
    start = api.start[rows]
    if (start[classes == Cause.MODULE] < loads).any():
        return True
    frees = np.array(["Free" in name for name in api.names], np.bool_)[api.name[rows]]
    times = start[(classes == Cause.ALLOCATION) & ~frees]
    first = int(np.searchsorted(times, allocates))
    ends = times[first:] + (allocates - scope.bounds(report)[0])
    again = np.searchsorted(times, ends) - np.arange(first, len(times))
    return first > int(again.max(initial=0))
