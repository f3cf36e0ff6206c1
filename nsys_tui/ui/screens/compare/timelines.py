"""Both timelines of a comparison, one above the other: locked, what moves one moves the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.containers import Vertical

from nsys_tui.analysis.timeline.lineup import label_cells
from nsys_tui.analysis.timeline.tracks import Section, Track, passes
from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane
from nsys_tui.state import Window
from nsys_tui.timeline.lanes import Lanes
from nsys_tui.timeline.painter import Picked, Scene, position_of
from nsys_tui.timeline.parts import part_tracks
from nsys_tui.times import moment_text
from nsys_tui.ui.screens.compare.pair import BothPicked, End, Part, Result, Span, end_name
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_tui.analysis.compare.plan import Plan
    from nsys_tui.ui.host import Host
    from nsys_tui.ui.session import Session

ZOOM: Final = 2
STEP: Final = 4
"""A pan moves by this part of the window."""
MARGIN: Final = 20
"""Free space beside a fitted span, as a part of it."""


@dataclass(frozen=True, eq=False)
class Half:
    """One timeline ready to be drawn."""

    session: Session
    lanes: Lanes

    @property
    def tracks(self) -> tuple[Track, ...]:
        """Its rows."""
        return self.lanes.whole.lineup.tracks


def half_of(part: End, plan: Plan | None) -> Half | None:
    """Builds the lanes of a report: its steps, and the GPUs with their streams; for a worker.

    Args:
        part: what is looked at; what the timeline has built already is taken from its session. A
            baseline has no lanes.
        plan: knows the steps.
    """
    if not isinstance(part, Part) or plan is None:
        return None
    session, kept = part.session, part.session.state.filter
    streams, _ = part_tracks(session.memo, part.report, "operations")
    devices, layers = part_tracks(session.memo, part.report, "devices")

    def shown(every: Sequence[Track]) -> list[Track]:
        return [t for t in every if passes(t, kept.devices, kept.streams, kept.processes)]

    lanes = Lanes().built("operations", [*_steps(plan), *shown(streams)], layers)
    lanes = lanes.built("devices", shown(devices), {})
    return Half(session, replace(lanes, whole=lanes.arranged()))


def with_lane_of(half: Half | None, picked: Picked | None) -> Half | None:
    """The same timeline with the thread's lane that holds an event of the host; for a worker."""
    report = None if half is None else half.session.report
    if half is None or picked is None or report is None:
        return half
    for part in ("ranges", "api", "host_events", "osrt"):
        tracks, _ = part_tracks(half.session.memo, report, part)
        holding = [track for track in tracks if _holds(track, picked)]
        if holding:
            lanes = half.lanes.built("host", holding, {})
            return replace(half, lanes=replace(lanes, whole=lanes.arranged()))
    return half


def _holds(track: Track, picked: Picked) -> bool:
    return track.events is picked.events and position_of(track, picked.row) is not None


def _steps(plan: Plan) -> list[Track]:
    """The ranges that are the steady steps, on their own thread."""
    ranges, rows = plan.report.ranges, plan.rows
    if not len(rows):
        return []
    lane = Lane.build(ranges.start[rows], ranges.end[rows], rows, Category.NVTX, ranges.name)
    return [
        Track(
            key="steps",
            label="step",
            title=f"steps: {plan.steps.name}",
            part="ranges",
            order=(Section.NVTX, 0, 0),
            events=ranges,
            lane=lane,
        )
    ]


