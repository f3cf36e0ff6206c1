"""The way to other events: stepping over lanes, and a search over all of them with its matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from nsys_tui.analysis.timeline.events import codes_of, texts_of
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.tracks import Track
from nsys_tui.model.arrays import Bool, Int64, Integers
from nsys_tui.model.events import EventSet
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
    steps: list[Step] = []
    for number, lane in enumerate(lanes):
        position = _rank(lane, number, here)
        position += number == here.lane and _at(lane, position) == here.start
        if position < len(lane):
            steps.append(Step(int(lane.starts[position]), number, position))
    return min(steps, default=None)


def before(lanes: Sequence[Lane], here: Step) -> Step | None:
    """The last event before a place."""
    steps: list[Step] = []
    for number, lane in enumerate(lanes):
        position = _rank(lane, number, here) - 1
        if position >= 0:
            steps.append(Step(int(lane.starts[position]), number, position))
    return max(steps, default=None)


def _at(lane: Lane, position: int) -> int | None:
    return int(lane.starts[position]) if position < len(lane) else None


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
            name = int(lengths.argmax())
            step = Step(int(lane.starts[first + name]), number, first + name)
            candidate = (-int(lengths[name]), step)
            best = candidate if best is None else min(best, candidate)
    if best is None:
        return None
    step = best[1]
    earlier = sum(
        max(0, _rank(lane, number, step) - first)
        for number, (lane, (first, _)) in enumerate(zip(lanes, parts, strict=True))
    )
    return Column(step, earlier + 1, sum(last - first for first, last in parts))


def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a text fits: as a regular expression without regard to case.

    What is no regular expression is taken as words that must all occur.
    """
    try:
        regex = re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError):
        words = pattern.lower().split()
        return lambda text: all(word in text.lower() for word in words)
    return lambda text: regex.search(text) is not None


def matching_codes(events: EventSet, fits: Callable[[str], bool], style: str) -> Bool:
    """Which name codes of a set fit."""
    texts = texts_of(events, style)
    return np.array([any(fits(text) for text in forms) for forms in texts], bool)


@dataclass(frozen=True, eq=False)
class Found:
    """Result of a search: the matches of all lanes, by start, then from top to bottom."""

    pattern: str
    lineup: Lineup
    """What was searched."""
    start: Int64
    """Start of each match."""
    place: Integers
    """Its track, in the lineup."""
    position: Integers
    """Its position in the lane of the track."""
    matches: Mapping[str, Integers]
    """Ascending positions in the lane of each track, by key; only tracks with matches."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Matches by track."""
        return {key: len(rows) for key, rows in self.matches.items()}

    @property
    def total(self) -> int:
        """All matches."""
        return len(self.start)

    def without(self, hidden: Collection[str]) -> Found:
        """Only the matches in lanes that are not hidden."""
        if not hidden:
            return self
        kept = np.isin(self.place, self.lineup.unhidden(hidden))
        return replace(
            self, start=self.start[kept], place=self.place[kept], position=self.position[kept]
        )

    def step(self, time: int, position: int, *, forward: bool) -> int | None:
        """Number of the next match after, or the last before, a time and a place in the lineup.

        Returns:
            None where there is no match in this direction.
        """
        first = int(np.searchsorted(self.start, time, side="left"))
        last = int(np.searchsorted(self.start, time, side="right"))
        side: Literal["left", "right"] = "right" if forward else "left"
        number = first + int(np.searchsorted(self.place[first:last], position, side=side))
        number -= not forward
        return number if 0 <= number < self.total else None


def search(lineup: Lineup, pattern: str, style: str, *, exact: bool = False) -> Found:
    """Finds all events whose name matches, in every lane.

    Args:
        lineup: lanes without names have no matches; projected ranges are found as ranges only.
        pattern: see ``matcher``.
        style: name style in which names are shown.
        exact: only events that are shown under exactly this name.
    """
    fits = matcher(pattern)
    wanted: dict[EventSet, Bool] = {}
    matches: dict[str, Integers] = {}
    starts, places = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for lane_number, track in enumerate(lineup.tracks):
        events, lane = track.events, track.lane
        column = codes_of(events) if events is not None else None
        if events is None or lane is None or column is None or track.part == "projected":
            continue
        if events not in wanted:
            wanted[events] = (
                np.array([forms[0] == pattern for forms in texts_of(events, style)], bool)
                if exact
                else matching_codes(events, fits, style)
            )
        chosen = wanted[events]
        if chosen.any():
            rows = np.flatnonzero(chosen[column[lane.index]]).astype(np.int32)
            if len(rows):
                matches[track.key] = rows
                starts.append(lane.starts[rows])
                places.append(np.full(len(rows), lane_number, np.int32))
    start = np.concatenate(starts)
    order = np.argsort(start, kind="stable")  # tracks are in order already
    position = np.concatenate([np.empty(0, np.int32), *matches.values()])
    place_of = np.concatenate(places)
    return Found(pattern, lineup, start[order], place_of[order], position[order], matches)
