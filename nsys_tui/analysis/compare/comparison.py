"""Two sides compared: rows by name with change and verdict, and one verdict over everything.

Sides with at least five steady steps each are compared step by step; otherwise the durations of
instances of the same name stand for that, and the verdict says so (definitions: "Compare").
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.compare.comparability import Difference, differences
from nsys_tui.analysis.compare.finding_changes import FindingChange, paired
from nsys_tui.analysis.compare.measure import Plan, measure
from nsys_tui.analysis.compare.rows import Row, RowJudge
from nsys_tui.analysis.compare.side import GROUPS, Side
from nsys_tui.analysis.compare.stats import (
    FEWEST,
    SEED,
    THRESHOLD,
    Change,
    Spread,
    Verdict,
    judge_together,
)
from nsys_tui.analysis.iterations.detection import Rule
from nsys_tui.model.categories import is_communication
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS: Final = {"kernels": "kernel", "ranges": "NVTX range", "api": "CUDA call"}
"""Groups whose instances stand for steps where there are too few, in order: the first that both
sides have."""

_BEHIND_WALL: Final = {"busy": "GPU busy time", "kernel_time": "time of compute kernels"}
"""What decides where wall times are the same, in order."""


@dataclass(frozen=True)
class Judgement:
    """What the comparison comes to."""

    verdict: Verdict
    basis: str
    """``steps``, ``instances``, ``identity`` or ``none``."""
    change: Change | None
    reason: str
    """One sentence."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of ``compare``."""

    a: Side
    b: Side
    threshold: float
    seed: int
    differences: tuple[Difference, ...]
    judgement: Judgement
    summary: tuple[Row, ...]
    groups: Mapping[str, tuple[Row, ...]]
    """By key of ``side.GROUPS``; rows with the largest difference in time first."""
    findings: tuple[FindingChange, ...] | None
    """None where the rules were not run on both sides."""
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Better, worse, same or not comparable."""
        return self.judgement.verdict

    @property
    def by_step(self) -> bool:
        """Whether totals are per step on both sides."""
        return self.a.by_step and self.b.by_step

    def why_empty(self, group: str) -> str:
        """What stands in place of the rows of a group that has none."""
        sides = {"A": self.a, "B": self.b}
        doubtful = [letter for letter, side in sides.items() if group in side.unknown]
        return f"not known in {' and '.join(doubtful)}" if doubtful else "none on either side"

    def row(self, key: str) -> Row | None:
        """One row of the summary."""
        return next((row for row in self.summary if row.key == key), None)


def aligned(a: Plan, b: Plan) -> tuple[Plan, Plan]:
    """Two plans of which both or none are measured by step.

    Steps that were found by name and steps that were found by pattern are no counterparts.
    """
    alike = (a.steps.rule is Rule.PATTERN) == (b.steps.rule is Rule.PATTERN)
    if a.by_step and b.by_step and alike:
        return a, b
    return _as_whole(a), _as_whole(b)


def _as_whole(plan: Plan) -> Plan:
    """The plan with too few steps to be measured by them; how many there are stays known."""
    kept = plan.steps
    few = replace(kept, start=kept.start[: FEWEST - 1], end=kept.end[: FEWEST - 1])
    return replace(plan, steps=few, found=len(kept))


def measure_both(
    a: Plan,
    b: Plan,
    *,
    labels: tuple[str, str] = ("", ""),
    identities: tuple[str, str] = ("", ""),
) -> tuple[Side, Side]:
    """Measures both sides at the same time: NumPy leaves room for a second thread.

    Args:
        a: before.
        b: after.
        labels: what the sides are called; by default the names of their reports.
        identities: equal for the same part of the same report.
    """
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(measure, aligned(a, b), labels, identities)
    return first, second


def compare(a: Side, b: Side, *, threshold: float = THRESHOLD, seed: int = SEED) -> Comparison:
    """Compares two sides; B is better where it takes less time.

    Args:
        a: before.
        b: after.
        threshold: smaller relative changes count as none.
        seed: of the bootstrap.
    """
    rows = RowJudge(a, b, threshold, np.random.default_rng(seed))
    summary = rows.summary()
    rows.has_common = not _nothing_in_common(a, b)
    return Comparison(
        a=a,
        b=b,
        threshold=threshold,
        seed=seed,
        differences=differences(a, b),
        judgement=_judgement(a, b, summary, threshold, seed),
        summary=summary,
        groups={key: rows.group(key) for key in GROUPS},
        findings=_findings(a, b),
        notes=tuple(_notes(a, b)),
    )


def _findings(a: Side, b: Side) -> tuple[FindingChange, ...] | None:
    """Findings side by side; those of one side alone only where rules could see both."""
    changes = paired(a.findings, b.findings)
    if changes is None or not (a.unknown or b.unknown):
        return changes
    return tuple(change for change in changes if change.status == "in both")


def _judgement(
    a: Side, b: Side, summary: tuple[Row, ...], threshold: float, seed: int
) -> Judgement:
    changes = {row.key: row.change for row in summary}
    wall = changes.get("wall")
    if a.identity and a.identity == b.identity:
        return Judgement(Verdict.SAME, "identity", wall, "A and B are the same part of one report")
    if reason := _nothing_in_common(a, b):
        return Judgement(Verdict.UNKNOWN, "none", None, reason)
    if a.by_step and b.by_step:
        return _by_steps(a, b, changes)
    found = _by_instances(a, b, _mix(a, b, threshold, np.random.default_rng(seed)))
    if wall is None or found.verdict is Verdict.UNKNOWN:
        return found
    text = f"wall {format_duration(round(wall.a))} and {format_duration(round(wall.b))}"
    return replace(found, reason=f"{found.reason}; {text}, one value a side")


def _nothing_in_common(a: Side, b: Side) -> str:
    """Why nothing can be compared; empty where something can."""
    if any(side.names(key) for side in (a, b) for key in ("kernels", "ranges")):
        if any({*a.names(key)} & {*b.names(key)} for key in ("kernels", "ranges")):
            return ""
        return "no kernel and no NVTX range of A occurs in B, so there is nothing to compare"
    if {*a.names("api")} & {*b.names("api")}:
        return ""
    return "the sides have neither GPU work nor NVTX ranges nor CUDA calls in common"


@dataclass(frozen=True)
class _Mix:
    """The same mix of work on both sides: median durations by name, as often as in A."""

    change: Change
    text: str


def _mix(a: Side, b: Side, threshold: float, random: np.random.Generator) -> _Mix | None:
    """Compares the names of the first group that has enough instances on both sides.

    Communication is left out where there is other work: its kernels last as long as they wait.
    """
    for key, what in _WORDS.items():
        mine, theirs = a.names(key), b.names(key)
        common = [
            name
            for name in mine
            if name in theirs and _judgeable(mine[name].instances, theirs[name].instances)
        ]
        common = [name for name in common if not is_communication((name,))] or common
        if common:
            pairs = [(mine[name].instances, theirs[name].instances) for name in common]
            weights = [float(mine[name].count) for name in common]
            change = judge_together(pairs, weights, random, threshold=threshold)
            named = f"{len(common)} {what} name{'s' * (len(common) != 1)}"
            text = f"median durations of {named}, as often as in A,"
            return _Mix(change, f"{text} {percent(change)}")
    return None


def _by_steps(a: Side, b: Side, changes: Mapping[str, Change]) -> Judgement:
    """The wall time of a step decides; where it is the same, what the GPUs did in it.

    Work that the host hides, or that overlaps other work, changes no wall time.
    """
    wall = changes["wall"]
    text = f"wall per step {percent(wall)}, {len(a.steps)} against {len(b.steps)} steady steps"
    if wall.verdict is not Verdict.SAME:
        return Judgement(wall.verdict, "steps", wall, text)
    for key, what in _BEHIND_WALL.items():
        change = changes.get(key)
        if change is not None and change.verdict is not Verdict.SAME:
            text = f"{text}; but {what} per step {percent(change)}"
            return Judgement(change.verdict, "steps", change, text)
    return Judgement(Verdict.SAME, "steps", wall, text)


def _by_instances(a: Side, b: Side, mix: _Mix | None) -> Judgement:
    why = _why_not_steps(a, b)
    if mix is None:
        few = f"no name occurs {FEWEST} times on both sides"
        return Judgement(Verdict.UNKNOWN, "none", None, f"{why}, and {few}")
    reason = f"{mix.text}; by instances, because of {why}"
    return Judgement(mix.change.verdict, "instances", mix.change, reason)


def percent(change: Change) -> str:
    """``+5.0% (95% interval +4.8% to +5.3%)``, as far as it is known."""
    if change.ratio is None:
        return "from nothing"
    text = f"{100 * change.ratio:+.1f}%"
    if change.interval is None or change.interval == (0.0, 0.0):
        return text
    low, high = (100 * edge for edge in change.interval)
    return f"{text} (95% interval {low:+.1f}% to {high:+.1f}%)"


def _judgeable(a: Spread, b: Spread) -> bool:
    return a.equals(b) or min(a.count, b.count) >= FEWEST


def _why_not_steps(a: Side, b: Side) -> str:
    if min(a.steps_found, b.steps_found) >= FEWEST:
        return f"steps found {a.steps.rule} in A and {b.steps.rule} in B"
    if not (a.steps_found or b.steps_found):
        return "no steps in either"
    counts = f"{a.steps_found} in A, {b.steps_found} in B, {FEWEST} needed"
    return f"too few steady steps ({counts})"


def _notes(a: Side, b: Side) -> list[str]:
    notes = []
    if not (a.by_step and b.by_step):
        notes.append(
            "verdicts compare durations of instances; those of one run are not independent, so"
            " intervals are narrower than they would be between runs"
        )
    if a.by_step != b.by_step:
        notes.append("totals of A and B cover different numbers of steps")
    for key, title in GROUPS.items():
        lacking = [side for side in (a, b) if key in side.lacks and key not in side.unknown]
        notes += [f"{title}: {why}" for why in dict.fromkeys(side.lacks[key] for side in lacking)]
    sides = (("A", a), ("B", b))
    return notes + [f"{letter}: {note}" for letter, side in sides for note in side.notes]
