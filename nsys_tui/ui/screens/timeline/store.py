"""Store: the tracks of a report as they arrive, with what is needed to draw them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsys_tui.analysis.timeline.events import naming
from nsys_tui.analysis.timeline.tracks import Track, arrange
from nsys_tui.render.raster import LaneView
from nsys_tui.ui.screens.timeline.colouring import Colours
from nsys_tui.ui.screens.timeline.filtering import Filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.model.events import EventSet
    from nsys_tui.render.dominant import Layers


@dataclass(eq=False)
class Store:
    """Tracks by part, arranged; lane views made on demand."""

    parts: dict[str, list[Track]] = field(default_factory=dict)
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

    def add(self, part: str, tracks: list[Track], layers: Mapping[int, Layers]) -> None:
        """Takes in the tracks of a part; those of the operations replace those of a sample."""
        self.parts[part] = tracks
        if part == "operations":
            self.parts.pop("sample", None)
            self.colours = Colours()  # ids of what is gone may come again
        self.layers.update(layers)
        self.whole = arrange(track for found in self.parts.values() for track in found)
        self.show(Filtered(self.whole))

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
