"""What host threads did during given intervals: shares by class, and the name that took longest."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nsys_tui.analysis.nvtx.nesting import segments
from nsys_tui.analysis.stalls.causes import (
    NO_CLASS,
    SHARES,
    Cause,
    Shares,
    api_classes,
    host_event_classes,
    osrt_classes,
    range_classes,
)
from nsys_tui.analysis.stalls.named import Named
from nsys_tui.analysis.thread_states import ByThread, Scheduling, ThreadStates, Witness
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int32, Int64, Integers, UInt8
from nsys_tui.model.events import ThreadEvents
from nsys_tui.model.groups import used
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report
from nsys_tui.names import api_name

_HOST_CLASSES = SHARES[1:-1]
"""Profiler overhead to off the CPU: what a thread's events and states can cover."""
_CALLS = (Cause.SYNC, Cause.COPY, Cause.API)
"""Calls that hold nobody up who has no CPU while all GPUs are idle."""
_OF_DRIVER = (Cause.IO, Cause.OSRT)
"""Calls of the OS runtime that are part of the CUDA call around them; a launch they explain."""
LATE_NS = 1_000_000
"""A thread that stays off its CPU for longer when all GPUs are done waits for something else."""
HELD = 500_000
"""Events of threads kept for the next question, 28 bytes each; the last thread is kept whole."""


@dataclass(frozen=True, eq=False)
class ThreadWork:
    """What one thread did, by class."""

    by_class: dict[Cause, Named]
    innermost: Named
    """Disjoint pieces of time with the name of the innermost NVTX range."""

    def __len__(self) -> int:
        return sum(len(named.starts) for named in self.by_class.values())

    @property
    def named(self) -> dict[Cause, Named]:
        """Where to look for the name of what a class did: for computing, the innermost ranges."""
        named = self.by_class | {Cause.HOST: self.innermost}
        named.pop(Cause.OFF_CPU, None)
        return named

    def near(self, lo: Int64, hi: Int64) -> ThreadWork:
        """What may answer questions about the intervals [lo, hi)."""
        near = {cause: events.near(lo, hi) for cause, events in self.by_class.items()}
        return replace(self, by_class=near)

    def shares(self, lo: Int64, hi: Int64) -> Shares:
        """Nanoseconds of each interval [lo, hi) by class.

        Each nanosecond goes to the first class that covers it; together they are ``hi - lo``.
        """
        shares: dict[Cause, Int64] = {}
        covered, before = intervals.empty(), np.zeros(len(lo), np.int64)
        for cause in _HOST_CLASSES:
            events = self.by_class.get(cause)
            if events is None:
                continue
            near = events.near(lo, hi)
            covered = intervals.joined(covered, (near.starts, near.ends))
            within = intervals.covered(covered, lo, hi)
            shares[cause] = within - before
            before = within
        return shares | {Cause.NOTHING: hi - lo - before}

    def when(self, within: Intervals, causes: Collection[Cause]) -> dict[Cause, Intervals]:
        """When each of some causes is the first that covers disjoint intervals."""
        rest, by_class = within, {}
        for cause in _HOST_CLASSES:
            events = self.by_class.get(cause)
            if events is None:
                continue
            near = events.near(*within)
            covered = intervals.union(near.starts, near.ends)
            if cause in causes:
                by_class[cause] = intervals.meet(covered, rest)
            rest = intervals.subtract(rest, covered)
        return by_class | {Cause.NOTHING: rest}


@dataclass(frozen=True, eq=False)
class _Source:
    """An event set by thread, with the class of each event."""

    events: ThreadEvents
    classes: UInt8
    by_thread: ByThread


