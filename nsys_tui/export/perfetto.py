"""A window of a report as a Chrome/Perfetto JSON trace, for ui.perfetto.dev and chrome://tracing.

GPU streams and host threads become tracks, launches become arrows; GPU memory and sampled metrics
become counters. The format draws only nested
slices on a track, so an event that crosses another goes to a track of its own beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from nsys_tui.analysis.events_table import NO_CORRELATION
from nsys_tui.analysis.memory import recorded_memory
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, row_numbers
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.events import ApiCalls, Operations, ThreadEvents, told
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.target import pid_of, tid_of
from nsys_tui.names import api_name

_GPU_PIDS: Final = 1 << 24
"""Tracks of the n-th GPU stand under this plus n: no process has such an id."""


class _Tracks:
    """Numbers tracks, and splits each so that its slices nest."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], list[list[int]]] = {}
        self._ids: dict[tuple[int, str, int], int] = {}
        self.pending: list[dict[str, Any]] = []
        """Metadata events of tracks that were not announced yet."""

    def track(self, pid: int, name: str, start: int, end: int) -> int:
        """The id of the track for a slice; slices come in order of their start, longest first."""
        lanes = self._open.setdefault((pid, name), [])
        number = next((n for n, lane in enumerate(lanes) if _nests(lane, start, end)), len(lanes))
        if number == len(lanes):
            lanes.append([])
        lanes[number].append(end)
        return self._id(pid, name, number)

    def _id(self, pid: int, name: str, number: int) -> int:
        key = (pid, name, number)
        if key not in self._ids:
            self._ids[key] = len(self._ids) + 1
            title = f"{name} ({number + 1})" if number else name
            self.pending.append(_metadata("thread_name", pid, self._ids[key], title))
        return self._ids[key]


def _nests(ends: list[int], start: int, end: int) -> bool:
    """Whether a slice lies inside the innermost open one of a track, given the ends of all open."""
    while ends and ends[-1] <= start:
        ends.pop()
    return not ends or ends[-1] >= end


