"""LaneBuilder: has the lanes built in workers, part by part, and drawn as soon as it pays.

Two threads at once would only wait for each other, so parts are built one after the other.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from nsys_tui.analysis.timeline.gpu import keep_order, sample_tracks
from nsys_tui.state import ColourBy
from nsys_tui.timeline.filtering import Colours, coloured_parts, colours_of
from nsys_tui.timeline.model import WHOLE
from nsys_tui.timeline.parts import ORDER, STREAMS, explained_gaps, part_tracks
from nsys_tui.ui.idle_gaps import gaps_one_by_one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane
    from nsys_tui.model.report import Report
    from nsys_tui.render.dominant import Layers
    from nsys_tui.timeline.filtering import Filtered
    from nsys_tui.timeline.lanes import Arranged, Lanes
    from nsys_tui.timeline.summary_view import Explained
    from nsys_tui.ui.screens.timeline.model_screen import ModelScreen
    from nsys_tui.ui.session import Session

T = TypeVar("T")

TOGETHER: Final = 0.1
"""Seconds within which the parts that are built are drawn at once: most, of a small report."""
AT_ONCE: Final = 0.25
"""The same for a report that is loaded when the screen is visited first."""
SHARE: Final = 4
"""The next drawing waits so many times the processor time that it took to put lanes in order, which
is long where there are tens of thousands."""
ORDERING: Final = "lanes"
"""Work that puts lanes in order and filters them."""


class Ready(NamedTuple):
    """What a worker made of a part: all that the screen's own thread need not do."""

    tracks: list[Track]
    layers: Mapping[Lane, Layers]
    arranged: Arranged | None = None
    """All tracks in order, these included, where they are drawn next."""


