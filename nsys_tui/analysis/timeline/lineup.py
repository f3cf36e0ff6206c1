"""Lineup: all tracks in order, with what decides which are shown kept as columns.

Of tens of thousands of tracks a key shows, hides or folds some: passes over columns tell which, so
that no key waits for a loop over all of them. A lineup is made where tracks are (in a worker).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias, overload

import numpy as np

from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.analysis.timeline.tracks import Section, Track
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.events import EventSet
from nsys_tui.model.lanes import Crowd
from nsys_tui.names import cell_len

Outline: TypeAlias = tuple[Summary, ...] | Crowd

NONE: Final = -1
"""Place of what is not there."""
MOST_LOOKED_INTO: Final = 300
"""Rows up to which empty ones are left out."""
EDGES: Final = 5
"""Cells of a label's fold mark and of the blanks around it."""
FIRST_GPU: Final = 1 << 62
"""Added to the number of events of a row of the first GPU: it comes before all others."""
OWN_WORK: Final = 1 << 61
"""Added to that of a row of what a program did itself: calls of the OS and the profiler's own
time are many and say less."""


class Lineup:
    """Tracks in the order of ``arrange``, their groups, and what they are looked up by.

    Args:
        tracks: each key once, groups before what they hold.
    """

    def __init__(self, tracks: Iterable[Track] = ()) -> None:
        self.tracks = tuple(tracks)
        self.places: dict[str, int] = {track.key: n for n, track in enumerate(self.tracks)}
        """Place of each track by key."""
        self.groups: dict[str, int] = {}
        """Number of each group by key; outer ones come first."""
        above: list[int] = []
        group = [self._group(track.parents, above) for track in self.tracks]
        self._above, self._group_of = np.array(above, np.intp), np.array(group, np.intp)
        self._depth = max((len(track.parents) for track in self.tracks), default=0)
        self.folded = frozenset(track.key for track in self.tracks if track.folded)
        """Keys of the groups that are folded at first."""
        self._begins_closed = np.zeros(len(above) + 1, bool)
        self._begins_closed[[n for key, n in self.groups.items() if key in self.folded]] = True
        self._unfolded: tuple[int, frozenset[str]] = (0, frozenset())
        """What ``filling`` found last, and for how many rows."""
        self._arrangement: tuple[object, Rows] | None = None
        """The rows that were asked for last, kept until others are."""

    def _group(self, parents: tuple[str, ...], above: list[int]) -> int:
        """Number of the innermost of some groups; new ones are numbered."""
        if not parents:
            return NONE
        number = self.groups.get(parents[-1])
        if number is None:
            outer = self._group(parents[:-1], above)
            number = self.groups[parents[-1]] = len(above)
            above.append(outer)
        return number

    def __len__(self) -> int:
        return len(self.tracks)

    def track(self, key: str) -> Track | None:
        """The track of a key."""
        number = self.places.get(key)
        return None if number is None else self.tracks[number]

    @cached_property
    def estimates(self) -> Bool:
        """Which tracks come from a sample."""
        return np.array([track.estimate for track in self.tracks], bool)

    @cached_property
    def sampled(self) -> bool:
        """Whether any track comes from a sample."""
        return bool(self.estimates.any())

    @cached_property
    def weights(self) -> Int64:
        """Events of each track, those of the first GPU's far above all others."""
        return np.array([_weight(track) for track in self.tracks], np.int64)

    @cached_property
    def streams(self) -> Indices:
        """Places of the tracks of streams."""
        return np.array([n for n, t in enumerate(self.tracks) if t.stream is not None], np.intp)

    @cached_property
    def levels(self) -> Int64:
        """Nesting level of each NVTX track; -1 for others."""
        levels = [track.order[-2] if track.part == "ranges" else NONE for track in self.tracks]
        return np.array(levels, np.int64)

    @cached_property
    def _holders(self) -> dict[EventSet, dict[int | None, list[int]]]:
        """Places of the tracks with events of a set, by thread."""
        holders: dict[EventSet, dict[int | None, list[int]]] = {}
        for number, track in enumerate(self.tracks):
            if track.lane is not None and track.events is not None:
                holders.setdefault(track.events, {}).setdefault(track.thread, []).append(number)
        return holders

    @cached_property
    def outline(self) -> Outline:
        """What stands for the whole trace: the devices, or else the outermost lanes."""
        summaries = tuple(t.summary for t in self.tracks if t.summary is not None)
        lanes = (t.lane if t.covered is None else t.covered for t in self.tracks if t.depth <= 1)
        return summaries or Crowd.of(lane for lane in lanes if lane is not None)

    @cached_property
    def _closed_first(self) -> list[Track]:
        """Groups that are folded at first: those that say most come first, outer before inner."""
        closed = [self.tracks[place] for key, place in self.places.items() if key in self.folded]
        own = [track for track in closed if track.key in self.groups]
        return sorted(own, key=lambda t: (t.order[0] >= Section.HOST, len(t.parents), t.order))

    def prepare(self) -> Lineup:
        """Makes all that is made at the first use, in the thread where this is called."""
        _ = self.estimates, self.weights, self.streams, self.levels, self._holders, self.outline
        _ = self._closed_first
        return self

    def holders(self, events: EventSet, thread: int | None) -> list[Track]:
        """Tracks that may hold an event of a set, of one thread or (None) of any."""
        by_thread = self._holders.get(events, {})
        places_of = [*by_thread.values()] if thread is None else [by_thread.get(thread, [])]
        return [self.tracks[number] for places in places_of for number in places]

    def filling(self, room: int) -> frozenset[str]:
        """Groups folded at first that can be open with all rows in view, as far as they fit.

        Args:
            room: rows in view.
        """
        if self._unfolded[0] != room:
            self._unfolded = room, self._filling(room)
        return self._unfolded[1]

    def _filling(self, room: int) -> frozenset[str]:
        closed, opened = self._begins_closed.copy(), set[str]()
        below = np.bincount(self._group_of[self._group_of >= 0], minlength=len(self.groups))
        left = room - self._count(closed)
        for track in self._closed_first:
            number = self.groups[track.key]
            is_seen = opened.issuperset(self.folded.intersection(track.parents))
            if not is_seen or below[number] > left:
                continue
            closed[number] = False
            now = room - self._count(closed)
            closed[number] = now < 0
            if now >= 0:
                left = now
                opened.add(track.key)
        return frozenset(opened)

    def _count(self, closed: Bool) -> int:
        """Rows there are while some groups are closed."""
        return int(np.count_nonzero(self._outside((), closed.copy())))

    def unhidden(self, hidden: Collection[str]) -> Indices:
        """Places of the tracks that neither are hidden nor lie in a hidden group."""
        return np.flatnonzero(self._outside(hidden, np.zeros_like(self._begins_closed)))

    def shown(
        self,
        *,
        hidden: Collection[str] = (),
        opened: Collection[str] = (),
        folded: Collection[str] = (),
        pinned: Sequence[str] = (),
        levels: int | None = None,
        paired: bool = False,
    ) -> Rows:
        """The rows to draw: pinned ones first, then the others without what is hidden or folded.

        Args:
            hidden: keys that the user hid; what lies below them goes too.
            opened: keys of groups that are not folded, however they begin.
            folded: keys of groups that are, whatever else is said.
            pinned: keys in the order of pinning.
            levels: most levels of NVTX nesting per thread; None for all.
            paired: two streams of a device in each row, as far as they stand one below the other.
        """
        folds = frozenset(opened), frozenset(folded)
        asked = (frozenset(hidden), *folds, tuple(pinned), levels, paired)
        if self._arrangement is None or self._arrangement[0] != asked:
            rows = self._rows(hidden, *folds, pinned, levels)
            self._arrangement = asked, rows.paired() if paired else rows
        return self._arrangement[1]

    def _rows(
        self,
        hidden: Collection[str],
        opened: frozenset[str],
        folded: frozenset[str],
        pinned: Sequence[str],
        levels: int | None,
    ) -> Rows:
        closed = self._begins_closed.copy()
        closed[[self.groups[key] for key in opened & self.groups.keys()]] = False
        closed[[self.groups[key] for key in folded & self.groups.keys()]] = True
        kept = self._outside(hidden, closed)
        first = [
            n for key in pinned if key not in hidden and (n := self.places.get(key)) is not None
        ]
        kept[first] = False
        places = np.concatenate([np.array(first, np.intp), np.flatnonzero(kept)])
        if levels is not None:
            places = places[self.levels[places] < levels]
        return Rows(self, places, self.folded - opened | folded & self.places.keys())

    def _outside(self, hidden: Collection[str], closed: Bool) -> Bool:
        """Which tracks are neither hidden nor in a group that is closed or hidden.

        Args:
            hidden: keys.
            closed: by number of the group; changed here. The last entry stands for no group.
        """
        closed[[self.groups[key] for key in hidden if key in self.groups]] = True
        for _ in range(self._depth - 1):  # what is in a closed group is closed
            closed[:-1] |= closed[self._above]
        kept: Bool = ~closed[self._group_of]
        kept[[self.places[key] for key in hidden if key in self.places]] = False
        return kept


