"""Pieces of a report's summary: steps, collectives, statistics, pace, memory and metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.aggregate import aggregate
from nsys_tui.analysis.breakdown import Coverage, Covered
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.memory import device_memory
from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.fleet.name_stats import NameStats, name_stats
from nsys_tui.fleet.summary import STEP_FIGURES, Collectives, Pace, Steps
from nsys_tui.fleet.times import Grid
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.collective_sizes import payload_fields
from nsys_tui.model.events import EventSet, OpName, ThreadEvents
from nsys_tui.model.groups import regroup
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kernel_names import answers_to, variant_key
from nsys_tui.model.report import Report
from nsys_tui.names import ACROSS, NameStyle, kernel_name, normalise_nvtx

_POINT_TO_POINT: Final = re.compile(r"(?i)send|recv")
_NCCL_CALL: Final = re.compile(r"^(p?nccl)[A-Z]")
_COMMUNICATOR: Final = "NCCL communicator ID"
METRIC_SHIFT: Final = 2
"""Metric maps have a quarter of the bins of other maps: a report may hold 30 metrics a GPU."""


def steps(report: Report, scope: Scope, covered: list[Coverage], pattern: str | None) -> Steps:
    """Iterations of one process that start in the window, and what its GPUs did in each."""
    whole = find_iterations(report, pattern, replace(scope, window=None))
    kept = _in_window(whole.start, scope.window)
    if whole.rule is Rule.NONE or not len(kept):
        return Steps()
    start, end = whole.start[kept].astype(np.int64), whole.end[kept].astype(np.int64)
    labels = tuple(whole.labels[place] for place in kept.tolist())
    figures = np.zeros((len(kept), len(STEP_FIGURES)), np.int64)
    for coverage in covered:
        within = coverage.within(start, end)
        figures += np.column_stack([within[name] for name in STEP_FIGURES])
    never_closed, warm = whole.never_closed[kept], max(0, whole.warm_up - int(kept[0]))
    return Steps(str(whole.rule), whole.name, labels, start, end, figures, never_closed, warm)


def _in_window(start: Int64, window: tuple[int, int] | None) -> Indices:
    """Places of the times that lie in a window."""
    if window is None:
        return np.arange(len(start))
    return np.flatnonzero((start >= window[0]) & (start < window[1]))


def _kernels(report: Report, process: int, scope: Scope, kernels: Bool) -> Indices:
    """Those of some kernels that one process started in what counts, in start order.

    Args:
        report: the report.
        process: globalPid.
        scope: what counts.
        kernels: a truth value for each operation.
    """
    ops = report.operations
    rows = row_numbers(ops, replace(scope, window=None).operations(ops))
    rows = rows[(kernels & (ops.kind == OpKind.KERNEL))[rows]]
    rows = rows[np.isin(ops.process[rows], np.flatnonzero(ops.processes == process))]
    return np.asarray(rows[_in_window(ops.start[rows], scope.window)], np.intp)


def collectives(report: Report, process: int, scope: Scope, covered: list[Coverage]) -> Collectives:
    """Communication kernels of one process by name and communicator, in start order."""
    ops = report.operations
    rows = _kernels(report, process, scope, ops.category == Category.COMM)
    names = [kernel_name(n.short, n.demangled, NameStyle.NORMALISED) for n in ops.names]
    paired = np.array([_POINT_TO_POINT.search(name) is not None for name in names], bool)
    is_pair = paired[ops.name[rows]] if len(rows) else np.zeros(0, bool)
    alone = _alone(report, rows[is_pair], covered)
    point_to_point, rows = int(is_pair.sum()), rows[~is_pair]
    if not len(rows):
        return Collectives(point_to_point=point_to_point, alone_ns=alone)
    groups = _communicators(report, rows)
    keys: dict[tuple[str, str], int] = {}
    pairs = zip(ops.name[rows].tolist(), groups, strict=True)
    codes = [keys.setdefault((names[name], group), len(keys)) for name, group in pairs]
    gap, before = before_calls(report, scope, covered, rows)
    return Collectives(
        tuple(keys),
        np.array(codes, np.int32),
        ops.start[rows],
        ops.end[rows],
        gap,
        before,
        point_to_point,
        alone,
    )


def _alone(report: Report, rows: Indices, covered: list[Coverage]) -> int:
    """Time in some kernels while their GPU computes nothing, ns."""
    ops, alone = report.operations, 0
    for coverage in covered:
        of_device = rows[ops.device[rows] == coverage.device]
        if len(of_device):
            busy = coverage.sets["compute"]
            times = intervals.union(ops.start[of_device], ops.end[of_device])
            alone += intervals.total(*intervals.subtract(times, (busy.starts, busy.ends)))
    return alone


def _communicators(report: Report, rows: Indices) -> list[str]:
    """Communicator of each kernel: from NCCL's payloads, else the number of its stream."""
    ops = report.operations
    streams = ops.stream[rows]
    order = sorted(set(streams.tolist()), key=lambda code: report.streams[code].id)
    number = {code: f"stream {place}" for place, code in enumerate(order, 1)}
    by_stream = [number[code] for code in streams.tolist()]
    named = _named_communicators(report, rows)
    return [name or stream for name, stream in zip(named, by_stream, strict=True)]


