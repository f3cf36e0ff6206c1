"""Everything about the iterations of a report at once: times, phases, GPU busy, what is steady.

The time of one range per iteration is here too, with the iterations in which it took much longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.iterations.detection import gpu_step_ns, required_iterations
from nsys_tui.analysis.iterations.parts import StepParts, kept_parts, step_parts
from nsys_tui.analysis.iterations.steps import OUTLIER_Z, Iterations, deviations
from nsys_tui.analysis.nvtx.paths import Paths, nvtx_paths
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import WHOLE_REPORT, Scope
from nsys_tui.model.arrays import Bool, Float64, Indices, Int64, Integers
from nsys_tui.model.events import Ranges
from nsys_tui.model.groups import factorise, first_rows, regroup
from nsys_tui.model.report import Report
from nsys_tui.model.target import pid_of
from nsys_tui.names import normalise_nvtx
from nsys_tui.units import format_duration

REMAINDER: Final = "[not annotated]"
_PART: Final = 3
"""So much of what a step is longer its idle time may be, or it waits for the steps before."""
NOTABLE: Final = 0.01
"""Part of the median by which an iteration is longer before it is asked why."""


@dataclass(frozen=True)
class Spread:
    """Statistics of one phase, or of whole iterations, over the steady ones; ns."""

    mean: float
    median: float
    deviation: float | None
    """Of the sample; None for fewer than two."""
    least: int
    most: int


@dataclass(frozen=True, eq=False)
class IterationTable:
    """Iterations with their phases and how busy the GPUs of their process were."""

    iterations: Iterations
    phases: Phases
    parts: StepParts
    """Where the time of each went."""
    gpu_step_ns: float | None = None
    """About how long the GPUs take for a step, where the host launches far ahead of them."""

    def __len__(self) -> int:
        return len(self.iterations)

    @property
    def busy(self) -> Int64:
        """Busy ns of each iteration, summed over the GPUs: int64 [n]."""
        return self.iterations.duration * self.gpus - self.parts.idle_ns

    @property
    def gpus(self) -> int:
        """GPUs that the process of the iterations worked on."""
        return self.parts.gpus

    def knows(self, row: int) -> bool:
        """Whether it is known what GPUs did in an iteration."""
        return self.gpus > 0 and bool(self.iterations.recorded[row])

    def why(self, row: int) -> str:
        """What makes an iteration longer than usual: ``+54.9 ms idle: OSRT call pread64``.

        Empty where it is not longer by 1 % of the median, or has no known end. GPU work that was
        launched longer ago than a step takes is of the steps before, as where the host runs far
        ahead: then idle time alone tells, and what is not twice as long may just have taken the
        host longer.
        """
        more = self.iterations.duration[row] - self._median
        if self.iterations.never_closed[row] or more <= NOTABLE * self._median:
            return ""
        told = (
            self.parts.why(row, self.usual)
            if self.knows(row)
            else _longer_phase(self.iterations, self.phases, row)
        )
        if self.gpu_step_ns or self.parts.lead[row] > self._median:
            told = [part for part in told if part[0].startswith("idle")]
            if _PART * sum(ns for _, ns in told) < more:
                return self._beside_earlier_work(row) if more > self._median else ""
        return _sentence(told)

    def _beside_earlier_work(self, row: int) -> str:
        """What takes the host longer in a step all of whose GPU work is of the steps before.

        It may wait for that work, or do something else meanwhile.
        """
        ((phase, longer),) = _longer_phase(self.iterations, self.phases, row)
        return f"+{format_duration(longer)} {phase}, while the GPU works for the steps before"

    @cached_property
    def _median(self) -> float:
        return float(np.median(self.iterations.steady))

    @cached_property
    def usual(self) -> Float64:
        """Median of each part over the steady iterations, in the order of ``StepParts.mean``."""
        return np.asarray(np.median(self.parts.mean[:, self.iterations.usual], axis=1))

    def busy_shares(self) -> Float64:
        """Busy part of each iteration, mean of the GPUs; NaN where nothing is known of any."""
        whole = self.iterations.duration * self.gpus
        shares = np.full(len(self), np.nan)
        np.divide(self.busy, whole, out=shares, where=(whole > 0) & self.iterations.recorded)
        return shares

    def whole(self) -> Spread:
        """Statistics of the times of iterations."""
        return spread(self.iterations.steady)

    def by_phase(self) -> list[tuple[str, Spread]]:
        """Statistics of each phase, largest mean first, the un-annotated remainder last."""
        listed = [
            (name, spread(time[self.iterations.counted]))
            for name, time in zip(self.phases.names, self.phases.time, strict=True)
        ]
        named = sorted(listed[:-1], key=lambda entry: -entry[1].mean)
        return [*named, listed[-1]]


@dataclass(frozen=True, eq=False)
class Phases:
    """How the time of each iteration splits into the ranges directly inside it."""

    names: tuple[str, ...]
    """Normalised names; the last is the un-annotated remainder."""
    time: Int64
    """ns, shape (phases, iterations)."""


def phases(report: Report, iterations: Iterations, parent: Int64) -> Phases:
    """Splits iterations found from ranges into the ranges directly inside them, or beside them.

    Args:
        report: the report.
        iterations: iterations with ``rows``.
        parent: row of the range around each range (``Paths.parent``).

    Returns:
        the union of each phase's ranges per iteration, clipped to it; what no phase covers is the
        remainder, which includes the time from the end of a range to the next iteration.
    """
    ranges, count = report.ranges, len(iterations)
    if not len(iterations.rows):
        return Phases((REMAINDER,), iterations.duration[np.newaxis, :])
    inside, step = _phase_rows(ranges, iterations, parent)
    phase, names = _phase_codes(ranges, inside)
    lo, hi = iterations.start[step], iterations.end[step]
    start, end = np.clip(ranges.start[inside], lo, hi), np.clip(ranges.end[inside], lo, hi)
    cells = phase.astype(np.int64) * count + step
    time = np.zeros((len(names) + 1, count), np.int64)
    time[:-1] = grouped_union(cells, start, end, len(names) * count).reshape(-1, count)
    time[-1] = iterations.duration - grouped_union(step, start, end, count)
    return Phases((*names, REMAINDER), time)


def _phase_rows(ranges: Ranges, iterations: Iterations, parent: Int64) -> tuple[Indices, Int64]:
    """Ranges that split steps, and the step of each.

    They are the ones inside of a step's range, and those that follow it before the next one. Where
    a step is such a row of ranges with none inside, the one that it is known by is a phase, too.
    """
    of_row = np.full(len(ranges), -1, np.int64)
    of_row[iterations.rows] = np.arange(len(iterations))
    inside = (parent >= 0) & (of_row[np.maximum(parent, 0)] >= 0)
    of_row[inside] = of_row[parent[inside]]
    rows = np.flatnonzero(ranges.nests & (ranges.thread == ranges.thread[iterations.rows[0]]))
    step = np.searchsorted(iterations.start, ranges.start[rows], side="right") - 1
    beside = (of_row[rows] < 0) & (step >= 0) & (parent[rows] == parent[iterations.rows[step]])
    of_row[rows[beside]] = step[beside]
    if inside.any() or not beside.any():
        of_row[iterations.rows] = -1
    chosen = np.flatnonzero(of_row >= 0)
    return chosen, of_row[chosen]


def _phase_codes(ranges: Ranges, rows: Indices) -> tuple[Integers, list[str]]:
    """Normalised name of some ranges as codes, in the order in which the names first appear."""
    codes, distinct = factorise(ranges.name[rows])
    order = np.argsort(first_rows(codes))
    texts = [normalise_nvtx(ranges.names[code]) for code in distinct[order].tolist()]
    return regroup(np.argsort(order)[codes], texts)


def longer_because(
    report: Report, iterations: Iterations, step: int, scope: Scope, work: HostWork | None = None
) -> str:
    """What makes a step longer than a typical one: ``+54.9 ms idle: OSRT call pread64``.

    Only these two steps are looked at, which takes no time in a report of many.

    Args:
        report: the report.
        iterations: its steps.
        step: which of them.
        scope: devices and streams.
        work: what host threads did, if that is at hand.
    """
    process = frozenset((pid_of(iterations.process),))
    usual, longer = (
        step_parts(report, one, Scope(window, scope.devices, process, scope.streams), work)
        for one in (iterations.only(iterations.typical), iterations.only(step))
        for window in [(int(one.start[0]), int(one.end[0]))]
    )
    if longer.gpus and usual.gpus == longer.gpus:
        return _sentence(longer.why(0, usual.mean[:, 0]))
    if longer.gpus or not len(iterations.rows):
        return ""
    return _sentence(
        _longer_phase(iterations, phases(report, iterations, nvtx_paths(report).parent), step)
    )


def _longer_phase(iterations: Iterations, split: Phases, step: int) -> list[tuple[str, int]]:
    """The phase that takes most longer than usual, and by how much."""
    pairs = zip(split.names, split.time, strict=True)
    away = [
        (name, round(times[step] - float(np.median(times[iterations.counted]))))
        for name, times in pairs
    ]
    return [max(away, key=lambda phase: phase[1])]


def _sentence(told: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"+{format_duration(ns)} {what}" for what, ns in told if ns > 0)


def spread(times: Int64) -> Spread:
    """Statistics of some times; there is at least one."""
    return Spread(
        mean=float(times.mean()),
        median=float(np.median(times)),
        deviation=float(times.std(ddof=1)) if len(times) > 1 else None,
        least=int(times.min()),
        most=int(times.max()),
    )


def iteration_table(
    report: Report,
    pattern: str | None = None,
    scope: Scope = WHOLE_REPORT,
    paths: Paths | None = None,
) -> IterationTable:
    """Finds iterations and measures them.

    Args:
        report: the report.
        pattern: a regular expression for the ranges that are iterations; found by rule otherwise.
        scope: window, devices, processes and streams.
        paths: NVTX paths of the report if they are at hand.

    Raises:
        NoDataError: no iterations were found.
        UsageError: the pattern is no regular expression.
    """
    iterations = required_iterations(report, pattern, scope)
    of_process = Scope(None, scope.devices, frozenset((pid_of(iterations.process),)), scope.streams)
    split = phases(report, iterations, (paths or nvtx_paths(report)).parent)
    unasked = pattern is None and scope == Scope()
    parts = (kept_parts if unasked else step_parts)(report, iterations, of_process)
    return IterationTable(iterations, split, parts, gpu_step_ns(report, iterations))


_FEWEST: Final = 3


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Time of some ranges in each iteration, in ns."""

    labels: tuple[str, ...]
    time: Int64
    """Sum of the durations of the ranges that begin in the iteration."""
    rows: Indices
    """The longest of these ranges (row of ``Report.ranges``); -1 where none begins."""
    outside: int
    """Ranges of the same process that begin in no iteration."""
    by_iteration: bool
    """False where there are no iterations: then there is one entry an instance."""
    counted: Bool | None = None
    """Iterations that statistics are of; None for all."""

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def steady(self) -> Bool:
        """Entries that median and deviation are taken of: those with a range, of what counts."""
        having = self.rows >= 0
        return having if self.counted is None else having & self.counted

    @cached_property
    def z(self) -> Float64:
        """``deviations`` of the steady times; 0 for the others."""
        scores = np.zeros(len(self))
        steady = self.time[self.steady]
        if len(steady) >= _FEWEST:
            scores[self.steady] = deviations(steady, steady)
        return scores

    @cached_property
    def median(self) -> float:
        """Median of the steady times, in ns."""
        steady = self.time[self.steady]
        return float(np.median(steady)) if len(steady) else 0.0

    @property
    def outliers(self) -> Indices:
        """Places of times far above the others, the farthest first; never the warm-up."""
        late = np.flatnonzero(self.z > OUTLIER_Z)
        return late[np.argsort(-self.z[late], kind="stable")]


