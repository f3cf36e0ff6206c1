"""Whom a waiting thread waits for: requests, the next tick of a clock, another thread, a pool."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.nsys import TO_HOST
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Gaps
from nsys_tui.analysis.thread_states import beside, sampled
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Float64, Int64
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import ThreadEvents
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import brief

_SOON_NS: Final = 1_000_000
"""Within this time a request reaches the thread that works on it."""
_WAKES: Final = 4
"""Wakes for each request, from which on one falls near a request by chance."""
_WOKEN_NS: Final = 100_000
"""A thread goes on so soon after the call of another one that wakes it."""
_WAITING: Final = (Cause.LOCK, Cause.WAIT, Cause.SLEEP)
"""Causes by which a thread that is to wake another one waits itself."""
_ANSWER_NS: Final = 500_000_000
"""No read of a file takes so long."""
FEWEST_TICKS: Final = 10
REGULAR: Final = {Cause.SLEEP: 0.02, Cause.WAIT: 0.005, Cause.OSRT: 0.005}
"""Deviation of the time between ticks, as a part of it, up to which a program keeps a rate.

A timer or a device that it waits for is more regular than somebody who works.
"""
_RATES: Final = np.array((1, 2, 5, 10, 15, 20, 24, 25, 30, 50, 60, 100, 120))
"""A second."""
_EVEN: Final = 0.05
"""Deviation of a clock's ticks, as a part of the time between, up to which they are such."""
_EXACT, _ODD = 0.002, 0.01
"""How far a rate may be from one of these: at least, for what few ticks tell, and at most."""
_LITTLE_WORK: Final = 0.75
"""Part of the time that is waited from which on little is done between."""
_NEARLY_ALL: Final = 0.9
"""Part of the time that equal sleeps have, with a GPU that idles, where they are the rate."""
_ROUNDS, _ENOUGH = 8, 5
_MOST: Final = 0.68
"""Part of values that deviate by no more than a standard deviation, where chance alone rules."""


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


def asked_by(case: Case, thread: int) -> tuple[str, str]:
    """Whom a process that answers waits for, and what to do: it may ask that one itself."""
    calls = case.report.osrt
    mine = calls.thread_process[calls.thread] == thread & PROCESS_MASK
    serves, lets_in, connects = (
        bool((_named(calls, pattern) & mine).any())
        for pattern in (words.SERVES, words.LETS_IN, words.CONNECTS)
    )
    if lets_in or (serves and not connects):
        return "requests", words.REQUESTS
    return "another program", words.ASKED


def trains(case: Case) -> bool:
    """Whether ranges name what no server does."""
    return any(words.TRAINS.search(name) for name in case.report.ranges.names)


def _named(calls: ThreadEvents, pattern: re.Pattern[str]) -> Bool:
    """Which calls have a name that begins as a pattern wants it."""
    return np.array([pattern.match(name) is not None for name in calls.names], bool)[calls.name]


@kept
def _serving_calls(case: Case) -> Bool:
    """Which OS runtime calls wait for requests.

    A loop around ``epoll_wait`` or ``accept`` does; one around ``poll`` may read a pipe of its own
    workers, so its thread must send answers, too, with results that its process has from the GPU.
    MPI's progress has such loops and is no server, nor is a training that fetches its data, or a
    process that only connects to servers itself.
    """
    calls, ops = case.report.osrt, case.report.operations
    mpi = any(kind.startswith("mpi_") for kind in case.report.host_events.kinds)
    if not len(calls) or mpi or trains(case):
        return np.zeros(len(calls), bool)
    serves, waits, answers, connects = (
        _named(calls, pattern)
        for pattern in (words.SERVES, words.WAITS, words.ANSWERS, words.CONNECTS)
    )
    process = calls.thread_process[calls.thread]
    results = np.isin(ops.copy_kind, TO_HOST) | (ops.kind == OpKind.GRAPH)
    has_results = ops.processes[np.unique(ops.process[results])]
    client = np.isin(process, process[connects]) | ~np.isin(process, has_results)
    client &= ~np.isin(process, process[serves])
    waited, answered = (
        np.bincount(calls.thread[which], minlength=len(calls.threads)) for which in (waits, answers)
    )
    return serves | (waits & ~client & (2 * answered >= waited)[calls.thread])


