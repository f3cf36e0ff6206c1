"""From a row of a table to its place on the timeline: the same for every screen with evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.timeline.events import key_of, kind_of, naming
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.analysis.window import touching
from nsys_tui.model.events import ApiCalls, EventSet, Operations
from nsys_tui.names import api_name
from nsys_tui.state import Cursor, Selection, Window
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.keymap import SCREENS

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.critical_path import Segment
    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.model.arrays import Indices
    from nsys_tui.model.events import ThreadEvents
    from nsys_tui.model.report import Report
    from nsys_tui.ui.host import Host

AROUND: Final = 5
"""The window is so many times as long as the event, so that its neighbours are seen."""
SHORTEST: Final = 50_000
"""Narrowest window around an event, ns."""


def selection_of(events: EventSet, row: int, name_style: str) -> Selection:
    """One event as what is selected."""
    start = int(events.start[row])
    span = Window(start, max(int(events.end[row]), start))
    label = naming(events, name_style)(row)
    return Selection(kind_of(events), tuple(key_of(events, row)), span, label=label)


def window_around(span: Window, extent: tuple[int, int]) -> Window | None:
    """A window with a span in its middle, inside the trace; None where it would hold all of it."""
    width = max(span.width * AROUND, SHORTEST)
    lo, hi = extent
    if width >= hi - lo:
        return None
    start = min(max(span.start - (width - span.width) // 2, lo), hi - width)
    return Window(start, start + width)


def show_on_timeline(
    app: Host, events: EventSet, row: int, extent: tuple[int, int] | None = None
) -> None:
    """Goes to the timeline, around one event, with it selected; Esc comes back.

    Args:
        app: the app.
        events: the event set.
        row: the event in it.
        extent: the whole trace, where the report in front has yet to be read.
    """
    selection = selection_of(events, row, app.state.display.names)
    changes: dict[str, Any] = {"selection": selection}
    if selection.span is not None:
        changes["window"] = window_around(selection.span, extent or app.session.extent)
        changes["cursor"] = Cursor(selection.span.start)
    app.show("timeline", **changes)


def evidence_of(events: EventSet, row: int) -> Evidence:
    """What a link to an event leads to."""
    device = int(events.device[row]) if isinstance(events, Operations) else None
    start = int(events.start[row])
    return Evidence((start, max(int(events.end[row]), start + 1)), device)


def longest(events: EventSet, rows: Indices) -> int:
    """The longest of some events; there is one."""
    return int(rows[np.argmax(events.durations(rows))])


def show_longest(app: Host, events: EventSet, rows: Indices) -> bool:
    """Goes to the longest of some events; False where there are none."""
    if len(rows):
        show_on_timeline(app, events, longest(events, rows))
    return bool(len(rows))


def show_segment(app: Host, segment: Segment) -> None:
    """Goes to a stretch of a critical path: to its operation, its call, or its time."""
    report, span = app.session.report, Window(segment.start, segment.end)
    if report is None:
        return
    if segment.row >= 0:
        show_on_timeline(app, report.operations, segment.row)
    elif not any(
        show_longest(app, events, _calls_of(segment, events, report))
        for events in (report.api, report.osrt)
    ):
        label = f"{segment.name or segment.what} ({segment.where})"
        app.show(
            "timeline",
            window=window_around(span, app.session.extent),
            selection=Selection("path", (), span, label=label),
            cursor=Cursor(span.start),
        )


def _calls_of(segment: Segment, events: ThreadEvents, report: Report) -> Indices:
    """Rows of the calls that a stretch of a host thread lies in."""
    rows = np.arange(len(events))[touching(events, (segment.start, segment.end))]
    names = [n for n, name in enumerate(events.names) if api_name(name) == segment.name]
    called = [report.thread_name(thread) for thread in events.threads]
    threads = [n for n, name in enumerate(called) if name == segment.where]
    rows = rows[np.isin(events.name[rows], names) & np.isin(events.thread[rows], threads)]
    return rows[events.real[rows]] if isinstance(events, ApiCalls) else rows


def show_finding(app: Host, finding: Finding) -> None:
    """Goes to what a finding is about: on its screen, or the timeline, at its window."""
    names = (spec.name for spec in SCREENS if str(spec.number) == finding.screen)
    screen = next(names, "timeline")
    if finding.window is None:
        app.show(screen)
        return
    (start, end), (first, last) = finding.window, app.session.extent
    margin = max((end - start) // 5, 1)
    window = Window(min(max(start - margin, first), start), max(min(end + margin, last), end))
    key = (finding.rule, start, end)
    app.show(
        screen,
        window=window,
        selection=Selection("finding", key, Window(start, end), (), finding.title),
        cursor=Cursor(start, "" if finding.device is None else gpu_key(finding.device)),
    )
