"""Event sets as tables: one row per event, codes turned into names and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.analysis.stats.summary import only
from nsys_tui.analysis.window import (
    EVERYTHING,
    WHOLE_REPORT,
    Rows,
    Scope,
    row_count,
    row_numbers,
    touching,
)
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.arrays import Array, Bool, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import DICTIONARIES, EventSet, Operations, ThreadEvents, told
from nsys_tui.model.kinds import OPERATIONS, Kind
from nsys_tui.model.report import Report
from nsys_tui.model.table import Coded, Column, Table, Unit, Values
from nsys_tui.model.target import pid_of, tid_of

Labels: TypeAlias = "Sequence[str] | Array"

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
"""Event sets with a line of help."""
TABLES: Final = EVENT_SETS | {
    "kernels": "kernels",
    "copies": "copies and memsets",
}
"""Tables of events that can be had."""
_WORK: Final = {
    "kernels": (
        (OpKind.KERNEL,),
        ("kind", "bytes", "copy_kind", "migration", "src_kind", "dst_kind", "counted"),
    ),
    "copies": ((OpKind.MEMCPY, OpKind.MEMSET), ("counted",)),
}
"""Parts of the operations: kinds, and fields that say nothing of them."""

_NEEDS: Final = {
    "operations": Capability.KERNELS,
    "kernels": Capability.KERNELS,
    "copies": Capability.COPIES,
    "api": Capability.API,
    "ranges": Capability.NVTX,
    "marks": Capability.NVTX,
    "osrt": Capability.OSRT,
    "syncs": Capability.SYNC,
    "samples": Capability.SAMPLES,
    "memory_usage": Capability.GPU_MEMORY,
    "gpu_metrics": Capability.GPU_METRICS,
}
_KINDS: Final = {
    "operations": OPERATIONS,
    "kernels": (Kind.KERNEL,),
    "copies": (Kind.MEMCPY, Kind.MEMSET),
    "api": (Kind.API,),
    "ranges": (Kind.NVTX,),
    "marks": (Kind.NVTX,),
    "osrt": (Kind.OSRT,),
    "samples": (Kind.SAMPLE,),
    "memory_usage": (Kind.MEMORY,),
}
"""Kinds of rows in a table whose files may lack columns."""
_CUDA: Final = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
_TOLD_BY: Final[dict[str, dict[Kind, str]]] = {
    "return_value": dict.fromkeys((Kind.API, Kind.OSRT), "return_value"),
    "event_class": dict.fromkeys((Kind.API, Kind.OSRT), "event_class"),
    "callchain": dict.fromkeys((Kind.API, Kind.OSRT), "callchain_id"),
    "correlation": dict.fromkeys((*_CUDA, Kind.GRAPH, Kind.API, Kind.MEMORY), "correlation_id"),
    "graph_node": dict.fromkeys(_CUDA, "graph_node_id"),
    "migration": {Kind.MEMCPY: "migration_cause"},
    "src_kind": {Kind.MEMCPY: "src_kind", Kind.MEMSET: "mem_kind"},
    "dst_kind": {Kind.MEMCPY: "dst_kind"},
    "cpu": {Kind.SAMPLE: "cpu"},
    "state": {Kind.SAMPLE: "thread_state"},
    "color": {Kind.NVTX: "color"},
    "nvtx_category": {Kind.NVTX: "category"},
}
"""Fields that hold a default where the report does not tell them, and what tells them by kind."""
_UNITS: Final = {"start": Unit.NS, "end": Unit.NS, "bytes": Unit.BYTES}


def event_table(report: Report, name: str, scope: Scope = WHOLE_REPORT) -> Table:
    """One event set as a table, in start order.

    Args:
        report: the report.
        name: key of ``TABLES``.
        scope: which events; those that touch its window come whole.

    Raises:
        UsageError: no such event set.
        NoDataError: it has no events there.
    """
    if name not in TABLES:
        raise UsageError(f"no table {name!r}", hint=f"one of {', '.join(TABLES)} or a report")
    kinds, left_out = _WORK.get(name, ((), ()))
    events: EventSet = report.operations if kinds else getattr(report, name)
    rows = _rows(events, scope, kinds)
    if not row_count(events, rows):
        need = _NEEDS.get(name)
        lacking = report.lacks(need) if need is not None else ""
        chosen = "" if lacking else " in what was chosen"
        raise NoDataError(f"{report.name} has no {TABLES[name]}{chosen}", hint=lacking)
    columns: list[tuple[Column, Values]] = []
    left_out = (*left_out, *_untold(report, name))
    for field in fields(events):
        if field.name not in (*DICTIONARIES, *left_out, "rowid"):
            columns += _columns(report, events, field.name, rows)
        if field.name == "end":
            columns.append((Column("duration", Unit.NS), events.end[rows] - events.start[rows]))
    columns.append((Column("rowid", Unit.NONE), events.rowid[rows]))
    return Table.of(name, TABLES[name], columns)


def _untold(report: Report, name: str) -> Iterator[str]:
    """Fields of a table that none of the report's kinds of rows tell."""
    kinds = [kind for kind in _KINDS.get(name, ()) if report.has(kind)]
    for field, by_kind in _TOLD_BY.items():
        if kinds and not any(report.has(kind, by_kind[kind]) for kind in kinds if kind in by_kind):
            yield field


