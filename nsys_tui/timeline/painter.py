"""Painter: turns the state of the timeline into rows of cells, and remembers what it has drawn.

Only the lanes in view are drawn. A lane is drawn anew when the window, its width or its own look
changes; a move of the cursor only lays the cursor over rows that are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.timeline.tracks import Counter, Shape, Track
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.events import EventSet
from nsys_tui.names import cut, fit, pad, visible
from nsys_tui.render.axis import TimeText, draw_axis
from nsys_tui.render.cells import BOLD, KEY, MUTED, Ink, Row, join, style, text_row
from nsys_tui.render.counters import draw_counter, draw_samples, draw_shares
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.labels import Fold, lane_label
from nsys_tui.render.pair import draw_pair
from nsys_tui.render.raster import LaneView, Overlay, draw_cursor, draw_lane
from nsys_tui.render.viewport import Viewport
from nsys_tui.state import Window
from nsys_tui.timeline.summary_view import NOTHING, Explained, summary_view
from nsys_tui.units import format_bytes, format_count, format_number, format_share

ROOMY: Final = 110
"""Cells from which on labels stand in words, and figures at the right."""
WIDE: Final = 14
"""Their cells."""


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
    labels: int = 0
    """Cells that the longest label takes."""
    sizes: bool = False
    """Whether a lane's peak is a number of bytes, which takes more cells beside its label."""
    groups: Collection[str] = ()
    folded: Collection[str] = ()
    pinned: tuple[str, ...] = ()
    picked: Picked | None = None
    related: Callable[[], Collection[Picked]] = tuple
    """Events in the window that belong to the picked one; asked for when either changes."""
    matches: Mapping[str, Integers] = field(default_factory=dict)
    """Search matches by row."""
    searching: bool = False
    """Whether counts of matches stand at the right edge."""
    marks: Mapping[str, int] = field(default_factory=dict)
    area: tuple[int, int] | None = None
    view: Callable[[Track], LaneView | None] = lambda _: None
    """How a lane is drawn."""
    own: tuple[str, ...] = ()
    """Colours that events brought along, for the theme."""
    explained: Mapping[int, Explained] = field(default_factory=dict)
    """The gaps whose cause is known, by device."""
    below: Callable[[], str] = str
    """What is said below the last lane; asked for only where there is room."""
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
        self._related: tuple[object, Collection[Picked]] = (None, ())

    def paint(self, scene: Scene, width: int, height: int, glyphs: Glyphs) -> list[Row]:
        """The axis and the lanes in view: ``height`` rows of ``width`` cells."""
        if scene.message:
            return _said(scene.message, width, height)
        margin = margin_width(width, scene.labels, sizes=scene.sizes)
        window = viewport(scene, width - margin - tally_width(width))
        key = (window.lo, window.hi, width, glyphs.name, scene.serial, scene.counters)
        if key != self._key:
            self._key, self._rows = key, {}
        column = window.cell(scene.cursor)
        shown = scene.rows[scene.top : scene.top + height - 1]
        asked = (scene.picked, *key)
        if self._related[0] != asked:
            self._related = asked, scene.related() if scene.picked else ()
        frame = _Frame(scene, window, margin, tally_width(width), glyphs, column, self._related[1])
        rows = [self._axis(frame)]
        rows += [self._lane(frame, track) for track in shown]
        is_last = scene.top + len(shown) == len(scene.rows)
        if is_last and len(rows) < height and (below := scene.below()):
            rows.append(text_row(cut(visible(f" {below}"), width).ljust(width), MUTED))
        rows += [Row.blank(width) for _ in range(height - len(rows))]
        return rows

    def _axis(self, frame: _Frame) -> Row:
        scene = frame.scene
        axis = draw_axis(
            frame.window,
            scene.time,
            frame.glyphs,
            marks=scene.marks,
            area=scene.area,
            cursor=frame.column,
            origin=0,
        )
        head = text_row(" time".ljust(frame.margin), style(Ink.AXIS))
        above = "matches" if scene.searching else "in view"
        return join(head, axis, text_row(above.rjust(frame.tally)[: frame.tally], MUTED))

    def _lane(self, frame: _Frame, track: Track) -> Row:
        scene, glyphs = frame.scene, frame.glyphs
        lanes = (track,) if track.pair is None else (track, track.pair)
        overlays = [_overlay(scene, lane, frame.related) for lane in lanes]
        key = (track.key, *((one.selected, one.related) for one in overlays))
        if key not in self._rows:
            drawn = self._draw(scene, track, frame.window, glyphs, overlays)
            self._rows[key] = drawn, tally_of(scene, track, frame.window)
        drawn, tally = self._rows[key]
        row = Row(drawn.chars.copy(), drawn.styles.copy())
        if frame.column is not None and track.shape is not Shape.HEADING:
            draw_cursor(row, frame.column, glyphs)
        marks = [o.matches for o in overlays if o.matches is not None]
        matches = f" {sum(map(len, marks)):,}" if scene.searching and marks else ""
        if matches and not frame.tally:
            row.put(row.width - len(matches), matches, KEY)
        peak = tally.removeprefix("peak ") if track.counter and not frame.tally else ""
        margin = self._margin(scene, track, frame.margin, glyphs, peak)
        at_right = (matches, KEY) if scene.searching else (tally, MUTED)
        end = text_row(at_right[0].rjust(frame.tally), at_right[1])
        return join(margin, row, end) if frame.tally else join(margin, row)

    def _margin(self, scene: Scene, track: Track, width: int, glyphs: Glyphs, peak: str) -> Row:
        is_group = track.key in scene.groups
        fold = (Fold.CLOSED if track.key in scene.folded else Fold.OPEN) if is_group else Fold.LEAF
        current = track.key == scene.lane
        label = track.label if width < 16 or not track.words else track.words
        if peak and track.shape is Shape.COUNTER:
            room = width - 2 * track.depth - 2 - len(peak) - 1
            name = fit(visible(label, glyphs.ascii_only), room)
            label = f"{name} {peak}" if name else label
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
    ) -> Row:
        """A row without cursor."""
        if track.shape is Shape.HEADING:
            row = Row.blank(window.width)
            row.put(1, pad(visible(track.note, glyphs.ascii_only), window.width - 1), MUTED)
            return row
        if track.covered is not None:
            return draw_shares(track.covered, window, glyphs, track.off)
        if track.counter is not None:
            return _counter(scene, track.shape, track.counter, window, glyphs)
        view = _summary(scene, track, window) if track.summary else scene.view(track)
        if view is None:
            return Row.blank(window.width)
        if track.pair is None and not view.summary and _empty(view, window):
            return Row.blank(window.width)
        if track.pair is not None:
            both = (overlays[0], overlays[1])
            return draw_pair(view, scene.view(track.pair), window, glyphs, both)
        return draw_lane(view, window, glyphs, overlays[0])


