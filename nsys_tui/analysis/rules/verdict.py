"""The verdict: how busy GPUs were, what is worth fixing, and what their time is bound by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.breakdown import DeviceSplit
from nsys_tui.analysis.diagnostics import (
    asked_in_vain,
    failed_calls,
    other_generation,
    why_no_work,
)
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.copy_advice import LITTLE_HIDES
from nsys_tui.analysis.rules.finding import WORTH_FIXING, Confidence, Finding, Severity, decides
from nsys_tui.analysis.rules.gpu import NOT_TO_HIDE
from nsys_tui.analysis.rules.idle_causes import BY_DOING, COMPILES, MEANT, OF_PROFILER, PAGES
from nsys_tui.analysis.rules.one_shot import worked_ns
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.time_sums import idle_by_cause, rendering_ns
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.thread_states import Doing
from nsys_tui.analysis.window import Scope
from nsys_tui.model import intervals
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category
from nsys_tui.model.report import Report
from nsys_tui.model.table import column, data
from nsys_tui.units import format_duration, format_share

COMPUTE: Final = "compute"
RENDERING: Final = "rendering"
GRAPHS: Final = "CUDA graphs"
COMMUNICATION: Final = "communication"
COPIES: Final = "memory copies"
HOST: Final = "launch and host"
REQUESTS: Final = "waits for requests or a tick"
RANKS: Final = "waits for other ranks (MPI)"
DEVICE: Final = "waits on the device"
SHORT: Final = "gaps too short to look at"
UNKNOWN: Final = "idle for unknown reasons"
EDGES: Final = "before or after a GPU's work"
ONCE: Final = "what came once"
_SEEN: Final = 0.0005
"""Share from which a class is told: less is 0.0%."""
_WAITS: Final = (Cause.PEER, Cause.PROCESS, Cause.EVENT, Cause.STREAM)


@dataclass(frozen=True)
class Part:
    """A class of time over all GPUs."""

    name: str
    ns: int
    share: float
    """Of the time of all GPUs, 0 to 1."""


PART: Final = (column("name"), data("time_ns", lambda part, _: part.ns), column("share"))
"""Keys of parts in JSON."""


def parts(case: Case, findings: Sequence[Finding] = ()) -> list[Part]:
    """The time of all GPUs by class: they add up to all of it; classes without time are left out.

    Communication and copies, with what hosts stage of them, count where nothing hides them. Idle
    time goes by the cause of its gap; gaps below 10 us, and what is set up once, are classes.

    Args:
        case: the report with the time looked at.
        findings: tell what part of the host's time is no fault.
    """
    whole = len(case.splits) * case.base_ns
    if not whole:
        return []
    rendering = rendering_ns(case)
    busy = {
        COMPUTE: sum(split.compute_ns for split in case.splits) - rendering,
        RENDERING: rendering,
        COMMUNICATION: sum(split.exposed_comm_ns for split in case.splits),
        COPIES: sum(split.exposed_memory_ns for split in case.splits),
    }
    idle = sum(split.idle_ns for split in case.splits)
    # What graph launches alone fill; where copies run beside them, both would count.
    busy[GRAPHS] = max(0, whole - idle - sum(busy.values()))
    by_cause, once = idle_by_cause(case), len(case.splits) * case.set_up_ns
    sent = sum(
        intervals.overlap_length(case.runs(device, Category.COMM), case.set_up)
        for device in case.by_device
    )
    busy[COMMUNICATION] -= sent
    busy[COPIES] -= once - case.set_up_idle_ns - sent
    polled = sum(one.stake_ns for one in findings if one.advice == BY_DOING[Doing.POLLS])
    asked = sum(one.stake_ns for one in findings if one.advice in MEANT)
    time = busy | {
        COPIES: busy[COPIES] + by_cause[-1],
        HOST: sum(by_cause[cause] for cause in SHARES[: Cause.NOTHING]),
        DEVICE: sum(by_cause[cause] for cause in _WAITS),
        SHORT: max(0, idle - case.set_up_idle_ns - sum(by_cause)),
        EDGES: by_cause[-2],
        ONCE: once,
    }
    time[UNKNOWN] = max(0, whole - sum(time.values()))
    for waits, ns in ((RANKS, by_cause[Cause.MPI] + polled), (REQUESTS, asked)):
        seen = min(time[HOST], ns)
        unseen = min(time[UNKNOWN], ns - seen)
        time |= {waits: seen + unseen, HOST: time[HOST] - seen, UNKNOWN: time[UNKNOWN] - unseen}
    listed = [Part(name, ns, ns / whole) for name, ns in time.items() if ns]
    return sorted(listed, key=lambda part: -part.ns)


def bound_line(shares: Sequence[Part]) -> str:
    """The class with most time and its runner-up, empty where there is none.

    What came once is no part of a longer run: the verdict tells of it, and shares are without it.
    """
    lasting = [part for part in shares if part.name != ONCE]
    whole = sum(part.ns for part in lasting)
    seen = [part for part in lasting[:2] if part.ns >= _SEEN * whole] or lasting[:1]
    return ", then ".join(f"{part.name} ({format_share(part.ns, whole)})" for part in seen)


def verdict_facts(verdict: str, shares: Sequence[Part]) -> list[tuple[str, str]]:
    """What stands first in every text: the verdict and what the time is bound by, where known."""
    facts = [("verdict", verdict), ("bound by", bound_line(shares))]
    return [fact for fact in facts if fact[1]]


COVERED: Final = 0.5
"""Part of the session under which it is said that GPU work covers only so much of it."""
_SAID: Final = ("outside_work", "shared_gpus", "unused_gpus")
"""Rules of which the verdict says what they found, where nobody can tell what it costs."""
MOST: Final = 2
"""Findings named."""
_MORE: Final = {"tiny_kernels": ", more if fused", "exposed_copies": ", more if less is copied"}
"""By rule, what gives back more than the time that is priced; of copies where little hides them."""
_BY_GUESS: Final = {Confidence.GUESS: ", a guess"}


def verdict(case: Case, findings: Sequence[Finding]) -> str:
    """Busy share, then what could give back most, or that nothing does, or why it cannot be said.

    Source: definitions, "Verdict line". What findings could give back may overlap: no sum is said.

    Args:
        case: the report with the time looked at.
        findings: all that the rules found there.
    """
    if not case.works:
        return _of_host(case, findings)
    failed = failed_calls(case.report)
    doubts = [doubt for doubt in (failed, case.loss, case.clock_trouble, case.coverage) if doubt]
    said = [one.subject for one in findings if one.rule in _SAID and not one.saved_ns]
    parts = [_busy(case, case.session_ns) + _without_set_up(case, findings), *doubts]
    if case.is_start:
        parts.append(f"The other {format_duration(case.judged_ns)} are too little to judge")
    if case.is_one_shot or case.is_start:
        return ". ".join([*parts, *said])
    ops = case.report.operations
    if all((ops.category[rows] == Category.MEMORY).all() for rows in case.by_device.values()):
        parts.append("No kernel ran, only copies")
    parts += said
    decisive = _decisive(case, findings)
    most, whole = decisive[0] if decisive else None, "the rest" if case.set_up_ns else "the time"
    if most is not None:
        shares = [format_share(one.stake_ns, one.of_ns) for one in decisive]
        shares[0] = f"Most of {whole} ({shares[0]})" * _has_most(most) or f"{shares[0]} of {whole}"
        told = zip(shares, decisive, strict=True)
        parts.append(", ".join(f"{share} is {_subject(case, one)}" for share, one in told))
    parts.append(_worth_fixing(case, findings, most))
    if other := other_generation(case.report):
        parts.append(other.capitalize())
    return ". ".join(parts)


def first_words(case: Case) -> str:
    """The verdict while no rule has looked yet: GPU work alone tells it; empty without any."""
    if not case.works:
        return ""
    busy = _busy(case, case.report.metadata.session_duration_ns or case.base_ns)
    return busy if case.is_one_shot else f"{busy}. What is worth fixing is not known yet"


def _busy(case: Case, session_ns: int) -> str:
    """How busy the GPUs were, or that this is too little to judge."""
    if case.is_one_shot:
        worked = format_duration(sum(map(worked_ns, case.splits)))
        return f"One-shot: {worked} of GPU work is too little to judge"
    busy = sum(split.busy_ns for split in case.splits)
    name = "GPU" if len(case.splits) == 1 else f"{len(case.splits)} GPUs"
    listed = sum(gpu.sm_count != 0 for gpu in case.report.metadata.gpus)  # others run no CUDA
    if len(case.splits) < listed and case.scope.devices is None:
        name = f"{len(case.splits)} of {listed} GPUs"
    told = f"{name} {format_share(busy, len(case.splits) * case.base_ns)} busy"
    if case.base_ns < COVERED * session_ns:
        covered, session = format_duration(case.base_ns), format_duration(session_ns)
        told += f" in the {covered} of {session} with GPU work"
    return told


def _without_set_up(case: Case, findings: Sequence[Finding]) -> str:
    """How busy they were without it, and what has most of it; empty where it is little."""
    if not case.set_up_ns:
        return ""
    once = [one for one in findings if one.is_once]
    most = max(once, key=lambda one: one.weight_ns).subject if once else ONCE
    whole = len(case.splits) * case.judged_ns
    idle = sum(split.idle_ns for split in case.splits) - case.set_up_idle_ns
    return (
        f", {format_share(whole - idle, whole)} without {format_duration(case.set_up_ns)}"
        f" that came once (most: {most.removesuffix(' (once)')})"
    )


def _of_host(case: Case, findings: Sequence[Finding]) -> str:
    """Why there is no GPU work, and where the host's time went."""
    lacks = case.report.lacks(Capability.KERNELS)
    why = "no GPU work here"
    if lacks:
        why = (failed_calls(case.report) or asked_in_vain(case.report) or lacks) + why_no_work(
            case.report
        )
    where = [one.subject for one in findings if one.rule == "host_only"][:MOST]
    return f"Host: {', '.join(where)}. GPU: {why}" if where else f"Cannot say: {why}"


