"""TimelineScreen: everything over time, lane by lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.ui.commands import COMMANDS
from nsys_tui.ui.screens.timeline.arranging import Arranging
from nsys_tui.ui.screens.timeline.exporting import Exporting
from nsys_tui.ui.screens.timeline.joining import Joining
from nsys_tui.ui.screens.timeline.marking import Marking
from nsys_tui.ui.screens.timeline.pointing import Pointing
from nsys_tui.ui.screens.timeline.searching import Searching
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas

SHORT_WORK = 10
"""GPU work that takes less than this part of the trace is named with the key that fits it."""


class TimelineScreen(Pointing, Marking, Searching, Arranging, Joining, Exporting):
    """The second screen."""

    def action_timeline_events(self) -> None:
        """The events of the window, or of the area, as a table."""
        self.app.show("events")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The table of events needs its screen."""
        if action == "timeline_events":
            return self.app.handler("view.events") is not None
        return super().check_action(action, parameters)

    def action_nav_escape(self) -> None:
        """Gives up an area, a search, a filter, a selection, in this order; then goes back.

        What another screen sent here is not given up: one step leads back to its row.
        """
        if self.clear_area() or self.clear_search():
            return
        if not self.canvas.has_focus:
            self.canvas.focus()
        elif self.state.selection is not None and not self.was_sent:
            self.area = None
            self.picked = None
            self.point(selection=None)
        else:
            COMMANDS["nav.escape"](self.app)

    def minimize(self) -> None:
        """The strip that filled the screen gives the focus back to the lanes."""
        super().minimize()
        if self.strip.has_focus:
            self.canvas.focus()

    def action_copy_cell(self) -> None:
        """Copies the name of the selected event."""
        picked = self.current()
        if picked is not None:
            self.app.copy(self.store.naming(picked.events)(picked.row), "1 name")

    def action_copy_row(self) -> None:
        """Copies the facts of what is selected."""
        if (facts := self.facts) is not None and self.state.selection is not None:
            lines = [f"name\t{facts.title}", *(f"{name}\t{text}" for name, text in facts.facts)]
            self.app.copy("\n".join(lines), "1 event" if self.picked is not None else "facts")

    def info(self) -> tuple[str, str]:
        """What the lanes show, and hints that belong to the report."""
        left, right = super().info()
        if not left and self.span is not None and self.state.window is None:
            work, whole = self.span[1] - self.span[0], self.extent[1] - self.extent[0]
            if work * SHORT_WORK < whole:
                left = (
                    f"GPU work takes {format_duration(work, 3)} of {format_duration(whole, 3)}:"
                    " f fits it"
                )
        return left or "filter: (none)", right

    def on_timeline_canvas_snapped(self, message: TimelineCanvas.Snapped) -> None:
        """Tab on the lanes."""
        self.snap(message.forward)