def trace(report: Report, scope: Scope = WHOLE_REPORT) -> Iterator[str]:
    """The JSON text of a trace, piece by piece.

    Args:
        report: the report.
        scope: which part; events that touch its window come whole.
    """
    yield '{"displayTimeUnit":"ns","traceEvents":[\n'
    separator = ""
    for event in _events(report, scope):
        yield separator + json.dumps(event, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"


def event_count(report: Report, scope: Scope = WHOLE_REPORT) -> int:
    """How many slices, arrows and values of counters a trace has, for progress."""
    ops, api = report.operations, report.api
    work = row_numbers(ops, scope.operations(ops))
    launched = report.calls[work]
    calls = row_numbers(api, scope.threads(api))
    calls = calls[api.real[calls]]
    others = (report.ranges, report.osrt, report.host_events)
    return (
        len(work)
        + int((launched >= 0).sum())
        + len(calls)
        + int(np.isin(launched, calls).sum())
        + sum(len(row_numbers(events, scope.threads(events))) for events in others)
        + sum(len(series.times) for series in _series(report, scope))
    )


def _events(report: Report, scope: Scope) -> Iterator[dict[str, Any]]:
    tracks = _Tracks()
    for source in (
        _names(report, scope),
        _gpu(report, scope, tracks),
        _host(report, scope, tracks),
        _counters(report, scope),
    ):
        for event in source:
            yield from tracks.pending
            tracks.pending.clear()
            yield event


def _names(report: Report, scope: Scope) -> Iterator[dict[str, Any]]:
    names = {device.label: device.name for device in report.devices}
    for label, number in _gpus(report, scope).items():
        title = f"{label} {names.get(label, '')}".strip()
        yield _metadata("process_name", _GPU_PIDS + number, 0, title)
    sets = (report.api, report.ranges, report.osrt, report.host_events)
    owners = {int(pid) for events in sets for pid in events.thread_process if pid != -1}
    for owner in sorted(owners):
        yield _metadata("process_name", pid_of(owner), 0, report.process_name(owner))


def _metadata(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(
    name: str, category: str, start: int, end: int, pid: int, tid: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": start / 1000,
        "dur": max(end - start, 0) / 1000,
        "pid": pid,
        "tid": tid,
        "args": args,
    }


def _gpu(report: Report, scope: Scope, tracks: _Tracks) -> Iterator[dict[str, Any]]:
    ops = report.operations
    rows = row_numbers(ops, scope.operations(ops))
    names = [name.demangled for name in ops.names]
    labels = [stream.label for stream in ops.streams]
    owners = [pid_of(stream.globalPid) for stream in ops.streams]
    calls = report.calls
    for row in _nested(ops.start, ops.end, rows):
        start, end, lane = int(ops.start[row]), int(ops.end[row]), int(ops.stream[row])
        pid = _GPU_PIDS + int(ops.device[row])
        track = tracks.track(pid, f"pid {owners[lane]} {labels[lane]}", start, end)
        args = _correlation(ops, row)
        if ops.bytes[row]:
            args["bytes"] = int(ops.bytes[row])
        category = Category(int(ops.category[row])).name.lower()
        yield _slice(names[ops.name[row]], category, start, end, pid, track, args)
        if calls[row] >= 0:
            yield _arrow("f", row, start, pid, track) | {"bp": "e"}


def _gpus(report: Report, scope: Scope) -> dict[str, int]:
    """Label -> number of each GPU in scope; those that only have counters stand last."""
    numbers = {report.devices[row].label: row for row in scope.device_rows(report)}
    if scope.devices is None:
        recorded = [held.device.label for held in recorded_memory(report)]
        recorded += [f"GPU {gpu}" for gpu in np.unique(report.gpu_metrics.gpu)]
        for label in recorded:
            numbers.setdefault(label, len(numbers))
    return numbers


class _Series(NamedTuple):
    """A counter of one GPU in scope; its first value may be from before the window."""

    name: str
    unit: str
    """Perfetto writes it behind the name."""
    device: int
    """Its number in ``_gpus``."""
    times: Int64
    values: Int64


def _series(report: Report, scope: Scope) -> Iterator[_Series]:
    """GPU memory in use, and every sampled metric, of the GPUs in scope."""
    gpus = _gpus(report, scope)
    for held in recorded_memory(report):
        device = gpus.get(held.device.label)
        if device is not None:
            yield _cut(_Series("memory in use", "bytes", device, held.times, held.used), scope)
    metrics = report.gpu_metrics
    for gpu in np.unique(metrics.gpu).tolist():
        mine, device = metrics.gpu == gpu, gpus.get(f"GPU {gpu}")
        if device is None:
            continue
        for code in np.unique(metrics.metric[mine]).tolist():
            rows = np.flatnonzero(mine & (metrics.metric == code))
            name, _, unit = metrics.metrics[code].removesuffix("]").partition(" [")
            times, values = metrics.start[rows], metrics.value[rows]
            yield _cut(_Series(name, unit or "value", device, times, values), scope)


def _cut(series: _Series, scope: Scope) -> _Series:
    if scope.window is None:
        return series
    lo, hi = scope.window
    times = series.times
    first = max(int(np.searchsorted(times, lo, side="right")) - 1, 0)
    part = slice(first, int(np.searchsorted(times, hi)))
    # The value before the window holds at its start.
    return series._replace(times=np.maximum(times[part], lo), values=series.values[part])


def _counters(report: Report, scope: Scope) -> Iterator[dict[str, Any]]:
    for series in _series(report, scope):
        pid = _GPU_PIDS + series.device
        for time, value in zip(series.times.tolist(), series.values.tolist(), strict=True):
            yield {
                "ph": "C", "name": series.name, "ts": time / 1000, "pid": pid,
                "args": {series.unit: value},
            }  # fmt: skip


def _arrow(phase: str, row: int, time: int, pid: int, track: int) -> dict[str, Any]:
    return {
        "ph": phase, "id": int(row), "name": "launch", "cat": "launch", "ts": time / 1000,
        "pid": pid, "tid": track,
    }  # fmt: skip


def _correlation(events: Operations | ApiCalls, row: int) -> dict[str, Any]:
    known = int(events.correlation[row])
    return {} if known == NO_CORRELATION else {"correlation": known}


def _host(report: Report, scope: Scope, tracks: _Tracks) -> Iterator[dict[str, Any]]:
    api, ops = report.api, report.operations
    launched: dict[int, list[int]] = {}
    for row in row_numbers(ops, scope.operations(ops)).tolist():
        if report.calls[row] >= 0:
            launched.setdefault(int(report.calls[row]), []).append(row)
    api_names = [api_name(name) for name in api.names]
    has_result = told(api.return_value)
    for row, pid, track in _slots(report, api, scope, tracks, "CUDA API", api.real):
        about = _correlation(api, row)
        if has_result[row]:
            about["result"] = int(api.return_value[row])
        yield _slice(
            api_names[api.name[row]], "api", int(api.start[row]), int(api.end[row]), pid, track,
            about,
        )  # fmt: skip
        for operation in launched.get(row, ()):
            yield _arrow("s", operation, int(api.start[row]), pid, track)
    ranges = report.ranges
    domains = [domain.name for domain in ranges.domains]
    others = report.host_events
    tables = [report.table_of(Kind(kind)) for kind in others.kinds]
    plain: tuple[tuple[ThreadEvents, str, Callable[[int], dict[str, Any]]], ...] = (
        (ranges, "NVTX", lambda row: {"domain": domains[ranges.domain[row]]}),
        (report.osrt, "OS runtime", lambda _: {}),
        (others, "other", lambda row: {"table": tables[others.kind[row]]}),
    )
    for events, what, args in plain:
        for row, pid, track in _slots(report, events, scope, tracks, what):
            start, end = int(events.start[row]), int(events.end[row])
            yield _slice(events.names[events.name[row]], what, start, end, pid, track, args(row))


def _slots(
    report: Report,
    events: ThreadEvents,
    scope: Scope,
    tracks: _Tracks,
    what: str,
    mask: Bool | None = None,
) -> Iterator[tuple[int, int, int]]:
    """(row, pid, track) of the events of one kind in scope."""
    rows = row_numbers(events, scope.threads(events))
    rows = rows if mask is None else rows[mask[rows]]
    threads = [int(tid) for tid in events.threads]
    titles = [f"{tid_of(tid)} {report.thread_name(tid)}: {what}" for tid in threads]
    for row in _nested(events.start, events.end, rows):
        code = int(events.thread[row])
        pid = pid_of(threads[code])
        yield (
            row,
            pid,
            tracks.track(pid, titles[code], int(events.start[row]), int(events.end[row])),
        )


def _nested(start: Int64, end: Int64, rows: Indices) -> list[int]:
    """Rows by start, the longest first."""
    order: list[int] = rows[np.lexsort((-end[rows], start[rows]))].tolist()
    return order
