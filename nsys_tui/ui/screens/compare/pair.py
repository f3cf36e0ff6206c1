"""What is compared on the screen: two open reports or a baseline and a report, and the result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nsys_tui.analysis.compare.comparison import Comparison, aligned, compare
from nsys_tui.analysis.compare.measure import Plan, measure, plan
from nsys_tui.analysis.compare.side import Found
from nsys_tui.export.baselines import Baseline
from nsys_tui.ui.session import Session

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.side import Side
    from nsys_tui.analysis.rules.finding import Finding

End: TypeAlias = Session | Baseline
"""One end of a comparison."""


@dataclass(frozen=True)
class Pair:
    """The two ends, before A and after B."""

    a: End
    b: End

    @property
    def ready(self) -> bool:
        """Whether everything is loaded."""
        return all(end.finished for end in self.sessions) and all(
            session.report is not None for session in self.sessions
        )

    @property
    def sessions(self) -> list[Session]:
        """The ends that are open reports."""
        return [end for end in (self.a, self.b) if isinstance(end, Session)]

    @property
    def swapped(self) -> Pair:
        """The other way round."""
        return Pair(self.b, self.a)


def end_name(end: End) -> str:
    """What an end is called."""
    return end.name if isinstance(end, Session) else f"baseline {end.name}"


@dataclass(frozen=True, eq=False)
class Result:
    """A comparison with what is needed to show its ends."""

    pair: Pair
    found: Comparison
    plans: tuple[Plan | None, Plan | None]
    """How the ends were measured; None for a baseline."""

    @cached_property
    def step(self) -> int | None:
        """A step that is usual on both sides, by its number; None without steps."""
        if not self.found.by_step:
            return None
        lengths = [side.steps.end - side.steps.start for side in (self.found.a, self.found.b)]
        count = min(map(len, lengths))
        away = [np.abs(length[:count] / np.median(length) - 1) for length in lengths]
        return int(np.argmin(away[0] + away[1]))


def gather(pair: Pair, names: str, threshold: float) -> Result:
    """Measures both ends and compares them; what was measured before is kept with the report.

    Args:
        pair: both ends, loaded.
        names: how kernels are named, and so which are one.
        threshold: smaller relative changes count as none.
    """
    plans = [_plan(end, names) if isinstance(end, Session) else None for end in (pair.a, pair.b)]
    first, second = plans
    if first is not None and second is not None:
        first, second = aligned(first, second)
    with ThreadPoolExecutor(2) as pool:
        a, b = pool.map(_side, (pair.a, pair.b), (first, second))
    return Result(pair, compare(a, b, threshold=threshold), (first, second))


def _plan(session: Session, names: str) -> Plan:
    report = session.report
    assert report is not None
    return session.memo(("compare_plan", names), lambda: plan(report, style=names, findings=False))


def _side(end: End, made: Plan | None) -> Side:
    if isinstance(end, Baseline):
        gone = "" if end.there else ", its report is gone"
        return replace(end.side, label=f"baseline {end.name}: {end.side.label}{gone}")
    assert made is not None
    key = ("compare_side", made.by_step, made.style)
    identity = end.report_id or str(end.path.absolute())
    return end.memo(key, lambda: measure(made, end.name, f"{identity} {made.scope} {made.style}"))


def with_findings(result: Result) -> Result:
    """The same with the findings of the expert rules, which take longer than all the rest."""
    sides = [
        replace(side, findings=_findings(end)) if isinstance(end, Session) else side
        for end, side in zip(
            (result.pair.a, result.pair.b), (result.found.a, result.found.b), strict=True
        )
    ]
    found = compare(*sides, threshold=result.found.threshold, seed=result.found.seed)
    return replace(result, found=found)


def _findings(session: Session) -> tuple[Found, ...]:
    from nsys_tui.analysis.rules.findings import find

    report = session.report
    assert report is not None
    found: list[Finding] = session.memo("findings", lambda: find(report))
    return tuple(Found(f.rule, str(f.severity), f.title, f.saved_ns) for f in found)
