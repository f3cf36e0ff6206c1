"""Idle gaps of GPUs whose next launch has not come yet: each short, and together one rate."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.launches import launches_graphs
from nsys_tui.analysis.rules import gap_facts as facts
from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.begun import ahead
from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.copy_advice import mpi_advice
from nsys_tui.analysis.rules.finding import WORTH_FIXING, Confidence, Finding
from nsys_tui.analysis.rules.nsys import HOST_COPIES, WITHIN_GPU
from nsys_tui.analysis.stalls.causes import Cause, Edge, Gaps
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Int64, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import Operations
from nsys_tui.model.groups import among, rows_of_values, used
from nsys_tui.model.intervals import Intervals
from nsys_tui.units import plural

_STRAIGHT: Final = (Cause.HOST, Cause.LAUNCH_LATENCY, Cause.NOTHING)
"""Causes of gaps in which a host may go from one launch straight to the next."""
_TOLD_BY: Final = 1 << 17
"""Launches that tell how far they are apart: the last ones, long after set-up."""
_LONGER: Final = 3
"""So many times as far apart as usual they still come at the same rate."""
_SLOWEST_NS: Final = 200_000
"""Whoever needs longer for the next launch does not only launch."""


@kept
def pace_ns(case: Case) -> int:
    """How far the launches of a thread usually are apart; 0 where it usually waits between two."""
    api, (_, calls) = case.report.api, case.report.called(case.operations[-_TOLD_BY:])
    calls, times, apart = np.unique(calls), _waits(case, calls)[0], [np.zeros(1, np.int64)]
    for _, mine in rows_of_values(api.thread[calls]):
        begun = api.start[calls[mine]]
        apart.append(np.diff(begun) * (np.diff(np.searchsorted(times, begun)) == 0))
    return int(np.median(np.concatenate(apart)))


def _waits(case: Case, calls: Integers) -> Intervals:
    """When threads that make some calls wait for GPUs."""
    api = case.report.api
    waits = np.flatnonzero(among(case.work.api_classes, (Cause.SYNC, Cause.COPY)))
    return api.runs(waits[np.isin(api.thread[waits], used(api.thread[calls]))])


def straight(case: Case, gaps: Gaps) -> Bool:
    """Which gaps lie between two launches of which one follows straight on the other.

    They are as short as in a launch-bound run, or no longer than launches at this rate are apart.
    """
    rate = min(_LONGER * pace_ns(case), _SLOWEST_NS)
    chosen = np.isin(gaps.cause, _STRAIGHT) & (gaps.edge == Edge.INNER) & (gaps.call >= 0)
    chosen &= gaps.end - gaps.start <= max(rate, case.report.launch_bound.gap)
    rows = np.flatnonzero(chosen)
    waited = _waits(case, gaps.call[rows])
    chosen[rows] = intervals.covered(waited, gaps.start[rows], gaps.end[rows]) == 0
    return np.asarray(chosen, np.bool_)


def would_queue(case: Case, calls: Integers, device: int, lost: Intervals) -> bool:
    """Whether most of some idle time would pass if threads that launch did not wait for the GPU."""
    api, idle = case.report.api, lost[1] - lost[0]
    threads = api.threads[np.unique(api.thread[calls])]
    early = ahead(case, threads, [Cause.SYNC], device, lost[1], idle)
    return 2 * int(np.minimum(early, idle).sum()) > int(idle.sum())


def late_launches(case: Case, device: int) -> tuple[Integers, Integers, Int64, Int64]:
    """Gaps of a device, shortly, in a run or straight: rows before and after, and when it was."""
    gaps = case.stalls.gaps
    gaps = gaps.take((gaps.device == device) & straight(case, gaps))
    before, after, starts, ends = case.short_gaps(device, case.launch_bound(device))
    edges = np.append(starts, gaps.start), np.append(ends, gaps.end)
    return np.append(before, gaps.previous), np.append(after, gaps.next), *edges


def queued_alike(ops: Operations, rows: Integers) -> Bool:
    """Which operations stay within a GPU: the host queues them like kernels."""
    kind = ops.kind[rows]
    within = (kind == OpKind.KERNEL) | (kind == OpKind.MEMSET)
    return np.asarray(within | np.isin(ops.copy_kind[rows], WITHIN_GPU), np.bool_)


def short_gaps(case: Case) -> list[Finding]:
    """Gaps too short to be looked at one by one, where they add up to much.

    A launch whose call ends only when the GPU is idle already comes late; of others the GPU itself
    needs the time.
    """
    least = max(WORTH_FIXING * case.judged_ns, 1)
    below = {total.device: total.below_ns for total in case.stalls.totals}
    device = max(below, key=lambda key: below[key], default=-1)
    if device < 0 or below[device] < least or not len(case.report.api):
        return []
    before, after, reach, begun = case.short_gaps(device, intervals.empty())
    calls = case.report.calls[after]
    late = (calls >= 0) & (case.report.api.end[calls] >= reach)
    starts, ends = intervals.subtract((reach[late], begun[late]), case.launch_bound(device))
    idle = intervals.total(starts, ends)
    if idle < least:
        return []
    why, advice = "each launch comes only after the work before it", "launch further ahead"
    if seldom := facts.waits_for_each(case, calls[late]):
        why, advice = "the host waits for each, then launches the next", seldom
    advice = f"{advice}, fuse kernels, or capture the phase as a CUDA graph"
    if 2 * int(launches_graphs(case.report, calls[late]).sum()) > int(late.sum()):
        advice = words.NEXT_GRAPH
    beside = np.stack((before[late], after[late]))
    copies = np.isin(case.report.operations.copy_kind[beside], HOST_COPIES)
    if 2 * int(copies.any(axis=0).sum()) > len(beside[0]):
        advice = mpi_advice(case, np.unique(beside[copies])) or advice
    return case.finding(
        "gpu_idle",
        f"{case.device_labels([device])} idle {units.format_duration(idle)} in"
        f" {plural(len(starts), 'short gap')}: {why}",
        advice,
        subject="idle, short gaps before late launches",
        saved_ns=intervals.total(*case.idle_time.late_part(device, (starts, ends))),
        window=(int(starts[0]), int(ends[-1])),
        device=device,
        screen="2",
        command="nsys-tui stalls REPORT --threshold 1us",
        confidence=Confidence.INFERRED,
        doubt="the host may need a result of the GPU before it can launch",
        settle="nsys-tui stalls REPORT --threshold 1us",
        lost=case.idle_time.idle_part(device, (starts, ends)),
    )
