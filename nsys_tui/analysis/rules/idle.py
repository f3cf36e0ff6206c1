"""Our rule on idle GPUs: which cause costs how much."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.breakdown import UVM_COPY_KINDS
from nsys_tui.analysis.rules import awaited
from nsys_tui.analysis.rules import gap_facts as facts
from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.begun import await_results, begun
from nsys_tui.analysis.rules.case import AND_OTHERS, Case, kept
from nsys_tui.analysis.rules.clean_up import before_clean_up, clean_up, results_read
from nsys_tui.analysis.rules.copy_advice import is_one_page, page_advice
from nsys_tui.analysis.rules.finding import TITLE_CELLS, Confidence, Finding, Held, Severity
from nsys_tui.analysis.rules.held import FOR_THREADS, held, is_alone, unhindered
from nsys_tui.analysis.rules.late_ranks import late_rank, messages_next, without_messages
from nsys_tui.analysis.rules.launch_rate import short_gaps, straight
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.analysis.rules.run import WORTH_A_LINE
from nsys_tui.analysis.rules.small_work import between_tiny
from nsys_tui.analysis.rules.staging import are_staged
from nsys_tui.analysis.rules.warm_up import (
    before_code,
    come_again,
    first_uses,
    kinds_of,
    launched_first,
)
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge, Gaps
from nsys_tui.analysis.stalls.explained import Spans, by_witness, when
from nsys_tui.analysis.stalls.host_activity import LATE_NS
from nsys_tui.analysis.stalls.rows import stall_groups
from nsys_tui.analysis.thread_states import Doing, Off, Sampled, Witness, sampled
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import factorise_rows
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import brief

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
    findings = idle_findings(case, "gpu_idle", (*words.CAUSES, *words.QUEUED))
    return Result(
        columns,
        findings + short_gaps(case) + results_read(case) + clean_up(case),
        hidden=hidden,
    )


_OWN: Final = (Cause.SYNC, Cause.COPY, Cause.HOST, Cause.NOTHING, Cause.LAUNCH_LATENCY)
"""What a launching thread does itself from some GPU work to the next: being ahead hides it all."""
_TAKES: Final = {Cause.HOST: (*_OWN, *facts.OF_SYSTEM)} | dict.fromkeys(
    facts.OF_SYSTEM, (Cause.HOST, Cause.NOTHING)
)
"""What a cause leads in its gaps, by default one's own: a call of the system what is less there."""
_UNKNOWN: Final = 2
"""What is not recorded leads where it takes so many times as long as what is."""
_GOOD_PART: Final = 4
"""Of a cause's time in a gap a part, one of so many, with which one's own leads another one."""
_TOLD: Final = 5
"""Part of the time, one of so many, from which a second cause is named."""
_LARGE: Final = 0.1
"""Part of the time looked at from which idle time without a known reason leads the list."""


def idle_findings(case: Case, name: str, causes: tuple[Cause, ...]) -> list[Finding]:
    """A finding for each cause, or for each call at fault where that tells more."""
    findings: list[Finding] = []
    told, spans = _together(case)
    for gaps, beside in told:
        if gaps.cause[0] in causes:
            findings += _idle_finding(case, name, gaps, beside, spans)
    return findings


@kept
def _together(case: Case) -> tuple[list[tuple[Gaps, Gaps]], Spans]:
    """Gaps of one cause or call, what one change gives back with it, and when causes were."""
    gaps, spans = _idle_by_witness(case)
    gaps = gaps.take(~launched_first(case, gaps))
    inside = straight(case, gaps) & between_tiny(case, gaps)
    kept = ~inside | (gaps.cause == Cause.HOST)
    gaps, inside = gaps.take(kept), inside[kept]
    apart = np.where(inside, 2, 0)
    waits = np.flatnonzero(gaps.cause == Cause.WAIT)
    apart[waits[~come_again(case, gaps.take(waits))]] = 3
    kind, _ = factorise_rows((*kinds_of(gaps), apart))
    few = facts.few_long(gaps.idle, kind).astype(np.int64)
    group, _ = factorise_rows((gaps.cause, kind, few))
    of = _led_by(gaps, group, np.isin(gaps.cause, (*_OWN, *facts.OF_SYSTEM)) & ~inside)
    leads, mine = np.flatnonzero(np.bincount(of)).tolist(), of == group
    return [(gaps.take(mine & (of == n)), gaps.take(~mine & (of == n))) for n in leads], spans


