"""Core: what the timeline does when a report arrives piece by piece, or the shared state changes.

Each kind of action lies in a file of its own and builds on this one.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from nsys_tui.analysis.timeline.gpu import keep_order
from nsys_tui.analysis.timeline.sample import sample_tracks
from nsys_tui.errors import CancelledError, NsysTuiError
from nsys_tui.state import ColourBy
from nsys_tui.ui.keymap import bindings
from nsys_tui.ui.loader import unexpected
from nsys_tui.ui.messages import Failed
from nsys_tui.ui.screens.timeline.actions import ACTIONS
from nsys_tui.ui.screens.timeline.building import (
    TRACKS_OF,
    Built,
    build,
    device_rows,
    explained_gaps,
    stream_rows,
)
from nsys_tui.ui.screens.timeline.colouring import Colours, colours_of
from nsys_tui.ui.screens.timeline.filtering import Filtered, filtered
from nsys_tui.ui.screens.timeline.framing import Framing
from nsys_tui.ui.screens.timeline.store import Arranged, Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nsys_tui.analysis.timeline.area import Area
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane
    from nsys_tui.model.report import Report
    from nsys_tui.render.dominant import Layers
    from nsys_tui.state import ViewState
    from nsys_tui.ui.session import Session

ORDER = ("sample", "operations", "ranges", "devices", *TRACKS_OF, "explained")
"""Parts are built in this order: streams first, then what all streams of a device do together."""

TOGETHER: Final = 0.1
"""Seconds within which the parts that are built are drawn at once: most, of a small report."""
AT_ONCE: Final = 0.25
"""The same for a report that is loaded when the screen is visited first."""
SHARE: Final = 4
"""So many times the processor time of an order the next one waits: tens of thousands of lanes."""

HUELESS = frozenset(TRACKS_OF) - {"ranges", "projected"}
"""Parts whose events carry no colours of their own."""


class Ready(NamedTuple):
    """What a worker made of a part: all that the screen's own thread need not do."""

    tracks: list[Track]
    layers: dict[Lane, Layers]
    arranged: Arranged | None = None


