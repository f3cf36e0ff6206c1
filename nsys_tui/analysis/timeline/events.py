"""Single events of the timeline: what they are called, which row of the file they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nsys_tui.model.arrays import Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import (
    ApiCalls,
    EventSet,
    GpuMetrics,
    HostEvents,
    Marks,
    MemoryUsage,
    Operations,
    OsrtCalls,
    Ranges,
    Samples,
    Syncs,
    ThreadEvents,
)
from nsys_tui.model.kinds import OPERATIONS, Kind
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle, api_name

SYNC_TYPES: Final = {1: "event", 2: "stream waits for event", 3: "stream", 4: "context"}
KINDS: Final[dict[type[EventSet], str]] = {
    Operations: "operation",
    ApiCalls: "api",
    Ranges: "range",
    Marks: "mark",
    OsrtCalls: "osrt",
    HostEvents: "host",
    Syncs: "sync",
    Samples: "sample",
    MemoryUsage: "memory",
    GpuMetrics: "metric",
}
"""``Selection.kind`` of an event of each set."""
PARTS: Final = {
    "operation": "operations",
    "api": "api",
    "range": "ranges",
    "mark": "marks",
    "osrt": "osrt",
    "host": "host_events",
    "sync": "syncs",
    "memory": "memory_usage",
}
"""Part of the report that holds the events of a ``Selection.kind``."""
_ROWS: Final[dict[type[EventSet], Kind]] = {
    ApiCalls: Kind.API,
    Ranges: Kind.NVTX,
    Marks: Kind.NVTX,
    OsrtCalls: Kind.OSRT,
    Syncs: Kind.SYNC,
    Samples: Kind.SAMPLE,
    MemoryUsage: Kind.MEMORY,
    GpuMetrics: Kind.GPU_METRIC,
}
"""What the rows of the file are from which each set is made."""


class EventKey(NamedTuple):
    """Identity of an event in the file, the same after a reload."""

    rows: Kind
    rowid: int


def kind_of(events: EventSet) -> str:
    """``Selection.kind`` of the events of a set."""
    return KINDS[type(events)]


def key_of(events: EventSet, row: int) -> EventKey:
    """Kind of row and rowid of an event."""
    return EventKey(rows_of(events, row), int(events.rowid[row]))


def rows_of(events: EventSet, row: int) -> Kind:
    """Kind of the rows that an event comes from."""
    if isinstance(events, Operations):
        return OPERATIONS[int(events.kind[row])]
    if isinstance(events, HostEvents):
        return Kind(events.kinds[int(events.kind[row])])
    return _ROWS[type(events)]


def find(report: Report, kind: str, key: Sequence[Any]) -> tuple[EventSet, int] | None:
    """The event of a selection, or None where the report has no such event.

    Args:
        report: parts that are not loaded yet are not looked into.
        kind: ``Selection.kind``.
        key: kind of row and rowid.
    """
    part = PARTS.get(kind)
    if part is None or len(key) != 2 or not report.loaded(part):
        return None
    events: EventSet = getattr(report, part)
    kind_of_rows, rowid = key
    rows = np.flatnonzero(events.rowid == rowid) if isinstance(rowid, int) else ()
    return next(
        ((events, int(row)) for row in rows if rows_of(events, int(row)) == kind_of_rows), None
    )


def naming(events: EventSet, style: str = NameStyle.SHORT) -> Callable[[int], str]:
    """How the events of a set are called: a function of the row."""
    if isinstance(events, Operations):
        ops, texts = events, events.texts(style)
        return lambda row: texts[ops.name[row]]
    if isinstance(events, ApiCalls):
        api = events
        return lambda row: api_name(api.names[api.name[row]])
    if isinstance(events, ThreadEvents):
        named = events
        return lambda row: named.names[named.name[row]]
    if isinstance(events, Syncs):
        syncs = events
        return lambda row: f"{SYNC_TYPES.get(int(syncs.sync_type[row]), 'unknown')} sync"
    kind = KINDS[type(events)]
    return lambda _: kind


def codes_of(events: EventSet) -> Integers | None:
    """Name code of each event, or None for events without names."""
    if isinstance(events, (Operations, ThreadEvents)):
        return events.name
    return events.sync_type if isinstance(events, Syncs) else None


def texts_of(events: EventSet, style: str = NameStyle.SHORT) -> list[tuple[str, ...]]:
    """Texts by name code in which a search looks: what is shown first, then other forms."""
    if isinstance(events, Operations):
        pairs = zip(events.texts(style), events.names, strict=True)
        return [(text, name.short, name.demangled) for text, name in pairs]
    if isinstance(events, ApiCalls):
        return [(api_name(name), name) for name in events.names]
    if isinstance(events, ThreadEvents):
        return [(name,) for name in events.names]
    if isinstance(events, Syncs):
        return [(f"{SYNC_TYPES.get(code, 'unknown')} sync",) for code in range(256)]
    return []


NEEDED: Final = (
    Capability.KERNELS,
    Capability.API,
    Capability.NVTX,
    Capability.OSRT,
)
"""Kinds of data whose absence an empty timeline explains."""