class _Frame(NamedTuple):
    """What the rows of one drawing share."""

    scene: Scene
    window: Viewport
    margin: int
    tally: int
    glyphs: Glyphs
    column: int | None
    """Of the cursor."""
    related: Collection[Picked]


def _counter(scene: Scene, shape: Shape, counter: Counter, window: Viewport, glyphs: Glyphs) -> Row:
    if shape is Shape.DENSITY:
        return draw_samples(counter.times, window, glyphs)
    return draw_counter(
        counter.times,
        counter.values,
        window,
        glyphs,
        top=counter.top,
        shape=scene.counters,
        reach=counter.reach,
    )


def tally_of(scene: Scene, track: Track, window: Viewport) -> str:
    """What a lane sums up to in a window: events, share of the time, or peak.

    Args:
        scene: what is drawn.
        track: its lane.
        window: its cells.
    """
    lo, hi = window.lo, window.hi
    ends = np.array([max(lo, scene.extent[0]), min(hi, scene.extent[1])], np.int64)
    busy = _busy(track, ends) if ends[1] > ends[0] else None
    if busy is not None:
        share = format_share(busy, int(ends[1] - ends[0]))
        return f"{'on CPU' if track.covered else 'busy'} {share}"
    if (counter := track.counter) is not None:
        values = counter.values[counter.within(lo, hi)]
        if track.shape is Shape.DENSITY:
            return _count(len(values))
        return f"peak {counted(float(values.max()), counter.unit)}" if len(values) else ""
    both = [one.lane for one in (track, track.pair) if one is not None and one.lane is not None]
    seen = [lane.visible(lo, hi) for lane in both]
    return _count(sum(part.stop - part.start for part in seen)) if both else ""


def _busy(track: Track, ends: Int64) -> int | None:
    """Time that a row of shares covers between two moments; None for other rows."""
    if track.covered is not None:
        return int(track.covered.busy(ends)[0])
    return None if track.summary is None else int(track.summary.busy(ends)[-1, 0])


def _count(events: int) -> str:
    return format_count(events) if events else ""


def _summary(scene: Scene, track: Track, window: Viewport) -> LaneView | None:
    if track.summary is None:
        return None
    return summary_view(track.summary, window, scene.explained.get(track.device or 0, NOTHING))


def _overlay(scene: Scene, track: Track, related: Collection[Picked]) -> Overlay:
    """The selected event, those that belong to it, and the search matches of a lane."""
    picked, selected = scene.picked, None
    spots = (position_of(track, row) for events, row in related if track.events is events)
    near = tuple(spot for spot in spots if spot is not None)
    if picked is not None and track.lane is not None and track.events is picked.events:
        selected = position_of(track, picked.row)
    return Overlay(None, selected, near, scene.matches.get(track.key))


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


def margin_width(width: int, wanted: int = 0, *, sizes: bool = False) -> int:
    """Cells of the labels at the left.

    Args:
        width: of the whole.
        wanted: cells of the longest label in words, for which narrow screens have no room.
        sizes: whether peaks in bytes stand in narrow labels, as ``mem 2.39 GB``.
    """
    if width < ROOMY:
        return 15 if sizes else 12
    return min(max(wanted, 16), width // 4)


def tally_width(width: int) -> int:
    """Cells of the figures at the right, for which narrow screens have no room."""
    return 0 if width < ROOMY else WIDE


def viewport(scene: Scene, columns: int) -> Viewport:
    """The window of a scene over some cells."""
    lo, hi = scene.window or scene.extent
    return Viewport(lo, hi, columns, scene.extent)


def position_of(track: Track, row: int) -> int | None:
    """Position in a track's lane of a row of its event set, or None."""
    events, lane = track.events, track.lane
    if events is None or lane is None or not 0 <= row < len(events):
        return None
    return lane.position_of(row, int(events.start[row]))


def counted(value: float, unit: str) -> str:
    """A counter's value: bytes, or a number, which metrics have whole percents of: ``97%``."""
    if unit == "B":
        return format_bytes(round(value))
    return format_number(value) + "%" * (unit == "%")


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
