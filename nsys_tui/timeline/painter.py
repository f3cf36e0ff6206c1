"""Painter: turns the state of the timeline into rows of cells, and remembers what it has drawn.

Only the lanes in view are drawn. A lane is drawn anew when the window, its width or its own look
changes; a move of the cursor only lays the cursor over rows that are there already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nsys_tui.analysis.timeline.tracks import Shape, Track
from nsys_tui.names import cut, fit, visible
from nsys_tui.render.axis import draw_axis
from nsys_tui.render.cells import BOLD, KEY, MUTED, Ink, Row, join, style, text_row
from nsys_tui.render.counters import draw_counter, draw_samples, draw_shares
from nsys_tui.render.labels import Fold, lane_label
from nsys_tui.render.overlay import Overlay, draw_cursor
from nsys_tui.render.pair import draw_pair
from nsys_tui.render.raster import LaneView, draw_lane
from nsys_tui.render.viewport import Viewport
from nsys_tui.timeline.summary_view import NO_TIMES, summary_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from nsys_tui.analysis.timeline.search import Positions
    from nsys_tui.model.events import EventSet, Int64
    from nsys_tui.render.axis import TimeText
    from nsys_tui.render.glyphs import Glyphs
    from nsys_tui.state import Window


class Picked(NamedTuple):
    """One event."""

    events: EventSet
    row: int

    @property
    def start(self) -> int:
        """First nanosecond."""
        return int(self.events.start[self.row])

    @property
    def end(self) -> int:
        """Its end; its start for a point."""
        return int(self.events.end[self.row])


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything that a frame of the timeline shows."""

    rows: Sequence[Track] = ()
    """All rows, also those scrolled out of view."""
    top: int = 0
    """First row in view."""
    window: Window | None = None
    extent: tuple[int, int] = (0, 1)
    cursor: int = 0
    """Moment of the time cursor."""
    lane: str = ""
    """Key of the cursor's row."""
    groups: Collection[str] = ()
    folded: Collection[str] = ()
    pinned: tuple[str, ...] = ()
    picked: Picked | None = None
    matches: Mapping[str, Positions] = field(default_factory=dict)
    """Search matches by row."""
    searching: bool = False
    """Whether counts of matches stand at the right edge."""
    marks: Mapping[str, int] = field(default_factory=dict)
    area: tuple[int, int] | None = None
    view: Callable[[Track], LaneView | None] = lambda _: None
    """How a lane is drawn."""
    own: tuple[str, ...] = ()
    """Colours that events brought along, for the theme."""
    explained: Mapping[int, Int64] = field(default_factory=dict)
    """Ends of the gaps whose cause is known, by device."""
    message: tuple[str, ...] = ()
    """Said instead of lanes where there are none."""
    counters: str = "blocks"
    time: TimeText = lambda ns, _: f"{ns} ns"
    serial: object = None
    """Equal as long as lanes look the same at the same window."""


class Painter:
    """Draws scenes; keeps the rows of the last window."""

    def __init__(self) -> None:
        self._key: object = None
        self._rows: dict[tuple[object, ...], tuple[Row, str]] = {}
        self.exact = True
        """False if a row in view is coloured from a sample."""

    def paint(self, scene: Scene, width: int, height: int, glyphs: Glyphs) -> list[Row]:
        """The axis and the lanes in view: ``height`` rows of ``width`` cells."""
        if scene.message:
            return _said(scene.message, width, height)
        margin = margin_width(width)
        window = viewport(scene, width - margin)
        key = (window.lo, window.hi, width, glyphs.name, scene.serial, scene.counters)
        if key != self._key:
            self._key, self._rows = key, {}
        column = window.cell(scene.cursor)
        shown = scene.rows[scene.top : scene.top + height - 1]
        self.exact = True
        rows = [self._axis(scene, window, margin, glyphs, column)]
        rows += [self._lane(scene, track, window, margin, glyphs, column) for track in shown]
        rows += [Row.blank(width) for _ in range(height - len(rows))]
        return rows

    def _axis(
        self, scene: Scene, window: Viewport, margin: int, glyphs: Glyphs, column: int | None
    ) -> Row:
        axis = draw_axis(
            window,
            scene.time,
            glyphs,
            marks=scene.marks,
            area=scene.area,
            cursor=column,
            origin=0,
        )
        return join(text_row(" time".ljust(margin), style(Ink.AXIS)), axis)

    def _lane(
        self,
        scene: Scene,
        track: Track,
        window: Viewport,
        margin: int,
        glyphs: Glyphs,
        column: int | None,
    ) -> Row:
        lanes = (track,) if track.pair is None else (track, track.pair)
        overlays = [_overlay(scene, lane) for lane in lanes]
        found = [o.matches for o in overlays if o.matches is not None]
        key = (track.key, *(overlay.selected for overlay in overlays))
        if key not in self._rows:
            self._rows[key] = self._draw(scene, track, window, glyphs, overlays)
        drawn, peak = self._rows[key]
        self.exact = self.exact and drawn.exact
        row = Row(drawn.chars.copy(), drawn.styles.copy())
        if scene.searching and found:
            count = f" {sum(map(len, found)):,}"
            row.put(row.width - len(count), count, KEY)
        if column is not None:
            draw_cursor(row, column, glyphs)
        return join(self._margin(scene, track, margin, glyphs, peak), row)

    def _margin(self, scene: Scene, track: Track, width: int, glyphs: Glyphs, peak: str) -> Row:
        is_group = track.key in scene.groups
        fold = (Fold.CLOSED if track.key in scene.folded else Fold.OPEN) if is_group else Fold.LEAF
        current = track.key == scene.lane
        label = track.label
        if peak:
            room = width - 2 * track.depth - 2 - len(peak) - 1
            label = f"{fit(visible(label, glyphs.ascii_only), room)} {peak}"
        if track.key in scene.pinned:
            label = f"^{label}"
        text = lane_label(label, width, glyphs, depth=track.depth, fold=fold, current=current)
        return text_row(text, BOLD if current else 0)

    def _draw(
        self,
        scene: Scene,
        track: Track,
        window: Viewport,
        glyphs: Glyphs,
        overlays: Sequence[Overlay],
    ) -> tuple[Row, str]:
        """A row without cursor, and the peak of a counter."""
        if track.shape is Shape.HEADING:
            row = Row.blank(window.width)
            row.put(1, fit(visible(track.note, glyphs.ascii_only), window.width - 1), MUTED)
            return row, ""
        if track.covered is not None:
            return draw_shares(track.covered, window, glyphs), ""
        if track.counter is not None:
            return self._counter(scene, track, window, glyphs)
        view = _summary(scene, track, window) if track.summary else scene.view(track)
        if view is None:
            return Row.blank(window.width), ""
        if track.pair is None and not view.summary and _empty(view, window):
            return Row.blank(window.width), ""
        if track.pair is not None:
            both = (overlays[0], overlays[1])
            return draw_pair(view, scene.view(track.pair), window, glyphs, both), ""
        return draw_lane(view, window, glyphs, overlays[0]), ""

    def _counter(
        self, scene: Scene, track: Track, window: Viewport, glyphs: Glyphs
    ) -> tuple[Row, str]:
        counter = track.counter
        if counter is None:
            return Row.blank(window.width), ""
        if track.shape is Shape.DENSITY:
            return draw_samples(counter.times, window, glyphs)[0], ""
        row, peak = draw_counter(
            counter.times,
            counter.values,
            window,
            glyphs,
            top=counter.top,
            shape=scene.counters,
            hold=counter.holds,
        )
        return row, short_value(peak, counter.unit)


