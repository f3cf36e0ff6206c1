"""TimelineModel: the timeline at one moment. Every action makes the next one of it.

``moved`` is for pans and zooms, ``jumped`` for what Backspace undoes, ``pointed`` for the cursor
alone. What the user is told in passing is part of the next moment too.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from nsys_tui.analysis.timeline.events import find, key_of, kind_of
from nsys_tui.analysis.timeline.lineup import Rows
from nsys_tui.analysis.timeline.other_report import Beside
from nsys_tui.analysis.timeline.search import Found, lanes_of
from nsys_tui.analysis.timeline.tracks import Track
from nsys_tui.model.arrays import Integers
from nsys_tui.model.events import EventSet, ThreadEvents
from nsys_tui.model.lanes import Lane
from nsys_tui.model.report import Report
from nsys_tui.render.dominant import Layers
from nsys_tui.render.viewport import Viewport
from nsys_tui.state import (
    ALL_DEPTHS,
    Cursor,
    Density,
    Selection,
    ViewState,
    Window,
    displayed,
    here,
    jumped,
    moved,
)
from nsys_tui.timeline.lanes import Lanes
from nsys_tui.timeline.opening import FewSteps, opening
from nsys_tui.timeline.painter import Picked, position_of
from nsys_tui.times import moment_text

SCREEN: Final = "timeline"
"""Its name in the history."""
BESIDE: Final = "beside"
"""``Selection.kind`` of an event of a report beside: (its key, kind, table, rowid)."""


WHOLE: Final = ("operations", "api", "ranges")
"""Parts that must be there before ranges are projected on the GPUs and idle time is explained."""


TALL: Final = 24
"""Lanes in view from which on room below them is filled."""


class Trace(NamedTuple):
    """What is known of the report in front so far."""

    extent: tuple[int, int] = (0, 1)
    """The whole trace, ns."""
    span: tuple[int, int] | None = None
    """First operation's start to last operation's end; None until all are read."""
    finished: bool = False
    """Whether nothing more is read."""
    few: FewSteps | None = None
    """Steps to begin with, where there are many."""


class CanvasSize(NamedTuple):
    """The cells that lanes are drawn in."""

    columns: int = 66
    """Of a lane, without its label."""
    rows: int = 17
    """Lanes in view."""
    half_blocks: bool = False
    """Whether two lanes fit into one row: not in ASCII, and not without colours."""


class Owner(NamedTuple):
    """Where an event is at home."""

    report: Report
    events: EventSet
    """With the times of that report."""
    offset: int
    """ns from those times to the ones on the screen."""


@dataclass(frozen=True, eq=False)
class TimelineModel:
    """State of the timeline; replaced, never changed."""

    view: ViewState = field(default_factory=ViewState)
    """Shared with the other screens: window, cursor, selection, filter, search, folds, history."""
    report: Report | None = None
    """In front."""
    trace: Trace = field(default_factory=Trace)
    size: CanvasSize = field(default_factory=CanvasSize)
    lanes: Lanes = field(default_factory=Lanes)
    beside: Mapping[str, Beside] = field(default_factory=dict)
    """Other reports whose lanes stand below, by the key of their heading."""
    picked: Picked | None = None
    """The event of the selection, where it is one that a lane holds."""
    found: Found | None = None
    """Matches of the search."""
    path: Mapping[str, Integers] = field(default_factory=dict)
    """Work on the critical path that is shown, by lane."""
    area_start: tuple[int, str] | None = None
    """Moment and row at which an unfinished area begins."""
    pressed: tuple[int, str] | None = None
    """Moment and row at which the button of the pointer went down."""
    on_axis: bool = False
    """Whether that was on the axis, where a drag zooms."""
    sent: Selection | None = None
    """The last selection that came from elsewhere."""
    reached: Selection | None = None
    """The last of these that the cursor was put on; its lane may come later than it."""
    top: int = 0
    """First row in view."""
    all_asked: bool = False
    """Whether the user asked for all of the trace before it was known what it opens on."""
    said: str | None = None
    """What the user is told in passing; an empty text takes back what was said before."""

    @cached_property
    def rows(self) -> Rows:
        """The rows that there are, also those scrolled out of view."""
        kept = (self.view.cursor.lane, *self.view.display.pinned)
        blank = self.view.display.blank or not self.trace.finished
        return self.all_rows if blank else self.all_rows.without_empty(self.window, kept)

    @cached_property
    def all_rows(self) -> Rows:
        """These, and those without an event in the window."""
        display = self.view.display
        return self.lanes.shown.lineup.shown(
            hidden=display.hidden,
            opened=display.opened | self._opened_by_room,
            folded=display.folded,
            pinned=display.pinned,
            levels=None if display.nvtx_depth >= ALL_DEPTHS else display.nvtx_depth,
            paired=display.density is Density.COMPACT and self.size.half_blocks,
        )

    @property
    def _opened_by_room(self) -> frozenset[str]:
        """Groups that open by themselves on a tall screen; small ones keep to what matters most."""
        is_tall = self.trace.finished and self.size.rows >= TALL
        return self.lanes.shown.lineup.filling(self.size.rows) if is_tall else frozenset()

    @cached_property
    def row_number(self) -> int:
        """The cursor's row; where it is not shown, the first GPU's busiest stream."""
        number = self.rows.number(self.view.cursor.lane)
        return self.rows.busiest if number is None else number

    @property
    def row(self) -> Track | None:
        """The cursor's row."""
        return self.rows[self.row_number] if self.rows else None

    @property
    def lane_key(self) -> str:
        """Key of the cursor's row."""
        return row.key if (row := self.row) is not None else ""

    @property
    def extent(self) -> tuple[int, int]:
        """The whole trace, those of the reports beside included."""
        spans = [self.trace.extent, *(other.extent for other in self.beside.values())]
        return min(lo for lo, _ in spans), max(hi for _, hi in spans)

    @property
    def window(self) -> Window:
        """The window shown; where the user chose none, what the trace opens on."""
        return self.view.window or self.home or Window(*self.extent)

    @cached_property
    def home(self) -> Window | None:
        """A few of many steps, or GPU work that takes a small part of the trace only."""
        trace = self.trace
        if self.beside or self.all_asked:
            return None
        return opening(trace.span, trace.few, self.extent, self.size.columns)

    @property
    def everything(self) -> Window | None:
        """The whole trace as a window; None where it is what is shown without one."""
        return None if self.home is None else Window(*self.extent)

    @cached_property
    def viewport(self) -> Viewport:
        """The window over the cells of a lane."""
        return Viewport(*self.window, self.size.columns, self.extent)

    @property
    def cursor_time(self) -> int:
        """The cursor's moment; before it was moved, the first event of its lane in view."""
        cursor, window, few = self.view.cursor, self.window, self.trace.few
        if cursor != Cursor():
            return cursor.time
        begin = max(window.start, few.start if few is not None else window.start)
        lanes = lanes_of(row) if (row := self.row) is not None else ()
        places = ((lane, int(np.searchsorted(lane.starts, begin))) for lane in lanes)
        first = min((int(lane.starts[at]) for lane, at in places if at < len(lane)), default=begin)
        return first if first < window.end else begin

    @property
    def was_sent(self) -> bool:
        """Whether the selection is what another screen showed here just before."""
        back = self.view.history.back
        chosen = self.view.selection is not None and self.view.selection == self.sent
        return chosen and bool(back) and back[-1].screen != SCREEN

    def opened_on(self, few: FewSteps) -> TimelineModel:
        """Shows a few of many steps: from the beginning, or as a jump where all was seen before."""
        if self.all_asked or self.view.window is not None or self.view.cursor != Cursor():
            return self
        if not self.lanes.whole.lineup:
            return replace(self, trace=self.trace._replace(few=few))
        window = opening(None, few, self.extent, self.size.columns)
        return self.jumped(window=window).telling(f"shown: {few} (0: all, Backspace: as before)")

    def moment(self, time: int, step: int | None = None) -> str:
        """A moment as text, as finely as a column of the window shows it or as ``step`` ns."""
        window = self.window
        finest = max(1, window.width // (self.size.columns * 10))
        style = self.view.display.time
        return moment_text(time, step or finest, style, self.report, window.start)

    def exactly(self, time: int) -> str:
        """A moment to the microsecond."""
        return self.moment(time, 1000)

    def name_of(self, picked: Picked) -> str:
        """What an event is called."""
        return self.lanes.names.of(picked.events, self.view.display.names)(picked.row)

    @property
    def current(self) -> Picked | None:
        """The selected event, or the one under the cursor."""
        return self.picked or self.under_cursor

    @property
    def under_cursor(self) -> Picked | None:
        """The longest event in the cursor's cell, or the selected one if the cursor is on it."""
        picked, time = self.picked, self.cursor_time
        if picked is not None and picked.start <= time < max(picked.end, picked.start + 1):
            return picked
        track = self.row
        if track is None or track.events is None:
            return None
        lo, hi = self.cell_of(time)
        longest: tuple[int, int] | None = None
        for lane in lanes_of(track):
            spot = lane.longest_in(lo, hi)
            if spot is not None:
                length = int(lane.ends[spot] - lane.starts[spot])
                longest = max(longest or (-1, -1), (length, int(lane.index[spot])))
        return None if longest is None else Picked(track.events, longest[1])

    def cell_of(self, time: int) -> tuple[int, int]:
        """Begin and end of the cell that holds a time; outside the window the time alone."""
        cell = self.viewport.cell(time)
        if cell is None:
            return time, time + 1
        lo, hi = self.viewport.edges[[cell, cell + 1]].tolist()
        return lo, max(hi, lo + 1)

    def selection_of(self, picked: Picked) -> Selection:
        """An event as the selection."""
        events, row = picked
        kind, key = kind_of(events), tuple(key_of(events, row))
        if (place := self.beside_of(events)) is not None:
            kind, key = BESIDE, (place, kind, *key)
        span = Window(picked.start, max(picked.end, picked.start + 1))
        return Selection(kind, key, span, label=self.name_of(picked))

    def beside_of(self, events: EventSet) -> str | None:
        """Key of the report beside that events belong to; None for the report in front."""
        return next((key for key, other in self.beside.items() if events in other.own), None)

    def owner(self, events: EventSet) -> Owner | None:
        """The report that events belong to, and how they stand there."""
        if (place := self.beside_of(events)) is not None:
            other = self.beside[place]
            return Owner(other.report, other.own[events], other.offset)
        return None if self.report is None else Owner(self.report, events, 0)

    def event_of(self, selection: Selection) -> Picked | None:
        """The event of a selection, where its report has it."""
        key, other = selection.key, None
        if selection.kind != BESIDE:
            held = None if self.report is None else find(self.report, selection.kind, key)
            return None if held is None else Picked(*held)
        if len(key) == 4:
            other = self.beside.get(str(key[0]))
        held = None if other is None else find(other.report, str(key[1]), key[2:])
        if other is None or held is None:
            return None
        return next(
            (Picked(e, held[1]) for e, local in other.own.items() if local is held[0]), None
        )

    def track_of(self, picked: Picked) -> Track | None:
        """The track that holds an event, among all that the filter leaves."""
        events, row = picked
        thread = None
        if isinstance(events, ThreadEvents) and 0 <= row < len(events):
            thread = int(events.threads[events.thread[row]])
        tracks = self.lanes.shown.lineup.holders(events, thread)
        return next((track for track in tracks if position_of(track, row) is not None), None)

    def telling(self, text: str) -> TimelineModel:
        """Tells the user something in passing."""
        return replace(self, said=text)

    def looking(self, **changes: Any) -> TimelineModel:
        """Changes fields of the shared state, without a step in the history."""
        return replace(self, view=replace(self.view, **changes))

    def displaying(self, **changes: Any) -> TimelineModel:
        """Changes how things are drawn, and which."""
        return replace(self, view=displayed(self.view, **changes))

    def moved(self, window: Window | None, time: int | None = None) -> TimelineModel:
        """Pans or zooms; several in a row are one step of the history."""
        cursor = Cursor(self.cursor_time if time is None else time, self.lane_key)
        origin = here(self.view, SCREEN, self.top)
        return replace(self, view=moved(self.view, origin, window=window, cursor=cursor))

    def jumped(self, **changes: Any) -> TimelineModel:
        """Goes somewhere as a jump that Backspace undoes."""
        return replace(self, view=jumped(self.view, here(self.view, SCREEN, self.top), **changes))

    def asked_for_all(self) -> TimelineModel:
        """Keeps to the whole trace, whatever is found later to open it on."""
        return replace(self, all_asked=self.home is None)

    def pointed(
        self, time: int | None = None, lane: str | None = None, **changes: Any
    ) -> TimelineModel:
        """Moves the cursor and changes other fields, without a step in the history."""
        cursor = Cursor(
            self.cursor_time if time is None else time, self.lane_key if lane is None else lane
        )
        return self.looking(cursor=cursor, **changes)

    def selected(self, picked: Picked, time: int, lane: str, **changes: Any) -> TimelineModel:
        """Selects an event and puts the cursor on it."""
        chosen = replace(self, picked=picked)
        return chosen.pointed(time, lane, selection=self.selection_of(picked), **changes)

    def unselected(self) -> TimelineModel:
        """Gives the selection up."""
        return replace(self, picked=None).pointed(selection=None)

    def shifted(self, time: int, part: float = 0.5) -> Window | None:
        """The window, moved if it does not hold a time so that it lies at ``part`` of it."""
        window = self.window
        if window.start <= time < window.end:
            return self.view.window
        start = time - int(window.width * part)
        return Window(start, start + window.width)

    def arrived(self, picked: Picked, track: Track, **changes: Any) -> TimelineModel:
        """Jumps to an event of a lane, which is unfolded, and moves the window if need be."""
        return replace(self.unfolded(track), picked=picked).jumped(
            window=self.shifted(picked.start),
            cursor=Cursor(picked.start, track.key),
            selection=self.selection_of(picked),
            **changes,
        )

    def unfolded(self, track: Track) -> TimelineModel:
        """Shows a lane that is hidden or in a folded group."""
        display = self.view.display
        closed = self.rows.folded & frozenset(track.parents)
        hidden = display.hidden - {track.key, *track.parents}
        if not closed and hidden == display.hidden:
            return self
        return self.unfolding(closed).displaying(hidden=hidden)

    def unfolding(self, keys: Set[str]) -> TimelineModel:
        """Unfolds groups."""
        display = self.view.display
        return self.displaying(opened=display.opened | keys, folded=display.folded - keys)

    def folding(self, keys: Set[str]) -> TimelineModel:
        """Folds groups."""
        display = self.view.display
        return self.displaying(opened=display.opened - keys, folded=display.folded | keys)

    def at_row(self, top: int) -> TimelineModel:
        """Shows rows from a number on."""
        return replace(self, top=top)

    def scrolled(self) -> TimelineModel:
        """Keeps the cursor's row in view."""
        last = max(0, len(self.rows) - self.size.rows)
        top = min(max(self.top, self.row_number - self.size.rows + 1), self.row_number)
        top = min(max(top, 0), last)
        return self if top == self.top else replace(self, top=top)

    def following(self) -> TimelineModel:
        """Takes up a selection that another screen, a mark or the history brought."""
        selection, picked = self.view.selection, self.picked
        if selection is None or self.report is None or selection.kind == "area":
            return replace(self, picked=None)
        if picked is not None and self.selection_of(picked).key == selection.key:
            return self
        return replace(self, picked=self.event_of(selection), sent=selection, reached=None)

    def reaching(self) -> TimelineModel:
        """Puts the cursor on such a selection, as soon as its lane is there."""
        if self.picked is None or self.reached is self.sent or self.view.selection != self.sent:
            return self
        track = self.track_of(self.picked)
        if track is None:
            return self
        cursor = Cursor(self.picked.start, track.key)
        return replace(self.unfolded(track), reached=self.sent).looking(cursor=cursor)

    def joined(
        self, key: str, other: Beside, layers: Mapping[Lane, Layers], heading: Track
    ) -> TimelineModel:
        """Has the lanes of another report stand below, those of each report under a line."""
        lanes = self.lanes.built(key, other.tracks, layers).below(heading)
        return replace(self, beside={**self.beside, key: other}, lanes=lanes)

    def left(self, key: str) -> TimelineModel:
        """Gives the lanes of a report beside up, with what is selected of it."""
        gone = self.picked is not None and self.beside_of(self.picked.events) == key
        model = self.unselected() if gone else self
        beside = {other: lanes for other, lanes in self.beside.items() if other != key}
        lanes = self.lanes.without(key)
        return replace(model, beside=beside, lanes=lanes if beside else lanes.below(None))
