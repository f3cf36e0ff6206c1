"""What can be told of some idle gaps of a GPU: whom they wait for, in which call, how often."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.launches import LAUNCHES_GRAPH, MAKES_GRAPH, calls_to
from nsys_tui.analysis.rules import awaited
from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.idle_time import until_copies
from nsys_tui.analysis.rules.nsys import TO_HOST
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Gaps
from nsys_tui.analysis.stalls.explained import LONG_CALL_NS
from nsys_tui.analysis.stalls.named import Named
from nsys_tui.analysis.thread_states import Off
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import among, factorise, rows_of_values
from nsys_tui.model.intervals import Intervals
from nsys_tui.names import strip_op_id

_BY_CALL: Final = SHARES[Cause.PROFILER : Cause.HOST]
"""Causes that are calls, or rows of what holds a call up."""
_FOR_OTHERS: Final = (Cause.MPI, Cause.LOCK, Cause.WAIT, Cause.IO, Cause.SLEEP)
"""Causes with which no host can be ahead: others, or the clock, end them, or files."""
_BESIDE: Final = 0.05
"""Part of the time from which other calls are worth a word."""
_NEARLY: Final = 0.9
_LEAP: Final = 5
"""So many times as long as the next one are few long times beside many others."""
_MOSTLY: Final = 2 / 3
_FEW: Final = 4
"""So many times as many are all gaps, or steps, as few long ones: these are pauses."""
_LEAVES_NS: Final = 20_000
"""So soon after a call a thread blocks that has nothing else to do."""
_PARTS: Final = 8
"""Parts of a gap with a call in each, from which calls are all along it."""
_FILLED: Final = 0.1
"""Part of some gaps from which calls that take it take much of them."""
_REST: Final = 0.2
"""Part of a GPU's work up to which it is the rest."""
_LATE_NS: Final = 1_000_000
"""No launch takes so long from its call to its work."""
_OF_GRAPHS: Final = (MAKES_GRAPH, LAUNCHES_GRAPH)
_HOLD: Final = (Cause.SYNC, Cause.COPY)
"""Classes of calls in which a thread waits for a GPU."""
OF_SYSTEM: Final = (Cause.LOCK, Cause.WAIT, Cause.IO, Cause.SLEEP, Cause.OSRT)
"""Calls of the system, in which one thread waits while others work."""
_MANY: Final = 4
"""Sleeps in a gap from which on one of them is hardly anything of it."""


def waits_for_each(case: Case, calls: Integers) -> str:
    """What to do less often where between most of these calls their threads wait, else empty."""
    api, classes = case.report.api, case.work.api_classes
    copies = case.copies[np.isin(case.report.operations.copy_kind[case.copies], TO_HOST)]
    reads = case.report.called(copies)[1]
    waits, held = (np.flatnonzero(among(classes, of)) for of in ((Cause.SYNC,), _HOLD))

    def between(others: Integers) -> bool:
        times = api.start[others[np.isin(api.thread[others], api.thread[calls])]]
        parts = np.unique(np.searchsorted(np.sort(times), api.start[calls]))
        return 2 * (len(parts) - 1) > len(calls) - 1

    if between(reads) and between(held):
        return words.READ_SELDOM
    return words.WAIT_ONCE * between(waits)


def is_rare(case: Case, gaps: Gaps) -> bool:
    """Whether few of the named steps lose nearly all of it: the others get on without."""
    return case.has_named_steps and _FEW * len(_most(gaps.idle)) <= len(case.iterations)


def _most(times: Int64) -> Indices:
    """The longest of some times, which have nearly all of the sum, and those half as long."""
    falling = np.sort(times)[::-1]
    done = np.cumsum(falling)
    return np.flatnonzero(2 * times >= falling[np.searchsorted(done, _NEARLY * done[-1])])


def few_steps(case: Case, start: Int64, end: Int64, times: Int64) -> str:
    """How many steps have nearly all of some times, if most named ones have none, else empty.

    Args:
        case: the report.
        start: of the stretches that the times are of.
        end: of the same.
        times: how much of each counts.
    """
    most, steps = _most(times), case.iterations
    middle, closed = (start[most] + end[most]) // 2, np.flatnonzero(~steps.never_closed)
    have = np.unique(np.searchsorted(steps.start[closed], middle))
    inside = case.has_named_steps and len(closed) and middle.max() < steps.end[closed[-1]]
    few = inside and have[0] and 2 * len(have) < len(closed)
    return f"{units.out_of(len(have), len(closed))} steps" if few else ""


