"""Measuring one side of a comparison: from a report to samples of times by name and by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.analysis.aggregate import Aggregate, aggregate
from nsys_tui.analysis.breakdown import Coverage, coverages
from nsys_tui.analysis.compare.comparability import facts, options
from nsys_tui.analysis.compare.named_samples import by_name, in_steps, tallied
from nsys_tui.analysis.compare.origin import origin_of
from nsys_tui.analysis.compare.plan import Plan, rows_of
from nsys_tui.analysis.compare.side import WHOLE, Named, Side, Variant
from nsys_tui.analysis.compare.stats import Sample, samples
from nsys_tui.analysis.compare.tails import tails
from nsys_tui.analysis.diagnostics import loss, unanswered
from nsys_tui.analysis.host_time import mpi_calls, osrt_calls
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.window import Rows, clipped, masked
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import ThreadEvents
from nsys_tui.model.groups import regroup
from nsys_tui.model.kernel_names import variant
from nsys_tui.model.report import NOTHING, Report
from nsys_tui.names import NameStyle, api_name, normalise_nvtx

_BREAKDOWN: Final = (
    "compute",
    "kernel_time",
    "comm",
    "exposed_comm",
    "memory",
    "exposed_memory",
    "graph",
)


Telling: TypeAlias = "Callable[..., dict[str, Named]]"
"""What is told of events that are placed in steps: ``in_steps`` or ``tallied``."""
_NEEDS: Final = {
    "kernels": Capability.KERNELS,
    "copies": Capability.COPIES,
    "ranges": Capability.NVTX,
    "api": Capability.API,
    "mpi_calls": Capability.MPI,
    "os_calls": Capability.OSRT,
    "stalls": Capability.KERNELS,
}
"""What is measured by name, and of what."""
_KNOWN_BY: Final = {
    OpKind.KERNEL: ("kernels", "ranks", "compute", "kernel_time", "comm", "exposed_comm"),
    OpKind.MEMCPY: ("copies", "memory"),
    OpKind.MEMSET: ("copies", "memory"),
    OpKind.GRAPH: ("kernels", "graph", "exposed_comm"),
}
"""What cannot be known where GPU work of a kind was not recorded."""
_BY_ALL: Final = frozenset(("busy_share", "busy", "exposed_memory", "idle", "stalls"))
"""What cannot be known where work of any kind was not."""


def first_look(plan: Plan, label: str = "", identity: str = "") -> Side:
    """What of a side a verdict by steps mostly needs, for a third of the work of ``measure``.

    Args:
        plan: what is looked at.
        label: what the side is called.
        identity: equal for the same part of the same report.
    """
    makers = (partial(make, tell=tallied) for make in (_kernels, _copies))
    return _measured(plan, label, identity, makers, whole=False)


def measure(plan: Plan, label: str = "", identity: str = "") -> Side:
    """Measures one side; the arguments are those of ``first_look``."""
    makers = (_kernels, _copies, _ranges, _api, _mpi_calls, _os_calls, _stalls)
    return _measured(plan, label, identity, makers)


def _measured(
    plan: Plan,
    label: str,
    identity: str,
    makers: Iterable[Callable[[Plan], dict[str, Named]]],
    *,
    whole: bool = True,
) -> Side:
    report, part = plan.report, plan.part
    base = part.base(report) if plan.by_step or report.span or part.window else report.extent
    metrics, groups = _metrics(plan, base, whole=whole)
    lacks, unknown = {}, set()
    for (key, capability), make in zip(_NEEDS.items(), makers, strict=False):
        groups[key] = make(plan)
        if not groups[key] and (reason := report.lacks(capability)):
            lacks[key] = reason
        if report.doubt(capability):
            unknown.add(key)
    lost = [why for why in (loss(report) if whole else "",) if why]
    threads = {name: each.amount for name, each in groups["kernels"].items() if each.amount}
    groups["kernels"] = {n: replace(each, amount=0) for n, each in groups["kernels"].items()}
    if report.doubt(Capability.KERNELS):
        unknown.add("ranks")
    if report.doubt(Capability.LAUNCH_CALLS):
        unknown.add("stalls")
    for kind, keys in _KNOWN_BY.items():
        if whole and len(unanswered(report, kind)):
            unknown |= {*keys, *_BY_ALL}
    nothing = base == NOTHING
    if nothing or ((report.gpu_doubt or "busy" in unknown) and not (plan.by_step or part.window)):
        unknown.add("wall")  # it is the span of GPU work
    return Side(
        label=label or report.name,
        identity=identity,
        facts=facts(report, part),
        options=options(report),
        kinds=tuple(str(kind) for kind in Capability if report.can(kind)),
        device_count=len(part.device_rows(report)),
        base_ns=0 if nothing else base[1] - base[0],
        steps=plan.steps,
        steps_found=len(plan.steps) if plan.steps_found is None else plan.steps_found,
        metrics=metrics,
        groups=groups,
        lacks=lacks,
        notes=(*plan.notes, *report.metadata.notes, *report.notes.texts, *lost),
        unknown=frozenset(unknown),
        untraced=frozenset(key for key in lacks if not report.traced(_NEEDS[key])),
        style=plan.style,
        run=identity.partition(" ")[0],
        recorded=_recorded(report),
        origin=origin_of(report),
        variants=_variants(plan, groups["kernels"]) if whole else {},
        threads=threads,
    )


def _recorded(report: Report) -> tuple[int, int]:
    utc, (start, end) = report.metadata.session_start_utc_ns, report.extent
    return (0, 0) if utc is None else (utc + start, utc + end)


def _metrics(
    plan: Plan, base: tuple[int, int], *, whole: bool = True
) -> tuple[dict[str, Sample], dict[str, dict[str, Named]]]:
    """Wall time and where the GPUs' time went, per step or as a whole: means, and by rank.

    Args:
        plan: what is measured.
        base: the part as a whole.
        whole: also what no verdict comes from.
    """
    report = plan.report
    if plan.by_step:
        starts, ends = plan.steps.start, plan.steps.end
    else:
        starts, ends = np.array([base[0]], np.int64), np.array([base[1]], np.int64)
    wall = ends - starts
    values: dict[str, Int64] = {"wall": wall}
    sums: dict[str, Int64] = {}
    ranks: dict[str, Int64] = {}
    count = 0
    for coverage in coverages(report, plan.searched):
        count += 1
        busy = coverage.busy.within
        parts = coverage.within(starts, ends) if whole else {"busy": busy(starts, ends)}
        parts["kernel_time"] = _kernel_time(report, coverage, starts, ends)
        ranks[_rank(report, coverage)] = parts["kernel_time"]
        for name, ns in parts.items():
            sums[name] = sums[name] + ns if name in sums else ns
    if count and len(report.operations):
        values["busy_share"] = _parts(sums["busy"], wall * count)
        values["busy"] = sums["busy"] // count
        known = (name for name in _BREAKDOWN if name in sums)
        values |= {name: sums[name] // count for name in known if sums[name].any()}
        values["idle"] = wall - values["busy"]
    by_metric = {name: Sample.of(each) for name, each in values.items()}
    if plan.by_step:
        by_metric |= tails(wall, plan.seed)
    return by_metric, {"ranks": _by_rank(plan, ranks) if len(ranks) > 1 else {}}


def _rank(report: Report, coverage: Coverage) -> str:
    """A GPU, and its rank where one process with a known one works on it."""
    ops, label = report.operations, report.devices[coverage.device].label
    working = np.flatnonzero(np.bincount(ops.process[coverage.rows]))
    process = int(ops.processes[working[0]]) if len(working) == 1 else -1
    return f"rank {report.ranks[process]}, {label}" if process in report.ranks else label


def _by_rank(plan: Plan, times: dict[str, Int64]) -> dict[str, Named]:
    """Time of compute kernels, which no rank spends on waiting for others."""
    samples_of = zip(times, samples(np.stack([*times.values()]), plan.steps.block), strict=True)
    return {
        name: Named(each, each.total, each if plan.by_step else None, 1.0 if plan.by_step else None)
        for name, each in samples_of
    }


def _kernel_time(report: Report, coverage: Coverage, starts: Int64, ends: Int64) -> Int64:
    """Sum of the durations of the compute kernels that start in each of some windows."""
    begun, done = clipped(report.operations, coverage.of[Category.COMPUTE], coverage.window)
    before = intervals.prefix(begun, done)
    first, last = (np.searchsorted(begun, edges) for edges in (starts, ends))
    return np.asarray(before[last] - before[first], np.int64)


def _parts(part: Int64, whole: Int64) -> Int64:
    return np.asarray(np.rint(part / np.maximum(whole, 1) * WHOLE), np.int64)


_KERNELS: Final = (OpKind.KERNEL, OpKind.GRAPH)


def _kernels(plan: Plan, tell: Telling = in_steps) -> dict[str, Named]:
    """Kernels by name, with the threads that they launch."""
    rows = _rows_of(plan, _KERNELS)
    if not plan.report.can(Capability.LAUNCH_SHAPES):
        return _operations(plan, tell, rows, plan.names)
    launch = plan.report.launch_attributes
    threads = (launch.blocks * launch.threads)[launch.code[rows]]
    return _operations(plan, tell, rows, plan.names, threads)


def _copies(plan: Plan, tell: Telling = in_steps) -> dict[str, Named]:
    rows = _rows_of(plan, (OpKind.MEMCPY, OpKind.MEMSET))
    return _operations(plan, tell, rows, plan.names, plan.report.operations.bytes[rows])


def _variants(plan: Plan, kernels: Iterable[str]) -> dict[str, dict[str, Variant]]:
    """The kernels of each name that differ in more than what a build numbers."""
    if plan.style == NameStyle.FULL:
        return {}
    ops = plan.report.operations
    known: dict[str, dict[str, dict[str, None]]] = {name: {} for name in kernels}
    keys = [variant(op.full) for op in ops.names]
    for name, key, op in zip(plan.names, keys, ops.names, strict=True):
        if name in known:
            known[name].setdefault(key, {})[op.full] = None
    several = np.array([len(known.get(name, ())) > 1 for name in plan.names], bool)
    rows = _rows_of(plan, _KERNELS)
    rows = masked(rows, several[ops.name[rows]])
    both = [f"{name}<{key}>" for name, key in zip(plan.names, keys, strict=True)]
    named = _operations(plan, in_steps, rows, both)
    return {
        name: {
            key: Variant(tuple(full), named.get(f"{name}<{key}>"))
            for key, full in variants.items()
            if len(variants) == 1 or f"{name}<{key}>" in named
        }
        for name, variants in known.items()
    }


def _rows_of(plan: Plan, kinds: Sequence[OpKind]) -> Rows:
    """GPU work of some kinds that is searched and counts."""
    ops = plan.report.operations
    wanted = np.zeros(len(OpKind), bool)
    wanted[list(kinds)] = True
    chosen = plan.searched.operations(ops)
    return masked(chosen, wanted[ops.kind[chosen]] & ops.counted[chosen])


def _operations(
    plan: Plan, tell: Telling, rows: Rows, names: Sequence[str], sizes: Int64 | None = None
) -> dict[str, Named]:
    """GPU work by name; with steps, work belongs to the step in which it was launched."""
    report = plan.report
    ops = report.operations
    if not len(ops):
        return {}
    group, distinct = regroup(ops.name[rows], names)
    if not plan.by_step:
        return by_name(distinct, aggregate(ops, rows, group, len(distinct), plan.window), sizes)
    times = ops.start[rows]
    if len(report.api):
        calls = report.calls[rows]
        times = np.where(calls >= 0, report.api.start[calls], times)
    step = plan.steps.place_of(ops.process[rows], ops.processes, times)
    return tell(distinct, group, ops.durations(rows), step, plan.steps, sizes)


def _ranges(plan: Plan) -> dict[str, Named]:
    ranges = plan.report.ranges
    names = [normalise_nvtx(name) for name in ranges.names]
    return _on_threads(plan, ranges, rows_of(plan, ranges, ~ranges.open), names)


def _api(plan: Plan) -> dict[str, Named]:
    api = plan.report.api
    return _on_threads(plan, api, rows_of(plan, api, api.real), [*map(api_name, api.names)])


def _mpi_calls(plan: Plan) -> dict[str, Named]:
    calls = plan.report.host_events
    return _on_threads(plan, calls, mpi_calls(plan.report, plan.searched), calls.names)


def _os_calls(plan: Plan) -> dict[str, Named]:
    calls = plan.report.osrt
    return _on_threads(plan, calls, osrt_calls(plan.report, plan.searched), calls.names)


def _on_threads(
    plan: Plan, events: ThreadEvents, rows: Rows, names: Sequence[str]
) -> dict[str, Named]:
    """Host events by name; they belong to the step in which they start."""
    if not len(events):
        return {}
    group, distinct = regroup(events.name[rows], names)
    if not plan.by_step:
        return by_name(distinct, aggregate(events, rows, group, len(distinct), plan.window))
    step = plan.steps.place_of(events.thread[rows], events.thread_process, events.start[rows])
    return in_steps(distinct, group, events.durations(rows), step, plan.steps)


def _stalls(plan: Plan) -> dict[str, Named]:
    """Idle gaps between operations by cause, each gap for itself."""
    if not len(plan.report.operations):
        return {}
    gaps = plan.gaps
    names = [cause.key for cause in Cause]
    code = gaps.cause.astype(np.int64)
    if not plan.by_step:
        return by_name(names, Aggregate(code, len(names), gaps.idle))
    begin, end = plan.steps.bounds
    step = plan.steps.place(np.clip(gaps.start, begin, end - 1))
    return in_steps(names, code, gaps.idle, step, plan.steps)
