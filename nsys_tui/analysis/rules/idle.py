"""Our rule on idle GPUs: which cause costs how much."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.breakdown import UVM_COPY_KINDS
from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.case import AND_OTHERS, WORTH_A_LINE, Case
from nsys_tui.analysis.rules.finding import Confidence, Finding, Severity
from nsys_tui.analysis.rules.held import FOR_THREADS, held
from nsys_tui.analysis.rules.pace import first_uses, kinds_of
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge, Gaps
from nsys_tui.analysis.stalls.explained import LONG_CALL_NS, Spans, by_witness, when
from nsys_tui.analysis.stalls.rows import stall_groups
from nsys_tui.analysis.thread_states import Doing, Off, Sampled, Witness, sampled
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Int64, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name, fit, strip_op_id
from nsys_tui.units import plural

_NOT_KNOWN: Final = (Cause.NOTHING, Cause.UNKNOWN)
_UNPRICED: Final = (*_NOT_KNOWN, *words.QUEUED, Cause.PROFILER)
"""Causes of which nobody can tell what the program could save; without the profiler, nothing."""


@rule(
    "Idle time of GPUs by cause",
    advice="Idle time between operations by what the host did meanwhile; nsys-tui stalls lists the"
    " gaps.",
    nothing="No idle time between operations.",
)
def gpu_idle(case: Case, arguments: Arguments) -> Result:
    """Idle gaps from 10 us on by cause, and the calls and ranges that cost most."""
    groups = stall_groups(case.report, case.stalls) if len(case.report.operations) else []
    shown, hidden = cut(groups, arguments)
    columns = (
        (Column("Idle", Unit.NS), [group.idle_ns for group in shown]),
        (Column("Gaps", Unit.COUNT), [group.count for group in shown]),
        (Column("Longest", Unit.NS), [group.longest_ns for group in shown]),
        (Column("Cause"), [group.key for group in shown]),
    )
    findings = idle_findings(case, "gpu_idle", (*words.CAUSES, *words.QUEUED)) + _short_gaps(case)
    return Result(columns, findings, hidden=hidden)


def _short_gaps(case: Case) -> list[Finding]:
    """Gaps too short to be looked at one by one, where they add up to much.

    A launch that is made only when the GPU is idle already comes late; of others the GPU itself
    needs the time.
    """
    least = max(_MUCH * case.base_ns, 1)
    below = {total.device: total.below_ns for total in case.stalls.totals}
    device = max(below, key=lambda key: below[key], default=-1)
    if device < 0 or below[device] < least or not len(case.report.api):
        return []
    _, after, reach, begun = case.short_gaps(device, intervals.empty())
    calls = case.report.calls[after]
    late = (calls >= 0) & (case.report.api.end[calls] >= reach)
    starts, ends = intervals.subtract((reach[late], begun[late]), case.launch_bound(device))
    idle = intervals.total(starts, ends)
    if idle < least:
        return []
    return case.finding(
        "gpu_idle",
        f"{case.device_labels([device])} idle {units.format_duration(idle)} in"
        f" {plural(len(starts), 'short gap')}: each launch comes only when the one before is done",
        "launch further ahead, fuse kernels, or capture the phase as a CUDA graph",
        subject="idle, short gaps before late launches",
        saved_ns=idle,
        window=(int(starts[0]), int(ends[-1])),
        device=device,
        screen="2",
        command="nsys-tui stalls REPORT --threshold 1us",
        confidence=Confidence.INFERRED,
        doubt="the host may need a result of the GPU before it can launch",
        settle="nsys-tui stalls REPORT --threshold 1us",
        lost=case.idle_time.idle_part(device, (starts, ends)),
    )


_LARGE: Final = 0.1
"""Part of the time looked at from which idle time without a known reason leads the list."""
_MUCH: Final = 0.01
"""Part of the time looked at from which short gaps are told."""


def idle_findings(case: Case, name: str, causes: tuple[Cause, ...]) -> list[Finding]:
    """A finding for each cause, or for each call at fault where that tells more."""
    every, spans = case.once("idle by witness", lambda: _idle_by_witness(case))
    gaps = every.take(np.isin(every.cause, causes))
    if not len(gaps):
        return []
    kinds = np.vstack((kinds_of(gaps), _pauses(case, gaps)))
    kinds, group = np.unique(kinds, axis=1, return_inverse=True)
    findings: list[Finding] = []
    for number, cause in enumerate(kinds[0].tolist()):
        mine = gaps.take(group.ravel() == number)
        findings += _idle_finding(case, name, Cause(cause), mine, spans)
    return findings


def _idle_by_witness(case: Case) -> tuple[Gaps, Spans]:
    """Idle gaps once for each of their causes and when that was, without what happens once."""
    gaps = case.stalls.gaps
    gaps = gaps.take(gaps.edge == Edge.INNER)
    gaps = gaps.take(~first_uses(case, gaps))
    causes = (*words.CAUSES, *words.QUEUED, Cause.SYNC)
    return by_witness(case.stalls.work, gaps, causes, WORTH_A_LINE * case.base_ns)


def _idle_finding(case: Case, name: str, cause: Cause, gaps: Gaps, spans: Spans) -> list[Finding]:
    """GPUs idle at the same time lose it once: the one that loses most counts."""
    each = np.bincount(gaps.device, gaps.idle)
    device, several = int(np.argmax(each)), int((2 * each > each.max()).sum()) > 1
    late, most = _late_rank(case, gaps) if cause is Cause.MPI else (-1, case.base_ns)
    gaps = gaps.take(gaps.device == device)
    worst, total = int(np.argmax(gaps.idle)), int(gaps.idle.sum())
    lost = case.idle_time.idle_part(device, when(case.stalls.work, gaps, spans))
    renders = case.report.operations.kind[gaps.next] > OpKind.GRAPH
    said = words.CAUSES.get(cause, words.ON_DEVICE if cause in words.QUEUED else words.SYNC)
    said = words.RENDERING if cause in _NOT_KNOWN and _mostly(gaps, renders) else said
    told, confidence, advice = _told(case, cause, gaps, lost, said.advice)
    priced = cause not in _UNPRICED or advice in (*words.SPREAD, words.HOST_FUNCTION)
    unpriced = not priced or advice in (*words.MEANT, words.ON_DEVICE.advice)
    unknown = cause in _NOT_KNOWN and total >= _LARGE * case.base_ns
    if late >= 0:
        advice = words.LATE_RANK.format(case.device_labels([late]))
    if advice in words.SPREAD:
        devices = case.by_device
        most -= sum(map(case.idle_time.busy_ns, devices)) // len(devices)
    elif said.hidden_by_work and advice not in words.WHOLE and not _is_rare(case, gaps):
        advice = words.hiding(advice, total, case.idle_time.busy_ns(device))
    label = case.device_labels([device]) + (AND_OTHERS if several else "")
    return case.finding(
        name,
        f"{label} idle {units.format_duration(total)} in {plural(len(gaps), 'gap')}{told}",
        advice,
        subject=f"idle{told}".removesuffix(", why is not recorded"),
        saved_ns=0 if unpriced else min(total, most),
        stake_ns=total,
        window=(int(gaps.start[worst]), int(gaps.end[worst])),
        device=device,
        screen="5",
        command="nsys-tui stalls REPORT",
        at_most=Severity.MEDIUM if unpriced and not unknown else None,
        confidence=confidence,
        doubt=said.doubt,
        settle=said.settled_by(case.report),
        lost=lost,
        when=intervals.union(gaps.start, gaps.end),
        late=late,
        held=held(case, _thread(case, gaps), lost, _name(case, gaps.range, gaps.idle))
        if cause in FOR_THREADS
        else None,
    )


def _late_rank(case: Case, gaps: Gaps) -> tuple[int, int]:
    """The GPU for whose rank the others wait in MPI, -1 for none, and how much time that can cost.

    Without waits the run takes what else its ranks do. So what the rank that waits least waits is
    all there is to gain; where the others wait for it, what the next one waits.
    """
    ops, waited = case.report.operations, np.bincount(gaps.device, gaps.idle)
    ranks = [
        device for device, rows in case.by_device.items() if _calls_mpi(case, ops.process[rows])
    ]
    waited = np.append(waited, np.zeros(len(case.report.devices)))
    order = sorted(ranks, key=lambda device: waited[device])
    if len(order) < 2:
        return -1, case.base_ns
    least, next_ = (int(waited[device]) for device in order[:2])
    return (order[0], next_) if _LATE * least < next_ else (-1, least)


def _calls_mpi(case: Case, process: Integers) -> bool:
    """Whether a process that some operations are of makes calls of MPI."""
    events, ops = case.report.host_events, case.report.operations
    ranks = events.thread_process[np.flatnonzero(np.bincount(events.thread[events.of_mpi]))]
    return bool(np.isin(ops.processes[np.flatnonzero(np.bincount(process))], ranks).any())


def _told(
    case: Case, cause: Cause, gaps: Gaps, lost: Intervals, advice: str
) -> tuple[str, Confidence, str]:
    """The cause in words, how sure it is, and what to do."""
    where = _name(case, gaps.range, gaps.idle)
    what, several = _most(case, cause, gaps, lost)
    inside = f" in {fit(where, _PLACE_CELLS)}" if where and where != what else ""
    migrates = np.isin(case.report.operations.copy_kind[gaps.next], UVM_COPY_KINDS)
    if cause in _NOT_KNOWN and _mostly(gaps, migrates):
        if cause is Cause.UNKNOWN:
            advice = case.page_advice
        return f", {Cause.NOTHING.label} before pages migrate", Confidence.INFERRED, advice
    if cause is Cause.HOST:
        return _host(case, gaps, lost, inside, advice)
    if cause is Cause.OFF_CPU and _is_ready(case, gaps, lost):
        seen = Off.RUNNABLE in case.stalls.work.scheduling.off_by_why(_thread(case, gaps))
        sure = Confidence.MEASURED if seen else Confidence.INFERRED
        return ", waits for a CPU", sure, words.NO_CPU
    if cause is Cause.OFF_CPU and len(case.report.osrt):
        advice = words.NO_CALL
    queued = cause in words.QUEUED
    polls = cause is Cause.API and words.POLLS.match(what) is not None
    if (queued or polls or cause is Cause.SYNC) and (others := _waits_for(case, gaps, queued)):
        turns = case.idle_time.by_turns(int(gaps.device[0]), others)
        whom = "GPUs by turns" if len(others) > 1 else case.device_labels(others)
        waiter = "its stream" if queued else fit(what, _NAME_CELLS)
        return f", {waiter} waits for {whom}", Confidence.INFERRED, words.SPREAD[turns]
    if cause is Cause.STREAM and _after_host_functions(case, gaps):
        return ", its stream waits for a host function", Confidence.INFERRED, words.HOST_FUNCTION
    if cause is Cause.LAUNCH_LATENCY and _are_held_up(case, gaps):
        held = words.QUEUED[Cause.STREAM]
        return f", {held}", Confidence.INFERRED, words.ON_DEVICE.advice
    if queued:
        return f", {words.QUEUED[cause]}", Confidence.INFERRED, advice
    if _serves(case, cause, what, gaps, lost):
        name = f", waits for requests: {fit(what, _NAME_CELLS)}"
        return name, Confidence.INFERRED, words.REQUESTS
    if cause is Cause.SLEEP and words.keeps_a_rate(case, _thread(case, gaps), lost):
        name = f", sleeps to keep a rate: {fit(what, _NAME_CELLS)}"
        return name, Confidence.INFERRED, words.PACED
    waits = cause in FOR_THREADS
    if waits and (other := words.workers(case, _thread(case, gaps), lost)):
        return f", {cause.label}: while {other}", Confidence.INFERRED, words.LATE_THREAD
    if waits and (other := words.alone(case, _thread(case, gaps), lost)):
        other = fit(other, _PLACE_CELLS)
        return f", {cause.label}: while {other} runs", Confidence.GUESS, words.RAN_ALONE
    awaits = cause is Cause.WAIT and words.WAITS.match(what) is not None
    woken = cause is Cause.WAIT and not awaits
    if woken and any(waker := words.waker(case, _thread(case, gaps), lost)):
        other, call = (fit(name, _PLACE_CELLS) for name in waker)
        advice = words.AWAITED if words.WAITS.match(call) else words.LATE_THREAD
        told = f"while {other} is in {call}" if call else f"until {other} wakes it"
        return f", {cause.label}: {told}", Confidence.INFERRED, advice
    if polls:
        advice = words.SYNC.advice
    if cause is Cause.API and what.startswith(words.LAUNCHES) and not _are_long(case, gaps):
        name = f": {fit(what, _NAME_CELLS)} of other work comes first"
        return name, Confidence.MEASURED, "launch for each GPU or stream from a thread of its own"
    if cause is Cause.API and what.startswith(words.LAUNCHES):
        off = case.stalls.work.scheduling.thread(_thread(case, gaps)).off
        away = 2 * intervals.overlap_length(off, lost) > intervals.total(*lost)
        advice = words.HELD_LAUNCH["GraphLaunch" in what]
        why = "off the CPU" if away else "why is not recorded"
        name = f": {fit(what, _NAME_CELLS)} itself took it, {why}"
        return name, Confidence.INFERRED, advice
    if cause is Cause.WAIT and what.startswith("wait"):
        advice = words.CHILD
    if awaits:
        advice = words.AWAITED
    wait = _emptied_by(case, gaps) if cause in words.AFTER_WAITS else ""
    if cause is Cause.NOTHING and (before := _follows(case, gaps)) >= 0:
        told = f", {cause.label} until {case.device_labels([before])} is done"
        return told, Confidence.INFERRED, words.STAGES
    if wait and cause is Cause.NOTHING:
        told = f", {cause.label} after {fit(wait, _NAME_CELLS)}"
        return told, Confidence.INFERRED, words.WAITS_FIRST
    if wait:
        advice = words.EMPTIED.format(fit(wait, _NAME_CELLS))
    elif cause is Cause.LAUNCH_LATENCY and "GraphLaunch" in what:
        advice = "launch the next graph before this one ends, or let one graph do more"
    told = f", {cause.label}"
    if what and what != "Unknown":
        most = "most of " if cause is Cause.LAUNCH_LATENCY else "most in "
        told += f": {most * several}{fit(what, _NAME_CELLS)}"
    inferred = cause in _NOT_KNOWN or cause not in SHARES
    return told + inside, Confidence.INFERRED if inferred else Confidence.MEASURED, advice


def _pauses(case: Case, gaps: Gaps) -> Bool:
    """In which gaps the host computes so much longer than in the others that few steps have one."""
    pauses = np.zeros(len(gaps), bool)
    for device in np.unique(gaps.device):
        mine = np.flatnonzero((gaps.device == device) & (gaps.cause == Cause.HOST))
        long = mine[gaps.idle[mine] > _PAUSE * np.median(gaps.idle[mine])] if len(mine) else mine
        pauses[long] = case.has_named_steps and _FEW * len(long) <= len(case.iterations)
    return pauses


def _is_rare(case: Case, gaps: Gaps) -> bool:
    """Whether few of the named steps lose nearly all of it: the others get on without."""
    time = np.cumsum(-np.sort(-gaps.idle))
    few = int(np.searchsorted(time, _NEARLY * time[-1])) + 1
    return case.has_named_steps and _FEW * few <= len(case.iterations)


def _host(
    case: Case, gaps: Gaps, lost: Intervals, inside: str, advice: str
) -> tuple[str, Confidence, str]:
    """What the thread did on its CPU: the function that samples hit, else the range."""
    thread = _thread(case, gaps)
    seen = sampled(case.report, thread, *lost)
    measured = case.stalls.work.witness(thread) is Witness.MEASURED
    if _is_rare(case, gaps):
        advice, inside = words.PAUSES, inside or " in few steps"
    elif wait := _emptied_by(case, gaps):
        advice = words.EMPTIED.format(fit(wait, _NAME_CELLS)) + words.MOVED
    confidence = Confidence.MEASURED if measured else Confidence.INFERRED
    if seen is None:
        return f", {Cause.HOST.label}{inside}", confidence, advice
    return f", {_seen(seen)}", confidence, words.BY_DOING.get(seen.doing, advice)


def _emptied_by(case: Case, gaps: Gaps) -> str:
    """The call in which the host waits for the GPU before most of some gaps, empty for none.

    Without its waits the host would be ahead by their time, less the idle time since: enough to
    hide a fourth of the gap at least. Shorter waits than that do not count.
    """
    api, work = case.report.api, case.stalls.work
    rows = np.flatnonzero(np.isin(work.api_classes, (Cause.COPY, Cause.SYNC)))
    rows = rows[api.threads[api.thread[rows]] == _thread(case, gaps)]
    rows = rows[4 * api.durations(rows) >= np.median(gaps.idle)]
    rows = rows[np.argsort(api.end[rows], kind="stable")]
    gaps = gaps.take(np.argsort(gaps.end, kind="stable"))
    order = np.argsort(np.concatenate((api.end[rows], gaps.end)), kind="stable")
    ahead = np.cumsum(np.concatenate((api.durations(rows), -gaps.idle))[order])
    ahead = np.append(0, ahead - np.minimum.accumulate(np.minimum(ahead, 0)))
    before = ahead[np.flatnonzero(order >= len(rows))]
    hidden = (before > 0) & (4 * before >= gaps.idle)
    last = rows[np.searchsorted(api.end[rows], gaps.end[hidden], side="right") - 1]
    codes = np.full(len(gaps), -1, np.int64)
    codes[hidden] = work.codes(api.name[last], lambda code: api_name(api.names[code]))
    return _name(case, codes, gaps.idle)


def _thread(case: Case, gaps: Gaps) -> int:
    """The thread that most gaps waited for."""
    caller = np.bincount(gaps.caller[gaps.caller >= 0]).argmax()
    return int(case.report.api.threads[caller])


def _serves(case: Case, cause: Cause, what: str, gaps: Gaps, lost: Intervals) -> bool:
    """Whether the program waits for requests: itself, or behind a thread that takes them."""
    if cause is not Cause.WAIT:
        return False
    if words.WAITS.match(what):
        return words.is_asked(case, _thread(case, gaps))
    return words.by_requests(case, _thread(case, gaps), lost)


def _is_ready(case: Case, gaps: Gaps, lost: Intervals) -> bool:
    """Whether the thread could go on for most of some time, had it a CPU."""
    ready = case.stalls.work.scheduling.ready(_thread(case, gaps))
    return 2 * intervals.overlap_length(ready, lost) > intervals.total(*lost)


def _seen(seen: Sampled) -> str:
    share = f" ({units.format_share(seen.share)} of samples)"
    name = fit(seen.name, _NAME_CELLS)
    if seen.doing is Doing.WORKS:
        return f"host compute: {name}{share}" if name else "host compute"
    return f"host {seen.doing}{': ' + name if name else ''}{share}"


def _name(case: Case, codes: Int64, idle: Int64) -> str:
    """The name that more than half of the idle time has, empty for none."""
    if not len(codes):
        return ""
    names, group = np.unique(codes, return_inverse=True)
    time = np.bincount(group, idle)
    top = int(np.argmax(time))
    name = case.stalls.work.name(int(names[top]))
    return strip_op_id(name) if 2 * time[top] > time.sum() else ""


def _most(case: Case, cause: Cause, gaps: Gaps, lost: Intervals) -> tuple[str, bool]:
    """The call that most of the time was in, empty for none, and whether much was in others."""
    work, time = case.stalls.work, Counter[str]()
    for caller in np.unique(gaps.caller) if cause in _BY_CALL else ():
        thread = work.near(int(case.report.api.threads[caller]), *lost)
        time.update(work.by_name(thread.by_class.get(cause), lost))
    if not time:
        return _name(case, gaps.what, gaps.idle), bool((gaps.what != gaps.what[0]).any())
    (name, most), whole = time.most_common(1)[0], time.total()
    return (name if 2 * most > whole else ""), most < (1 - _BESIDE) * whole


def _mostly(gaps: Gaps, chosen: Bool) -> bool:
    """Whether some gaps that end with an operation have most of the idle time."""
    return 2 * int(gaps.idle[chosen & (gaps.next >= 0)].sum()) > int(gaps.idle.sum())


def _waits_for(case: Case, gaps: Gaps, queued: bool) -> list[int]:
    """Other GPUs that work for the waiting thread through most of some gaps: one, or by turns.

    Args:
        case: the report.
        gaps: of one GPU.
        queued: the GPU itself waits, for whatever thread: the others idle while it works.
    """
    report, spans = case.report, intervals.union(gaps.start, gaps.end)
    device = int(gaps.device[0])
    if queued:
        others = [other for other in case.by_device if other != device]
        return others if case.idle_time.by_turns(device, others) else []
    waited_for: list[int] = []
    idle = spans
    for other, rows in case.by_device.items():
        calls = report.calls[rows]
        threads = report.api.thread[calls[calls >= 0]]
        if other == device or not np.isin(threads, gaps.caller).any():
            continue
        idle_of_other = case.idle_time.idle_part(other, spans)
        if 2 * intervals.total(*idle_of_other) < intervals.total(*spans):
            return [other]
        waited_for, idle = [*waited_for, other], intervals.meet(idle, idle_of_other)
    return waited_for if 2 * intervals.total(*idle) < intervals.total(*spans) else []


def _follows(case: Case, gaps: Gaps) -> int:
    """The GPU of another process whose work ends right before most of some gaps do, -1 for none.

    Others work meanwhile, and so rarely end that chance does not tell: GPUs that idle together
    wait for no stage.
    """
    device, whole = int(gaps.device[0]), intervals.union(*np.array([case.base], np.int64).T)
    ops, idle, best = case.report.operations, intervals.union(gaps.start, gaps.end), (0, -1)
    owners = {gpu: np.bincount(ops.process[rows]) for gpu, rows in case.by_device.items()}
    mine = {*np.flatnonzero(owners[device]).tolist()}
    for other, counts in owners.items():
        if not mine.isdisjoint(np.flatnonzero(counts).tolist()):
            continue
        idle = case.idle_time.idle_part(other, idle)
        starts, ends = case.idle_time.idle_part(other, whole)
        done = starts[ends - starts >= _REST_NS]
        since = np.maximum(gaps.start, gaps.end - _HANDED_NS)
        near = np.searchsorted(done, gaps.end) > np.searchsorted(done, since)
        rare = len(done) * _HANDED_NS <= _CHANCE * case.base_ns
        best = max(best, (int(gaps.idle[near].sum()) * rare, other))
    lost = int(gaps.idle.sum())
    works = intervals.total(*idle) <= (1 - _NEARLY) * lost
    return best[1] if works and best[0] >= _NEARLY * lost else -1


def _after_host_functions(case: Case, gaps: Gaps) -> bool:
    """Whether functions of the host were put into the stream before most of some gaps' ends."""
    api, calls = case.report.api, case.report.calls
    named = np.array(["HostFunc" in one or "AddCallback" in one for one in api.names], bool)
    times = np.sort(api.start[np.flatnonzero(named[api.name])])
    before = np.where(gaps.previous >= 0, calls[gaps.previous], -1)
    since, until = (np.searchsorted(times, api.start[rows]) for rows in (before, gaps.call))
    return _mostly(gaps, (before >= 0) & (gaps.call >= 0) & (until > since))


