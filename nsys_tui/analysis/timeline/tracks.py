"""The timeline as data: which lanes there are, in which order, under which groups.

A ``Track`` is one row of the timeline before it is drawn. Parts of a report give their tracks
independently (``gpu``, ``host``); ``arrange`` puts whatever is there in order;
what of it is shown, a ``Lineup`` tells. Nothing here draws.
"""

from __future__ import annotations

from collections import Counter as Counts
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.target import tid_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from nsys_tui.analysis.timeline.summary import Summary
    from nsys_tui.model.arrays import Array, Int64
    from nsys_tui.model.events import EventSet
    from nsys_tui.model.lanes import Lane


class Shape(Enum):
    """What a track holds and how it is drawn."""

    HEADING = "heading"
    """A group's own line: a text."""
    EVENTS = "events"
    SUMMARY = "summary"
    """All work of a device in one row, shading only."""
    COUNTER = "counter"
    DENSITY = "density"
    """How many points fall into each cell."""
    SHARE = "share"
    """How much of each cell is covered."""


@dataclass(frozen=True, eq=False)
class Counter:
    """A value over time."""

    times: Int64
    """Nanoseconds, never decreasing."""
    values: Array
    unit: str
    """``%``, ``B``, or whatever the metric's name says."""
    top: float
    """Full scale."""
    reach: int
    """For how many ns a value lasts where no other follows; 0 for a moment alone."""

    def within(self, lo: int, hi: int) -> slice:
        """Samples of a window, with the one before it that still lasts."""
        first, last = np.searchsorted(self.times, (lo, hi)).tolist()
        return slice(first - (first > 0 and lo - int(self.times[first - 1]) <= self.reach), last)


@dataclass(frozen=True, eq=False)
class Track:
    """One row of the timeline."""

    key: str
    """Identity, the same after a reload."""
    label: str
    """For the margin of a narrow screen; untrusted text."""
    title: str
    """The whole name, with what it belongs to."""
    part: str
    """Kind of event in it: a part of the report, or ``projected``; empty for a heading."""
    order: tuple[int, ...]
    """Where it stands among the others."""
    shape: Shape = Shape.EVENTS
    words: str = ""
    """The label in words, for a margin with room for them; empty where it is the same."""
    depth: int = 0
    """Indentation."""
    parents: tuple[str, ...] = ()
    """Keys of the groups that it is folded away with, outermost first."""
    events: EventSet | None = None
    """Whose rows the lane's index means."""
    lane: Lane | None = None
    texts: tuple[str, ...] = ()
    """Names by the lane's index, where no event set has them; untrusted."""
    summary: Summary | None = None
    counter: Counter | None = None
    covered: Lane | None = None
    """Times of which each cell shows its share."""
    off: tuple[tuple[str, Lane], ...] = ()
    """Times that are known to be none of these, by what they were: its first letter is drawn."""
    note: str = ""
    """Text in the row of a heading."""
    folded: bool = False
    """Whether what is below it is folded away at first."""
    hoists: bool = False
    """A heading whose row is lent to its first lane, to save one."""
    pair: Track | None = None
    """The lane that shares the row, where two lie in one."""
    estimate: bool = False
    """Whether it comes from a sample: shading only."""
    device: int | None = None
    """Place in the report's devices."""
    stream: int | None = None
    """Place in the report's streams."""
    process: int | None = None
    """globalPid."""
    thread: int | None = None
    """globalTid."""


CALLS: Final = "api"
"""Part of the threads that call the GPU."""


class Section:
    """First number of ``Track.order``."""

    NVTX, GPU, LAUNCHING, HOST, BESIDE = range(5)


def gpu_key(device: int) -> str:
    """Key of a device's own row."""
    return f"gpu:{device}"