def waker(case: Case, thread: int, waits: Intervals) -> tuple[str, str, str, str]:
    """Which other threads of the process end most of the waits, and the call they are in meanwhile.

    Returns:
        the thread, the call, and whom that waits for, each empty where not known; what to do.
    """
    calls = case.report.osrt
    rows = np.flatnonzero(_named(calls, words.SIGNALS))
    rows = rows[beside(thread, calls.threads)[calls.thread[rows]]]
    last = np.searchsorted(calls.start[rows], waits[1]) - 1
    near = (
        (last >= 0) & (calls.start[rows[last]] >= waits[1] - _WOKEN_NS) if len(rows) else last > 0
    )
    lasted = waits[1] - waits[0]
    time = np.bincount(calls.thread[rows[last[near]]], lasted[near], len(calls.threads))
    if not len(time) or 2 * time.sum() <= lasted.sum():
        return "", "", "", ""
    others = calls.threads[2 * time >= time.max()].tolist()
    other = int(calls.threads[np.argmax(time)])
    who = case.report.thread_name(other) if len(others) == 1 else f"one of {len(others)} threads"
    work = case.work.thread(other)
    shares = work.shares(*waits)
    cause = max(sorted(shares), key=lambda one: shares[one].sum())
    if cause not in SHARES[: Cause.HOST]:
        return who, "", "", words.LATE_THREAD
    codes = work.by_class[cause].longest(*waits, mostly=True)
    code = int(np.argmax(np.bincount(codes + 1, lasted))) - 1
    call = case.work.name(code)
    if cause not in _WAITING:
        return who, call, "", words.LATE_THREAD
    if all(_ticks(case, one, cause, code) for one in others):
        return who, call, "the next tick", words.PACED
    asked = words.WAITS.match(call) is not None and is_asked(case, other)
    return who, call, *(asked_by(case, other) if asked else ("", words.ALSO_WAITS))


def _ticks(case: Case, thread: int, cause: Cause, call: int) -> bool:
    """Whether a call in which a thread waits ends by a clock."""
    waits = case.work.thread(thread).by_class.get(cause)
    mine = np.flatnonzero(waits.name == call) if waits else np.empty(0, np.intp)
    if waits is None or len(mine) <= FEWEST_TICKS:
        return False
    ends = waits.ends[mine]
    even = spread(np.diff(ends)) <= REGULAR[Cause.WAIT] * float(np.median(np.diff(ends)))
    lasted = ends - waits.starts[mine]
    return even or on_a_grid(ends, lasted) or at_usual_rate(ends, lasted)


def is_answered(case: Case, thread: int, waits: Intervals) -> bool:
    """Whether a thread mostly waits in long reads, before each of which it wrote something.

    A person, or another program, is to answer: no file takes so long, and it is opened before.
    """
    calls = case.report.osrt
    rows = np.flatnonzero((calls.threads[calls.thread] == thread) & (calls.nesting <= 0))
    reads = (_named(calls, words.MAY_BE_PIPE) | _named(calls, words.WAITS))[rows]
    long = np.flatnonzero(reads & (calls.durations(rows) >= _ANSWER_NS))
    long = long[(long > 0) & _named(calls, words.WRITES)[rows[long - 1]]]
    return 2 * intervals.overlap_length(calls.runs(rows[long]), waits) > intervals.total(*waits)


def helpers(case: Case, thread: int, waits: Intervals) -> str:
    """What to do where through most waits processes run that the thread's own one started, or "".

    Where it starts some before most of them, none has worked ahead.
    """
    calls = case.report.osrt
    mine = calls.thread_process[calls.thread] == thread & PROCESS_MASK
    begun, ended = (
        np.searchsorted(np.sort(calls.end[mine & _named(calls, pattern)]), waits[0])
        for pattern in (words.FORKS, words.REAPS)
    )
    lasted, anew = waits[1] - waits[0], np.diff(begun, prepend=begun[:1]) > 0
    own, new = (bool(2 * lasted[one].sum() > lasted.sum()) for one in (begun > ended, anew))
    return words.HELPERS[new] if own else ""


def is_fed(case: Case, thread: int, waits: Intervals) -> bool:
    """Whether a thread receives something right after most waits, in a program that sends nothing.

    Nor does any other program of the report: somebody else has to send it.
    """
    calls = case.report.osrt
    if trains(case) or _named(calls, words.ANSWERS).any():
        return False
    rows = np.flatnonzero((calls.threads[calls.thread] == thread) & (calls.nesting <= 0))
    gets, awaits = (_named(calls, one)[rows] for one in (words.RECEIVES, words.WAITS))
    soon = calls.start[rows[1:]] - calls.end[rows[:-1]] <= _WOKEN_NS
    fed = rows[gets | (awaits & np.append(gets[1:] & soon, False))]
    rounds = len(rows[gets]) > FEWEST_TICKS
    return rounds and 2 * intervals.overlap_length(calls.runs(fed), waits) > intervals.total(*waits)


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
    computes = np.sum(case.work.thread(other).shares(*waits).get(Cause.HOST, 0))
    if not count.any() or seen is None or not seen.name or 2 * computes < intervals.total(*waits):
        return ""
    name = report.thread_name(other)
    alike = [report.thread_name(tid) == name for tid in samples.threads.tolist()]
    many = int((2 * count[alike] >= count.max()).sum())
    who = f"{many} {brief(name, 14)} run" if many > 1 else f"{brief(name, 14)} runs"
    return f"{who} {brief(seen.name, 20)}"


