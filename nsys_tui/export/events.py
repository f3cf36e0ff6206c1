"""Event sets as tables: one row per event, codes turned into names and ids."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.window import EVERYTHING, Scope, touching
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import DICTIONARIES, EventSet, Operations, ThreadEvents
from nsys_tui.model.table import Column, Table, Unit
from nsys_tui.model.target import pid_of, tid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from nsys_tui.analysis.window import Rows
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Values

EVENT_SETS: Final = {
    "operations": "kernels, copies, memsets and graph launches",
    "api": "CUDA API calls",
    "ranges": "NVTX ranges",
    "marks": "NVTX marks",
    "osrt": "OS runtime calls",
    "host_events": "MPI, profiler overhead, OpenACC and other host ranges",
    "syncs": "host-side waits on the device",
    "samples": "CPU samples",
    "memory_usage": "allocations and frees of GPU memory",
    "gpu_metrics": "sampled hardware counters",
}
"""Event sets that can be exported, with a line of help."""

_NEEDS: Final = {
    "operations": Capability.KERNELS,
    "api": Capability.API,
    "ranges": Capability.NVTX,
    "marks": Capability.NVTX,
    "osrt": Capability.OSRT,
    "syncs": Capability.SYNC,
    "samples": Capability.SAMPLES,
    "memory_usage": Capability.GPU_MEMORY,
    "gpu_metrics": Capability.GPU_METRICS,
}
_UNITS: Final = {"start": Unit.NS, "end": Unit.NS, "bytes": Unit.BYTES}


def event_table(report: Report, name: str, scope: Scope | None = None) -> Table:
    """One event set as a table, in start order.

    Args:
        report: the report.
        name: key of ``EVENT_SETS``.
        scope: which events; those that touch its window come whole.

    Raises:
        UsageError: no such event set.
        NoDataError: it has no events there.
    """
    if name not in EVENT_SETS:
        raise UsageError(f"no table {name!r}", hint=f"one of {', '.join(EVENT_SETS)} or a report")
    every: EventSet = getattr(report, name)
    rows = _rows(every, scope or Scope())
    events = every if isinstance(rows, slice) else every.take(rows)
    if not len(events):
        need = _NEEDS.get(name)
        lacking = report.lacks(need) if need is not None else ""
        chosen = "" if lacking else " in what was chosen"
        raise NoDataError(f"{report.name} has no {EVENT_SETS[name]}{chosen}", hint=lacking)
    columns: list[tuple[Column, Values]] = []
    for field in fields(events):
        if field.name not in DICTIONARIES and field.name != "rowid":
            columns += _columns(report, events, field.name)
        if field.name == "end":
            columns.append((Column("duration", Unit.NS), events.end - events.start))
    columns.append((Column("rowid", Unit.NONE), events.rowid))
    return Table(
        name,
        EVENT_SETS[name],
        tuple(column for column, _ in columns),
        tuple(values for _, values in columns),
    )


def _rows(events: EventSet, scope: Scope) -> Rows:
    if isinstance(events, Operations):
        return scope.operations(events)
    if isinstance(events, ThreadEvents):
        return scope.threads(events)
    return EVERYTHING if scope.window is None else touching(events, scope.window)


def _columns(report: Report, events: EventSet, name: str) -> list[tuple[Column, Values]]:
    """The columns that one field of an event set becomes."""
    values: NDArray[Any] = getattr(events, name)
    if name == "thread":
        return _thread(report, getattr(events, "threads"), values)  # noqa: B009 - not in EventSet
    decoded = _decoded(events, name)
    if decoded is not None:
        return [
            (Column(header, Unit.TEXT if texts.dtype == object else Unit.NONE), texts[values])
            for header, texts in decoded
        ]
    return [(Column(name, _UNITS.get(name, Unit.NONE)), values)]


def _decoded(events: EventSet, name: str) -> list[tuple[str, NDArray[Any]]] | None:
    """Headers and texts by code of a field that holds codes; None for plain numbers."""
    dictionary = getattr(events, _DICTIONARY.get(name, ""), None)
    if isinstance(events, Operations):
        own = _OPERATION_TEXTS.get(name)
        if own is not None:
            return own(events)
    if dictionary is None:
        return None
    if name == "process":
        return [("pid", np.array([pid_of(int(pid)) for pid in dictionary], np.int64))]
    if name in ("domain", "device"):
        labels = [item.name if name == "domain" else item.label for item in dictionary]
        return [(name, _texts(labels))]
    return [(name, _texts(dictionary))]


_DICTIONARY: Final = {
    "name": "names",
    "process": "processes",
    "domain": "domains",
    "device": "devices",
    "metric": "metrics",
    "kind": "kinds",
}
"""Field of an event set that its codes point into."""


def _names(ops: Operations) -> list[tuple[str, NDArray[Any]]]:
    return [
        ("name", _texts([name.demangled for name in ops.names])),
        ("short_name", _texts([name.short for name in ops.names])),
    ]


def _streams(ops: Operations) -> list[tuple[str, NDArray[Any]]]:
    return [
        ("context", np.array([stream.context for stream in ops.streams], np.int64)),
        ("stream", np.array([stream.id for stream in ops.streams], np.int64)),
    ]


_OPERATION_TEXTS: Final[dict[str, Callable[[Operations], list[tuple[str, NDArray[Any]]]]]] = {
    "name": _names,
    "stream": _streams,
    "kind": lambda _ops: [("kind", _texts([kind.name.lower() for kind in OpKind]))],
    "category": lambda _ops: [("category", _texts([c.name.lower() for c in Category]))],
}


def _texts(values: Sequence[str]) -> NDArray[Any]:
    texts = np.empty(len(values), object)
    texts[:] = list(values)
    return texts


def _thread(
    report: Report, threads: NDArray[np.int64], codes: NDArray[np.integer]
) -> list[tuple[Column, Values]]:
    known = [int(tid) for tid in threads]
    pids = np.array([pid_of(tid) if tid != -1 else -1 for tid in known], np.int64)
    tids = np.array([tid_of(tid) if tid != -1 else -1 for tid in known], np.int64)
    names = _texts([report.thread_name(tid) if tid != -1 else "" for tid in known])
    return [
        (Column("pid", Unit.NONE), pids[codes]),
        (Column("tid", Unit.NONE), tids[codes]),
        (Column("thread"), names[codes]),
    ]
