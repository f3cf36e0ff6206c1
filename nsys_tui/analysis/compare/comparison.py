"""Two sides compared: rows by name with change and verdict, findings, and one verdict over all.

Sides with at least five steady steps each are compared step by step; otherwise the durations of
instances of the same name stand for that, and the verdict says so (definitions: "Compare").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from nsys_tui.analysis.compare.comparability import (
    WITNESSES,
    Difference,
    differences,
    matched_by_kind,
    of_one_side,
)
from nsys_tui.analysis.compare.judgement import Judgement, Outcome, judged, nothing_in_common
from nsys_tui.analysis.compare.measure import measure
from nsys_tui.analysis.compare.plan import Plan
from nsys_tui.analysis.compare.pooling import of_the_same_run
from nsys_tui.analysis.compare.rows import Row, RowJudge
from nsys_tui.analysis.compare.side import GROUPS, OF_HOST, OPTIONAL, Found, Side
from nsys_tui.analysis.compare.stats import FEWEST, RUN_NOISE, SEED, THRESHOLD, Rules, Verdict
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.stalls.causes import Cause

NEITHER: Final = "none on either side"
STATUSES: Final = ("solved", "new", "only A", "only B", "in both")
_OVERHEAD: Final = 20
"""So many times the profiler's own work is the most that it could have slowed a step by."""
_THEME: Final = re.compile(r"\bgaps?, ([^:]+?)(?: in .+)?(?::|$)")
"""A rule may give a finding for each cause of idle time; the cause tells them apart, not the range
in which it was seen."""


@dataclass(frozen=True)
class FindingChange:
    """A finding on one side or on both."""

    rule: str
    a: Found | None
    b: Found | None
    comparable: bool = True
    """Whether both sides do the same work, so that one that is gone was solved."""

    @property
    def status(self) -> str:
        """One of ``STATUSES``."""
        if self.b is None:
            return "solved" if self.comparable else "only A"
        if self.a is None:
            return "new" if self.comparable else "only B"
        return "in both"

    @property
    def known(self) -> Found:
        """The finding as the later side has it, else as the earlier one."""
        finding = self.b or self.a
        assert finding is not None
        return finding


def paired(
    a: tuple[Found, ...] | None, b: tuple[Found, ...] | None, *, comparable: bool = True
) -> tuple[FindingChange, ...] | None:
    """Pairs the findings of one rule, and of one cause where a rule gives several.

    Returns:
        Those of A alone first, then those of B, then those on both sides; None where the rules were
        not run on both sides.
    """
    if a is None or b is None:
        return None
    mine, theirs = _by_theme(a), _by_theme(b)
    themes = dict.fromkeys((*mine, *theirs))
    changes = [FindingChange(t[0], mine.get(t), theirs.get(t), comparable) for t in themes]
    return tuple(sorted(changes, key=_order))


def _by_theme(findings: tuple[Found, ...]) -> dict[tuple[str, str], Found]:
    """The gravest finding of each rule and cause."""
    return {_theme(finding): finding for finding in reversed(findings)}


def _theme(finding: Found) -> tuple[str, str]:
    match = _THEME.search(finding.title)
    return finding.rule, match.group(1) if match else ""


