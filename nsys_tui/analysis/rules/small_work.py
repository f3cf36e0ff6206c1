"""Our rules on kernels too small for their launches or for the GPU alone, or waited for by them."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.launches import launches_graphs
from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.finding import TITLE_CELLS, Finding
from nsys_tui.analysis.rules.gap_facts import waits_for_each
from nsys_tui.analysis.rules.gpu_work import filled
from nsys_tui.analysis.rules.launch_rate import late_launches, pace_ns, queued_alike, would_queue
from nsys_tui.analysis.rules.register import RULES, Arguments, Parameter, Result, cut, most_of, rule
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.analysis.rules.warm_up import first_uses
from nsys_tui.analysis.stalls.causes import Cause, Edge, Gaps
from nsys_tui.analysis.stalls.explained import wait_causes
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import regroup, rows_of_values, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import brief

_NAME_CELLS: Final = 24
_NEARLY_ALL: Final = 0.9
_SPARSE: Final = 4
_TINY_NS: Final = 10_000
_NEXT_NS: Final = 1_000_000
"""A launch that comes later after a kernel waits for something else, too."""


@rule(
    "Tiny kernels launched one by one",
    advice="A launch takes longer than these kernels: fuse them, let one launch do more, or capture"
    " the sequence as a CUDA graph.",
    nothing="Few kernels are shorter than their launches, or a graph launches them.",
    parameters=(
        Parameter("longest", _TINY_NS / 1000, "kernels shorter than this are tiny, in us"),
    ),
)
def tiny_kernels(case: Case, arguments: Arguments) -> Result:
    """Kernels by name that end before another can be launched, with a launch call for each.

    What could be saved is the time in which a GPU is idle while such a launch is made, or beside
    such a kernel until the next one comes straight after it, whichever is more, without what
    happens once: by a CUDA graph the part of it that queued kernels would not need, where these are
    queued between two of them, which fusing leaves out.
    """
    ops, longest = case.report.operations, arguments.number("longest")
    rows, calls = _one_by_one(case, 1000 * longest)
    codes, names = regroup(ops.name[rows], ops.shown)
    count = np.bincount(codes, minlength=len(names))
    time = sums(codes, ops.durations(rows), len(names))
    most = np.lexsort((-time, -count))[: np.count_nonzero(count)]
    order, hidden = cut(most, arguments)
    findings = _tiny(case, rows, calls, codes == most[0]) if len(rows) >= A_RUN else []
    columns = (
        (Column("Launches", Unit.COUNT), count[order].astype(np.int64)),
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Mean", Unit.NS), time[order] / np.maximum(count[order], 1)),
        (Column("Kernel"), [names[code] for code in order.tolist()]),
    )
    return Result(columns, findings, hidden=hidden)


@kept
def _one_by_one(case: Case, longest: float) -> tuple[Indices, Indices]:
    """Kernels shorter than so many ns, or than launches are apart, with a call for each."""
    report, ops = case.report, case.report.operations
    longest = max(longest, pace_ns(case))
    rows = case.where(
        lambda rows: (ops.durations(rows) < longest) & (ops.kind[rows] == OpKind.KERNEL)
    )
    rows, calls = report.called(rows)
    alone = (np.bincount(calls)[calls] == 1) & ~launches_graphs(report, calls)
    return rows[alone], calls[alone]


def between_tiny(case: Case, gaps: Gaps) -> Bool:
    """Which gaps straight from one launch to the next lie beside kernels that are told as tiny."""
    ops, told = case.report.operations, RULES["tiny_kernels"].run(case).findings
    chosen = np.zeros(len(ops), bool)
    chosen[_one_by_one(case, float(_TINY_NS))[0] if told else []] = True
    beside = chosen[gaps.previous] | chosen[gaps.next]
    return beside & queued_alike(ops, gaps.previous) & queued_alike(ops, gaps.next)


def _tiny(case: Case, rows: Indices, calls: Integers, top: Bool) -> list[Finding]:
    ops = case.report.operations
    device, lost = case.idle_time.held_up_by_calls(calls)
    mine = ops.device[rows] == device
    if not mine.any():
        return []
    rows, calls, top = rows[mine], calls[mine], top[mine]
    gaps = case.stalls.gaps
    gaps = gaps.take((gaps.device == device) & (gaps.edge == Edge.INNER))
    once = gaps.take(first_uses(case, gaps))
    apart = intervals.joined(*_off(case, device, calls), (once.start, once.end))
    around, between = _between(case, rows, device)
    lost, around, between = (intervals.subtract(one, apart) for one in (lost, around, between))
    where = "in their launches"
    if intervals.total(*around) > intervals.total(*lost):
        lost, where = around, "around them"
    graph, took = intervals.total(*case.idle_time.late_part(device, lost)), ops.durations(rows)
    if not (graphs := 2 * graph >= intervals.total(*lost)) and lost is around:
        lost, where = between, "between them"
    idle = intervals.total(*lost)
    each = words.WAIT_LESS * (graphs and would_queue(case, calls, device, lost))
    each = f"{seldom}, then " if (seldom := waits_for_each(case, calls)) else each
    often, half = int(np.count_nonzero(top)), units.format_duration(int(np.median(took)))
    kernels = f"{units.format_count(len(rows))} kernels of {half}"
    idles = f": {case.device_labels([device])} idle {units.format_duration(idle)} {where}"
    shown = rows[top] if often else rows
    if often:
        led, times = f", {most_of(often, len(rows))} ", f" ({units.format_count(often)})"
        room = TITLE_CELLS - len(kernels + led + times + idles)
        name = brief(ops.shown[ops.name[shown[0]]], min(_NAME_CELLS, room))
        kernels += led + name + times
    return case.finding(
        "tiny_kernels",
        kernels + idles,
        f"{each}{'capture a CUDA graph, or ' * graphs}fuse them: that shortens"
        f" their own {units.format_duration(int(took.sum()))} of GPU time, too",
        subject="idle around tiny kernels",
        saved_ns=graph if graphs else idle,
        window=(int(ops.start[shown[0]]), int(ops.end[shown[-1]])),
        device=device,
        screen="3",
        lost=lost,
    )


def _off(case: Case, device: int, calls: Integers) -> list[Intervals]:
    """When threads of some launches are off the CPU, by thread: before what they launch next.

    One that hands over to another, such as to that of the backward pass, waits for that one.
    """
    ops, api, work = case.report.operations, case.report.api, case.work.scheduling
    off = {int(one): work.thread(int(api.threads[one])).off for one in np.unique(api.thread[calls])}
    if len(off) < 2 or not any(len(one[0]) for one in off.values()):
        return list(off.values())
    rows, calls = case.report.called(case.by_device[device])
    starts = ops.start[rows]
    since = np.append(starts[:1], np.minimum(ops.end[rows[:-1]], starts[1:]))
    return [
        intervals.meet(off[caller], intervals.union(since[mine], starts[mine]))
        for caller, mine in rows_of_values(api.thread[calls])
        if caller in off
    ]


def _between(case: Case, rows: Indices, device: int) -> tuple[Intervals, Intervals]:
    """When a device idles beside a kernel of some, and between two: shortly, or in a run."""
    ops = case.report.operations
    chosen = np.zeros(len(ops), bool)
    chosen[rows] = True
    before, after, starts, ends = late_launches(case, device)
    kept = queued_alike(ops, before) & queued_alike(ops, after)
    beside, both = (
        kept & one for one in (chosen[before] | chosen[after], chosen[before] & chosen[after])
    )
    return intervals.union(starts[beside], ends[beside]), intervals.union(starts[both], ends[both])


@rule(
    "Launches that wait for their kernels",
    advice="Each launch returns only when its kernel is done, so the GPU idles until the next one:"
    " unset CUDA_LAUNCH_BLOCKING, which is meant for debugging.",
    nothing="Launches return before their kernels are done.",
    parameters=(
        Parameter("shortest", 10.0, "leave out shorter kernels, in us"),
        Parameter("count", 20, "so many launches count"),
    ),
)
def blocking_launches(case: Case, arguments: Arguments) -> Result:
    """Kernels during all of which the call that launches them goes on; told if nine of ten are so.

    The kernel has most of the call: a launch that is slow itself waits for none. Where these wait,
    shorter kernels whose calls outlast them are waited for, too. What could be saved is the idle
    time from each straight to the next, up to 1 ms, as far as the GPU's work can hide it.
    """
    ops, shortest = case.report.operations, 1000 * arguments.number("shortest")
    long = case.where(
        lambda rows: (ops.durations(rows) >= shortest) & (ops.kind[rows] == OpKind.KERNEL)
    )
    least = max(arguments.count("count"), _NEARLY_ALL * len(long))
    some = long[::_SPARSE]  # Mostly so many of them wait for nothing that the others matter not.
    many = len(long) - len(some) + len(_waited_for(case, some, 0.5)) >= least
    many = many and len(_waited_for(case, long, 0.5)) >= least
    rows = long[:0]
    if many:
        kernels = case.where(lambda rows: ops.kind[rows] == OpKind.KERNEL)
        rows = _waited_for(case, kernels, 0)
    codes, names = regroup(ops.name[rows], ops.shown)
    count = np.bincount(codes, minlength=len(names))
    order, hidden = cut(np.argsort(-count, kind="stable")[: np.count_nonzero(count)], arguments)
    columns = (
        (Column("Launches", Unit.COUNT), count[order].astype(np.int64)),
        (Column("Kernel"), [names[code] for code in order.tolist()]),
    )
    return Result(columns, _blocked(case, rows) if len(rows) else (), hidden=hidden)


def _waited_for(case: Case, rows: Indices, share: float) -> Indices:
    """Kernels throughout which their calls go on, and that have such a part of these at least."""
    api, ops = case.report.api, case.report.operations
    rows, calls = case.report.called(rows)
    waits = api.end[calls] >= ops.end[rows]
    rows, calls = rows[waits], calls[waits]
    much = ops.durations(rows) >= share * api.durations(calls)
    return rows[much & (api.start[calls] <= ops.start[rows])]


def _blocked(case: Case, rows: Indices) -> list[Finding]:
    ops = case.report.operations
    device = int(np.bincount(ops.device[rows]).argmax())
    rows = rows[ops.device[rows] == device]
    apart = ops.start[rows[1:]] - ops.end[rows[:-1]]
    near = np.flatnonzero((apart > 0) & (apart <= _NEXT_NS))
    gaps = ops.end[rows[near]], ops.start[rows[near + 1]]
    bare = intervals.covered(case.idle_time.idle_part(device, gaps), *gaps) == apart[near]
    lost = gaps[0][bare], gaps[1][bare]
    idle = intervals.total(*lost)
    return case.finding(
        "blocking_launches",
        f"{units.format_count(len(rows))} launches return only when their kernel is done:"
        f" {case.device_labels([device])} idle {units.format_duration(idle)} after them",
        "unset CUDA_LAUNCH_BLOCKING, or whatever makes each launch wait, so that launches queue up",
        subject="launches that wait for their kernels",
        saved_ns=min(idle, case.idle_time.busy_ns(device)),
        window=(int(ops.start[rows[0]]), int(ops.end[rows[-1]])),
        device=device,
        lost=lost,
    )


@rule(
    "Streams whose kernels never run together",
    advice="Kernels on other streams would fit beside these and were launched in time: create the"
    " streams with cudaStreamNonBlocking, or keep work off the default stream.",
    nothing="Kernels of several streams overlap, fill the GPU, or wait for events; or there is one"
    " stream.",
    parameters=(Parameter("count", 20, "so many pairs count"),),
)
def serial_streams(case: Case, arguments: Arguments) -> Result:
    """Pairs of neighbouring kernels on two streams that could have run together, and did not.

    Work on the default stream may lie between them, which parts streams that wait for it. The
    second was launched before the first began, waits for no event, and both grids together
    leave SMs empty. What could be saved is at most what the streams but the longest one take,
    and the shorter of each pair where no default stream parts the others, too.
    """
    ops = case.report.operations
    firsts, seconds, parted = _pairs(case)
    if len(firsts) < arguments.count("count"):
        firsts, seconds = firsts[:0], seconds[:0]
    findings: list[Finding] = []
    if len(firsts):
        findings = _serial(case, firsts, seconds, 2 * int(parted.sum()) > len(firsts))
    lost = np.minimum(ops.durations(firsts), ops.durations(seconds))
    order, hidden = cut(np.argsort(-lost, kind="stable"), arguments)
    columns = (
        (Column("Could Save", Unit.NS), lost[order]),
        (Column("Start", Unit.NS), ops.start[seconds[order]]),
        (Column("Stream"), [ops.streams[c].label for c in ops.stream[seconds[order]]]),
        (Column("Kernel"), [ops.shown[code] for code in ops.name[seconds[order]]]),
    )
    return Result(columns, findings, hidden=hidden)


def _pairs(case: Case) -> tuple[Indices, Indices, Bool]:
    """Neighbouring kernels that could have run together, and which the default stream parts."""
    report, ops = case.report, case.report.operations
    pairs = [(*np.empty((2, 0), np.intp), np.empty(0, np.bool_))]
    default, blocking = (
        np.array([getattr(stream, what) for stream in ops.streams], np.bool_)
        for what in ("default", "blocking")
    )
    for device, rows in case.by_device.items() if len(report.api) else ():
        reach = np.maximum.accumulate(ops.end[rows])
        before, at, around = _neighbours(ops.stream[rows], default)
        free = ops.start[rows[at]] >= reach[at - 1]
        a, b, around = rows[before[free]], rows[at[free]], around[free]
        on_default = default[ops.stream[a]] | default[ops.stream[b]]
        waits = (default | blocking)[ops.stream[a]] & (default | blocking)[ops.stream[b]]
        call = report.calls[b]
        kept = (ops.category[a] == Category.COMPUTE) & (ops.category[b] == Category.COMPUTE)
        kept &= (call >= 0) & (ops.process[a] == ops.process[b]) & (waits | ~around)
        kept[kept] = report.api.end[call[kept]] < ops.start[a[kept]]
        a, b, by_default = a[kept], b[kept], ((on_default | around) & waits)[kept]
        room = filled(case, a) + filled(case, b) <= 1
        a, b, by_default = a[room], b[room], by_default[room]
        free = wait_causes(report, b, report.api.start[report.calls[b]]) != Cause.EVENT
        free &= _alone(case, device, np.stack((a, b))).all(axis=0)
        pairs.append((a[free], b[free], by_default[free]))
    first, second, parted = map(np.concatenate, zip(*pairs, strict=True))
    return first, second, parted


def _alone(case: Case, device: int, kernels: Indices) -> Bool:
    """Which of some kernels run for nearly all of their time while no other kernel does."""
    ops, rows = case.report.operations, case.doing(device, Category.COMPUTE)
    at = np.searchsorted(rows, kernels)
    reach = np.append(-FARTHEST, np.maximum.accumulate(ops.end[rows]))[at]
    until = np.append(ops.start[rows], FARTHEST)[at + 1]
    alone = np.minimum(ops.end[kernels], until) - np.maximum(ops.start[kernels], reach)
    return np.asarray(alone >= _NEARLY_ALL * ops.durations(kernels), np.bool_)


def _neighbours(stream: Integers, default: Bool) -> tuple[Indices, Indices, Bool]:
    """Places of neighbours on two streams; those that default streams' work lies between, too."""
    at = np.flatnonzero(stream[1:] != stream[:-1]) + 1
    others = np.flatnonzero(~default[stream])
    apart = np.flatnonzero(np.diff(others) > 1)
    apart = apart[stream[others[apart]] != stream[others[apart + 1]]]
    before, after = np.append(at - 1, others[apart]), np.append(at, others[apart + 1])
    return before, after, np.arange(len(after)) >= len(at)


