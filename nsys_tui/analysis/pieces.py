"""Pieces of time, such as iterations or ranges, with the busy split of each GPU in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_tui.analysis.breakdown import coverages
from nsys_tui.analysis.iterations.detection import required_iterations
from nsys_tui.analysis.window import WHOLE_REPORT, Scope
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.arrays import Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.report import Report
from nsys_tui.names import normalise_nvtx


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of time with the busy split of each GPU in them.

    GPU work counts where it runs, not where it was launched: a piece is a window.
    """

    what: str
    """What the pieces are and how they were found, such as ``Train step # (by NVTX name)``."""
    labels: tuple[str, ...]
    starts: Int64
    ends: Int64
    places: tuple[int, ...]
    """Places of the devices in ``Report.devices``."""
    figures: tuple[dict[str, Int64], ...]
    """For each device, ``breakdown.FIGURES`` in ns by name, each int64 [n]."""

    @property
    def lengths(self) -> Int64:
        """Length of each piece, ns."""
        return self.ends - self.starts


def iteration_pieces(
    report: Report, pattern: str | None = None, scope: Scope = WHOLE_REPORT
) -> Pieces:
    """The breakdown of every iteration.

    Args:
        report: the report.
        pattern: a regular expression for the ranges that are iterations; found by rule otherwise.
        scope: window, devices, processes and streams.

    Raises:
        NoDataError: no iterations were found.
        UsageError: the pattern is no regular expression.
    """
    iterations = required_iterations(report, pattern, scope)
    what = f"{iterations.name} ({iterations.rule})"
    return _pieces(report, scope, what, iterations.labels, iterations.start, iterations.end)


def range_pieces(report: Report, name: str, scope: Scope = WHOLE_REPORT) -> Pieces:
    """The breakdown of every closed instance of an NVTX range, on whatever thread.

    Args:
        report: the report.
        name: the range's name; digits match any digits: ``step 1`` and ``step #`` mean all steps.
        scope: window, devices, processes and streams.

    Raises:
        NoDataError: the report has no NVTX ranges.
        UsageError: no range is called so.
    """
    if not report.can(Capability.NVTX):
        raise NoDataError(report.lacks(Capability.NVTX))
    ranges = report.ranges
    wanted = normalise_nvtx(name)
    named = np.array([normalise_nvtx(text) == wanted for text in ranges.names], bool)
    rows = np.flatnonzero(named[ranges.name] & ~ranges.open & (ranges.end > ranges.start))
    if not len(rows):
        raise UsageError(f"no NVTX range called {name!r}", hint="nsys-tui stats -r nvtx_sum REPORT")
    labels = tuple(ranges.names[code] for code in ranges.name[rows].tolist())
    return _pieces(report, scope, wanted, labels, ranges.start[rows], ranges.end[rows])


def _pieces(
    report: Report,
    scope: Scope,
    what: str,
    labels: tuple[str, ...],
    starts: Int64,
    ends: Int64,
) -> Pieces:
    places, figures = [], []
    for coverage in coverages(report, scope):
        places.append(coverage.device)
        figures.append(coverage.within(starts, ends))
    return Pieces(what, labels, starts, ends, tuple(places), tuple(figures))
