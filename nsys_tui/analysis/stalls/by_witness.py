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


_BESIDE: Final = 20


def by_witness(work: HostWork, gaps: Gaps, causes: Sequence[Cause], least_ns: float) -> Gaps:
    """Gaps once for each of some causes, idle for what its witness shows of it.

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
    parts = replace(
        parts,
        cause=cause.astype(np.uint8),
        idle=shares[row, cause],
        what=_names(work, parts, cause),
    )
    whole = np.isin(gaps.cause, causes) & (gaps.cause >= len(SHARES))
    return together([gaps.take(whole), parts])


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


def _names(work: HostWork, parts: Gaps, cause: Int64) -> Int64:
    """What took longest within a cause that need not be the gap's own; -1 for none."""
    what, api = parts.what.copy(), work.report.api
    other = np.flatnonzero(cause != parts.cause)
    what[other] = -1
    late = other[(cause[other] == Cause.LAUNCH_LATENCY) & (parts.call[other] >= 0)]
    what[late] = work.codes(api.name[parts.call[late]], lambda code: api_name(api.names[code]))
    until = host_part(work, parts)[1]
    for caller in np.unique(parts.caller[other]).tolist():
        for winner, events in work.thread(int(api.threads[caller])).named.items():
            mine = other[(parts.caller[other] == caller) & (cause[other] == winner)]
            by_range = winner is Cause.HOST
            what[mine] = events.longest(parts.start[mine], until[mine], mostly=by_range)
    return what


def when(work: HostWork, parts: Gaps) -> Intervals:
    """The time that gaps of one GPU and one cause, as ``by_witness`` gives them, stand for."""
    cause, parts = Cause(parts.cause[0]), parts.take(np.argsort(parts.start))
    if cause >= len(SHARES):
        return parts.start, parts.end
    until = host_part(work, parts)[1]
    pair = cause in (Cause.SYNC, Cause.LAUNCH_LATENCY)
    found = [(until, parts.end)] if pair else [intervals.empty()]
    cause = Cause.SYNC if pair else cause
    for caller in np.unique(parts.caller).tolist():
        mine = parts.caller == caller
        thread = work.thread(int(work.report.api.threads[caller]))
        found.append(thread.when(cause, parts.start[mine], until[mine]))
    starts, ends = (np.concatenate(side) for side in zip(*found, strict=True))
    return intervals.union(starts, ends)
