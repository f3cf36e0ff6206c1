"""All rules at once, and what they found ranked by the time it could save."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from nsys_tui.analysis.rules import (  # noqa: F401  importing a family registers its rules
    copies,
    copy_rates,
    dominant,
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
    utilisation,
    warm_up,
)
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.copy_advice import GATHER
from nsys_tui.analysis.rules.counters import unpriced, witnessed
from nsys_tui.analysis.rules.finding import WORTH_FIXING, Finding, Severity
from nsys_tui.analysis.rules.flushes import without_measured
from nsys_tui.analysis.rules.gpu import BY_TURNS
from nsys_tui.analysis.rules.held import without_held
from nsys_tui.analysis.rules.idle_causes import OF_PROFILER, PAGES
from nsys_tui.analysis.rules.imbalance import work_together
from nsys_tui.analysis.rules.late_ranks import sooner, without_others
from nsys_tui.analysis.window import Scope
from nsys_tui.model import intervals
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report

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
    findings = [sooner(case, one) for one in without_measured(case, witnessed(case, findings))]
    known = copies.with_calls(without_others(case, without_held(case, findings)))
    rated = sorted(_beside_host(case, known), key=_place)
    return linked(rated, together=work_together(case))


def _beside_host(case: Case, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Findings, none grave where a host is told of that takes most of the session without a GPU.

    So it is where all GPU work has less of the session than what is worth fixing.
    """
    told = any(one.rule == "outside_work" for one in findings)
    if not told or case.base_ns >= WORTH_FIXING * case.session_ns:
        return findings
    return [
        replace(one, severity=Severity.LOW, of_ns=case.session_ns)
        if one.weight_ns and one.rule != "failed_calls"
        else one
        for one in findings
    ]


def _place(one: Finding) -> tuple[bool, bool, int, bool, int, int, str, str]:
    """What is low comes last, before it what happens once, and what took long after what failed."""
    low, done = one.severity is Severity.LOW, one.rule != "failed_calls"
    level = low, one.is_once and not low, -one.severity.rank
    return *level, done, -one.order_ns, -one.weight_ns, one.rule, one.title


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
        if one.same_as:
            later.append(one)
        elif leader and (one.rule in _BESIDE or one.late >= 0):
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
        return unpriced(one) if one.rule in _BESIDE or one.late >= 0 else one
    several = one.rule == "slow_steps" or (one.late >= 0 and whole.rule == "gpu_idle")
    return one if several else replace(one, saved_ns=min(one.saved_ns, whole.saved_ns))


_NEARLY_ALL: Final = 0.9
_FAR_MORE: Final = 3
"""So many times as much is lost by turns as by one GPU that has more to do in all."""
_LATE: Final = ("gpu_imbalance", "gpu_idle")
_MAKE_LATE: Final = ("gpu_idle", "slow_copies", "exposed_copies", "warm_up")
_BESIDE: Final = ("exposed_communication",)
"""Rules whose findings stay beside the one that tells why, however grave."""
_LEADERS: Final = {
    "dominant_kernel": ("shared_gpus",),
    "exposed_communication": (*_LATE, "slow_copies"),
    "exposed_copies": ("slow_copies", "gpu_idle", "small_copies"),
    "gpu_idle": ("frequent_allocation", "blocking_launches", *_LATE),
    "gpu_imbalance": ("exposed_communication",),
    "small_copies": ("gpu_idle",),
    "small_grids": ("serial_streams", "shared_gpus"),
    "slow_steps": (
        *("gpu_idle", "sync_by_range", "frequent_allocation", "module_loading"),
        "gpu_imbalance",
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
        return leader.rule == "gpu_imbalance" and leader.device == finding.device
    if finding.rule == "exposed_communication" or (finding.late >= 0 and leader.rule in _LATE):
        one_is_late = leader.rule != "gpu_imbalance"
        return _waits_for(finding, leader) and (not one_is_late or leader.device == finding.late)
    if finding.rule == "exposed_copies" and leader.rule != "slow_copies":
        pages = leader.advice.startswith(PAGES) and "Unified Device-to-Host" in finding.title
        one_change = GATHER in finding.advice if leader.rule == "small_copies" else pages
        near = leader.device == finding.device or AND_OTHERS in finding.title
        return one_change and near and leader.saved_ns > 0
    if finding.rule == "small_copies":  # What the host does after them tells more, if it is known.
        together = _idle_together(leader, finding, after=True)
        return leader.saved_ns > 0 and together >= _NEARLY_ALL * finding.saved_ns
    if leader.rule in _LATE or leader.device != finding.device or leader.severity is Severity.LOW:
        return False
    if leader.lost is None or finding.lost is None:
        return 2 * leader.weight_ns >= finding.weight_ns
    return 2 * _idle_together(leader, finding) >= intervals.total(*finding.lost)


_PARTS: Final = frozenset(("repeated_uploads", "slow_copies"))
"""Rules that tell of a part of the copies that nothing hides, and why it is there."""


def _copies(finding: Finding, kept: Sequence[Finding]) -> Finding | None:
    """The finding above of whose copies this one tells a part, None for none."""
    near = [one for one in kept if one.device == finding.device and finding.rule in _PARTS]
    return next((one for one in near if one.subject.startswith(copies.NOT_HIDDEN)), None)


def _waits_for(exposed: Finding, slow: Finding) -> bool:
    """Whether communication that nothing hides is mostly the wait for a slower GPU.

    Where it waits for one GPU, transfers are no part of what that one explains.
    """
    whole = slow.rule == "gpu_imbalance" or OF_PROFILER in slow.subject
    cost = slow.stake_ns if whole else slow.saved_ns + slow.held_ns
    waited = (exposed.saved_ns + exposed.held_ns) * (exposed.late >= 0) or exposed.stake_ns
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
        most = 2 * intervals.overlap_length(finding.lost, other.gone) > lost
        if most or intervals.overlap_length(finding.gone, other.gone) >= _NEARLY_ALL * gone:
            return other
    return None


def gravest(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among findings, None for none."""
    return max((f.severity for f in findings), key=lambda s: s.rank, default=None)
