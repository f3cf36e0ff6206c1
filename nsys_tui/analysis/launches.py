"""From API call to kernel: launch latency, queueing, idle time of a stream, launch-bound runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Final

import numpy as np

from nsys_tui.analysis.stalls.causes import Cause, range_classes
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, clipped, row_numbers
from nsys_tui.config import LaunchBoundConfig
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.events import FARTHEST, Operations, ThreadEvents
from nsys_tui.model.groups import factorise_rows, rows_of_codes, used
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report

BATCH: Final = 1 << 18
"""Operations after which another batch of launch-bound runs begins: little memory at a time."""
_MANY: Final = 1 << 18
"""Operations of a device from which its runs are stored: of fewer they are found as fast."""
MAKES_GRAPH: Final = "GraphInstantiate"
LAUNCHES_GRAPH: Final = "GraphLaunch"
"""What is in the names of calls that make a CUDA graph executable, and that launch one."""


@dataclass(frozen=True, eq=False)
class Launches:
    """How operations came to start, aligned with the rows asked for; times in ns."""

    called: Bool
    """Whether the API call that launched it is known; the other figures are 0 where it is not."""
    latency: Int64
    """Start of the operation minus start of its call; negative where clocks disagree."""
    queue: Int64
    """Time from the end of the call to the start of the operation, never negative."""


def calls_to(report: Report, does: str) -> tuple[Int64, Int64]:
    """When each call ends in whose name a pattern is found, and its process."""
    api = report.api
    named = np.array([re.search(does, name) is not None for name in api.names], bool)
    if not named.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = np.flatnonzero(named[api.name] & api.real)
    return api.end[rows], api.thread_process[api.thread[rows]]


def launching(report: Report) -> Int64:
    """Places of devices and, in ``Report.api.threads``, of threads that launch work on them.

    Returns:
        int64 (n, 2), ascending; that of many operations is kept for a report.
    """

    def pairs() -> dict[str, Int64]:
        calls, devices = report.calls, report.operations.device
        known = calls >= 0
        return {"pairs": factorise_rows((devices[known], report.api.thread[calls[known]]))[1]}

    many = len(report.operations) >= _MANY
    return (report.derived("launching_1", pairs) if many else pairs())["pairs"]


def launches(report: Report, rows: Indices | slice = slice(None)) -> Launches:
    """Launch latency and queueing of some operations (of all by default)."""
    calls, starts = report.calls[rows], report.operations.start[rows]
    called = calls >= 0
    known = calls[called]
    latency, queue = np.zeros(len(calls), np.int64), np.zeros(len(calls), np.int64)
    latency[called] = starts[called] - report.api.start[known]
    queue[called] = np.maximum(starts[called] - report.api.end[known], 0)
    return Launches(called, latency, queue)


def calls_of_waits(report: Report) -> Int64:
    """Row in ``Report.api`` of the call of each of ``Report.syncs``, -1 where none is known.

    The join is that of ``Report.calls``: on process and correlation id, over calls proper.
    """
    syncs, api = report.syncs, report.api
    row_of_call = np.full(len(syncs), -1, np.int64)
    calls = np.flatnonzero(api.real)
    owner = api.thread_process[api.thread[calls]] if len(api) else calls
    for code, process in enumerate(syncs.processes.tolist()):
        mine = calls[owner == process]
        if len(mine):
            order = mine[np.argsort(api.correlation[mine], kind="stable")]
            waits = np.flatnonzero(syncs.process == code)
            position = np.searchsorted(api.correlation[order], syncs.correlation[waits])
            call = order[np.minimum(position, len(order) - 1)]
            match = api.correlation[call] == syncs.correlation[waits]
            row_of_call[waits] = np.where(match, call, -1)
    return row_of_call


def launches_graphs(report: Report, calls: Integers) -> Bool:
    """Which of some API calls, -1 for none, launch a CUDA graph."""
    graphs = np.array([LAUNCHES_GRAPH in name for name in report.api.names], bool)
    if not graphs.any():
        return np.zeros(len(calls), bool)
    return np.asarray(graphs[report.api.name[calls]] & (calls >= 0), np.bool_)


def stream_gaps(ops: Operations) -> Int64:
    """Idle time of its stream before each operation, in ns; -1 for the first of a stream."""
    gaps = np.full(len(ops), -1, np.int64)
    for rows in rows_of_codes(ops.stream, len(ops.streams)):
        reach = np.maximum.accumulate(ops.end[rows])
        gaps[rows[1:]] = np.maximum(ops.start[rows[1:]] - reach[:-1], 0)
    return gaps


@dataclass(frozen=True)
class LaunchBoundRun:
    """Many short operations in a row between which the device waits for the host."""

    device: int
    """Place in ``Report.devices``."""
    start: int
    end: int
    operations: int
    idle_ns: int
    gap_count: int
    first_row: int
    """Row of the first operation in ``Report.operations``."""
    middle_row: int
    """Row of the one in the middle: the first may still be of what ran before."""

    @property
    def idle_share(self) -> float:
        """Idle part of the run, 0 to 1."""
        return self.idle_ns / (self.end - self.start) if self.end > self.start else 0.0


def launch_bound_runs(
    report: Report, scope: Scope = WHOLE_REPORT, rule: LaunchBoundConfig | None = None
) -> list[LaunchBoundRun]:
    """Launch-bound runs of the devices in scope, in order of device and time.

    A run is found on the whole trace and listed if it touches the window.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        rule: what counts as such a run; the user's settings by default.
    """
    rule = rule or report.launch_bound
    runs = [
        run
        for device, rows in scope.at_any_time().by_device(report)
        for run in runs_of(report, device, row_numbers(report.operations, rows), rule)
    ]
    return touching_runs(runs, scope)


def touching_runs(runs: Iterable[LaunchBoundRun], scope: Scope) -> list[LaunchBoundRun]:
    """Those of some launch-bound runs that touch the window."""
    lo, hi = scope.window or (-FARTHEST, FARTHEST)
    return [run for run in runs if run.start < hi and run.end > lo]


def runs_of(
    report: Report, device: int, rows: Indices, rule: LaunchBoundConfig
) -> list[LaunchBoundRun]:
    """Launch-bound runs among some operations of one device; those of all are kept for a report.

    Args:
        report: their report.
        device: the device.
        rows: rows of its operations in start order.
        rule: what counts.
    """
    if len(rows) < max(rule.operations, 1):
        return []
    if len(rows) < _MANY or len(rows) < len(report.operations.of_devices[device]):
        return _found(report, device, rows, rule)

    def table() -> dict[str, Int64]:
        runs = [astuple(run) for run in _found(report, device, rows, rule)]
        return {"runs": np.array(runs, np.int64).reshape(-1, len(fields(LaunchBoundRun)))}

    name = "_".join(map(str, ("launch_bound", 1, device, *astuple(rule))))
    return [LaunchBoundRun(*row) for row in report.derived(name, table)["runs"].tolist()]


def _found(
    report: Report, device: int, rows: Indices, rule: LaunchBoundConfig
) -> list[LaunchBoundRun]:
    first, last, before = _short_work(report, rows, rule)
    bound_runs: list[LaunchBoundRun] = []
    batch = np.flatnonzero(np.diff(first // BATCH, prepend=-1))
    for runs in np.split(np.arange(len(first)), batch[1:]):
        if len(runs):
            part = slice(int(first[runs[0]]), int(last[runs[-1]]) + 1)
            begin = first[runs] - part.start, last[runs] - part.start
            bound_runs += _bound(report, device, rows[part], *begin, int(before[runs[0]]), rule)
    return bound_runs


def _of_mpi(report: Report) -> Bool:
    return np.asarray(range_classes(report.ranges) == Cause.MPI, np.bool_)


def _mostly_others(report: Report, rows: Indices, gaps: Intervals) -> Bool:
    """In which disjoint gaps threads that launch some operations mostly call MPI, or the OS.

    OS calls inside of CUDA's do not count.
    """
    api, mpi, osrt, calls = report.api, report.host_events, report.osrt, report.calls[rows]
    launching = api.threads[used(api.thread[calls[calls >= 0]])]

    def runs(events: ThreadEvents, rows: Indices) -> Intervals:
        own = np.isin(events.threads, launching)
        return events.runs(rows[own[events.thread[rows]]])

    messages = (mpi, mpi.of_mpi), (report.ranges, _of_mpi(report))
    near = intervals.meet(runs(osrt, np.flatnonzero(osrt.nesting <= 0)), gaps)
    if len(near[0]):
        beside = api.near(near)
        near = intervals.subtract(near, runs(api, beside[api.real[beside]]))
    others = (runs(events, np.flatnonzero(chosen)) for events, chosen in messages)
    inside = intervals.covered(intervals.joined(near, *others), *gaps)
    return np.asarray(2 * inside >= gaps[1] - gaps[0], np.bool_)


def _short_work(
    report: Report, rows: Indices, rule: LaunchBoundConfig
) -> tuple[Indices, Indices, Int64]:
    """Stretches of enough short operations that follow each other closely.

    A gap in which the host is mostly in calls that launch nothing parts them like a long one.

    Returns:
        Place in ``rows`` of the first and the last of each, and when all before it had ended.
    """
    starts, ends = clipped(report.operations, rows, None)
    short = ends - starts < rule.duration
    reach = np.maximum.accumulate(ends, out=ends)
    apart = np.append(True, starts[1:] - reach[:-1] > rule.gap)
    first, last = _stretches(short, apart, rule.operations)
    others = len(report.osrt) or report.host_events.of_mpi.any() or _of_mpi(report).any()
    if len(first) and len(report.api) and others:
        inner = intervals.stretched(first + 1, last + 1)
        inner = inner[starts[inner] > reach[inner - 1]]
        gaps = reach[inner - 1], starts[inner]
        apart[inner[_mostly_others(report, rows, gaps)]] = True
        first, last = _stretches(short, apart, rule.operations)
    return first, last, np.where(first > 0, reach[first - 1], starts[0])


def _stretches(short: Bool, apart: Bool, least: int) -> tuple[Indices, Indices]:
    """First and last place of enough short operations without one apart from that before it."""
    goes_on = short & np.append(False, short[:-1]) & ~apart
    first = np.flatnonzero(short & ~goes_on)
    last = np.flatnonzero(short & ~np.append(goes_on[1:], False))
    enough = last - first + 1 >= least
    return first[enough], last[enough]


def _bound(
    report: Report,
    device: int,
    rows: Indices,
    first: Indices,
    last: Indices,
    before: int,
    rule: LaunchBoundConfig,
) -> list[LaunchBoundRun]:
    """Those of some stretches of short work in which the device waits for the host.

    Args:
        report: their report.
        device: the device.
        rows: rows of its operations from the first stretch to the last.
        first: place in ``rows`` of each stretch's first operation.
        last: and of its last one.
        before: when all operations before ``rows`` had ended, ns.
        rule: what counts.
    """
    ops = report.operations
    starts, ends = clipped(ops, rows, None)
    reach = np.maximum.accumulate(np.append(before, ends))[:-1]
    gaps = np.maximum(starts - reach, 0)
    calls = report.calls[rows]
    called = np.where(calls >= 0, report.api.end[calls] if len(report.api) else 0, 0)
    late = (calls >= 0) & (called >= reach)
    # The first of a run follows what ran before it, which is not its run's fault.
    late[first] = False
    idle_before, late_before = np.cumsum(gaps), np.append(0, np.cumsum(late))
    idle = idle_before[last] - idle_before[first]
    late_count = late_before[last + 1] - late_before[first]
    until = np.maximum.reduceat(np.append(ends, 0), np.stack([first, last + 1], 1).ravel())[::2]
    width, operations = until - starts[first], last - first + 1
    bound = idle / np.maximum(width, 1) >= rule.idle
    bound &= late_count >= rule.late * operations
    gap_before = np.cumsum(gaps > 0)
    return [
        LaunchBoundRun(
            device=device,
            start=int(starts[first[run]]),
            end=int(until[run]),
            operations=int(operations[run]),
            idle_ns=int(idle[run]),
            gap_count=int(gap_before[last[run]] - gap_before[first[run]]),
            first_row=int(rows[first[run]]),
            middle_row=int(rows[(first[run] + last[run]) // 2]),
        )
        for run in np.flatnonzero(bound)
    ]
