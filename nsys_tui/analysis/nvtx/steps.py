"""The time of one range per iteration, with the iterations in which it took much longer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.iterations.detection import OUTLIER_Z, Iterations, deviations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report

_FEWEST: Final = 3


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Time of some ranges in each iteration, in ns."""

    labels: tuple[str, ...]
    time: Int64
    """Sum of the durations of the ranges that begin in the iteration."""
    rows: NDArray[np.intp]
    """The longest of these ranges (row of ``Report.ranges``); -1 where none begins."""
    outside: int
    """Ranges of the same process that begin in no iteration."""
    by_iteration: bool
    """False where there are no iterations: then there is one entry an instance."""

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def steady(self) -> NDArray[np.bool_]:
        """Entries that median and deviation are taken of: those with a range, without warm-up."""
        kept = self.rows >= 0
        if self.by_iteration and len(kept) > 1:
            kept[0] = False
        return kept

    @cached_property
    def z(self) -> NDArray[np.float64]:
        """``deviations`` of the steady times; 0 for the others."""
        found = np.zeros(len(self))
        steady = self.time[self.steady]
        if len(steady) >= _FEWEST:
            found[self.steady] = deviations(steady, steady)
        return found

    @cached_property
    def median(self) -> float:
        """Median of the steady times, in ns."""
        steady = self.time[self.steady]
        return float(np.median(steady)) if len(steady) else 0.0

    @property
    def outliers(self) -> NDArray[np.intp]:
        """Places of times far above the others, the farthest first; never the warm-up."""
        late = np.flatnonzero(self.z > OUTLIER_Z)
        return late[np.argsort(-self.z[late], kind="stable")]


def step_times(report: Report, found: Iterations, rows: NDArray[np.intp]) -> StepTimes:
    """Adds up ranges by the iteration they begin in.

    Args:
        report: the report.
        found: its iterations; where no range begins in one, each is an entry of its own.
        rows: rows of ``Report.ranges`` in start order; those of other processes than that of the
            iterations are left out.
    """
    ranges = report.ranges
    process = ranges.thread_process[ranges.thread[rows]]
    own = rows[process == found.process] if found.process != -1 else rows
    begun = ranges.start[own]
    place = np.searchsorted(found.start, begun, side="right") - 1
    inside = place >= 0
    inside[inside] = begun[inside] < found.end[place[inside]]
    if not inside.any():
        names = tuple(ranges.names[code] for code in ranges.name[rows].tolist())
        return StepTimes(names, ranges.durations(rows), rows, 0, by_iteration=False)
    place, kept = place[inside], own[inside]
    length = ranges.durations(kept)
    time = np.zeros(len(found), np.int64)
    np.add.at(time, place, length)
    longest = np.full(len(found), -1, np.intp)
    order = np.argsort(length, kind="stable")
    longest[place[order]] = kept[order]
    return StepTimes(found.labels, time, longest, int((~inside).sum()), by_iteration=True)
