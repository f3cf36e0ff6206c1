"""What a filter lets through of the tracks, what their events are painted with, and wide views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nsys_tui.analysis.timeline.events import codes_of, texts_of
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.search import matcher, matching_codes
from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.analysis.timeline.tracks import Shape, Track, passes
from nsys_tui.model.arrays import Bool, UInt8
from nsys_tui.model.categories import Category
from nsys_tui.model.events import EventSet, Operations, Ranges
from nsys_tui.model.groups import sums
from nsys_tui.model.lanes import Lane
from nsys_tui.render.cells import SLOTS, category_ink
from nsys_tui.render.dominant import ON_THE_FLY, Layers
from nsys_tui.render.palette import Theme, duration_inks, own_inks, slot_inks
from nsys_tui.state import ColourBy, Filter

COLOURED: Final = ("ranges", "projected", "report:")
"""What the names of the parts begin with whose events bring colours of their own along."""
LAYERED: Final = 1_000_000
"""Events of a lane up to which colours by name or stream are made exact for wide views."""


def layers_of(tracks: Iterable[Track]) -> dict[Lane, Layers]:
    """Busy time by category of the lanes that are too long to be counted at each drawing."""
    lanes = [t.lane for t in tracks if t.lane is not None and len(t.lane) > ON_THE_FLY]
    return {lane: _layers(lane) for lane in lanes}


def _layers(lane: Lane) -> Layers:
    """Busy time by category; a lane of one category needs no pass over its events."""
    if isinstance(lane.category, np.ndarray):
        return Layers.build(lane)
    return Layers((lane.category or 0,), (None,))


@dataclass(frozen=True, eq=False)
class Colours:
    """What events are painted with where it is not their category's colour."""

    inks: Mapping[EventSet, UInt8] = field(default_factory=dict)
    """Ink of each event of a set."""
    layers: Mapping[Lane, Layers] = field(default_factory=dict)
    """For wide views of long lanes."""
    own: tuple[str, ...] = ()
    """Colours that ranges brought along, for the theme."""


def coloured_parts(parts: Iterable[str], by: ColourBy) -> frozenset[str]:
    """Which parts have events with other colours than their category's."""
    return frozenset(p for p in parts if by is not ColourBy.CATEGORY or p.startswith(COLOURED))


def colours_of(tracks: Iterable[Track], by: ColourBy, style: str, theme: Theme) -> Colours:
    """Colours of events.

    Args:
        tracks: whose events.
        by: ``CATEGORY`` leaves ranges the colours that the program gave them; ``STREAM`` colours
            GPU work only; ``NAME`` gives the names with most time a colour each and one to all
            others; ``DURATION`` goes by order of magnitude.
        style: two kernels shown under one name share its colour.
        theme: whose background own colours must stand out from.
    """
    tracks = tuple(tracks)
    lanes = {t.lane: t.events for t in tracks if t.events is not None and t.lane is not None}
    sets = tuple(dict.fromkeys(lanes.values()))
    if by is ColourBy.CATEGORY:
        return _own_colours([events for events in sets if isinstance(events, Ranges)], theme)
    columns = {events: _inks(events, by, style) for events in sets}
    inks = {events: column for events, column in columns.items() if column is not None}
    layers = {
        lane: Layers.build(lane, inks[events])
        for lane, events in lanes.items()
        if events in inks and ON_THE_FLY < len(lane) <= LAYERED
    }
    return Colours(inks, layers)


def _own_colours(sets: Sequence[Ranges], theme: Theme) -> Colours:
    """One palette for all sets of ranges, those projected on a GPU included."""
    if not sets:
        return Colours()
    argb = np.concatenate([ranges.color for ranges in sets])
    if (argb < 0).all():
        return Colours()
    painted, inks = own_inks(theme, argb, category_ink(Category.NVTX))
    ends = np.cumsum([len(ranges) for ranges in sets])[:-1]
    parts = np.split(inks, ends)
    return Colours(dict(zip(sets, parts, strict=True)), {}, painted.own)


def _inks(events: EventSet, by: ColourBy, style: str) -> UInt8 | None:
    if by is ColourBy.STREAM:
        return slot_inks(events.stream) if isinstance(events, Operations) else None
    if by is ColourBy.DURATION:
        return duration_inks(events.duration)
    codes = codes_of(events)
    if codes is None:
        return None
    names = [forms[0] for forms in texts_of(events, style)]
    if not names:
        return None
    total = sums(codes, events.duration, len(names))
    by_name: dict[str, int] = {}
    for name, time in zip(names, total.tolist(), strict=True):
        by_name[name] = by_name.get(name, 0) + time
    heaviest = sorted(by_name, key=lambda name: (-by_name[name], name))
    slot = {name: min(place, SLOTS - 1) for place, name in enumerate(heaviest)}
    return slot_inks(np.array([slot[name] for name in names], np.int64)[codes])


@dataclass(frozen=True, eq=False)
class Filtered:
    """Tracks that a filter lets through, with shorter lanes."""

    lineup: Lineup = field(default_factory=Lineup)
    wanted: Filter = field(default_factory=Filter)
    """The filter."""
    version: int = 0
    """Which state of the lanes this is of."""
    hidden: int = 0
    """Events that the filter hides in the lanes it leaves."""
    gone: int = 0
    """Lanes that it takes away."""
    layers: Mapping[Lane, Layers] = field(default_factory=dict)
    """Busy time by category of the shorter lanes."""


def filtered(whole: Lineup, wanted: Filter, style: str, version: int) -> Filtered:
    """Applies a filter: lanes keep the events that fit; rows without any stay, empty.

    A GPU none of whose streams is left goes with all its rows: it was not idle.
    """
    if not wanted:
        return Filtered(whole, wanted, version)
    fits = matcher(wanted.pattern) if wanted.pattern else None
    codes: dict[EventSet, Bool] = {}
    kept: list[Track] = []
    by_lane: dict[Lane, Lane] = {}
    hidden = 0
    for track in whole.tracks:
        if not passes(track, wanted.devices, wanted.streams, wanted.processes):
            continue
        lane, events = track.lane, track.events
        if lane is None or events is None or track.shape is not Shape.EVENTS:
            kept.append(track)
            continue
        mask = lane.ends - lane.starts >= wanted.min_duration
        column = codes_of(events)
        if fits is not None and column is not None:
            if events not in codes:
                codes[events] = matching_codes(events, fits, style)
            chosen = codes[events]
            mask &= chosen[column[lane.index]]
        shorter = lane if mask.all() else lane.take(np.flatnonzero(mask))
        hidden += len(lane) - len(shorter)
        by_lane[lane] = shorter
        kept.append(replace(track, lane=shorter))
    without = {t.device for t in kept if t.summary is not None and _is_without(t.summary, by_lane)}
    tracks = tuple(
        _summarised(track, by_lane)
        for track in kept
        if track.device not in without or track.process is not None
    )
    gone = len(whole.tracks) - len(tracks)
    return Filtered(Lineup(tracks).prepare(), wanted, version, hidden, gone, layers_of(tracks))


def _is_without(summary: Summary, by_lane: Mapping[Lane, Lane]) -> bool:
    """Whether a device had streams, and none of them is left."""
    return bool(summary.lanes) and by_lane.keys().isdisjoint(summary.lanes)


def _summarised(track: Track, by_lane: Mapping[Lane, Lane]) -> Track:
    """The row of a device from the lanes that are left of its streams."""
    if track.summary is None:
        return track
    lanes = [by_lane[lane] for lane in track.summary.lanes if lane in by_lane]
    return replace(track, summary=Summary.build(lanes))