def arrange(tracks: Iterable[Track]) -> tuple[Track, ...]:
    """All tracks in order, each key once; headings lend their row to their first lane."""
    ordered = sorted({track.key: track for track in tracks}.values(), key=lambda t: t.order)
    placed: list[Track] = []
    for track in _numbered_alike(ordered):
        above = placed[-1] if placed else None
        if above is not None and above.hoists and above.key in track.parents[-1:]:
            placed[-1] = _hoisted(above, track)
        else:
            placed.append(track)
    owners = groups(placed)
    return tuple(t for t in placed if t.shape is not Shape.HEADING or t.key in owners or t.note)


def _numbered_alike(tracks: list[Track]) -> Iterator[Track]:
    """Threads of one name with their numbers: ``python3 145``."""
    names = Counts(track.label for track in tracks if track.hoists)
    for track in tracks:
        number = "" if track.thread is None else f" {tid_of(track.thread)}"
        alike = track.hoists and names[track.label] > 1 and not track.label.endswith(number)
        yield replace(track, label=f"{track.label}{number}") if alike else track


def launching_first(tracks: Iterable[Track]) -> list[Track]:
    """Threads that call the GPU, or else MPI, stand for themselves; others fold by process.

    Where no thread does, as in a report of NVTX alone, all stay as they are.
    """
    tracks = {track.key: track for track in tracks}.values()
    launching = [track for track in tracks if track.part and track.order[0] < Section.BESIDE]
    callers = [t.key for t in launching if t.part == CALLS]
    what = "GPU" if callers else "MPI"
    callers = callers or [t.key for t in launching if t.label == what]
    keys = {key.partition("/")[0] for key in callers}
    if not keys:
        return [*tracks]
    others: dict[str, int] = {}
    ordered: list[Track] = []
    for track in tracks:
        if track.order[0] != Section.HOST or not track.parents:
            ordered.append(track)
        elif track.key in keys or keys.intersection(track.parents):
            order = (Section.LAUNCHING, *track.order[1:])
            depth = track.depth - 1
            ordered.append(replace(track, order=order, depth=depth, parents=track.parents[1:]))
        else:
            others[track.parents[0]] = others.get(track.parents[0], 0) + (len(track.parents) == 1)
            ordered.append(track)
    return [
        _folded_process(t, others, what) for t in ordered if t.hoists or not _is_left(t, others)
    ]


def _is_left(track: Track, others: Collection[str]) -> bool:
    """Whether all threads of a process stand for themselves, so that its own line is empty."""
    return track.shape is Shape.HEADING and track.process is not None and track.key not in others


def _folded_process(track: Track, others: Mapping[str, int], what: str) -> Track:
    count = others.get(track.key, 0)
    if not count:
        return track
    threads = "1 thread that calls" if count == 1 else f"{count:,} threads that call"
    note = f"{threads} no {what}, of {track.note if not track.words else track.words}"
    return replace(track, label="others", words="other threads", note=note, folded=True)


def _hoisted(heading: Track, track: Track) -> Track:
    if track.counter is not None or track.lane is track.covered or track.part == "ranges":
        return replace(heading, hoists=False)
    what = "" if track.covered is not None else f" {track.words or track.label}"
    return replace(
        track,
        key=heading.key,
        label=heading.label,
        words=f"{heading.words}{what}",
        depth=heading.depth,
        parents=heading.parents,
        folded=heading.folded,
    )


def groups(tracks: Iterable[Track]) -> frozenset[str]:
    """Keys of the tracks that others are folded away with."""
    return frozenset(chain.from_iterable(track.parents for track in tracks))


def passes(
    track: Track,
    devices: Collection[int] = (),
    streams: Collection[int] = (),
    processes: Collection[int] = (),
) -> bool:
    """Whether a track belongs to some devices, streams and processes; empty ones exclude nothing.

    Args:
        track: one without device, stream or process belongs to all of them.
        devices: places in the report's devices.
        streams: places in its streams.
        processes: globalPid values.
    """
    wanted = (
        (devices, track.device),
        (streams, track.stream),
        (processes, track.process),
    )
    return all(not chosen or value is None or value in chosen for chosen, value in wanted)
