"""Place: where the user is on the timeline: rows, window, cursor, selection, and how they change.

``move`` is for pans and zooms, ``jump`` for what Backspace undoes, ``point`` for the cursor alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsys_tui.analysis.timeline.events import find, key_of, kind_of
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.model.events import ThreadEvents
from nsys_tui.render.glyphs import glyphs_for
from nsys_tui.state import (
    ALL_DEPTHS,
    Cursor,
    Density,
    Selection,
    Window,
    displayed,
    here,
    jumped,
    moved,
)
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.screens.timeline.store import Store
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.ui.widgets.timeline.painter import Picked, position_of

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.beside import Beside
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.events import EventSet
    from nsys_tui.model.report import Report


BESIDE: Final = "beside"
"""``Selection.kind`` of an event of a report beside: (its key, kind, table, rowid)."""


class Owner(NamedTuple):
    """Where an event is at home."""

    report: Report
    events: EventSet
    """With the times of that report."""
    offset: int
    """ns from those times to the ones on the screen."""


class Placed(ReportScreen):
    """The timeline's state, without its drawing."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.rows = Lineup().shown()
        self.picked: Picked | None = None
        self.beside: dict[str, Beside] = {}
        """Other reports whose lanes stand below, by the key of their heading."""
        self.span: tuple[int, int] | None = None
        """First operation's start to last operation's end."""
        self._unseen = False
        """Whether the cursor is still to be put on a selection that came from elsewhere."""
        self._sent: Selection | None = None
        """The last selection that came from elsewhere."""
        self._serial = 0
        self._extent = (0, 1)
        self._folded: frozenset[str] = frozenset()

    def redraw(self, *, fresh: bool = False) -> None:
        """Draws the present state; ``fresh`` where lanes look different at the same window."""

    def _arrange(self) -> None:
        """Works out which rows there are."""
        display, lineup = self.state.display, self.store.filtered.lineup
        depth = display.nvtx_depth
        self.rows = lineup.shown(
            hidden=display.hidden,
            toggled=display.folded,
            pinned=display.pinned,
            levels=None if depth >= ALL_DEPTHS else depth,
        )
        if display.density is Density.COMPACT and self.half_blocks:
            self.rows = self.rows.paired()
        self._folded = lineup.toggled(display.folded)
        spans = [self.session.extent, *(found.extent for found in self.beside.values())]
        self._extent = min(lo for lo, _ in spans), max(hi for _, hi in spans)
        report = self.report
        exact = report is not None and self.session.exact
        self.span = report.span if report is not None and exact else None
        self._serial += 1

    @property
    def half_blocks(self) -> bool:
        """Whether two lanes fit into one row here: not in ASCII, and not without colours."""
        return bool(glyphs_for(self.app.ascii, self.app.inks.theme.kind).upper)

    @property
    def row(self) -> Track | None:
        """The cursor's row."""
        return self.rows[self.row_number] if self.rows else None

    @property
    def row_number(self) -> int:
        """Its number; where the cursor's row is not shown, the first GPU's busiest stream."""
        number = self.rows.number(self.state.cursor.lane)
        return self.rows.busiest if number is None else number

    @property
    def extent(self) -> tuple[int, int]:
        """The whole trace."""
        return self._extent

    @property
    def window(self) -> Window:
        """The window shown."""
        return self.state.shown(self._extent)

    @property
    def canvas(self) -> TimelineCanvas:
        """The lanes on the screen."""
        return self.query_one(TimelineCanvas)

    @property
    def cursor_time(self) -> int:
        """The cursor's moment; before it was moved, the begin of the work in view."""
        cursor, window = self.state.cursor, self.window
        if cursor != Cursor() or self.span is None:
            return cursor.time
        begin = self.span[0]
        return begin if window.start <= begin < window.end else window.start

    def move(self, window: Window | None, time: int | None = None) -> None:
        """Pans or zooms; several in a row are one step of the history."""
        cursor = Cursor(self.cursor_time if time is None else time, self._lane_key)
        state = moved(self.state, self._here(), window=window, cursor=cursor)
        self.app.set_state(state)

    def jump(self, **changes: Any) -> None:
        """Goes somewhere as a jump that Backspace undoes."""
        self.app.set_state(jumped(self.state, self._here(), **changes))

    def point(self, time: int | None = None, lane: str | None = None, **changes: Any) -> None:
        """Moves the cursor and changes other fields, without a step in the history."""
        cursor = Cursor(
            self.cursor_time if time is None else time, self._lane_key if lane is None else lane
        )
        self.app.set_state(replace(self.state, cursor=cursor, **changes))

    def _here(self) -> Any:
        return here(self.state, self.SCREEN, self.view())

    @property
    def _lane_key(self) -> str:
        row = self.row
        return row.key if row is not None else ""

    def shifted(self, time: int, part: float = 0.5) -> Window | None:
        """The window, moved if it does not hold a time so that it lies at ``part`` of it."""
        window = self.window
        if window.start <= time < window.end:
            return self.state.window
        start = time - int(window.width * part)
        return Window(start, start + window.width)

    def selection_of(self, events: EventSet, row: int) -> Selection:
        """An event as the selection."""
        start = int(events.start[row])
        end = max(int(events.end[row]), start + 1)
        kind, key = kind_of(events), tuple(key_of(events, row))
        if (place := self._beside_of(events)) is not None:
            kind, key = BESIDE, (place, kind, *key)
        return Selection(kind, key, Window(start, end), label=self.store.naming(events)(row))

    def _beside_of(self, events: EventSet) -> str | None:
        """Key of the report beside that events belong to; None for the report in front."""
        return next((key for key, found in self.beside.items() if events in found.own), None)

    def owner(self, events: EventSet) -> Owner | None:
        """The report that events belong to, and how they stand there."""
        if (place := self._beside_of(events)) is not None:
            found = self.beside[place]
            return Owner(found.report, found.own[events], found.offset)
        return None if self.report is None else Owner(self.report, events, 0)

    def _find(self, selection: Selection) -> Picked | None:
        """The event of a selection, where its lane can be shown."""
        report, key = self.report, selection.key
        if selection.kind != BESIDE:
            found = None if report is None else find(report, selection.kind, key)
            return None if found is None else Picked(*found)
        there = self.beside.get(str(key[0])) if len(key) == 4 else None
        found = None if there is None else find(there.report, str(key[1]), key[2:])
        if there is None or found is None:
            return None
        moved = (events for events, own in there.own.items() if own is found[0])
        return next((Picked(events, found[1]) for events in moved), None)

    def select(self, events: EventSet, row: int, time: int, lane: str, **changes: Any) -> None:
        """Selects an event and puts the cursor on it."""
        selection = self.selection_of(events, row)
        self.picked = Picked(events, row)
        self.point(time, lane, selection=selection, **changes)

    def _pick(self) -> None:
        """Finds the event of a selection that came from elsewhere."""
        selection, report = self.state.selection, self.report
        if selection is None or report is None or selection.kind == "area":
            self.picked = None
            return
        picked = self.picked
        if picked is not None and self.selection_of(picked.events, picked.row).key == selection.key:
            return
        self.picked = self._find(selection)
        self._unseen = self.picked is not None
        self._sent = selection
        self.reveal_selected()

    @property
    def was_sent(self) -> bool:
        """Whether the selection is what another screen showed here just before."""
        back = self.state.history.back
        if not back or back[-1].screen == self.SCREEN:
            return False
        return self.state.selection == self._sent

    def reveal_selected(self) -> None:
        """Moves the cursor to a selection that another screen made, once its lane is there."""
        if self.picked is None or (track := self.track_of(self.picked)) is None:
            return
        self._unseen = False
        self.unfold(track)
        time = int(self.picked.events.start[self.picked.row])
        self.session.state = replace(self.state, cursor=Cursor(time, track.key))

    def unfold(self, track: Track) -> None:
        """Shows a lane that is hidden or in a folded group."""
        display = self.state.display
        toggled = display.folded ^ (self._folded & frozenset(track.parents))
        hidden = display.hidden - {track.key, *track.parents}
        if toggled != display.folded or hidden != display.hidden:
            self.session.state = displayed(self.state, folded=toggled, hidden=hidden)
            self._arrange()

    def track_of(self, picked: Picked) -> Track | None:
        """The track that holds an event, among all that the filter leaves."""
        events, row = picked.events, picked.row
        thread = None
        if isinstance(events, ThreadEvents) and 0 <= row < len(events):
            thread = int(events.threads[events.thread[row]])
        held = self.store.filtered.lineup.holders(events, thread)
        return next((track for track in held if position_of(track, row) is not None), None)


def keys_of(track: Track) -> tuple[str, ...]:
    """Keys of the one or two lanes of a row."""
    return (track.key,) if track.pair is None else (track.key, track.pair.key)
