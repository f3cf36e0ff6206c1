"""What the expert rules find in a report, found once for the screens that tell of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nsys_tui.analysis.window import Scope
from nsys_tui.model.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.analysis.rules.not_looked_at import NotLookedAt
    from nsys_tui.analysis.stalls.gaps import Stalls
    from nsys_tui.model.report import Report
    from nsys_tui.ui.session import Session


class Findings(NamedTuple):
    """What the expert rules found."""

    ranked: list[Finding]
    """The gravest first, without the times by which they were ranked: a GPU idles millions."""
    verdict: str
    unseen: list[NotLookedAt]
    """What no rule could look at."""


def findings(
    session: Session,
    report: Report,
    splits: Sequence[DeviceSplit] | None = None,
    progress: Progress = silent,
) -> Findings:
    """What the expert rules find in a whole report; for a worker.

    Args:
        session: keeps findings and idle gaps for the screens that show them.
        report: the report.
        splits: where the time of each device went, if that is known already.
        progress: told after each rule.
    """

    def find() -> Findings:
        from nsys_tui.analysis.rules.case import Case
        from nsys_tui.analysis.rules.not_looked_at import not_looked_at
        from nsys_tui.analysis.rules.ranking import find_in
        from nsys_tui.analysis.rules.verdict import verdict
        from nsys_tui.analysis.stalls.gaps import THRESHOLD_NS
        from nsys_tui.ui.idle_gaps import idle_gaps

        def idle() -> Stalls:
            return idle_gaps(session, report, Scope(), THRESHOLD_NS, progress)

        case = Case(report, splits=splits, idle=idle)
        ranked = find_in(case, progress)
        told = verdict(case, ranked), not_looked_at(case)
        case.work.rest()
        return Findings([replace(f, lost=None, gone=None, held=None) for f in ranked], *told)

    return session.memo("findings", find)
