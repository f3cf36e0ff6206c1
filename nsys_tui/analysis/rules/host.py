"""Our rules on what the host does: copies, allocations, waits, module loading, slow steps."""

from __future__ import annotations

import re

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.analysis.iterations.steps import Rule as StepRule
from nsys_tui.analysis.iterations.table import longer_because
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.communication import steps_of
from nsys_tui.analysis.rules.finding import Finding, Severity, longest_of
from nsys_tui.analysis.rules.idle import idle_findings
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.analysis.rules.warm_up import LOOKUP_NS, first_uses
from nsys_tui.analysis.stalls.causes import Cause, Edge, host_event_classes
from nsys_tui.analysis.thread_states import Doing, sampled
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.events import FARTHEST, ApiCalls
from nsys_tui.model.groups import factorise, regroup, rows_of_values, sums, used
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name, brief, normalise_nvtx

RARE = 0.1
"""Outliers among more than this part of the repeats of a mere outermost range mean nothing."""
_SPARSE = 64
_LABEL_CELLS = 24
_CODE_CELLS = 18
_REPEATS = (StepRule.OUTERMOST, StepRule.NUMBERED)
_WHERE = ("between GPU work", "inside the loop")
_BEGINS = ("the work", "the loop")
_ALLOCATE = (
    "allocate once before, or use a caching or stream-ordered allocator",
    "allocate once before, or let the pool keep its memory (cudaMemPoolAttrReleaseThreshold)",
)
"""What to do about frequent allocations: in general, and from a stream-ordered pool."""
_BY_LIBRARY = "a library makes them as it is set up: do that once, and use its handle again"
_FREES = re.compile(r"Free|Unregister|Release|Unmap|Destroy|Trim")
_UNLOADS = 3
"""One unload among so many calls is no end of the program."""


@rule(
    "Allocations and frees inside the loop",
    advice="Allocating in every step costs time and may wait for the GPU: allocate once, use a"
    " caching allocator, or the stream-ordered one (cudaMallocAsync).",
    nothing="Hardly any allocation in the steady part of the run.",
    parameters=(Parameter("count", 10, "so many calls count as frequent"),),
)
def frequent_allocation(case: Case, arguments: Arguments) -> Result:
    """Calls that free, and allocate again, from the second step on, or while the GPU works."""
    api = case.report.api
    rows = _inside(case, case.calls)
    rows = rows[case.work.api_classes[rows] == Cause.ALLOCATION]
    rows = rows[_come_again(case, rows)]
    steady = api.start[rows] >= case.set_up_until.max(initial=-FARTHEST)
    rows = _without_lone(api, rows) if steady.sum() >= arguments.count("count") else rows[:0]
    time = sums(api.name[rows], api.durations(rows), len(api.names))
    count = np.bincount(api.name[rows], minlength=len(api.names))
    used = np.flatnonzero(count)
    order, hidden = cut(used[np.argsort(-time[used], kind="stable")], arguments)
    columns = (
        (Column("Total Time", Unit.NS), time[order]),
        (Column("Calls", Unit.COUNT), count[order].astype(np.int64)),
        (Column("API Name"), [api_name(api.names[code]) for code in order.tolist()]),
    )
    device, lost = case.idle_time.held_up_by_calls(rows)
    findings: list[Finding] = []
    if device >= 0 and (idle := intervals.total(*lost)):
        where = _WHERE[case.has_loop]
        ordered = [code for code in used.tolist() if "Async" in api.names[code]]
        caller = int(api.threads[np.bincount(api.thread[rows]).argmax()])
        seen = sampled(case.report, caller, *api.runs(rows))
        by_library = seen is not None and seen.doing is Doing.SETS_UP
        advice = _ALLOCATE[2 * int(count[ordered].sum()) > len(rows)]
        findings = case.finding(
            "frequent_allocation",
            f"{units.format_count(len(rows))} allocations and frees {where}:"
            f" {case.device_labels([device])} idle {units.format_duration(idle)} meanwhile",
            _BY_LIBRARY if by_library else advice,
            subject=f"allocations {where}",
            saved_ns=idle,
            window=longest_of(api, rows),
            device=device,
            lost=lost,
        )
    return Result(columns, findings, hidden=hidden)


