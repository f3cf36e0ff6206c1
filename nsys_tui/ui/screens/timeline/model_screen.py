"""ModelScreen: a screen whose state is a ``TimelineModel``; keys replace it, and it is drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nsys_tui.timeline.lanes import Lanes
from nsys_tui.timeline.model import CanvasSize, TimelineModel, Trace
from nsys_tui.timeline.scene import heading, info_line, scene_of
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.ui.widgets.timeline.info import InfoLine
from nsys_tui.ui.widgets.timeline.minimap import Minimap

HEADING_ROOM: Final = 12
"""Cells of the upper edge that neither heading nor remark take."""


class ModelScreen(ReportScreen):
    """Holds the model, hands it the shared state, and draws it."""

    def __init__(self) -> None:
        super().__init__()
        self._model = TimelineModel()
        self.canvas = TimelineCanvas(id="lanes")
        self.minimap = Minimap(id="minimap")
        self.info_line = InfoLine(id="info")

    @property
    def model(self) -> TimelineModel:
        """The timeline now, with what other screens and the terminal have changed."""
        half_blocks = bool(self.app.glyphs.upper)
        size = CanvasSize(self.canvas.columns, self.canvas.lanes_shown, half_blocks)
        if self._model.view is not self.state or self._model.size != size:
            self._model = replace(self._model, view=self.state, size=size)
        return self._model

    def take(self, model: TimelineModel) -> None:
        """Goes to the next moment; other screens hear of what they share."""
        self._model = replace(model, said=None)
        if model.view is self.state:
            self.redraw()
        else:
            self.app.set_state(model.view)
        if model.said is not None:
            self.app.say(model.said)

    def adopt(self, model: TimelineModel) -> None:
        """Goes to it without a word, where it follows from what is being told already."""
        self._model = model
        self.session.state = model.view

    def start_model(self) -> None:
        """Nothing is known of another report, but where it was looked at."""
        self._model = TimelineModel(self.state, self.report)
        self.learn_trace()

    def learn_trace(self) -> None:
        """Takes over how far the report in front is read."""
        session = self.session
        span = session.report.span if session.report is not None and session.exact else None
        few = session.known_few_steps if self.model.lanes.whole.version == 0 else None
        trace = Trace(session.extent, span, session.finished, self._model.trace.few or few)
        self._model = replace(self.model, trace=trace)

    def put_lanes(self, lanes: Lanes) -> None:
        """Replaces the lanes; they are drawn later."""
        self._model = replace(self.model, lanes=lanes)

    def redraw(self) -> None:
        """Hands the present state to the canvas and the lines around it."""
        if not self.is_attached or self.report is None or self.has_class("-too-small"):
            return
        model = self._model = self.model.scrolled()
        room = self.canvas.size.width - HEADING_ROOM
        self.canvas.show(scene_of(model), *heading(model, room))
        outline = model.lanes.whole.lineup.outline
        self.minimap.show(outline, model.extent, model.window)
        self.info_line.show(*info_line(model))
