"""Whether the first step of a capture is warm-up."""

from __future__ import annotations

from dataclasses import replace
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
    if slow_after_first(times)[:1].any():
        return True
    since, end = scope.bounds(report)[0], begin + int(times[0])
    return _calls(report, scope, (since, end), Cause.MODULE) or _calls(
        report, scope, (since, begin), Cause.ALLOCATION
    )


def slow_after_first(times: Int64) -> Bool:
    """Which steps take far longer than the median of all but the first."""
    usual = np.median(times[1:]) if len(times) > 1 else np.inf
    return np.asarray(times > SLOW * usual, np.bool_)


def _calls(report: Report, scope: Scope, window: tuple[int, int], cause: Cause) -> bool:
    """Whether a call of some class is made in a part of the run."""
    api = report.api
    codes = [code for code, name in enumerate(api.names) if api_name_class(name) == cause]
    rows = replace(scope, window=window).threads(api)
    return bool(np.isin(api.name[rows], codes).any())
