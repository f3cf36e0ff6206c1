"""Lanes: the tracks of a timeline as far as they are built, in order, filtered and coloured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from nsys_tui.analysis.timeline.events import naming
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.tracks import Section, Track, arrange, launching_first
from nsys_tui.model.events import EventSet
from nsys_tui.model.lanes import Lane
from nsys_tui.render.dominant import Layers
from nsys_tui.render.raster import LaneView
from nsys_tui.state import Display, Filter
from nsys_tui.timeline.filtering import Colours, Filtered, filtered
from nsys_tui.timeline.summary_view import Explained

BESIDE: Final = (Section.BESIDE,)
"""``Track.order`` from which on tracks are other reports'."""


class Arranged(NamedTuple):
    """All tracks in order, as of some version of the lanes."""

    version: int = 0
    lineup: Lineup = Lineup()
    parts: frozenset[str] = frozenset()
    """Whose tracks they are."""
    took: float = 0.0
    """Processor time, seconds."""


class EventNames:
    """How events are called: one function per event set, each of which keeps the kernels it named.

    Another name style lets all go; other reports beside do, as the lanes take a new one then.
    """

    def __init__(self) -> None:
        self._style = ""
        self._by_set: dict[EventSet, Callable[[int], str]] = {}

    def of(self, events: EventSet, style: str) -> Callable[[int], str]:
        """The name of an event by its row."""
        if style != self._style:
            self._style, self._by_set = style, {}
        if events not in self._by_set:
            self._by_set[events] = naming(events, style)
        return self._by_set[events]


@dataclass(frozen=True, eq=False)
class Lanes:
    """Tracks by part. What is in order, filtered and coloured may be behind what is built."""

    parts: Mapping[str, Sequence[Track]] = field(default_factory=dict)
    """Tracks of a part of the report in front, or of a report beside by its key."""
    heading: Track | None = None
    """Above the lanes of the report in front, where those of others stand below."""
    layers: Mapping[Lane, Layers] = field(default_factory=dict)
    """Busy time by category of the longest lanes."""
    explained: Mapping[int, Explained] = field(default_factory=dict)
    """The idle gaps whose cause is known, by device."""
    version: int = 0
    """Counts changes of what there is."""
    whole: Arranged = field(default_factory=Arranged)
    """All tracks in order, unfiltered."""
    shown: Filtered = field(default_factory=Filtered)
    """What is drawn."""
    colours: Colours = field(default_factory=Colours)
    names: EventNames = field(default_factory=EventNames)

    @property
    def stale(self) -> bool:
        """Whether something is built that is not in order yet."""
        return self.whole.version != self.version

    @property
    def undrawn(self) -> bool:
        """Whether something is built that is not drawn yet."""
        return self.shown.version != self.version

    @property
    def sampled(self) -> bool:
        """Whether rows of the GPUs come from a sample, or are about to."""
        return "sample" in self.parts or self.shown.lineup.sampled

    def built(self, part: str, tracks: Sequence[Track], layers: Mapping[Lane, Layers]) -> Lanes:
        """Takes in the tracks of a part; the operations replace their sample.

        A part without tracks changes nothing in the order of the others.
        """
        gone = "sample" if part == "operations" else ""
        parts = {name: own for name, own in self.parts.items() if name != gone}
        matters = int(bool(tracks) or part == "operations")
        return replace(
            self,
            parts={**parts, part: tracks},
            layers={**self.layers, **layers},
            version=self.version + matters,
        )

    def without(self, part: str) -> Lanes:
        """Gives the tracks of a part up, with what is kept of them."""
        lanes = {track.lane for track in self.parts.get(part, ())}
        return replace(
            self,
            parts={name: value for name, value in self.parts.items() if name != part},
            layers={lane: value for lane, value in self.layers.items() if lane not in lanes},
            version=self.version + 1,
            names=EventNames(),
        )

    def below(self, heading: Track | None) -> Lanes:
        """Puts a line above the lanes of the report in front, which then fold with it."""
        return replace(self, heading=heading, version=self.version + 1)

    def arranged(self) -> Arranged:
        """All tracks in order; slow where there are tens of thousands, so for a worker."""
        begun = time.thread_time()
        every = [track for own in self.parts.values() for track in own]
        tracks = launching_first(every)
        if (head := self.heading) is not None:
            tracks = [head, *(t if t.order >= BESIDE else _below(head, t) for t in tracks)]
        lineup = Lineup(arrange(tracks)).prepare()
        return Arranged(self.version, lineup, frozenset(self.parts), time.thread_time() - begun)

    def drawn(self, wanted: Filter, style: str) -> tuple[Arranged, Filtered]:
        """What there is in order, and what a filter leaves of it; for a worker."""
        arranged = self.arranged() if self.stale else self.whole
        return arranged, filtered(arranged.lineup, wanted, style, arranged.version)

    def showing(self, whole: Arranged, shown: Filtered) -> Lanes:
        """Draws from now on what ``drawn`` made."""
        return replace(self, whole=whole, shown=shown)

    def view(self, track: Track, display: Display) -> LaneView | None:
        """How a track is drawn."""
        lane, events = track.lane, track.events
        if lane is not None and track.texts:
            return LaneView(lane, label=track.texts.__getitem__ if display.labels else None)
        if lane is None or events is None:
            return None
        return LaneView(
            lane,
            label=self.names.of(events, display.names) if display.labels else None,
            summary=track.estimate,
            layers=self.shown.layers.get(lane) or self.layers.get(lane),
            inks=self.colours.inks.get(events),
            ink_layers=self.colours.layers.get(lane),
        )


def _below(head: Track, track: Track) -> Track:
    return replace(track, parents=(head.key, *track.parents))
