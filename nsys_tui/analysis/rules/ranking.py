"""All rules at once, and what they found ranked by the time it could save."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.rules import (
    copies,
    gpu,
    gpu_work,
    host,
    host_only,
    idle,
    nsys,
    pace,
    register,
    report_quality,
    small_work,
    utilisation,
    warm_up,
)
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.witness import witnessed
from nsys_tui.model import intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report

FAMILIES: Final = (
    nsys,
    utilisation,
    report_quality,
    gpu_work,
    idle,
    warm_up,
    gpu,
    host,
    host_only,
    small_work,
    copies,
    pace,
)
"""Importing a family registers its rules."""

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
    found: list[Finding] = []
    rules = [rule for rule in RULES.values() if rule.finds]
    for done, rule in enumerate(rules):
        found += rule.run(case).findings
        if progress is not None:
            progress(rule.name, done + 1, len(rules))
    return ranked(case, found)


def ranked(case: Case, findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first, then by the time that they could save, then by rule.

    Args:
        case: what was looked at; its counters and diagnostics support or contradict findings.
        findings: of rules.
    """
    order = sorted(
        witnessed(case, findings), key=lambda f: (-f.severity.rank, -f.order_ns, f.rule, f.title)
    )
    return linked(order)


def linked(findings: Sequence[Finding]) -> list[Finding]:
    """The same, each marked with the finding above that could give most of its time back, too.

    Args:
        findings: the first of several of one time is their story.
    """
    kept: list[Finding] = []
    later: list[Finding] = []
    beside: list[tuple[Finding, Finding]] = []
    for one in findings:
        leader = _leader(one, findings)
        if leader and one.rule == "exposed_communication":
            beside.append((leader, replace(one, same_as=leader.subject)))
        elif other := leader.subject if leader else _covering(one, kept) or _copies(one, kept):
            later.append(replace(one, same_as=other, severity=Severity.LOW))
        else:
            kept.append(one)
    for leader, one in beside:
        kept.insert(kept.index(leader) + 1 if leader in kept else len(kept), one)
    low = next((n for n, one in enumerate(kept) if one.severity is Severity.LOW), len(kept))
    return [*kept[:low], *later, *kept[low:]]


_LEADERS: Final = {
    "dominant_kernel": ("shared_gpus",),
    "exposed_communication": ("gpu_imbalance", "gpu_idle"),
    "exposed_copies": ("slow_copies", "memsets"),
    "gpu_idle": ("frequent_allocation", "blocking_launches"),
    "slow_steps": ("gpu_idle", "sync_by_range", "frequent_allocation", "module_loading"),
    "launch_bound": ("small_copies", "tiny_kernels"),
    "sync_by_range": ("small_copies",),
}
"""Rules that tell why the time of another one is lost, and so stand before it."""


def _leader(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The finding that explains at least half of another one, the first of them that do together.

    None for none.
    """
    rules = _LEADERS.get(finding.rule, ())
    asked = [one for one in findings if one.rule in rules]
    if finding.rule == "slow_steps" and finding.lost is not None:
        asked = [one for one in asked if _idle_together(one, finding)]
        shared = sum(_idle_together(one, finding) for one in asked)
        return asked[0] if 2 * shared >= intervals.total(*finding.lost) and asked else None
    return next((one for one in asked if _explains(one, finding)), None)


def _idle_together(one: Finding, other: Finding) -> int:
    """How long the GPU is idle because of either of two findings of one GPU."""
    if one.place != other.place or one.lost is None or other.lost is None:
        return 0
    return intervals.overlap_length(one.lost, other.lost)


def _explains(leader: Finding, finding: Finding) -> bool:
    if finding.rule == "exposed_communication":
        idle = leader.rule == "gpu_idle"
        return _waits_for(finding, leader) and (not idle or leader.place == finding.late)
    if leader.place != finding.place or leader.severity is Severity.LOW:
        return False
    if leader.lost is None or finding.lost is None:
        return 2 * leader.weight_ns >= finding.weight_ns
    return 2 * _idle_together(leader, finding) >= intervals.total(*finding.lost)


_PARTS: Final = frozenset(("memsets", "repeated_uploads", "slow_copies"))
"""Rules that tell of a part of the copies that nothing hides, and why it is there."""


def _copies(finding: Finding, kept: Sequence[Finding]) -> str:
    """Subject of the finding above of whose copies this one tells a part, empty for none."""
    if finding.rule not in _PARTS:
        return ""
    above = (one for one in kept if one.rule == "exposed_copies" and one.place == finding.place)
    return next((one.subject for one in above), "")


def _waits_for(exposed: Finding, slow: Finding) -> bool:
    """Whether communication that nothing hides is mostly the wait for a slower GPU."""
    return exposed.place != slow.place and 2 * slow.saved_ns >= exposed.stake_ns


def _covering(finding: Finding, above: Sequence[Finding]) -> str:
    """Subject of the finding above that has more than half of this one's time, empty for none."""
    if finding.lost is None or not len(finding.lost[0]):
        return ""
    own = intervals.total(*finding.lost)
    for other in above:
        if other.rule == "slow_steps" or other.lost is None or other.same_as:
            continue
        if 2 * intervals.overlap_length(finding.lost, other.lost) > own:
            return other.subject
    return ""


def gravest(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among findings, None for none."""
    return max((f.severity for f in findings), key=lambda s: s.rank, default=None)
