"""Idle gaps of a report with their causes, found once for the screens and the rules."""

from __future__ import annotations

from nsys_tui.analysis.stalls.gaps import Stalls, stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Scope
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.ui.session import Session


def idle_gaps(
    session: Session, report: Report, scope: Scope, threshold_ns: int, progress: Progress
) -> Stalls:
    """Idle gaps with their causes, found once for screens and rules; for a worker."""

    def find() -> Stalls:
        work = session.memo("host_work", lambda: HostWork(report))
        try:
            return stalls(report, scope, threshold_ns=threshold_ns, work=work, progress=progress)
        finally:
            work.rest()

    return session.memo(("stalls", scope, threshold_ns), find)
