"""All rules at once, what they found ranked by the time it could save, and what counters say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.analysis.diagnostics import unanswered
from nsys_tui.analysis.rules import (  # noqa: F401  importing a family registers its rules
    copies,
    copy_rates,
    gpu,
    gpu_work,
    host,
    host_only,
    idle,
    imbalance,
    migrations,
    movement,
    nsys,
    outside_work,
    pace,
    register,
    report_quality,
    small_copies,
    small_work,
    tried,
    utilisation,
    warm_up,
)
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.finding import Confidence, Finding, Severity
from nsys_tui.analysis.rules.gpu import BY_TURNS
from nsys_tui.analysis.rules.held import without_held
from nsys_tui.analysis.rules.idle_causes import LAUNCHES
from nsys_tui.analysis.rules.imbalance import MORE_WORK, work_together
from nsys_tui.analysis.rules.late_ranks import without_others
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.window import Scope
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.units import format_percent, format_share

RULES: Final = dict(sorted(register.RULES.items(), key=lambda item: not item[1].of_nsys))
"""All rules by name, those of nsys first."""


def find(report: Report, scope: Scope | None = None) -> list[Finding]:
    """Runs every rule with its defaults.

    Args:
        report: the report; all event sets are loaded.
        scope: window, devices, processes and streams.

    Returns:
        Findings, the gravest first; of equal severity the one that could save most.
    """
    return find_in(Case(report, scope))


def find_in(case: Case, progress: Progress | None = None) -> list[Finding]:
    """The same on a case of which analyses may be there already, telling after each rule."""
    findings: list[Finding] = []
    rules = [rule for rule in RULES.values() if rule.finds]
    for done, rule in enumerate(rules):
        findings += rule.run(case).findings
        if progress is not None:
            progress(rule.name, done + 1, len(rules))
    return ranked(case, findings)


def ranked(case: Case, findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first, then by the time that they could save, then by rule.

    Args:
        case: what was looked at; its counters and diagnostics support or contradict findings.
        findings: of rules.
    """
    known = without_others(case, without_held(case, witnessed(case, findings)))
    order = sorted(known, key=lambda f: (-f.severity.rank, -f.order_ns, f.rule, f.title))
    return linked(order, together=work_together(case))


def linked(findings: Sequence[Finding], *, together: bool = True) -> list[Finding]:
    """The same, each marked with the finding above that could give most of its time back, too.

    Args:
        findings: the first of several of one time is their story.
        together: whether GPUs wait for each other; else each loses time of its own.
    """
    kept: list[Finding] = []
    later: list[Finding] = []
    beside: list[tuple[Finding, Finding]] = []
    for one in findings:
        leader = _leader(one, findings)
        if leader and (one.rule in _BESIDE or one.late >= 0):
            beside.append((leader, _part_of(leader, one)))
        elif (
            whole := leader
            or _covering(one, [k for k in kept if together or k.device == one.device])
            or _copies(one, kept)
        ):
            later.append(replace(_part_of(whole, one), severity=Severity.LOW))
        else:
            kept.append(one)
    for leader, one in beside:
        kept.insert(kept.index(leader) + 1 if leader in kept else len(kept), one)
    low = next((n for n, one in enumerate(kept) if one.severity is Severity.LOW), 0) or len(kept)
    return [*kept[:low], *later, *kept[low:]]


def _part_of(whole: Finding, one: Finding) -> Finding:
    """A finding of time that another one gives back, too: no more than that, where it has a price.

    A GPU comes late, and steps are slow, for several causes together. The wait for another GPU has
    no price where nobody knows what that one could give back.
    """
    one = replace(one, same_as=whole.subject)
    if not whole.saved_ns:
        return _unpriced(one) if one.rule in _BESIDE or one.late >= 0 else one
    several = one.rule == "slow_steps" or (one.late >= 0 and whole.rule == "gpu_idle")
    return one if several else replace(one, saved_ns=min(one.saved_ns, whole.saved_ns))