class LockedCanvas(TimelineCanvas):
    """One of the two timelines; the screen moves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "app.do('compare.zoom_out')", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
    ]

    def action_scroll(self, step: int) -> None:
        """Scrolls the lanes of both."""
        if isinstance(self.parent, TwinTimelines):
            self.parent.scroll_lanes(step)


class TwinTimelines(Vertical):
    """A's timeline above B's."""

    DEFAULT_CSS: ClassVar[str] = """
    TwinTimelines { height: 1fr; }
    """
    app: Host

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        self.canvases = (LockedCanvas(id="timeline-a"), LockedCanvas(id="timeline-b"))
        """Upper and lower."""
        super().__init__(*self.canvases, id=id)
        self.halves: tuple[Half | None, Half | None] = (None, None)
        self.ends: tuple[End | None, End | None] = (None, None)
        self.windows = [Window(0, 1), Window(0, 1)]
        self.picked: list[Picked | None] = [None, None]
        self.tops = [0, 0]
        self.locked = True
        self.what = ""
        self.result: Result | None = None
        self.step: int | None = None
        """The step that both stand on."""

    def forget(self) -> None:
        """Another pair: nothing is drawn yet."""
        self.halves, self.ends, self.picked = (None, None), (None, None), [None, None]
        self.result = self.step = None
        self.tops = [0, 0]
        for canvas in self.canvases:
            canvas.show(Scene(), "", "")

    def show_result(self, result: Result, halves: tuple[Half | None, Half | None]) -> None:
        """Shows both ends of a comparison on a usual step; an end without events says so."""
        self.result, self.halves = result, halves
        self.ends = result.pair.a, result.pair.b
        self.go_to_step(result.step)

    def go_to_step(self, step: int | None, picked: BothPicked = (None, None)) -> None:
        """Puts the same step of both side by side, equally wide; without steps, what is picked."""
        result = self.result
        if result is None:
            return
        self.step, what = step, result.step_name(step)
        spans = []
        for span, pick, half in zip(result.windows(step), picked, self.halves, strict=True):
            if step is None and pick is not None and not result.pair.single:
                what, reach = "around one instance", 4 * (pick.end - pick.start)
                spans.append((pick.start - reach, pick.end + reach))
            else:
                spans.append(span or _whole(half))
        width = max(1, *(end - start for start, end in spans))
        first, second = (around(start, width) for start, _ in spans)
        self.look_at((first, second), what, picked)

    def go_to_spans(
        self, times: Sequence[Span], what: str, picked: BothPicked = (None, None)
    ) -> None:
        """Each where its side has what is looked for; the whole where it has none."""
        spans = [span or _whole(half) for span, half in zip(times, self.halves, strict=True)]
        first, second = (around(start, max(end - start, 1)) for start, end in spans)
        self.step = None
        self.look_at((first, second), what, picked)

    def move_step(self, by: int) -> None:
        """Goes to the next (1) or previous (-1) step of both."""
        if self.result is None or self.step is None:
            self.app.say("no steps to go to")
            return
        comparison = self.result.comparison
        last = min(len(comparison.a.steps), len(comparison.b.steps)) - 1
        self.go_to_step(min(max(self.step + by, 0), last))

    def toggle_lock(self) -> None:
        """Moves both together, or lets each move alone."""
        self.locked = not self.locked
        self.redraw()

    def look_at(
        self,
        windows: tuple[Window, Window],
        what: str,
        picked: BothPicked = (None, None),
    ) -> None:
        """Goes to a window on each side, with an event selected where one is given."""
        self.windows, self.what, self.picked = list(windows), what, list(picked)
        for side, half in enumerate(self.halves):
            if half is not None:
                self.tops[side] = self._top_for(half, picked[side])
        self.redraw()

    def _top_for(self, half: Half, picked: Picked | None) -> int:
        """The first row, such that the selected event's lane is in view, as on the other side."""
        if picked is None:
            return 0
        places = (n for n, track in enumerate(half.tracks) if _holds(track, picked))
        shown = min(canvas.lanes_shown for canvas in self.canvases)
        return max(0, next(places, 0) - shown + 1)

    def _moving(self) -> Iterable[int]:
        if self.locked:
            return (0, 1)
        return (1,) if self.canvases[1].has_focus else (0,)

    def pan(self, direction: int) -> None:
        """Moves by a quarter of the window."""
        for side in self._moving():
            window = self.windows[side]
            by = direction * max(window.width // STEP, 1)
            self.windows[side] = Window(window.start + by, window.end + by)
        self.redraw()

    def zoom(self, closer: bool) -> None:
        """Halves or doubles the window about its middle."""
        for side in self._moving():
            window = self.windows[side]
            width = window.width // ZOOM if closer else window.width * ZOOM
            width = max(width, self.canvases[side].columns)
            start = window.start + (window.width - width) // 2
            self.windows[side] = Window(start, start + width)
        self.redraw()

    def scroll_lanes(self, step: int) -> None:
        """Scrolls the lanes."""
        for side in self._moving():
            self.tops[side] = max(self.tops[side] + step, 0)
        self.redraw()

    def on_timeline_canvas_pointed(self, message: TimelineCanvas.Pointed) -> None:
        """The wheel scrolls; with Shift it pans, with Ctrl it zooms."""
        message.stop()
        if message.what == "zoom":
            self.zoom(message.step < 0)
        elif message.what == "pan":
            self.pan(message.step)
        elif message.what == "scroll":
            self.scroll_lanes(message.step)

    def on_resize(self) -> None:
        """Everything follows the size."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Hands both scenes to their canvases."""
        if not self.is_attached:
            return
        for side, canvas in enumerate(self.canvases):
            end, half = self.ends[side], self.halves[side]
            title = "AB"[side] + (f": {end_name(end)}" if end is not None else "")
            if isinstance(end, Part) and end.single:
                title = f"{'AB'[side]}: {end.title}"
            window = self.windows[side]
            if half is None:
                reason = "a baseline holds no events" if end is not None else "reading ..."
                canvas.show(Scene(message=(reason,)), title, "")
                continue
            width = format_duration(window.width)
            lock = "a/d w/- move both, L unlocks" if self.locked else "unlocked: L locks"
            canvas.show(self._scene(side, half), f"{title}  {self.what}  {width}", lock)

    def _scene(self, side: int, half: Half) -> Scene:
        window, state = self.windows[side], self.app.state
        last = max(0, len(half.tracks) - self.canvases[side].lanes_shown)
        self.tops[side] = min(self.tops[side], last)
        display = replace(state.display, labels=True)

        def tick(moment: int, step: int) -> str:
            return moment_text(moment, step, state.display.time, half.session.report, window.start)

        picked = self.picked[side]
        return Scene(
            rows=half.tracks,
            top=self.tops[side],
            window=window,
            extent=half.session.extent,
            cursor=window.start - 1,
            labels=max(label_cells(each.tracks) for each in self.halves if each is not None),
            picked=picked,
            view=lambda track: half.lanes.view(track, display),
            time=tick,
            serial=(half, state.display.names, state.display.time, picked and picked.row),
        )


def _whole(half: Half | None) -> tuple[int, int]:
    """The GPU work of a report, else all of it; anything where there is none."""
    report = half.session.report if half is not None else None
    return (0, 1) if report is None else report.span or report.extent


def around(start: int, width: int) -> Window:
    """A window with a small margin around a span."""
    margin = max(width // MARGIN, 1)
    return Window(start - margin, start + width + margin)
