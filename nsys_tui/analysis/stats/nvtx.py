"""NVTX ranges as NVIDIA's reports take them: which enclose which launches, summaries, the trace.

The call lies fully inside the range on the range's own thread, edges included. Only the ``nvtx_*``
reports and ``:nvtx-name`` use this rule; everything else attributes by the path at the call's start
(definitions: "An operation belongs").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.analysis.stats.query import Columns, Needs, Query, nothing, report
from nsys_tui.analysis.stats.summary import RANGE, pick, pids, summarise, tids, time_columns
from nsys_tui.analysis.window import Rows, row_count, row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Array, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import Ranges
from nsys_tui.model.groups import pair_codes, regroup, sums
from nsys_tui.model.intervals import stretched
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.model.tree import MOST_FRAMES

Pairs: TypeAlias = tuple[Indices, Indices]

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


def label_codes(ranges: Ranges) -> tuple[Integers, list[str]]:
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

    operation: Indices
    """Rows of ``report.operations``."""
    start: Int64
    """Start of the call."""
    end: Int64
    thread: Int64
    """globalTid of the calling thread."""


def launches(report: Report, operations: Rows) -> Launches:
    """The launches of some operations."""
    rows, calls = report.called(row_numbers(report.operations, operations))
    api = report.api
    threads = api.threads[api.thread[calls]] if len(calls) else np.empty(0, np.int64)
    return Launches(rows, api.start[calls], api.end[calls], threads)


@dataclass(frozen=True, eq=False)
class Runs:
    """Which ranges enclose which launches, as stretches of launches: nested ranges share them."""

    launch: Indices
    """Launches by owner and start; the stretches are of these."""
    which: Indices
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


def _runs(ranges: Ranges, chosen: Indices, owners: Int64, made: Launches, keys: Int64) -> Runs:
    """Stretches of launches that some ranges of the same owner (thread or process) enclose."""
    by_start = np.lexsort((made.start, keys))
    launched_by = _slices(keys[by_start], np.arange(len(by_start)))
    owner = owners[ranges.thread[chosen]] if len(chosen) else np.empty(0, np.int64)
    order = np.argsort(owner, kind="stable")
    nothing = np.empty(0, np.int64)
    parts: list[tuple[Indices, Int64, Int64]] = [(nothing, nothing, nothing)]
    for key, rows in _slices(owner[order], chosen[order]).items():
        if key in launched_by:
            places = launched_by[key]
            spans = made.start[by_start[places]], made.end[by_start[places]]
            parts += _stretches(ranges, rows, *spans, int(places[0]))
    which, first, last = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Runs(by_start, which, first, last)


def _stretches(
    ranges: Ranges, rows: Indices, starts: Int64, ends: Int64, base: int
) -> Iterator[tuple[Indices, Int64, Int64]]:
    """Launches that start in a range: up to the first that ends behind it, then one by one."""
    until = ranges.end[rows]
    low = np.searchsorted(starts, ranges.start[rows], side="left")
    high = np.maximum(np.searchsorted(starts, until, side="right"), low)
    sure = np.searchsorted(np.maximum.accumulate(ends), until, side="right")
    sure = np.clip(sure, low, high)
    some = sure > low
    yield rows[some], low[some] + base, sure[some] + base
    open_ = np.flatnonzero(high > sure)
    step = max(1, _CHUNK // max(int((high - sure).max(initial=0)), 1))
    for begin in range(0, len(open_), step):
        part = open_[begin : begin + step]
        at = stretched(sure[part], high[part])
        which = np.repeat(part, (high - sure)[part])
        kept = ends[at] <= until[which]
        yield rows[which[kept]], at[kept] + base, at[kept] + base + 1


def innermost(report: Report, operations: Rows) -> tuple[Int64, Ranges]:
    """The innermost range around the launch of each operation.

    Returns:
        A place in the ranges for each operation, -1 for none, and the ranges.
    """
    ranges = closed_ranges(report, np.flatnonzero(report.ranges.nests))
    made = launches(report, operations)
    runs = enclosed(ranges, made)
    owner = np.full(len(report.operations), -1, np.int64)
    # Ranges of a thread come outermost first.
    owner[made.operation[runs.launch]] = _greatest_over(
        runs.first, runs.last, runs.which, len(runs.launch)
    )
    return owner[operations], ranges


def _greatest_over(first: Int64, last: Int64, values: Int64, length: int) -> Int64:
    """The greatest value of the stretches [first, last) over each place, -1 where there is none.

    A stretch is two, overlapping, of the greatest power of two in it; the stretches of a power are
    handed on as two of half its length each.
    """
    greatest = np.full(length, -1, np.int64)
    power = np.frexp(last - first)[1] - 1
    for level in range(int(power.max(initial=-1)), -1, -1):
        at_level = np.flatnonzero(power == level)
        np.maximum.at(greatest, first[at_level], values[at_level])
        np.maximum.at(greatest, last[at_level] - (1 << level), values[at_level])
        if half := (1 << level) >> 1:
            greatest[half:] = np.maximum(greatest[half:], greatest[:-half])
    return greatest


def _slices(keys: Int64, places: Indices) -> dict[int, Indices]:
    """Splits places by their key; ``keys`` is grouped and aligned with them."""
    if not len(keys):
        return {}
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    parts = np.split(places, heads[1:])
    return {int(keys[head]): part for head, part in zip(heads, parts, strict=True)}


PUSH_POP: Final = (59, 70)
START_END: Final = (60, 71)
NAMES: Final = np.array([STYLES.get(style, "") for style in range(256)], object)
"""Printed style of each NVTX event type."""


def _summary(query: Query, styles: tuple[int, ...], *, with_style: bool) -> Columns:
    ranges = query.report.ranges
    rows = query.events(ranges, np.isin(ranges.style, styles) & ~ranges.open)
    if not row_count(ranges, rows):
        raise NoDataError("no closed NVTX ranges of that kind")
    chosen = ranges.take(rows)
    label, texts = label_codes(chosen)
    paired = np.isin(chosen.style, START_END).astype(np.int64)
    codes, name, style = pair_codes(label, paired, 2)
    labels: Columns = [(RANGE, [texts[code] for code in name.tolist()])]
    if with_style:
        labels.insert(0, (Column("Style"), np.array(["PushPop", "StartEnd"], object)[style]))
    summary = summarise(query, ranges, rows, codes, len(name))
    return time_columns(summary, "Instances", labels)


def open_ranges(query: Query) -> tuple[str, ...]:
    """A note on ranges that were never closed."""
    count = int(query.report.ranges.open.sum())
    return (f"{count} ranges were never closed and are left out",) if count else ()


NVTX: Final = Needs(
    "NV Tools Extension (NVTX)", "--trace=nvtx", (Capability.NVTX,), notes=open_ranges
)
PUSH_POPS: Final = replace(NVTX, data=f"{NVTX.data} push/pop range")
START_ENDS: Final = replace(NVTX, data=f"{NVTX.data} start/end range")


@report("NVTX Range Summary", NVTX, old="nvtxsum")
def nvtx_sum(query: Query) -> Columns:
    """Push/pop and start/end ranges by name (with its domain's) and their durations on the host."""
    return _summary(query, PUSH_POP + START_END, with_style=True)


@report("NVTX Push/Pop Range Summary", PUSH_POPS, old="nvtxppsum")
def nvtx_pushpop_sum(query: Query) -> Columns:
    """Push/pop ranges by name (with its domain's) and their durations on the host."""
    return _summary(query, PUSH_POP, with_style=False)


@report("NVTX Start/End Range Summary", START_ENDS, old="nvtxsssum nvtxsesum nvtxstartendsum")
def nvtx_startend_sum(query: Query) -> Columns:
    """Start/end ranges by name (with its domain's) and their durations on the host."""
    return _summary(query, START_END, with_style=False)


@dataclass(frozen=True, eq=False)
class Nesting:
    """Which range of a thread is directly inside which, over ranges from ``closed_ranges``."""

    parent: Int64
    """Place of the tightest enclosing range on the same thread, -1 for none."""
    level: Int64
    children: Int64
    stack: list[str]
    """Row ids from the outermost range to this one: ``:1:5:9``; of a range deeper than
    ``MOST_FRAMES`` those in the middle are counted: ``:1:5:[... 12 ranges]:9``."""


def nesting(ranges: Ranges) -> Nesting:
    """Finds the parent of every range; crossing ranges are not inside each other."""
    n = len(ranges)
    parent, level = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    active: dict[int, list[int]] = {}
    ends = ranges.end.tolist()
    for row, thread in enumerate(ranges.thread.tolist()):
        enclosing = active.setdefault(thread, [])
        # One that ends before this one encloses nothing more that this one does not enclose too.
        while enclosing and ends[enclosing[-1]] < ends[row]:
            enclosing.pop()
        if enclosing:
            parent[row] = enclosing[-1]
            level[row] = level[enclosing[-1]] + 1
        enclosing.append(row)
    children = np.bincount(parent[parent >= 0], minlength=n).astype(np.int64)
    return Nesting(parent, level, children, _stacks(ranges.rowid, parent, level))


def _stacks(rowid: Int64, parent: Int64, level: Int64) -> list[str]:
    stacks: list[str] = []
    trunks: list[str] = []
    for row, outer, depth in zip(rowid.tolist(), parent.tolist(), level.tolist(), strict=True):
        above = stacks[outer] if depth else ""
        trunk = above if depth <= MOST_FRAMES else trunks[outer]
        left_out = f":[... {depth - MOST_FRAMES} ranges]" if depth > MOST_FRAMES else ""
        stacks.append(f"{trunk}{left_out}:{row}")
        trunks.append(trunk)
    return stacks


def parent_ids(ranges: Ranges, nested: Nesting) -> Array:
    """Row id of each range's parent, None at the top."""
    return np.array([ranges.rowid[p] if p >= 0 else None for p in nested.parent], object)


@report("NVTX Push/Pop Range Trace", replace(PUSH_POPS, notes=nothing), old="nvtxpptrace")
def nvtx_pushpop_trace(query: Query) -> Columns:
    """Every push/pop range by its start, with its place in the nesting of its thread."""
    every = query.report.ranges
    rows = query.events(every, np.isin(every.style, PUSH_POP))
    if not row_count(every, rows):
        raise NoDataError("no push/pop ranges")
    ranges = closed_ranges(query.report, rows)
    nested = nesting(ranges)
    inner = np.flatnonzero(nested.parent >= 0)
    duration = ranges.end - ranges.start
    in_children = sums(nested.parent[inner], duration[inner], len(ranges))
    label, texts = label_codes(ranges)
    names = np.array(texts, object)[label]
    threads = ranges.threads[ranges.thread]
    columns: Columns = [
        (Column("Start", Unit.NS), ranges.start),
        (Column("End", Unit.NS), ranges.end),
        (Column("Duration", Unit.NS), duration),
        (Column("DurChild", Unit.NS), in_children),
        (Column("DurNonChild", Unit.NS), duration - in_children),
        (Column("Name"), names),
        (Column("PID", Unit.NONE), pids(threads)),
        (Column("TID", Unit.NONE), tids(threads)),
        (Column("Lvl", Unit.NONE), nested.level),
        (Column("NumChild", Unit.NONE), nested.children),
        (Column("RangeId", Unit.NONE), ranges.rowid),
        (Column("ParentId", Unit.NONE), parent_ids(ranges, nested)),
        (Column("RangeStack"), nested.stack),
        (
            Column("NameTree"),
            [
                "--" * min(int(depth), MOST_FRAMES) + name
                for depth, name in zip(nested.level, names, strict=True)
            ],
        ),
    ]
    order = np.lexsort((ranges.rowid, ranges.end, ranges.start))
    return [(column, pick(values, order)) for column, values in columns]