def after_all_launches(case: Case, gaps: Gaps) -> Bool:
    """Which gaps come after all that the program has a GPU do: the host then reads its results.

    Pages that the host touches still come back to it, and nothing that it launches waits for them.
    """
    ops, fetched = case.report.operations, case.copies[touched_by_host(case, case.copies)]
    if not len(fetched):
        return np.zeros(len(gaps), np.bool_)
    asked = np.delete(np.arange(len(ops)), fetched)
    last = np.full(len(case.report.devices), -FARTHEST)
    np.maximum.at(last, ops.device[asked], ops.end[asked])
    return np.asarray(gaps.start >= last[gaps.device], np.bool_)


def fetch_pages(case: Case, gaps: Gaps) -> bool:
    """Whether most of the time the host works on pages of the GPU that come as it touches them.

    They come before what it does with them, or once it has done so with others; what comes once may
    be anything but between pages.
    """
    after = (gaps.previous >= 0) & touched_by_host(case, gaps.previous)
    until = touched_by_host(case, gaps.next)
    return hold_most(gaps, after & until if has_one_long(gaps) else after | until)


def between_files(case: Case, gaps: Gaps) -> tuple[str, str]:
    """The call by which the host reads or writes all along most gaps, and what to do if known."""
    thread = thread_of(case, gaps)
    files = case.work.near(thread, gaps.start, gaps.end).by_class.get(Cause.IO)
    if files is None:
        return "", ""
    name, along = files_along(case, thread, gaps.start, gaps.end)
    if not hold_most(gaps, along):
        return _loads(case, gaps, files)
    took = intervals.overlap_length((files.starts, files.ends), (gaps.start, gaps.end))
    much = took >= _FILLED * intervals.total(gaps.start, gaps.end)
    return name, words.CAUSES[Cause.IO].advice if much else ""


def _loads(case: Case, gaps: Gaps, files: Named) -> tuple[str, str]:
    """The call by which the host opens files in both halves of most gaps, if it reads them."""
    names = [*enumerate(case.work.names)]
    opens, reads = (
        np.isin(files.name, [code for code, name in names if one.match(name)])
        for one in (words.OPENS, words.MAY_BE_PIPE)
    )
    halves = np.linspace(gaps.start, gaps.end, 3)
    opened = np.diff(np.searchsorted(files.starts[opens], halves), axis=0).min(axis=0)
    if reads.sum() < opens.sum() or not hold_most(gaps, opened > 0):
        return "", ""
    return case.work.name(int(np.bincount(files.name[opens]).argmax())), words.LOADS


def files_along(case: Case, thread: int, starts: Int64, ends: Int64) -> tuple[str, Bool]:
    """The call by which a thread nearly always reads or writes, and all along which times."""
    files = case.work.near(thread, starts, ends).by_class.get(Cause.IO)
    count = np.bincount(files.name) if files is not None else np.zeros(0, np.int64)
    if files is None or count.max(initial=0) <= _NEARLY * count.sum():
        return "", np.zeros(len(starts), np.bool_)
    parts = np.linspace(starts, ends, _PARTS + 1)
    calls_in = np.diff(np.searchsorted(files.starts, parts), axis=0)
    return case.work.name(int(count.argmax())), np.asarray(calls_in.min(axis=0) > 0)


def comes_once(case: Case, gaps: Gaps) -> bool:
    """Whether one gap has most of the time, or nearly all work is done before."""
    device, since = int(gaps.device[0]), int(gaps.start[_most(gaps.idle)].min())
    works = case.idle_time.busy_ns
    return has_one_long(gaps) or works(device, since) <= _REST * works(device)


