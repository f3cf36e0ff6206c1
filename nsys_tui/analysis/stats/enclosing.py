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

from nsys_tui.analysis.window import Rows, row_numbers
from nsys_tui.model.groups import pair_codes, regroup
from nsys_tui.model.intervals import stretched
from nsys_tui.model.target import PROCESS_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@dataclass(frozen=True, eq=False)
class Runs:
    """Which ranges enclose which launches, as stretches of launches: nested ranges share them."""

    launch: Places
    """Launches by owner and start; the stretches are of these."""
    which: Places
    """Place of the range that encloses a stretch; a range may have several, they are disjoint."""
    first: Int64
    last: Int64
    """Behind the last launch of the stretch, which is never empty."""

    def pairs(self) -> Iterator[Pairs]:
        """Pairs (range, place of a launch), in chunks; all launches of a range come in one."""
        order = np.argsort(self.which, kind="stable")
        which, first = self.which[order], self.first[order]
        counts = self.last[order] - first
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        heads = np.flatnonzero(np.append(which[1:] != which[:-1], True)) + 1
        begin = 0
        while begin < len(which):
            fits = np.searchsorted(before[heads], before[begin] + _CHUNK, side="right")
            begun = np.searchsorted(heads, begin, side="right")
            end = int(heads[max(int(begun), int(fits) - 1)])
            part = slice(begin, end)
            yield (
                np.repeat(which[part], counts[part]),
                self.launch[stretched(first[part], self.last[order[part]])],
            )
            begin = end


def enclosed(ranges: Ranges, made: Launches) -> Runs:
    """Which ranges enclose which launches on their thread.

    Args:
        ranges: as ``closed_ranges`` returns them; those that end on another thread are passed by.
        made: the launches.
    """
    return _runs(ranges, np.flatnonzero(ranges.nests), ranges.threads, made, made.thread)


def enclosed_in_process(ranges: Ranges, made: Launches) -> Runs:
    """The same for ranges that end on another thread: they enclose launches of their process."""
    others = np.flatnonzero(~ranges.nests)
    return _runs(ranges, others, ranges.thread_process, made, made.thread & PROCESS_MASK)


def _runs(ranges: Ranges, chosen: Places, owners: Int64, made: Launches, keys: Int64) -> Runs:
    """Stretches of launches that some ranges of the same owner (thread or process) enclose."""
    by_start = np.lexsort((made.start, keys))
    launched_by = _slices(keys[by_start], np.arange(len(by_start)))
    owner = owners[ranges.thread[chosen]] if len(chosen) else np.empty(0, np.int64)
    order = np.argsort(owner, kind="stable")
    nothing = np.empty(0, np.int64)
    parts: list[tuple[Places, Int64, Int64]] = [(nothing, nothing, nothing)]
    for key, own in _slices(owner[order], chosen[order]).items():
        if key in launched_by:
            places = launched_by[key]
            spans = made.start[by_start[places]], made.end[by_start[places]]
            parts += _stretches(ranges, own, *spans, int(places[0]))
    which, first, last = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Runs(by_start, which, first, last)


def _stretches(
    ranges: Ranges, own: Places, starts: Int64, ends: Int64, base: int
) -> Iterator[tuple[Places, Int64, Int64]]:
    """Launches that start in a range: up to the first that ends behind it, then one by one."""
    until = ranges.end[own]
    low = np.searchsorted(starts, ranges.start[own], side="left")
    high = np.maximum(np.searchsorted(starts, until, side="right"), low)
    sure = np.searchsorted(np.maximum.accumulate(ends), until, side="right")
    sure = np.clip(sure, low, high)
    some = sure > low
    yield own[some], low[some] + base, sure[some] + base
    open_ = np.flatnonzero(high > sure)
    step = max(1, _CHUNK // max(int((high - sure).max(initial=0)), 1))
    for begin in range(0, len(open_), step):
        part = open_[begin : begin + step]
        at = stretched(sure[part], high[part])
        which = np.repeat(part, (high - sure)[part])
        kept = ends[at] <= until[which]
        yield own[which[kept]], at[kept] + base, at[kept] + base + 1


def innermost(report: Report, operations: Rows) -> tuple[NDArray[np.int64], Ranges]:
    """The innermost range around the launch of each operation.

    Returns:
        A place in the ranges for each operation, -1 for none, and the ranges.
    """
    ranges = closed_ranges(report, np.flatnonzero(report.ranges.nests))
    made = launches(report, operations)
    runs = enclosed(ranges, made)
    found = np.full(len(report.operations), -1, np.int64)
    # Ranges of a thread come outermost first.
    found[made.operation[runs.launch]] = _greatest_over(
        runs.first, runs.last, runs.which, len(runs.launch)
    )
    return found[operations], ranges


def _greatest_over(first: Int64, last: Int64, values: Int64, length: int) -> Int64:
    """The greatest value of the stretches [first, last) over each place, -1 where there is none.

    A stretch is two, overlapping, of the greatest power of two in it; the stretches of a power are
    handed on as two of half its length each.
    """
    found = np.full(length, -1, np.int64)
    power = np.frexp(last - first)[1] - 1
    for level in range(int(power.max(initial=-1)), -1, -1):
        own = np.flatnonzero(power == level)
        np.maximum.at(found, first[own], values[own])
        np.maximum.at(found, last[own] - (1 << level), values[own])
        if half := (1 << level) >> 1:
            found[half:] = np.maximum(found[half:], found[:-half])
    return found


def _slices(keys: Int64, places: Places) -> dict[int, Places]:
    """Splits places by their key; ``keys`` is grouped and aligned with them."""
    if not len(keys):
        return {}
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    parts = np.split(places, heads[1:])
    return {int(keys[head]): part for head, part in zip(heads, parts, strict=True)}
