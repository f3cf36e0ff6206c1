"""Aggregates of an area: what happened in a span of time on some lanes, by category and by name.

Time is clipped to the span and events count where they start, as everywhere in a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.aggregate import aggregate
from nsys_tui.analysis.timeline.events import codes_of, naming
from nsys_tui.analysis.timeline.tracks import Track
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.events import EventSet, Operations
from nsys_tui.model.groups import factorise, regroup
from nsys_tui.model.lanes import Lane

GPU: Final = (Category.COMPUTE, Category.COMM, Category.MEMORY, Category.GRAPH)
HOST: Final = (Category.SYNC, Category.API, Category.OSRT, Category.NVTX)
TOP: Final = 200


@dataclass(frozen=True)
class CategoryRow:
    """One category in the area."""

    name: str
    """``compute`` …, and ``idle`` for the time in which a device did nothing."""
    busy: int
    """Union of the events' time per device or per thread, summed over them, ns."""
    of: int
    """What the share is of: span times devices; 0 for categories of the host."""
    events: int
    """Events that start in the area; gaps for ``idle``."""


@dataclass(frozen=True)
class NameRow:
    """One name in the area."""

    category: Category
    name: str
    total: int
    """Sum of the clipped durations, ns."""
    events: int
    """Events that start in the area."""
    straddling: int
    """Events that started before it and reach into it."""


@dataclass(frozen=True)
class Area:
    """Aggregates of an area."""

    span: tuple[int, int]
    categories: tuple[CategoryRow, ...]
    names: tuple[NameRow, ...]
    """Work of the GPU first, then the host's; longest total first."""
    more_names: int
    """Names left out after the first ``TOP`` of them."""


class _Work(NamedTuple):
    """What a device did."""

    ops: Operations
    lanes: list[Lane]


def area(tracks: Sequence[Track], span: tuple[int, int], style: str) -> Area:
    """Counts an area.

    Args:
        tracks: its lanes; the row of a device stands for all its streams, and events that are in
            two of the lanes count once.
        span: [start, end) in ns.
        style: name style.
    """
    work = _device_lanes(tracks)
    rows = _gpu_rows(work, span) + _host_rows(tracks, span)
    names = _names(tracks, work, span, style)
    return Area(span, tuple(rows), tuple(names[:TOP]), max(0, len(names) - TOP))


def _device_lanes(tracks: Iterable[Track]) -> dict[int, _Work]:
    """Lanes of GPU work by device, each once."""
    by_device: dict[int, tuple[Operations, dict[Lane, None]]] = {}
    for track in tracks:
        ops = track.events
        if track.part != "operations" or track.device is None or not isinstance(ops, Operations):
            continue
        lanes = track.summary.lanes if track.summary is not None else (track.lane,)
        own = by_device.setdefault(track.device, (ops, {}))[1]
        own.update(dict.fromkeys(lane for lane in lanes if lane is not None))
    return {device: _Work(ops, list(own)) for device, (ops, own) in sorted(by_device.items())}


def _clipped(lane: Lane, span: tuple[int, int]) -> tuple[Indices, Int64, Int64]:
    """Positions of the events in the span, and their starts and ends cut to it."""
    spots = lane.overlapping(*span)
    return spots, np.maximum(lane.starts[spots], span[0]), np.minimum(lane.ends[spots], span[1])


def _union(parts: Iterable[tuple[Int64, Int64]]) -> intervals.Intervals:
    pairs = list(parts)
    if not pairs:
        return intervals.empty()
    starts, ends = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return intervals.union(starts, ends)