def _come_again(case: Case, rows: Indices) -> Bool:
    """Which calls of each process allocate after set-up, or free what is allocated again.

    As brackets pair: what set-up allocates with nothing freed before, and what is freed with
    nothing allocated after, comes once.
    """
    api = case.report.api
    again = api.start[rows] >= case.set_up_until.max(initial=-FARTHEST)
    frees = np.array([_FREES.search(name) is not None for name in api.names], np.bool_)
    for _, mine in rows_of_values(api.thread_process[api.thread[rows]]):
        step = np.where(frees[api.name[rows[mine]]], 1, -1)
        open_, left = np.cumsum(step), np.cumsum(-step[::-1])[::-1]
        least = np.minimum.accumulate(np.append(0, open_[:-1]))
        after = np.minimum.accumulate(np.append(0, left[:0:-1]))[::-1]
        again[mine] = np.where(step < 0, again[mine] | (open_ >= least), left >= after)
    return np.asarray(again, np.bool_)


def _without_lone(api: ApiCalls, rows: Indices) -> Indices:
    """Calls without those that each take longer than all shorter ones: these happen once."""
    rows = rows[np.argsort(api.durations(rows), kind="stable")]
    took = api.durations(rows)
    lone = took > np.cumsum(took) - took
    return np.sort(rows[: len(rows) - int(np.argmin(lone[::-1]))])


def _inside(case: Case, rows: Indices) -> Indices:
    """Calls that start in the steady part of the run."""
    return rows[slice(*case.report.api.places(rows, case.loop))]


@rule(
    "Waits for the GPU by NVTX range",
    advice="In these ranges the host waits for the GPU and the GPU then for the host: read results"
    " later, or order work with events.",
    nothing="No synchronisation call.",
)
def sync_by_range(case: Case, arguments: Arguments) -> Result:
    """Synchronisation calls by the range they are made in, with the GPU idle time they cause."""
    api, work, gaps = case.report.api, case.work, case.stalls.gaps
    rows = case.calls
    rows = rows[work.api_classes[rows] == Cause.SYNC]
    gaps = gaps.take((gaps.cause == Cause.SYNC) & (gaps.edge == Edge.INNER))
    codes, of_name = np.unique(
        np.append(work.ranges_of_calls(rows), gaps.range), return_inverse=True
    )
    names = [normalise_nvtx(work.name(code)) or "[no NVTX range]" for code in codes.tolist()]
    group, texts = regroup(of_name, names)
    called, idling = np.split(group, [len(rows)])
    count = np.bincount(called, minlength=len(texts))
    time = sums(called, api.durations(rows), len(texts))
    idle = sums(idling, gaps.idle, len(texts))
    used = np.flatnonzero(count)
    order, hidden = cut(used[np.lexsort((-time[used], -idle[used]))], arguments)
    columns = (
        (Column("GPU Idle", Unit.NS), idle[order]),
        (Column("Time in Calls", Unit.NS), time[order]),
        (Column("Calls", Unit.COUNT), count[order]),
        (Column("NVTX Range"), [texts[row] for row in order.tolist()]),
    )
    findings = idle_findings(case, "sync_by_range", (Cause.SYNC, Cause.COPY))
    return Result(columns, findings, hidden=hidden)


