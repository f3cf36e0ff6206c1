"""How many steps at the beginning of a capture are warm-up."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui.analysis.stalls.causes import Cause, api_name_class
from nsys_tui.analysis.window import Scope
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.events import ApiCalls, Ranges
from nsys_tui.model.report import Report

SLOW: Final = 1.5
"""So many times as long as the median a step is slow."""
_RARE: Final = 0.1
"""Share of slow steps up to which those at the beginning are warm-up."""
_SHORT: Final = 1 / 3
"""Share of the steps above which slow ones at the beginning are a phase of their own."""
_STEADY: Final = 5
"""Steps that have to be left for slow ones after the first to be warm-up."""
CONTEXT_NS: Final = 10_000_000
"""No context is set up in less time: the call is merely the first that was recorded."""
_ASKS: Final = re.compile(r"cu(da)?\w*(Init|Get)")
"""Calls that start the driver, or ask: they make no context, however long they take."""


def warm_up_steps(report: Report, scope: Scope, start: Int64, times: Int64, *, first: bool) -> int:
    """How many steps at the beginning show what only the first of a run do.

    Of the first, memory is allocated before it, code is loaded before its end, or it takes far
    longer than the others. Those right after it do so, too, and code is loaded in them, or hardly
    any comes later.

    Args:
        report: the report.
        scope: in which the steps were looked for.
        start: of all steps, ns.
        times: of all steps, ns.
        first: whether the first step is known to be that of the run.
    """
    usual = np.median(times[1:]) if len(times) > 1 else np.inf
    slow = times > SLOW * usual
    begin, end = int(start[0]), int(start[0] + times[0])
    if not (first or slow[0] or sets_up(report, scope, end, begin)):
        return 0
    count = _leading(slow)
    later = slow[count:]
    if len(later) >= _STEADY and count <= _SHORT * len(times) and later.mean() <= _RARE:
        return count
    loads, _ = _set_up_calls(report, scope)
    return _leading(slow & (np.diff(np.searchsorted(loads, [start, start + times]), axis=0)[0] > 0))


def _leading(wanted: Bool) -> int:
    """The first and those right after it that are wanted."""
    return 1 + int(np.argmin(np.append(wanted[1:], False)))


def _set_up_calls(report: Report, scope: Scope) -> tuple[Int64, Int64]:
    """When code is loaded, and when memory is allocated.

    Calls that free do not count: they come when a run ends.
    """
    api, rows = report.api, scope.threads(report.api)
    classes = np.array([api_name_class(name) for name in api.names], np.int64)[api.name[rows]]
    frees = np.array(["Free" in name for name in api.names], np.bool_)[api.name[rows]]
    start = api.start[rows]
    return start[classes == Cause.MODULE], start[(classes == Cause.ALLOCATION) & ~frees]


def sets_up(report: Report, scope: Scope, loads: int, allocates: int) -> bool:
    """Whether code is loaded before a time, or a context made or memory allocated before another.

    More calls must allocate than in any stretch as long after it: else that is done all the time.
    """
    loaded, times = _set_up_calls(report, scope)
    if (loaded < loads).any() or (_contexts(report) < allocates).any():
        return True
    first = int(np.searchsorted(times, allocates))
    ends = times[first:] + (allocates - scope.bounds(report)[0])
    again = np.searchsorted(times, ends) - np.arange(first, len(times))
    return first > int(again.max(initial=0))


def _contexts(report: Report) -> Int64:
    """When processes make their first call, if it lasts as long as making a context does.

    One that waits for the GPU or launches something has one by then.
    """
    api = report.api
    _, first = np.unique(api.thread_process[api.thread], return_index=True)
    classes = np.array([api_name_class(name) for name in api.names], np.int64)[api.name[first]]
    makes = np.isin(classes, (Cause.ALLOCATION, Cause.API)) & (api.durations(first) >= CONTEXT_NS)
    return api.start[first[makes & ~np.isin(first, report.calls)]]


def does_more(api: ApiCalls, rows: Indices) -> Bool:
    """Which calls do more than start the driver, such as cuInit, and ask."""
    asks = np.array([_ASKS.match(name) is not None for name in api.names], np.bool_)
    return np.asarray(~asks[api.name[rows]], np.bool_)


def round_begins(ranges: Ranges, rows: Indices) -> int:
    """When the first round begins of which some steps are a part, such as rollout and training.

    Ranges of the steps' thread that come once before each step belong to its round.

    Args:
        ranges: all ranges.
        rows: of the steps, in start order.
    """
    often = np.bincount(ranges.name) == len(rows)
    mine = np.flatnonzero(often[ranges.name] & (ranges.thread == ranges.thread[rows[0]]))
    turn = np.searchsorted(ranges.start[rows], ranges.start[mine])
    _, once = np.unique(np.stack((ranges.name[mine], turn)), axis=1, return_index=True)
    alternates = np.bincount(ranges.name[mine[once]], minlength=len(often)) == len(rows)
    first = mine[alternates[ranges.name[mine]] & (turn == 0)]
    return int(ranges.start[np.append(first, rows[0])].min())
