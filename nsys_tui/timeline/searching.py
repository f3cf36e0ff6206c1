"""Search over all lanes, and the filter that a pattern or a shortest duration makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsys_tui.analysis.timeline.search import Found
from nsys_tui.state import Search
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.timeline.painter import Picked
from nsys_tui.units import parse_length


def searched(model: TimelineModel, found: Found, *, exact: bool = False) -> TimelineModel:
    """Shows the matches of a search."""
    search = Search(found.pattern, found.counts, exact=exact)
    return replace(model, found=found).looking(search=search)


def search_ended(model: TimelineModel) -> TimelineModel:
    """Ends a search."""
    return replace(model, found=None).looking(search=Search())


def first_match(model: TimelineModel, *, work: bool = False) -> TimelineModel:
    """Goes to the first match from the cursor on; if ``work``, of GPU work where any matches."""
    if model.found is None or not model.found.total:
        return model.telling(f"nothing matches {model.view.search.pattern}")
    number = _first_work(model) if work else None
    if number is not None:
        return _arrived(model.telling(""), model.found, number)
    return _match(model.telling(""), forward=True, here=(model.cursor_time, -1))


def step_match(model: TimelineModel, *, forward: bool) -> TimelineModel:
    """Goes to the next or previous match, over all lanes in order of time."""
    if model.found is None:
        return model
    place = model.found.lineup.places.get(model.lane_key, -1)
    return _match(model, forward=forward, here=(model.cursor_time, place))


def _match(model: TimelineModel, *, forward: bool, here: tuple[int, int]) -> TimelineModel:
    if model.found is None:
        return model
    found = model.found.without(model.view.display.hidden)
    number = found.step(*here, forward=forward)
    if number is None and found.total:
        number = 0 if forward else found.total - 1
        model = model.telling("from the start again" if forward else "from the end again")
    if number is None:
        return model.telling("no match in lanes that are shown")
    return _arrived(model, found, number)


def _first_work(model: TimelineModel) -> int | None:
    """Number of the first match among GPU work from the cursor on, else from the start."""
    if model.found is None or model.view.display.hidden:
        return None
    found = model.found
    works = [n for n, track in enumerate(found.lineup.tracks) if track.part == "operations"]
    numbers = np.flatnonzero(np.isin(found.place, works))
    if not len(numbers):
        return None
    ahead = int(np.searchsorted(found.start[numbers], model.cursor_time))
    return int(numbers[ahead % len(numbers)])


def _arrived(model: TimelineModel, found: Found, number: int) -> TimelineModel:
    track = found.lineup.tracks[found.place[number]]
    if track.lane is None or track.events is None:
        return model
    picked = Picked(track.events, int(track.lane.index[found.position[number]]))
    search = replace(model.view.search, current=number + 1)
    return model.arrived(picked, track, search=search)


def filtered_by(model: TimelineModel, pattern: str) -> TimelineModel:
    """Shows only events whose name matches."""
    return model.looking(filter=replace(model.view.filter, pattern=pattern))


def shortest(text: str) -> int:
    """A shortest duration in ns.

    Raises:
        UsageError: it is no duration, without a unit or below zero.
    """
    return parse_length(text) if text.strip() else 0


def filtered_from(model: TimelineModel, text: str) -> TimelineModel:
    """Hides events that are shorter than a text says; an empty one shows all again."""
    return model.looking(filter=replace(model.view.filter, min_duration=shortest(text)))


def cleared(model: TimelineModel) -> TimelineModel | None:
    """Gives up a search, then a filter; None where there is neither."""
    if model.found is not None:
        return search_ended(model)
    wanted = replace(model.view.filter, pattern="", min_duration=0)
    return None if wanted == model.view.filter else model.looking(filter=wanted)
