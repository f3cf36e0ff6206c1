"""Search over all lanes: which events match, how many per lane, and the next one in time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nsys_tui.analysis.timeline.events import codes_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.events import EventSet, Int64

Positions: TypeAlias = "NDArray[np.integer[Any]]"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a text fits: as a regular expression without regard to case.

    What is no regular expression is taken as words that must all occur.
    """
    try:
        found = re.compile(pattern, re.IGNORECASE)
    except re.error:
        words = pattern.lower().split()
        return lambda text: all(word in text.lower() for word in words)
    return lambda text: found.search(text) is not None


def matching_codes(events: EventSet, fits: Callable[[str], bool], style: str) -> NDArray[np.bool_]:
    """Which name codes of a set fit."""
    texts = texts_of(events, style)
    return np.array([any(fits(text) for text in forms) for forms in texts], bool)


@dataclass(frozen=True, eq=False)
class Found:
    """Result of a search."""

    pattern: str
    matches: Mapping[str, Positions]
    """Ascending positions in the lane of each track, by key; only tracks with matches."""
    starts: Mapping[str, Int64]
    """Start of each match."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Matches by track."""
        return {key: len(found) for key, found in self.matches.items()}

    @property
    def total(self) -> int:
        """All matches."""
        return sum(self.counts.values())

    def step(self, keys: Sequence[str], here: tuple[int, int], forward: bool) -> Spot | None:
        """The next match after, or the last before, a place; the order is (start, lane).

        Args:
            keys: tracks to look in, from top to bottom.
            here: time and number of the lane (in ``keys``) that the step begins at.
            forward: direction.

        Returns:
            None where there is no match in this direction.
        """
        time, lane = here
        best: tuple[int, int, str, int] | None = None
        for number, key in enumerate(keys):
            starts = self.starts.get(key)
            if starts is None:
                continue
            passed = (number <= lane) if forward else (number < lane)
            place = int(np.searchsorted(starts, time, side="right" if passed else "left"))
            place -= not forward
            if not 0 <= place < len(starts):
                continue
            candidate = (int(starts[place]), number, key, place)
            if best is None or (candidate < best) == forward:
                best = candidate
        return None if best is None else Spot(best[2], int(self.matches[best[2]][best[3]]))

    def rank(self, keys: Sequence[str], spot: Spot) -> int:
        """Number of a match among all in the order of (start, lane), from 1 on."""
        starts = self.starts[spot.key]
        place = int(np.searchsorted(self.matches[spot.key], spot.position))
        time = int(starts[place])
        before = place - int(np.searchsorted(starts, time, side="left"))
        for number, key in enumerate(keys):
            others = self.starts.get(key)
            if others is not None:
                above = key != spot.key and number < keys.index(spot.key)
                before += int(np.searchsorted(others, time, side="right" if above else "left"))
        return before + 1


@dataclass(frozen=True)
class Spot:
    """An event in a lane."""

    key: str
    """Key of the track."""
    position: int
    """Position in its lane."""


def search(tracks: Sequence[Track], pattern: str, style: str, *, exact: bool = False) -> Found:
    """Finds all events whose name matches, in every lane.

    Args:
        tracks: lanes without names have no matches; projected ranges are found as ranges only.
        pattern: see ``matcher``.
        style: name style in which names are shown.
        exact: only events that are shown under exactly this name.
    """
    fits = matcher(pattern)
    wanted: dict[int, NDArray[np.bool_]] = {}
    matches: dict[str, Positions] = {}
    starts: dict[str, Int64] = {}
    for track in tracks:
        events, lane = track.events, track.lane
        column = codes_of(events) if events is not None else None
        if events is None or lane is None or column is None or track.part == "projected":
            continue
        if id(events) not in wanted:
            wanted[id(events)] = (
                np.array([forms[0] == pattern for forms in texts_of(events, style)], bool)
                if exact
                else matching_codes(events, fits, style)
            )
        chosen = wanted[id(events)]
        if chosen.any():
            found = np.flatnonzero(chosen[column[lane.index]]).astype(np.int32)
            if len(found):
                matches[track.key] = found
                starts[track.key] = lane.starts[found]
    return Found(pattern, matches, starts)