def _led_by(gaps: Gaps, group: Integers, own: Bool) -> Integers:
    """Of each row the group that it is told with: one of more time with a good part of its gap."""
    of, (place, distinct) = group.copy(), factorise_rows((gaps.device, gaps.start))
    known = np.where(gaps.cause == Cause.NOTHING, gaps.idle // _UNKNOWN, gaps.idle)
    causes = gaps.cause[np.unique(group, return_index=True)[1]]
    weight = np.bincount(group, known * (own & (gaps.cause != Cause.COPY)))
    for lead in np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)].tolist():
        mine = (of == lead) & (group == lead)
        part = np.bincount(place[mine], gaps.idle[mine], len(distinct))
        takes = own & np.isin(gaps.cause, _TAKES.get(Cause(causes[lead]), _OWN))
        times = 1 if causes[lead] in facts.OF_SYSTEM else _GOOD_PART
        of[takes & (times * part[place] >= gaps.idle)] = lead
        own &= (of == group) & ~mine
    return of


def _idle_by_witness(case: Case) -> tuple[Gaps, Spans]:
    """Idle gaps once for each of their causes and when that was, without what happens once."""
    gaps = case.stalls.gaps
    gaps = gaps.take((gaps.edge == Edge.INNER) & ~facts.after_all_launches(case, gaps))
    gaps = gaps.take(~first_uses(case, gaps) & ~are_staged(case, gaps))
    gaps = gaps.take(~before_clean_up(case, gaps))
    compiles = before_code(case, gaps)
    whole = np.full(compiles.sum(), Cause.MODULE, np.uint8)
    compiled = replace(gaps.take(compiles), cause=whole, shares={})
    known = (one for one in words.CAUSES if one is not Cause.MODULE)
    causes = [Cause.SYNC, Cause.COPY, *words.QUEUED, *known]
    parts, spans = by_witness(case.work, gaps.take(~compiles), causes, WORTH_A_LINE * case.base_ns)
    return parts.beside(compiled), spans


