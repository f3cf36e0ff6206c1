"""The timeline's model of a report, without a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_tui.state import Filter
from nsys_tui.timeline.lanes import Lanes
from nsys_tui.timeline.model import CanvasSize, TimelineModel, Trace
from nsys_tui.timeline.parts import TRACKS_OF, part_tracks

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.report import Report

COLUMNS, ROWS = 66, 15
"""Cells of a lane and lanes in view at 80x24."""


def model_of(report: Report, columns: int = COLUMNS, rows: int = ROWS) -> TimelineModel:
    """All lanes of a report, as they are first shown."""
    kept: dict[Any, Any] = {}

    def memo(key: Any, make: Callable[[], Any], *, lasting: bool = False) -> Any:
        return kept.setdefault(key, make()) if key not in kept else kept[key]

    lanes = Lanes()
    for part in (*TRACKS_OF, "devices"):
        lanes = lanes.built(part, *part_tracks(memo, report, part))
    lanes = lanes.showing(*lanes.drawn(Filter(), "short"))
    trace = Trace(report.extent, report.span, finished=True)
    return TimelineModel(
        report=report, lanes=lanes, trace=trace, size=CanvasSize(columns, rows)
    ).scrolled()


def at_lane(model: TimelineModel, label: str) -> TimelineModel:
    """The cursor on the first row whose label begins so."""
    return model.pointed(lane=next(t.key for t in model.rows if t.label.startswith(label)))