class LaneBuilder:
    """Builds the lanes of the report in front.

    Args:
        screen: whose model the lanes are of, and whose workers build them.
        drawn: hears that other lanes are drawn from now on.
    """

    def __init__(self, screen: ModelScreen, drawn: Callable[[], None]) -> None:
        self._screen, self._drawn = screen, drawn
        self.reset()

    def reset(self, *, loaded: bool = False) -> None:
        """Begins anew, with another report.

        Args:
            loaded: all of it is read. Its parts are soon built: drawn one by one, the first visit
                sent the lanes twice.
        """
        self.waiting: set[str] = set()
        self.building = ""
        self.drawn_at = time.monotonic() if loaded else 0.0
        self.pause = AT_ONCE if loaded else TOGETHER
        self._coloured_for: object = None
        self._kept_for: Report | None = None

    @property
    def lanes(self) -> Lanes:
        """As far as they are built."""
        return self._screen.model.lanes

    def part_loaded(self, part: str) -> None:
        """Puts a part that is read on the list of what is to be built."""
        if part in ORDER:
            self.waiting.add(part)
            self._build_next()

    def load_finished(self) -> None:
        """Ranges can be projected on the GPUs, and idle time explained."""
        report = self._screen.report
        if report is not None:
            self.waiting |= {"states", "steps"}
        if report is not None and all(map(report.loaded, WHOLE)):
            self.waiting |= {"projected", "explained"}
        self._build_next()

    def _build_next(self) -> None:
        session = self._screen.session
        report = session.report
        if self.building or report is None or not self.waiting:
            return
        part = self.building = min(self.waiting, key=ORDER.index)
        self.waiting.discard(part)
        if part == "explained":
            self._build(part, partial(self._explain, session, report), self._explained)
            return
        lanes, is_next = self.lanes, self._is_drawn(part)

        def work_on_part() -> Ready | None:
            ready = self.make(session, report, part)
            if ready is None or not is_next:
                return ready
            return ready._replace(arranged=lanes.built(part, *ready[:2]).arranged())

        self._build(part, work_on_part, partial(self.built, part))

    def _build(self, part: str, work: Callable[[], T | None], done: Callable[[T], None]) -> None:
        def ended(made: T | None) -> None:
            self.building = ""
            if made is not None:
                done(made)
            self._build_next()
            self._draw_rest()
            self._keep()

        nothing = partial(ended, None)
        self._screen.compute(f"part:{part}", work, ended, nothing, lambda _: nothing())

    def make(self, session: Session, report: Report, part: str) -> Ready | None:
        """Builds the tracks of a part; runs in a worker."""
        if part != "sample":
            return Ready(*part_tracks(session.memo, report, part))
        if session.sample is None or session.exact:
            return None
        return Ready(sample_tracks(session.sample), {})

    def built(self, part: str, ready: Ready) -> None:
        """Takes in what a worker made of a part."""
        if part == "sample" and STREAMS in self.lanes.parts:
            return
        lanes = self.lanes.built(part, ready.tracks, ready.layers)
        if ready.arranged is not None and ready.arranged.version == lanes.version:
            lanes = replace(lanes, whole=ready.arranged)
        self._screen.put_lanes(lanes)
        if part == STREAMS:
            self.waiting.add("devices")
        if self.waiting and not self._is_drawn(part):
            self._screen.set_timer(self.pause, self._draw_waiting)
        else:
            self.draw()

    def _explain(self, session: Session, report: Report) -> Mapping[int, Explained]:
        """Why the GPUs stood idle; in a worker."""
        return session.memo(
            ("timeline", "explained"),
            lambda: explained_gaps(gaps_one_by_one(session, report)),
            lasting=True,
        )

    def _explained(self, gaps: Mapping[int, Explained]) -> None:
        self._screen.put_lanes(replace(self.lanes, explained=gaps))
        self._screen.redraw()

    def _is_drawn(self, part: str) -> bool:
        """Whether a part is drawn as soon as it is built, and not with more that follows.

        After a sample the rows of the GPUs come next, without delay: others would leave them blank.
        """
        if self.lanes.sampled:
            return part in ("sample", "devices")
        return not self.waiting or time.monotonic() - self.drawn_at >= self.pause

    def _draw_waiting(self) -> None:
        """Draws what was built while something that lasts is built."""
        if self.lanes.undrawn and "devices" not in (*self.waiting, self.building):
            self.draw()

    def _draw_rest(self) -> None:
        """Draws what is not drawn yet, where nothing more is built, or where the filter changed."""
        lanes = self.lanes
        refiltered = lanes.shown.wanted != self._screen.state.filter
        if refiltered or (lanes.undrawn and not self.building):
            self.draw()

    def draw(self) -> None:
        """Draws what is built as the filter leaves it: at once where all is in order already."""
        if self._screen.task_of(ORDERING).busy:
            return  # asked for again, it would never come; what is missing follows it
        lanes, state = self.lanes, self._screen.state
        wanted, style = state.filter, state.display.names
        if lanes.stale or wanted:
            self._screen.compute(ORDERING, lambda: lanes.drawn(wanted, style), self._ordered)
        else:
            self._show(*lanes.drawn(wanted, style))

    def _ordered(self, made: tuple[Arranged, Filtered]) -> None:
        whole, shown = made
        if whole.version >= self.lanes.whole.version:
            self._show(whole, shown)
        self._draw_rest()

    def _show(self, whole: Arranged, shown: Filtered) -> None:
        self.drawn_at = time.monotonic()
        self.pause = max(TOGETHER, SHARE * whole.took)
        self._screen.put_lanes(self.lanes.showing(whole, shown))
        self.recolour()
        self._drawn()
        self._keep()

    def recolour(self) -> None:
        """Has colours worked out where they would differ from those asked for last."""
        whole, display = self.lanes.whole, self._screen.state.display
        by, style, theme = display.colour_by, display.names, self._screen.app.inks.theme
        parts = coloured_parts(whole.parts, by)
        wanted = (parts, by, theme, style if by is ColourBy.NAME else "")
        if wanted == self._coloured_for:
            return
        self._coloured_for = wanted
        tracks = whole.lineup.tracks if parts else ()
        self._screen.compute(
            "colours", lambda: colours_of(tracks, by, style, theme), self._coloured
        )

    def _coloured(self, colours: Colours) -> None:
        self._screen.put_lanes(replace(self.lanes, colours=colours))
        self._screen.redraw()

    def _keep(self) -> None:
        """Once all is built, it stays: hundreds of thousands of objects, without cycles."""
        screen, report = self._screen, self._screen.report
        unfinished = self.building or self.waiting or self.lanes.stale
        if report is None or unfinished or self._kept_for is report or not screen.session.finished:
            return
        self._kept_for = report
        screen.app.keep()
        screen.compute("order", partial(keep_order, report), lambda _: None)