def _order(change: FindingChange) -> tuple[int, int, str]:
    saved = max(finding.saved_ns for finding in (change.a, change.b) if finding is not None)
    return STATUSES.index(change.status), -saved, change.rule


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of ``compare``."""

    a: Side
    b: Side
    threshold: float
    seed: int
    noise: float
    """Standard deviation from run to run that is assumed where the runs do not show it."""
    differences: tuple[Difference, ...]
    judgement: Judgement
    summary: tuple[Row, ...]
    groups: Mapping[str, tuple[Row, ...]]
    """By key of ``side.GROUPS``; rows with the largest difference in time first."""
    findings: tuple[FindingChange, ...] | None
    """None where the rules were not run on both sides."""
    notes: tuple[str, ...]
    gates: Sequence[Outcome] = ()

    @property
    def verdict(self) -> Verdict:
        """Better, worse, same, inconclusive or not comparable."""
        return self.judgement.verdict

    @property
    def by_step(self) -> bool:
        """Whether totals are per step on both sides."""
        return self.a.by_step and self.b.by_step

    @property
    def largest(self) -> list[Row]:
        """The three largest changes that are told: of GPU work and idle time, else of the host.

        Communication and copies that are as long as before and no longer hidden are such a change.

        None of reports that have nothing in common, nor below a tenth of the threshold of the wall.
        """
        if nothing_in_common(self.a, self.b):
            return []
        rows = [row for key in ("kernels", "copies") for row in self.groups.get(key, ())]
        labels = {cause.key: cause.label for cause in Cause}
        idle = self.groups.get("stalls", ())
        rows += [replace(row, name=f"idle: {labels.get(row.name, row.name)}") for row in idle]
        rows += [*self._uncovered()]
        told = _told(rows) if rows else _told(self._within_steps()) or _told(self._calls())
        wall = next((row.a_total for row in self.summary if row.key == "wall"), 0.0)
        seen = [row for row in told if abs(row.delta) >= self.threshold / 10 * wall]
        return sorted(seen, key=lambda row: -abs(row.delta))[:3]

    def _within_steps(self) -> Iterator[Row]:
        """Ranges of the program's own: its calls may wait for what these do."""
        for row in self.groups.get("ranges", ()) if self.by_step else ():
            if row.name != self.a.steps.name:
                yield row

    def _calls(self) -> Iterator[Row]:
        return (row for key in OF_HOST for row in self.groups.get(key, ()))

    def _uncovered(self) -> Iterator[Row]:
        """Exposed times that change by more than the work itself does."""
        for exposed, whole in (("exposed_comm", "comm"), ("exposed_memory", "memory")):
            row, work = self.row(exposed), self.row(whole)
            if row is not None and work is not None and abs(row.delta) > 2 * abs(work.delta):
                yield row

    @property
    def together(self) -> str:
        """What is said of sums of GPU work: of how many GPUs they are, where these are several."""
        count = max(self.a.device_count, self.b.device_count)
        return f" on {count} GPUs" if count > 1 else ""

    def has(self, group: str) -> bool:
        """Whether a group has rows, or lacks them for a reason that has to be told."""
        names = self.a.names(group) or self.b.names(group)
        return bool(names) or group not in OPTIONAL

    def why_empty(self, group: str) -> str:
        """What stands in place of the rows of a group that has none."""
        if doubtful := self.unknown_in(group):
            return f"not known in {doubtful}"
        return _lacking(self.a, self.b, group) or NEITHER

    def unknown_in(self, group: str) -> str:
        """Sides whose data of a group is not believed: ``A``, ``A and B``; empty for neither."""
        sides = (("A", self.a), ("B", self.b))
        return " and ".join(letter for letter, side in sides if group in side.unknown)

    def row(self, key: str) -> Row | None:
        """One row of the summary."""
        return next((row for row in self.summary if row.key == key), None)


def _told(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.verdict.told and row.delta]


def aligned(*plans: Plan) -> tuple[Plan, ...]:
    """Plans of which all or none are measured by step.

    Steps that were found by name and steps that were found by pattern are no counterparts.
    """
    alike = len({plan.steps.rule is Rule.PATTERN for plan in plans}) == 1
    if alike and all(plan.by_step for plan in plans):
        return plans
    return tuple(map(as_whole, plans))


def as_whole(plan: Plan) -> Plan:
    """The plan with too few steps to be measured by them; how many there are stays known."""
    kept = plan.steps
    few = replace(kept, start=kept.start[: FEWEST - 1], end=kept.end[: FEWEST - 1])
    return replace(plan, steps=few, steps_found=len(kept))


def measure_both(
    a: Plan,
    b: Plan,
    *,
    labels: tuple[str, str] = ("", ""),
    identities: tuple[str, str] = ("", ""),
    measuring: Callable[[Plan, str, str], Side] = measure,
) -> tuple[Side, Side]:
    """Measures both sides at the same time: NumPy leaves room for a second thread.

    Args:
        a: before.
        b: after.
        labels: what the sides are called; by default the names of their reports.
        identities: equal for the same part of the same report.
        measuring: measures one side, or takes a first look at it.
    """
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(measuring, aligned(a, b), labels, identities)
    return first, second


