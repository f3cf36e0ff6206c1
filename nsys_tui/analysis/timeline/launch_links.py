"""Flows: from an API call to the work it launched, and from work or a wait back to its call.

The join is on (process, correlation id), as in ``Report.calls``; for one event a search through the
column takes milliseconds and spares the table of all calls.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.model.categories import Category
from nsys_tui.model.events import ApiCalls, EventSet, Operations, Syncs
from nsys_tui.model.report import Report


def call_of(report: Report, events: EventSet, row: int) -> int | None:
    """Row in ``report.api`` of the call behind an operation or a wait: of several, the earliest."""
    if not isinstance(events, (Operations, Syncs)) or not report.loaded("api"):
        return None
    correlation = int(events.correlation[row])
    process = int(events.processes[events.process[row]])
    api = report.api
    rows = np.flatnonzero(api.correlation == correlation)
    rows = rows[api.real[rows]] if len(rows) else rows
    rows = rows[api.thread_process[api.thread[rows]] == process] if len(rows) else rows
    return int(rows[0]) if len(rows) and correlation >= 0 else None


def launched_by(report: Report, row: int) -> list[tuple[EventSet, int]]:
    """What an API call launched, in order of time: operations first, else the wait it is."""
    api = report.api
    correlation = int(api.correlation[row])
    process = int(api.thread_process[api.thread[row]])
    linked: list[tuple[EventSet, int]] = []
    for part in ("operations", "syncs"):
        if linked or not report.loaded(part):
            continue
        events: Operations | Syncs = getattr(report, part)
        rows = np.flatnonzero(events.correlation == correlation)
        rows = rows[events.processes[events.process[rows]] == process] if len(rows) else rows
        linked = [(events, int(each)) for each in rows]
    return linked


NEAR: Final = 200_000
"""Events in view up to which those that belong to another are looked for."""


def related(
    report: Report, events: EventSet, row: int, window: tuple[int, int]
) -> list[tuple[EventSet, int]]:
    """What belongs to an event and starts in a window: its call, its work, its collective.

    Args:
        report: its report.
        events: its set.
        row: its row there.
        window: begin and end, ns.

    Returns:
        sets and rows; nothing where the window holds too many events to look through.
    """
    if isinstance(events, ApiCalls):
        process = int(events.thread_process[events.thread[row]])
        return _of_call(report, process, int(events.correlation[row]), window)
    if not isinstance(events, (Operations, Syncs)):
        return []
    process = int(events.processes[events.process[row]])
    linked: list[tuple[EventSet, int]] = []
    correlation = int(events.correlation[row])
    if report.loaded("api") and correlation >= 0:
        api, part = report.api, _in_view(report.api, window)
        rows = part.start + np.flatnonzero(api.correlation[part] == correlation)
        rows = rows[api.real[rows] & (api.thread_process[api.thread[rows]] == process)]
        linked = [(api, int(each)) for each in rows[:1]]
    if isinstance(events, Operations) and int(events.category[row]) == Category.COMM:
        linked += [(events, each) for each in _of_collective(events, row, window)]
    return linked


def _of_call(
    report: Report, process: int, correlation: int, window: tuple[int, int]
) -> list[tuple[EventSet, int]]:
    linked: list[tuple[EventSet, int]] = []
    for part in ("operations", "syncs"):
        if not report.loaded(part) or correlation < 0:
            continue
        events: Operations | Syncs = getattr(report, part)
        view = _in_view(events, window)
        rows = view.start + np.flatnonzero(events.correlation[view] == correlation)
        rows = rows[events.processes[events.process[rows]] == process]
        linked += [(events, int(each)) for each in rows]
    return linked


def _of_collective(ops: Operations, row: int, window: tuple[int, int]) -> list[int]:
    """Rows of the same kernel that run at the same time on other devices, the longest of each."""
    view = _in_view(ops, window)
    rows = view.start + np.flatnonzero(ops.name[view] == ops.name[row])
    start, end = int(ops.start[row]), int(ops.end[row])
    shared = np.minimum(ops.end[rows], end) - np.maximum(ops.start[rows], start)
    best: dict[int, tuple[int, int]] = {}
    for each, time in zip(rows.tolist(), shared.tolist(), strict=True):
        device = int(ops.device[each])
        if time > 0 and device != int(ops.device[row]):
            best[device] = max(best.get(device, (0, 0)), (time, each))
    return [each for _, each in best.values()]


def _in_view(events: EventSet, window: tuple[int, int]) -> slice:
    lo, hi = np.searchsorted(events.start, window).tolist()
    return slice(lo, hi) if hi - lo <= NEAR else slice(0, 0)
