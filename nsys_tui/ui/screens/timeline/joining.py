"""Joining: the lanes of other open reports as groups below those of the report in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.timeline.beside import Beside, alignment, beside, heading
from nsys_tui.fleet.identity import environment_of, from_name
from nsys_tui.times import window_text
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.screens.timeline.colouring import layers_of
from nsys_tui.ui.screens.timeline.core import TimelineCore

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane
    from nsys_tui.model.report import Report
    from nsys_tui.render.dominant import Layers
    from nsys_tui.ui.screens.timeline.filtering import Filtered
    from nsys_tui.ui.session import Session

    Made = tuple[Track, Beside, dict[Lane, Layers]]

OWN: Final = "report"
"""Key of the line above the lanes of the report in front."""


class Joining(TimelineCore):
    """Actions on reports beside."""

    def __init__(self) -> None:
        super().__init__()
        self._joining: set[str] = set()
        self._asked = ""
        """Key of the report that was asked for last: the cursor goes there."""

    def show_report(self) -> None:
        """Those that were beside this report join it again."""
        self.beside, self._joining = {}, set()
        super().show_report()

    def sync(self) -> None:
        """Beside what every screen hears of: a report beside may have been read meanwhile."""
        super().sync()
        if self.is_mounted and self.is_current and self.session.finished:
            for guest in self.session.beside:
                self._join(guest)

    def title_parts(self) -> tuple[str, str]:
        """The window may hold more than the report in front."""
        left, right = super().title_parts()
        if not self.beside:
            return left, right
        text = window_text(self.window, self.state.display.time, self.report)
        return left, f"{text} (all)" if self.state.window is None else text

    def action_timeline_beside(self) -> None:
        """Asks for an open report whose lanes are to join or leave."""
        others = [each for each in self.app.sessions if each is not self.session]
        if not others:
            self.app.say("no other report is open: o opens one, or name several at the start")
            return
        joined = {key_of(guest) for guest in self.session.beside}
        entries = [
            Entry(str(each.path), "leave" if key_of(each) in joined else "join", key_of(each))
            for each in others
        ]
        if len(others) > 1:
            entries.insert(0, Entry("all open reports", "join", ""))
        title = "Lanes of another report in this timeline"
        self.app.push_screen(Picker(title, entries), self._choose)

    def _choose(self, key: str | None) -> None:
        if key is None:
            return
        if any(key_of(each) == key for each in self.session.beside):
            self._leave(key)
            return
        self._asked = key
        for other in self.app.sessions:
            if other is not self.session and key in ("", key_of(other)):
                self.app.put_beside(other)
        self.sync()

    def _leave(self, key: str) -> None:
        self.session.beside = [each for each in self.session.beside if key_of(each) != key]
        if self.picked is not None and self._beside_of(self.picked.events) == key:
            self.picked = None
            self.point(selection=None)
        self.beside.pop(key, None)
        self.store.remove(key)
        if not self.beside:
            self.store.head(None)
        self._uncoloured = True
        self._refilter()
        self.refresh_chrome()

    def _join(self, guest: Session) -> None:
        report, other, key = self.report, guest.report, key_of(guest)
        if key in self.beside or key in self._joining or not guest.finished:
            return
        if report is None or other is None:
            return
        self._joining.add(key)
        keys = [key_of(each) for each in self.app.sessions]
        number = keys.index(key) + 1

        def work() -> Made | None:
            memo = ("beside", key_of(self.session), number)
            return guest.memo(memo, lambda: made(report, guest, number))

        self.compute(key, work, lambda found: self._joined(guest, found))

    def _joined(self, guest: Session, found: Made | None) -> None:
        key = key_of(guest)
        self._joining.discard(key)
        if found is None or guest not in self.session.beside:
            return
        own, joined, layers = found
        self.beside[key] = joined
        self.store.head(own)
        self.store.add(key, list(joined.tracks), layers)
        self._uncoloured = True
        self._refilter()
        self.refresh_chrome()

    def _show_filtered(self, found: Filtered) -> None:
        """Goes to the report that was asked for, once its lanes are there."""
        super()._show_filtered(found)
        number = self.rows.number(self._asked)
        if number is not None:
            key, self._asked = self._asked, ""
            self._top = max(0, number - self.canvas.lanes_shown // 2)
            self.point(lane=key)


def key_of(session: Session) -> str:
    """Key of a report's heading: the same after a reload."""
    return f"report:{session.path.absolute()}"


def made(report: Report, guest: Session, number: int) -> Made | None:
    """The lanes of a report beside, ready to be drawn; for a worker."""
    other = guest.report
    if other is None or not other.loaded("operations") or not other.loaded("ranges"):
        return None
    own = heading(OWN, 0, report_label(report), f"{report.path.name}: the report in front")
    laid = alignment(report, other)
    head = heading(key_of(guest), number, report_label(other), f"{guest.name}: {laid.why}")
    found = beside(other, laid.offset, head, number)
    return own, found, layers_of(found.tracks)


def report_label(report: Report) -> str:
    """``rank 3`` where environment or file name tell it of a single process, else the file."""
    if len(report.operations.processes) == 1:
        named = from_name(report.path.stem)
        ranks = (environment_of(report).rank, named.rank, named.number)
        rank = next((rank for rank in ranks if rank is not None), None)
        if rank is not None:
            return f"rank {rank}"
    return report.path.stem