def _rows(events: EventSet, scope: Scope, kinds: tuple[OpKind, ...]) -> Rows:
    if isinstance(events, Operations):
        rows = scope.operations(events)
        if not kinds:
            return rows
        chosen = row_numbers(events, rows)[np.isin(events.kind[rows], kinds)]
        return EVERYTHING if len(chosen) == len(events) else chosen
    if isinstance(events, ThreadEvents):
        return scope.threads(events)
    return EVERYTHING if scope.window is None else touching(events, scope.window)


def _columns(
    report: Report, events: EventSet, name: str, rows: Rows
) -> list[tuple[Column, Values]]:
    """The columns that one field of an event set becomes; without copies where all are wanted."""
    values: Array = getattr(events, name)[rows]
    if (known := _told(report, events, name, rows)) is not None:
        return [(Column(name, _UNITS.get(name, Unit.NONE)), only(values, known))]
    if name == "thread":
        return _thread(report, getattr(events, "threads"), values)  # noqa: B009 - not in EventSet
    decoded = _decoded(events, name)
    if decoded is None:
        return [(Column(name, _UNITS.get(name, Unit.NONE)), values)]
    return [_meaning(header, labels, values) for header, labels in decoded]


def _told(report: Report, events: EventSet, name: str, rows: Rows) -> Bool | None:
    """Which rows of a field hold a value where not all of them may."""
    if name == "return_value":
        return told(getattr(events, name)[rows])
    if not isinstance(events, Operations) or name not in _TOLD_BY:
        return None
    work = [(kind, by) for kind, by in _TOLD_BY[name].items() if kind in OPERATIONS]
    telling = [OPERATIONS.index(kind) for kind, by in work if report.has(kind, by)]
    return np.isin(events.kind[rows], telling)


def _meaning(header: str, labels: Labels, codes: Array) -> tuple[Column, Values]:
    """What codes stand for: numbers looked up at once, texts when they are written."""
    if isinstance(labels, np.ndarray):
        return Column(header, Unit.NONE), labels[codes]
    return Column(header), Coded(codes, labels)


def _decoded(events: EventSet, name: str) -> list[tuple[str, Labels]] | None:
    """Headers and meanings by code of a field that holds codes; None for plain numbers."""
    dictionary = getattr(events, _DICTIONARY.get(name, ""), None)
    if isinstance(events, Operations) and name in _OPERATION_TEXTS:
        return _OPERATION_TEXTS[name](events)
    if dictionary is None:
        return None
    if name == "process":
        return [("pid", _numbers(pid_of(int(pid)) for pid in dictionary))]
    if name in ("domain", "device"):
        return [(name, [item.name if name == "domain" else item.label for item in dictionary])]
    return [(name, list(dictionary))]


_DICTIONARY: Final = {
    "name": "names",
    "process": "processes",
    "domain": "domains",
    "device": "devices",
    "metric": "metrics",
    "kind": "kinds",
}
"""Field of an event set that its codes point into."""


def _numbers(values: Iterable[int]) -> Array:
    """Whole numbers in as few bytes as they need: process and thread ids stand in every row."""
    numbers = np.array([*values], np.int64)
    small = len(numbers) == 0 or abs(numbers).max() < 2**31
    return numbers.astype(np.int32) if small else numbers


_OPERATION_TEXTS: Final[dict[str, Callable[[Operations], list[tuple[str, Labels]]]]] = {
    "name": lambda ops: [
        ("name", [name.demangled for name in ops.names]),
        ("short_name", [name.short for name in ops.names]),
    ],
    "stream": lambda ops: [
        ("context", _numbers(stream.context for stream in ops.streams)),
        ("stream", _numbers(stream.id for stream in ops.streams)),
    ],
    "kind": lambda _ops: [("kind", [kind.name.lower() for kind in OpKind])],
    "category": lambda _ops: [("category", [category.name.lower() for category in Category])],
}


def _thread(report: Report, threads: Int64, codes: Integers) -> list[tuple[Column, Values]]:
    known = [int(tid) for tid in threads]
    return [
        _meaning("pid", _numbers(pid_of(tid) if tid != -1 else -1 for tid in known), codes),
        _meaning("tid", _numbers(tid_of(tid) if tid != -1 else -1 for tid in known), codes),
        _meaning("thread", [report.thread_name(tid) if tid != -1 else "" for tid in known], codes),
    ]
