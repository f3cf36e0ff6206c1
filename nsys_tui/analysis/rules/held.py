"""Threads that a GPU waits for and that work on beside it: nothing else shortens that time.

Of the host that launches, too: up to where it last waited for a GPU, work that ends sooner only
makes the GPU wait longer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

import numpy as np

from nsys_tui.analysis.rules.awaited import are_fixed, is_asked
from nsys_tui.analysis.rules.case import AND_OTHERS, Case, kept
from nsys_tui.analysis.rules.finding import Finding, Held, Severity, severity
from nsys_tui.analysis.rules.gap_facts import touched_by_host
from nsys_tui.analysis.rules.idle_causes import PACED, PACES, POLLS, WAITS
from nsys_tui.analysis.rules.imbalance import work_together
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stalls.host_activity import ThreadWork
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import among, used
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.units import format_duration

FOR_THREADS: Final = (Cause.LOCK, Cause.WAIT, Cause.SLEEP)
"""Causes that may be the wait for another thread."""
_CALLS: Final = (Cause.IO, Cause.OSRT, Cause.API)
_WORKS: Final = (*_CALLS, Cause.HOST)
_REST_NS: Final = 50_000
"""A thread that waits for less works on."""
_CHANCE: Final = 0.25
"""Part of the time near its doings up to which a thread's doings at ends of waits are no chance."""
_LOADS: Final = re.compile(r"(?i)data|load|batch|fetch|next|input|prefetch")
"""Names of ranges in which a step waits for its data."""
_ABOUT: Final = {
    "exposed_communication": Category.COMM,
    "exposed_copies": Category.MEMORY,
    "memsets": Category.MEMORY,
    "slow_copies": Category.MEMORY,
}
_OF_GPUS: Final = frozenset(("exposed_communication", "gpu_imbalance", "serial_streams"))
"""Rules on what GPUs do: what a host does beside one another, it does one after the other."""
_MAY_WAIT_NS: Final = 20_000
_WAITS_NS: Final = 5_000
"""A CUDA call that lasts so long may have waited for a GPU, one that is meant to: so long."""
_ALLOCATES: Final = re.compile(r"cu(da|Mem)M?[Aa]lloc")
"""Calls that last long without waiting for a GPU."""
_CALLBACKS: Final = re.compile(r"LaunchHostFunc|StreamAddCallback")
_FEW: Final = 4
"""Of so many times as many steps some waits are in few alone."""
_RANK: Final = attrgetter("rank")
_MUCH: Final = 0.05
"""Part of the time from which waits for data in most steps bound the run."""


def held(case: Case, thread: int, waits: Intervals, where: str) -> Held | None:
    """Up to when the ends of some waits hang on threads that work on while the GPU does.

    Such a thread works without a wait of its own up to the end of a wait, and goes on to something
    else there: from its last own wait on the run depends on it alone. Of several the one that began
    last counts.

    Args:
        case: the report.
        thread: the one that waits.
        waits: when it does and the GPU idles.
        where: the range in which it waits, empty for none.
    """
    if not len(waits[0]):
        return None
    found: list[tuple[int, Int64]] = []
    for other in _others(case, thread):
        since = _works_since(case, other, waits)
        works = 2 * int((waits[1] - waits[0])[since < waits[1]].sum()) > intervals.total(*waits)
        if works and _goes_on(case, other, waits):
            found.append((other, since))
    if found:
        since = np.maximum.reduce([np.minimum(one, waits[1]) for _, one in found])
        names = {case.report.thread_name(other) for other, _ in found}
        who = f"{names.pop()} is" if len(names) == 1 else "the other threads are"
        return Held(intervals.union(since, waits[1]), f"{who} quicker", known=True)
    lasted = waits[1] - waits[0]
    long = 2 * lasted >= lasted.max()
    often = _FEW * int(long.sum()) >= len(case.iterations)
    loads = case.has_named_steps and _LOADS.search(where) is not None
    if often and loads and not are_fixed(waits) and int(lasted.sum()) >= _MUCH * case.base_ns:
        return Held((waits[0][:1], waits[1][-1:]), "its data come sooner", known=False)
    return None


