"""Gaps once for each of their causes: every nanosecond goes to what its witness shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.stalls.gaps import host_part, together
from nsys_tui.model import intervals
from nsys_tui.names import api_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.stalls.gaps import Gaps
    from nsys_tui.analysis.stalls.host_activity import HostWork
    from nsys_tui.model.events import Bool, Int64
    from nsys_tui.model.intervals import Intervals

    Spans = dict[tuple[int, Cause], Intervals]
    """When causes were, by thread (its place in the API's) and cause."""

_BESIDE: Final = 20


def by_witness(
    work: HostWork, gaps: Gaps, causes: Sequence[Cause], least_ns: float
) -> tuple[Gaps, Spans]:
    """Gaps once for each of some causes, idle for what its witness shows of it, and when it did.

    What the GPU itself waited for has all of a gap.

    Args:
        work: what host threads did.
        gaps: between operations, with their shares.
        causes: that are asked for.
        least_ns: causes with less time in all are left out; more is asked of what names no gap.
    """
    shares = shares_of(gaps)
    least = np.where(np.isin(SHARES, gaps.cause), least_ns, _BESIDE * least_ns)
    shares[:, shares.sum(axis=0) < least] = 0
    shares[:, ~np.isin(SHARES, causes)] = 0
    row, cause = np.nonzero(shares)
    parts = gaps.take(row)
    what, spans = _witnessed(work, parts, cause)
    parts = replace(parts, cause=cause.astype(np.uint8), idle=shares[row, cause], what=what)
    whole = np.isin(gaps.cause, causes) & (gaps.cause >= len(SHARES))
    return together([gaps.take(whole), parts]), spans


def shares_of(gaps: Gaps) -> Int64:
    """What witnesses show of each gap within the window, by cause: int64 [n, len(SHARES)].

    Without a wait of the host the launch after it would have come in time: the longer of the two
    has the time of both.
    """
    shares: Int64 = np.minimum(gaps.shares, gaps.idle[:, None])
    waited = _waited(gaps)
    pair = shares[:, Cause.SYNC] + shares[:, Cause.LAUNCH_LATENCY]
    shares[:, Cause.SYNC] = pair * waited
    shares[:, Cause.LAUNCH_LATENCY] = pair * ~waited
    return shares


def _waited(gaps: Gaps) -> Bool:
    """In which gaps the host waited longer than a launch took."""
    return np.asarray(gaps.shares[:, Cause.SYNC] > gaps.shares[:, Cause.LAUNCH_LATENCY], np.bool_)


def _witnessed(work: HostWork, parts: Gaps, cause: Int64) -> tuple[Int64, Spans]:
    """What took longest within a cause that need not be the gap's own, and when causes were."""
    what, api, spans = parts.what.copy(), work.report.api, {}
    other = cause != parts.cause
    what[other] = -1
    late = np.flatnonzero(other & (cause == Cause.LAUNCH_LATENCY) & (parts.call >= 0))
    what[late] = work.codes(api.name[parts.call[late]], lambda code: api_name(api.names[code]))
    until = host_part(work, parts)[1]
    for caller in np.unique(parts.caller).tolist():
        mine = parts.caller == caller
        own = np.where(cause[mine] == Cause.LAUNCH_LATENCY, Cause.SYNC, cause[mine])
        within = intervals.union(parts.start[mine], until[mine])
        thread = work.near(int(api.threads[caller]), *within)
        for key, found in thread.when(within, [Cause(one) for one in np.unique(own)]).items():
            spans[caller, key] = found
        for winner, events in thread.named.items():
            rows = np.flatnonzero(mine & other & (cause == winner))
            by_range = winner is Cause.HOST
            what[rows] = events.longest(parts.start[rows], until[rows], mostly=by_range)
    return what, spans


def when(work: HostWork, parts: Gaps, spans: Spans) -> Intervals:
    """The time that gaps of one GPU and one cause stand for, both as ``by_witness`` gives them."""
    cause = Cause(parts.cause[0])
    if cause >= len(SHARES):
        return intervals.union(parts.start, parts.end)
    until = host_part(work, parts)[1]
    pair = cause in (Cause.SYNC, Cause.LAUNCH_LATENCY)
    found = [(until, parts.end)] if pair else []
    for caller in np.unique(parts.caller).tolist():
        mine = parts.caller == caller
        own = spans.get((caller, Cause.SYNC if pair else cause), intervals.empty())
        found.append(intervals.intersection((parts.start[mine], until[mine]), own))
    starts, ends = (np.concatenate(side) for side in zip(*found, strict=True))
    return intervals.union(starts, ends)