def _idle_finding(case: Case, name: str, gaps: Gaps, beside: Gaps, spans: Spans) -> list[Finding]:
    """GPUs idle at the same time lose it once: the one that loses most counts."""
    cause, each = Cause(gaps.cause[0]), np.bincount(gaps.device, gaps.idle)
    device, several = int(np.argmax(each)), int((2 * each > each.max()).sum()) > 1
    late, most = late_rank(case, gaps) if cause is Cause.MPI else (-1, case.base_ns)
    gaps, beside = gaps.take(gaps.device == device), beside.take(beside.device == device)
    lost = case.idle_time.idle_part(device, when(case.work, gaps, spans))
    if cause is Cause.MPI:
        gaps, lost = without_messages(case, gaps, lost)
    if not len(gaps) or (cause is Cause.COPY and not facts.copies_wait(case, gaps, lost)):
        return []  # The rules on copies tell of those.
    worst, total = int(np.argmax(gaps.idle)), int(gaps.idle.sum() + beside.idle.sum())
    apart = np.isin(beside.cause, FOR_THREADS) | (cause in FOR_THREADS)
    saved = total - int(beside.idle[apart].sum())
    renders = case.report.operations.kind[gaps.next] > OpKind.GRAPH
    said = words.CAUSES.get(cause, words.ON_DEVICE if cause in words.QUEUED else words.SYNC)
    said = words.RENDERING if cause in _NOT_KNOWN and facts.hold_most(gaps, renders) else said
    usual = said.advice or words.unseen(case.report)
    told, confidence, advice = _told(case, cause, gaps, lost, usual)
    held = _held(case, cause, gaps, lost, advice)
    parts = [beside.take(beside.cause == one) for one in np.unique(beside.cause)]
    alone, lost = lost, intervals.joined(lost, *(when(case.work, part, spans) for part in parts))
    lost = case.idle_time.idle_part(device, lost)
    said = words.CAUSES[Cause.API] if advice in words.RETURNS_LATE else said
    priced = cause not in _UNPRICED or advice in (*words.SPREAD, words.HOST_FUNCTION)
    unpriced = not priced or advice in words.NO_PRICE
    unknown = cause in _NOT_KNOWN and total >= _LARGE * case.judged_ns
    unpriced |= cause is Cause.MODULE and not case.has_named_steps
    once = facts.comes_once(case, gaps)
    unpriced |= once and (cause in (*FOR_THREADS, Cause.MPI) or advice in words.SPREAD)
    unknown = unknown and not (once or advice in (*words.MEANT, words.RENDERING.advice))
    if late >= 0:
        advice = words.LATE_RANK.format(case.device_labels([late]))
    if advice in words.SPREAD:
        devices, others = case.by_device, facts.waits_for(case, gaps, alone)
        late = others[0] if len(others) == 1 else -1
        most -= sum(map(case.idle_time.busy_ns, devices)) // len(devices)
    elif said.hidden_by_work and advice not in words.WHOLE and not facts.is_rare(case, gaps):
        advice = words.hiding(advice, total, case.idle_time.busy_ns(device))
    label = case.device_labels([device]) + (AND_OTHERS if several else "")
    where = facts.few_steps(case, gaps.start, gaps.end, gaps.idle) or units.plural(len(gaps), "gap")
    title = f"{label} idle {units.format_duration(total)} in {where}"
    short = told[told.index(", ") :] if told.startswith(" ") else told
    about = ("idle in one gap" if len(gaps) == 1 else "idle") + (told if not priced else short)
    title += (told if len(title + told) <= TITLE_CELLS else short).removesuffix(_RARELY)
    second = max(parts, key=lambda part: int(part.idle.sum()), default=beside)
    if _TOLD * (time := int(second.idle.sum())) >= max(total, 1):
        more = f"; {units.format_duration(time)} {Cause(second.cause[0]).label}"
        title += more * (len(title + more) <= TITLE_CELLS)
    return case.finding(
        name,
        title,
        advice,
        subject=about.removesuffix(_UNTOLD),
        saved_ns=0 if unpriced else min(saved, most, facts.of_each(case, cause, gaps)),
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
        held=held,
    )


def _held(case: Case, cause: Cause, gaps: Gaps, lost: Intervals, advice: str) -> Held | None:
    """What has to happen before anything else shortens the run: the next tick, a thread."""
    until = words.PACES.get(advice)
    if until and (advice == words.PACED or not awaited.are_fixed(lost)):
        return Held((lost[0][:1], lost[1][-1:]), until, known=True)
    seen, thread = cause in words.OF_HOST, facts.thread_of(case, gaps)
    if (seen or cause is Cause.NOTHING) and advice not in words.ELSEWHERE:
        return unhindered(case, thread, intervals.union(gaps.start, gaps.end), seen=seen)
    if cause not in FOR_THREADS:
        return None
    return held(case, thread, lost, facts.usual_name(case, gaps.range, gaps.idle))


