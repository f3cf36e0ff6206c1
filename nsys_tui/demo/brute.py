"""One rank's events, looked at in plain loops: intervals, ranges open at a call, causes of gaps.

Deliberately slow and simple, and sharing nothing with the rest of the program: it is what the
analyses are checked against.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from nsys_tui.demo.events import GRAPH, KERNEL, MEMCPY, Call, Operation, Range, Trace

Interval = tuple[int, int]

HOST_CAUSES: Final = (
    "profiler overhead",
    "module load or JIT",
    "allocation or free",
    "sync call",
    "blocking or pageable copy",
    "lock",
    "wait",
    "I/O",
    "sleep",
    "OSRT call",
    "other API",
    "host compute",
    "off the CPU",
)
"""What the launching thread can be doing, in the order in which a nanosecond is given away."""
OS_CAUSES: Final = {
    "pthread_mutex_lock": "lock",
    "pthread_cond_wait": "wait",
    "connect": "wait",
    "open64": "I/O",
    "read": "I/O",
    "pread64": "I/O",
}
"""What the demo's calls of the operating system's libraries count as."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint, sorted intervals that cover the same time."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return merged


def minus(left: Iterable[Interval], right: Iterable[Interval]) -> list[Interval]:
    """The time of ``left`` that ``right`` does not cover."""
    cuts = union(right)
    pieces: list[Interval] = []
    first = 0
    for start, end in union(left):
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        at, position = first, start
        while at < len(cuts) and cuts[at][0] < end:
            if cuts[at][0] > position:
                pieces.append((position, cuts[at][0]))
            position = max(position, cuts[at][1])
            at += 1
        if position < end:
            pieces.append((position, end))
    return pieces


def length(intervals: Iterable[Interval]) -> int:
    """Total time of disjoint intervals."""
    return sum(end - start for start, end in intervals)


def clip(disjoint: Sequence[Interval], a: int, b: int) -> list[Interval]:
    """The parts of sorted, disjoint intervals inside [a, b)."""
    first = bisect_right(disjoint, a, key=lambda interval: interval[1])
    last = bisect_left(disjoint, b, key=lambda interval: interval[0])
    return [(max(start, a), min(end, b)) for start, end in disjoint[first:last]]


def category(operation: Operation) -> str:
    """Compute, comm, memory or graph."""
    if operation.kind == KERNEL:
        assert operation.kernel is not None
        return "comm" if operation.kernel.short.startswith("nccl") else "compute"
    return "graph" if operation.kind == GRAPH else "memory"


def label(operation: Operation) -> str:
    """The name an operation has in a folded stack."""
    if operation.kernel is not None:
        return operation.kernel.full
    return f"[{operation.kind}]"


def extent(trace: Trace) -> Interval:
    """First start to last end over everything that has a lane, joined with the session."""
    starts, ends = [0], [trace.duration]
    for records in (
        trace.operations,
        trace.calls,
        trace.os_calls,
        trace.syncs,
        trace.overheads,
        trace.samples,
        trace.switches,
        trace.metrics,
        trace.memory,
        [r for r in trace.ranges if r.event_type in (34, 59, 60)],
    ):
        for record in records:
            starts.append(record.start)
            ends.append(getattr(record, "end", None) or record.start)
    return min(starts), max(ends)


def span(operations: Sequence[Operation]) -> Interval:
    """First operation's start to the last one's end."""
    return min(o.start for o in operations), max(o.end for o in operations)


