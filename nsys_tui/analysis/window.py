"""Scope: which part of a report an analysis looks at, and how events at its edges count.

Everybody who counts uses these few functions, so that a figure of a window has one meaning: time is
clipped to the window, events count where they start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.model.events import Bool, EventSet, Int64, Operations, ThreadEvents
    from nsys_tui.model.report import Report

Rows: TypeAlias = slice | NDArray[np.intp]
"""Rows of an event set: everything as a slice (no copies), or row numbers in ascending order."""

EVERYTHING = slice(None)


@dataclass(frozen=True)
class Scope:
    """Which part of a report is looked at; by default all of it."""

    window: tuple[int, int] | None = None
    """Time window [start, end) in ns, or None for the whole trace."""
    devices: frozenset[int] | None = None
    """Places in ``Report.devices``, or None for all."""
    processes: frozenset[int] | None = None
    """Process ids as the operating system gave them, or None for all."""
    streams: frozenset[int] | None = None
    """CUDA stream ids, or None for all."""

    def base(self, report: Report) -> tuple[int, int]:
        """The interval of which busy time is a share: the window, or the span of all operations.

        A report without operations has the empty interval (0, 0).
        """
        return self.window or report.span or (0, 0)

    def bounds(self, report: Report) -> tuple[int, int]:
        """The interval that is looked at: the window, or the whole trace."""
        return self.window or report.extent

    def device_rows(self, report: Report) -> list[int]:
        """Places in ``Report.devices`` that are looked at."""
        every = range(len(report.devices))
        return [place for place in every if self.devices is None or place in self.devices]

    def operations(self, ops: Operations) -> Rows:
        """Operations of the chosen devices, processes and streams that touch the window."""
        kept = touching(ops, self.window)
        if self.devices is not None:
            kept = _keep(kept, ops.device, np.isin(np.arange(len(ops.devices)), [*self.devices]))
        if self.processes is not None:
            kept = _keep(kept, ops.process, self.has_process(ops.processes))
        if self.streams is not None:
            chosen = [stream.id in self.streams for stream in ops.streams]
            kept = _keep(kept, ops.stream, np.array(chosen, bool))
        return kept

    def by_device(self, report: Report) -> Iterator[tuple[int, Rows]]:
        """Place in ``Report.devices`` and the operations of each device that is looked at."""
        ops = report.operations
        chosen = self.operations(ops)
        if len(ops.devices) == 1:
            parts: list[Rows] = [chosen]
        else:
            numbers = row_numbers(ops, chosen)
            parts = [numbers[own] for own in rows_of_codes(ops.device[chosen], len(ops.devices))]
        for place in self.device_rows(report):
            yield place, parts[place]

    def at_any_time(self) -> Scope:
        """The same without a window: idle time needs its neighbours outside too."""
        return replace(self, window=None)

    def threads(self, events: ThreadEvents) -> Rows:
        """Host events of the chosen processes that touch the window."""
        kept = touching(events, self.window)
        if self.processes is not None:
            kept = _keep(kept, events.thread, self.has_process(events.thread_process))
        return kept

    def has_process(self, global_pids: Int64) -> Bool:
        """Which of some globalPids are chosen."""
        if self.processes is None:
            return np.ones(len(global_pids), bool)
        return np.array([pid_of(int(pid)) in self.processes for pid in global_pids], bool)


WHOLE_REPORT: Final = Scope()


def touching(events: EventSet, window: tuple[int, int] | None) -> Rows:
    """Events that overlap a window or start in it (one of zero length at its start included)."""
    if window is None:
        return EVERYTHING
    lo, hi = window
    begun = int(np.searchsorted(events.start, hi, side="left"))
    part = slice(0, begun)
    return np.flatnonzero((events.end[part] > lo) | (events.start[part] >= lo))


def clipped(
    events: EventSet, rows: Rows | NDArray[np.integer], window: tuple[int, int] | None
) -> tuple[Int64, Int64]:
    """Starts and ends of some events cut to a window; an end is never before its start."""
    start, end = events.start[rows], events.end[rows]
    if window is not None:
        start, end = np.clip(start, *window), np.clip(end, *window)
    return start, np.maximum(start, end) if (end < start).any() else end


def starting(
    events: EventSet, rows: Rows | NDArray[np.integer], window: tuple[int, int] | None
) -> Bool:
    """Which of some events start in the window: those are the ones that count there."""
    start = events.start[rows]
    if window is None:
        return np.ones(len(start), bool)
    return (start >= window[0]) & (start < window[1])


def row_count(events: EventSet, rows: Rows) -> int:
    """Number of ``rows``, without touching an event."""
    return len(range(*rows.indices(len(events)))) if isinstance(rows, slice) else len(rows)


def row_numbers(events: EventSet, rows: Rows) -> NDArray[np.intp]:
    """``rows`` as an array of row numbers."""
    return np.arange(len(events))[rows] if isinstance(rows, slice) else rows


def masked(rows: Rows, mask: Bool) -> Rows:
    """Those of ``rows`` whose mask (aligned with them) is true; a slice stays one where it can."""
    if isinstance(rows, slice):
        return EVERYTHING if mask.all() else np.flatnonzero(mask)
    return rows[mask]


def _keep(rows: Rows, codes: NDArray[np.integer], chosen: Bool) -> Rows:
    """Those of ``rows`` whose code is chosen (``chosen`` holds a truth value per code)."""
    return masked(rows, chosen[codes[rows]]) if len(chosen) else np.empty(0, np.intp)
