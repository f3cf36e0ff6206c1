"""Which part of a process counts: a window, one of its steps, or one of its NVTX ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.names import normalise_nvtx

if TYPE_CHECKING:
    from nsys_tui.fleet.summary import Options
    from nsys_tui.model.report import Report


def own_window(report: Report, scope: Scope, options: Options) -> tuple[int, int] | None:
    """What counts of a process; None for everything.

    Args:
        report: the report.
        scope: restricts it to the process.
        options: ``window``, ``step`` or ``nvtx`` say what.

    Raises:
        NoDataError: the process has no such step or range.
    """
    if options.step is not None:
        return _of_step(report, scope, options.step, options.iteration)
    if options.nvtx is not None:
        return _of_range(report, scope, options.nvtx)
    if options.window is None:
        return None
    (start, end), (lo, hi) = options.window, report.extent
    return (lo if start is None else start), (hi if end is None else end)


def _of_step(report: Report, scope: Scope, step: str, pattern: str | None) -> tuple[int, int]:
    found = find_iterations(report, pattern, scope)
    number = int(step) if step.isdecimal() else -1
    if step in found.labels:
        number = found.labels.index(step)
    if not 0 <= number < len(found):
        there = f"steps 0 to {len(found) - 1}" if len(found) else "no steps"
        raise NoDataError(f"no step {step!r}: it has {there}")
    return int(found.start[number]), int(found.end[number])


def _of_range(report: Report, scope: Scope, text: str) -> tuple[int, int]:
    name, slash, number = text.rpartition("/")
    if not slash or not number.isdecimal():
        name, number = text, "0"
    ranges = report.ranges
    named = np.array([name in (own, normalise_nvtx(own)) for own in ranges.names], bool)
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[named[ranges.name[rows]] & ~ranges.open[rows]] if len(named) else rows[:0]
    if int(number) >= len(rows):
        there = f"{len(rows)} such range{'s' * (len(rows) != 1)}"
        raise NoDataError(f"no NVTX range {name!r} of number {number}: it has {there}")
    row = int(rows[int(number)])
    return int(ranges.start[row]), int(ranges.end[row])