class TimelineCore(Framing):
    """What all actions of the timeline share."""

    SCREEN = "timeline"
    ACTIONS = ACTIONS
    BINDINGS: ClassVar[list[Any]] = [*bindings(ACTIONS)]
    AUTO_FOCUS = "TimelineCanvas"
    ESCAPE_TO_MINIMIZE = False  # Esc also gives the focus back to the lanes

    def __init__(self) -> None:
        super().__init__()
        self.area: Area | None = None
        self._queue: set[str] = set()
        self._building = ""
        self._drawn_at, self._pause = 0.0, TOGETHER
        self._kept = False
        """Whether all is built and left out of collections of garbage."""
        self._arranging = False
        """Whether a worker puts lanes in order."""
        self._undrawn = False
        """Whether a part was built that is not on the screen yet."""
        self._uncoloured = False
        """Whether a part was built whose events may have colours of their own."""
        self._sampled = False
        """Whether the rows of the GPUs show a sample: their exact ones are drawn without delay."""

    def theme_changed(self) -> None:
        """Colours that ranges bring along depend on the background."""
        self._recolour()

    def show_report(self) -> None:
        """A new report: nothing is known yet."""
        display = self.state.display
        self.store = Store(style=display.names, labels=display.labels)
        self.found = self.area = self.area_from = self.picked = None
        self.explained, self._top, self.span = {}, 0, None
        self._queue, self._building = set(), ""
        self._kept = False
        self._arranging = self._undrawn = self._uncoloured = self._sampled = False
        # Of a report that is loaded all parts are soon built: drawn one by one, the first visit
        # sent the lanes twice.
        whole = self.session.finished
        self._drawn_at = time.monotonic() if whole else 0.0
        self._pause = AT_ONCE if whole else TOGETHER
        self._arrange()
        self.show_facts()

    def part_loaded(self, part: str) -> None:
        """Puts the lanes of a part on the list of what is to be built."""
        if part in ORDER:
            self._queue.add(part)
            self._build_next()

    def load_finished(self) -> None:
        """Ranges can be projected on the GPUs, and idle time explained."""
        report = self.report
        if report is not None and all(map(report.loaded, ("operations", "api", "ranges"))):
            self._queue |= {"projected", "explained"}
        self._build_next()
        self.redraw()

    def _build_next(self) -> None:
        """Builds one part after the other: two threads at once would only wait for each other."""
        session = self.session
        report, sample = session.report, session.sample
        if self._building or report is None or not self._queue:
            return
        part = self._building = min(self._queue, key=ORDER.index)
        self._queue.discard(part)
        if part == "sample" and (sample is None or session.exact):
            self._built(part, None)
            return

        store, drawn = self.store, self._draws(part)

        def work() -> Any:
            try:
                if part == "sample" and sample is not None:
                    return Ready(sample_tracks(sample), {}, None)
                found = self._made(part, session, report)
                if isinstance(found, dict):
                    return found
                return Ready(*found, store.arranged(part, found[0]) if drawn else None)
            except CancelledError:
                return None
            except NsysTuiError as error:
                return error
            except Exception as error:
                return unexpected(error)

        self.compute(f"part:{part}", work, lambda found: self._built(part, found))

    def _made(
        self, part: str, session: Session, report: Report
    ) -> Built | dict[int, NDArray[np.int64]]:
        """What a part is built into; runs in a worker."""
        if part == "operations":
            return stream_rows(session, report)
        if part == "devices":
            return device_rows(session, report)
        if part == "explained":
            return session.memo(("timeline", part), lambda: explained_gaps(report), lasting=True)
        return session.memo(("timeline", part), lambda: build(report, part), lasting=True)

    def _built(
        self, part: str, found: Ready | dict[int, NDArray[np.int64]] | NsysTuiError | None
    ) -> None:
        self._building = ""
        if isinstance(found, NsysTuiError):
            self.app.post_message(Failed(found))
        elif isinstance(found, dict):
            self.explained = found
            self.redraw(fresh=True)
        elif found is not None:
            self._add(part, found)
        self._build_next()
        self._draw_undrawn()
        self._keep_built()

    def _add(self, part: str, ready: Ready) -> None:
        if part == "sample" and "operations" in self.store.parts:
            return
        self._sampled |= part == "sample"
        self.store.add(part, *ready)
        if ready.arranged is not None:
            self._rest(ready.arranged)
        if part == "operations":
            self._queue.add("devices")
        if part not in HUELESS or self.state.display.colour_by is not ColourBy.CATEGORY:
            self._uncoloured = True
        if self._queue and not self._draws(part):
            self._undrawn = True
            self.set_timer(self._pause, self._draw_waiting)
        else:
            self._draw_built()
        self._sampled &= part != "devices"

    def _draws(self, part: str) -> bool:
        """Whether a part is drawn as soon as it is built, and not with more that follows.

        After a sample the rows of the GPUs come next, without delay: others would leave them blank.
        """
        if self._sampled:
            return part in ("sample", "devices")
        return not self._queue or time.monotonic() - self._drawn_at >= self._pause

    def _draw_waiting(self) -> None:
        """Draws what was built while something that lasts is built."""
        if self._undrawn and "devices" not in (*self._queue, self._building):
            self._draw_built()

    def _draw_undrawn(self) -> None:
        """Draws what is not drawn yet, where nothing more is built."""
        if self._undrawn and not self._building:
            self._draw_built()

    def _draw_built(self) -> None:
        """Draws what is built, or has it drawn when what is being put in order is drawn."""
        self._undrawn = self._arranging  # asked for again, it would never come
        if not self._arranging:
            self._refilter()

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """Whatever changed is drawn; what needs a pass over events goes to a worker."""
        before, now = old.display, new.display
        if (before.names, before.labels) != (now.names, now.labels):
            self.store.name(now.names, now.labels)
            self._serial += 1
        if before.colour_by != now.colour_by or (
            before.names != now.names and now.colour_by is ColourBy.NAME
        ):
            self._recolour()
        if old.filter != new.filter:
            self._refilter()
        elif before != now:
            self._arrange()
        if old.selection != new.selection:
            self._pick()
        if old.selection != new.selection or before.names != now.names or before.time != now.time:
            self.show_facts()
        if old.marks != new.marks or before.time != now.time:
            self.show_marks()
        if old.cursor.time != new.cursor.time and old.window == new.window:
            self._follow_cursor()
        self.redraw()

    def _follow_cursor(self) -> None:
        """Moves the window along where only the cursor was sent to a time out of view."""
        window = self.shifted(self.state.cursor.time)
        if window != self.state.window:
            self.session.state = replace(self.session.state, window=window)

    def _refilter(self) -> None:
        """Applies order and filter: at once where both are there already, else in a worker."""
        store, wanted, style = self.store, self.state.filter, self.state.display.names
        stale = store.stale
        if not stale and not wanted:
            self._show_filtered(Filtered(store.whole))
            return

        def work() -> tuple[Arranged | None, Filtered]:
            arranged = store.arranged() if stale else None
            whole = store.whole if arranged is None else arranged.lineup
            return arranged, filtered(whole, wanted, style)

        def show(found: tuple[Arranged | None, Filtered]) -> None:
            self._arranging = False
            arranged, left = found
            if arranged is None or store.take(arranged):
                self._show_filtered(left)
            if arranged is not None:
                self._rest(arranged)
            self._draw_undrawn()

        def failed() -> None:
            self._arranging = False

        self._arranging = stale
        self.compute("filter", work, show, failed, failed)

    def _rest(self, arranged: Arranged) -> None:
        """The longer it took to put lanes in order, the longer that is not done again."""
        self._pause = max(TOGETHER, SHARE * arranged.took)

    def _keep_built(self) -> None:
        """Once all is built, it stays: hundreds of thousands of objects, without cycles."""
        unfinished = self._building or self._queue or self.store.stale
        if not (self._kept or unfinished) and self.session.finished:
            self._kept = True
            self.app.keep()
            if self.report is not None:
                self.compute("order", partial(keep_order, self.report), lambda _: None)

    def _show_filtered(self, found: Filtered) -> None:
        self._drawn_at = time.monotonic()
        if self._uncoloured:
            self._uncoloured = False
            self._recolour()
        self.store.show(found)
        self._arrange()
        if self.state.search.pattern:
            self.search_again()
        if self.picked is None and self.state.selection is not None:
            self._pick()
            self.show_facts()
        if self._unseen:
            self.reveal_selected()
        self.redraw(fresh=True)
        self._keep_built()

    def _recolour(self) -> None:
        """Works out the colours in a worker."""
        tracks, by = self.store.whole.tracks, self.state.display.colour_by
        style, theme = self.state.display.names, self.app.inks.theme
        self.compute("inks", lambda: colours_of(tracks, by, style, theme), self._show_colours)

    def _show_colours(self, found: Colours) -> None:
        self.store.colour(found)
        self.redraw(fresh=True)
