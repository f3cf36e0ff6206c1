"""Single events: snap to the next one, step through them, follow flows to and from API calls."""

from __future__ import annotations

from typing import Final

from nsys_tui.analysis.timeline.launch_links import call_of, launched_by
from nsys_tui.analysis.timeline.search import Step, after, before, column, lanes_of
from nsys_tui.analysis.timeline.tracks import Track
from nsys_tui.model.events import ApiCalls, EventSet, Operations, Syncs
from nsys_tui.model.lanes import Lane
from nsys_tui.state import Selection, Window
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.timeline.painter import Picked
from nsys_tui.units import out_of

NO_EVENT: Final = "no event here"
ELSEWHERE: Final = "calls and stacks are shown of the report in front: o brings this one there"
ASIDE: Final = 0.1
"""Where in the window a step outside of it arrives."""


def step_event(model: TimelineModel, *, forward: bool) -> TimelineModel:
    """Selects the next or previous event of the lane."""
    track = model.row
    if track is None or not (lanes := lanes_of(track)):
        return model.telling(NO_EVENT)
    step = (after if forward else before)(lanes, _standing(model, track, lanes))
    if step is None:
        return model.telling(
            "no event after this in the lane" if forward else "no event before this"
        )
    return _arrived(model, track, lanes, step)


def snap(model: TimelineModel, *, forward: bool) -> TimelineModel:
    """Selects the next event that starts in another column; of several in one, the longest."""
    track = model.row
    if track is None or not (lanes := lanes_of(track)):
        return model.telling(NO_EVENT)
    lo, hi = model.cell_of(model.cursor_time)
    step = after(lanes, Step(hi, -1, 0)) if forward else before(lanes, Step(lo, -1, 0))
    if step is None:
        return model.telling(
            "no event in a later column" if forward else "no event in a column before"
        )
    cell = model.viewport.cell(step.start)
    if cell is None:
        return _arrived(model, track, lanes, step)
    held = column(lanes, *model.viewport.edges[[cell, cell + 1]].tolist())
    if held is None:
        return model
    target = _arrived(model, track, lanes, held.longest)
    if held.events == 1:
        return target
    return target.telling(f"{out_of(held.number, held.events)} in this column")


def _standing(model: TimelineModel, track: Track, lanes: tuple[Lane, ...]) -> Step:
    """Where the cursor stands in a row: on the selected event, or at its moment."""
    picked, time = model.picked, model.cursor_time
    if picked is not None and track.events is picked.events and picked.start == time:
        for number, lane in enumerate(lanes):
            if (spot := lane.position_of(picked.row, time)) is not None:
                return Step(time, number, spot)
    return Step(time, -1, 0)


def _arrived(
    model: TimelineModel, track: Track, lanes: tuple[Lane, ...], step: Step
) -> TimelineModel:
    """Selects the event of a step; the window follows if it lies outside."""
    if track.events is None:
        return model
    row = int(lanes[step.lane].index[step.position])
    part = ASIDE if step.start >= model.cursor_time else 1 - ASIDE
    window = model.shifted(step.start, part)
    return model.selected(Picked(track.events, row), step.start, track.key, window=window)


def select_here(model: TimelineModel) -> TimelineModel:
    """Selects the event under the cursor, in a GPU's row the gap; without either the next event."""
    picked, track = model.current, model.row
    if picked is not None and track is not None:
        return model.selected(picked, model.cursor_time, track.key)
    gap = gap_here(model)
    return snap(model, forward=True) if gap is None else model.pointed(selection=gap)


def gap_here(model: TimelineModel) -> Selection | None:
    """The idle time around the cursor in the row of a GPU of the report in front."""
    track, report = model.row, model.report
    if track is None or track.summary is None or track.device is None or report is None:
        return None
    idle = track.summary.idle_at(model.cursor_time)
    if idle is None or track.device >= len(report.devices):
        return None
    return Selection("gap", (track.device, *idle), Window(*idle), label="idle")


def follow(model: TimelineModel, *, back: bool) -> TimelineModel:
    """Goes from GPU work, or a wait, to its API call; unless ``back``, from a call to its work."""
    picked, report = model.current, model.report
    if picked is None or report is None:
        return model.telling(NO_EVENT)
    if model.beside_of(picked.events) is not None:
        return model.telling(ELSEWHERE)
    if isinstance(picked.events, (Operations, Syncs)):
        call = call_of(report, picked.events, picked.row)
        target = None if call is None else (report.api, call)
        return _followed(model, target, "the call of this work")
    if back:
        return model.telling("[ is for GPU work: ] follows a call")
    if not isinstance(picked.events, ApiCalls):
        return model.telling("] is for API calls and GPU work")
    launched = launched_by(report, picked.row)
    more = f": 1 of {len(launched)}" if len(launched) > 1 else ""
    return _followed(model, launched[0] if launched else None, f"launched by this call{more}")


def _followed(
    model: TimelineModel, target: tuple[EventSet, int] | None, said: str
) -> TimelineModel:
    if target is None:
        return model.telling("nothing with its correlation id in this process")
    picked = Picked(*target)
    track = model.track_of(picked)
    if track is None:
        return model.telling(f"{said}: hidden by the filter")
    return model.arrived(picked, track).telling(said)