_NEARLY_ALL: Final = 0.9
_FAR_MORE: Final = 3
"""So many times as much is lost by turns as by one GPU that has more to do in all."""
_OF_PROFILER: Final = f"idle, {Cause.PROFILER.label}"
_LATE: Final = ("gpu_imbalance", "gpu_idle")
_MAKE_LATE: Final = ("gpu_idle", "slow_copies", "exposed_copies", "warm_up")
_OF_ONE_GPU: Final = ("gpu_imbalance", "slowing_kernels")
_BESIDE: Final = ("exposed_communication", "slowing_kernels")
"""Rules whose findings stay beside the one that tells why, however grave."""
_LEADERS: Final = {
    "dominant_kernel": ("shared_gpus",),
    "exposed_communication": (*_LATE, "slow_copies"),
    "exposed_copies": ("slow_copies", "memsets"),
    "gpu_idle": ("frequent_allocation", "blocking_launches", *_LATE),
    "gpu_imbalance": ("exposed_communication",),
    "slowing_kernels": ("gpu_imbalance",),
    "small_copies": ("gpu_idle",),
    "small_grids": ("serial_streams", "shared_gpus"),
    "slow_steps": (
        *("gpu_idle", "sync_by_range", "frequent_allocation", "module_loading"),
        *_OF_ONE_GPU,
    ),
    "launch_bound": ("small_copies", "tiny_kernels"),
    "sync_by_range": ("small_copies", *_LATE),
    "tiny_kernels": ("blocking_launches",),
}
"""Rules that tell why the time of another one is lost, and so stand before it."""


