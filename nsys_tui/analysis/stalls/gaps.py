"""Idle gaps of each GPU and why it stood idle, by what the host did meanwhile.

All gaps are found; those from the threshold on are listed with their cause, the rest is counted.
Gaps inside a launch-bound run count as one entry, the run. Definitions: "Stalls".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import UVM_COPY_KINDS, Coverage
from nsys_tui.analysis.launches import LaunchBoundRun, runs_of
from nsys_tui.analysis.stalls.causes import Edge, Gaps, unexplained
from nsys_tui.analysis.stalls.explained import explained
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, row_numbers
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers, UInt8
from nsys_tui.model.events import Operations
from nsys_tui.model.groups import sorted_places
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK

THRESHOLD_NS: Final = 10_000
"""Gaps shorter than this are counted, not listed."""


@dataclass(frozen=True)
class IdleTotals:
    """Idle time of one device by where it stands, clipped to the window; independent of cause."""

    device: int
    idle_ns: int
    """All of it: head, tail, and every gap between operations."""
    head_ns: int
    tail_ns: int
    gap_count: int
    """All gaps, head and tail included."""
    listed_count: int
    listed_ns: int
    in_runs_count: int
    in_runs_ns: int
    in_runs_long: int
    """Gaps of launch-bound runs from the threshold on, which would be listed without their run."""
    below_count: int
    below_ns: int

    @property
    def inner_ns(self) -> int:
        """Between the first and the last operation."""
        return self.idle_ns - self.head_ns - self.tail_ns


@dataclass(frozen=True, eq=False)
class Stalls:
    """Result: the gaps from the threshold on with launch-bound runs among them, and the totals."""

    scope: Scope
    threshold_ns: int
    bounds: tuple[int, int]
    """The window, or the whole trace."""
    gaps: Gaps
    """The earlier first, of equals by device."""
    runs: tuple[LaunchBoundRun, ...]
    """Each is one of ``gaps`` and stands for all its own."""
    bound: tuple[LaunchBoundRun, ...]
    """All launch-bound runs of the devices in scope, in order of device and time."""
    totals: tuple[IdleTotals, ...]
    """One for each device in scope."""
    work: HostWork
    """Knows the names behind the codes of ``gaps``."""

    def longest_first(self, chosen: Bool | None = None) -> Int32:
        """Places of ``gaps``, or of some, the longest idle first; head and tail come last."""
        outside = self.gaps.outside
        inner = ~outside
        if chosen is not None:
            inner, outside = inner & chosen, outside & chosen
        parts = map(np.flatnonzero, (inner, outside))
        ordered = [rows[sorted_places(self.gaps.idle[rows], descending=True)] for rows in parts]
        return np.concatenate(ordered).astype(np.int32)

    @property
    def whole(self) -> IdleTotals:
        """Idle time of all devices in scope, whose place is -1."""
        columns = zip(*(astuple(total)[1:] for total in self.totals), strict=True)
        sums = [sum(column) for column in columns] or [0] * (len(fields(IdleTotals)) - 1)
        return IdleTotals(-1, *sums)


def stalls(
    report: Report,
    scope: Scope = WHOLE_REPORT,
    *,
    threshold_ns: int = THRESHOLD_NS,
    merge_runs: bool = True,
    work: HostWork | None = None,
    parts: Mapping[int, Coverage] | None = None,
    progress: Progress = silent,
) -> Stalls:
    """Finds idle gaps and their causes.

    Args:
        report: the report; all event sets are loaded.
        scope: window, devices, processes and streams.
        threshold_ns: shorter gaps are only counted.
        merge_runs: False lists the gaps inside launch-bound runs one by one.
        work: of an earlier call on the same report, to save building it again.
        parts: when each device in scope does what at any time, if that is at hand.
        progress: told how many operations were looked at, GPU by GPU.
    """
    work = work or HostWork(report)
    totals: list[IdleTotals] = []
    per_device: list[Gaps] = []
    runs: list[LaunchBoundRun] = []
    bound: list[LaunchBoundRun] = []
    run_idle: list[int] = []
    looked, total = 0, len(report.operations)
    for device, rows in _rows(report, scope, near=not merge_runs):
        if not len(rows):
            continue
        progress("finding idle gaps", looked, total)
        looked += len(rows)
        of_device = runs_of(report, device, rows, report.launch_bound) if merge_runs else []
        part = parts[device] if parts else Coverage(report, device, rows, None)
        summed, gaps, idle = _device_stalls(part, rows, scope, threshold_ns, of_device)
        totals.append(summed)
        per_device.append(gaps)
        bound += of_device
        runs += [run for run, ns in zip(of_device, idle, strict=True) if ns]
        run_idle += [int(ns) for ns in idle if ns]
    progress("finding causes of gaps", looked, total)
    gaps = _run_rows(report, work, runs, run_idle)
    if per_device:
        listed = per_device[0].beside(*per_device[1:]).by_time()
        gaps = explained(report, scope, work, listed).beside(gaps).by_time()
    return Stalls(
        scope,
        threshold_ns,
        scope.bounds(report),
        gaps,
        tuple(runs),
        tuple(bound),
        tuple(totals),
        work,
    )


def _rows(report: Report, scope: Scope, *, near: bool) -> Iterator[tuple[int, Indices]]:
    """The operations of each device, or those near the window where its gaps end among them."""
    ops = report.operations
    if near and scope.window is not None:
        lo, hi = scope.window
        around = replace(scope, window=(2 * lo - hi, 2 * hi - lo))
        some = {one: row_numbers(ops, rows) for one, rows in around.by_device(report)}
        owners = scope.has_process(np.array([one.globalPid for one in ops.streams], np.int64))
        used = {one.device for one, chosen in zip(ops.streams, owners, strict=True) if chosen}
        wanted = [some[device] for device in used & some.keys()]
        if all(len(one) and ops.start[one[0]] <= lo and ops.end[one].max() >= hi for one in wanted):
            yield from some.items()
            return
    for device, rows in scope.at_any_time().by_device(report):
        yield device, row_numbers(ops, rows)


def _run_rows(report: Report, work: HostWork, runs: list[LaunchBoundRun], idle: list[int]) -> Gaps:
    facts = [
        (run.device, run.start, run.end, run.first_row, run.middle_row, run.gap_count)
        for run in runs
    ]
    device, start, end, first, middle, count = np.array(facts, np.int64).reshape(-1, 6).T
    return unexplained(
        np.full(len(runs), Edge.RUN, np.uint8),
        device=device.astype(np.int16),
        start=start,
        end=end,
        idle=np.array(idle, np.int64),
        next=first.astype(np.int32),
        call=report.calls[first],
        caller=_callers(report, first),
        range=work.ranges_of_calls(report.calls[middle]).astype(np.int32),
        count=count.astype(np.int32),
        run=np.arange(len(runs), dtype=np.int32),
    )


def _device_stalls(
    part: Coverage,
    rows: Indices,
    scope: Scope,
    threshold_ns: int,
    runs: list[LaunchBoundRun],
) -> tuple[IdleTotals, Gaps, Int64]:
    """Totals, the listed gaps with their causes still open, and the idle ns of each run."""
    report, device, busy = part.report, part.device, part.busy.pair
    begin, finish = intervals.gaps(*busy, *report.extent)
    lo, hi = scope.bounds(report)
    touching = slice(np.searchsorted(finish, lo, "right"), np.searchsorted(begin, hi))
    begin, finish = begin[touching], finish[touching]
    idle = finish - begin
    long = idle >= threshold_ns
    idle[:1] -= np.maximum(lo - begin[:1], 0)
    idle[-1:] -= np.maximum(finish[-1:] - hi, 0)
    edge = _edges(busy, begin, finish)
    run = _in_runs(begin, finish, runs)
    listed = long & (run < 0)
    totals = _totals(device, idle, edge, run >= 0, long)
    run_idle = np.zeros(len(runs), np.int64)
    np.add.at(run_idle, run[run >= 0], idle[run >= 0])
    begin, finish, idle, edge = begin[listed], finish[listed], idle[listed], edge[listed]
    previous = _ended_by(part, rows, begin)
    following = _longest_from(report.operations, rows, finish)
    next_rows = np.where(following >= 0, rows[following], -1).astype(np.int32)
    gaps = unexplained(
        edge,
        device=np.full(len(begin), device, np.int16),
        start=begin,
        end=finish,
        idle=idle,
        previous=np.where(previous >= 0, rows[previous], -1).astype(np.int32),
        next=next_rows,
        call=np.where(following >= 0, report.calls[next_rows], -1).astype(np.int32),
        caller=_callers(report, next_rows),
    )
    return totals, gaps, run_idle


def _callers(report: Report, rows: Integers) -> Int32:
    """Places in ``Report.api.threads`` of the threads that some operations waited for.

    A migration of unified memory has no call: a touched page starts it. Where one thread alone of
    its process calls CUDA, that thread is taken.

    Args:
        report: the report.
        rows: of operations; -1 for none.
    """
    api, ops = report.api, report.operations
    caller = np.full(len(rows), -1, np.int32)
    if not (len(api) and len(ops)):
        return caller
    calls = report.calls[rows]
    launched = (rows >= 0) & (calls >= 0)
    caller[launched] = api.thread[calls[launched]]
    touched = (rows >= 0) & ~launched & np.isin(ops.copy_kind[rows], UVM_COPY_KINDS)
    if touched.any():
        used = np.unique(api.thread[api.real])
        processes = api.threads[used] & PROCESS_MASK
        alone = {
            int(process): int(used[processes == process][0])
            for process in processes.tolist()
            if (processes == process).sum() == 1
        }
        owners = ops.processes[ops.process[rows[touched]]].tolist()
        caller[touched] = [alone.get(owner, -1) for owner in owners]
    return caller


def _edges(busy: Intervals, begin: Int64, finish: Int64) -> UInt8:
    """Which gaps come before the first operation or after the last; zero-length ones are none."""
    edge = np.full(len(begin), Edge.INNER if len(busy[0]) else Edge.TAIL, np.uint8)
    if len(busy[0]):
        edge[: np.searchsorted(finish, busy[0][0], "right")] = Edge.HEAD
        edge[np.searchsorted(begin, busy[1][-1]) :] = Edge.TAIL
    return edge


def _ended_by(part: Coverage, rows: Indices, begin: Int64) -> Int64:
    """Position of the operation that ends where each gap begins, -1 for none."""
    done, position = part.stretches, np.full(len(begin), -1)
    first = np.append(done.first, len(rows))
    before = np.searchsorted(done.starts, begin) - 1
    last = np.where(before >= 0, first[before + 1], 0)
    gap, place = intervals.in_stretches(np.where(before >= 0, first[before], 0), last)
    ends = part.report.operations.end[rows[place]] == begin[gap]
    # Of equal places the last that is assigned stays.
    position[gap[ends][::-1]] = place[ends][::-1]
    return position


def _longest_from(ops: Operations, rows: Indices, finish: Int64) -> Int64:
    """Position of the longest operation that starts at each gap's end, -1 for none."""
    first, stop = ops.places(rows, finish), ops.places(rows, finish + 1)
    longest = np.where(stop > first, first, -1)
    for gap in np.flatnonzero(stop - first > 1).tolist():
        rivals = rows[int(first[gap]) : int(stop[gap])]
        longest[gap] = first[gap] + int(np.argmax(ops.durations(rivals)))
    lasting = ops.end[rows[longest]] > ops.start[rows[longest]]
    return np.where((longest >= 0) & lasting, longest, -1)


