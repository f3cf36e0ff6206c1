"""Our rule on small copies: each costs a call, and a wait where the host reads a value."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.begun import lead
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.copy_advice import mpi_advice
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.gap_facts import free_time
from nsys_tui.analysis.rules.nsys import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    DIRECTIONS,
    HOST_COPIES,
    READ_LESS,
    SERIES,
    SMALL_COPY,
    VALUE,
)
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, most_of, rule
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stalls.explained import LONG_CALL_NS
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import among, factorise_rows, rows_of_values, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit

_GATHER: Final = (
    "move the data by one kernel",
    "gather them in one copy, enlarge batches, or keep the data on the GPU",
)
"""What to do about small copies on a GPU, or to and from it."""
_READ_LATER: Final = (
    "read results later, so that the host launches ahead, and gather the other copies in one",
    "read them later, or all at once, so that the host launches ahead",
)
"""What to do where the host is late after reads, and most are other copies, or these reads."""
_FREES: Final = re.compile(r"cu(da|Mem)Free(?!.*Async)")
"""Calls that wait until the GPU is done before they give memory back."""
_OFTEN: Final = 3
"""Values that the host waits for are the point from one of so many copies on."""


@rule(
    "Small or repeated copies",
    advice="Many small copies cost a launch each: gather them in one buffer, keep the data on the"
    " GPU, or let a kernel produce or move it.",
    nothing="No series of small or repeated copies.",
    parameters=(
        Parameter("small", SMALL_COPY, "size in bytes up to which a copy is small"),
        Parameter("count", SERIES, "so many of one size and direction count as a series"),
    ),
)
def small_copies(case: Case, arguments: Arguments) -> Result:
    """Copies of one direction and size that occur again and again.

    The finding is of small ones, whatever the size of each.
    """
    report, ops = case.report, case.report.operations
    rows = case.copies[np.isin(ops.copy_kind[case.copies], [*DIRECTIONS])]
    group, series = factorise_rows((ops.copy_kind[rows], ops.bytes[rows]))
    count = np.bincount(group, minlength=len(series))
    calls = report.calls[rows]
    held = np.where(calls >= 0, report.api.durations(calls) if len(report.api) else 0, 0)
    host = sums(group, held, len(series))
    gpu = sums(group, ops.durations(rows), len(series))
    wanted = np.flatnonzero(count >= arguments.count("count"))
    order, hidden = cut(wanted[np.argsort(-(host + gpu)[wanted], kind="stable")], arguments)
    small = np.flatnonzero(series[:, 1] <= arguments.count("small"))
    mine = rows[np.isin(group, small)]
    of_gpu, kinds = factorise_rows((ops.device[mine], ops.copy_kind[mine]))
    often = kinds[np.bincount(of_gpu) >= arguments.count("count"), 1]
    small = small[np.isin(series[small, 0], often)]
    findings: list[Finding] = []
    if len(small):
        top = int(small[np.argmax(host[small])])
        findings = _small_copies(case, rows[np.isin(group, small)], rows[group == top])
    columns = (
        (Column("Count", Unit.COUNT), count[order]),
        (Column("Bytes Each", Unit.BYTES), series[order, 1]),
        (Column("Direction"), [DIRECTIONS[kind] for kind in series[order, 0].tolist()]),
        (Column("Host Time", Unit.NS), host[order]),
        (Column("GPU Time", Unit.NS), gpu[order]),
        (Column("Bytes", Unit.BYTES), series[order, 1] * count[order]),
    )
    return Result(columns, findings, hidden=hidden)


def _small_copies(case: Case, rows: Indices, of_top: Indices) -> list[Finding]:
    """What small copies cost: the GPU idles in their calls, between them and in waits beside them.

    The next kernel would have been launched ahead without them, as far as their time hides what the
    host does in between.
    """
    report, ops, api = case.report, case.report.operations, case.report.api
    called = rows[report.calls[rows] >= 0]
    calls = report.calls[called]
    # Within a GPU a copy is but a launch: what makes its call long is something else.
    launched = ops.copy_kind[called] == DEVICE_TO_DEVICE
    kept = ~launched | (api.durations(calls) < LONG_CALL_NS)
    reads = calls[ops.copy_kind[called] == DEVICE_TO_HOST]
    left_out, waits = _with_waits(case, calls[~launched], reads)
    gpu, lost = case.idle_time.held_up_by_calls(np.union1d(calls[kept], left_out))
    gpu = int(ops.device[of_top[0]]) if gpu < 0 else gpu
    before, next_to, done, resumed = case.short_gaps(gpu, case.launch_bound(gpu))
    in_row = np.isin(before, rows, kind="table") & np.isin(next_to, rows, kind="table")
    lost = intervals.joined(lost, (done[in_row], resumed[in_row]))
    device, idle = case.device_labels([gpu]), intervals.total(*lost)
    hidden = _after(case, gpu, left_out, lost)
    then, told = intervals.total(*hidden), units.format_duration(idle + intervals.total(*hidden))
    kind, size = int(ops.copy_kind[of_top[0]]), int(ops.bytes[of_top[0]])
    most = most_of(len(of_top), len(rows))
    values = waits[np.isin(waits, report.calls[rows[ops.bytes[rows] <= VALUE]])]
    advice = _GATHER[kind in HOST_COPIES]
    if all(of_mpi := [mpi_advice(case, rows[ops.copy_kind[rows] == way]) for way in HOST_COPIES]):
        advice = of_mpi[0]
    elif _OFTEN * len(values) >= len(rows):
        advice = READ_LESS
    elif then > idle and len(waits):
        advice = _READ_LATER[kind == DEVICE_TO_HOST]
    return case.finding(
        "small_copies",
        f"{units.format_count(len(rows))} small copies, {most} {units.format_bytes(size)}"
        f" {DIRECTIONS[kind]}: {device} idle {told} meanwhile",
        advice,
        subject="small copies",
        saved_ns=idle + then,
        window=(int(ops.start[of_top[0]]), int(ops.end[of_top[-1]])),
        device=gpu,
        lost=lost,
        gone=intervals.joined(lost, hidden),
    )


def _after(case: Case, device: int, calls: Integers, lost: Intervals) -> Intervals:
    """When a GPU would not idle from calls to the next launch of their threads without them.

    A call left out brings the host ahead by what it lasts, less what idles in it; where another
    call waits for the GPU before that launch, it brings it nowhere.
    """
    api, late = case.report.api, _launches_next(case, device, calls)
    calls, late = calls[late >= 0], late[late >= 0]
    free = free_time(case, api.thread[calls], api.end[calls], api.end[late])
    free = intervals.subtract(free, intervals.joined(lost, api.runs(calls), case.set_up))
    starts, ends = case.idle_time.idle_part(device, free)
    calls = calls[np.argsort(api.end[calls], kind="stable")]
    idled = intervals.covered(lost, api.start[calls], api.end[calls])
    ahead = lead(api.end[calls], api.durations(calls) - idled, ends, ends - starts)
    return starts, starts + np.minimum(ahead, ends - starts)


def _launches_next(case: Case, device: int, calls: Integers) -> Integers:
    """Of each call the next one of its thread that launches no copy, -1 if others wait before."""
    api, late = case.report.api, np.full(len(calls), -1, np.intp)
    thread, rows = api.thread, case.by_device[device]
    frees = np.array([_FREES.match(name) is not None for name in api.names], np.bool_)
    waits = among(case.work.api_classes, (Cause.SYNC, Cause.COPY)) | frees[api.name]
    waits[calls] = False
    others = np.flatnonzero(waits)
    _, launches = case.report.called(rows[case.report.operations.category[rows] != Category.MEMORY])
    launches = np.sort(launches)
    for caller, mine in rows_of_values(thread[calls]):
        own = np.append(launches[thread[launches] == caller], -1)
        held = np.append(others[thread[others] == caller], len(thread))
        late[mine] = own[np.searchsorted(own[:-1], calls[mine])]
        late[mine[late[mine] > held[np.searchsorted(held, calls[mine])]]] = -1
    return late


def _with_waits(case: Case, calls: Integers, reads: Integers) -> tuple[Integers, Integers]:
    """Calls with the waits after all of them and before reads, and which reads are waited for."""
    classes, of_read = case.work.api_classes, np.concatenate((calls, reads, reads))
    step = np.repeat((1, -1, 1), (len(calls), len(reads), len(reads)))
    beside = _beside(case, of_read, step)
    waits = (beside >= 0) & (classes[beside] == Cause.SYNC)
    awaited = (classes[reads] == Cause.COPY) | waits[len(calls) + len(reads) :]
    waits[len(calls) + len(reads) :] = False
    return np.union1d(calls, beside[waits]), reads[awaited]


def _beside(case: Case, calls: Integers, step: Integers) -> Integers:
    """Of each call the one so many before or after it on its thread, -1 for none."""
    near = np.full(len(calls), -1, np.intp)
    for thread, mine in rows_of_values(case.report.api.thread[calls]):
        rows = case.work.calls(thread)
        then = np.searchsorted(rows, calls[mine]) + step[mine]
        known = (then >= 0) & (then < len(rows))
        near[mine[known]] = rows[then[known]]
    return near
