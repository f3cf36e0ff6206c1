"""Tracks of the GPUs: work by stream, NVTX ranges projected on it, memory in use.

A first picture comes from a sample: whole pages of the file, a few dozen kernels or copies that
follow one another. Drawn as they are, they would show a busy GPU as idle; spread over the time
until the next page begins, they give its shading as an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from nsys_tui.analysis.memory import DeviceMemory, recorded_memory
from nsys_tui.analysis.nvtx.paths import Paths
from nsys_tui.analysis.timeline.grouped_events import (
    InGroups,
    in_groups,
    kept_groups,
    stored_groups,
)
from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.analysis.timeline.tracks import Counter, Section, Shape, Track, gpu_key
from nsys_tui.model.arrays import Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.events import Operations, Ranges
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.lanes import Lane, split
from nsys_tui.model.report import Report
from nsys_tui.model.target import Stream, pid_of, short_gpu

BY_STREAM: Final = "operations-by-stream"
"""Name of the work's order in the cache."""
LOOKED_INTO: Final = 65_536
"""Operations of a stream, evenly spread, that tell what it does."""
DOES: Final = {
    Category.COMPUTE: "compute",
    Category.COMM: "comm",
    Category.MEMORY: "copies",
    Category.GRAPH: "graphs",
}
"""What a stream does, in its lane's name."""
EVER: Final = 1 << 62
"""For how many ns memory stays in use, until it is told otherwise."""
OPEN_GPUS: Final = 4
"""Most GPUs that begin unfolded: the rows of eight, one below the other, hide each other."""
ROWS: Final = 1_000_000
"""Operations whose range is looked up at a time."""


def report_tracks(report: Report) -> list[Track]:
    """``stream_tracks`` of all work of a report, in the order that ``keep_order`` stored."""
    ops = report.operations
    return stream_tracks(ops, stored_groups(report, BY_STREAM, ops))


def keep_order(report: Report) -> None:
    """Stores the order of much work by stream for later openings; for a worker with time to spare.

    Of 5 M kernels it takes up to 0.7 s, too long before the first look.
    """
    ops = report.operations
    kept_groups(report, BY_STREAM, ops, lambda: (None, ops.stream))


def stream_key(stream: Stream) -> str:
    """Key of a stream's row."""
    return f"{gpu_key(stream.device)}/{pid_of(stream.globalPid)}:{stream.context}:{stream.id}"


def stream_tracks(
    ops: Operations, by_stream: InGroups | None = None, *, apart: bool = True
) -> list[Track]:
    """A row for each stream, several where its work overlaps, and an empty one for each device.

    Args:
        ops: the work.
        by_stream: the same in the order of its streams, if that is at hand.
        apart: False leaves overlapping work in one row, which then can only be shaded.
    """
    tracks = [device_track(ops, number) for number in range(len(ops.devices))]
    groups = by_stream or in_groups(ops, None, ops.stream)
    for code, (lo, hi) in zip(groups.codes.tolist(), pairwise(groups.edges.tolist()), strict=True):
        stream, rows = ops.streams[code], groups.rows[lo:hi]
        lane = Lane.build(groups.start[lo:hi], groups.end[lo:hi], rows, ops.category, ops.name)
        lanes = split(lane) if apart else (lane,)
        device = ops.devices[stream.device]
        track = Track(
            key=stream_key(stream),
            label=stream.label,
            words=_stream_words(stream, lane),
            title=f"{device.label} {stream.label}{_of_process(ops, code)}",
            part="operations",
            order=(Section.GPU, stream.device, 2, stream.globalPid, stream.context, stream.id),
            depth=1,
            parents=(gpu_key(stream.device),),
            events=ops,
            device=stream.device,
            stream=code,
            process=stream.globalPid,
        )
        tracks += sub_tracks(track, lanes)
    return tracks


