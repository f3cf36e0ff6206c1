"""ViewState: what all screens share about one report; frozen, replaced by the functions here.

Nothing in this module knows a screen, a file or the clock. Times are int64 ns since session start.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from nsys_tui.names import NameStyle

HISTORY_DEPTH: Final = 200
ALL_DEPTHS: Final = 1_000
"""NVTX levels that stand for "all"."""

ZOOM_OUT_LIMIT: Final = 1.1
"""A window is never wider than this times the whole trace."""


class Window(NamedTuple):
    """A time window [start, end) in ns."""

    start: int
    end: int

    @property
    def width(self) -> int:
        """Length in ns."""
        return self.end - self.start


class TimeFormat(StrEnum):
    """How times are written."""

    AUTO = "auto"
    NS = "ns"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


class ColourBy(StrEnum):
    """What the colour of an event stands for."""

    CATEGORY = "category"
    STREAM = "stream"
    NAME = "name"
    DURATION = "duration"


class Density(StrEnum):
    """Lanes per row."""

    NORMAL = "normal"
    COMPACT = "compact"


class CounterStyle(StrEnum):
    """How counter lanes are drawn."""

    BLOCKS = "blocks"
    BRAILLE = "braille"
    ASCII = "ascii"


@dataclass(frozen=True)
class Cursor:
    """The time cursor: a moment and a lane, independent of any event."""

    time: int = 0
    lane: str = ""
    """Key of the lane; empty before the first lane was entered."""


@dataclass(frozen=True)
class Selection:
    """What is selected: one thing by kind and stable key, or an area of time and lanes."""

    kind: str
    """``operation``, ``api``, ``range``, ``row``, ``frame``, ``area``, …: what ``key`` means."""
    key: tuple[Hashable, ...] = ()
    """Stable over a reload, such as (table, rowid)."""
    span: Window | None = None
    """Where it lies in time, for fitting the window to it."""
    lanes: tuple[str, ...] = ()
    """Lanes of an area."""
    label: str = ""
    """What a title calls it."""


@dataclass(frozen=True)
class Filter:
    """What is shown at all; empty fields let everything through."""

    pattern: str = ""
    min_duration: int = 0
    """Shorter events are hidden but still counted, ns."""
    devices: frozenset[int] = frozenset()
    """Indices into the report's devices."""
    streams: frozenset[int] = frozenset()
    """Indices into the report's streams."""
    processes: frozenset[int] = frozenset()
    """globalPid values."""

    def __bool__(self) -> bool:
        return self != Filter()


@dataclass(frozen=True)
class Search:
    """A search in progress."""

    pattern: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Matches per lane or table."""
    current: int = -1
    """Position of the current match in the order of the screen that searches, -1 for none."""
    exact: bool = False
    """Whether names are the pattern, and not only match it."""


@dataclass(frozen=True)
class Display:
    """How things are drawn; the live panel edits exactly these."""

    names: NameStyle = NameStyle.SHORT
    time: TimeFormat = TimeFormat.AUTO
    colour_by: ColourBy = ColourBy.CATEGORY
    density: Density = Density.NORMAL
    counters: CounterStyle = CounterStyle.BLOCKS
    labels: bool = True
    """Whether events carry their names."""
    nvtx_depth: int = ALL_DEPTHS
    """NVTX levels drawn per thread."""
    blank: bool = False
    """Whether lanes without an event in the window are drawn."""
    pinned: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    folded: frozenset[str] = frozenset()
    """Groups of lanes that the user folded."""
    opened: frozenset[str] = frozenset()
    """Groups of lanes that the user unfolded."""


@dataclass(frozen=True)
class Mark:
    """A bookmark with the context that going to it restores."""

    letter: str
    time: int
    screen: str
    lane: str = ""
    selection: Selection | None = None
    window: Window | None = None
    filter: Filter = field(default_factory=Filter)
    colour_by: ColourBy = ColourBy.CATEGORY
    label: str = ""
    """What was under the cursor: event name and innermost range."""
    note: str = ""


@dataclass(frozen=True)
class Place:
    """One entry of the jump-back history."""

    screen: str
    window: Window | None
    cursor: Cursor
    selection: Selection | None
    view: Any = None
    """The screen's own scroll position and sort order; opaque here."""


@dataclass(frozen=True)
class History:
    """Where the user came from and, after going back, where to return."""

    back: tuple[Place, ...] = ()
    forward: tuple[Place, ...] = ()
    moving: bool = False
    """True after a pan or zoom: the following ones belong to the same entry."""


