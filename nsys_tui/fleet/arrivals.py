"""What a rank did between two collectives: why it came to the second one when it did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.breakdown import Covered
from nsys_tui.model import intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nsys_tui.analysis.breakdown import Coverage
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.events import Int64
    from nsys_tui.model.intervals import Intervals
    from nsys_tui.model.report import Report

PARTS: Final = ("kernels", "data", "comm")
"""What is kept of the time before a collective, ns: kernels; copies that nothing hides and idle
time in ranges that load data; communication that nothing hides. The rest waits for a launch."""
_LOADS: Final = re.compile(
    r"(?i)data.?load|(load|next|get|fetch|read).?(data|batch|input)|copy to (device|gpu)"
)


def before_calls(
    report: Report, scope: Scope, covered: Sequence[Coverage], rows: NDArray[np.intp]
) -> tuple[Int64, Int64]:
    """Time from the end of the collectives before each one, and what it was.

    Args:
        report: the report.
        scope: the rank.
        covered: what its GPUs did.
        rows: its collectives in the order of their starts, rows of ``Report.operations``.

    Returns:
        int64 [n], -1 for the first, and ``PARTS`` of it, int64 [n, parts].
    """
    ops = report.operations
    start, end = ops.start[rows].astype(np.int64), ops.end[rows].astype(np.int64)
    latest = np.maximum.accumulate(end)
    begun = np.minimum(np.append(start[:1], latest[:-1]), start)
    gap = start - begun
    gap[:1] = -1
    parts = np.zeros((len(rows), len(PARTS)), np.int64)
    own = next((c for c in covered if c.place == ops.device[rows[0]]), None)
    if own is not None:
        within = own.within(begun, start)
        busy = own.sets["busy"]
        loading = Covered(*intervals.subtract(_loading(report, scope), (busy.starts, busy.ends)))
        parts[:, 0] = within["compute"] + within["graph"]
        parts[:, 1] = within["exposed_memory"] + loading.within(begun, start)
        parts[:, 2] = within["exposed_comm"]
    return gap, parts


def _loading(report: Report, scope: Scope) -> Intervals:
    """When threads that launch work were in ranges that load data, by their names."""
    ranges, api = report.ranges, report.api
    loads = np.array([_LOADS.search(text) is not None for text in ranges.names], bool)
    if not loads.any() or not len(api):
        return intervals.empty()
    calls = report.calls[scope.operations(report.operations)]
    launching = api.threads[np.unique(api.thread[calls[calls >= 0]])]
    rows = np.flatnonzero(loads[ranges.name] & ~ranges.open)
    rows = rows[np.isin(ranges.threads[ranges.thread[rows]], launching)]
    return intervals.union(ranges.start[rows], ranges.start[rows] + ranges.durations(rows))
