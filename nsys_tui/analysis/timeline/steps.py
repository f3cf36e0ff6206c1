"""Stepping from event to event, in one lane or over the lanes of a device together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane


class Step(NamedTuple):
    """An event that a step arrives at; ordered by start, then lane, then position."""

    start: int
    lane: int
    """Number of the lane."""
    position: int
    """Position in it."""


class Column(NamedTuple):
    """What a column of the screen holds of some lanes."""

    longest: Step
    """The event of those that start in it that lasts longest; of several, the first."""
    number: int
    """Which one of them it is in the order of steps, from 1 on."""
    events: int
    """How many start in it."""


def lanes_of(track: Track) -> tuple[Lane, ...]:
    """The lanes of a row: one or two, or those of all streams for the row of a device."""
    if track.summary is not None:
        return track.summary.lanes
    both = (track, track.pair) if track.pair is not None else (track,)
    return tuple(each.lane for each in both if each.lane is not None)


def after(lanes: Sequence[Lane], here: Step) -> Step | None:
    """The first event after a place; use lane -1 for "at this time or later"."""
    found: list[Step] = []
    for number, lane in enumerate(lanes):
        place = _rank(lane, number, here)
        place += number == here.lane and _at(lane, place) == here.start
        if place < len(lane):
            found.append(Step(int(lane.starts[place]), number, place))
    return min(found, default=None)


def before(lanes: Sequence[Lane], here: Step) -> Step | None:
    """The last event before a place."""
    found: list[Step] = []
    for number, lane in enumerate(lanes):
        place = _rank(lane, number, here) - 1
        if place >= 0:
            found.append(Step(int(lane.starts[place]), number, place))
    return max(found, default=None)


def _at(lane: Lane, place: int) -> int | None:
    return int(lane.starts[place]) if place < len(lane) else None


def _rank(lane: Lane, number: int, here: Step) -> int:
    """Position of the first event of a lane that does not come before a place."""
    if number == here.lane and _at(lane, here.position) == here.start:
        return here.position
    if number < here.lane:
        return int(np.searchsorted(lane.starts, here.start, side="right"))
    return int(np.searchsorted(lane.starts, here.start, side="left"))


def column(lanes: Sequence[Lane], lo: int, hi: int) -> Column | None:
    """The events that start in [lo, hi), or None."""
    parts = [np.searchsorted(lane.starts, (lo, hi), side="left").tolist() for lane in lanes]
    best: tuple[int, Step] | None = None
    for number, (lane, (first, last)) in enumerate(zip(lanes, parts, strict=True)):
        if last > first:
            lengths = lane.ends[first:last] - lane.starts[first:last]
            place = int(lengths.argmax())
            step = Step(int(lane.starts[first + place]), number, first + place)
            candidate = (-int(lengths[place]), step)
            best = candidate if best is None else min(best, candidate)
    if best is None:
        return None
    step = best[1]
    earlier = sum(
        max(0, _rank(lane, number, step) - first)
        for number, (lane, (first, _)) in enumerate(zip(lanes, parts, strict=True))
    )
    return Column(step, earlier + 1, sum(last - first for first, last in parts))