def _gpu_rows(work: dict[int, _Work], span: tuple[int, int]) -> list[CategoryRow]:
    if not work:
        return []
    whole = (span[1] - span[0]) * len(work)
    busy, count = dict.fromkeys(GPU, 0), dict.fromkeys(GPU, 0)
    idle = gaps = 0
    for ops, lanes in work.values():
        parts = [(_clipped(lane, span), lane) for lane in lanes]
        codes = [lane.categories(spots) for (spots, _, _), lane in parts]
        present = frozenset(np.concatenate(codes).tolist()) if codes else ()
        for category in (each for each in GPU if each in present):
            pieces = [
                (spots[mask], starts[mask], ends[mask], lane)
                for ((spots, starts, ends), lane), of_lane in zip(parts, codes, strict=True)
                if (mask := of_lane == category).any()
            ]
            busy[category] += intervals.total(*_union((s, e) for _, s, e, _ in pieces))
            for spots, _, _, lane in pieces:
                begun = spots[lane.starts[spots] >= span[0]]
                count[category] += int(np.count_nonzero(ops.counted[lane.rows(begun)]))
        free = intervals.gaps(*_union((s, e) for (_, s, e), _ in parts), *span)
        idle, gaps = idle + intervals.total(*free), gaps + len(free[0])
    rows = [CategoryRow(c.name.lower(), busy[c], whole, count[c]) for c in GPU]
    shown = [row for row in rows if row.busy or row.events]
    return [*shown, CategoryRow("idle", idle, whole, gaps)]


def _host_rows(tracks: Sequence[Track], span: tuple[int, int]) -> list[CategoryRow]:
    """Time per thread in which the category went on, summed over the threads."""
    by_thread: dict[tuple[Category, str], list[tuple[Int64, Int64]]] = {}
    count = dict.fromkeys(HOST, 0)
    for track in tracks:
        lane = track.lane
        if lane is None or track.part in ("operations", "projected", "path"):
            continue
        spots, starts, ends = _clipped(lane, span)
        codes = lane.categories(spots)
        for code in np.unique(codes).tolist():
            mask = codes == code
            category = Category(code)
            thread = track.key.partition("/")[0]
            by_thread.setdefault((category, thread), []).append((starts[mask], ends[mask]))
            count[category] += int((lane.starts[spots[mask]] >= span[0]).sum())
    rows = []
    for category in HOST:
        parts = [pairs for (kind, _), pairs in by_thread.items() if kind is category]
        if parts:
            busy = sum(intervals.total(*_union(pairs)) for pairs in parts)
            rows.append(CategoryRow(category.name.lower(), busy, 0, count[category]))
    return rows


def _names(
    tracks: Sequence[Track], work: dict[int, _Work], span: tuple[int, int], style: str
) -> list[NameRow]:
    by_events: dict[EventSet, dict[Lane, None]] = {}
    for track in tracks:
        if track.events is None or track.part == "projected":
            continue
        if track.part == "operations":
            lanes = work[track.device].lanes if track.device in work else []
        else:
            lanes = [track.lane] if track.lane is not None else []
        by_events.setdefault(track.events, {}).update(dict.fromkeys(lanes))
    rows = _together(
        row for owner, lanes in by_events.items() for row in _rows(owner, lanes, span, style)
    )
    return sorted(rows, key=lambda row: (row.category not in GPU, -row.total, row.name))


def _together(rows: Iterable[NameRow]) -> list[NameRow]:
    """One row for what several reports call by one name."""
    merged: dict[tuple[Category, str], NameRow] = {}
    for row in rows:
        key = (row.category, row.name)
        if (old := merged.get(key)) is not None:
            row = replace(
                row,
                total=old.total + row.total,
                events=old.events + row.events,
                straddling=old.straddling + row.straddling,
            )
        merged[key] = row
    return list(merged.values())


def _rows(
    events: EventSet, lanes: Iterable[Lane], span: tuple[int, int], style: str
) -> list[NameRow]:
    column = codes_of(events)
    if column is None:
        return []
    parts = [(lane, lane.overlapping(*span)) for lane in lanes]
    if not parts:
        return []
    rows = np.concatenate([lane.rows(spots) for lane, spots in parts])
    category = np.concatenate([lane.categories(spots) for lane, spots in parts])
    if isinstance(events, Operations):  # no graph launch whose operations were traced too
        kept = events.counted[rows]
        rows, category = rows[kept], category[kept]
    codes, distinct = factorise(column[rows])
    last = np.zeros((2, len(distinct)), np.int64)
    last[:, codes] = rows, category
    name = naming(events, style)
    keys = [(code, name(row)) for row, code in last.T.tolist()]
    groups, shown = regroup(codes, keys)
    by_name = aggregate(events, rows, groups, len(shown), span)
    figures = zip(shown, by_name.totals, by_name.counts, by_name.straddling, strict=True)
    return [
        NameRow(Category(code), text, int(total), int(count), int(straddling))
        for (code, text), total, count, straddling in figures
    ]
