"""Where a compared name is to be seen in a report: one event that stands for it."""

from __future__ import annotations

import numpy as np

from nsys_tui.analysis.compare.plan import Plan
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.events import ApiCalls, EventSet
from nsys_tui.model.kernel_names import variant
from nsys_tui.names import api_name, normalise_nvtx


def event_of(
    plan: Plan,
    group: str,
    name: str,
    window: tuple[int, int] | None,
    kernel_variant: str | None = None,
) -> tuple[EventSet, int] | None:
    """The longest event of a name that starts in a window, else the one of median length in all.

    Args:
        plan: what was measured.
        group: key of ``side.GROUPS`` other than ``stalls``.
        name: key of the comparison's row.
        window: where to look first.
        kernel_variant: which of the kernels of that name; None for any.

    Returns:
        the event set and the row, or None where there is no such event.
    """
    if group == "ranks":
        return _work_of(plan, name, window)
    events, texts = _events(plan, group)
    codes = np.array([text == name for text in texts], bool)
    if kernel_variant is not None:
        names = plan.report.operations.names
        codes &= np.array([variant(each.full) == kernel_variant for each in names], bool)
    if not codes.any():
        return None
    named = codes[events.name]  # type: ignore[attr-defined]
    rows = np.flatnonzero(named & events.real if isinstance(events, ApiCalls) else named)
    return _example(events, rows, window)


def _work_of(plan: Plan, rank: str, window: tuple[int, int] | None) -> tuple[EventSet, int] | None:
    """A compute kernel of a GPU, whose label ends the name of its rank; one GPU has no such row."""
    ops, label = plan.report.operations, rank.rpartition(", ")[2]
    places = [place for place, device in enumerate(plan.report.devices) if device.label == label]
    if len(plan.report.devices) < 2:
        return None
    rows = np.flatnonzero(np.isin(ops.device, places) & (ops.category == Category.COMPUTE))
    return _example(ops, rows, window)


def _example(
    events: EventSet, rows: Indices, window: tuple[int, int] | None
) -> tuple[EventSet, int] | None:
    near = rows[_begin_in(events.start[rows], window)]
    if len(near):
        return events, int(near[np.argmax(events.durations(near))])
    if not len(rows):
        return None
    order = np.argsort(events.durations(rows), kind="stable")
    return events, int(rows[order[len(order) // 2]])


def gap_of(
    plan: Plan, cause: str, window: tuple[int, int] | None
) -> tuple[tuple[int, int], int] | None:
    """The longest idle gap of a cause that begins in a window, else of all.

    Returns:
        its start and end, and the row of the operation that ends it or else of the one before it.
    """
    code = next(each for each in Cause if each.key == cause)
    gaps = plan.gaps.take(plan.gaps.cause == code)
    if (near := _begin_in(gaps.start, window)).any():
        gaps = gaps.take(near)
    if not len(gaps.start):
        return None
    longest = int(np.argmax(gaps.end - gaps.start))
    beside = max(int(gaps.next[longest]), int(gaps.previous[longest]))
    return (int(gaps.start[longest]), int(gaps.end[longest])), beside


def _begin_in(starts: Int64, window: tuple[int, int] | None) -> Bool:
    lo, hi = window or (0, 0)
    return (starts >= lo) & (starts < hi)


def _events(plan: Plan, group: str) -> tuple[EventSet, list[str]]:
    report = plan.report
    if group == "ranges":
        return report.ranges, [*map(normalise_nvtx, report.ranges.names)]
    if group == "api":
        return report.api, [*map(api_name, report.api.names)]
    if group in ("mpi_calls", "os_calls"):
        calls = report.host_events if group == "mpi_calls" else report.osrt
        return calls, [*calls.names]
    ops = report.operations
    return ops, plan.names