def unhindered(case: Case, thread: int, gaps: Intervals, *, seen: bool) -> Held | None:
    """Since when, up to the ends of some gaps, a host that launches waited for no GPU.

    It may have in any long call of CUDA of its process, where it waits for other processes, and for
    pages. One that goes on whenever long gaps begin knows that the GPU is done.

    Args:
        case: the report.
        thread: the one that the gaps waited for.
        gaps: in order.
        seen: whether events show what it does in them; else it has to wait in calls at other times.
    """
    begun = _waits_over(case, thread)
    if _goes_on_after(case, thread, _long(gaps)) or not (seen or len(begun) > 1):
        return None
    return Held(_since(begun, gaps), "the host is quicker", known=True, rules=_OF_GPUS)


def _long(gaps: Intervals) -> Int64:
    """Begins of gaps half as long as the longest, or longer."""
    long: Int64 = gaps[0][2 * (gaps[1] - gaps[0]) >= (gaps[1] - gaps[0]).max()]
    return long


def _goes_on_after(case: Case, thread: int, done: Int64) -> bool:
    return len(done) > 0 and _goes_on(case, thread, (done - _REST_NS, done))


def _since(begun: Int64, gaps: Intervals) -> Intervals:
    """From the last of some times before the end of each gap to that end."""
    since = begun[np.searchsorted(begun, gaps[1], side="right") - 1]
    return intervals.union(since, np.maximum(gaps[1], since))


def _waits_over(case: Case, thread: int) -> Int64:
    """When waits of a thread end that may be for a GPU; the first is the begin of all.

    A thread that works on meanwhile does not wait for what other threads of its process wait for.
    """
    api, work = case.report.api, case.work
    long, polls = _may_wait(case)
    polls = polls[api.threads[api.thread[polls]] == thread]
    long = long[api.thread_process[api.thread[long]] == thread & PROCESS_MASK]
    other = api.threads[api.thread[long]] != thread
    long = long[~other | ~_works_on(work.thread(thread), api.end[long])]
    pages = case.copies[touched_by_host(case, case.copies)]
    waited = [api.end[long], api.end[polls], case.report.operations.end[pages]]
    of_threads = FOR_THREADS if _is_told(case) else ()
    for cause, events in work.thread(thread).by_class.items():
        if cause in (Cause.MPI, *of_threads):
            codes = np.unique(events.name)
            asks = [cause is Cause.MPI or bool(WAITS.match(work.name(one))) for one in codes]
            waited.append(events.ends[np.isin(events.name, codes[asks])])
    return np.sort(np.append(np.concatenate(waited), case.base[0]))


def _works_on(work: ThreadWork, times: Int64) -> Bool:
    """Whether a thread goes from call to call at each time, and so waits for no other thread then.

    What it does on a CPU without a call may be to ask whether the other one is done.
    """
    own = [work.by_class[cause] for cause in _CALLS if cause in work.by_class]
    starts, ends = intervals.joined(*((one.starts, one.ends + _REST_NS) for one in own))
    place = np.searchsorted(starts, times - _REST_NS) - 1
    return (place >= 0) & (times + _REST_NS < np.append(ends, 0)[place])


@kept
def _is_told(case: Case) -> bool:
    """Whether a thread may be woken because a GPU is done, by what no long call of CUDA shows.

    By a callback or a thread that asks for it, or from another process that uses GPUs.
    """
    api, (_, polls) = case.report.api, _may_wait(case)
    names = used(api.name)
    calls_back = any(_CALLBACKS.search(api.names[code]) for code in names)
    several = len(api.thread_process) and len(np.unique(api.thread_process)) > 1
    return calls_back or bool(len(polls)) or several or any(one.comm_ns for one in case.splits)


@kept
def launched_late(case: Case, device: int) -> Intervals:
    """When a GPU works whose host waits for none, up to a launch after that is done.

    What is shorter there makes the GPU wait longer for that launch.
    """
    api, ops, rows = case.report.api, case.report.operations, case.by_device[device]
    done, begun, calls = ops.end[rows], ops.start[rows[1:]], case.report.calls[rows[1:]]
    done = np.maximum.accumulate(done)[:-1]
    late = np.flatnonzero((begun > done) & (calls >= 0))
    late = late[api.start[calls[late]] >= done[late]]
    threads = api.threads[api.thread[calls[late]]]
    spans: list[Intervals] = []
    for thread in np.unique(threads).tolist():
        mine, over = late[threads == thread], _waits_over(case, thread)
        long = _long((done[mine], begun[mine]))
        near = (np.searchsorted(over, long + apart) for apart in (-_REST_NS, _REST_NS))
        if not _goes_on_after(case, thread, long[np.equal(*near)]):
            spans.append(_since(over, (done[mine], begun[mine])))
    return intervals.joined(*spans)