def _named_communicators(report: Report, rows: Indices) -> list[str]:
    """Communicator of the last NCCL call that began on the launching thread before each launch.

    Calls of one group share their launch, and mostly their communicator.
    """
    ranges, none = report.ranges, [""] * len(rows)
    is_call = np.array([_NCCL_CALL.match(text) is not None for text in ranges.names], bool)
    calls = np.flatnonzero(is_call[ranges.name]) if len(is_call) else np.empty(0, np.intp)
    if not len(calls) or not len(report.api):
        return none
    payload = report.payloads.of(ranges.rowid[calls])
    calls, payload = calls[payload >= 0], payload[payload >= 0]
    ids = [_communicator(text) for text in report.payloads.texts]
    launch = report.calls[rows]
    api = report.api
    communicator = np.full(len(rows), -1, np.int64)
    for thread in np.unique(ranges.thread[calls]).tolist():
        mine = np.flatnonzero(ranges.thread[calls] == thread)
        by = (launch >= 0) & (api.threads[api.thread[launch]] == ranges.threads[thread])
        position = np.searchsorted(ranges.start[calls[mine]], api.start[launch], side="right") - 1
        communicator = np.where(
            by & (position >= 0), payload[mine[np.maximum(position, 0)]], communicator
        )
    return [ids[code] if code >= 0 else "" for code in communicator.tolist()]


def _communicator(text: str) -> str:
    value = payload_fields(text).get(_COMMUNICATOR, "")
    return f"{value:#x}" if isinstance(value, int) else str(value)


def pace(report: Report, process: int, scope: Scope, name: str | None) -> Pace:
    """Every instance of a kernel, or of an NVTX range, by whichever of its names."""
    if name is None:
        return Pace()
    ops = report.operations
    called = np.array([_is_called(name, op) for op in ops.names], bool)
    if len(called):
        rows = _kernels(report, process, scope, called[ops.name])
        if len(rows):
            return Pace("kernel", name, ops.start[rows], ops.durations(rows))
    ranges, wanted = report.ranges, normalise_nvtx(name)
    named = np.array([normalise_nvtx(text) == wanted for text in ranges.names], bool)
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[named[ranges.name[rows]] & ~ranges.open[rows]] if len(named) else rows[:0]
    rows = rows[_in_window(ranges.start[rows], scope.window)]
    if not len(rows):
        return Pace()
    return Pace("range", name, ranges.start[rows], ranges.durations(rows))


def _is_called(name: str, op: OpName) -> bool:
    normalised = kernel_name(op.short, op.demangled, NameStyle.NORMALISED)
    return name == normalised or answers_to(name, op.demangled, op.short)