def _stream_words(stream: Stream, lane: Lane) -> str:
    """``stream 7 compute``: the name that the program gave it, or what it does most of the time."""
    if stream.name or not stream.label.startswith("str ") or not len(lane):
        return stream.label.replace("str ", "stream ", 1)
    some = np.arange(0, len(lane), -(-len(lane) // LOOKED_INTO))
    busy = np.bincount(lane.categories(some), lane.ends[some] - lane.starts[some])
    word = DOES.get(Category(int(busy.argmax())), "")
    return f"stream {stream.id} {word}".rstrip()


def _of_process(ops: Operations, code: int) -> str:
    """The process of a stream, where others work on the same device."""
    stream = ops.streams[code]
    owners = {other.globalPid for other in ops.streams if other.device == stream.device}
    return f" of pid {pid_of(stream.globalPid)}" if len(owners) > 1 else ""


def device_tracks(tracks: Iterable[Track]) -> list[Track]:
    """The rows of the devices, with all streams of each together.

    Args:
        tracks: as ``stream_tracks`` gives them; their lanes are shared.
    """
    tracks = tuple(tracks)
    rows = []
    for track in tracks:
        if track.shape is Shape.SUMMARY:
            lanes_of = [t.lane for t in tracks if t.device == track.device and t.lane is not None]
            rows.append(replace(track, summary=Summary.build(lanes_of)))
    return rows


def device_track(ops: Operations, number: int) -> Track:
    """The row of a device, still without its streams."""
    device = ops.devices[number]
    return Track(
        key=gpu_key(number),
        label=device.label,
        words=f"{device.label} {short_gpu(device.name)}" if device.name != device.label else "",
        title=f"{device.label} {device.name if device.name != device.label else ''}".strip(),
        part="operations",
        order=(Section.GPU, number, 0),
        shape=Shape.SUMMARY,
        events=ops,
        device=number,
        folded=number > 0 and len(ops.devices) > OPEN_GPUS,
    )


def sub_tracks(track: Track, lanes: tuple[Lane, ...]) -> list[Track]:
    """One track for each of the lanes that hold a track's overlapping events."""
    tracks = [replace(track, lane=lanes[0], order=(*track.order, 0))]
    for number, lane in enumerate(lanes[1:], 1):
        tracks.append(
            replace(
                track,
                key=f"{track.key}~{number}",
                label=f"{track.label}+",
                words="overlapping",
                title=f"{track.title} ({number + 1} of {len(lanes)}: overlapping work)",
                lane=lane,
                order=(*track.order, number),
            )
        )
    return tracks


def nested_tracks(track: Track, lanes: tuple[Lane, ...], opened: int) -> list[Track]:
    """One track for each level of nesting, each folded away with the one above.

    Args:
        track: what they have in common; its own row is the outermost level.
        lanes: events by level, outermost first.
        opened: levels that are shown at first.
    """
    tracks = [replace(track, lane=lanes[0], order=(*track.order, 0, 0), folded=opened <= 1)]
    parents = (*track.parents, track.key)
    for level, lane in enumerate(lanes[1:], 1):
        key = f"{track.key}+{level}"
        tracks.append(
            replace(
                track,
                key=key,
                label=f"lvl {level + 1}",
                words=f"level {level + 1}",
                title=f"{track.title} depth {level}",
                lane=lane,
                order=(*track.order, level, 0),
                depth=track.depth + 1,
                parents=parents,
                folded=opened <= level + 1,
            )
        )
        parents = (*parents, key)
    return tracks


def projected_ranges(report: Report, paths: Paths) -> list[tuple[Ranges, Int64]]:
    """NVTX ranges as the GPU saw them: from the first to the last operation launched inside.

    Returns:
        For each device the ranges with work there (start and end are those of the work, ``rowid``
        is the range's own), in start order, and the nesting level of each.
    """
    ops, ranges = report.operations, report.ranges
    inner = _innermost(report, paths)
    level = _levels(paths.parent)
    spans = []
    for device in range(len(ops.devices)):
        mine = np.flatnonzero((ops.device == device) & (inner >= 0))
        start = np.full(len(ranges), np.iinfo(np.int64).max)
        end = np.full(len(ranges), np.iinfo(np.int64).min)
        np.minimum.at(start, inner[mine], ops.start[mine])
        np.maximum.at(end, inner[mine], ops.end[mine])
        _spread_upwards(start, end, paths.parent, level)
        rows = np.flatnonzero(end > np.iinfo(np.int64).min)
        rows = rows[np.lexsort((-end[rows], start[rows]))]
        projected = replace(ranges.take(rows), start=start[rows], end=end[rows])
        spans.append((projected, level[rows]))
    return spans


def _innermost(report: Report, paths: Paths) -> Int64:
    """Row of the innermost range around each operation's call, -1 for none."""
    api, calls = report.api, report.calls
    inner = np.full(len(calls), -1, np.int64)
    for first in range(0, len(calls), ROWS):
        part = calls[first : first + ROWS]
        called = np.flatnonzero(part >= 0)
        for code, places in enumerate(rows_of_codes(api.thread[part[called]], len(api.threads))):
            known = paths.threads.get(int(api.threads[code])) if len(places) else None
            if known is not None:
                mine = called[places]
                inner[first + mine] = known.innermost_at(api.start[part[mine]])
    return inner


def _levels(parent: Int64) -> Int64:
    """Nesting level of each range: 0 without a parent."""
    level = np.zeros(len(parent), np.int64)
    rows, above = np.flatnonzero(parent >= 0), parent[parent >= 0]
    while len(rows):
        level[rows] += 1
        above = parent[above]
        rows, above = rows[above >= 0], above[above >= 0]
    return level


def _spread_upwards(start: Int64, end: Int64, parent: Int64, level: Int64) -> None:
    for depth in range(int(level.max(initial=0)), 0, -1):
        rows = np.flatnonzero(level == depth)
        np.minimum.at(start, parent[rows], start[rows])
        np.maximum.at(end, parent[rows], end[rows])


def projected_tracks(report: Report, paths: Paths) -> list[Track]:
    """A folded group of rows for each device with the ranges whose work it did."""
    tracks: list[Track] = []
    for number, (ranges, level) in enumerate(projected_ranges(report, paths)):
        if not len(ranges):
            continue
        device = report.devices[number]
        track = Track(
            key=f"{gpu_key(number)}/nvtx",
            label="nvtx",
            words="NVTX of its work",
            title=f"{device.label} NVTX ranges projected on the GPU",
            part="projected",
            order=(Section.GPU, number, 1),
            depth=1,
            parents=(gpu_key(number),),
            events=ranges,
            device=number,
        )
        lanes: list[Lane] = []
        for depth in range(int(level.max()) + 1):
            rows = np.flatnonzero(level == depth).astype(np.int32)
            lanes += split(
                Lane.build(ranges.start[rows], ranges.end[rows], rows, Category.NVTX, ranges.name)
            )
        tracks += nested_tracks(track, tuple(lanes), 1)
    return tracks


def memory_tracks(report: Report) -> list[Track]:
    """Memory in use on each device, from its allocations and frees."""
    known = {device: number for number, device in enumerate(report.devices)}
    return [
        _memory_track(report, memory, known.setdefault(memory.device, len(known)))
        for memory in recorded_memory(report)
    ]


def _memory_track(report: Report, memory: DeviceMemory, device: int) -> Track:
    return Track(
        key=f"{gpu_key(device)}/memory",
        label="mem",
        words="memory in use",
        title=f"{memory.device.label} memory in use",
        part="memory_usage",
        order=(Section.GPU, device, 3),
        shape=Shape.COUNTER,
        depth=1,
        parents=(gpu_key(device),),
        events=report.memory_usage,
        counter=Counter(memory.times, memory.used, "B", float(memory.peak[0]), EVER),
        device=device,
    )


def sample_tracks(sample: Operations) -> list[Track]:
    """Rows of streams and devices from a sample: to be shaded only, not counted."""
    tracks = stream_tracks(spread(sample), apart=False)
    return [replace(track, estimate=True) for track in (*tracks, *device_tracks(tracks))]


def spread(sample: Operations) -> Operations:
    """Stretches each run of consecutive rows of a table to the begin of the next run.

    The rows of a table that is sampled whole are one run, which stays as it is.
    """
    start, end = sample.start.copy(), sample.end.copy()
    for kind in np.unique(sample.kind):
        rows = np.flatnonzero(sample.kind == kind)
        rows = rows[np.argsort(sample.rowid[rows], kind="stable")]
        start[rows], end[rows] = _stretched(start[rows], end[rows], sample.rowid[rows])
    order = np.argsort(start, kind="stable")
    return replace(sample, start=start, end=end).take(order)


def _stretched(starts: Int64, ends: Int64, rowids: Int64) -> tuple[Int64, Int64]:
    """Times of one table's rows in the order of rowids, stretched run by run."""
    heads = np.flatnonzero(np.append(True, np.diff(rowids) != 1))
    first = np.minimum.reduceat(starts, heads)
    last = np.maximum.reduceat(ends, heads)
    until = np.append(first[1:], last[-1])
    factor = (until - first) / np.maximum(last - first, 1)
    factor[until <= last] = 1.0
    run = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(starts))))
    begin = first[run]
    return (
        begin + ((starts - begin) * factor[run]).astype(np.int64),
        begin + ((ends - begin) * factor[run]).astype(np.int64),
    )
