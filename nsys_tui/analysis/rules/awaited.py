"""What a waiting thread waits for: requests, its next tick, or another thread that computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.rules.idle_causes import SERVES
from nsys_tui.analysis.sampled import sampled
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.thread_states import beside
from nsys_tui.model import intervals
from nsys_tui.names import fit

if TYPE_CHECKING:
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.model.intervals import Intervals

_SOON_NS: Final = 1_000_000
"""Within this time a request reaches the thread that works on it."""
_WAKES: Final = 4
"""Wakes for each request, from which on one falls near a request by chance."""
_FEWEST_TICKS: Final = 10
_REGULAR: Final = 0.02
"""Deviation of the time between ticks, as a part of it, up to which a program keeps a rate."""


def by_requests(case: Case, thread: int, waits: Intervals) -> bool:
    """Whether most waits of a thread end when another of its process returns from serving.

    A server takes a request in one thread (``epoll_wait``, ``accept``) and hands it to another.
    """
    calls = case.report.osrt
    serves = np.array([SERVES.match(name) is not None for name in calls.names], bool)
    rows = np.flatnonzero(serves[calls.name]) if serves.any() else np.empty(0, np.intp)
    ends = np.sort(calls.end[rows[beside(thread, calls.threads)[calls.thread[rows]]]])
    first, last = np.searchsorted(ends, case.base)
    if not 0 < last - first <= _WAKES * len(waits[0]):
        return False
    after, until = (np.searchsorted(ends, times) for times in (waits[1] - _SOON_NS, waits[1]))
    lasted = waits[1] - waits[0]
    return bool(2 * lasted[until > after].sum() > lasted.sum())


def worker(case: Case, thread: int, waits: Intervals) -> str:
    """Which other thread of the process computes through most of the waits, and in which function.

    Returns:
        ``loader runs decode``; empty where samples do not tell.
    """
    samples = case.report.samples
    if not len(samples) or not len(waits[0]):
        return ""
    place = np.searchsorted(waits[0], samples.start, side="right") - 1
    hit = (place >= 0) & (samples.start < waits[1][np.maximum(place, 0)])
    count = np.bincount(samples.thread[hit], minlength=len(samples.threads))
    count[~beside(thread, samples.threads)] = 0
    other = int(samples.threads[np.argmax(count)])
    seen = sampled(case.report, other, *waits)
    computes = case.stalls.work.thread(other).shares(*waits)[:, Cause.HOST].sum()
    if seen is None or not seen.name or 2 * computes < intervals.total(*waits):
        return ""
    return f"{fit(case.report.thread_name(other), 14)} runs {fit(seen.name, 20)}"


def keeps_a_rate(waits: Intervals) -> bool:
    """Whether waits end at a fixed rate, however long each was: the program paces itself."""
    period, lasted = np.diff(waits[1]), waits[1] - waits[0]
    if len(lasted) < _FEWEST_TICKS:
        return False
    spread = float(np.std(period))
    return spread <= _REGULAR * float(np.mean(period)) and 2 * spread < float(np.std(lasted))