def _are_held_up(case: Case, gaps: Gaps) -> bool:
    """Whether most of the time lies so long after launches that something else holds work up."""
    until = np.where(gaps.call >= 0, case.report.api.end[gaps.call], gaps.end)
    return _mostly(gaps, gaps.end - until >= _LATE_NS)


def _are_long(case: Case, gaps: Gaps) -> bool:
    """Whether long calls that launch what ends some gaps take most of them, not those before."""
    api, calls = case.report.api, gaps.call
    within = np.minimum(api.end[calls], gaps.end) - np.maximum(api.start[calls], gaps.start)
    long = (calls >= 0) & (api.durations(calls) >= LONG_CALL_NS)
    return 2 * int(within[long].clip(0).sum()) > int(gaps.idle.sum())


_NAME_CELLS: Final = 22
_BY_CALL: Final = SHARES[Cause.PROFILER : Cause.HOST]
"""Causes that are calls, or rows of what holds a call up."""
_BESIDE: Final = 0.05
"""Part of the time from which other calls are worth a word."""
_REST_NS: Final = 10_000
"""Work of a GPU is done where it idles for so long."""
_HANDED_NS: Final = 300_000
"""Within this time results of one GPU reach the launch on the next one."""
_CHANCE: Final = 0.2
"""Part of the time near ends of another GPU's work up to which a gap's end there is no chance."""
_NEARLY: Final = 0.9
_FEW: Final = 4
"""So many times as many steps as gaps with nearly all of the time: these are pauses."""
_PAUSE: Final = 5
"""So many times as long as usual the host computes in a pause."""
_LATE_NS: Final = 1_000_000
"""No launch takes so long from its call to its work."""
_LATE: Final = 3
"""So many times as long as the late rank all others wait: less may be chance."""
_PLACE_CELLS: Final = 16
"""Cells of names in findings, which are one line."""