def statistics(report: Report, family: str, scope: Scope) -> NameStats:
    """Durations by name of one family of events in one process."""
    ops = report.operations
    if family in ("kernels", "copies"):
        rows = row_numbers(ops, scope.operations(ops))
        is_kernel = ops.kind[rows] == OpKind.KERNEL
        is_copy = (ops.kind[rows] == OpKind.MEMCPY) | (ops.kind[rows] == OpKind.MEMSET)
        rows = rows[is_kernel if family == "kernels" else is_copy]
        names = ops.texts(ACROSS)
        if family == "kernels":
            names = [variant_key(text, op.full) for text, op in zip(names, ops.names, strict=True)]
        return _stats(ops, rows, ops.name[rows], names, scope.window)
    if family == "mpi" and not report.can(Capability.MPI):
        return NameStats()
    events, kept = _host_events(report, family)
    rows = row_numbers(events, scope.threads(events))
    rows = rows[kept[rows]]
    names = [_host_name(family, name) for name in events.names]
    return _stats(events, rows, events.name[rows], names, scope.window)


def _stats(
    events: EventSet,
    rows: Indices,
    codes: Integers,
    names: list[str],
    window: tuple[int, int] | None,
) -> NameStats:
    """In a window, totals are clipped and instances count where they start."""
    groups, distinct = regroup(codes, names)
    return name_stats(aggregate(events, rows, groups, len(distinct), window), distinct)


_VERSION_SUFFIX: Final = re.compile(r"_v\d{4,5}$")


def _host_name(family: str, name: str) -> str:
    if family == "ranges":
        return normalise_nvtx(name)
    return _VERSION_SUFFIX.sub("", name) if family == "api" else name


def _host_events(report: Report, family: str) -> tuple[ThreadEvents, Bool]:
    """The events of a family, and which of them count."""
    if family == "ranges":
        return report.ranges, ~report.ranges.open
    if family == "api":
        return report.api, report.api.real
    if family == "osrt":
        return report.osrt, report.osrt.event_class == 27
    return report.host_events, report.host_events.of_mpi


def memory_maps(
    report: Report, places: list[int], grid: Grid, window: tuple[int, int] | None = None
) -> tuple[Int64, Int64]:
    """Peak bytes of GPU memory per device, and the most held in each bin; -1 and (0, 0) without."""
    peaks = np.full(len(places), -1, np.int64)
    if not report.can(Capability.GPU_MEMORY):
        return peaks, np.zeros((0, 0), np.int64)
    anchor = report.metadata.session_start_utc_ns or 0
    maps = np.zeros((len(places), grid.count), np.int64)
    known = {entry.device.number: entry for entry in device_memory(report)}
    for row, place in enumerate(places):
        entry = known.get(report.devices[place].number)
        if entry is None:
            continue
        edges = grid.edges(anchor)[:-1]
        begin = edges if window is None else np.clip(edges, *window)
        changed = _in_window(entry.times, window)
        times, used = entry.times[changed], entry.used[changed]
        maps[row] = entry.at(begin)
        spot = grid.place(times, anchor)
        inside = (spot >= 0) & (spot < grid.count)
        np.maximum.at(maps[row], spot[inside], used[inside])
        held = int(entry.at(np.array(window[:1]))[0]) if window is not None else 0
        peaks[row] = max(int(used.max(initial=0)), held)
    return peaks, maps


