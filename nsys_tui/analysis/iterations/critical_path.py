"""Critical path of a step: what its end waited for, from there back to its start.

The walk stands at an operation or on a host thread and goes back in time. Before an operation is
what became ready last: its call, the work before it in its stream, work that its stream was told
to wait for, or, in a collective, the last rank's kernel. Before a call lies what its thread did; a
call that waits for the GPU leads to the operation that ended in it, a wait for a lock to the thread
that signalled. Segments follow each other without a gap, so they add up to the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.nccl.waiting import Waits, collective_waits
from nsys_tui.analysis.stalls.causes import Cause, api_name_class
from nsys_tui.analysis.stalls.explained import STREAM_WAIT
from nsys_tui.analysis.thread_states import Scheduling, beside
from nsys_tui.analysis.window import touching
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import api_name

SLACK: Final = 20_000
"""An operation that starts so soon after another one ended may have waited for it, ns."""
WAKE: Final = 50_000
"""A thread that goes on so soon after a call of another one returned may have waited for it, ns."""
MOST: Final = 300_000
"""Segments after which the walk gives up; what is left is one segment of its own."""
_WAITS: Final = (Cause.SYNC, Cause.COPY, Cause.ALLOCATION)
"""Calls that may wait for the GPU."""
_BLOCKS: Final = ("cond_wait", "cond_timedwait", "sem_wait", "sem_timedwait", "mutex_lock", "futex")
_WAKES: Final = ("cond_signal", "cond_broadcast", "sem_post", "mutex_unlock", "futex")


class What(StrEnum):
    """What the time of a segment went into."""

    COMPUTE = "compute"
    COMM = "communication"
    MEMORY = "copy"
    GRAPH = "graph"
    QUEUE = "GPU between operations"
    LAUNCH = "launch latency"
    CALL = "CUDA call"
    OSRT = "OS call"
    HOST = "host"
    REST = "not followed"


class Edge(StrEnum):
    """How it is known that a segment waited for the one before it in time."""

    RECORDED = "recorded"
    """By the ids of a call and its operation, of a wait and its stream, of a collective."""
    ORDER = "by order"
    """Work of one stream or of one thread runs in order."""
    ASSUMED = "assumed"
    """Nothing that was recorded links them; times fit."""
    START = "start of the step"


class Segment(NamedTuple):
    """A stretch of the path."""

    start: int
    end: int
    what: What
    name: str
    where: str
    """GPU and stream, or thread."""
    edge: Edge
    """How the segment before it in time is known to be what it waited for."""
    row: int
    """Row of ``Report.operations``, -1 for the host's segments."""

    @property
    def ns(self) -> int:
        """Length."""
        return self.end - self.start


_CATEGORIES: Final = {
    Category.COMPUTE: What.COMPUTE,
    Category.COMM: What.COMM,
    Category.MEMORY: What.MEMORY,
    Category.GRAPH: What.GRAPH,
}


class _Host(NamedTuple):
    """Outermost events of one thread that touch the step, disjoint and in order."""

    starts: Int64
    ends: Int64
    calls: Int64
    """Row of ``Report.api``, -1 for an OS call."""
    os_calls: Int64
    """Row of ``Report.osrt``, -1 for a CUDA call."""


def critical_path(report: Report, start: int, end: int, process: int, thread: int) -> list[Segment]:
    """The critical path of a stretch of time, in order of time.

    Args:
        report: the report; all event sets are loaded.
        start: of the step, ns.
        end: of the step, ns.
        process: globalPid that the step belongs to, -1 for all.
        thread: globalTid on which the step ends, -1 where that is not known.
    """
    return _Walk(report, start, end, process, thread).path()


