"""Store: the tracks of a report as they arrive, with what is needed to draw them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from nsys_tui.analysis.timeline.events import naming
from nsys_tui.analysis.timeline.tracks import Section, Track, arrange
from nsys_tui.render.raster import LaneView
from nsys_tui.ui.screens.timeline.colouring import Colours
from nsys_tui.ui.screens.timeline.filtering import Filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.analysis.timeline.summary import Summary
    from nsys_tui.model.events import EventSet
    from nsys_tui.model.lanes import Lane
    from nsys_tui.render.dominant import Layers

BESIDE: Final = (Section.BESIDE,)
"""``Track.order`` from which on tracks are other reports'."""


class Arranged(NamedTuple):
    """All tracks in order, as of some state of the store."""

    changes: int
    tracks: tuple[Track, ...]


@dataclass(eq=False)
class Store:
    """Tracks by part, arranged; lane views made on demand."""

    parts: dict[str, list[Track]] = field(default_factory=dict)
    heading: Track | None = None
    """Above the lanes of this report, where those of others stand below."""
    whole: tuple[Track, ...] = ()
    """All tracks, unfiltered."""
    filtered: Filtered = field(default_factory=lambda: Filtered(()))
    layers: dict[int, Layers] = field(default_factory=dict)
    """By ``id`` of the lane."""
    colours: Colours = field(default_factory=Colours)
    style: str = "short"
    labels: bool = True
    _names: dict[int, Callable[[int], str]] = field(default_factory=dict)
    _views: dict[int, LaneView] = field(default_factory=dict)
    _changes: int = 0
    _stale: bool = False
    """Whether there are tracks that are not in order yet."""
    _outline: tuple[Summary, ...] | tuple[Lane, ...] | None = None

    def arranged(self, part: str, tracks: list[Track]) -> Arranged:
        """All tracks in order with those of one more part, for ``add``; changes nothing."""
        return Arranged(self._changes, self._ordered({**self.parts, part: tracks}))

    def add(
        self,
        part: str,
        tracks: list[Track],
        layers: Mapping[int, Layers],
        arranged: Arranged | None = None,
    ) -> None:
        """Takes in the tracks of a part; those of the operations replace those of a sample.

        Args:
            part: the part.
            tracks: its tracks.
            layers: by ``id`` of the lane.
            arranged: all tracks in order, worked out before, which counts if nothing changed since;
                without it they are put in order by ``arrange``.
        """
        self.parts[part] = tracks
        if part == "operations":
            self.parts.pop("sample", None)
            self.colours = Colours()  # ids of what is gone may come again
        self.layers.update(layers)
        self._stale = self._stale or bool(tracks) or part == "operations"
        if arranged is not None and arranged.changes == self._changes and self._stale:
            self._take(arranged.tracks)

    def arrange(self) -> None:
        """Puts what was added in order, where that is still to be done."""
        if self._stale:
            self._arrange()

    def head(self, heading: Track | None) -> None:
        """Puts a line above the lanes of this report, which then fold with it; None removes it."""
        self.heading = heading
        self._arrange()

    def remove(self, part: str) -> None:
        """Gives the tracks of a part up."""
        gone = self.parts.pop(part, None)
        if gone is None:
            return
        self.colours = Colours()  # ids of what is gone may come again
        for track in gone:
            self.layers.pop(id(track.lane), None)
        self._names.clear()
        self._arrange()

    def _arrange(self) -> None:
        self._take(self._ordered(self.parts))

    def _take(self, tracks: tuple[Track, ...]) -> None:
        self._changes += 1
        self._stale = False
        self.whole, self._outline = tracks, None
        self.show(Filtered(tracks))

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
        if id(events) not in self._names:
            self._names[id(events)] = naming(events, self.style)
        return self._names[id(events)]

    @property
    def outline(self) -> tuple[Summary, ...] | tuple[Lane, ...]:
        """What stands for the whole trace: the devices, or else the outermost lanes."""
        if self._outline is None:
            whole = self.whole
            summaries = tuple(t.summary for t in whole if t.summary is not None)
            lanes = (t.lane for t in whole if t.lane is not None and t.depth <= 1)
            self._outline = summaries or tuple(lanes)
        return self._outline

    def view(self, track: Track) -> LaneView | None:
        """How a track is drawn."""
        lane, events = track.lane, track.events
        if lane is None or events is None:
            return None
        if id(lane) not in self._views:
            self._views[id(lane)] = LaneView(
                lane,
                label=self.naming(events) if self.labels else None,
                summary=track.estimate,
                layers=self.filtered.layers.get(id(lane)) or self.layers.get(id(lane)),
                inks=self.colours.inks.get(id(events)),
                ink_layers=self.colours.layers.get(id(lane)),
            )
        return self._views[id(lane)]


def _below(head: Track, track: Track) -> Track:
    return replace(track, parents=(head.key, *track.parents))
