"""The pointer: presses, drags and the wheel on the lanes, their labels and the axis."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nsys_tui.state import Window
from nsys_tui.timeline import areas, moving, stepping
from nsys_tui.timeline.model import TimelineModel

NOTCH: Final = 3
"""Rows that one step of the wheel scrolls."""
PAN: Final = 0.25
"""Part of the window that one step of the wheel pans."""


def turn_wheel(model: TimelineModel, what: str, column: int, step: int) -> TimelineModel:
    """Scrolls, pans or zooms by one step of the wheel.

    Args:
        model: the timeline.
        what: ``scroll``, ``pan`` or ``zoom``.
        column: cell of the lane under the pointer; negative on the labels.
        step: direction.
    """
    if what == "scroll":
        return moving.scroll_lanes(model, NOTCH * step)
    if what == "pan":
        return moving.pan(model, PAN * step)
    about = model.viewport.time(max(column, 0))
    return moving.zoom(model, 2.0 if step > 0 else 0.5, about)


def press(model: TimelineModel, row: int | None, column: int) -> TimelineModel:
    """Moves the cursor; on a label only its row, on the axis (``row`` None) only its moment."""
    time, lane = _spot(model, row, column)
    if column < 0:
        return model.pointed(lane=lane)
    pressed = replace(model, pressed=(time, lane), on_axis=row is None)
    if row is None:
        return pressed.pointed(time)
    return replace(pressed, picked=None).pointed(time, lane, selection=None)


def drag(model: TimelineModel, row: int | None, column: int) -> TimelineModel:
    """Spans an area from where the button went down."""
    spot = _spot(model, row, column)
    if model.pressed is None or (model.area_start is None and spot == model.pressed):
        return model
    start = model.area_start or model.pressed
    picked = model.picked if model.area_start else None
    return replace(model, area_start=start, picked=picked).pointed(*spot)


def drop(model: TimelineModel, row: int | None) -> TimelineModel:
    """Ends an area, zooms to a span of the axis, or selects the event under the pointer."""
    dropped = replace(model, pressed=None, on_axis=False)
    if model.pressed is None:
        return dropped
    if model.on_axis and model.area_start is not None:
        start, end = sorted((model.area_start[0], model.cell_of(model.cursor_time)[1]))
        window = Window(start, max(end, start + model.size.columns))
        return replace(dropped, area_start=None).jumped(window=window)
    if model.area_start is not None:
        return areas.begin_or_end(dropped)
    if row is None or (model.current is None and stepping.gap_here(model) is None):
        return dropped
    return stepping.select_here(dropped)


def _spot(model: TimelineModel, row: int | None, column: int) -> tuple[int, str]:
    """Moment and lane under the pointer; the axis has the cursor's lane."""
    view = model.viewport
    lane = model.lane_key if row is None else model.rows[row].key
    return view.time(min(max(column, 0), view.width - 1)), lane