@dataclass(eq=False)
class _Walk:
    report: Report
    start: int
    end: int
    process: int
    thread: int

    def __post_init__(self) -> None:
        ops = self.report.operations
        kept = touching(ops, (self.start, self.end))
        self.rows = np.arange(len(ops))[kept] if isinstance(kept, slice) else kept
        self.rows = self.rows[ops.counted[self.rows]]
        self.waits: Waits = collective_waits(self.report)
        self.segments: list[Segment] = []
        self.time = self.end
        self._hosts: dict[int, _Host] = {}

    def path(self) -> list[Segment]:
        """Walks back from the end."""
        row, thread = self._last(), self.thread
        while self.time > self.start:
            if len(self.segments) > MOST or (row < 0 and thread < 0):
                self._add(self.start, What.REST, "", "", Edge.START)
            elif row >= 0:
                row, thread = self._operation(row)
            else:
                row, thread = self._on_host(thread)
        return self.segments[::-1]

    def _add(
        self, until: int, what: What, name: str, where: str, edge: Edge, row: int = -1
    ) -> None:
        """A segment from ``until``, cut to the step, to where the walk stands."""
        begin = max(min(until, self.time), self.start)
        edge = Edge.START if begin == self.start else edge
        if begin < self.time:
            self.segments.append(Segment(begin, self.time, what, name, where, edge, row))
        self.time = begin

    def _last(self) -> int:
        """The operation of the process that runs at the end; without a thread the last one.

        None if the thread waits for the GPU in the step, or launched it before: its own end tells.
        """
        ops = self.report.operations
        mine = self.rows[self._of_process(self.rows)]
        if not len(mine) or (self.thread >= 0 and self._waits_for_gpu()):
            return -1
        ends = np.minimum(ops.end[mine], self.end)
        last = int(mine[np.lexsort((ops.start[mine], ends))[-1]])
        call = int(self.report.calls[last])
        own = call < 0 or self.thread < 0 or self.report.api.start[call] >= self.start
        if own and ops.end[last] >= self.end:
            return last
        if self.thread < 0:
            self._add(int(ops.end[last]), What.HOST, "after the last operation", "", Edge.ASSUMED)
            return last
        return -1

    def _waits_for_gpu(self) -> bool:
        host, api = self._host(self.thread), self.report.api
        calls = host.calls[(host.calls >= 0) & (host.ends - host.starts > SLACK)].tolist()
        classes = [api_name_class(api_name(api.names[api.name[call]])) for call in calls]
        return Cause.SYNC in classes or any(call in self._awaited for call in calls)

    def _of_process(self, rows: Integers) -> Bool:
        ops = self.report.operations
        owner: Int64 = ops.processes[ops.process[rows]]
        return np.ones(len(rows), bool) if self.process < 0 else owner == self.process

    # On the GPU.

    def _operation(self, row: int) -> tuple[int, int]:
        """Goes through an operation to what it waited for."""
        ops = self.report.operations
        what = _CATEGORIES.get(Category(int(ops.category[row])), What.COMPUTE)
        name, where = ops.shown[ops.name[row]], self._where(row)
        until, partner = self._partner(row)
        if partner >= 0:
            edge = Edge.ASSUMED if self.waits.by_order else Edge.RECORDED
            self._add(until, what, name, where, edge, row)
            return self._back(partner, *self._before(partner))
        before, ready, edge = self._before(row)
        self._add(int(ops.start[row]), what, name, where, edge, row)
        return self._back(row, before, ready, edge)

    def _back(self, row: int, before: int, ready: int, edge: Edge) -> tuple[int, int]:
        """To the operation before, or to the call where that came later."""
        api, call = self.report.api, int(self.report.calls[row])
        if call >= 0 and before < 0:
            self._add(
                int(api.start[call]),
                What.LAUNCH,
                api_name(api.names[api.name[call]]),
                self.report.thread_name(int(api.threads[api.thread[call]])),
                Edge.ORDER,
            )
            return -1, int(api.threads[api.thread[call]])
        self._add(ready, What.QUEUE, "", self._where(row), edge)
        return before, -1

    def _where(self, row: int) -> str:
        ops = self.report.operations
        device = ops.devices[ops.device[row]].label
        return f"{device}, {ops.streams[ops.stream[row]].label}"

    def _partner(self, row: int) -> tuple[int, int]:
        """When the last rank came to a collective, and its kernel; -1 where it is this one."""
        position = int(np.searchsorted(self.waits.row, row))
        if position == len(self.waits) or self.waits.row[position] != row:
            return 0, -1
        partner = int(self.waits.last[position])
        return int(self.waits.until[position]), -1 if partner == row else partner

    def _before(self, row: int) -> tuple[int, int, Edge]:
        """The operation that one waited for, -1 for its call; when it ended; how that is known."""
        ops, start = self.report.operations, int(self.report.operations.start[row])
        previous = self._previous(row)
        told = ((previous, Edge.ORDER), (self._waited_for(row, previous), Edge.ASSUMED))
        candidates = [(one, int(ops.end[one]), edge) for one, edge in told if one >= 0]
        call = int(self.report.calls[row])
        if call >= 0:
            launched = min(int(self.report.api.start[call]) + self._latency, start)
            candidates.append((-1, launched, Edge.RECORDED))
        latest = max(candidates, key=lambda one: one[1], default=(-1, self.start, Edge.ASSUMED))
        if not candidates or start - latest[1] > SLACK:
            near = self._ended_before(row, start - SLACK, start)
            return (near, int(ops.end[near]), Edge.ASSUMED) if near >= 0 else latest
        return latest

    @cached_property
    def _by_stream(self) -> dict[int, Indices]:
        ops = self.report.operations
        parts = rows_of_codes(ops.stream[self.rows], len(ops.streams))
        return {code: self.rows[part] for code, part in enumerate(parts) if len(part)}

    def _previous(self, row: int) -> int:
        """The operation before one in its stream, if it touches the step."""
        mine = self._by_stream.get(int(self.report.operations.stream[row]), self.rows[:0])
        position = int(np.searchsorted(mine, row)) - 1
        return int(mine[position]) if position >= 0 else -1

    @cached_property
    def _latency(self) -> int:
        """Least time from a call to its operation in the step: before it nothing can start."""
        calls = self.report.calls[self.rows]
        known = calls >= 0
        if not known.any():
            return 0
        latency = (
            self.report.operations.start[self.rows[known]] - self.report.api.start[calls[known]]
        )
        return max(int(latency.min()), 0)

    @cached_property
    def _stream_waits(self) -> Int64:
        """Rows of ``Report.syncs`` that are waits of a stream, up to the end of the step."""
        syncs = self.report.syncs
        return np.flatnonzero((syncs.sync_type == STREAM_WAIT) & (syncs.start < self.end))

    def _waited_for(self, row: int, previous: int) -> int:
        """What a wait for an event before an operation may have waited for, -1 where is none.

        It is the work of another stream, launched before that wait, that ended last.
        """
        ops, syncs, call = self.report.operations, self.report.syncs, int(self.report.calls[row])
        if call < 0 or not len(self._stream_waits):
            return -1
        stream = ops.streams[ops.stream[row]]
        waits = self._stream_waits
        mine = (syncs.processes[syncs.process[waits]] == stream.globalPid) & (
            syncs.stream[waits] == stream.id
        )
        before = self.report.calls[previous] if previous >= 0 else -1
        since = int(self.report.api.start[before]) if before >= 0 else self.start - 10**12
        times = syncs.start[waits[mine]]
        times = times[(times > since) & (times <= self.report.api.start[call])]
        if not len(times):
            return -1
        return self._ended_before(row, self.start, int(ops.start[row]), int(times.max()))

    def _ended_before(self, row: int, since: int, until: int, launched: int | None = None) -> int:
        """The work of other streams of a process that ended last in (since, until], -1 for none."""
        ops = self.report.operations
        rows = self.rows[(ops.end[self.rows] > since) & (ops.end[self.rows] <= until)]
        rows = rows[(ops.process[rows] == ops.process[row]) & (ops.stream[rows] != ops.stream[row])]
        if launched is not None and len(rows):
            calls = self.report.calls[rows]
            rows = rows[(calls >= 0) & (self.report.api.start[calls] < launched)]
        return int(rows[np.argmax(ops.end[rows])]) if len(rows) else -1

    # On the host.

    def _on_host(self, thread: int) -> tuple[int, int]:
        """Goes back over what a thread did last before the time at which the walk stands."""
        host = self._host(thread)
        where = self.report.thread_name(thread)
        position = int(np.searchsorted(host.starts, self.time)) - 1
        if position < 0:
            self._add(self.start, What.HOST, self._state(thread, self.start), where, Edge.ORDER)
            return -1, thread
        begin, end = int(host.starts[position]), int(host.ends[position])
        if end < self.time:
            self._add(end, What.HOST, self._state(thread, end), where, Edge.ORDER)
            return -1, thread
        if host.calls[position] >= 0:
            return self._in_call(thread, int(host.calls[position]), begin, where)
        return self._in_os_call(thread, int(host.os_calls[position]), begin, where)

    def _state(self, thread: int, since: int) -> str:
        """Where a thread was while it was in no call: what most of the time shows."""
        states = self._scheduling.thread(thread)
        window = (np.array([max(since, self.start)]), np.array([self.time]))
        on, off = (
            intervals.overlap_length(state, window) for state in (states.running, states.off)
        )
        half = (self.time - max(since, self.start)) / 2
        return "on the CPU" if on > half else "off the CPU" if off > half else "in no recorded call"

    @cached_property
    def _scheduling(self) -> Scheduling:
        return Scheduling(self.report)

    def _in_call(self, thread: int, call: int, begin: int, where: str) -> tuple[int, int]:
        api, ops = self.report.api, self.report.operations
        name = api_name(api.names[api.name[call]])
        own = self._awaited.get(call, -1)
        if own >= 0 and ops.end[own] <= self.time:
            self._add(int(ops.end[own]), What.CALL, name, where, Edge.RECORDED)
            return own, -1
        if api_name_class(name) in _WAITS:
            stream, recorded = self._synchronised(call)
            rows = self.rows[(ops.end[self.rows] > begin) & (ops.end[self.rows] <= self.time)]
            rows = rows[ops.processes[ops.process[rows]] == (thread & PROCESS_MASK)]
            if stream >= 0:
                ids = np.array([one.id for one in ops.streams], np.int64)
                rows = rows[ids[ops.stream[rows]] == stream]
            if len(rows):
                last = int(rows[np.argmax(ops.end[rows])])
                edge = Edge.RECORDED if recorded else Edge.ASSUMED
                self._add(int(ops.end[last]), What.CALL, name, where, edge)
                return last, -1
        self._add(begin, What.CALL, name, where, Edge.ORDER)
        return -1, thread

    @cached_property
    def _awaited(self) -> dict[int, int]:
        """The operation of each call that returned right after it: a copy, or a long kernel."""
        ops, api = self.report.operations, self.report.api
        rows, calls = self.report.called(self.rows)
        after = api.end[calls] - ops.end[rows]
        waits = (after >= 0) & (after <= SLACK)
        waits &= (ops.category[rows] == Category.MEMORY) | (
            2 * ops.durations(rows) >= api.durations(calls)
        )
        return dict(zip(calls[waits].tolist(), rows[waits].tolist(), strict=True))

    def _synchronised(self, call: int) -> tuple[int, bool]:
        """Stream that a call waited for, -1 for all or not known, and whether a row tells it.

        Rows of other waits than for a stream or for all have a stream that means nothing.
        """
        api, syncs = self.report.api, self.report.syncs
        name = api.names[api.name[call]]
        rows = np.flatnonzero(syncs.correlation == api.correlation[call])
        process = api.threads[api.thread[call]] & PROCESS_MASK
        rows = rows[syncs.processes[syncs.process[rows]] == process]
        if "StreamSync" in name and len(rows):
            return int(syncs.stream[rows[0]]), True
        return -1, len(rows) > 0 and "Event" not in name

    def _in_os_call(self, thread: int, call: int, begin: int, where: str) -> tuple[int, int]:
        osrt = self.report.osrt
        name = osrt.names[osrt.name[call]]
        if any(part in name for part in _BLOCKS):
            since = max(begin, self.time - WAKE)
            waker = self._waker(thread, since)
            if waker >= 0:
                self._add(int(osrt.start[waker]), What.OSRT, name, where, Edge.ASSUMED)
                return -1, int(osrt.threads[osrt.thread[waker]])
            call = self._returned(thread, since)
            if call >= 0:
                api = self.report.api
                self._add(int(api.end[call]), What.OSRT, name, where, Edge.ASSUMED)
                return -1, int(api.threads[api.thread[call]])
        self._add(begin, What.OSRT, name, where, Edge.ORDER)
        return -1, thread

    def _returned(self, thread: int, since: int) -> int:
        """The CUDA call of another thread of the process that returned last, -1 for none."""
        api = self.report.api
        rows = np.arange(len(api))[touching(api, (since, self.time))]
        rows = rows[beside(thread, api.threads[api.thread[rows]]) & api.real[rows]]
        rows = rows[(api.end[rows] > since) & (api.end[rows] < self.time)]
        return int(rows[np.argmax(api.end[rows])]) if len(rows) else -1

    def _waker(self, thread: int, since: int) -> int:
        """The last call of another thread of the process that could end a wait, -1 for none."""
        osrt = self.report.osrt
        begun, until = np.searchsorted(osrt.start, (since + 1, self.time))
        rows = np.arange(begun, until)
        named = np.array([any(part in name for part in _WAKES) for name in osrt.names], bool)
        rows = rows[named[osrt.name[rows]]]
        rows = rows[beside(thread, osrt.threads[osrt.thread[rows]])]
        return int(rows[-1]) if len(rows) else -1

    def _host(self, thread: int) -> _Host:
        if thread not in self._hosts:
            self._hosts[thread] = self._outermost(thread)
        return self._hosts[thread]

    def _outermost(self, thread: int) -> _Host:
        api, osrt, window = self.report.api, self.report.osrt, (self.start, self.end)
        outermost = []
        for events, real in ((api, api.real), (osrt, osrt.nesting <= 0)):
            rows = np.arange(len(events))[touching(events, window)]
            of_thread = events.threads[events.thread[rows]] == thread if len(rows) else rows > 0
            rows = rows[of_thread & real[rows]]
            outermost.append(rows)
        starts = np.concatenate((api.start[outermost[0]], osrt.start[outermost[1]]))
        ends = np.concatenate((api.end[outermost[0]], osrt.end[outermost[1]]))
        calls = np.concatenate((outermost[0], np.full(len(outermost[1]), -1)))
        os_calls = np.concatenate((np.full(len(outermost[0]), -1), outermost[1]))
        order = np.lexsort((-ends, starts))
        starts, ends, calls, os_calls = (part[order] for part in (starts, ends, calls, os_calls))
        reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
        outer = ends > reach if len(ends) else np.zeros(0, bool)
        return _Host(starts[outer], ends[outer], calls[outer], os_calls[outer])