def _summary(scene: Scene, track: Track, window: Viewport) -> LaneView | None:
    if track.summary is None:
        return None
    return summary_view(track.summary, window, scene.explained.get(track.device or 0, NO_TIMES))


def _overlay(scene: Scene, track: Track) -> Overlay:
    """The selected event and the search matches of a lane."""
    picked, selected = scene.picked, None
    if picked is not None and track.lane is not None and track.events is picked.events:
        selected = position_of(track, picked.row)
    return Overlay(None, selected, scene.matches.get(track.key))


def _empty(view: LaneView, window: Viewport) -> bool:
    """Whether a lane has nothing in a window, which most have when it is narrow."""
    part = view.lane.visible(window.lo, window.hi)
    return bool(part.start == part.stop)


def _said(lines: tuple[str, ...], width: int, height: int) -> list[Row]:
    """A few lines of text, a little below the top."""
    rows = [Row.blank(width) for _ in range(height)]
    for row, line in zip(rows[2:], lines, strict=False):
        row.put(3, cut(visible(line), width - 4), 0)
    return rows


def margin_width(width: int) -> int:
    """Cells of the labels at the left."""
    return 12 if width < 110 else (16 if width < 180 else 20)


def viewport(scene: Scene, columns: int) -> Viewport:
    """The window of a scene over some cells."""
    lo, hi = scene.window or scene.extent
    return Viewport(lo, hi, columns, scene.extent)


def position_of(track: Track, row: int) -> int | None:
    """Position in a track's lane of a row of its event set, or None."""
    events, lane = track.events, track.lane
    if events is None or lane is None or not 0 <= row < len(events):
        return None
    start = int(events.start[row])
    first, last = np.searchsorted(lane.starts, (start, start + 1)).tolist()
    found = np.flatnonzero(lane.index[first:last] == row)
    return first + int(found[0]) if len(found) else None


def short_value(value: float, unit: str) -> str:
    """A counter's value in a few cells: ``97%``, ``1.4G``, ``1410``."""
    if unit == "%":
        return f"{value:.0f}%"
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= scale:
            base = scale if letter != "k" else 1e3
            return (
                f"{value / base:.1f}{letter}"
                if value < 10 * base
                else f"{value / base:.0f}{letter}"
            )
    return f"{value:.0f}"


def runs(row: Row) -> list[tuple[str, int]]:
    """Runs of a row as ``Row.runs``, with blanks joined to what stands before them.

    A blank without a ground shows no coloured ink, so it need not end a run: half as many runs in
    lanes of single events, and as many fewer bytes to the terminal.
    """
    styles = row.styles
    plain = styles < 256
    if plain.any():
        empty = plain & np.fromiter((char == " " for char in row.chars), bool, len(row.chars))
        if empty.any():
            takes = np.where(empty, 0, np.arange(len(styles)))
            source = np.maximum.accumulate(takes)
            styles = np.where(empty & plain[source], styles[source], styles)
    return Row(row.chars, styles).runs()


def same(old: Row, new: Row) -> bool:
    """Whether two rows look alike."""
    return old.chars == new.chars and np.array_equal(old.styles, new.styles)
