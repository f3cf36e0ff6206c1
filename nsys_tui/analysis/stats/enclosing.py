"""Which NVTX ranges enclose which launches, by the rule of NVIDIA's reports.

The call lies fully inside the range on the range's own thread, edges included. Only the ``nvtx_*``
reports and ``:nvtx-name`` use this rule; everything else attributes by the path at the call's start
(definitions: "An operation belongs").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsys_tui.analysis.window import row_numbers
from nsys_tui.model.groups import pair_codes, regroup
from nsys_tui.model.target import PROCESS_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.analysis.window import Rows
    from nsys_tui.model.events import Int64, Ranges
    from nsys_tui.model.report import Report

Places: TypeAlias = NDArray[np.intp]
Pairs: TypeAlias = tuple[Places, Places]

_CHUNK: Final = 4_000_000
"""Pairs expanded at a time, so that memory does not grow with the nesting depth."""
STYLES: Final = {59: "PushPop", 70: "PushPop", 60: "StartEnd", 71: "StartEnd"}


def last_time(report: Report) -> int:
    """The largest time of any NVTX event: where NVIDIA's reports end a range that stayed open."""
    ranges, marks = report.ranges, report.marks
    closed = ranges.end[~ranges.open]
    times = [part.max() for part in (closed, ranges.start, marks.start) if len(part)]
    return int(max(times, default=0))


def closed_ranges(report: Report, rows: Rows) -> Ranges:
    """Some ranges in (start, -end, rowid) order, open ones ended as NVIDIA's reports end them."""
    ranges = report.ranges.take(row_numbers(report.ranges, rows))
    if ranges.open.any():
        end = np.where(ranges.open, np.maximum(ranges.start, last_time(report)), ranges.end)
        ranges = replace(ranges, end=end)
    return ranges.take(np.lexsort((ranges.rowid, -ranges.end, ranges.start)))


def label_codes(ranges: Ranges) -> tuple[NDArray[np.integer], list[str]]:
    """Code of each range's ``domain:name``, and the labels; processes share equal labels.

    As nsys prints them: a range of the default domain, or of one that has no name, by its own name.
    """
    codes, domain, name = pair_codes(ranges.domain, ranges.name, max(len(ranges.names), 1))
    prefixes = [f"{each.name}:" if each.is_named else "" for each in ranges.domains]
    texts = [
        prefixes[d] + ranges.names[n] for d, n in zip(domain.tolist(), name.tolist(), strict=True)
    ]
    return regroup(codes, texts)


@dataclass(frozen=True, eq=False)
class Launches:
    """Operations with the calls that launched them; operations without a call are left out."""

    operation: Places
    """Rows of ``report.operations``."""
    start: Int64
    """Start of the call."""
    end: Int64
    thread: Int64
    """globalTid of the calling thread."""


def launches(report: Report, operations: Rows) -> Launches:
    """The launches of some operations."""
    rows = row_numbers(report.operations, operations)
    calls = report.calls[rows]
    rows, calls = rows[calls >= 0], calls[calls >= 0]
    api = report.api
    threads = api.threads[api.thread[calls]] if len(calls) else np.empty(0, np.int64)
    return Launches(rows, api.start[calls], api.end[calls], threads)


def enclosed(ranges: Ranges, made: Launches) -> Iterator[Pairs]:
    """Pairs (place in ``ranges``, place in ``made``) of ranges that enclose launches, in chunks.

    Args:
        ranges: as ``closed_ranges`` returns them; those that end on another thread are passed by.
        made: the launches.

    Yields:
        Parallel arrays; all launches of a range come in one chunk, and within one thread the
        ranges keep their order, outermost first.
    """
    return _pairs(ranges, np.flatnonzero(ranges.nests), ranges.threads, made, made.thread)


def enclosed_in_process(ranges: Ranges, made: Launches) -> Iterator[Pairs]:
    """The same for ranges that end on another thread: they enclose launches of their process."""
    others = np.flatnonzero(~ranges.nests)
    return _pairs(ranges, others, ranges.thread_process, made, made.thread & PROCESS_MASK)


def _pairs(
    ranges: Ranges, chosen: Places, owners: Int64, made: Launches, keys: Int64
) -> Iterator[Pairs]:
    """Pairs of some ranges and launches of the same owner (thread or process)."""
    by_start = np.lexsort((made.start, keys))
    launched_by = _slices(keys[by_start], by_start)
    owner = owners[ranges.thread[chosen]] if len(chosen) else np.empty(0, np.int64)
    order = np.argsort(owner, kind="stable")
    for key, own in _slices(owner[order], chosen[order]).items():
        if key in launched_by:
            yield from _enclosed(ranges, own, made, launched_by[key])


def _enclosed(ranges: Ranges, own: Places, made: Launches, places: Places) -> Iterator[Pairs]:
    starts, ends = made.start[places], made.end[places]
    low = np.searchsorted(starts, ranges.start[own], side="left")
    high = np.maximum(np.searchsorted(starts, ranges.end[own], side="right"), low)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(high - low)))
    first = 0
    while first < len(own):
        limit = int(np.searchsorted(before, before[first] + _CHUNK, side="right")) - 1
        last = max(first + 1, limit)
        counts = (high - low)[first:last]
        which = np.repeat(np.arange(first, last), counts)
        inside = np.arange(len(which)) - np.repeat(before[first:last] - before[first], counts)
        launch = np.repeat(low[first:last], counts) + inside
        kept = ends[launch] <= ranges.end[own[which]]
        if kept.any():
            yield own[which[kept]], places[launch[kept]]
        first = last


def innermost(report: Report, operations: Rows) -> tuple[NDArray[np.int64], Ranges]:
    """The innermost range around the launch of each operation.

    Returns:
        A place in the ranges for each operation, -1 for none, and the ranges.
    """
    ranges = closed_ranges(report, np.flatnonzero(report.ranges.nests))
    made = launches(report, operations)
    found = np.full(len(report.operations), -1, np.int64)
    for which, launch in enclosed(ranges, made):
        # Ranges of a thread come outermost first, and the last assignment wins.
        found[made.operation[launch]] = which
    return found[operations], ranges


def _slices(keys: Int64, places: Places) -> dict[int, Places]:
    """Splits places by their key; ``keys`` is grouped and aligned with them."""
    if not len(keys):
        return {}
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    parts = np.split(places, heads[1:])
    return {int(keys[head]): part for head, part in zip(heads, parts, strict=True)}