class RankView:
    """The events of one rank, with what the counting needs at hand."""

    def __init__(self, trace: Trace, rank: int) -> None:
        self.rank = rank
        self.operations = sorted(
            (o for o in trace.operations if o.rank == rank), key=lambda o: (o.start, o.end)
        )
        self.calls = {c.correlation: c for c in trace.calls if c.rank == rank}
        self.end_of_all = extent(trace)[1]
        self.ranges: dict[int, list[Range]] = {}
        for each in trace.ranges:
            own_thread = each.end_tid in (None, each.tid)
            if each.rank == rank and each.event_type in (59, 60) and own_thread:
                self.ranges.setdefault(each.tid, []).append(each)
        self._copies = {o.correlation: o for o in self.operations if o.kind == MEMCPY}
        self._ended_by: dict[int, Operation] = {}
        for o in sorted(self.operations, key=lambda o: o.ns):
            self._ended_by[o.start] = o
        self._host = {
            tid: self._host_activity(trace, tid) for tid in {c.tid for c in self.calls.values()}
        }
        self._launches: dict[int, list[int]] = {}
        for o in self.operations:
            self._launches.setdefault(o.stream, []).append(self.calls[o.correlation].start)
        for starts in self._launches.values():
            starts.sort()
        self._waits = [s for s in trace.syncs if s.rank == rank and s.kind == 2]

    def paths(self) -> dict[int, list[str]]:
        """For each call, the ranges open on its thread when it began, outermost first."""
        by_thread: dict[int, list[str]] = {}
        for tid in self._host:
            ranges = sorted(self.ranges.get(tid, []), key=lambda r: (r.start, -self._end(r)))
            inside: list[Range] = []
            for call in sorted(self.calls.values(), key=lambda c: c.start):
                if call.tid == tid:
                    while ranges and ranges[0].start <= call.start:
                        inside.append(ranges.pop(0))
                    inside = [r for r in inside if call.start < self._end(r)]
                    by_thread[call.correlation] = [r.name for r in inside]
        return by_thread

    def covered(self, kind: str) -> list[Interval]:
        """The union of the operations of one category."""
        return union((o.start, o.end) for o in self.operations if category(o) == kind)

    def gaps(self) -> list[Interval]:
        """Idle time between the first and the last operation."""
        return minus([span(self.operations)], [(o.start, o.end) for o in self.operations])

    def cause(self, gap: Interval) -> str:
        """Why the device was idle, by the operation that ended the gap and its call."""
        ended_by = self._ended_by[gap[1]]
        call = self.calls[ended_by.correlation]
        if call.start < gap[0]:
            return self._device_side(ended_by, call)
        shares = {"launch latency": gap[1] - call.start}
        left = [(gap[0], call.start)]
        for name, intervals in zip(HOST_CAUSES, self._host[call.tid], strict=True):
            rest = minus(left, clip(intervals, gap[0], call.start))
            shares[name] = length(left) - length(rest)
            left = rest
        shares["nothing recorded"] = length(left)
        order = (*HOST_CAUSES, "launch latency", "nothing recorded")
        return max(order, key=lambda name: (shares[name], -order.index(name)))

    def _device_side(self, ended_by: Operation, call: Call) -> str:
        """The call came in time: the stream waited for a peer, an event or its own work."""
        if category(ended_by) == "comm":
            return "peer"
        earlier = self._launches[ended_by.stream]
        position = bisect_left(earlier, call.start)
        previous = earlier[position - 1] if position else 0
        waits = (w.start for w in self._waits if w.stream == ended_by.stream)
        return "event" if any(previous < w < call.start for w in waits) else "late start"

    def _end(self, each: Range) -> int:
        return self.end_of_all if each.end is None else each.end

    def _host_activity(self, trace: Trace, tid: int) -> list[list[Interval]]:
        """What a thread did, by cause, as disjoint intervals."""
        by_cause: dict[str, list[Interval]] = {name: [] for name in HOST_CAUSES}
        for cost in trace.overheads:
            if cost.tid == tid:
                loading = cost.kind in (2, 6, 7)
                name = "module load or JIT" if loading else "profiler overhead"
                by_cause[name].append((cost.start, cost.end))
        for call in self.calls.values():
            if call.tid == tid:
                by_cause[self._call_cause(call)].append((call.start, call.end))
        for os_call in trace.os_calls:
            if os_call.tid == tid:
                by_cause[OS_CAUSES.get(os_call.name, "OSRT call")].append(
                    (os_call.start, os_call.end)
                )
        switches = sorted((s for s in trace.switches if s.tid == tid), key=lambda s: s.start)
        ends = [*(s.start for s in switches[1:]), extent(trace)[1]]
        for switch, end in zip(switches, ends, strict=True):
            name = "host compute" if switch.switched_in else "off the CPU"
            by_cause[name].append((switch.start, end))
        return [union(intervals) for intervals in by_cause.values()]

    def _call_cause(self, call: Call) -> str:
        copy = self._copies.get(call.correlation)
        if call.name.startswith(("cudaMalloc", "cudaFree")):
            return "allocation or free"
        if "Synchronize" in call.name:
            return "sync call"
        pageable = copy is not None and 0 in (copy.source, copy.target)
        return "blocking or pageable copy" if pageable else "other API"