@rule(
    "Modules loaded or compiled again and again",
    advice="Code is loaded or compiled while the GPU could work: warm up before the loop, load"
    " eagerly (CUDA_MODULE_LOADING=EAGER), or ship code for this GPU.",
    nothing="Nothing is loaded or compiled from the second step on, or without steps again.",
)
def module_loading(case: Case, arguments: Arguments) -> Result:
    """Module loads, lazy function loads and JIT compilation from the second step on.

    Without steps it must come again and again, before kernels which ran already. Calls under 20 us
    look something up that is there already, and are left out.
    """
    lo, hi = case.loop
    api, events = case.report.api, case.report.host_events
    gaps = case.stalls.gaps
    loading = gaps.take((gaps.cause == Cause.MODULE) & (gaps.edge == Edge.INNER))
    again = case.has_loop or not first_uses(case, loading).all()
    calls = _inside(case, case.calls) if again else np.empty(0, np.intp)
    calls = calls[case.work.api_classes[calls] == Cause.MODULE]
    calls = calls[api.durations(calls) >= LOOKUP_NS]
    others = np.flatnonzero(
        (host_event_classes(events) == Cause.MODULE) & (events.start >= lo) & (events.start < hi)
    )
    others = others if again else others[:0]
    owners = (api.thread_process[api.thread[calls]], events.thread_process[events.thread[others]])
    listed = [
        *((int(api.start[r]), int(api.end[r]), api_name(api.names[api.name[r]])) for r in calls),
        *((int(events.start[r]), int(events.end[r]), events.names[events.name[r]]) for r in others),
    ]
    listed.sort(key=lambda entry: (entry[0] - entry[1], entry[0]))
    shown, hidden = cut(listed, arguments)
    findings: list[Finding] = []
    if listed:
        where = _WHERE[case.has_loop]
        loads = intervals.union(*np.array([entry[:2] for entry in listed], np.int64).T)
        held = intervals.total(*loads)
        device, lost = case.idle_time.held_up(
            np.concatenate((api.start[calls], events.start[others])),
            np.concatenate((api.end[calls], events.end[others])),
            *factorise(np.concatenate(owners)),
        )
        findings = case.finding(
            "module_loading",
            f"code loaded or compiled {units.plural(len(loads[0]), 'time')} {where},"
            f" {units.format_duration(held)} in all, longest in {brief(listed[0][2], _CODE_CELLS)}",
            "keep it loaded: it is unloaded, and loaded again"
            if _UNLOADS * sum("Unload" in name for *_, name in listed) >= len(listed)
            else f"warm up before {_BEGINS[case.has_loop]}, or load modules eagerly",
            subject=f"code loaded {where}",
            saved_ns=intervals.total(*lost),
            window=listed[0][:2],
            device=device if device >= 0 else None,
            lost=lost,
        )
    columns = (
        (Column("Duration", Unit.NS), [end - start for start, end, _ in shown]),
        (Column("Start", Unit.NS), [start for start, _, _ in shown]),
        (Column("What"), [name for _, _, name in shown]),
    )
    return Result(columns, findings, hidden=hidden)


def _longer(values: Int64, steps: Iterations, some: Indices) -> int:
    """By how much the values of some steps pass the median of those that are counted, in all."""
    if not len(some):
        return 0
    return int((values[some] - np.median(values[steps.counted])).clip(0).sum())


def _launched(case: Case, rows: Indices) -> Int64:
    """How long some GPU work of a process takes by the step of it that launches it."""
    steps = steps_of(case, rows) if len(rows) else case.iterations
    if len(steps) != len(case.iterations):
        steps = case.iterations
    step = np.searchsorted(steps.start, case.begun(rows), side="right")
    took = case.report.operations.durations(rows)
    return np.asarray(sums(step, took, len(steps) + 1)[1:], np.int64)


def _of_their_kind(case: Case, some: Indices) -> Indices:
    """Some steps without those that mostly run what recurs in them alone: another kind of step."""
    ops, rows, steps = case.report.operations, case.operations, case.iterations
    if len(some) < 2 or not len(rows):
        return some
    chosen, last, other = np.zeros(len(steps) + 1, bool), *np.zeros((2, len(ops.names)), np.intp)
    chosen[some + 1] = True
    # Nearly all names come in other steps, too, as the first look at a few operations shows.
    alone = np.ones(len(ops.names), bool)
    for part in (rows[::_SPARSE], rows):
        mine = part[alone[ops.name[part]]]
        step = np.searchsorted(steps.start, case.begun(mine), side="right")
        alone[ops.name[mine[~chosen[step] & (step > 0)]]] = False
    mine, where = mine[chosen[step]], step[chosen[step]] - 1
    name = ops.name[mine]
    last[name] = where
    other[name[last[name] != where]] = 1
    other[~alone] = 0
    if not other.any():
        return some
    step = np.searchsorted(steps.start, case.begun(rows), side="right")
    mine, where = rows[chosen[step]], step[chosen[step]] - 1
    took, name = ops.durations(mine), ops.name[mine]
    whole, own = (np.bincount(where, time, len(steps)) for time in (took, took * other[name]))
    return some[2 * own[some] <= whole[some]]


def _slower_gpu(case: Case, some: Indices, lost: int) -> int:
    """The one of several GPUs that alone computes longer in some steps, -1 for none.

    A step's work may be launched in the one before: only the sum tells. It has to be half of the
    time that is lost: every sum differs by a little.
    """
    counted, longer = case.iterations.counted, {}
    for device in case.by_device:
        time = _launched(case, case.doing(device, Category.COMPUTE))
        longer[device] = max(0.0, float((time[some] - np.median(time[counted])).sum()))
    most = max(longer, key=lambda device: longer[device], default=-1)
    alone = len(longer) > 1 and 10 * longer[most] >= 9 * sum(longer.values())
    return most if alone and 2 * longer[most] >= lost else -1