def _in_runs(begin: Int64, finish: Int64, runs: list[LaunchBoundRun]) -> Int64:
    """Which run each gap lies in, -1 for none."""
    inside = np.full(len(begin), -1, np.int64)
    starts, ends = np.array([(run.start, run.end) for run in runs], np.int64).reshape(-1, 2).T
    first = np.searchsorted(begin, starts)
    stop = np.minimum(np.searchsorted(finish, ends, "right"), np.append(first, len(begin))[1:])
    run, places = intervals.in_stretches(first, np.maximum(stop, first))
    inside[places] = run
    return inside


def _totals(device: int, idle: Int64, edge: UInt8, in_runs: Bool, long: Bool) -> IdleTotals:
    listed = long & ~in_runs
    of_runs, of_listed, whole = (int(one.sum()) for one in (idle[in_runs], idle[listed], idle))
    count, runs_count, both = (int(one.sum()) for one in (listed, in_runs, long & in_runs))
    return IdleTotals(
        device=device,
        idle_ns=whole,
        head_ns=int(idle[: np.count_nonzero(edge == Edge.HEAD)].sum()),
        tail_ns=int(idle[len(idle) - np.count_nonzero(edge == Edge.TAIL) :].sum()),
        gap_count=len(idle),
        listed_count=count,
        listed_ns=of_listed,
        in_runs_count=runs_count,
        in_runs_ns=of_runs,
        in_runs_long=both,
        below_count=len(idle) - count - runs_count,
        below_ns=whole - of_listed - of_runs,
    )
