"""Our rule on what the host does before and after all GPU work."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.iterations.warm_up import CONTEXT_NS, does_more
from nsys_tui.analysis.rules.awaited import is_answered
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.analysis.rules.gap_facts import files_along
from nsys_tui.analysis.rules.host_only import (
    Part,
    State,
    Stretch,
    advice_for,
    state_of,
    stretch_of,
)
from nsys_tui.analysis.rules.idle_causes import MAY_BE_PIPE, PIPE_OR_FILE
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import brief

_NAME_CELLS: Final = 22
_CUDA_CALL: Final = re.compile(r"cu(da)?[A-Z]")


@rule(
    "What the host does before and after all GPU work",
    advice="Most of the session is not GPU work: make that part shorter, too, or leave it out of"
    " the capture (cudaProfilerStart and --capture-range).",
    nothing="GPU work has most of the session, or nothing tells what the host did besides.",
)
def outside_work(case: Case, arguments: Arguments) -> Result:
    """What the launching thread does before the first and after the last operation.

    Told where it computes, reads or writes for half of that, or works unseen between reads of one
    file, and that is half of the session; so is one call that allocates or loads code as long.
    What CUDA needs to start, which is the first long call but cuInit, or a program that waits to
    be asked, is no loss. Nothing is told where steps run of which CUDA is not recorded, or where
    samples hit calls that are not.
    """
    told = [(part, state_of(case, part)) for part in _outside(case)]
    rows, hidden = cut(np.arange(len(told)), arguments)
    shown = [told[row] for row in rows.tolist()]
    columns = (
        (Column("Time", Unit.NS), [part.ns for part, _ in shown]),
        (Column("Where"), [part.where for part, _ in shown]),
        (Column("Mostly"), [state.text(part.ns) for part, state in shown]),
    )
    findings = [one for part, state in told for one in _outside_finding(case, part, state)]
    return Result(columns, findings, hidden=hidden)


def _outside(case: Case) -> list[Part]:
    """The time of the launching thread before and after GPU work, where it is half of all."""
    calls, (lo, hi) = case.calls, case.report.extent
    if not case.works or case.scope.window is not None or not len(calls) or case.coverage:
        return []
    main = int(case.report.api.threads[np.bincount(case.report.api.thread[calls]).argmax()])
    edges = (
        ("before the first GPU work", lo, case.base[0]),
        ("after the last GPU work", case.base[1], hi),
    )
    return [
        Part(where, (stretch_of(main, start, end),))
        for where, start, end in edges
        if 2 * (end - start) >= hi - lo
    ]


def _outside_finding(case: Case, part: Part, state: State) -> list[Finding]:
    (one,) = part.stretches
    lasts = state.ns if state.cause in (Cause.HOST, Cause.IO) else _one_call(case, part, state)
    unrecorded = state.cause is Cause.HOST and _CUDA_CALL.match(state.name)
    how, advice = state.text(part.ns), advice_for(case, part, state)
    if reads := _reads(case, one, state):
        lasts, advice = state.ns, PIPE_OR_FILE
        how = f"{units.format_share(lasts, part.ns)} between calls of {brief(reads, _NAME_CELLS)}"
    if 2 * lasts < part.ns or unrecorded or is_answered(case, one.thread, (one.starts, one.ends)):
        return []
    told = f"{units.format_duration(part.ns)} {part.where} ({how})"
    return case.finding(
        "outside_work",
        told,
        advice,
        subject=told,
        saved_ns=0,
        window=part.longest,
        command="nsys-tui stacks REPORT",
        at_least=Severity.MEDIUM,
    )


def _reads(case: Case, stretch: Stretch, state: State) -> str:
    """The call that reads one file all along a time of which nothing else is recorded."""
    if state.cause is not Cause.NOTHING:
        return ""
    name, along = files_along(case, stretch.thread, stretch.starts, stretch.ends)
    return name if along.all() and MAY_BE_PIPE.match(name) else ""


def _one_call(case: Case, part: Part, state: State) -> int:
    """The longest call that allocates or loads code there, but the one that sets its process up.

    That is the first long one that does more than start the driver, such as cuInit, and ask.
    Others may be long for each GPU whose context they set up.
    """
    if state.cause not in (Cause.ALLOCATION, Cause.MODULE):
        return 0
    (stretch,), api = part.stretches, case.report.api
    process = api.thread_process[api.thread] == stretch.thread & PROCESS_MASK
    long = np.flatnonzero(process & (api.end - api.start >= CONTEXT_NS))
    long = long[does_more(api, long)]
    later = long[np.argsort(api.start[long], kind="stable")][1:]
    later = later[case.work.api_classes[later] == state.cause]
    later = later[(api.start[later] >= stretch.starts[0]) & (api.end[later] <= stretch.ends[0])]
    return int(api.durations(later).max(initial=0))
