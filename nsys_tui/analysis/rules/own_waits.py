"""What of the time that launching threads wait a better wait, or none, could give back."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.gap_facts import thread_of
from nsys_tui.analysis.stalls.causes import Cause, Gaps
from nsys_tui.model import intervals
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.intervals import Intervals

_OWN: Final = (Cause.LOCK, Cause.WAIT, Cause.IO, Cause.SLEEP, Cause.OSRT)
"""Causes for which one thread waits while others work."""
_MANY: Final = 4
"""Sleeps in a gap from which on one of them is hardly anything of it."""


def looks_again(case: Case, gaps: Gaps, waits: Intervals) -> bool:
    """Whether a sleeping thread does so again and again in a gap: what it awaits is not there.

    Only the last sleep of a gap may be too long.
    """
    sleeps = case.work.near(thread_of(case, gaps), *waits).by_class[Cause.SLEEP]
    return len(sleeps.starts) >= _MANY * len(gaps)


def of_each(case: Case, cause: Cause, gaps: Gaps) -> int:
    """How much sooner each of the threads that launch side by side is done without its waits.

    The next launch comes from another one while one waits: what all of them wait counts but once.
    """
    if cause not in _OWN:
        return FARTHEST
    api, mine = case.report.api, gaps.caller >= 0
    idle = np.bincount(gaps.caller[mine], gaps.idle[mine], minlength=1)
    threads = np.flatnonzero(2 * idle > max(idle.max(), 1))
    if len(threads) < 2:
        return FARTHEST
    waited, lived, live = 0, 0, intervals.empty()
    for thread in threads.tolist():
        calls = np.flatnonzero(api.thread == thread)
        span = api.start[calls[:1]], api.end[calls].max(keepdims=True)
        lived, live = lived + intervals.total(*span), intervals.joined(live, span)
        work = case.work.thread(int(api.threads[thread])).by_class
        if cause in work:
            waits = work[cause].starts, work[cause].ends
            waited += intervals.total(*intervals.clip(*waits, *case.base))
    return waited * intervals.total(*live) // max(lived, 1)
