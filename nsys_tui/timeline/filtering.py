"""Filtering: lanes with only the events that a filter lets through, and how many it hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nsys_tui.analysis.timeline.events import codes_of
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.search import matcher, matching_codes
from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.analysis.timeline.tracks import Shape, Track, passes
from nsys_tui.model.arrays import Bool
from nsys_tui.model.events import EventSet
from nsys_tui.model.lanes import Lane
from nsys_tui.render.dominant import Layers
from nsys_tui.state import Filter
from nsys_tui.timeline.colouring import layers_of


@dataclass(frozen=True, eq=False)
class Filtered:
    """Tracks that a filter lets through, with shorter lanes."""

    lineup: Lineup = field(default_factory=Lineup)
    wanted: Filter = field(default_factory=Filter)
    """The filter."""
    version: int = 0
    """Which state of the lanes this is of."""
    hidden: int = 0
    """Events that the filter hides."""
    layers: Mapping[Lane, Layers] = field(default_factory=dict)
    """Busy time by category of the shorter lanes."""


def filtered(whole: Lineup, wanted: Filter, style: str, version: int) -> Filtered:
    """Applies a filter: lanes keep the events that fit; rows without any stay, empty."""
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
    found = tuple(_summarised(track, by_lane) for track in kept)
    return Filtered(Lineup(found).prepare(), wanted, version, hidden, layers_of(found))


def _summarised(track: Track, by_lane: Mapping[Lane, Lane]) -> Track:
    """The row of a device from the lanes that are left of its streams."""
    if track.summary is None:
        return track
    lanes = [by_lane[lane] for lane in track.summary.lanes if lane in by_lane]
    return replace(track, summary=Summary.build(lanes))
