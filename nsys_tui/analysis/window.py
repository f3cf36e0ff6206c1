"""Scope: which part of a report an analysis looks at, and how events at its edges count.

Everybody who counts uses these few functions, so that a figure of a window has one meaning: time is
clipped to the window, events count where they start. ``Choice`` makes a scope of the numbers that
people know GPUs, processes and streams by.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.events import EventSet, Operations, ThreadEvents
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.report import Report
from nsys_tui.model.target import pid_of

Rows: TypeAlias = slice | Indices
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
        return [device for device in every if self.devices is None or device in self.devices]

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
        chosen = replace(self, devices=None).operations(ops)
        parts: list[Rows] = [EVERYTHING]
        if len(ops.devices) != 1 and isinstance(chosen, slice):
            parts = [*ops.of_devices]
        elif len(ops.devices) != 1:
            parts = [*rows_of_codes(ops.device[chosen], len(ops.devices))]
        for device in self.device_rows(report):
            yield device, parts[device] if isinstance(chosen, slice) else chosen[parts[device]]

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
    found = (events.end[part] > lo) | (events.start[part] >= lo)
    return EVERYTHING if begun == len(events) and found.all() else np.flatnonzero(found)


def clipped(
    events: EventSet, rows: Rows | Integers, window: tuple[int, int] | None
) -> tuple[Int64, Int64]:
    """Starts and ends of some events cut to a window; an end is never before its start."""
    start, end = events.start[rows], events.end[rows]
    if window is not None:
        start, end = np.clip(start, *window), np.clip(end, *window)
    return start, end if events.ends_in_time else np.maximum(start, end)


def starting(events: EventSet, rows: Rows | Integers, window: tuple[int, int] | None) -> Bool:
    """Which of some events start in the window: those are the ones that count there."""
    start = events.start[rows]
    if window is None:
        return np.ones(len(start), bool)
    return (start >= window[0]) & (start < window[1])


def row_count(events: EventSet, rows: Rows) -> int:
    """Number of ``rows``, without touching an event."""
    return len(range(*rows.indices(len(events)))) if isinstance(rows, slice) else len(rows)


def row_numbers(events: EventSet, rows: Rows) -> Indices:
    """``rows`` as an array of row numbers."""
    return np.arange(len(events))[rows] if isinstance(rows, slice) else rows


def masked(rows: Rows, mask: Bool) -> Rows:
    """Those of ``rows`` whose mask (aligned with them) is true; a slice stays one where it can."""
    if isinstance(rows, slice):
        return EVERYTHING if mask.all() else np.flatnonzero(mask)
    return rows[mask]


def _keep(rows: Rows, codes: Integers, chosen: Bool) -> Rows:
    """Those of ``rows`` whose code is chosen (``chosen`` holds a truth value per code)."""
    return masked(rows, chosen[codes[rows]]) if len(chosen) else np.empty(0, np.intp)


_LISTED: Final = 20


class Lacking(NamedTuple):
    """Numbers of one kind that a report does not have."""

    text: str
    """Names the first of them."""
    hint: str
    """Lists what the report has."""
    all: bool
    """Whether the report has none of those that were asked for."""


@dataclass(frozen=True)
class Choice:
    """Numbers of processes, GPUs and streams; None for all of a kind."""

    processes: tuple[int, ...] | None = None
    """Process ids."""
    devices: tuple[int, ...] | None = None
    """GPU numbers as the overview shows them; else CUDA ordinals, the ``id`` of its JSON."""
    streams: tuple[int, ...] | None = None
    """CUDA stream ids."""

    def scope(self, report: Report, window: tuple[int, int] | None = None) -> Scope:
        """The part of a report that the numbers and a window [start, end) in ns name."""
        places = (device for n in self.devices or () for device in _places_of(report, n))
        return Scope(
            window=window,
            devices=None if self.devices is None else frozenset(places),
            processes=None if self.processes is None else frozenset(self.processes),
            streams=None if self.streams is None else frozenset(self.streams),
        )

    def lacking(self, report: Report) -> Iterator[Lacking]:
        """The kinds of which a report does not have all numbers."""
        numbers = {n for device in report.devices for n in (device.number, device.id)}
        yield from _lacking("GPU", self.devices, {n for n in numbers if n is not None})
        if self.processes:
            yield from _lacking("process", self.processes, _processes(report, self.processes))
        yield from _lacking("stream", self.streams, {stream.id for stream in report.streams})


def _places_of(report: Report, number: int) -> list[int]:
    """Places of the GPUs of a number; where none has it, of those whose CUDA ordinal it is."""
    devices = [*enumerate(report.devices)]
    by_number = [index for index, device in devices if device.number == number]
    return by_number or [index for index, device in devices if device.id == number]


def _lacking(kind: str, asked: Collection[int] | None, there: set[int]) -> Iterator[Lacking]:
    missing = [value for value in asked or () if value not in there]
    if missing:
        listed = ", ".join(map(str, sorted(there)[:_LISTED])) or "none"
        text = f"no {kind} {missing[0]} in this report"
        yield Lacking(text, f"it has {listed}", there.isdisjoint(asked or ()))


def _processes(report: Report, asked: Collection[int]) -> set[int]:
    """Process ids of the GPU work and its calls, and of other host events if those do not do."""
    of_operations = {pid_of(pid) for pid in report.operations.processes.tolist()}
    for events in ("api", "ranges", "osrt"):
        if of_operations.issuperset(asked):
            break
        of_operations.update(pid_of(pid) for pid in getattr(report, events).thread_process.tolist())
    return of_operations
