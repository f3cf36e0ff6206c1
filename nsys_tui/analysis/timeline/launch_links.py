"""Flows: from an API call to the work it launched, and from work or a wait back to its call.

The join is on (process, correlation id), as in ``Report.calls``; for one event a search through the
column takes milliseconds and spares the table of all calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.model.events import EventSet, Operations, Syncs

if TYPE_CHECKING:
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
    found: list[tuple[EventSet, int]] = []
    for part in ("operations", "syncs"):
        if found or not report.loaded(part):
            continue
        events: Operations | Syncs = getattr(report, part)
        rows = np.flatnonzero(events.correlation == correlation)
        rows = rows[events.processes[events.process[rows]] == process] if len(rows) else rows
        found = [(events, int(each)) for each in rows]
    return found
