"""Store: the tracks of a report as they arrive, with what is needed to draw them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from nsys_tui.analysis.timeline.events import naming
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.tracks import Section, Track, arrange
from nsys_tui.render.raster import LaneView
from nsys_tui.ui.screens.timeline.colouring import Colours
from nsys_tui.ui.screens.timeline.filtering import Filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.model.events import EventSet
    from nsys_tui.model.lanes import Lane
    from nsys_tui.render.dominant import Layers

BESIDE: Final = (Section.BESIDE,)
"""``Track.order`` from which on tracks are other reports'."""


class Arranged(NamedTuple):
    """All tracks in order, as of some state of the store."""

    changes: int
    lineup: Lineup
    took: float
    """Seconds."""


@dataclass(eq=False)
class Store:
    """Tracks by part, arranged; lane views made on demand."""

    parts: dict[str, list[Track]] = field(default_factory=dict)
    heading: Track | None = None
    """Above the lanes of this report, where those of others stand below."""
    whole: Lineup = field(default_factory=Lineup)
    """All tracks, unfiltered."""
    filtered: Filtered = field(default_factory=lambda: Filtered(Lineup()))
    layers: dict[Lane, Layers] = field(default_factory=dict)
    colours: Colours = field(default_factory=Colours)
    style: str = "short"
    labels: bool = True
    _names: dict[EventSet, Callable[[int], str]] = field(default_factory=dict)
    _views: dict[Lane, LaneView] = field(default_factory=dict)
    _changes: int = 0
    _arranged: int = 0
    """Which of the changes are in order already."""

    @property
    def stale(self) -> bool:
        """Whether there are changes that are not in order yet."""
        return self._arranged != self._changes

    def arranged(self, part: str = "", tracks: list[Track] | None = None) -> Arranged:
        """All tracks in order, with those of one more part; changes nothing, so a worker can."""
        parts = self.parts if tracks is None else {**self.parts, part: tracks}
        changes = self._changes + (tracks is not None and _matters(part, tracks))
        begun = time.thread_time()
        lineup = Lineup(self._ordered(dict(parts))).prepare()
        return Arranged(changes, lineup, time.thread_time() - begun)

    def add(
        self,
        part: str,
        tracks: list[Track],
        layers: Mapping[Lane, Layers],
        arranged: Arranged | None = None,
    ) -> None:
        """Takes in the tracks of a part; those of the operations replace those of a sample.

        Args:
            part: the part.
            tracks: its tracks.
            layers: of its longest lanes.
            arranged: all tracks in order, worked out before, which counts if nothing changed since.
        """
        self.parts[part] = tracks
        if part == "operations":
            self.parts.pop("sample", None)
        self.layers.update(layers)
        self._changes += _matters(part, tracks)
        if arranged is not None and arranged.changes == self._changes:
            self.take(arranged)

    def head(self, heading: Track | None) -> None:
        """Puts a line above the lanes of this report, which then fold with it; None removes it."""
        self.heading = heading
        self._changes += 1

    def remove(self, part: str) -> None:
        """Gives the tracks of a part up."""
        gone = self.parts.pop(part, None)
        if gone is None:
            return
        for track in gone:
            if track.lane is not None:
                self.layers.pop(track.lane, None)
        self._names.clear()
        self._changes += 1

    def take(self, arranged: Arranged) -> bool:
        """Takes tracks in the order worked out for them; tells whether there is no newer one."""
        newer = arranged.changes > self._arranged
        if newer:
            self._arranged, self.whole = arranged.changes, arranged.lineup
            self.show(Filtered(self.whole))
        return newer

    def _ordered(self, parts: Mapping[str, list[Track]]) -> tuple[Track, ...]:
        sampled = "operations" not in parts
        found = (own for part, own in parts.items() if sampled or part != "sample")
        tracks = [track for own in found for track in own]
        if (head := self.heading) is not None:
            own = (t if t.order >= BESIDE else _below(head, t) for t in tracks)
            tracks = [head, *own]
        return arrange(tracks)

    def show(self, filtered: Filtered) -> None:
        """Draws these tracks from now on."""
        self.filtered = filtered
        self._views.clear()

    def name(self, style: str, labels: bool) -> None:
        """Changes how events are called."""
        self.style, self.labels = style, labels
        self._names.clear()
        self._views.clear()

    def colour(self, colours: Colours) -> None:
        """Changes what events are painted with."""
        self.colours = colours
        self._views.clear()

    def naming(self, events: EventSet) -> Callable[[int], str]:
        """How the events of a set are called now."""
        if events not in self._names:
            self._names[events] = naming(events, self.style)
        return self._names[events]

    def view(self, track: Track) -> LaneView | None:
        """How a track is drawn."""
        lane, events = track.lane, track.events
        if lane is None or events is None:
            return None
        if lane not in self._views:
            self._views[lane] = LaneView(
                lane,
                label=self.naming(events) if self.labels else None,
                summary=track.estimate,
                layers=self.filtered.layers.get(lane) or self.layers.get(lane),
                inks=self.colours.inks.get(events),
                ink_layers=self.colours.layers.get(lane),
            )
        return self._views[lane]


def _matters(part: str, tracks: list[Track]) -> bool:
    """Whether the order changes with a part; the operations replace their sample."""
    return bool(tracks) or part == "operations"


def _below(head: Track, track: Track) -> Track:
    return replace(track, parents=(head.key, *track.parents))
