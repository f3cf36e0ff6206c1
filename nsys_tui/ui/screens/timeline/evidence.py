"""Evidence: facts of a selection that another screen made and that is no event of a lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.rules.ranking import find
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.timeline.evidence import finding_facts, gap_facts
from nsys_tui.analysis.timeline.facts import Facts
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.report import Report
    from nsys_tui.state import Selection
    from nsys_tui.ui.session import Session

    Moment = Callable[[int], str]

EVIDENCE: Final = ("gap", "finding")
"""``Selection.kind`` of what has facts beyond its span."""


def span_facts(selection: Selection, moment: Moment) -> Facts:
    """What a selection says by itself: its kind, label and span."""
    if selection.span is None:
        return Facts(selection.label, ())
    start, end = selection.span
    title = f"{selection.kind}: {selection.label}" if selection.label else selection.kind
    what = (("what", selection.label),) if selection.label else ()
    return Facts(title, (("start", moment(start)), ("dur", format_duration(end - start)), *what))


def evidence_facts(session: Session, selection: Selection, moment: Moment) -> Facts:
    """All that is known about a gap or a finding; slow, for a worker."""
    report = session.report
    if report is None:
        return span_facts(selection, moment)
    known = (_gap if selection.kind == "gap" else _finding)(session, report, selection, moment)
    return known or span_facts(selection, moment)


def _gap(session: Session, report: Report, selection: Selection, moment: Moment) -> Facts | None:
    place, start, end = (value if isinstance(value, int) else -1 for value in selection.key)
    work = session.memo("host_work", lambda: HostWork(report))
    return gap_facts(report, work, (place, start, end), moment)


def _finding(
    session: Session, report: Report, selection: Selection, moment: Moment
) -> Facts | None:
    found = session.memo("findings", lambda: find(report))
    fits = (
        entry
        for entry in found
        if entry.window is not None
        and (entry.rule, *entry.window) == selection.key
        and entry.title == selection.label
    )
    entry = next(fits, None)
    return None if entry is None else finding_facts(report, entry, moment)