@dataclass(frozen=True, eq=False)
class Rows(Sequence["Track"]):
    """The rows that are shown, each taken from the lineup when it is asked for."""

    lineup: Lineup
    places: Indices
    """Of each row, in the lineup."""
    folded: frozenset[str] = frozenset()
    """Keys of the groups that are folded."""
    pairs: Mapping[int, Track] = field(default_factory=dict)
    """Rows with two lanes, by the place of the first."""

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, at: int) -> Track: ...

    @overload
    def __getitem__(self, at: slice) -> list[Track]: ...

    def __getitem__(self, at: int | slice) -> Track | list[Track]:
        if isinstance(at, slice):
            return [self._row(place) for place in self.places[at].tolist()]
        return self._row(int(self.places[at]))

    def _row(self, number: int) -> Track:
        return self.pairs.get(number) or self.lineup.tracks[number]

    @cached_property
    def _numbers(self) -> Indices:
        """Row of each track of the lineup, ``NONE`` for one that is not shown."""
        numbers = np.full(len(self.lineup), NONE, np.intp)
        numbers[self.places] = np.arange(len(self.places))
        second = [self.lineup.places[row.pair.key] for row in self.pairs.values() if row.pair]
        numbers[second] = numbers[[*self.pairs]]
        return numbers

    def number(self, key: str) -> int | None:
        """Number of the row that shows a track, alone or with another; None if none does."""
        place = self.lineup.places.get(key)
        number = NONE if place is None else int(self._numbers[place])
        return None if number == NONE else number

    @cached_property
    def busiest(self) -> int:
        """Number of the row of the first GPU with most events, else of any row; 0 without rows."""
        return int(np.argmax(self.lineup.weights[self.places])) if len(self) else 0

    @cached_property
    def label_cells(self) -> int:
        """Cells that the longest label takes; of many rows, the first ones tell."""
        return label_cells(self[:MOST_LOOKED_INTO])

    @cached_property
    def estimated(self) -> bool:
        """Whether any row comes from a sample."""
        return bool(self.lineup.estimates[self.places].any())

    def without_empty(self, window: tuple[int, int], kept: Collection[str] = ()) -> Rows:
        """The rows with an event in a window, and the groups that they stand in.

        Args:
            window: begin and end, ns.
            kept: keys of rows that stay whatever they hold.

        Returns:
            all rows where they are too many to look into at every key.
        """
        if not 0 < len(self) <= MOST_LOOKED_INTO:
            return self
        inside: set[str] = set()
        # A closed group of nested ranges shows its outermost level, which holds the others.
        closed = {key for key in self.folded if self._is_opaque(key)}
        stays = np.ones(len(self), bool)
        for number in range(len(self) - 1, -1, -1):
            row = self[number]
            known = row.key in kept or row.key in inside or row.key in closed
            if known or _holds(row, *window):
                inside.update(row.parents)
            else:
                stays[number] = False
        if stays.all() or not stays.any():
            return self
        pairs = {place: row for place, row in self.pairs.items() if place in self.places[stays]}
        return Rows(self.lineup, self.places[stays], self.folded, pairs)

    def _is_opaque(self, key: str) -> bool:
        track = self.lineup.track(key)
        return track is not None and track.part not in ("ranges", "projected")

    def paired(self) -> Rows:
        """Two streams of a device in each row, as far as they stand one below the other."""
        streams = np.isin(self.places, self.lineup.streams)
        pairs: dict[int, Track] = {}
        kept = np.ones(len(self), bool)
        for number in np.flatnonzero(streams[1:] & streams[:-1]).tolist():
            above, below = self[number], self[number + 1]
            if kept[number] and above.device == below.device:
                pairs[int(self.places[number])] = _pair(above, below)
                kept[number + 1] = False
        return Rows(self.lineup, self.places[kept], self.folded, pairs)


def label_cells(rows: Iterable[Track]) -> int:
    """Cells that the longest label in words takes with its indentation and fold mark."""
    return max((2 * r.depth + cell_len(r.words or r.label) for r in rows), default=0) + EDGES


def _holds(row: Track, lo: int, hi: int) -> bool:
    """Whether a row has anything to draw in a window; those of devices always have."""
    if row.counter is not None:
        seen = row.counter.within(lo, hi)
        return bool(seen.stop > seen.start)
    lanes = [one.lane or one.covered for one in (row, row.pair) if one is not None]
    parts = [lane.visible(lo, hi) for lane in lanes if lane is not None]
    return row.summary is not None or any(part.stop > part.start for part in parts)


def _weight(track: Track) -> int:
    if (lane := track.lane) is None:
        return 0
    if track.part == "operations" and not track.device:
        return len(lane) + FIRST_GPU
    aside = lane.category is Category.OSRT or track.part == "marks"
    return len(lane) + (0 if aside else OWN_WORK)


def _pair(above: Track, below: Track) -> Track:
    return replace(
        above,
        label=f"{above.label}+{below.label.removeprefix('str ')}".strip("+"),
        words="",
        title=f"{above.title} and {below.title}",
        pair=below,
    )
