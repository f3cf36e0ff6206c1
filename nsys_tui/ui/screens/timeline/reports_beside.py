"""ReportsBeside: the lanes of other open reports as groups below those of the report in front."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.identity import environment_of, from_name
from nsys_tui.analysis.timeline.other_report import Beside, alignment, beside, heading
from nsys_tui.timeline.filtering import layers_of
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.matching import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane
    from nsys_tui.model.report import Report
    from nsys_tui.render.dominant import Layers
    from nsys_tui.ui.screens.timeline.model_screen import ModelScreen
    from nsys_tui.ui.session import Session

    Made = tuple[Track, Beside, dict[Lane, Layers]]

FRONT: Final = "report"
"""Key of the line above the lanes of the report in front."""


class ReportsBeside:
    """Lets reports join and leave.

    Args:
        screen: whose model they join.
        changed: hears that lanes came or went.
    """

    def __init__(self, screen: ModelScreen, changed: Callable[[], None]) -> None:
        self._screen, self._changed = screen, changed
        self._joining: set[str] = set()
        self._asked = ""
        """Key of the report that was asked for last: the cursor goes there."""

    def reset(self) -> None:
        """Those that were beside a report join it again."""
        self._joining = set()

    def ask(self) -> None:
        """Asks for an open report whose lanes are to join or leave."""
        app, front = self._screen.app, self._screen.session
        others = [session for session in app.sessions if session is not front]
        if not others:
            app.say("no other report is open: o opens one, or name several at the start")
            return
        joined = set(map(key_of, front.beside))
        entries = [
            Entry(str(each.path), "leave" if key_of(each) in joined else "join", key_of(each))
            for each in others
        ]
        if len(others) > 1:
            entries.insert(0, Entry("all open reports", "join", ""))
        app.ask(Picker("Lanes of another report in this timeline", entries), self._choose)

    def _choose(self, key: str) -> None:
        app, front = self._screen.app, self._screen.session
        if key in map(key_of, front.beside):
            front.beside = [guest for guest in front.beside if key_of(guest) != key]
            self._screen.take(self._screen.model.left(key))
            self._changed()
            return
        self._asked = key
        for other in app.sessions:
            if other is not front and key in ("", key_of(other)):
                app.put_beside(other)
        self.join_all()

    def join_all(self) -> None:
        """Has all join that are wanted here and were read meanwhile."""
        for guest in self._screen.session.beside:
            self._join(guest)

    def _join(self, guest: Session) -> None:
        screen, other, key = self._screen, guest.report, key_of(guest)
        report = screen.report
        if key in screen.model.beside or key in self._joining or not guest.finished:
            return
        if report is None or other is None:
            return
        self._joining.add(key)
        number = list(map(key_of, screen.app.sessions)).index(key) + 1
        memo = ("beside", key_of(screen.session), number)
        screen.compute(
            key,
            lambda: guest.memo(memo, lambda: made(report, guest, number)),
            lambda lanes: self._joined(guest, lanes),
        )

    def _joined(self, guest: Session, lanes: Made | None) -> None:
        key, screen = key_of(guest), self._screen
        self._joining.discard(key)
        if lanes is not None and guest in screen.session.beside:
            front, other, layers = lanes
            screen.adopt(screen.model.joined(key, other, layers, front))
            self._changed()

    def go_to_joined(self) -> None:
        """Goes to the report that was asked for, once its lanes are there."""
        model = self._screen.model
        number = model.rows.number(self._asked)
        if number is not None:
            key, self._asked = self._asked, ""
            top = max(0, number - model.size.rows // 2)
            self._screen.take(replace(model, top=top).pointed(lane=key))


def key_of(session: Session) -> str:
    """Key of a report's heading: the same after a reload."""
    return f"report:{session.path.absolute()}"


def made(report: Report, guest: Session, number: int) -> Made | None:
    """The lanes of a report beside, ready to be drawn; for a worker."""
    other = guest.report
    if other is None or not other.loaded("operations") or not other.loaded("ranges"):
        return None
    front = heading(FRONT, 0, report_label(report), f"{report.path.name}: the report in front")
    laid = alignment(report, other)
    head = heading(key_of(guest), number, report_label(other), f"{guest.name}: {laid.why}")
    lanes = beside(other, laid.offset, head, number)
    return front, lanes, layers_of(lanes.tracks)


def report_label(report: Report) -> str:
    """``rank 3`` where environment or file name tell it of a single process, else the file."""
    if len(report.operations.processes) == 1:
        named = from_name(report.path.stem)
        ranks = (environment_of(report).rank, named.rank, named.number)
        rank = next((rank for rank in ranks if rank is not None), None)
        if rank is not None:
            return f"rank {rank}"
    return report.path.stem
