"""A row of an answer as a place on the timeline: its time, its event, its GPU and stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.analysis.timeline.gpu import stream_key
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.model.events import ApiCalls, EventSet, Operations, ThreadEvents
from nsys_tui.model.report import Report
from nsys_tui.model.table import Table
from nsys_tui.model.target import PROCESS_MASK, Stream, pid_of, tid_of
from nsys_tui.state import Window

AROUND: Final = 20
"""On the timeline a row has one part in so many beside it."""
_LENGTHS: Final = ("duration_ns", "time_ns", "idle_ns")
_PARTS: Final = ("operations", "api", "ranges", "osrt")
_OWNERS: Final = ("device", "stream", "context", "pid", "global_pid", "tid", "global_tid")
"""Columns that tell where a row belongs, by the views' names."""

Row: TypeAlias = Mapping[str, Any]
"""Values by column."""


def row_of(table: Table, row: int) -> Row:
    """One row by its columns."""
    return {c.header: data[row] for c, data in zip(table.columns, table.data, strict=True)}


def span_of(row: Row) -> Window | None:
    """When it was, from ``start_ns`` and ``end_ns`` or a length; None for never."""
    start, end = row.get("start_ns"), row.get("end_ns")
    if not isinstance(start, int):
        return None
    if not isinstance(end, int):
        lengths = (row.get(name) for name in _LENGTHS)
        end = start + next((ns for ns in lengths if isinstance(ns, int)), 0)
    return Window(start, max(end, start))


def beside(span: Window) -> Window:
    """A span with a little on both sides."""
    margin = max(span.width // AROUND, 1)
    return Window(span.start - margin, span.end + margin)


def event_of(report: Report, row: Row, span: Window) -> tuple[EventSet, int] | None:
    """The event that a row is: the only one of just these times where the row says it was."""
    parts = [getattr(report, part) for part in _PARTS if report.loaded(part)]
    known = [
        (events, int(at))
        for events in parts
        for at in np.flatnonzero((events.start == span.start) & (events.end == span.end))
        if _agree(row, _owners(report, events, int(at)))
        and not (isinstance(events, ApiCalls) and not events.real[at])
    ]
    return known[0] if len(known) == 1 else None


def lane_of(report: Report, row: Row) -> str:
    """Key of the lane of a row's stream, or of its GPU; empty for none."""
    streams = report.operations.streams
    if isinstance(row.get("stream"), int):
        mine = (s for s in streams if _agree(row, _of_stream(report, s)))
        return next(map(stream_key, mine), "")
    numbers = [device.number for device in report.devices]
    return gpu_key(numbers.index(row["device"])) if row.get("device") in numbers else ""


def _agree(row: Row, owners: Row) -> bool:
    return all(row[name] == owners.get(name) for name in _OWNERS if row.get(name) is not None)


def _owners(report: Report, events: EventSet, at: int) -> Row:
    """Where an event belongs, as the views tell it."""
    if isinstance(events, Operations):
        return _of_stream(report, events.streams[events.stream[at]])
    assert isinstance(events, ThreadEvents)
    tid = int(events.threads[events.thread[at]])
    return {"tid": tid_of(tid), "global_tid": tid, **_of_process(tid & PROCESS_MASK)}


def _of_stream(report: Report, stream: Stream) -> Row:
    return {
        "device": report.devices[stream.device].number,
        "stream": stream.id,
        "context": stream.context,
        **_of_process(stream.globalPid),
    }


def _of_process(process: int) -> Row:
    return {"global_pid": process, "pid": pid_of(process)}
