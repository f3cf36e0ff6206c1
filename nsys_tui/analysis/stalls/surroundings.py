"""The scene of a stall: what the GPU, the launching thread and its neighbours did around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.thread_states import beside
from nsys_tui.analysis.timeline.host import api_categories
from nsys_tui.analysis.window import Rows, masked, touching
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64, UInt8
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category
from nsys_tui.model.events import Operations, ThreadEvents
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.names import api_name

MARGIN: Final = 0.25
"""Time shown on either side, as a part of the stall."""
MOST_EVENTS: Final = 200
NEIGHBOURS: Final = 3
FRAMES: Final = 5


@dataclass(frozen=True, eq=False)
class SceneLane:
    """One line of the scene: events in start order with a name and a category each."""

    label: str
    """``str 7``, ``pt_main_thread: API``."""
    starts: Int64
    ends: Int64
    categories: UInt8
    names: tuple[str, ...]
    hidden: int
    """Shorter events that are left out."""


@dataclass(frozen=True)
class HotFrames:
    """A call stack that CPU samples of the launching thread hit most."""

    frames: tuple[str, ...]
    """Leaf first."""
    samples: int
    of: int
    """Samples of the thread in the stall."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What happened around a stall."""

    window: tuple[int, int]
    gpu: tuple[SceneLane, ...]
    """Streams of the device with work in the window."""
    launching: tuple[SceneLane, ...]
    """API, OS runtime and NVTX of the thread that launched what ends the stall."""
    others: tuple[SceneLane, ...]
    """The busiest lanes of other threads of the same process."""
    stack: HotFrames | None
    """None where the thread was not sampled in the stall."""
    notes: tuple[str, ...]
    """What could not be shown, and what would record it."""


def scene(report: Report, device: int, stall: tuple[int, int], thread: int) -> Scene:
    """Looks at a stall.

    Args:
        report: the report.
        device: place of the device in ``Report.devices``.
        stall: start and end of the idle time, ns.
        thread: globalTid that launched what ends it, -1 where unknown.
    """
    margin = max(1, int((stall[1] - stall[0]) * MARGIN))
    window = (stall[0] - margin, stall[1] + margin)
    lacking = (Capability.OSRT, Capability.NVTX, Capability.SAMPLES)
    return Scene(
        window=window,
        gpu=tuple(_streams(report, device, window)),
        launching=tuple(_host_lanes(report, window, thread)) if thread >= 0 else (),
        others=tuple(_neighbours(report, window, stall, thread)) if thread >= 0 else (),
        stack=_hot_frames(report, stall, thread),
        notes=tuple(why for kind in lacking if (why := report.lacks(kind))),
    )


def _streams(report: Report, device: int, window: tuple[int, int]) -> list[SceneLane]:
    ops = report.operations
    near = touching(ops, window)
    rows = masked(near, ops.device[near] == device)
    streams = ops.stream[rows]
    by_stream = [
        (ops.streams[code].label, masked(rows, streams == code))
        for code in np.flatnonzero(np.bincount(streams)).tolist()
    ]
    return [_lane(label, ops, mine, ops.category, ops.shown) for label, mine in by_stream]


def _host_lanes(report: Report, window: tuple[int, int], thread: int) -> list[SceneLane]:
    who = report.thread_name(thread)
    kinds: Sequence[tuple[str, ThreadEvents, UInt8, Callable[[str], str]]] = (
        ("API", report.api, api_categories(report.api), api_name),
        ("OS runtime", report.osrt, _all_of(report.osrt, Category.OSRT), str),
        ("NVTX", report.ranges, _all_of(report.ranges, Category.NVTX), str),
    )
    lanes = []
    for what, events, categories, shown in kinds:
        near = touching(events, window)
        mine = (events.threads == thread)[events.thread[near]]
        if events is report.api:
            mine &= report.api.real[near]
        if mine.any():
            rows = masked(near, mine)
            lanes.append(_lane(f"{who}: {what}", events, rows, categories, events.names, shown))
    return lanes


def _all_of(events: ThreadEvents, category: Category) -> UInt8:
    return np.full(len(events), category, np.uint8)


def _lane(
    label: str,
    events: ThreadEvents | Operations,
    rows: Rows,
    categories: UInt8,
    names: Sequence[str],
    shown: Callable[[str], str] = str,
) -> SceneLane:
    lengths = events.durations(rows)
    longest = _longest(lengths, MOST_EVENTS)
    kept = longest if isinstance(rows, slice) else rows[longest]
    return SceneLane(
        label=label,
        starts=events.start[kept],
        ends=events.end[kept],
        categories=categories[kept],
        names=tuple(shown(names[code]) for code in events.name[kept].tolist()),
        hidden=len(lengths) - len(kept),
    )


def _longest(lengths: Int64, most: int) -> Indices:
    """Places of some of the longest, ascending; of equals the first."""
    if len(lengths) <= most:
        return np.arange(len(lengths))
    least = np.partition(lengths, -most)[-most]
    longer = np.flatnonzero(lengths > least)
    return np.sort(np.append(longer, np.flatnonzero(lengths == least)[: most - len(longer)]))


def _neighbours(
    report: Report, window: tuple[int, int], stall: tuple[int, int], thread: int
) -> list[SceneLane]:
    """OS runtime and API lanes of other threads, those with most time in the stall first."""
    by_busy: list[tuple[int, SceneLane]] = []
    for events in (report.osrt, report.api):
        rows = touching(events, stall)
        threads = events.thread[rows]
        codes = np.flatnonzero(np.bincount(threads))
        for code in codes[beside(thread, events.threads[codes])].tolist():
            other, mine = int(events.threads[code]), masked(rows, threads == code)
            busy = intervals.total(*intervals.clip(events.start[mine], events.end[mine], *stall))
            lanes = _host_lanes(report, window, other)
            by_busy += [(busy, lane) for lane in lanes if busy]
    distinct = {lane.label: (busy, lane) for busy, lane in by_busy}
    ordered = sorted(distinct.values(), key=lambda pair: (-pair[0], pair[1].label))
    return [lane for _, lane in ordered[:NEIGHBOURS]]


def _hot_frames(report: Report, stall: tuple[int, int], thread: int) -> HotFrames | None:
    samples = report.samples
    lo, hi = np.searchsorted(samples.start, stall)
    codes = np.flatnonzero(samples.threads == thread)
    rows = np.arange(lo, hi)[np.isin(samples.thread[lo:hi], codes)]
    if not len(rows):
        return None
    chains = report.chains(Kind.SAMPLE_CHAIN)
    stacks = Counter(
        tuple(symbol for symbol, _ in chains.frames(chain)[:FRAMES])
        for chain in samples.chain[rows].tolist()
    )
    frames, count = stacks.most_common(1)[0]
    return HotFrames(frames, count, len(rows))