def step_times(report: Report, iterations: Iterations, rows: Indices) -> StepTimes:
    """Adds up ranges by the iteration they begin in.

    Args:
        report: the report.
        iterations: its iterations; where no range begins in one, each is an entry of its own.
        rows: rows of ``Report.ranges`` in start order; those of other processes than that of the
            iterations are left out.
    """
    ranges = report.ranges
    process = ranges.thread_process[ranges.thread[rows]]
    of_process = rows[process == iterations.process] if iterations.process != -1 else rows
    begun = ranges.start[of_process]
    step_of = np.searchsorted(iterations.start, begun, side="right") - 1
    inside = step_of >= 0
    inside[inside] = begun[inside] < iterations.end[step_of[inside]]
    if not inside.any():
        names = tuple(ranges.names[code] for code in ranges.name[rows].tolist())
        return StepTimes(names, ranges.durations(rows), rows, 0, by_iteration=False)
    step_of, kept = step_of[inside], of_process[inside]
    length = ranges.durations(kept)
    time = np.zeros(len(iterations), np.int64)
    np.add.at(time, step_of, length)
    longest = np.full(len(iterations), -1, np.intp)
    order = np.argsort(length, kind="stable")
    longest[step_of[order]] = kept[order]
    return StepTimes(
        iterations.labels,
        time,
        longest,
        int((~inside).sum()),
        by_iteration=True,
        counted=iterations.counted,
    )
