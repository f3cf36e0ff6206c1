"""Areas: a span of time on some lanes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nsys_tui.state import Selection, Window

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.timeline.model import TimelineModel


def begin_or_end(model: TimelineModel) -> TimelineModel:
    """Begins an area at the cursor, or ends it there."""
    if model.area_start is None:
        begun = replace(model, area_start=(model.cursor_time, model.lane_key))
        return begun.telling("area begins: v ends it, esc gives it up")
    start, lane = model.area_start
    ended = replace(model, area_start=None).telling("")
    return select_area(ended, (start, model.cursor_time), (lane, model.lane_key))


def given_up(model: TimelineModel) -> TimelineModel | None:
    """Gives up an unfinished area; None where there is none."""
    return None if model.area_start is None else replace(model, area_start=None).telling("")


def select_area(
    model: TimelineModel, times: tuple[int, int], lanes: tuple[str, str]
) -> TimelineModel:
    """Selects an area: the lanes between two rows, or all where it is one and the same.

    The column of the cursor belongs to the area.
    """
    lo, hi = sorted(times)
    if model.viewport.cell(hi) is not None:
        hi = model.cell_of(hi)[1]
    keys: tuple[str, ...] = ()
    if lanes[0] != lanes[1]:
        numbers = [number for key in lanes if (number := model.rows.number(key)) is not None]
        chosen = model.rows[min(numbers) : max(numbers) + 1] if numbers else []
        keys = tuple(track.key for row in chosen for track in (row, row.pair) if track is not None)
    span = Window(lo, max(hi, lo + 1))
    return model.pointed(selection=Selection("area", (), span, keys, label="area"))


def shown_span(model: TimelineModel) -> tuple[int, int] | None:
    """The area that is drawn: one under way, or a selection that is no event of a lane."""
    if model.area_start is not None:
        return model.area_start[0], model.cursor_time
    selection = model.view.selection
    if selection is not None and selection.span is not None and model.picked is None:
        return selection.span.start, selection.span.end
    return None


def selected_tracks(model: TimelineModel, keys: frozenset[str]) -> list[Track]:
    """Tracks of some rows, with what is folded away below them; all that are not hidden."""
    lineup = model.lanes.shown.lineup
    tracks = [lineup.tracks[place] for place in lineup.unhidden(model.view.display.hidden).tolist()]
    if not keys:
        return tracks
    folded = model.rows.folded & keys
    return [t for t in tracks if t.key in keys or folded.intersection(t.parents)]