def few_long(times: Int64, kind: Integers) -> Bool:
    """Which times are the fewest far longer than all others of their kind, and most of all of it.

    Args:
        times: how long each lasts.
        kind: of each.
    """
    long = np.zeros(len(times), np.bool_)
    for _, mine in rows_of_values(kind):
        falling = np.sort(times[mine])[::-1]
        few = np.arange(1, len(mine) // _FEW + 1)
        apart = falling[few - 1] >= _LEAP * falling[few]
        apart &= 2 * np.cumsum(falling)[few - 1] > falling.sum()
        long[mine] = times[mine] >= falling[apart.argmax()] if apart.any() else False
    return long


def has_one_long(gaps: Gaps) -> bool:
    """Whether one gap has most of the time."""
    return int(gaps.idle.max()) >= _MOSTLY * int(gaps.idle.sum())


def touched_by_host(case: Case, rows: Integers) -> Bool:
    """Which of some operations bring pages that the host waits for."""
    to_host = np.isin(case.report.operations.copy_kind[rows], TO_HOST)
    return np.asarray(to_host & case.on_demand(rows), np.bool_)


def free_time(case: Case, thread: Integers, starts: Int64, ends: Int64) -> Intervals:
    """The parts of some times in which their threads wait for nobody: what hosts can do ahead."""
    parts: list[Intervals] = []
    for one, mine in rows_of_values(thread):
        spans = intervals.union(starts[mine], ends[mine])
        by_class = case.work.near(int(case.report.api.threads[one]), *spans).by_class
        for waits in (by_class[cause] for cause in _FOR_OTHERS if cause in by_class):
            spans = intervals.subtract(spans, (waits.starts, waits.ends))
        parts.append(spans)
    return intervals.joined(*parts)


def thread_of(case: Case, gaps: Gaps) -> int:
    """The thread that most gaps waited for, -1 for none."""
    count = np.bincount(gaps.caller[gaps.caller >= 0])
    return int(case.report.api.threads[count.argmax()]) if len(count) else -1


def for_others(case: Case, cause: Cause, what: str, gaps: Gaps, lost: Intervals) -> tuple[str, str]:
    """Whom the program waits for, and what to do; empty for nobody known.

    For requests, by itself or behind a thread that takes them, its own processes, or a device.
    """
    thread, awaits = thread_of(case, gaps), words.WAITS.match(what) is not None
    drives = cause is Cause.OSRT and words.DRIVES.match(what)
    if drives and not awaited.keeps_a_rate(case, cause, thread, gaps, lost):
        return "another device", words.DEVICE
    if cause is not Cause.WAIT:
        return "", ""
    if (awaits and awaited.is_asked(case, thread)) or awaited.by_requests(case, thread, lost):
        return awaited.asked_by(case, thread)
    advice = awaited.helpers(case, thread, lost) if awaits else ""
    return ("processes that it forked", advice) if advice else ("", "")


def is_ready(case: Case, gaps: Gaps, lost: Intervals) -> bool:
    """Whether the thread could go on for most of some time, had it a CPU.

    One that goes off right after its waits for the GPU blocks in a call that nobody traces: who is
    taken off its CPU for others stops anywhere.
    """
    thread, api = thread_of(case, gaps), case.report.api
    scheduling = case.work.scheduling
    left, back = scheduling.off_by_why(thread).get(Off.UNKNOWN, intervals.empty())
    rows = np.flatnonzero(api.real & (api.threads[api.thread] == thread))
    last = rows[np.searchsorted(api.start[rows], left) - 1]
    since = left - api.end[last]
    blocks = np.isin(case.work.api_classes[last], (Cause.COPY, Cause.SYNC))
    blocks &= (since >= 0) & (since < _LEAVES_NS)
    could = intervals.subtract(scheduling.ready(thread), (left[blocks], back[blocks]))
    return 2 * intervals.overlap_length(could, lost) > intervals.total(*lost)


def usual_name(case: Case, codes: Integers, idle: Int64) -> str:
    """The name that more than half of the idle time has, empty for none."""
    group, names = factorise(codes)
    time = np.bincount(group, idle)
    top = int(np.argmax(time))
    name = case.work.name(int(names[top]))
    return strip_op_id(name) if 2 * time[top] > time.sum() else ""


def most_called(case: Case, cause: Cause, gaps: Gaps, lost: Intervals) -> tuple[str, bool]:
    """The call that most of the time was in, empty for none, and whether much was in others."""
    work, time = case.work, Counter[str]()
    callers = np.flatnonzero(np.bincount(gaps.caller)) if cause in _BY_CALL else ()
    for caller in callers:
        thread = work.near(int(case.report.api.threads[caller]), *lost)
        time.update(work.by_name(thread.by_class.get(cause), lost))
    if not time:
        return usual_name(case, gaps.what, gaps.idle), bool((gaps.what != gaps.what[0]).any())
    (name, most), whole = time.most_common(1)[0], time.total()
    return (name if 2 * most > whole else ""), most < (1 - _BESIDE) * whole


def hold_most(gaps: Gaps, chosen: Bool) -> bool:
    """Whether some gaps that end with an operation have most of the idle time."""
    return 2 * int(gaps.idle[chosen & (gaps.next >= 0)].sum()) > int(gaps.idle.sum())


def waits_for(case: Case, gaps: Gaps, lost: Intervals) -> list[int]:
    """Other GPUs that work for whom a GPU waits for through most of some time: one, or by turns.

    Where it waits itself, for whatever thread, the others idle while it works.
    """
    device = int(gaps.device[0])
    if gaps.cause[0] in words.QUEUED:
        others = [other for other in case.by_device if other != device]
        return others if case.idle_time.by_turns(device, others) else []
    waited_for: list[int] = []
    idle = lost
    for other in case.by_device:
        if other == device or not np.isin(case.launching(other), gaps.caller).any():
            continue
        idle_of_other = case.idle_time.idle_part(other, lost)
        if 2 * intervals.total(*idle_of_other) < intervals.total(*lost):
            return [other]
        waited_for, idle = [*waited_for, other], intervals.meet(idle, idle_of_other)
    return waited_for if 2 * intervals.total(*idle) < intervals.total(*lost) else []


def copies_wait(case: Case, gaps: Gaps, lost: Intervals) -> bool:
    """Whether calls that copy wait for other GPUs through most of some gaps of one."""
    waiting = intervals.overlap_length(until_copies(case.report, case.copies), lost)
    return 2 * waiting > intervals.total(*lost) and bool(waits_for(case, gaps, lost))


def after_host_functions(case: Case, gaps: Gaps) -> bool:
    """Whether functions of the host were put into the stream before most of some gaps' ends."""
    api, calls = case.report.api, case.report.calls
    named = np.array(["HostFunc" in one or "AddCallback" in one for one in api.names], bool)
    times = np.sort(api.start[np.flatnonzero(named[api.name])])
    before = np.where(gaps.previous >= 0, calls[gaps.previous], -1)
    since, until = (np.searchsorted(times, api.start[rows]) for rows in (before, gaps.call))
    return hold_most(gaps, (before >= 0) & (gaps.call >= 0) & (until > since))


def are_held_up(case: Case, gaps: Gaps) -> bool:
    """Whether most of the time lies so long after launches that something else holds work up."""
    until = np.where(gaps.call >= 0, case.report.api.end[gaps.call], gaps.end)
    return hold_most(gaps, gaps.end - until >= _LATE_NS)


def launch_own_work(case: Case, gaps: Gaps, lost: Intervals) -> bool:
    """Whether calls that launch work of the GPU itself, the work done before, take most of it."""
    _, calls = case.report.called(case.by_device[int(gaps.device[0])])
    covered = intervals.overlap_length(case.report.api.runs(calls), lost)
    return 2 * covered > intervals.total(*lost)


def are_long(case: Case, gaps: Gaps) -> bool:
    """Whether long calls that launch what ends some gaps take most of them, not those before."""
    api, calls = case.report.api, gaps.call
    within = np.minimum(api.end[calls], gaps.end) - np.maximum(api.start[calls], gaps.start)
    long = (calls >= 0) & (api.durations(calls) >= LONG_CALL_NS)
    return 2 * int(within[long].clip(0).sum()) > int(gaps.idle.sum())


def kept(case: Case, call: str) -> str:
    """What to do about a call that makes what can be kept; graphs that are made again and again."""
    advice = next((told for named, told in words.KEPT if named.match(call)), "")
    if "Graph" not in call:
        return advice
    made, launched = (np.sort(calls_to(case.report, does)[0]) for does in _OF_GRAPHS)
    replaced = np.count_nonzero(np.diff(np.searchsorted(launched, made)))
    return advice * bool(2 * replaced >= max(len(made), 1))


def looks_again(case: Case, gaps: Gaps, waits: Intervals) -> bool:
    """Whether a sleeping thread does so again and again in a gap: what it awaits is not there.

    Only the last sleep of a gap may be too long.
    """
    sleeps = case.work.near(thread_of(case, gaps), *waits).by_class[Cause.SLEEP]
    return len(sleeps.starts) >= _MANY * len(gaps)


def of_each(case: Case, cause: Cause, gaps: Gaps) -> int:
    """How much sooner each of the threads that launch side by side is done without its waits.

    The next launch comes from another one while one waits: what all of them wait counts but once.
    Without waits for a GPU the host is ahead of it by no more than they last.
    """
    api, mine = case.report.api, gaps.caller >= 0
    if cause is Cause.SYNC:
        return int(api.durations(case.calls[case.work.api_classes[case.calls] == cause]).sum())
    if cause not in OF_SYSTEM:
        return FARTHEST
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