def judged(
    report: Report, scope: Scope, splits: Sequence[DeviceSplit]
) -> tuple[str, Sequence[Part]]:
    """The verdict, and what the run is bound by, of a report whose rules have not been run yet.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        splits: where the time of each device went.
    """
    case = Case(report, scope, splits=splits)
    findings = find_in(case)
    return verdict(case, findings), parts(case, findings)


def _decisive(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """What has most of the time, whatever it could give back; else the kernels that lead."""
    busy = sum(split.compute_ns for split in case.splits) / len(case.splits) > case.judged_ns / 2
    kernels = [one for one in findings[: None if busy else 1] if one.rule == "dominant_kernel"]
    leads = [one for one in kernels if not one.saved_ns and one.severity is not Severity.LOW]
    leads.sort(key=lambda one: -one.stake_ns)
    lasting = [one for one in findings if not (one.is_once and case.set_up_ns)]
    most = [*filter(_has_most, lasting)][:1]
    return leads if leads[:1] == most or not most else most


def _has_most(one: Finding) -> bool:
    """Whether a finding has most of the time, and does not only pass it while others work."""
    known = one.rule not in ("slow_steps", "shared_gpus") and not (one.same_as and one.late >= 0)
    return known and decides(one.stake_ns - one.held_ns, one.of_ns, one.confidence)


def _worth_fixing(case: Case, findings: Sequence[Finding], most: Finding | None) -> str:
    worth = [one for one in findings if one.saved_ns >= WORTH_FIXING * one.of_ns]
    # What has the time of another finding, and steps that are slow because of one, add nothing.
    worth = [one for one in worth if not one.same_as and not one.is_once]
    worth = [one for one in worth if one.rule != "slow_steps"] or worth
    first = next((one for one in worth if one.confidence is not Confidence.GUESS), None)
    worth.sort(key=lambda one: one is not first)
    if worth:
        named = "; ".join(
            f"{'that' if one is most else _subject(case, one)} (up to"
            f" {format_share(one.saved_ns, one.of_ns)}{_more(one)}"
            f"{_BY_GUESS.get(one.confidence, '')}"
            f"{_shared(case, one, worth[0])})"
            for one in worth[:MOST]
        )
        unpriced = most is not None and most.rule == "gpu_idle" and most not in worth
        none = "no other price above 1%" if unpriced else "nothing else above 1%"
        rest = f"{len(worth) - MOST} more above 1%" if worth[MOST:] else none
        said = filter(None, [_unpriced(case, findings, most)])
        where = " in the rest" if case.set_up_ns else ""
        return "; ".join([f"Worth fixing{where}: {named}", rest, *said])
    if unsaid := _unpriced(case, findings, most):
        return unsaid[0].upper() + unsaid[1:]
    dear = most is not None and most.advice not in MEANT
    dear |= any(one.rule in _SAID and one.stake_ns >= WORTH_FIXING * one.of_ns for one in findings)
    return f"Nothing {'else ' * dear}found that would give back 1%"


def _more(finding: Finding) -> str:
    hidden = finding.rule == "exposed_copies" and not finding.advice.endswith(LITTLE_HIDES)
    return "" if hidden else _MORE.get(finding.rule, "")


def _shared(case: Case, finding: Finding, first: Finding) -> str:
    """How much of what a finding could give back the first one could, too, empty for hardly any."""
    if finding is first:
        return ""
    most = min(finding.of_ns, case.most_of(finding, first))
    both = finding.saved_ns + first.saved_ns - most
    if (one := finding.gone) is not None and (other := first.gone) is not None:
        alike = AND_OTHERS in finding.title and AND_OTHERS in first.title
        overlap = intervals.overlap_length(one, other) * (alike or finding.device == first.device)
        both = max(both, overlap)
    share = format_share(min(both, finding.saved_ns), finding.of_ns)
    return f", {share} of it the same time" if both >= WORTH_FIXING * finding.of_ns else ""


def _subject(case: Case, finding: Finding) -> str:
    """What a finding is about, and on which of several GPUs, where it is about one."""
    subject = f"{finding.subject} {finding.phase.replace('only once', '(once)')}".strip()
    alone = finding.device is not None and AND_OTHERS not in finding.title
    if finding.device is None or not alone or len(case.splits) == 1 or "GPU" in finding.subject:
        return subject
    return f"{subject} on {case.device_labels([finding.device])}"


def _unpriced(case: Case, findings: Sequence[Finding], most: Finding | None) -> str:
    """What time nothing can be priced for, such as idle without a witness; empty for hardly any."""
    idle, whole = sum(split.idle_ns for split in case.splits), len(case.splits) * case.base_ns
    meant = sum(one.stake_ns for one in findings if one.advice in MEANT)
    if not case.report.can(Capability.API) and idle - meant >= WORTH_FIXING * whole:
        draws = 2 * rendering_ns(case) > whole - idle
        lack = "graphics calls are not tied to their work" if draws else f"no {Capability.API}"
        return f"why {format_share(idle, whole)} is idle cannot be said: {lack}"
    said: list[str] = []
    unknown: list[Finding] = []
    place = 0
    for one in findings:
        share, least = format_share(one.stake_ns, one.of_ns), WORTH_FIXING * one.of_ns
        if one.stake_ns < least:
            continue
        if one.advice == NOT_TO_HIDE:
            what = "it" if one is most else f"the {share} of {_subject(case, one)}"
            what = f"the rest of {what}" if one.saved_ns >= least else what
            said.append(f"only fewer bytes or a faster link shorten {what}")
        elif one.lost is None or one.saved_ns or one.held_ns:
            continue
        elif OF_PROFILER in one.subject:
            said.append(f"{share} is idle for the profiler alone")
        elif one is not most and one.advice in MEANT:
            said.append(f"{share} is idle {MEANT[one.advice]}")
        elif one is not most and (not one.subject.startswith("idle") or _is_known(one)):
            said.append(f"{share} is {one.subject}")
        elif one is not most and not one.same_as and one.advice.startswith((*PAGES, COMPILES)):
            said.append(f"{share} is {_where_idle(one)}")
        elif one is not most and not one.same_as:
            place = place if unknown else len(said)
            unknown.append(one)
    if unknown:
        said.insert(place, _why(unknown))
    return "; ".join(said[:MOST])


def _is_known(one: Finding) -> bool:
    """Whether it is told what idle time without a price is for, and no other finding has it."""
    return not (one.same_as or re.search("recorded|unknown", one.title))


def _where_idle(one: Finding) -> str:
    return one.subject.replace(f", {Cause.NOTHING.label}", "").partition(",")[0]


def _why(unknown: Sequence[Finding]) -> str:
    """How much idle time of one GPU has no recorded cause, and where most of it is."""
    most = max(unknown, key=lambda one: one.stake_ns)
    alike = [one for one in unknown if one.device == most.device or AND_OTHERS in one.title]
    share = format_share(sum(one.stake_ns for one in alike), most.of_ns)
    what = _where_idle(most)
    if len(alike) > 1:
        what = what.replace("idle ", "idle, most ") + "," * (what != "idle")
    return f"why {share} is {what} is not recorded"