def keeps_a_rate(case: Case, cause: Cause, thread: int, gaps: Gaps, waits: Intervals) -> bool:
    """Whether the last waits before GPU work end by a clock, or at a fixed rate.

    However long each was: those of a fixed length end at a rate, too, and so are told by their
    lengths, but where sleeps have nearly all time they are the rate. A rate that is lost for a
    moment, as when a camera starts anew, is one all the same.
    """
    if begins_by_a_clock(gaps):
        return True
    calls = case.work.near(thread, *waits).by_class[cause]
    waited = intervals.union(calls.starts, calls.ends)
    place = np.searchsorted(np.sort(gaps.start), waits[0], side="right")
    ends = waits[1][np.flatnonzero(np.diff(place, append=-1))]
    if len(ends) <= 2:
        return False
    lasted = intervals.covered(waited, np.append(waits[0][:1], ends[:-1]), ends)
    long = 2 * lasted > np.quantile(lasted, _MOST)
    ends, lasted = ends[long], lasted[long]
    if len(ends) <= 2:
        return False
    period = np.diff(ends)
    regular = spread(period) <= REGULAR[cause] * float(np.median(period))
    few, long = len(ends) <= FEWEST_TICKS, _NEARLY_ALL * (ends[-1] - waits[0][0])
    single = not few or len(calls.starts) <= len(gaps)
    if cause is Cause.SLEEP and regular and single and intervals.total(*waits) >= long:
        return True
    if few or (regular and 2 * spread(period) < spread(lasted)) or on_a_grid(ends, lasted):
        return not few
    return cause is not Cause.SLEEP and at_usual_rate(ends, lasted)


def begins_by_a_clock(gaps: Gaps) -> bool:
    """Whether what ends some gaps of a GPU begins on a grid of times, at a rate of displays.

    So it is known where no call shows what the host waits for.
    """
    order = np.argsort(gaps.end, kind="stable")
    ends, idle = gaps.end[order], gaps.idle[order]
    long = 2 * idle > np.quantile(idle, _MOST)
    ends, idle = ends[long], idle[long]
    return len(ends) > FEWEST_TICKS and on_a_grid(ends, idle) and at_usual_rate(ends, idle, 0)


def on_a_grid(ends: Int64, lasted: Int64) -> bool:
    """Whether waits end about evenly on a grid of times, some of which may pass without one.

    However long each is. Who works drifts: of rounds that take as long as they take, eight together
    deviate nearly three times as much as one does; on a grid they deviate alike.
    """
    usual = float(np.median(np.diff(ends)))
    took = (ends[rounds:] - ends[:-rounds] for rounds in (1, _ROUNDS))
    one, eight = (spread(each - usual * np.round(each / max(usual, 1))) for each in took)
    known = len(ends) >= (_ENOUGH + 1) * _ROUNDS and one <= _EVEN * usual
    return known and 2 * spread(lasted) > one and 2 * eight < 3 * one


def at_usual_rate(ends: Int64, lasted: Int64, waits: float = _LITTLE_WORK) -> bool:
    """Whether waits, with little work between, end about evenly at a rate that devices have.

    Waits that are of such a length themselves end by it.
    """
    period = np.diff(ends)
    usual, deviates, length = float(np.median(period)), spread(period), float(np.median(lasted))
    if not deviates <= _EVEN * usual > 0 or length < waits * usual:
        return False
    mean = float(period[np.abs(period - usual) <= 3 * deviates].mean())
    near = min(_ODD, max(_EXACT, 3 * deviates / usual / len(period) ** 0.5))
    return bool(_beside_rate(mean) <= min(near, _beside_rate(length)))


def _beside_rate(ns: float) -> float:
    """How far a period is from the nearest of the rates that devices and timers have."""
    return float(np.abs(ns * _RATES / 1e9 - 1).min())


def are_fixed(waits: Intervals) -> bool:
    """Whether long waits last alike, whatever lies before: who answers takes as long each time."""
    lasted, work = waits[1] - waits[0], waits[0][1:] - waits[1][:-1]
    long = 2 * lasted >= lasted.max()
    return 2 * spread(lasted[long]) < spread(work[long[1:]])


def spread(values: Int64 | Float64) -> float:
    """Deviation from the median of all but the third that deviate most."""
    return float(np.quantile(np.abs(values - np.median(values)), _MOST)) if len(values) else 0.0
