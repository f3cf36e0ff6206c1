"""Where the time of each step went, GPU by GPU: every nanosecond of a step is in one part.

A GPU computes; or it communicates while nothing computes, of which it may only wait for other
ranks; or it copies while neither hides that; or a graph runs of which no more is known; or it is
idle, for a cause. Steps need not tile the trace; parts of each add up to its own time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import coverages
from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.analysis.launches import launches
from nsys_tui.analysis.nccl.waiting import collective_waits, waiting_of
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.stalls.gaps import THRESHOLD_NS, Stalls, stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Scope, row_count, row_numbers
from nsys_tui.model.arrays import Array, Float64, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import rows_of_values
from nsys_tui.model.intervals import in_stretches
from nsys_tui.model.report import Report

BUSY_PARTS: Final = {
    "compute": "compute",
    "transfer": "exposed communication",
    "waiting": "waiting for ranks",
    "copies": "exposed copies",
    "graph": "graphs",
}
"""What a busy GPU does, with its name in a sentence; with the idle causes they are a step."""
SHORT: Final = "short gaps"
"""Idle gaps below the threshold, whose causes are not looked at."""
IDLE_PARTS: Final = (*(cause.key for cause in Cause), SHORT)
"""Causes of idle time; the columns of ``StepParts.idle``."""
IDLE_LABELS: Final = (*(cause.label for cause in Cause), SHORT)
"""The same in words."""
_SHORTEST_SHARE: Final = 1_000
"""Gaps shorter than the median step by this factor explain no step; they are many."""
_ENOUGH: Final = 0.7
"""Part of what a step is longer that the parts named for it should explain."""


@dataclass(frozen=True, eq=False)
class StepParts:
    """Parts of every step, summed over the GPUs of its process; ns."""

    places: tuple[int, ...]
    """Places of these GPUs in ``Report.devices``."""
    busy: dict[str, Int64]
    """By ``BUSY_PARTS``, int64 [steps] each."""
    idle: Int64
    """By ``IDLE_PARTS``, int64 [steps, causes]."""
    names: tuple[dict[int, str], ...]
    """Of each step: what the host did in the longest gap of a cause, by place of the cause."""
    threshold_ns: int
    lead: Float64
    """Mean time from the end of a call to the start of its operation; NaN where nothing starts."""
    waits_known: bool
    """False where communication cannot be told apart into waiting and transferring."""
    note: str
    """What is not known about the waiting."""

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return len(self.places)

    @cached_property
    def idle_ns(self) -> Int64:
        """Idle time of each step."""
        total: Int64 = self.idle.sum(axis=1)
        return total

    @cached_property
    def idle_causes(self) -> list[int]:
        """Places in ``IDLE_PARTS`` of the causes that occur, that with most in any step first."""
        most = self.idle.max(axis=0, initial=0)
        return [which for which in np.argsort(-most, kind="stable").tolist() if most[which]]

    @cached_property
    def mean(self) -> Float64:
        """All parts as the mean of the GPUs: [parts, steps], busy parts first."""
        rows = np.stack([*self.busy.values(), *self.idle.T])
        return rows / max(self.gpus, 1)

    def why(self, step: int, usual: Float64) -> list[tuple[str, int]]:
        """Parts that make a step longer than usual, with by how much, ns; at most two.

        None where one is longer by twice as much as the step: it stands in place of another part.

        Args:
            step: which step.
            usual: what each part of ``mean`` takes usually.
        """
        more = self.mean[:, step] - usual
        order = np.argsort(-more, kind="stable")
        enough = _ENOUGH * float(more.sum())
        reasons: list[tuple[str, int]] = []
        for part in order[: 2 * (more.max() <= 2 * more.sum())].tolist():
            if more[part] <= 0 or sum(ns for _, ns in reasons) >= enough > 0:
                break
            reasons.append((self._named(part, step), round(float(more[part]))))
        return reasons

    def differences(self, step: int, usual: Float64) -> list[tuple[str, int, int]]:
        """Part, its time in a step, and how far that is from the usual; the farthest first."""
        mine = self.mean[:, step]
        places = np.flatnonzero((mine > 0) | (usual > 0))
        rows = [
            (self._named(part, step), round(mine[part]), round(mine[part] - usual[part]))
            for part in places.tolist()
        ]
        return sorted(rows, key=lambda row: -abs(row[2]))

    def _named(self, part: int, step: int) -> str:
        busy = [*BUSY_PARTS.values()]
        if part < len(busy):
            return busy[part]
        cause = part - len(busy)
        text = f"idle: {IDLE_LABELS[cause]}"
        name = self.names[step].get(cause, "")
        return f"{text} {name}" if name else text


def kept_parts(report: Report, iterations: Iterations, scope: Scope) -> StepParts:
    """``step_parts`` of the steps that are found unasked, made once for a report."""
    # The user's patterns tell what communication is, and are not in the report.
    comm = int(np.count_nonzero(report.operations.category == Category.COMM))
    name = f"step_parts_2_{len(IDLE_PARTS)}_{comm}_{len(iterations)}"
    return _unpacked(report.derived(name, lambda: _packed(step_parts(report, iterations, scope))))


def _packed(parts: StepParts) -> dict[str, Array]:
    told = {"names": parts.names, "note": parts.note}
    return {
        "places": np.array(parts.places, np.int64),
        "busy": np.stack([*parts.busy.values()]),
        "idle": parts.idle,
        "lead": parts.lead,
        "facts": np.array((parts.threshold_ns, parts.waits_known), np.int64),
        "told": np.frombuffer(json.dumps(told).encode(), np.uint8),
    }


def _unpacked(arrays: Mapping[str, Array]) -> StepParts:
    told = json.loads(arrays["told"].tobytes())
    threshold, known = arrays["facts"].tolist()
    return StepParts(
        tuple(arrays["places"].tolist()),
        dict(zip(BUSY_PARTS, arrays["busy"], strict=True)),
        arrays["idle"],
        tuple({int(place): name for place, name in one.items()} for one in told["names"]),
        threshold,
        arrays["lead"],
        bool(known),
        told["note"],
    )


def step_parts(
    report: Report, iterations: Iterations, scope: Scope, work: HostWork | None = None
) -> StepParts:
    """Splits steps into parts.

    Args:
        report: the report; all event sets are loaded.
        iterations: its steps, in order and disjoint.
        scope: devices, streams and the process of the steps; no window.
        work: what host threads did, if that is at hand.
    """
    count, places, known = len(iterations), [], True
    busy = {name: np.zeros(count, np.int64) for name in BUSY_PARTS}
    all_busy = np.zeros(count, np.int64)
    waits = collective_waits(report)
    for coverage in coverages(report, scope):
        if not row_count(report.operations, coverage.rows):
            continue
        places.append(coverage.device)
        part = coverage.within(iterations.start, iterations.end)
        waiting = waiting_of(report, coverage, waits)
        waited = np.zeros(count, np.int64)
        if waiting is not None:
            waited = waiting.exposed.within(iterations.start, iterations.end)
        known &= waiting is not None or not coverage.sets["comm"].total()
        hidden = part["compute"] + part["exposed_comm"] + part["exposed_memory"]
        busy["compute"] += part["compute"]
        busy["transfer"] += part["exposed_comm"] - waited
        busy["waiting"] += waited
        busy["copies"] += part["exposed_memory"]
        busy["graph"] += part["busy"] - hidden
        all_busy += part["busy"]
    threshold = max(THRESHOLD_NS, int(np.median(iterations.duration)) // _SHORTEST_SHARE)
    idle = np.zeros((count, len(IDLE_PARTS)), np.int64)
    names: tuple[dict[int, str], ...] = ({},) * count
    if places:
        gaps = stalls(report, scope, threshold_ns=threshold, merge_runs=False, work=work)
        idle[:, :-1], names = _idle(report, gaps, iterations)
        idle[:, -1] = len(places) * iterations.duration - all_busy - idle.sum(axis=1)
    lead = _lead(report, scope, iterations)
    return StepParts(tuple(places), busy, idle, names, threshold, lead, known, waits.note)


def _idle(
    report: Report, result: Stalls, iterations: Iterations
) -> tuple[Int64, tuple[dict[int, str], ...]]:
    """Idle time of each step by cause, and the names in the longest gap of each cause."""
    gaps, count = result.gaps, len(iterations)
    first = np.searchsorted(iterations.end, gaps.start, side="right")
    last = np.searchsorted(iterations.start, gaps.end, side="left")
    gap, step = in_stretches(first, np.maximum(last, first))
    lo = np.maximum(gaps.start[gap], iterations.start[step])
    hi = np.minimum(gaps.end[gap], iterations.end[step])
    shares = _shares(report, result, gap, lo, hi)
    idle = np.zeros((count, len(Cause)), np.int64)
    np.add.at(idle, step, shares)
    return idle, _names(result, gap, step, hi - lo, count)


def _names(
    result: Stalls, gap: Integers, step: Integers, length: Int64, count: int
) -> tuple[dict[int, str], ...]:
    gaps = result.gaps
    names: tuple[dict[int, str], ...] = tuple({} for _ in range(count))
    named = np.flatnonzero(gaps.what[gap] >= 0)
    key = step[named] * len(Cause) + gaps.cause[gap[named]]
    order = np.lexsort((length[named], key))
    longest = order[np.append(np.diff(key[order]) != 0, True)] if len(order) else order
    for code in named[longest].tolist():
        one = gap[code]
        names[step[code]][int(gaps.cause[one])] = result.work.name(int(gaps.what[one]))
    return names


def _shares(report: Report, result: Stalls, gap: Integers, lo: Int64, hi: Int64) -> Int64:
    """Time of pieces [lo, hi) of gaps by cause: int64 [n, causes]; rows add up to the pieces."""
    gaps = result.gaps
    shares = np.zeros((len(gap), len(Cause)), np.int64)
    shared = gaps.time(*SHARES)[gap] > 0
    whole = shared & (lo == gaps.start[gap]) & (hi == gaps.end[gap])
    for cause, time in gaps.shares.items():
        shares[whole, cause] = time[gap[whole]]
    alone = np.flatnonzero(~shared)
    shares[alone, gaps.cause[gap[alone]]] = (hi - lo)[alone]
    cut = np.flatnonzero(shared & ~whole)
    launched = (gaps.end - gaps.time(Cause.LAUNCH_LATENCY))[gap[cut]]
    until = np.clip(launched, lo[cut], hi[cut])
    for caller, mine in rows_of_values(gaps.caller[gap[cut]]):
        asked = lo[cut][mine], until[mine]
        work = result.work.near(int(report.api.threads[caller]), *asked)
        for cause, time in work.shares(*asked).items():
            shares[cut[mine], cause] = time
    shares[cut, Cause.LAUNCH_LATENCY] += hi[cut] - until
    return shares


def _lead(report: Report, scope: Scope, iterations: Iterations) -> Float64:
    """Mean queueing of the operations that start in each step."""
    ops = report.operations
    rows = row_numbers(ops, scope.operations(ops))
    edges = ops.places(rows, np.stack((iterations.start, iterations.end)))
    lo, hi = int(edges.min(initial=len(rows))), int(edges.max(initial=0))
    ahead = launches(report, rows[lo:hi])
    queue, called = (np.append(0, np.cumsum(part)) for part in (ahead.queue, ahead.called))
    queued, count = (sums[edges[1] - lo] - sums[edges[0] - lo] for sums in (queue, called))
    return np.asarray(np.where(count > 0, queued / np.maximum(count, 1), np.nan), np.float64)