def _told(
    case: Case, cause: Cause, gaps: Gaps, lost: Intervals, advice: str
) -> tuple[str, Confidence, str]:
    """The cause in words, how sure it is, and what to do."""
    where = facts.usual_name(case, gaps.range, gaps.idle)
    what, several = facts.most_called(case, cause, gaps, lost)
    thread, call = facts.thread_of(case, gaps), brief(what, _NAME_CELLS)
    inferred, sure = Confidence.INFERRED, Confidence.MEASURED
    inside = f" in {brief(where, _PLACE_CELLS)}" if where and where != what else ""
    migrates = np.isin(case.report.operations.copy_kind[gaps.next], UVM_COPY_KINDS)
    files, ahead = facts.between_files(case, gaps) if cause in _NOT_KNOWN else ("", "")
    if files:
        told = f", {cause.label} between calls of {brief(files, _NAME_CELLS)}"
        return told, inferred, ahead or advice
    pages = cause in words.ON_HOST and facts.fetch_pages(case, gaps)
    if pages:
        advice = words.PAGES[not is_one_page(case, int(gaps.device[0]))]
    elif cause is Cause.UNKNOWN and facts.hold_most(gaps, migrates):
        advice = page_advice(case, gaps.next[migrates])
    if cause in _NOT_KNOWN and awaited.begins_by_a_clock(gaps):
        does = "frames keep" if advice == words.RENDERING.advice else "work keeps"
        return f", its {does} a rate", inferred, words.PACED
    if cause in _NOT_KNOWN and (pages or facts.hold_most(gaps, migrates)):
        where = "while pages come to the host" if pages else "before pages migrate"
        return f", {Cause.NOTHING.label} {where}", inferred, advice
    if cause is Cause.MODULE:
        return f", {words.BEFORE_CODE}", inferred, advice
    if cause is Cause.HOST:
        return _host(case, gaps, lost, inside, advice)
    if cause is Cause.OFF_CPU and facts.is_ready(case, gaps, lost):
        seen = Off.RUNNABLE in case.work.scheduling.off_by_why(thread)
        return ", waits for a CPU", sure if seen else inferred, words.NO_CPU
    if cause is Cause.OFF_CPU and len(case.report.osrt):
        advice = words.NO_CALL
    queued = cause in words.QUEUED
    polls = cause is Cause.API and words.POLLS.match(what) is not None
    blocks = cause in (Cause.SYNC, Cause.COPY)
    if (queued or polls or blocks) and (others := facts.waits_for(case, gaps, lost)):
        turns = int(case.idle_time.by_turns(int(gaps.device[0]), others))
        busy = [case.idle_time.busy_ns(one) for one in (int(gaps.device[0]), *others)]
        if not turns and 2 * (max(busy) - busy[0]) < intervals.total(*lost):
            turns = words.ALIKE
        whom = "GPUs by turns" if len(others) > 1 else case.device_labels(others)
        waiter = "its stream" if queued else call
        return f", {waiter} waits for {whom}", inferred, words.SPREAD[turns]
    if cause is Cause.STREAM and facts.after_host_functions(case, gaps):
        return ", its stream waits for a host function", inferred, words.HOST_FUNCTION
    if cause is Cause.LAUNCH_LATENCY and facts.are_held_up(case, gaps):
        return f", {words.QUEUED[Cause.STREAM]}", inferred, words.ON_DEVICE.advice
    if queued:
        return f", {words.QUEUED[cause]}", inferred, advice
    whom, then = facts.for_others(case, cause, what, gaps, lost)
    if whom:
        return f", waits for {whom}: {call}", inferred, then
    if cause is Cause.SLEEP and awaited.keeps_a_rate(case, cause, thread, gaps, lost):
        return f", sleeps to keep a rate: {call}", inferred, words.PACED
    if cause in (Cause.IO, Cause.WAIT) and awaited.is_answered(case, thread, lost):
        return f", waits for input: {call}", inferred, words.INPUT
    child = cause is Cause.WAIT and what.startswith("wait")
    if cause is Cause.IO and words.MAY_BE_PIPE.match(what):
        advice = words.PIPE_OR_FILE
    awaits = cause is Cause.WAIT and words.WAITS.match(what) is not None
    looks = cause is Cause.SLEEP and facts.looks_again(case, gaps, lost)
    waits = looks or (cause in FOR_THREADS and cause is not Cause.SLEEP)
    if waits and (other := awaited.workers(case, thread, lost)):
        return f", {cause.label}: while {other}", inferred, words.LATE_THREAD
    if looks:
        return f", sleeps until something comes: {call}", inferred, words.LOOKS
    woken = cause is Cause.WAIT and not (awaits or child)
    waker = awaited.waker(case, thread, lost) if woken else ("",) * 4
    ticks = cause in (Cause.WAIT, Cause.OSRT) and words.PACED not in waker
    if ticks and awaited.keeps_a_rate(case, cause, thread, gaps, lost):
        return f", waits for the next tick: {call}", inferred, words.PACED
    if awaits and awaited.is_fed(case, thread, lost):
        return f", waits for input: {call}", inferred, words.INPUT
    if any(waker):
        *names, whom, advice = waker
        other, its = (brief(name, _PLACE_CELLS) for name in names)
        if whom:
            return f", waits for {whom}: {its} of {other}", inferred, advice
        told = f"while {other} is in {its}" if its else f"until {other} wakes it"
        return f", {cause.label}: {told}", inferred, advice
    if woken and _has_no_work(case, gaps, lost):
        return f", waits for work: {call}", inferred, words.GIVEN
    advice = words.SYNC.advice if polls else advice
    if cause is Cause.SYNC and facts.hold_most(gaps, gaps.idle >= LATE_NS):
        advice = words.RETURNS_LATE[case.report.can(Capability.SCHED)]
        return f": {call} returns late, why is not recorded", inferred, advice
    if cause is Cause.SYNC and await_results(case, gaps):
        advice = words.READS
    if cause is Cause.SYNC and messages_next(case, gaps):
        advice = words.FOR_MPI
    if cause is Cause.API and "MemPrefetch" in what:
        advice = page_advice(case, gaps.next)
    if cause is Cause.API and what.startswith(words.LAUNCHES) and not facts.are_long(case, gaps):
        why, advice = words.BEFORE_LAUNCH[facts.launch_own_work(case, gaps, lost)]
        return f": {call} {why}", sure, advice
    if cause is Cause.API and what.startswith(words.LAUNCHES):
        off = case.work.scheduling.thread(thread).off
        away = 2 * intervals.overlap_length(off, lost) > intervals.total(*lost)
        advice = words.HELD_LAUNCH["GraphLaunch" in what]
        why = f"itself took it, {'off the CPU' if away else 'why is not recorded'}"
        return f": {call} {why}", inferred, advice
    if cause is Cause.API:
        advice = facts.kept(case, what) or (advice if what else words.CALLS)
    advice = words.AWAITED if awaits else words.CHILD if child else advice
    if cause is Cause.NOTHING:
        at = begun(case, gaps)
        tells = f"; else {Capability.SCHED.option} tells"
        tells *= not case.report.can(Capability.SCHED)
        told = f"{at.told}, {cause.label}{inside}"
        return told, inferred, at.advice + tells if at.advice else advice
    if cause is Cause.LAUNCH_LATENCY and (at := begun(case, gaps)).waits:
        advice = words.EMPTIED.format(at.call)
    elif cause is Cause.LAUNCH_LATENCY and "GraphLaunch" in what:
        advice = words.NEXT_GRAPH
    told, most = words.TOLD.get(cause, (f", {cause.label}", "most in "))
    if what and what != "Unknown":
        told += f": {most * several}{call}"
    return told + inside, inferred if awaits or cause not in SHARES else sure, advice