@kept
def _may_wait(case: Case) -> tuple[Indices, Indices]:
    """Calls of CUDA that last so long that they may wait for a GPU, and those that ask whether."""
    api = case.report.api
    polls = np.array([POLLS.match(name) is not None for name in api.names], bool)
    long = _meant_to_wait(case) & (api.duration >= _WAITS_NS) | _are_long(case)
    return np.flatnonzero(long), np.flatnonzero(polls[api.name])


def _meant_to_wait(case: Case) -> Bool:
    """Which calls of CUDA are there to wait for a GPU."""
    return among(case.work.api_classes, (Cause.SYNC, Cause.COPY))


def _are_long(case: Case) -> Bool:
    """Which calls of CUDA may wait for a GPU though they are not meant to, as for its queue."""
    api = case.report.api
    allocates = np.array([_ALLOCATES.match(name) is not None for name in api.names], bool)
    return np.asarray((api.duration >= _MAY_WAIT_NS) & ~allocates[api.name], np.bool_)


def _others(case: Case, thread: int) -> list[int]:
    """Threads that launch nothing, of the process or of a pool of it, if it is known what they do.

    Processes of the program that use the GPU themselves are its ranks.
    """
    report = case.report
    known = np.union1d(case.work.scheduling.threads, report.osrt.threads)
    known = known[~np.isin(known, report.api.threads)]
    owner, own = known & PROCESS_MASK, thread & PROCESS_MASK
    near = (owner == own) | ~np.isin(owner, report.api.thread_process)
    name = report.process_name(own)
    return [one for one in known[near].tolist() if report.process_name(one & PROCESS_MASK) == name]


def is_alone(case: Case, thread: int, waits: Intervals) -> bool:
    """Whether it is known that no other thread of the program works in most of some waits.

    Nor does one of the process, or of its pool, go on to something at their ends, but for those
    that take requests.
    """
    if not (case.report.can(Capability.SCHED) or case.report.can(Capability.SAMPLES)):
        return False
    others = _others(case, thread)
    if any(_goes_on(case, one, waits) for one in others if not is_asked(case, one)):
        return False
    worked = sum(int(_worked(case.work.thread(one), waits).sum()) for one in others)
    return 2 * worked < intervals.total(*waits)


def _works_since(case: Case, thread: int, waits: Intervals) -> Int64:
    """Since when a thread works on up to the end of each wait; that end where it does not."""
    work = case.work.thread(thread)
    causes = FOR_THREADS if thread in case.report.osrt.threads else (Cause.OFF_CPU,)
    own = [work.by_class[cause] for cause in causes if cause in work.by_class]
    starts, ends = intervals.joined(*((one.starts, one.ends) for one in own))
    starts, ends = starts[ends - starts >= _REST_NS], ends[ends - starts >= _REST_NS]
    begun = min((int(named.starts[0]) for named in work.by_class.values()), default=0)
    last = np.searchsorted(starts, waits[1] - _REST_NS) - 1
    since = np.append(ends, begun)[last]
    worked = _worked(work, waits)
    works = (2 * worked >= waits[1] - waits[0]) & (since < waits[1] - _REST_NS)
    return np.where(works, since, waits[1])


def _worked(work: ThreadWork, waits: Intervals) -> Int64:
    """How long a thread works in each wait."""
    shares = work.shares(*waits)
    return sum((time for cause, time in shares.items() if cause in _WORKS), 0 * waits[0])