def _leader(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The finding that explains at least half of another one, the first of them that do together.

    None for none.
    """
    rules = _LEADERS.get(finding.rule, ())
    asked = [one for one in findings if one.rule in rules]
    if (finding.subject == BY_TURNS or finding.late >= 0) and (first := _late(finding, findings)):
        return first
    if finding.rule == "slow_steps" and finding.lost is not None:
        asked = [one for one in asked if _idle_together(one, finding)]
        shared = sum(_idle_together(one, finding) for one in asked)
        return asked[0] if 2 * shared >= intervals.total(*finding.lost) and asked else None
    return next((one for one in asked if _explains(one, finding)), None)


def _late(exposed: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The first of those that make a GPU, or several by turns, come late, if half is theirs."""
    late = [
        one
        for one in findings
        if one.rule in _MAKE_LATE and one.saved_ns and AND_OTHERS not in one.title
        if exposed.late in (-1, one.device)
        and not (one.rule == "exposed_copies" and _leader(one, findings))
    ]
    enough = len({one.device for one in late}) > 1 if exposed.late < 0 else len(late) > 1
    explained = enough and 2 * sum(one.saved_ns for one in late) >= exposed.stake_ns
    return late[0] if explained else None


def _idle_together(one: Finding, other: Finding, *, after: bool = False) -> int:
    """How long a GPU is idle for a finding of it that would be no more without the first one.

    Args:
        one: the first one.
        other: the finding.
        after: what would be no more without it counts, too, such as what the host does after it.
    """
    lost = other.gone if after else other.lost
    alike = one.device == other.device or AND_OTHERS in one.title
    if not alike or one.gone is None or lost is None:
        return 0
    return intervals.overlap_length(one.gone, lost)


def _explains(leader: Finding, finding: Finding) -> bool:
    if finding.rule == "gpu_imbalance":
        return leader.subject == BY_TURNS and leader.saved_ns >= _FAR_MORE * finding.saved_ns
    if finding.rule == "slow_steps":  # Its GPU, if any, alone works longer in these steps.
        return leader.rule in _OF_ONE_GPU and leader.device == finding.device
    if finding.rule == "slowing_kernels":
        alone = leader.device == finding.device and AND_OTHERS not in finding.title
        return alone and 2 * leader.saved_ns >= finding.saved_ns
    if finding.rule == "exposed_communication" or (finding.late >= 0 and leader.rule in _LATE):
        one_is_late = leader.rule != "gpu_imbalance"
        return _waits_for(finding, leader) and (not one_is_late or leader.device == finding.late)
    if finding.rule == "small_copies":  # What the host does after them tells more.
        return _idle_together(leader, finding, after=True) >= _NEARLY_ALL * finding.saved_ns
    if leader.rule in _LATE or leader.device != finding.device or leader.severity is Severity.LOW:
        return False
    if leader.lost is None or finding.lost is None:
        return 2 * leader.weight_ns >= finding.weight_ns
    return 2 * _idle_together(leader, finding) >= intervals.total(*finding.lost)


_PARTS: Final = frozenset(("memsets", "repeated_uploads", "slow_copies"))
"""Rules that tell of a part of the copies that nothing hides, and why it is there."""


def _copies(finding: Finding, kept: Sequence[Finding]) -> Finding | None:
    """The finding above of whose copies this one tells a part, None for none."""
    if finding.rule not in _PARTS:
        return None
    above = (one for one in kept if one.rule == "exposed_copies" and one.device == finding.device)
    return next(above, None)


def _waits_for(exposed: Finding, slow: Finding) -> bool:
    """Whether communication that nothing hides is mostly the wait for a slower GPU.

    Where it waits for one GPU, transfers are no part of what that one explains.
    """
    whole = slow.rule == "gpu_imbalance" or slow.subject.startswith(_OF_PROFILER)
    cost = slow.stake_ns if whole else slow.saved_ns + slow.held_ns
    waited = exposed.saved_ns + exposed.held_ns if exposed.late >= 0 else exposed.stake_ns
    return exposed.device != slow.device and 2 * cost >= waited


def _covering(finding: Finding, above: Sequence[Finding]) -> Finding | None:
    """The finding above that has more than half of this one's time, None for none.

    Or nearly all that would go with it: what both could give back, each in its way.
    """
    if finding.lost is None or finding.gone is None or not len(finding.lost[0]):
        return None
    lost, gone = intervals.total(*finding.lost), intervals.total(*finding.gone)
    for other in above:
        if other.rule == "slow_steps" or other.gone is None or other.same_as:
            continue
        if 2 * intervals.overlap_length(finding.lost, other.gone) > lost:
            return other
        if finding.gone is finding.lost:
            continue
        if intervals.overlap_length(finding.gone, other.gone) >= _NEARLY_ALL * gone:
            return other
    return None


def gravest(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among findings, None for none."""
    return max((f.severity for f in findings), key=lambda s: s.rank, default=None)


SMS, DRAM, TENSOR = "SMs active", "DRAM", "tensor cores"
_COUNTERS: Final = {
    SMS: re.compile(r"(?i)^SMs? active"),
    TENSOR: re.compile(r"(?i)^tensor.*active"),
    DRAM: re.compile(r"(?i)^DRAM"),
    "PCIe": re.compile(r"(?i)^PCIe"),
    "NVLink": re.compile(r"(?i)^NVLink"),
}
"""Counters in per cent by what a finding calls them; of reads and writes the sum counts."""
_CLOCK: Final = re.compile(r"(?i)^(GPC|SM|GR) clock")
_BUSY: Final = 20.0
"""Per cent of SMs active from which a GPU was not idle."""
_BOUND: Final = 60.0
"""Per cent of the DRAM's bandwidth from which a kernel looks bound by it."""
_RESTS: Final = 100_000
"""Idle time from which a GPU's clock may fall; shorter gaps between kernels keep it, ns."""
_SLOWER: Final = 0.03
"""Part by which a clock has to be lower to explain a slow GPU."""


def witnessed(case: Case, findings: Iterable[Finding]) -> list[Finding]:
    """The findings with what their GPU's counters say, less sure where times or events lack."""
    if missing := case.clock_trouble or case.loss:
        findings = [_unsure(case, one, missing) for one in findings]
    if not case.report.can(Capability.GPU_METRICS):
        return [*findings]
    return [_witnessed(case, one) for one in findings]


def _unsure(case: Case, finding: Finding, missing: str) -> Finding:
    """Idle time of a report that lacks events of GPUs, or whose clocks do not fit."""
    lost = finding.lost
    if lost is None:
        return finding
    if case.clock_trouble:
        return replace(finding, confidence=Confidence.GUESS, doubt=missing)
    sure = finding.confidence
    finding = replace(
        finding,
        confidence=Confidence.INFERRED if sure is Confidence.MEASURED else sure,
        doubt=missing,
    )
    if finding.device is None or not _lacks_work(case, finding.device, lost):
        return finding
    return replace(_unpriced(finding), confidence=Confidence.GUESS)


def _unpriced(finding: Finding) -> Finding:
    """The same, of which nobody can tell what it could give back."""
    rated = min(finding.severity, Severity.MEDIUM, key=lambda severity: severity.rank)
    return replace(finding, saved_ns=0, stake_ns=finding.weight_ns, severity=rated)


def _lacks_work(case: Case, device: int, lost: Intervals) -> bool:
    """Whether a device idled mostly in gaps since whose last one work was asked for that lacks."""
    api, calls = case.report.api, case.report.calls
    named = np.array([name.startswith(LAUNCHES) for name in api.names], bool)
    asked = named[api.name] & api.real
    asked[calls[calls >= 0]] = False
    asked[unanswered(case.report, OpKind.MEMCPY)] = True
    times = np.sort(api.start[asked])
    whole = np.array([case.base], np.int64).T
    starts, ends = case.idle_time.idle_part(device, intervals.union(*whole))
    since = np.append(-FARTHEST, ends[:-1])
    holes = np.searchsorted(times, ends) > np.searchsorted(times, since)
    missing = intervals.overlap_length((starts[holes], ends[holes]), lost)
    return 2 * missing > intervals.total(*lost)


def _witnessed(case: Case, finding: Finding) -> Finding:
    spans = finding.lost
    if spans is None and finding.window is not None:
        spans = (np.array(finding.window[:1], np.int64), np.array(finding.window[1:], np.int64))
    if finding.device is None or spans is None or not len(spans[0]):
        return finding
    if finding.rule in _OF_ONE_GPU and not finding.subject.endswith(MORE_WORK):
        return _clocked(case, finding, finding.device)
    witness = means(case.report, finding.device, spans)
    if not witness:
        return finding
    told = ", ".join(f"{name} {format_percent(value)}" for name, value in witness.items())
    finding = replace(finding, metrics=told)
    if finding.lost is not None and witness.get(SMS, 0.0) >= _BUSY:
        return replace(
            finding,
            confidence=Confidence.GUESS,
            severity=Severity.LOW,
            doubt=f"GPU metrics contradict it ({told}): work that was not traced ran meanwhile",
        )
    tensor = witness.get(TENSOR, 0.0) >= _BOUND
    if finding.rule == "low_occupancy" and tensor:
        return replace(finding, advice=f"no fault here: the tensor cores are busy ({told})")
    if finding.rule == "dominant_kernel" and tensor:
        return replace(finding, advice=f"it keeps the tensor cores busy ({told}): let it do less")
    if finding.rule == "dominant_kernel" and witness.get(SMS, _BUSY) < _BUSY:
        return replace(finding, advice=f"most SMs have nothing to do ({told}): use more blocks")
    if finding.rule == "dominant_kernel" and witness.get(DRAM, 0.0) >= _BOUND:
        return replace(
            finding,
            advice=f"it looks bound by memory ({told}): move fewer bytes, fuse, reuse caches",
        )
    return finding


def means(report: Report, device: int, spans: Intervals) -> dict[str, float]:
    """Mean of each kind of counter of a GPU over some time, per cent.

    Args:
        report: the report.
        device: the GPU.
        spans: disjoint intervals in order.
    """
    mean = {}
    for name, pattern in _COUNTERS.items():
        values = [
            float(sampled.mean())
            for code in _codes(report, pattern)
            if len(sampled := _samples(report, device, code, spans))
        ]
        if values:
            mean[name] = sum(values)
    return mean


def _codes(report: Report, pattern: re.Pattern[str]) -> list[int]:
    names = report.gpu_metrics.metrics
    return [code for code, name in enumerate(names) if pattern.search(name)]


def _samples(report: Report, device: int, code: int, spans: Intervals) -> Int64:
    """Values of one counter of a GPU in some time: whole up to the samples before and after."""
    metrics, number = report.gpu_metrics, report.devices[device].number
    mine = np.flatnonzero((metrics.metric == code) & (metrics.gpu == number))
    time = metrics.start[mine]
    apart = int(np.median(np.diff(time))) if len(time) > 1 else 0
    at = np.searchsorted(spans[0], time - apart, side="right") - 1
    inside = (at >= 0) & (time + apart <= spans[1][np.maximum(at, 0)])
    values: Int64 = metrics.value[mine[inside]]
    return values


def _clocked(case: Case, finding: Finding, device: int) -> Finding:
    """Whether a slow GPU's clock was lower than the others', or than at the beginning."""
    if finding.rule == "slowing_kernels" and finding.window:
        begin, until = case.base[0], (2 * case.base[0] + case.base[1]) // 3
        spans, whose = {-1: (begin, until), device: finding.window}, "that at first"
    else:
        model = case.report.devices[device].name
        alike = (one for one in case.splits if one.device.name == model)
        spans, whose = {split.index: case.base for split in alike}, "the others'"
    clocks = {
        one: clock
        for one, span in spans.items()
        if (clock := _clock(case, device if one < 0 else one, span))
    }
    others = [clock for other, clock in clocks.items() if other != device]
    if device not in clocks or not others:
        return finding
    own, usual = clocks[device], float(np.median(others))
    told = f"clock {format_share(own, usual)} of {whose}"
    finding = replace(finding, metrics=told)
    if own > usual * (1 - _SLOWER):
        doubt = f"GPU metrics do not explain it ({told}): it may have more work"
        return replace(finding, doubt=doubt)
    return replace(
        finding,
        title=f"{finding.title}, {told}",
        advice="see why its clock is lower: power limit, temperature, other programs",
        confidence=Confidence.MEASURED,
    )


def _clock(case: Case, device: int, span: tuple[int, int]) -> float:
    """Median clock of a GPU while it worked, in the counter's own unit; 0 where not sampled."""
    whole = (np.array(span[:1], np.int64), np.array(span[1:], np.int64))
    starts, ends = case.idle_time.idle_part(device, whole)
    apart = ends - starts >= _RESTS
    busy = intervals.subtract(whole, (starts[apart], ends[apart]))
    values = [_samples(case.report, device, code, busy) for code in _codes(case.report, _CLOCK)]
    return next((float(np.median(one)) for one in values if len(one)), 0.0)