class HostWork:
    """Answers what the threads of one report did.

    Args:
        report: the report; API, OSRT, NVTX and other host events are loaded.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.names: list[str] = []
        """Texts behind the name codes that the threads return."""
        self._codes: dict[str, int] = {}
        self._threads: dict[int, ThreadWork] = {}
        self._held = 0
        self._near: dict[int, tuple[Intervals, ThreadWork]] = {}
        self._innermost: dict[int, Named] = {}
        self._witnesses: dict[int, Witness] = {}
        self.scheduling = Scheduling(report)
        """Where threads were."""

    @cached_property
    def api_classes(self) -> UInt8:
        """What each API call counts as."""
        return api_classes(self.report)

    @cached_property
    def _sources(self) -> tuple[_Source, ...]:
        report = self.report
        osrt = report.osrt
        classes = {
            report.host_events: host_event_classes(report.host_events),
            report.api: self.api_classes,
            osrt: osrt_classes(osrt),
            report.ranges: range_classes(report.ranges),
        }
        known = {report.ranges: self._ranges, report.api: self._calls}
        return tuple(
            _Source(events, codes, known.get(events) or ByThread(events))
            for events, codes in classes.items()
            if (codes != NO_CLASS).any()
        )

    @cached_property
    def _ranges(self) -> ByThread:
        return ByThread(self.report.ranges)

    @cached_property
    def _calls(self) -> ByThread:
        return ByThread(self.report.api)

    def calls(self, thread: int) -> Indices:
        """Rows of the API calls proper of a thread, by its place in ``Report.api.threads``."""
        api = self.report.api
        rows = self._calls.rows(int(api.threads[thread])).astype(np.intp)
        return rows[api.real[rows]]

    @cached_property
    def _gpus_work(self) -> Intervals:
        """When any GPU works, for which a call may wait."""
        ops = self.report.operations
        return intervals.union(ops.start, ops.end)

    def rest(self) -> None:
        """Keeps the names only; the next question about a thread takes as long as the first."""
        for kept in ("_sources", "_ranges", "_calls", "_gpus_work", "api_classes"):
            self.__dict__.pop(kept, None)
        self._threads, self._near, self._innermost, self._held = {}, {}, {}, 0
        self.scheduling = Scheduling(self.report)

    def code(self, name: str) -> int:
        """Code of a text, known or new."""
        code = self._codes.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code

    def codes(self, foreign: Integers, text: Callable[[int], str]) -> Int32:
        """Codes for codes of another dictionary, looked up through ``text``."""
        occur = used(foreign)
        code_of = np.zeros(int(occur[-1]) + 1 if len(occur) else 0, np.int32)
        code_of[occur] = [self.code(text(code)) for code in occur.tolist()]
        return code_of[foreign]

    def name(self, code: int) -> str:
        """Text of a code; empty for -1."""
        return self.names[code] if code >= 0 else ""

    def thread(self, global_tid: int) -> ThreadWork:
        """The work of one thread; that of the threads asked for last is kept."""
        work = self._threads.pop(global_tid, None)
        if work is None:
            work = self._work(global_tid)
            self._held += len(work)
        self._threads[global_tid] = work
        while self._held > HELD and len(self._threads) > 1:
            self._held -= len(self._threads.pop(next(iter(self._threads))))
        return work

    def near(self, global_tid: int, lo: Int64, hi: Int64) -> ThreadWork:
        """The work of one thread in the intervals [lo, hi), kept for questions about parts of them.

        A thread's other events are too many to be kept.
        """
        asked = intervals.union(lo, hi)
        known, known_work = self._near.get(global_tid, (intervals.empty(), None))
        if known_work is None or len(intervals.subtract(asked, known)[0]):
            held = self._threads.get(global_tid)
            known_work = (held or self._work(global_tid, asked)).near(*asked)
            self._near[global_tid] = asked, known_work
        return known_work

    def _work(self, global_tid: int, asked: Intervals | None = None) -> ThreadWork:
        """The work of one thread, at least in the intervals that are asked about."""
        by_class = self._events(global_tid, asked) | _of_states(self.scheduling.thread(global_tid))
        calls = [cause for cause in _CALLS if cause in by_class]
        if calls and len((ready := self.scheduling.ready(global_tid))[0]):
            kept = intervals.subtract(ready, self._gpus_work)
            by_class |= {cause: by_class[cause].outside(kept) for cause in calls}
        if Cause.SYNC in by_class:
            starts, ends = intervals.subtract(self.scheduling.away(global_tid), self._gpus_work)
            late = ends - starts >= LATE_NS
            by_class[Cause.SYNC] = by_class[Cause.SYNC].outside((starts[late], ends[late]))
        return ThreadWork(by_class, self.innermost(global_tid))

    def by_name(self, events: Named | None, within: Intervals) -> dict[str, int]:
        """How long the events of each name cover disjoint intervals, ns; the most first."""
        time = events.times(*within) if events is not None else np.empty(0, np.int64)
        order = np.argsort(-time, kind="stable")
        return {self.names[code]: int(time[code]) for code in order.tolist() if time[code]}

    def witness(self, global_tid: int) -> Witness:
        """How it is known where a thread was; remembered, however much it did."""
        if global_tid not in self._witnesses:
            self._witnesses[global_tid] = self.scheduling.thread(global_tid).witness
        return self._witnesses[global_tid]

    def innermost(self, global_tid: int) -> Named:
        """Disjoint pieces of a thread's time with the name of the innermost NVTX range."""
        named = self._innermost.get(global_tid)
        if named is None:
            rows = self._ranges.rows(global_tid).astype(np.intp)
            nesting = rows[self.report.ranges.nests[rows]]
            ranges = self._named(self.report.ranges, nesting)
            pieces = segments(ranges.starts, ranges.ends)
            named = Named(pieces.starts, pieces.ends, ranges.name[pieces.owner])
            self._innermost[global_tid] = named
        return named

    def ranges_of_calls(self, calls: Integers) -> Int64:
        """Codes of the innermost ranges in which some calls (rows of the API) begin; -1 for none.

        Args:
            calls: -1 where there is none.
        """
        api = self.report.api
        ranges_open = np.full(len(calls), -1, np.int64)
        called = np.flatnonzero(calls >= 0)
        threads = api.threads[api.thread[calls[called]]] if len(called) else called
        for thread in np.unique(threads).tolist():
            mine = called[threads == thread]
            begun = api.start[calls[mine]]
            ranges_open[mine] = self.innermost(thread).longest(begun, begun + 1)
        return ranges_open

    def _events(self, global_tid: int, asked: Intervals | None) -> dict[Cause, Named]:
        """The events of a thread by class; classes without events are left out.

        Of intervals alone: 2 M calls need no class and no name where few gaps are looked at.
        """
        parts: dict[Cause, list[Named]] = {}
        calls = intervals.empty()
        for source in self._sources:
            of_thread = source.by_thread.rows(global_tid)
            if asked is not None:
                when = clipped(source.events, of_thread, None)
                of_thread = Named(*when, of_thread).near(*asked).name
            rows = of_thread.astype(np.intp)
            classes = source.classes[rows]
            for cause in _HOST_CLASSES:
                chosen = rows[classes == cause]
                if not len(chosen):
                    continue
                events = self._named(source.events, chosen)
                if source.events is self.report.api and cause is Cause.API:
                    launch = [code for code, name in enumerate(self.names) if "Launch" in name]
                    others = ~np.isin(events.name, launch)
                    calls = intervals.union(events.starts[others], events.ends[others])
                if source.events is self.report.osrt and cause in _OF_DRIVER:
                    events = events.outside(calls)
                parts.setdefault(cause, []).append(events)
        return {cause: _joined(named) for cause, named in parts.items()}

    def _named(self, events: ThreadEvents, rows: Indices) -> Named:
        shown = api_name if events is self.report.api else str
        codes = self.codes(events.name[rows], lambda code: shown(events.names[code]))
        return Named(*clipped(events, rows, None), codes)


def _of_states(states: ThreadStates) -> dict[Cause, Named]:
    """Where a thread was, as classes without names."""
    classes = {Cause.HOST: states.running, Cause.OFF_CPU: states.off}
    return {
        cause: Named(starts, ends, np.zeros(len(starts), np.int32))
        for cause, (starts, ends) in classes.items()
        if len(starts)
    }


def _joined(parts: list[Named]) -> Named:
    if len(parts) == 1:
        return parts[0]
    starts, ends, name = (
        np.concatenate([getattr(part, field) for part in parts])
        for field in ("starts", "ends", "name")
    )
    order = np.argsort(starts, kind="stable")
    return Named(starts[order], ends[order], name[order])
