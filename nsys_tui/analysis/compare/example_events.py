"""Where a compared name is to be seen in a report: one event that stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.names import across, api_name, normalise_nvtx

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.measure import Plan
    from nsys_tui.model.events import EventSet


def event_of(
    plan: Plan, group: str, name: str, window: tuple[int, int] | None
) -> tuple[EventSet, int] | None:
    """The longest event of a name that starts in a window, else the one of median length in all.

    Args:
        plan: what was measured.
        group: key of ``side.GROUPS`` other than ``stalls``.
        name: as the comparison calls it.
        window: where to look first.

    Returns:
        the event set and the row, or None where there is no such event.
    """
    events, texts = _events(plan, group)
    codes = np.array([text == name for text in texts], bool)
    if not codes.any():
        return None
    if window is not None:
        lo, hi = np.searchsorted(events.start, window)
        near = lo + np.flatnonzero(codes[events.name[lo:hi]])  # type: ignore[attr-defined]
        if len(near):
            return events, int(near[np.argmax(events.durations(near))])
    rows = np.flatnonzero(codes[events.name])  # type: ignore[attr-defined]
    if not len(rows):
        return None
    order = np.argsort(events.durations(rows), kind="stable")
    return events, int(rows[order[len(order) // 2]])


def _events(plan: Plan, group: str) -> tuple[EventSet, list[str]]:
    report = plan.report
    if group == "ranges":
        return report.ranges, [*map(normalise_nvtx, report.ranges.names)]
    if group == "api":
        return report.api, [*map(api_name, report.api.names)]
    ops = report.operations
    return ops, ops.texts(across(plan.style))
