"""Framing: the parts of the timeline's screen, and how its state becomes a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.containers import Horizontal, Vertical

from nsys_tui.analysis.timeline.events import NEEDED
from nsys_tui.state import ColourBy
from nsys_tui.times import moment_text, window_text
from nsys_tui.ui.screens.timeline.place import Placed
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.ui.widgets.timeline.info import FindBox, InfoLine
from nsys_tui.ui.widgets.timeline.minimap import Minimap
from nsys_tui.ui.widgets.timeline.painter import Scene
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray
    from textual import events

    from nsys_tui.analysis.timeline.search import Found

STRIP: Final = 3
"""Lines of the strip."""
HEADING_ROOM: Final = 12
"""Cells of the upper edge that neither heading nor remark take."""


class Framing(Placed):
    """The timeline's state and its drawing."""

    DEFAULT_CSS: ClassVar[str] = """
    Framing #main { height: 1fr; }
    Framing #left { width: 1fr; }
    Framing #side { width: 42; display: none; }
    Framing #facts { height: 2fr; }
    Framing #area { height: 2fr; }
    Framing #marks { height: 8; }
    Framing #strip { height: 5; }
    Framing Minimap { height: 1; }
    Framing.-tall Minimap { height: 3; }
    Framing.-wide #side, Framing.-xwide #side { display: block; }
    Framing.-wide #strip, Framing.-xwide #strip { display: none; }
    Framing.-wide #side { width: 40; }
    Framing.-xwide #side { width: 42; }
    Framing.-medium #marks { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: Found | None = None
        self.area_from: tuple[int, str] | None = None
        """Where an unfinished area begins: time and row."""
        self.explained: dict[int, NDArray[np.int64]] = {}
        self._top = 0

    def body(self) -> Iterable[Any]:
        """Lanes, then what is known about the selection, the whole trace, and a line of facts."""
        yield Horizontal(
            Vertical(
                TimelineCanvas(id="lanes"),
                LinePane("Selected", id="strip"),
                Minimap(id="minimap"),
                id="left",
            ),
            Vertical(
                LinePane("Selected", id="facts"),
                LinePane("Area (v)", id="area"),
                LinePane("Marks (')", id="marks"),
                id="side",
            ),
            id="main",
        )
        yield InfoLine(id="info")
        yield FindBox(id="find")

    @property
    def strip(self) -> LinePane:
        """The pane below the lanes on narrow screens."""
        return self.query_one("#strip", LinePane)

    @property
    def strip_is_low(self) -> bool:
        """Whether the strip has its few lines only, and not the whole screen."""
        return self.strip.size.height <= STRIP

    def on_mount(self) -> None:
        """The strip is too low for a scrollbar."""
        self.strip.styles.scrollbar_size_vertical = 0
        super().on_mount()

    def on_resize(self, event: events.Resize) -> None:
        """Everything follows the size."""
        super().on_resize(event)
        self.call_after_refresh(self.redraw)

    def on_timeline_canvas_resized(self) -> None:
        """The lanes alone have another size, as when they fill the screen."""
        self.redraw()

    def redraw(self, *, fresh: bool = False) -> None:
        """Hands the present state to the canvas and the lines around it."""
        if fresh:
            self._serial += 1
        if not self.is_attached or self.report is None or self.has_class("-too-small"):
            return
        canvas = self.canvas
        self._scroll(canvas.lanes_shown)
        scene = self._scene()
        canvas.show(scene, *self._heading(scene))
        self.query_one(Minimap).show(self.store.whole.outline, self._extent, self.window)
        self.query_one(InfoLine).show(*self.info())

    def _scene(self) -> Scene:
        state = self.state
        found = self.found
        return Scene(
            rows=self.rows,
            top=self._top,
            window=self.window,
            extent=self._extent,
            cursor=self.cursor_time,
            lane=self._lane_key,
            groups=self.store.filtered.lineup.groups,
            folded=self._folded,
            pinned=state.display.pinned,
            picked=self.picked,
            matches=found.matches if found is not None else {},
            searching=found is not None,
            marks={letter: mark.time for letter, mark in state.marks.items()},
            area=self._area_span(),
            view=self.store.view,
            own=self.store.colours.own,
            explained=self.explained,
            message=self._message(),
            counters=state.display.counters,
            time=self._tick,
            serial=(self._serial, state.display.time),
        )

    def _tick(self, moment: int, step: int) -> str:
        return moment_text(moment, step, self.state.display.time, self.report, self.window.start)

    def moment(self, time: int) -> str:
        """A moment as finely as a column of the window shows it."""
        step = max(1, self.window.width // (max(1, self.canvas.columns) * 10))
        return moment_text(time, step, self.state.display.time, self.report, self.window.start)

    def _area_span(self) -> tuple[int, int] | None:
        selection = self.state.selection
        if self.area_from is not None:
            return self.area_from[0], self.cursor_time
        if selection is not None and selection.span is not None and self.picked is None:
            return selection.span.start, selection.span.end
        return None

    def _scroll(self, height: int) -> None:
        """Keeps the cursor's row in view."""
        number = self.row_number
        last = max(0, len(self.rows) - height)
        top = min(max(self._top, number - height + 1), number)
        self._top = min(max(top, 0), last)

    def _heading(self, scene: Scene) -> tuple[str, str]:
        """Title and remark; the window, which the first line shows too, gives way to them."""
        if scene.message:
            return "Timeline", ""
        window, display = self.window, self.state.display
        column = format_duration(max(1, window.width // max(1, self.canvas.columns)), 3)
        text = window_text(window, display.time, self.report)
        name = "Timeline ≈ from a sample" if self.rows.estimated else "Timeline"
        rest = f"1 col = {column}  cursor {self.moment(scene.cursor)}"
        by = display.colour_by
        remark = [] if by is ColourBy.CATEGORY else [f"colour: {by}"]
        if self.rows:
            remark.append(f"lane {self.row_number + 1}/{len(self.rows)}")
        right = "  ".join(remark)
        room = self.canvas.size.width - HEADING_ROOM - len(right)
        full = f"{name} {text}  {rest}"
        return (full if len(full) <= room else f"{name}  {rest}"), right

    def _message(self) -> tuple[str, ...]:
        """What is said where there are no lanes at all."""
        report = self.report
        if report is None or self.store.whole or not self.session.finished:
            return ()
        why = tuple(dict.fromkeys(text for need in NEEDED if (text := report.lacks(need))))
        return ("There is nothing to show over time in this report.", "", *why)

    def info(self) -> tuple[str, str]:
        """Left and right text of the line at the bottom; the parts of the screen add to it."""
        return "", ""

    def search_again(self) -> None:
        """Repeats the search on the present lanes."""

    def show_facts(self) -> None:
        """Shows what is known about the selection."""

    def show_marks(self) -> None:
        """Shows the bookmarks."""

    def view(self) -> Any:
        """The scroll position."""
        return self._top

    def restore(self, view: Any) -> None:
        """Scrolls back."""
        if isinstance(view, int):
            self._top = view
            self.redraw()
