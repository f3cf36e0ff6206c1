"""What a waiting thread waits for: requests, its next tick, another thread, a pool of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.rules.idle_causes import ANSWERS, SERVES, SIGNALS, TRAINS, WAITS
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.thread_states import beside, sampled
from nsys_tui.model import intervals
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import fit

if TYPE_CHECKING:
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.model.events import Bool
    from nsys_tui.model.intervals import Intervals

_SOON_NS: Final = 1_000_000
"""Within this time a request reaches the thread that works on it."""
_WAKES: Final = 4
"""Wakes for each request, from which on one falls near a request by chance."""
_WOKEN_NS: Final = 100_000
"""A thread goes on so soon after the call of another one that wakes it."""
_FEWEST_TICKS: Final = 10
_REGULAR: Final = 0.02
"""Deviation of the time between ticks, as a part of it, up to which a program keeps a rate."""


def by_requests(case: Case, thread: int, waits: Intervals) -> bool:
    """Whether most waits of a thread end when another of its process returns from serving.

    A server takes a request in one thread (``epoll_wait``, ``accept``) and hands it to another.
    """
    calls, rows = case.report.osrt, np.flatnonzero(_serving_calls(case))
    ends = np.sort(calls.end[rows[beside(thread, calls.threads)[calls.thread[rows]]]])
    first, last = np.searchsorted(ends, case.base)
    if not 0 < last - first <= _WAKES * len(waits[0]):
        return False
    after, until = (np.searchsorted(ends, times) for times in (waits[1] - _SOON_NS, waits[1]))
    lasted = waits[1] - waits[0]
    return bool(2 * lasted[until > after].sum() > lasted.sum())


def is_asked(case: Case, thread: int) -> bool:
    """Whether a thread takes requests itself: it answers whom it waits for."""
    calls = case.report.osrt
    return bool((calls.threads[calls.thread[_serving_calls(case)]] == thread).any())


def _serving_calls(case: Case) -> Bool:
    return case.once("serving calls", lambda: _serving(case))


def _serving(case: Case) -> Bool:
    """Which OS runtime calls wait for requests.

    A loop around ``epoll_wait`` or ``accept`` does; one around ``poll`` may read a pipe of its own
    workers, so its thread must send answers, too. MPI's progress has such loops and is no server,
    nor is a training that fetches its data.
    """
    calls, ranges = case.report.osrt, case.report.ranges
    mpi = any(kind.startswith("mpi_") for kind in case.report.host_events.kinds)
    if not len(calls) or mpi or any(TRAINS.search(name) for name in ranges.names):
        return np.zeros(len(calls), bool)
    serves, waits, answers = (
        np.array([pattern.match(name) is not None for name in calls.names], bool)[calls.name]
        for pattern in (SERVES, WAITS, ANSWERS)
    )
    waited, answered = (
        np.bincount(calls.thread[which], minlength=len(calls.threads)) for which in (waits, answers)
    )
    answering: Bool = serves | (waits & (2 * answered >= waited)[calls.thread])
    return answering


def waker(case: Case, thread: int, waits: Intervals) -> tuple[str, str]:
    """Which other thread of the process ends most of the waits, and the call it is in meanwhile.

    Returns:
        its name and the call, each empty where that is not known.
    """
    calls = case.report.osrt
    signals = np.array([SIGNALS.match(name) is not None for name in calls.names], bool)
    rows = np.flatnonzero(signals[calls.name]) if signals.any() else np.empty(0, np.intp)
    rows = rows[beside(thread, calls.threads)[calls.thread[rows]]]
    last = np.searchsorted(calls.start[rows], waits[1]) - 1
    near = (
        (last >= 0) & (calls.start[rows[last]] >= waits[1] - _WOKEN_NS) if len(rows) else last > 0
    )
    lasted = waits[1] - waits[0]
    time = np.bincount(calls.thread[rows[last[near]]], lasted[near], len(calls.threads))
    if not len(time) or 2 * time.max() <= lasted.sum():
        return "", ""
    other = int(calls.threads[np.argmax(time)])
    work = case.stalls.work.thread(other)
    cause = Cause(int(np.argmax(work.shares(*waits).sum(axis=0))))
    if cause not in SHARES[: Cause.HOST]:
        return case.report.thread_name(other), ""
    codes = work.by_class[cause].longest(*waits, mostly=True)
    most = np.bincount(codes + 1, lasted)
    return case.report.thread_name(other), case.stalls.work.name(int(np.argmax(most)) - 1)


def workers(case: Case, thread: int, waits: Intervals) -> str:
    """Which other threads compute through most of the waits, and in which function.

    They are of the same process, or of others of the same program, such as a pool of workers.

    Returns:
        ``loader runs decode``, ``6 python run decode``; empty where samples do not tell.
    """
    samples = case.report.samples
    if not len(samples) or not len(waits[0]):
        return ""
    place = np.searchsorted(waits[0], samples.start, side="right") - 1
    hit = (place >= 0) & (samples.start < waits[1][np.maximum(place, 0)])
    count = np.bincount(samples.thread[hit], minlength=len(samples.threads))
    report, owners = case.report, samples.threads & PROCESS_MASK
    process = thread & PROCESS_MASK
    # Processes of the program that use the GPU themselves are its ranks.
    alike = [report.process_name(pid) == report.process_name(process) for pid in owners.tolist()]
    pool = np.array(alike, bool) & ~np.isin(owners, report.api.thread_process)
    count[(samples.threads == thread) | ~(pool | (owners == process))] = 0
    other = int(samples.threads[np.argmax(count)])
    seen = sampled(case.report, other, *waits)
    computes = case.stalls.work.thread(other).shares(*waits)[:, Cause.HOST].sum()
    if not count.any() or seen is None or not seen.name or 2 * computes < intervals.total(*waits):
        return ""
    name = report.thread_name(other)
    alike = [report.thread_name(tid) == name for tid in samples.threads.tolist()]
    many = int((2 * count[alike] >= count.max()).sum())
    who = f"{many} {fit(name, 14)} run" if many > 1 else f"{fit(name, 14)} runs"
    return f"{who} {fit(seen.name, 20)}"


def alone(case: Case, thread: int, waits: Intervals) -> str:
    """The one other thread of the process that the scheduler had on a CPU through most waits.

    Returns:
        its name; empty where none or several were.
    """
    work, lasted = case.stalls.work.scheduling, intervals.total(*waits)
    ran = [
        other
        for other in work.threads[beside(thread, work.threads)].tolist()
        if 2 * intervals.overlap_length(work.thread(other).running, waits) > lasted
    ]
    return case.report.thread_name(ran[0]) if len(ran) == 1 else ""


def keeps_a_rate(waits: Intervals) -> bool:
    """Whether waits end at a fixed rate, however long each was: the program paces itself."""
    period, lasted = np.diff(waits[1]), waits[1] - waits[0]
    if len(lasted) < _FEWEST_TICKS:
        return False
    spread = float(np.std(period))
    return spread <= _REGULAR * float(np.mean(period)) and 2 * spread < float(np.std(lasted))