def _has_no_work(case: Case, gaps: Gaps, lost: Intervals) -> bool:
    """Whether nobody in a program works, not just once: who trains, or is in a step, has work."""
    inside = case.has_named_steps and facts.hold_most(gaps, gaps.range >= 0)
    if inside or awaited.trains(case) or facts.has_one_long(gaps):
        return False
    return is_alone(case, facts.thread_of(case, gaps), lost)


def _host(
    case: Case, gaps: Gaps, lost: Intervals, inside: str, advice: str
) -> tuple[str, Confidence, str]:
    """What the thread did on its CPU: the function that samples hit, else the range."""
    thread = facts.thread_of(case, gaps)
    seen = sampled(case.report, thread, *lost)
    measured = case.work.witness(thread) is Witness.MEASURED
    confidence = Confidence.MEASURED if measured else Confidence.INFERRED
    after, pages = "", advice in words.PAGES
    if not pages and facts.is_rare(case, gaps):
        advice = words.PAUSES
        inside = inside or _RARELY
    elif not pages and (at := begun(case, gaps)).advice:
        after, ahead = at.told, words.EMPTIED.format(at.call) + words.MOVED
        advice = ahead if at.waits else at.advice
    if seen is None:
        return f"{after}, {Cause.HOST.label}{inside}", confidence, advice
    after *= seen.doing in (Doing.WORKS, Doing.COPIES)
    return f"{after}, {_seen(seen)}", confidence, words.BY_DOING.get(seen.doing, advice)


def _seen(seen: Sampled) -> str:
    share = f" ({units.format_share(seen.share)} of samples)"
    name = brief(seen.name, _NAME_CELLS)
    if seen.doing is Doing.WORKS:
        return f"host compute: {name}{share}" if name else "host compute"
    return f"host {seen.doing}{': ' + name if name else ''}{share}"


_NAME_CELLS: Final = 22
_RARELY: Final = " in few steps"
_UNTOLD: Final = ", why is not recorded"
_PLACE_CELLS: Final = 16
"""Cells of names in findings, which are one line."""