def _serial(case: Case, firsts: Indices, seconds: Indices, by_default: bool) -> list[Finding]:
    ops = case.report.operations
    device = int(np.bincount(ops.device[seconds]).argmax())
    mine = ops.device[seconds] == device
    firsts, seconds = firsts[mine], seconds[mine]
    lost = np.minimum(ops.durations(firsts), ops.durations(seconds))
    rows = np.union1d(firsts, seconds)
    by_stream = sums(ops.stream[rows], ops.durations(rows), len(ops.streams))
    # Without the default stream's those before and after it run together, too.
    saved = int(by_stream.sum() - by_stream.max())
    saved = saved if by_default else min(saved, int(lost.sum()))
    why = "the default stream parts them" if by_default else "nothing recorded orders them"
    worst = int(np.argmax(lost))
    streams = np.count_nonzero(by_stream)
    return case.finding(
        "serial_streams",
        f"{units.format_count(len(seconds))} kernels on {streams} streams of"
        f" {case.device_labels([device])} fit together and run apart: {why}",
        "create streams with cudaStreamNonBlocking, and keep work off the default stream"
        if by_default
        else "see what holds them back, such as CUDA_DEVICE_MAX_CONNECTIONS or a full launch queue",
        subject="kernels of several streams run apart",
        saved_ns=saved,
        window=(int(ops.start[firsts[worst]]), int(ops.end[seconds[worst]])),
        device=device,
    )