@dataclass(frozen=True)
class ViewState:
    """Everything the screens of one report share."""

    window: Window | None = None
    """None is "all": the whole trace, whatever its extent after a reload."""
    cursor: Cursor = field(default_factory=Cursor)
    selection: Selection | None = None
    filter: Filter = field(default_factory=Filter)
    search: Search = field(default_factory=Search)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    history: History = field(default_factory=History)
    display: Display = field(default_factory=Display)

    def shown(self, extent: tuple[int, int]) -> Window:
        """The window in ns; ``extent`` is what "all" means."""
        return self.window or Window(*extent)


def here(state: ViewState, screen: str, view: Any = None) -> Place:
    """The present place, for the history."""
    return Place(screen, state.window, state.cursor, state.selection, view)


def jumped(state: ViewState, origin: Place, **changes: Any) -> ViewState:
    """Applies ``changes`` (fields of ``ViewState``) as a jump that can be undone."""
    back = (*state.history.back, origin)[-HISTORY_DEPTH:]
    return replace(state, history=History(back), **changes)


def moved(state: ViewState, origin: Place, **changes: Any) -> ViewState:
    """Applies a pan or zoom step; consecutive ones count as one history entry."""
    if state.history.moving:
        return replace(state, **changes)
    back = (*state.history.back, origin)[-HISTORY_DEPTH:]
    return replace(state, history=History(back, moving=True), **changes)


def gone_back(state: ViewState, origin: Place) -> tuple[ViewState, Place | None]:
    """The state one entry back, and the place to show; None at the start of the history."""
    if not state.history.back:
        return state, None
    *rest, target = state.history.back
    history = History(tuple(rest), (*state.history.forward, origin))
    return _at(state, target, history), target


def gone_forward(state: ViewState, origin: Place) -> tuple[ViewState, Place | None]:
    """Undoes ``gone_back``; None when there is nothing ahead."""
    if not state.history.forward:
        return state, None
    *rest, target = state.history.forward
    history = History((*state.history.back, origin), tuple(rest))
    return _at(state, target, history), target


def _at(state: ViewState, place: Place, history: History) -> ViewState:
    return replace(
        state,
        window=place.window,
        cursor=place.cursor,
        selection=place.selection,
        history=history,
    )


def marked(state: ViewState, mark: Mark) -> ViewState:
    """Sets a bookmark, replacing one of the same letter."""
    return replace(state, marks={**state.marks, mark.letter: mark})


def unmarked(state: ViewState, letter: str) -> ViewState:
    """Removes a bookmark; an unknown letter changes nothing."""
    return replace(state, marks={k: m for k, m in state.marks.items() if k != letter})


def at_mark(state: ViewState, mark: Mark, *, only_time: bool = False) -> dict[str, Any]:
    """Changes that going to a bookmark makes, for ``jumped``."""
    cursor = Cursor(mark.time, mark.lane)
    if only_time:
        return {"cursor": replace(state.cursor, time=mark.time)}
    return {
        "window": mark.window,
        "cursor": cursor,
        "selection": mark.selection,
        "filter": mark.filter,
        "display": replace(state.display, colour_by=mark.colour_by),
    }


def displayed(state: ViewState, **changes: Any) -> ViewState:
    """Replaces fields of ``display``."""
    return replace(state, display=replace(state.display, **changes))


def cycled(value: StrEnum) -> Any:
    """The next member of the same enumeration, after the last one the first."""
    members = list(type(value))
    return members[(members.index(value) + 1) % len(members)]


def zoomed(
    window: Window, extent: tuple[int, int], factor: float, about: int, columns: int
) -> Window | None:
    """Zooms about a moment that keeps its place on the screen.

    Args:
        window: what is shown now.
        extent: the whole trace.
        factor: < 1 zooms in, > 1 out.
        about: moment that stays where it is, ns.
        columns: cells over which the window is drawn; zooming stops at 1 ns per column.

    Returns:
        The new window, or None ("all") when it would exceed the limit around the whole trace.
    """
    whole = extent[1] - extent[0]
    if window.width * factor >= whole * ZOOM_OUT_LIMIT:
        return None
    width = max(int(window.width * factor), columns, 1)
    left = (about - window.start) * width // max(window.width, 1)
    return bounded(Window(about - left, about - left + width), extent)


def panned(window: Window, extent: tuple[int, int], by: int) -> Window:
    """Moves a window by ``by`` ns, at most until the trace leaves it."""
    return bounded(Window(window.start + by, window.end + by), extent)


def bounded(window: Window, extent: tuple[int, int]) -> Window:
    """Keeps at least one end of a window inside the trace, without changing its width."""
    width = window.width
    start = min(max(window.start, extent[0] - width // 20), extent[1] + width // 20 - width)
    if width > extent[1] - extent[0]:
        start = extent[0] - (width - (extent[1] - extent[0])) // 2
    return Window(start, start + width)
