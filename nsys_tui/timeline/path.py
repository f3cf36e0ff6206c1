"""The critical path of a step on the timeline: a lane of its own, and its work underlined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.critical_path import What
from nsys_tui.analysis.iterations.path_answer import StepPath, step_path
from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.analysis.timeline.tracks import Section, Track
from nsys_tui.model.arrays import Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane
from nsys_tui.model.report import Report
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.timeline.moving import NO_STEPS
from nsys_tui.units import format_duration, format_share

PATH: Final = "path"
"""Key and part of its lane."""
_CATEGORIES: Final = {
    What.COMPUTE: Category.COMPUTE,
    What.COMM: Category.COMM,
    What.MEMORY: Category.MEMORY,
    What.GRAPH: Category.GRAPH,
    What.CALL: Category.API,
    What.LAUNCH: Category.API,
    What.OSRT: Category.OSRT,
    What.HOST: Category.OSRT,
}
"""How its segments are painted; all others as waiting."""


def path_at(report: Report, steps: Iterations, time: int) -> StepPath | None:
    """The critical path of the step that holds a moment, or of the nearest before; for a worker."""
    if not len(steps):
        return None
    number = int(np.searchsorted(steps.start, time, side="right")) - 1
    return step_path(report, steps, max(number, 0))


def with_path(model: TimelineModel, path: StepPath | None) -> TimelineModel:
    """Puts the lane of a path first, in place of an earlier one's."""
    model = without_path(model)
    if path is None:
        return model.telling(NO_STEPS)
    lanes = model.lanes.built(PATH, [_track(path)], {})
    rows = np.unique([one.row for one in path.segments if one.row >= 0])
    marked = _marked(model.lanes.whole.lineup.tracks, model, path, rows)
    most = [f"{format_share(w.time_ns, path.time_ns)} {w.name or w.what}" for w in path.work[:2]]
    length = format_duration(path.time_ns)
    said = f"critical path of {path.label}, {length}: {', '.join(most)} (K: without)"
    return replace(model, lanes=lanes, path=marked).telling(said)


def without_path(model: TimelineModel) -> TimelineModel:
    """Gives it up."""
    return replace(model, lanes=model.lanes.without(PATH), path={}) if has_path(model) else model


def has_path(model: TimelineModel) -> bool:
    """Whether a path is shown."""
    return PATH in model.lanes.parts


def _track(path: StepPath) -> Track:
    segments = path.segments
    starts, ends = (np.array([one[n] for one in segments], np.int64) for n in (0, 1))
    codes = [_CATEGORIES.get(one.what, Category.SYNC) for one in segments]
    rows = np.arange(len(segments), dtype=np.int32)
    return Track(
        key=PATH,
        label="path",
        words="critical path",
        title=f"critical path of {path.label}",
        part=PATH,
        order=(Section.NVTX, -1),
        lane=Lane.build(starts, ends, rows, np.array(codes, np.uint8)),
        texts=tuple(one.name or str(one.what) for one in segments),
    )


def _marked(
    tracks: Iterable[Track], model: TimelineModel, path: StepPath, rows: Integers
) -> dict[str, Integers]:
    """Positions of the path's work in each lane that has any."""
    ops = None if model.report is None else model.report.operations
    by_name: dict[str, Integers] = {}
    for track in tracks:
        if track.events is ops and track.lane is not None:
            part = track.lane.visible(path.start_ns, path.end_ns)
            inside = np.flatnonzero(np.isin(track.lane.index[part], rows))
            if len(inside):
                by_name[track.key] = inside + part.start
    return by_name