def is_settled(look: Comparison, *plans: Plan) -> bool:
    """Whether the verdict over first looks is that of the whole: what is left cannot change it.

    Args:
        look: the comparison of first looks.
        plans: what was looked at.
    """
    wall = look.row("wall")
    if wall is None or not look.by_step or nothing_in_common(look.a, look.b):
        return False
    if look.judgement.change is None or not look.verdict.told:
        return True
    return _OVERHEAD * sum(plan.overhead_ns for plan in plans) < abs(wall.delta)


def compare(
    a: Side,
    b: Side,
    *,
    threshold: float = THRESHOLD,
    seed: int = SEED,
    noise: float = RUN_NOISE,
    force: bool = False,
    keys: Iterable[str] = GROUPS,
) -> Comparison:
    """Compares two sides; B is better where it takes less time.

    Args:
        a: before.
        b: after.
        threshold: smaller relative changes count as none.
        seed: of the bootstrap by which the sides were measured.
        noise: standard deviation from run to run where the runs do not show it, relative.
        force: judge also what does different work, or ran on different GPUs.
        keys: of the groups whose rows are compared: none of first looks.
    """
    if a.identity and a.identity == b.identity:
        a = replace(b, label=a.label)  # what a baseline keeps of it is rounded
    rules = Rules(threshold, 0.0 if of_the_same_run(a, b) else noise)
    rows = RowJudge(a, b, rules)
    summary = rows.summary()
    judgement = judged(a, b, summary, rules, force=force)
    if judgement.verdict is Verdict.UNKNOWN:
        rows.comparable = False
        summary = tuple(replace(row, verdict=Verdict.UNKNOWN) for row in summary)
    return Comparison(
        a=a,
        b=b,
        threshold=threshold,
        seed=seed,
        noise=rules.noise,
        differences=differences(a, b),
        judgement=judgement,
        summary=summary,
        groups={key: rows.group(key) for key in keys},
        findings=_findings(a, b, rows.comparable),
        notes=tuple(_notes(a, b) + (matched_by_kind(a, b) if rows.comparable else [])),
    )


def with_findings(
    comparison: Comparison, a: tuple[Found, ...] | None, b: tuple[Found, ...] | None
) -> Comparison:
    """The same with the findings of the expert rules, which take longer than all the rest.

    Args:
        comparison: the comparison.
        a: findings of A; None for those that it has, as a baseline does.
        b: findings of B.
    """
    first, second = (
        side if findings is None else replace(side, findings=findings)
        for side, findings in ((comparison.a, a), (comparison.b, b))
    )
    changes = _findings(first, second, comparison.verdict is not Verdict.UNKNOWN)
    return replace(comparison, a=first, b=second, findings=changes)


def _findings(a: Side, b: Side, comparable: bool) -> tuple[FindingChange, ...] | None:
    """Findings side by side; those of one side alone only where rules could see both."""
    alike = comparable and not of_one_side(a, b)
    changes = paired(a.findings, b.findings, comparable=alike)
    if changes is None or not (a.unknown or b.unknown):
        return changes
    return tuple(change for change in changes if change.status == "in both")


def _notes(a: Side, b: Side) -> list[str]:
    notes = []
    if not (a.by_step and b.by_step):
        notes.append(
            "verdicts compare durations of instances; those of one run are not independent, so"
            " intervals are narrower than they would be between runs"
        )
        notes.append("changes of names are those of the mean instance")
    if a.by_step != b.by_step:
        notes.append("totals of A and B cover different numbers of steps")
    for key, title in GROUPS.items():
        wanted = key not in OPTIONAL or a.names(key) or b.names(key)
        if wanted and (why := _lacking(a, b, key)):
            notes.append(f"{title}: {why}")
    sides = (("A", a), ("B", b))
    return notes + [f"{letter}: {note}" for letter, side in sides for note in side.notes]


def _lacking(a: Side, b: Side, group: str) -> str:
    """Which sides have none of a group's data, and why: ``B: no NVTX ranges in this report: …``."""
    if group == "stalls" and (kinds := of_one_side(a, b, WITNESSES)):
        return f"only one side has {' and '.join(kinds)}, so causes are not told alike"
    reasons: dict[str, list[str]] = {}
    for letter, side in (("A", a), ("B", b)):
        if group in side.lacks and group not in side.unknown:
            reasons.setdefault(side.lacks[group], []).append(letter)
    return "; ".join(f"{' and '.join(at)}: {why}" for why, at in reasons.items())
