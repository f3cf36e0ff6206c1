"""What is compared on the screen: two parts of open reports, or a baseline and one, and the result.

A part is what the session's window and filter let through, unless it was chosen by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.analysis.compare.comparison import Comparison, aligned, compare, is_settled
from nsys_tui.analysis.compare.comparison import with_findings as add_findings
from nsys_tui.analysis.compare.example_events import event_of, gap_of
from nsys_tui.analysis.compare.plan import Plan, identity_of, plan
from nsys_tui.analysis.compare.pooling import pooled_side
from nsys_tui.analysis.compare.rows import Row
from nsys_tui.analysis.compare.side import Found, Side
from nsys_tui.analysis.compare.stats import Rules
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import UsageError
from nsys_tui.export.baselines import Baseline
from nsys_tui.export.measured_sides import SideCache
from nsys_tui.model.report import Report
from nsys_tui.timeline.painter import Picked
from nsys_tui.ui.findings import findings
from nsys_tui.ui.scoping import report_scope, scope_text
from nsys_tui.ui.session import Session

EVERYTHING: Final = "everything"


@dataclass(frozen=True)
class Part:
    """What is looked at of an open report."""

    session: Session
    scope: Scope = field(default_factory=Scope)
    title: str = field(default="", compare=False)
    """What the part is called; empty for the whole."""
    single: bool = False
    """One iteration, in which no steps are looked for."""

    @property
    def name(self) -> str:
        """The report, and which part of it."""
        return f"{self.session.name} {self.title}" if self.title else self.session.name

    @property
    def report(self) -> Report:
        """The loaded report.

        Raises:
            UsageError: it was closed meanwhile.
        """
        if self.session.report is None:
            raise UsageError(f"{self.session.name} is closed", hint="B: choose another report")
        return self.session.report


End: TypeAlias = Part | Baseline
BothPicked: TypeAlias = tuple[Picked | None, Picked | None]
"""An event on each side."""
Span: TypeAlias = tuple[int, int] | None
"""One end of a comparison."""


def shown_part(session: Session) -> Part:
    """What the other screens show of a report: its window, with its filter."""
    report = session.report
    if report is None or not session.finished:
        return Part(session)
    scope = report_scope(report, session.state)
    return Part(session, scope, scope_text(report, scope, session.state.display.time))


@dataclass(frozen=True)
class Pair:
    """The two ends, before A and after B."""

    a: End
    b: End
    more: tuple[tuple[Part, ...], tuple[Part, ...]] = ((), ())
    """Further runs of either side."""

    @property
    def ready(self) -> bool:
        """Whether everything is loaded."""
        return all(s.finished and s.report is not None for s in self.sessions)

    @property
    def sessions(self) -> list[Session]:
        """The open reports that are looked at."""
        ends = (self.a, self.b, *self.more[0], *self.more[1])
        return [end.session for end in ends if isinstance(end, Part)]

    @property
    def titles(self) -> list[str]:
        """What is looked at of A and B, where that is not everything of both."""
        titles = [end.title if isinstance(end, Part) else "" for end in (self.a, self.b)]
        return [title or EVERYTHING for title in titles] if any(titles) else []

    @property
    def single(self) -> bool:
        """Whether one iteration is held against another."""
        return all(isinstance(end, Part) and end.single for end in (self.a, self.b))

    @property
    def swapped(self) -> Pair:
        """The other way round."""
        return Pair(self.b, self.a, self.more[::-1])

    @property
    def names(self) -> tuple[str, str]:
        """What the sides are called."""
        first, second = (
            f"{end_name(end)}{f' and {len(more)} more' if more else ''}"
            for end, more in zip((self.a, self.b), self.more, strict=True)
        )
        return first, second


def end_name(end: End) -> str:
    """What an end is called."""
    return end.session.name if isinstance(end, Part) else f"baseline {end.name}"


@dataclass(frozen=True, eq=False)
class Result:
    """A comparison with what is needed to show its ends."""

    pair: Pair
    comparison: Comparison
    plans: tuple[Plan | None, Plan | None]
    """How the ends were measured; None for a baseline."""

    @cached_property
    def step(self) -> int | None:
        """A step that is usual on both sides, by its number; None without steps."""
        if not self.comparison.by_step:
            return None
        lengths = [
            side.steps.end - side.steps.start for side in (self.comparison.a, self.comparison.b)
        ]
        count = min(map(len, lengths))
        away = [np.abs(length[:count] / np.median(length) - 1) for length in lengths]
        return int(np.argmin(away[0] + away[1]))

    def windows(self, step: int | None) -> tuple[tuple[int, int] | None, ...]:
        """A step of each side, else its window; None where there is neither."""
        if step is None:
            return tuple(plan.window if plan is not None else None for plan in self.plans)
        sides = (self.comparison.a.steps, self.comparison.b.steps)
        return tuple((int(s.start[step]), int(s.end[step])) for s in sides)

    def step_name(self, step: int | None) -> str:
        """What a step is called: by its range, else by its number."""
        if step is None:
            return "all"
        for made in self.plans:
            if made is not None and step < len(made.rows):
                ranges = made.report.ranges
                return ranges.names[int(ranges.name[made.rows[step]])]
        return f"step {step + 1}"

    def examples(self, group: str, row: Row, step: int | None) -> BothPicked:
        """One event of a row's name on each side."""
        sides = zip(self.plans, self.windows(step), row.variants, strict=True)
        spans = [
            None if made is None else event_of(made, group, row.key, window, variant)
            for made, window, variant in sides
        ]
        first, second = (None if event is None else Picked(*event) for event in spans)
        return first, second

    def gaps(self, cause: str, step: int | None) -> tuple[list[Span], BothPicked]:
        """One idle gap of a cause on each side, and an operation beside it."""
        spans: list[Span] = [None, None]
        picked: list[Picked | None] = [None, None]
        for side, window in enumerate(self.windows(step)):
            made = self.plans[side]
            if made is not None and (gap := gap_of(made, cause, window)) is not None:
                spans[side], picked[side] = gap[0], Picked(made.report.operations, gap[1])
        return spans, (picked[0], picked[1])


