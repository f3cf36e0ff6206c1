"""The one verdict over a comparison: what decides it, in what order, and the sentence that says so.

The mean time of a step decides; where it does not tell, the tail of the step times, then what the
GPUs did in a step. Without enough steps the same mix of kernels stands for that (definitions:
"Compare").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nsys_tui.analysis.compare.comparability import different_work, explained
from nsys_tui.analysis.compare.pooling import of_the_same_run
from nsys_tui.analysis.compare.rows import Row
from nsys_tui.analysis.compare.side import HOST_AHEAD, TAIL, WHOLE, Named, Side
from nsys_tui.analysis.compare.stats import (
    ENOUGH_RUNS,
    FEWEST,
    Change,
    Rules,
    Verdict,
    judge_runs,
    weighted,
)
from nsys_tui.model.categories import is_communication
from nsys_tui.units import format_change, format_duration, format_share

_WORDS: Final = {
    "kernels": "kernel",
    "ranges": "NVTX range",
    "api": "CUDA call",
    "mpi_calls": "MPI call",
    "os_calls": "OS runtime call",
}
"""Groups whose instances stand for steps where there are too few, in order: the first that both
sides have."""
_BEHIND: Final = {
    "p95": "p95 of steps",
    "p99": "p99 of steps",
    "slow": "share of slow steps",
    "busy": "GPU busy time per step",
    "kernel_time": "time of compute kernels per step",
}
"""What decides where the mean of steps tells neither better nor worse, in order."""
FORCE: Final = "--force compares them anyway"


@dataclass(frozen=True)
class Judgement:
    """What the comparison comes to."""

    verdict: Verdict
    basis: str
    """``steps``, ``instances``, ``identity`` or ``none``."""
    change: Change | None
    reason: str
    """One sentence."""
    settle: str = ""
    """What may settle an inconclusive comparison."""


@dataclass(frozen=True)
class Gate:
    """A limit that a user set."""

    text: str
    kind: str
    """A row or a group of rows; empty for the whole comparison."""
    pattern: str = ""
    """Regular expression for names."""
    threshold: float = 0.0
    """Relative."""
    absolute: float | None = None
    """In ns, or in parts of ``WHOLE``."""


@dataclass(frozen=True)
class Outcome:
    """What became of a gate."""

    gate: Gate
    verdict: Verdict
    reason: str
    rows: tuple[Row, ...] = ()


def judged(
    a: Side, b: Side, summary: Sequence[Row], rules: Rules, *, force: bool = False
) -> Judgement:
    """The verdict over two sides.

    Args:
        a: before.
        b: after.
        summary: rows of the figures of a step or of the whole.
        rules: threshold and noise.
        force: judge also what does different work, or ran on different GPUs.
    """
    rows = {row.key: row for row in summary}
    wall = rows["wall"].change if "wall" in rows else None
    if a.identity and a.identity == b.identity:
        return Judgement(Verdict.SAME, "identity", wall, "A and B are the same part of one report")
    if reason := nothing_in_common(a, b):
        return Judgement(Verdict.UNKNOWN, "none", None, reason)
    if not force and (reason := different_work(a, b)):
        return Judgement(Verdict.UNKNOWN, "none", None, f"{reason}; {FORCE}")
    by_step = a.by_step and b.by_step and wall is not None
    judgement = (
        _by_steps(a, b, rows, rules.threshold) if by_step else _by_instances(a, b, rules, wall)
    )
    if judgement.change is None:
        return judgement
    if judgement.verdict.told and not force and (reason := explained(a, b, judgement.change)):
        return Judgement(
            Verdict.UNKNOWN, "none", judgement.change, f"{reason}; {judgement.reason}; {FORCE}"
        )
    return _with_doubt(a, b, judgement, rules)


def nothing_in_common(a: Side, b: Side) -> str:
    """Why nothing can be compared; empty where something can."""
    if any(side.names(key) for side in (a, b) for key in ("kernels", "ranges")):
        if any({*a.names(key)} & {*b.names(key)} for key in ("kernels", "ranges")):
            return ""
        return "no kernel and no NVTX range of A occurs in B, so there is nothing to compare"
    if any({*a.names(key)} & {*b.names(key)} for key in ("api", "mpi_calls", "os_calls")):
        return ""
    return "the sides have neither GPU work nor NVTX ranges nor calls in common"


def _with_doubt(a: Side, b: Side, judgement: Judgement, rules: Rules) -> Judgement:
    """The judgement with what its interval rests on, and what may settle it."""
    change = judgement.change
    if change is None or change.ratio == 0 == change.spread:
        return judgement
    runs, counts = max(a.run_count, b.run_count), f"{a.run_count} against {b.run_count} runs"
    if of_the_same_run(a, b):
        text = "within one run"
    elif runs >= ENOUGH_RUNS:
        text = f"{counts}, which differ by {format_share(change.spread)}"
    elif runs > 1:
        text = f"{counts}: run noise {format_share(change.spread)} assumed"
    else:
        text = f"within this pair: run noise {100 * rules.noise:g}% assumed"
    settle = ""
    if judgement.verdict is Verdict.INCONCLUSIVE:
        units = "steps" if a.by_step and b.by_step else "instances"
        settle = f"more {units if of_the_same_run(a, b) else 'runs'} a side"
        text = f"{text}; {settle} may settle it"
    return replace(judgement, reason=f"{judgement.reason}; {text}", settle=settle)


def _by_steps(a: Side, b: Side, rows: dict[str, Row], threshold: float) -> Judgement:
    """The mean time of a step decides; where it does not tell, what lies behind it."""
    wall = rows["wall"].change
    counts = f"{len(a.steps)} against {len(b.steps)} steady steps"
    text = f"mean wall per step {percent(wall)}, {counts}"
    if wall.verdict.told:
        return Judgement(wall.verdict, "steps", wall, text)
    for key, what in _BEHIND.items():
        row = rows.get(key)
        if row is not None and row.verdict.told:
            text = f"{text}; but {what} {_change_text(row)}"
            return Judgement(row.verdict, "steps", row.change, text)
    for key in ("busy", "kernel_time"):
        row = rows.get(key)
        if row is not None and wall.verdict is Verdict.SAME and _hides(row, threshold):
            text = f"{text}; but {_BEHIND[key]} {percent(row.change)}"
            return Judgement(row.verdict, "steps", row.change, text)
    return Judgement(wall.verdict, "steps", wall, text)


def _hides(row: Row, threshold: float) -> bool:
    """Whether a figure may have changed behind the time of a step, which did not."""
    ratio = row.change.ratio
    return row.verdict is Verdict.INCONCLUSIVE and ratio is not None and abs(ratio) > threshold


def _change_text(row: Row) -> str:
    if row.key in TAIL and row.share:
        return f"{format_share(row.a_total, WHOLE)} and {format_share(row.b_total, WHOLE)}"
    return percent(row.change)


def _by_instances(a: Side, b: Side, rules: Rules, wall: Change | None) -> Judgement:
    hidden = " and ".join(at for at, side in (("A", a), ("B", b)) if "kernels" in side.unknown)
    if hidden:  # calls and ranges say nothing of the GPU
        return Judgement(Verdict.UNKNOWN, "none", None, f"kernels cannot be known in {hidden}")
    why = _why_not_steps(a, b)
    mix = _mix(a, b, rules)
    if mix is None:
        few = f"too little of the work occurs {FEWEST} times on both sides"
        return Judgement(Verdict.UNKNOWN, "none", None, f"{why}, and {few}")
    change, text = mix
    reason = f"{text}; by instances, because of {why}"
    if wall is not None:
        spans = f"wall {format_duration(round(wall.a))} and {format_duration(round(wall.b))}"
        reason = f"{reason}; {spans}" + ", one value a side" * (a.run_count == b.run_count == 1)
    return Judgement(change.verdict, "instances", change, reason)


def _mix(a: Side, b: Side, rules: Rules) -> tuple[Change, str] | None:
    """Compares the same mix of work: mean durations by name, as often as in A.

    Of the names of the first group that has enough instances on both sides. Communication is left
    out where there is other work: its kernels last as long as they wait.
    """
    for key, what in _WORDS.items():
        mine, theirs = a.names(key), b.names(key)
        common = [n for n in mine if n in theirs and _judgeable(a, b, mine[n], theirs[n])]
        common = [name for name in common if not is_communication((name,))] or common
        if not common or (key == "kernels" and not _enough(common, mine, theirs)):
            continue
        if key in ("kernels", "ranges") or not (a.names("kernels") and b.names("kernels")):
            first = weighted((mine[n].instances, mine[n].count / a.run_count) for n in common)
            second = weighted((theirs[n].instances, mine[n].count / a.run_count) for n in common)
            change = judge_runs(first, second, rules)
            if first == second:
                change = replace(change, verdict=Verdict.SAME, interval=(0.0, 0.0), spread=0.0)
            named = f"{len(common)} {what} name{'s' * (len(common) != 1)}"
            text = f"mean durations of {named}, as often as in A,"
            return change, f"{text} {percent(change)}"
    return None


def _enough(common: Sequence[str], *sides: Mapping[str, Named]) -> bool:
    """Whether names that can be judged are most of the kernel time on each side."""
    totals = [{n: named.total for n, named in side.items()} for side in sides]
    if not is_communication(common):
        totals = [
            {n: ns for n, ns in side.items() if not is_communication((n,))} for side in totals
        ]
    return all(2 * sum(side[n] for n in common) >= sum(side.values()) for side in totals)


def _judgeable(a: Side, b: Side, mine: Named, theirs: Named) -> bool:
    first, second = mine.instances, theirs.instances
    whole = len(first.runs) == a.run_count and len(second.runs) == b.run_count
    return whole and (first == second or min(first.count, second.count) >= FEWEST)


def percent(change: Change) -> str:
    """``+5.0% (95% interval +4.8% to +5.3%)``, as far as it is known and wider than the digits."""
    if change.ratio is None:
        return "from nothing"
    text = format_change(change.ratio)
    if change.interval is None or change.interval == (0.0, 0.0):
        return text
    low, high = map(format_change, change.interval)
    return text if low == high else f"{text} (95% interval {low} to {high})"


def _why_not_steps(a: Side, b: Side) -> str:
    if HOST_AHEAD in (*a.notes, *b.notes):
        return "a host that runs far ahead of the GPU"
    if a.steps.rule is not b.steps.rule and min(a.steps_found, b.steps_found) >= FEWEST:
        return f"steps found {a.steps.rule} in A and {b.steps.rule} in B"
    if not (a.steps_found or b.steps_found):
        return "no steps in either"
    counts = (f"{_found(side)} in {letter}" for side, letter in ((a, "A"), (b, "B")))
    return f"too few steady steps ({', '.join(counts)}, {FEWEST} needed)"


def _found(side: Side) -> str:
    return f"{side.steps_found // side.run_count}{' a run' * (side.run_count > 1)}"
