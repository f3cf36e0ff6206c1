"""What there is to compare with: open reports, baselines, captures, files, and parts of one report.

Parts are iterations, and windows: the one shown, those seen before, between bookmarks, halves.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.analysis.compare.measure import iteration_scope
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.export import baselines
from nsys_tui.state import Window
from nsys_tui.times import window_text
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.recent import nearby, recent
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.compare.pair import Part
from nsys_tui.units import parse_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.report import Report
    from nsys_tui.state import Selection
    from nsys_tui.ui.session import Session

PARTS: Final = "parts"
"""Choosing this asks for two parts of the report in front."""
CAPTURES: Final = 20
"""Most captures that are listed."""
SEEN: Final = 5
"""Most windows seen before that are listed."""


def others(front: Session, sessions: Sequence[Session]) -> list[Entry]:
    """What a report can be compared with; reads folders, so call it from a worker."""
    entries = [Entry(s.name, "open", s) for s in sessions if s is not front]
    what = "two iterations, windows or bookmarks of this report"
    entries += [Entry(what, "parts", PARTS)]
    entries += [Entry(name, "baseline", name) for name in baselines.names()]
    known = {session.path.absolute() for session in sessions}
    captured = {path: text for path, text in captures() if path not in known}
    entries += [Entry(text, "capture", path) for path, text in captured.items()]
    known |= captured.keys()
    paths = dict.fromkeys(path.absolute() for path in (*recent(), *nearby(Path.cwd())))
    return [*entries, *(Entry(str(path), "report", path) for path in paths if path not in known)]


def captures() -> Iterator[tuple[Path, str]]:
    """Reports that captures brought home and that are still there, newest first."""
    from nsys_tui.capture.record import Store

    for record in Store().all()[:CAPTURES]:
        for report in record.reports:
            path = Path(report.local or report.sqlite)
            if path.is_file():
                words = " ".join(record.program)
                yield path.absolute(), f"{path.name}  {record.id}  {words}"


def parts(session: Session, report: Report) -> list[Part]:
    """Parts of a loaded report that may be compared; finds iterations, so call it from a worker."""
    every = replace(report_scope(report, session.state), window=None)
    found = find_iterations(report, scope=every)
    lo, hi = report.span or report.extent
    middle = (lo + hi) // 2
    return [
        *_windows(session, every),
        window_part(session, every, Window(lo, middle), "first half"),
        window_part(session, every, Window(middle, hi), "second half"),
        *(
            Part(
                session,
                iteration_scope(found, number, every),
                f"iteration {number}: {label}{'' if number else ' (warm-up)'}",
                single=True,
            )
            for number, label in enumerate(found.labels)
        ),
    ]


def _windows(session: Session, every: Scope) -> Iterator[Part]:
    """The window shown, those before it, and what bookmarks hold or divide."""
    state, (lo, hi) = session.state, session.extent
    if state.window is not None:
        yield window_part(session, every, state.window, "shown")
    places = reversed((*state.history.back, *state.history.forward))
    seen = dict.fromkeys(place.window for place in places)
    before = [window for window in seen if window is not None and window != state.window]
    yield from (window_part(session, every, window, "seen before") for window in before[:SEEN])
    marks = sorted(state.marks.values(), key=lambda mark: mark.time)
    for mark in marks:
        if mark.window is not None:
            yield window_part(session, every, mark.window, f"bookmark {mark.letter}")
    edges = [(lo, "start"), *((mark.time, mark.letter) for mark in marks), (hi, "end")]
    for (start, first), (end, second) in pairwise(edges if marks else ()):
        if start < end:
            yield window_part(session, every, Window(start, end), f"from {first} to {second}")


def window_part(session: Session, scope: Scope, window: Window, what: str = "") -> Part:
    """A window of a report as a part of it."""
    text = window_text(window, session.state.display.time, session.report)
    return Part(
        session,
        replace(scope, window=(window.start, window.end)),
        f"{what}: {text}" if what else text,
    )


def asked_parts(session: Session, report: Report, selection: Selection) -> tuple[Part, Part]:
    """Two parts that another screen asked for, each by start, end and title."""
    every = replace(report_scope(report, session.state), window=None)
    key: tuple[Any, ...] = selection.key
    first, second = (
        Part(session, replace(every, window=(start, end)), title, single=True)
        for start, end, title in (key[:3], key[3:])
    )
    return first, second


def typed_part(session: Session, report: Report, text: str) -> Part:
    """A window as it was typed, such as ``1.2s/1.5s``.

    Raises:
        UsageError: it is none.
    """
    start, end = parse_window(text)
    lo, hi = session.extent
    window = Window(lo if start is None else start, hi if end is None else end)
    return window_part(session, report_scope(report, session.state), window)
