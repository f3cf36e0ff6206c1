"""Choosing what is compared: open reports, baselines, captures, files, and parts of one report.

Parts are iterations, and windows: the one shown, those seen before, between bookmarks, halves.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.analysis.compare.plan import iteration_scope
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.export import baselines
from nsys_tui.state import Selection, Window
from nsys_tui.times import window_text
from nsys_tui.ui.dialogs.picker import Picker, choose
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import failures_shown
from nsys_tui.ui.recent import distinct, nearby, recent
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.compare.pair import Pair, Part, shown_part
from nsys_tui.ui.session import Session
from nsys_tui.units import closed, parse_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.report import Report

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
    paths = distinct([*known, *recent(), *nearby(Path.cwd())])
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
    iterations = find_iterations(report, scope=every)
    lo, hi = report.span or report.extent
    middle = (lo + hi) // 2
    return [
        *_windows(session, every),
        window_part(session, every, Window(lo, middle), "first half"),
        window_part(session, every, Window(middle, hi), "second half"),
        *(
            Part(
                session,
                iteration_scope(iterations, number, every),
                f"iteration {number}: {label}" + " (warm-up)" * (number < iterations.warm_up),
                single=True,
            )
            for number, label in enumerate(iterations.labels)
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
    window = Window(*closed(parse_window(text), session.extent))
    return window_part(session, report_scope(report, session.state), window)


NO_RUNS = ("parts", "baseline")
"""What a side has no further run of."""

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.export.baselines import Baseline
    from nsys_tui.ui.screens.base import ReportScreen


class Choosing:
    """Knows the two, and asks for others.

    Args:
        screen: asks, and has the report in front.
        changed: hears that others are chosen.
    """

    def __init__(self, screen: ReportScreen, changed: Callable[[], None]) -> None:
        self._screen, self._changed = screen, changed
        self.other: Session | Baseline | None = None
        self.parts: tuple[Part, Part] | None = None
        """Two parts of one report, which are compared while it is in front."""
        self.is_swapped = False
        self.runs: tuple[list[Session], list[Session]] = ([], [])
        """Further runs of A and of B."""

    @property
    def pair(self) -> Pair | None:
        """What is compared, as its window and filter show it.

        Two parts of the report in front, or that report and the one chosen, of which the one
        opened first is A.
        """
        pair = self._parts_pair() or self._reports_pair()
        if pair is not None and any(self.runs) and self.parts is None:
            more = [tuple(map(shown_part, sessions)) for sessions in self.runs]
            pair = replace(pair, more=(more[0], more[1]))
        return pair.swapped if pair is not None and self.is_swapped else pair

    @property
    def is_part(self) -> bool:
        """Whether less than the whole of both reports is compared."""
        pair = self.pair
        windows = [] if pair is None else [session.state.window for session in pair.sessions]
        return pair is not None and (self.parts is not None or any(windows))

    def choose_whole(self) -> None:
        """The whole of both reports instead of their windows, or of two parts of one."""
        screen, pair = self._screen, self.pair
        if self.parts is not None:
            self.choose_parts(None)
            return
        for session in pair.sessions if pair is not None else ():
            if session is not screen.session:
                session.state = replace(session.state, window=None)
        screen.app.show(screen.SCREEN, window=None)

    def _parts_pair(self) -> Pair | None:
        parts = self.parts
        here = parts is not None and parts[0].session is self._screen.session
        return Pair(*parts) if parts is not None and here else None

    def _reports_pair(self) -> Pair | None:
        front, sessions = self._screen.session, self._screen.app.sessions
        other = self.other
        if isinstance(other, Session):
            other = next((s for s in sessions if s.path == other.path), None)
        if other is None or other is front:
            others = [session for session in sessions if session is not front]
            other = others[0] if len(sessions) == 2 else None
        if other is None:
            return None
        if not isinstance(other, Session):
            return Pair(other, shown_part(front))
        pair = Pair(shown_part(other), shown_part(front))
        return pair.swapped if sessions.index(front) < sessions.index(other) else pair

    @property
    def other_name(self) -> str:
        """What was chosen, as ``choose`` understands it; empty where nothing was."""
        if isinstance(self.other, Session):
            return str(self.other.path)
        return self.other.name if self.other is not None else ""

    def choose_before(self, path: Path) -> None:
        """The report at a path as A, and the one in front as B."""
        app = self._screen.app
        self.parts, self.runs = None, ([], [])
        earlier = self.other = app.session_at(path)
        self.is_swapped = app.sessions.index(app.session) < app.sessions.index(earlier)

    def choose(self, value: Session | Path | str) -> None:
        """Compares with an open report, a baseline by its name, or the report at a path."""
        app = self._screen.app
        self.runs = ([], [])
        with failures_shown(app):
            if isinstance(value, Session):
                self.other = value
            elif isinstance(value, str) and value in baselines.names():
                self.other = baselines.load(value)
            else:
                self.other = app.session_at(Path(value).expanduser())
            self.choose_parts(None)

    def choose_parts(self, parts: tuple[Part, Part] | None) -> None:
        """Compares two parts of the report in front; without any, whole reports again."""
        self.parts, self.is_swapped = parts, False
        self._changed()

    def forget(self, session: Session) -> None:
        """Neither a report that is closed nor parts of it are compared any more."""
        if self.other is session:
            self.other = None
        for runs in self.runs:
            runs[:] = [run for run in runs if run is not session]
        if self.parts is not None and self.parts[0].session is session:
            self.parts = None

    def ask(self) -> None:
        """Asks what to compare with."""

        def chosen(value: Session | Path | str) -> None:
            if value == PARTS:
                self.ask_parts()
            else:
                self.choose(value)

        def ask(entries: list[Entry]) -> None:
            screen.app.ask(Picker("Compare with", entries, free=True), chosen)

        screen = self._screen
        front, sessions = screen.session, tuple(screen.app.sessions)
        screen.compute("others", lambda: others(front, sessions), ask)

    def ask_run(self) -> None:
        """Asks for another run, then whether it is one of A or of B."""
        screen = self._screen
        front, sessions = screen.session, tuple(screen.app.sessions)

        def chosen(value: Session | Path) -> None:
            if self.other is None:
                # Of two reports the other one need not be chosen; a third leaves it open.
                self.other = next((s for s in sessions if s is not front), None)
            with failures_shown(screen.app):
                run = value if isinstance(value, Session) else screen.app.session_at(Path(value))
                sides = self.runs[::-1] if self.is_swapped else self.runs
                answers = {
                    key: (f"of {key.upper()}", partial(self._add_run, runs, run))
                    for key, runs in zip("ab", sides, strict=True)
                }
                choose(screen.app, f"{run.name} is another run", answers)

        def ask(entries: list[Entry]) -> None:
            pair = self.pair
            taken = pair.sessions if pair is not None else []
            left = [e for e in entries if e.value not in taken and e.detail not in NO_RUNS]
            screen.app.ask(Picker("Another run", left, free=True), chosen)

        screen.compute("others", lambda: others(front, sessions), ask)

    def _add_run(self, runs: list[Session], run: Session) -> None:
        runs.append(run)
        self._changed()

    def ask_parts(self) -> None:
        """Asks for two parts of the report in front."""
        session, report = self._screen.session, self._screen.report
        if report is None:
            return

        def ask(choices: list[Part]) -> None:
            entries = [
                Entry(part.title, "step" if part.single else "window", part) for part in choices
            ]
            self._ask_part("A (before)", entries, lambda a: second(entries, a))

        def second(entries: list[Entry], a: Part) -> None:
            rest = [entry for entry in entries if entry.value != a]
            self._ask_part("B (after)", rest, lambda b: self.choose_parts((a, b)))

        self._screen.compute("parts", lambda: parts(session, report), ask)

    def _ask_part(self, which: str, entries: list[Entry], then: Callable[[Part], None]) -> None:
        screen = self._screen

        def chosen(value: Part | str) -> None:
            report = screen.report
            if report is None:
                return
            with failures_shown(screen.app):
                if isinstance(value, str):
                    value = typed_part(screen.session, report, value)
                then(value)

        title = f"Part {which}: choose, or type a window such as 1.2s/1.5s"
        screen.app.ask(Picker(title, entries, free=True), chosen)