def _how(case: Case, outliers: Indices, *, busy: bool) -> tuple[str, bool]:
    """How some steps differ, and whether it looks meant: work between them, or in each fourth."""
    steps, report = case.iterations, case.report
    after = steps.end - steps.own_end
    if len(steps.rows) and 2 * _longer(after, steps, outliers) > _longer(
        steps.duration, steps, outliers
    ):
        thread = report.ranges.threads[report.ranges.thread[steps.rows[0]]]
        inside = case.work.innermost(int(thread))
        codes = inside.longest(steps.own_end[outliers], steps.end[outliers], mostly=True)
        if name := normalise_nvtx(case.work.name(int(codes[0]))):
            return f" followed by {brief(name, _LABEL_CELLS // 2)}", True
    apart = np.unique(np.diff(outliers))
    if busy and len(outliers) > 2 and len(apart) == 1 and apart[0] > 1:
        return f", one in {apart[0]}, longer", True
    return " busy longer" if busy else " much slower", False


@rule(
    "Steps much slower than the others",
    advice="These steps take far longer than the median: look at their stalls, at the data loader"
    " and at what runs only now and then (checkpoints, evaluation).",
    nothing="No steps found, or all take about equally long.",
)
def slow_steps(case: Case, arguments: Arguments) -> Result:
    """Outliers among the iterations, where NVTX ranges tell what an iteration is.

    Steps that only wait for work of the ones before are not slow, nor are those that mostly run
    what recurs in such steps alone. What comes back at a fixed distance, or lies between two steps,
    is meant so: it is rated low.
    """
    steps = case.iterations
    outliers = steps.outliers if len(steps) > 2 else np.empty(0, np.intp)
    outliers = outliers[outliers >= case.warm_up_steps]
    rare = len(outliers) <= len(steps) * RARE
    if steps.rule is StepRule.PATTERN or (steps.rule in _REPEATS and not rare):
        # What merely repeats is no step: its instances differ by nature.
        outliers = outliers[:0]
    outliers = _of_their_kind(case, outliers)
    spans = (steps.start[outliers], steps.end[outliers])
    device, idle = case.idle_time.idlest((split.index for split in case.splits), spans)
    lost = _longer(steps.duration, steps, outliers)
    busy = bool(case.splits) and 2 * intervals.total(*idle) < lost
    if busy and len(outliers):
        device = _slower_gpu(case, outliers, lost)
        ops = case.report.operations
        mine = case.where(lambda rows: (ops.processes == steps.process)[ops.process[rows]])
        launched = _launched(case, mine) // max(len(used(ops.device[mine])), 1)
        if device < 0 and 2 * _longer(launched, steps, outliers) < lost:
            outliers = outliers[:0]
    slowest = outliers[np.argsort(-steps.duration[outliers], kind="stable")]
    order, hidden = cut(slowest, arguments)
    median = float(np.median(steps.steady)) if len(steps) > 2 else 0.0
    findings: list[Finding] = []
    if len(outliers):
        worst, closed = int(slowest[0]), int((~steps.never_closed).sum())
        why = longer_because(case.report, steps, worst, case.scope, case.work)
        what, meant = _how(case, outliers, busy=busy)
        by_range = " (by range)" if steps.rule is StepRule.OUTERMOST else ""
        findings = case.finding(
            "slow_steps",
            f"{units.out_of(len(outliers), closed)} steps{what}{by_range}:"
            f" {brief(steps.labels[worst], _LABEL_CELLS // 2)} takes"
            f" {units.format_duration(int(steps.duration[worst]))},"
            f" median {units.format_duration(round(median))}",
            f"look at what is longer there: {why}" if why else "look at the stalls of that step",
            subject="slow steps",
            saved_ns=0 if busy else lost,
            stake_ns=lost,
            device=device if device >= 0 else None,
            lost=None if busy or device < 0 else idle,
            at_most=Severity.LOW if meant else Severity.MEDIUM,
            window=(int(steps.start[worst]), int(steps.end[worst])),
            command=f"nsys-tui stalls REPORT --window {steps.start[worst]}/{steps.end[worst]}"
            if case.splits
            else "nsys-tui iterations REPORT",
            settle="" if case.splits else "nsys-tui iterations REPORT",
        )
    columns = (
        (Column("Step"), [steps.labels[device] for device in order.tolist()]),
        (Column("Start", Unit.NS), steps.start[order]),
        (Column("Time", Unit.NS), steps.duration[order]),
        (Column("Against Median", Unit.PERCENT, 1), 100 * steps.duration[order] / (median or 1.0)),
    )
    return Result(columns, findings, hidden=hidden)
