"""Beside: the lanes of another report on the clock of this one, as a group of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from nsys_tui.analysis.timeline.gpu import device_tracks, stream_tracks
from nsys_tui.analysis.timeline.host import range_tracks
from nsys_tui.analysis.timeline.tracks import Section, Shape, Track
from nsys_tui.model.events import EventSet
from nsys_tui.model.report import Report
from nsys_tui.units import format_duration

Events = TypeVar("Events", bound=EventSet)

DEVICES: Final = 1_000
"""``Track.device`` of the n-th report beside counts from n times this: no clash between reports."""


@dataclass(frozen=True)
class Alignment:
    """How the clock of another report is laid on this one's."""

    offset: int
    """ns to add to its times."""
    why: str
    """In words, for the heading of its lanes."""


@dataclass(frozen=True, eq=False)
class Beside:
    """The lanes of another report."""

    report: Report
    offset: int
    extent: tuple[int, int]
    """Its whole trace, on this report's clock."""
    tracks: tuple[Track, ...]
    own: Mapping[EventSet, EventSet]
    """The report's own events, by the set with moved times in the tracks."""


def alignment(report: Report, other: Report) -> Alignment:
    """Lays sessions on each other by their UTC starts where those let them overlap."""
    here, there = report.metadata.session_start_utc_ns, other.metadata.session_start_utc_ns
    if here is None or there is None:
        return Alignment(0, "no UTC start recorded: drawn from its own session start")
    offset = there - here
    lo, hi = other.extent
    if hi + offset <= report.extent[0] or lo + offset >= report.extent[1]:
        apart = format_duration(abs(offset))
        return Alignment(0, f"not captured together ({apart} apart): from its own session start")
    sign = "+" if offset >= 0 else "-"
    return Alignment(offset, f"aligned by UTC session start, {sign}{format_duration(abs(offset))}")


def heading(key: str, number: int, label: str, note: str) -> Track:
    """The line above the lanes of a report.

    Args:
        key: identity.
        number: place among the reports beside, from 1 on; 0 for the report in front.
        label: what it is called.
        note: file and clock.
    """
    return Track(
        key=key,
        label=label,
        title=f"{label} {note}",
        part="",
        order=(Section.BESIDE + number if number else -1,),
        shape=Shape.HEADING,
        note=note,
    )


def beside(other: Report, moved_by: int, head: Track, number: int) -> Beside:
    """The GPUs with their streams, and the leading thread's ranges, of another report.

    Args:
        other: the report; operations and ranges are loaded.
        moved_by: ns to add to its times.
        head: the line above its lanes.
        number: its place among the reports beside, from 1 on.
    """
    ops, ranges = _moved(other.operations, moved_by), _moved(other.ranges, moved_by)
    streams = stream_tracks(ops)
    tracks = [track for track in range_tracks(other, ranges) if track.order[0] == Section.NVTX]
    tracks += [track for track in streams if track.shape is not Shape.SUMMARY]
    tracks += device_tracks(streams)
    lo, hi = other.extent
    return Beside(
        report=other,
        offset=moved_by,
        extent=(lo + moved_by, hi + moved_by),
        tracks=(head, *(_placed(track, head, number) for track in tracks)),
        own={ops: other.operations, ranges: other.ranges},
    )


def _moved(events: Events, by: int) -> Events:
    if not by:
        return replace(events)
    return replace(events, start=events.start + by, end=events.end + by)


def _placed(track: Track, head: Track, number: int) -> Track:
    """A track in the group of its report; of each GPU and thread one row is shown at first."""
    return replace(
        track,
        key=f"{head.key}/{track.key}",
        title=f"{head.label} {track.title}",
        order=(Section.BESIDE + number, *track.order),
        parents=(head.key, *(f"{head.key}/{key}" for key in track.parents)),
        folded=True,
        device=None if track.device is None else number * DEVICES + track.device,
        stream=None,
        process=None,
    )
