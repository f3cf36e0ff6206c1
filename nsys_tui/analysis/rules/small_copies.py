"""Our rule on small copies: each costs a call, and a wait where the host reads a value."""

from __future__ import annotations

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
from nsys_tui.model.arrays import Indices, Int32, Integers
from nsys_tui.model.groups import factorise_rows, rows_of_codes, sums
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
    of_kind = np.bincount(series[small, 0], count[small])
    small = small[of_kind[series[small, 0]] >= arguments.count("count")]
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
    """What small copies cost: the GPU idles in their calls, between them and in waits after them.

    What is launched after such a wait would have been launched ahead without it, as far as the time
    in which the host waited hides what it does in between.
    """
    report, ops, api = case.report, case.report.operations, case.report.api
    called = rows[report.calls[rows] >= 0]
    calls = report.calls[called]
    # Within a GPU a copy is but a launch: what makes its call long is something else.
    launched = ops.copy_kind[called] == DEVICE_TO_DEVICE
    calls = calls[~launched | (api.durations(calls) < LONG_CALL_NS)]
    following = _following(case)

    def after(some: Integers, cause: Cause) -> Integers:
        waiting = following[some]
        kept: Integers = waiting[(waiting >= 0) & (case.work.api_classes[waiting] == cause)]
        return kept

    waits = after(calls, Cause.SYNC)
    blocking = calls[case.work.api_classes[calls] == Cause.COPY]
    gpu, lost = case.idle_time.held_up_by_calls(np.concatenate((calls, waits)))
    gpu = int(ops.device[of_top[0]]) if gpu < 0 else gpu
    before, next_to, done, resumed = case.short_gaps(gpu, case.launch_bound(gpu))
    in_row = np.isin(before, rows) & np.isin(next_to, rows)
    lost = intervals.joined(lost, (done[in_row], resumed[in_row]))
    device, idle = case.device_labels([gpu]), intervals.total(*lost)
    # Only what reads a value makes the host wait for it, and only a GPU's own host holds it up.
    mine = np.isin(ops.process[rows], np.unique(ops.process[case.by_device[gpu]]))
    reads = report.calls[rows[mine & (ops.copy_kind[rows] == DEVICE_TO_HOST)]]
    waits = np.concatenate(
        (blocking[np.isin(blocking, reads)], after(reads[reads >= 0], Cause.SYNC))
    )
    waits = np.sort(waits[following[waits] >= 0])
    waits = waits[case.work.api_classes[following[waits]] != Cause.ALLOCATION]
    late = following[waits]
    launches = case.work.api_classes[late] == Cause.API
    begun, ended = api.end[waits], np.where(launches, api.end[late], api.start[late])
    after_them = free_time(case, api.thread[waits], begun, ended)
    starts, ends = case.idle_time.idle_part(gpu, after_them)
    then = intervals.total(starts, ends)
    # A call left out brings the host ahead by what it lasts, less what idles in it.
    idled = intervals.covered(lost, api.start[waits], begun)
    ahead = lead(begun, api.durations(waits) - idled, ends, ends - starts)
    hidden = (starts, starts + np.minimum(ahead, ends - starts))
    saved = idle + intervals.total(*hidden)
    told = f"{units.format_duration(saved)} meanwhile"
    if then > idle:
        told = f"{units.format_duration(idle)} in them, {units.format_duration(then)} after"
    kind, size = int(ops.copy_kind[of_top[0]]), int(ops.bytes[of_top[0]])
    most = most_of(len(of_top), len(rows))
    advice = _GATHER[kind in HOST_COPIES]
    if all(of_mpi := [mpi_advice(case, rows[ops.copy_kind[rows] == way]) for way in HOST_COPIES]):
        advice = of_mpi[0]
    elif kind == DEVICE_TO_HOST and size <= VALUE and len(waits):
        advice = READ_LESS
    elif then > idle:
        advice = _READ_LATER[kind == DEVICE_TO_HOST]
    return case.finding(
        "small_copies",
        f"{units.format_count(len(rows))} small copies, {most} {units.format_bytes(size)}"
        f" {DIRECTIONS[kind]}: {device} idle {told}",
        advice,
        subject="small copies",
        saved_ns=saved,
        window=(int(ops.start[of_top[0]]), int(ops.end[of_top[-1]])),
        device=gpu,
        lost=lost,
        gone=intervals.joined(lost, hidden),
    )


def _following(case: Case) -> Int32:
    """Of each API call the next one of its thread, -1 for none."""
    api, rows = case.report.api, case.calls
    wait = np.full(len(api), -1, np.int32)
    for mine in rows_of_codes(api.thread[rows], len(api.threads)):
        wait[rows[mine[:-1]]] = rows[mine[1:]]
    return wait
