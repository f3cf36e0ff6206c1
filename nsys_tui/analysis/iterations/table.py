"""Everything about the iterations of a report at once: times, phases, GPU busy, what is steady."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.iterations.detection import Iterations, Phases, phases, required_iterations
from nsys_tui.analysis.iterations.parts import StepParts, kept_parts, step_parts
from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.analysis.window import WHOLE_REPORT, Scope
from nsys_tui.model.target import pid_of
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nsys_tui.analysis.nvtx.paths import Paths
    from nsys_tui.analysis.stalls.host_activity import HostWork
    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report


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

    found: Iterations
    phases: Phases
    parts: StepParts
    """Where the time of each went."""

    def __len__(self) -> int:
        return len(self.found)

    @property
    def busy(self) -> Int64:
        """Busy ns of each iteration, summed over the GPUs: int64 [n]."""
        return self.found.duration * self.gpus - self.parts.idle_ns

    @property
    def gpus(self) -> int:
        """GPUs that the process of the iterations worked on."""
        return self.parts.gpus

    def why(self, row: int) -> str:
        """What makes an iteration longer than usual: ``+54.9 ms idle: OSRT call pread64``.

        Empty where it is not longer by 1 % of the median, or was never closed. GPU work that was
        launched longer ago than a step takes is of the steps before.
        """
        more = self.found.duration[row] - self._median
        if self.found.never_closed[row] or more <= NOTABLE * self._median:
            return ""
        if self.parts.lead[row] > self._median:
            return "waits for work that the steps before it launched"
        told = (
            self.parts.why(row, self.usual)
            if self.gpus
            else _longer_phase(self.found, self.phases, row)
        )
        return _sentence(told)

    @cached_property
    def _median(self) -> float:
        return float(np.median(self.found.steady))

    @cached_property
    def usual(self) -> NDArray[np.float64]:
        """Median of each part over the steady iterations, in the order of ``StepParts.mean``."""
        return np.asarray(np.median(self.parts.mean[:, self.found.counted], axis=1))

    def busy_shares(self) -> NDArray[np.float64]:
        """Busy part of each iteration, mean of the GPUs; NaN without any."""
        whole = self.found.duration * self.gpus
        shares = np.full(len(self), np.nan)
        np.divide(self.busy, whole, out=shares, where=whole > 0)
        return shares

    def whole(self) -> Spread:
        """Statistics of the times of iterations."""
        return spread(self.found.steady)

    def by_phase(self) -> list[tuple[str, Spread]]:
        """Statistics of each phase, largest mean first, the un-annotated remainder last."""
        listed = [
            (name, spread(time[self.found.counted]))
            for name, time in zip(self.phases.names, self.phases.time, strict=True)
        ]
        named = sorted(listed[:-1], key=lambda entry: -entry[1].mean)
        return [*named, listed[-1]]


def longer_because(
    report: Report, found: Iterations, step: int, scope: Scope, work: HostWork | None = None
) -> str:
    """What makes a step longer than a typical one: ``+54.9 ms idle: OSRT call pread64``.

    Only these two steps are looked at, which takes no time in a report of many.

    Args:
        report: the report.
        found: its steps.
        step: which of them.
        scope: devices and streams.
        work: what host threads did, if that is at hand.
    """
    process = frozenset((pid_of(found.process),))
    usual, longer = (
        step_parts(report, one, Scope(window, scope.devices, process, scope.streams), work)
        for one in (found.only(found.typical), found.only(step))
        for window in [(int(one.start[0]), int(one.end[0]))]
    )
    if longer.gpus and usual.gpus == longer.gpus:
        return _sentence(longer.why(0, usual.mean[:, 0]))
    if longer.gpus or not len(found.rows):
        return ""
    return _sentence(_longer_phase(found, phases(report, found, nvtx_paths(report).parent), step))


def _longer_phase(found: Iterations, split: Phases, step: int) -> list[tuple[str, int]]:
    """The phase that takes most longer than usual, and by how much."""
    pairs = zip(split.names, split.time, strict=True)
    away = [(name, round(own[step] - float(np.median(own[found.counted])))) for name, own in pairs]
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
    found = required_iterations(report, pattern, scope)
    own = Scope(None, scope.devices, frozenset((pid_of(found.process),)), scope.streams)
    split = phases(report, found, (paths or nvtx_paths(report)).parent)
    unasked = pattern is None and scope == Scope()
    parts = (kept_parts if unasked else step_parts)(report, found, own)
    return IterationTable(found, split, parts)