def _goes_on(case: Case, thread: int, waits: Intervals) -> bool:
    """Whether a thread begins or ends something at most ends of some waits, and so rarely else.

    One that merely spins, or polls all the time, does not.
    """
    work, done = case.work.thread(thread), waits[1]
    looked_at = waits[0][:1], done[-1:]
    for events in filter(lambda one: len(one.name), (*work.by_class.values(), work.innermost)):
        edges, names = np.concatenate((events.starts, events.ends)), np.tile(events.name, 2)
        near = _within(done, edges - _REST_NS, edges + _REST_NS)
        for name in np.flatnonzero(2 * np.bincount(names, near) > len(done)):
            mine = edges[names == name]
            often = intervals.union(mine - _REST_NS, mine + _REST_NS)
            chance = intervals.overlap_length(often, looked_at) / intervals.total(*looked_at)
            if chance <= _CHANCE and 2 * int(_within(done, *often).sum()) > len(done):
                return True
    return False


def _within(times: Int64, starts: Int64, ends: Int64) -> Indices:
    """How many of some times, which are in order, each interval holds, its end included."""
    return np.searchsorted(times, ends, "right") - np.searchsorted(times, starts)


def without_held(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, each priced without the time in which a thread that is waited for works on.

    What else ends sooner there makes the wait for that thread longer by as much.
    """
    priced = [*findings]
    for waiting in (one for one in findings if one.held is not None):
        priced = [_beside(case, waiting, other) for other in priced]
    return priced


def host_waits(case: Case) -> Intervals | None:
    """When hosts may wait for a GPU, and the time after all calls; None where nobody knows.

    Nobody does where no call of GPU work is recorded. Long launches count, since they may wait for
    room in the queue.
    """
    api, (lo, hi), known = case.report.api, case.base, (case.report.calls >= 0).any()
    if not known or _is_told(case) or touched_by_host(case, case.copies).any():
        return None
    waits = _meant_to_wait(case) | _are_long(case)
    last = int(api.end[api.real].max(initial=lo))
    spans = api.runs(np.flatnonzero(waits & api.real)), intervals.clip([last], [hi], lo, hi)
    return intervals.joined(*spans)


def _beside(case: Case, waiting: Finding, other: Finding) -> Finding:
    if not other.saved_ns:
        return _in_ticks(waiting, other)
    if other.rule == "slow_steps" or other.late == waiting.device:
        return other
    rules = waiting.held.rules if waiting.held else frozenset()
    own = other.held is not None and not other.held.rules
    if waiting.held is None or (other.rule not in rules if rules else own):
        return other
    is_of_wait = other.rule == "exposed_communication" and bool(rules)
    alike = AND_OTHERS in waiting.title or work_together(case)
    if other.device != waiting.device and (is_of_wait or not alike):
        return other
    spans, when, known, _ = waiting.held
    within = other.lost or work_of(case, other)
    if within is None and other.device is not None:
        within = case.idle_time.busy(other.device)
    if within is None or not len(within[0]):
        return other
    part = 1 - intervals.overlap_length(within, spans) / intervals.total(*within)
    return limited(other, round(other.saved_ns * part) if known else 0, when)


def _in_ticks(waiting: Finding, other: Finding) -> Finding:
    """A finding without a price, no graver than longer waits for a clock: it makes no tick late."""
    ticks = waiting.held is not None and waiting.held.until == PACES[PACED]
    alike = (other.rule, other.device) == (waiting.rule, waiting.device)
    if not (ticks and alike and other.stake_ns < waiting.stake_ns):
        return other
    return replace(other, severity=min(other.severity, waiting.severity, key=_RANK))


def work_of(case: Case, finding: Finding) -> Intervals | None:
    """When the communication or the copies run that a finding is about, None for others."""
    category, device = _ABOUT.get(finding.rule), finding.device
    if category is None or device is None:
        return None
    return case.exposed(device, category)


def limited(finding: Finding, saved: int, when: str) -> Finding:
    """A finding that gives no more back until something else happens."""
    if 2 * saved >= finding.saved_ns:
        return replace(finding, saved_ns=min(saved, finding.saved_ns))
    least = min(finding.severity, Severity.MEDIUM, key=_RANK)
    rated = severity(saved, finding.of_ns)
    whole = finding.saved_ns + finding.held_ns
    advice = finding.advice.partition(": ")[2] if finding.held_ns else finding.advice
    return replace(
        finding,
        saved_ns=saved,
        held_ns=whole - saved,
        stake_ns=finding.weight_ns,
        severity=max(least, min(rated, finding.severity, key=_RANK), key=_RANK),
        advice=f"{format_duration(whole)} once {when}: {advice}",
        doubt="the rest would be waited for nevertheless",
    )