def metric_maps(
    report: Report,
    scope: Scope,
    grid: Grid,
    anchor: int,
    window: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Sums and counts of the samples of each GPU metric per bin, as fields of the summary."""
    if not report.can(Capability.GPU_METRICS):
        return {}
    samples = report.gpu_metrics
    gpus = np.unique(samples.gpu)
    wide = metric_grid(grid)
    spot = wide.place(samples.start, anchor)
    inside = (spot >= 0) & (spot < wide.count)
    if scope.devices is not None:
        numbers = [report.devices[device].number for device in scope.devices]
        gpus = gpus[np.isin(gpus, [number for number in numbers if number is not None])]
        inside &= np.isin(samples.gpu, gpus)
    if window is not None:
        inside &= (samples.start >= window[0]) & (samples.start < window[1])
    shape = (len(gpus), len(samples.metrics), wide.count)
    device = np.searchsorted(gpus, samples.gpu)
    cell = np.ravel_multi_index((device[inside], samples.metric[inside], spot[inside]), shape)
    size = int(np.prod(shape))
    sums = np.bincount(cell, samples.value[inside], size)
    return {
        "metrics": samples.metrics,
        "metric_gpus": tuple(gpus.tolist()),
        "metric_sum": np.rint(sums).astype(np.int64).reshape(shape),
        "metric_count": np.bincount(cell, minlength=size).astype(np.int64).reshape(shape),
    }


def metric_grid(grid: Grid) -> Grid:
    """The bins of metric maps."""
    first = grid.first >> METRIC_SHIFT
    last = (grid.end - 1) >> METRIC_SHIFT
    return type(grid)(grid.shift + METRIC_SHIFT, first, last - first + 1)


PARTS: Final = ("kernels", "data", "comm", "beside")
"""What is kept of the time before a collective, ns: kernels; copies that nothing hides and idle
time in ranges that load data; communication that nothing hides. The rest waits for a launch. And
kernels beside the collective before it, from its start on: who waits there computes meanwhile."""
_LOADS: Final = re.compile(
    r"(?i)data.?load|(load|next|get|fetch|read).?(data|batch|input)|copy to (device|gpu)"
)


def before_calls(
    report: Report, scope: Scope, covered: Sequence[Coverage], rows: Indices
) -> tuple[Int64, Int64]:
    """Time from the end of the collectives before each one, and what it was.

    Args:
        report: the report.
        scope: the rank.
        covered: what its GPUs did.
        rows: its collectives in the order of their starts, rows of ``Report.operations``.

    Returns:
        int64 [n], -1 for the first, and ``PARTS`` of it, int64 [n, parts].
    """
    ops = report.operations
    start, end = ops.start[rows].astype(np.int64), ops.end[rows].astype(np.int64)
    latest = np.maximum.accumulate(end)
    begun = np.minimum(np.append(start[:1], latest[:-1]), start)
    gap = start - begun
    gap[:1] = -1
    parts = np.zeros((len(rows), len(PARTS)), np.int64)
    coverage = next((c for c in covered if c.device == ops.device[rows[0]]), None)
    if coverage is not None:
        within = coverage.within(begun, start)
        busy = coverage.sets["busy"]
        loading = Covered(*intervals.subtract(_loading(report, scope), (busy.starts, busy.ends)))
        parts[:, 0] = within["compute"] + within["graph"]
        parts[:, 1] = within["exposed_memory"] + loading.within(begun, start)
        parts[:, 2] = within["exposed_comm"]
        beside = coverage.within(np.append(start[:1], start[:-1]), begun)
        parts[:, 3] = beside["compute"] + beside["graph"]
    return gap, parts


def _loading(report: Report, scope: Scope) -> Intervals:
    """When threads that launch work were in ranges that load data, by their names."""
    ranges, api = report.ranges, report.api
    loads = np.array([_LOADS.search(text) is not None for text in ranges.names], bool)
    if not loads.any() or not len(api):
        return intervals.empty()
    calls = report.calls[scope.operations(report.operations)]
    launching = api.threads[np.unique(api.thread[calls[calls >= 0]])]
    rows = np.flatnonzero(loads[ranges.name] & ~ranges.open)
    rows = rows[np.isin(ranges.threads[ranges.thread[rows]], launching)]
    return intervals.union(ranges.start[rows], ranges.start[rows] + ranges.durations(rows))