def gather(pair: Pair, names: str, rules: Rules, cache: SideCache) -> Result:
    """Measures both ends and compares them; what was measured before is kept with the report.

    Args:
        pair: both ends, loaded, with further runs of theirs.
        names: how kernels are named, and so which are one; a baseline has its own way.
        rules: what is no change, and how far runs differ where they do not show it.
        cache: of sides that were measured at another time.
    """
    baseline = next((end for end in (pair.a, pair.b) if isinstance(end, Baseline)), None)
    names = baseline.side.style if baseline is not None else names
    ends = [pair.a, *pair.more[0], pair.b, *pair.more[1]]
    plans = [_plan(end, names) if isinstance(end, Part) else None for end in ends]
    measured = [made for made in plans if made is not None]
    if baseline is None or any(pair.more):
        alike = iter(aligned(*measured))
        plans = [None if made is None else next(alike) for made in plans]
    with ThreadPoolExecutor(2) as pool:
        sides = list(pool.map(partial(_side, cache, names), ends, plans))
    second = 1 + len(pair.more[0])
    a, b = pooled_side(sides[:second]), pooled_side(sides[second:])
    comparison = compare(a, b, threshold=rules.threshold, noise=rules.noise)
    return Result(pair, comparison, (plans[0], plans[second]))


def glance(pair: Pair, names: str, rules: Rules, cache: SideCache) -> Comparison | None:
    """The verdict over two reports after a first look; None where it is not sure by then.

    The arguments are those of ``gather``.
    """
    ends = [end for end in (pair.a, pair.b) if isinstance(end, Part)]
    if len(ends) < 2 or any(pair.more):
        return None
    plans = aligned(*(_plan(end, names) for end in ends))
    if not all(made.by_step for made in plans):
        return None
    with ThreadPoolExecutor(2) as pool:
        looks = pool.map(partial(_measured, cache.look), ends, plans)
        found = compare(*looks, threshold=rules.threshold, noise=rules.noise, keys=())
    return found if is_settled(found, *plans) else None


def _plan(part: Part, names: str) -> Plan:
    def make() -> Plan:
        by_step = not part.single
        return plan(part.report, part.scope, style=names, by_step=by_step)

    return part.session.memo(("compare plan", part.scope, part.single, names), make)


def _side(cache: SideCache, names: str, end: End, made: Plan | None) -> Side:
    if isinstance(end, Baseline):
        return end.as_side
    made = made or _plan(end, names)
    key = ("compare side", end.scope, end.single, made.by_step, made.style)
    return replace(
        end.session.memo(key, lambda: _measured(cache.measured, end, made)), label=end.name
    )


def _measured(measuring: Callable[[Plan, str, str], Side], part: Part, made: Plan) -> Side:
    identity = identity_of(part.session.report_id, made.scope, None, made.style)
    return measuring(made, part.name, identity)


def with_findings(result: Result) -> Result:
    """The same with the findings of the expert rules, which take longer than all the rest."""
    pair = result.pair
    return replace(
        result, comparison=add_findings(result.comparison, _findings(pair.a), _findings(pair.b))
    )


def _findings(end: End) -> tuple[Found, ...] | None:
    """None for a baseline, which has its own."""
    from nsys_tui.analysis.rules.ranking import find

    if isinstance(end, Baseline):
        return None
    if end.scope == Scope():
        kept = findings(end.session, end.report).ranked
    else:
        kept = end.session.memo(("findings", end.scope), lambda: find(end.report, end.scope))
    return tuple(map(Found.of, kept))
