"""What of a report is compared: its steady steps, else a window, else everything."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.compare.side import HOST_AHEAD, Bounds, Steps
from nsys_tui.analysis.compare.stats import SEED
from nsys_tui.analysis.iterations.detection import find_iterations, gpu_step_ns
from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.analysis.stalls.causes import Cause, Edge, Gaps, host_event_classes
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.analysis.window import WHOLE_REPORT, Rows, Scope, clipped, masked, row_numbers
from nsys_tui.model.arrays import Bool, Indices
from nsys_tui.model.events import ThreadEvents
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle, across, normalise_nvtx

WARM_UP: Final = (
    "the first {} steps are warm-up: each after the first takes more than 1.5 times the median"
)


@dataclass(frozen=True, eq=False)
class Plan:
    """What of a report is measured, and how."""

    report: Report
    scope: Scope
    steps: Steps
    """Steady steps; those of ``Steps.none()`` make everything be measured as a whole."""
    style: str = NameStyle.NORMALISED
    steps_found: int | None = None
    """Steady steps in the report, where ``steps`` does not hold all of them."""
    seed: int = SEED
    """Of the bootstrap of the steps' tail."""
    rows: Indices = field(default_factory=lambda: np.empty(0, np.intp))
    """Rows of the steady steps in ``Report.ranges``; none where a pattern was found."""
    notes: tuple[str, ...] = ()
    """What is to be said of how it is measured."""

    @property
    def by_step(self) -> bool:
        """Whether figures are per step."""
        return self.steps.enough

    @property
    def window(self) -> tuple[int, int] | None:
        """The part that counts: the steady steps, else the window, else everything."""
        return self.steps.bounds if self.by_step else self.scope.window

    @property
    def searched(self) -> Scope:
        """Where events are looked for: steps pick their own from everything, a window cuts."""
        return replace(self.scope, window=None) if self.by_step else self.scope

    @property
    def part(self) -> Scope:
        """The scope cut to ``window``."""
        return replace(self.scope, window=self.window)

    @property
    def overhead_ns(self) -> float:
        """Time of the profiler's own work, per step or as a whole."""
        events = self.report.host_events
        rows = rows_of(
            replace(self, scope=self.part), events, host_event_classes(events) == Cause.PROFILER
        )
        starts, ends = clipped(events, rows, self.window)
        return float((ends - starts).sum()) / max(1, len(self.steps) * self.by_step)

    @property
    def names(self) -> list[str]:
        """What each operation is called, the same in all reports."""
        return self.report.operations.texts(across(self.style))

    @cached_property
    def gaps(self) -> Gaps:
        """Idle gaps between operations, each for itself."""
        gaps = stalls(self.report, self.part, merge_runs=False).gaps
        return gaps.take(gaps.edge == Edge.INNER)


def plan(
    report: Report,
    scope: Scope = WHOLE_REPORT,
    *,
    pattern: str | None = None,
    style: str = NameStyle.NORMALISED,
    by_step: bool = True,
    seed: int = SEED,
) -> Plan:
    """Finds the steps of a report.

    Args:
        report: the report; all event sets are loaded.
        scope: window, devices, processes and streams.
        pattern: regular expression for the NVTX names of steps.
        style: how kernels are named, and so which are one.
        by_step: False looks for no steps: the part is a single one.
        seed: of the bootstrap.

    Raises:
        UsageError: the pattern is no regular expression.
    """
    if not by_step:
        return Plan(report, scope, Steps.none(), style, seed=seed)
    iterations = _complete(find_iterations(report, pattern, scope))
    if gpu_step_ns(report, iterations) is not None:
        return Plan(report, scope, Steps.none(), style, seed=seed, notes=(HOST_AHEAD,))
    first = iterations.warm_up
    others = _other_processes(report, scope, iterations, first)
    steps = Steps(
        iterations.rule, iterations.name, iterations.start[first:], iterations.end[first:], others
    )
    notes = (WARM_UP.format(first),) if first > 1 else ()
    return Plan(report, scope, steps, style, seed=seed, rows=iterations.rows[first:], notes=notes)


def _complete(iterations: Iterations) -> Iterations:
    """Iterations without a last one whose end is not known."""
    if not iterations.never_closed[-1:].any():
        return iterations
    return replace(
        iterations,
        start=iterations.start[:-1],
        own_end=iterations.start[1:],
        labels=iterations.labels[:-1],
        rows=iterations.rows[:-1],
        never_closed=iterations.never_closed[:-1],
    )


def _other_processes(
    report: Report, scope: Scope, iterations: Iterations, first: int
) -> dict[int, Bounds]:
    """The steady steps in other processes, where each has as many of the same name."""
    if not len(iterations.rows):
        return {}
    ranges = report.ranges
    named = np.array([normalise_nvtx(name) == iterations.name for name in ranges.names], bool)
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[named[ranges.name[rows]] & ranges.nests[rows] & ~ranges.open[rows]]
    owner = ranges.thread_process[ranges.thread[rows]]
    others = {}
    for process in np.unique(owner[owner != iterations.process]).tolist():
        start, end = (times[rows[owner == process]] for times in (ranges.start, ranges.end))
        if len(start) == len(iterations) and (start[1:] >= end[:-1]).all():
            others[process] = start[first:], np.append(start[first + 1 :], end[-1:])
    return others


def iteration_scope(iterations: Iterations, number: int, scope: Scope) -> Scope:
    """The scope cut to one iteration, counted from 0.

    Raises:
        IndexError: there is no such iteration.
    """
    if not 0 <= number < len(iterations):
        raise IndexError(number)
    return replace(scope, window=(int(iterations.start[number]), int(iterations.end[number])))


def identity_of(report: str, scope: Scope, pattern: str | None, style: str) -> str:
    """Equal for the same part of the same report, measured in the same way.

    Args:
        report: identity of the report's content.
        scope: the part.
        pattern: regular expression for the NVTX names of steps.
        style: how kernels are named.
    """
    return f"{report} {scope} {pattern} {style}"


def rows_of(plan: Plan, events: ThreadEvents, kept: Bool) -> Rows:
    """Host events that are searched and kept."""
    chosen = plan.searched.threads(events)
    return masked(chosen, kept[chosen])
