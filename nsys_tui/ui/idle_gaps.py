"""Idle gaps of a report with their causes, found once for the screens and the rules."""

from __future__ import annotations

from nsys_tui.analysis.stalls.causes import Gaps
from nsys_tui.analysis.stalls.gaps import THRESHOLD_NS, Stalls, stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Scope
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.ui.session import Session


def idle_gaps(
    session: Session, report: Report, scope: Scope, threshold_ns: int, progress: Progress
) -> Stalls:
    """Idle gaps with their causes, found once for screens and rules; for a worker.

    Who asks lets their ``work`` rest at the end: the rules go on asking it.
    """

    def find() -> Stalls:
        work = session.memo("host_work", lambda: HostWork(report))
        return stalls(report, scope, threshold_ns=threshold_ns, work=work, progress=progress)

    return session.memo(("stalls", scope, threshold_ns), find)


def gaps_one_by_one(session: Session, report: Report) -> Gaps:
    """Idle gaps of the whole trace, those of launch-bound runs too; for a worker.

    The runs themselves may be among them, without a cause.
    """
    found = idle_gaps(session, report, Scope(), THRESHOLD_NS, silent)
    found.work.rest()
    return stalls(report, merge_runs=False).gaps if found.whole.in_runs_long else found.gaps
