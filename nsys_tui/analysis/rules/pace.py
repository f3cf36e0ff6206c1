"""Our rules on who works when: processes by turns, GPUs without work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.analysis.rules.gpu_work import filled
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of
from nsys_tui.names import brief

_TURNS: Final = 20
_HARDLY: Final = 0.001
"""Part of what the busiest GPU does below which one hardly works."""
_NAME_CELLS: Final = 15
_GPUS_NAMED: Final = 3


@rule(
    "GPUs that work for several processes",
    advice="Without MPS a GPU switches between processes, and their kernels never run together:"
    " use MPS where they leave room for each other, else a GPU for each process.",
    nothing="Each GPU works for one process, or for several that do not wait for each other on it.",
    parameters=(Parameter("share", 10.0, "share of a GPU's time that counts, in percent"),),
)
def shared_gpus(case: Case, arguments: Arguments) -> Result:
    """GPUs that switch often between processes, or whose processes' kernels have no room together.

    Of processes that call GPUs alike it has to be known that they mean the same one.

    What could be saved is at most what all but the longest process take, as far as the blocks of
    kernels leave SMs empty and a process waits, with its kernel launched, while another one runs.
    """
    ops = case.report.operations
    listed: list[tuple[str, str, int, float]] = []
    findings: list[Finding] = []
    known = case.report.can(Capability.LAUNCH_SHAPES)
    for device, rows in case.by_device.items() if len(ops.processes) > 1 else ():
        rows = rows[ops.category[rows] != Category.MEMORY]
        code = ops.process[rows]
        if (code[1:] == code[:-1]).all():
            continue
        time = sums(code, ops.durations(rows), len(ops.processes))
        turns = np.flatnonzero(np.diff(code))
        several = case.report.devices[device].may_be_several
        if several or len(turns) < _TURNS or np.count_nonzero(time) < 2:
            continue
        order = [c for c in np.argsort(-time, kind="stable").tolist() if time[c]]
        whole, second = int(time.sum()), int(time[order[1]])
        spans = [rows[code == c] for c in order[:2]]
        runs = [ops.runs(of_process) for of_process in spans]
        together = intervals.overlap_length(*runs)
        by_turns, work = 10 * together <= second, ops.durations(rows) * filled(case, rows)
        room = whole - int(work.sum())
        fits = not known or sum(work[code == c].sum() / time[c] for c in order[:2]) <= 1
        if 100 * second < arguments.number("share") * whole or (fits and not by_turns):
            continue
        held = _held(case, spans, runs) if len(case.report.api) else second
        if by_turns and 100 * held < second:
            continue
        label, how = case.device_labels([device]), "by turns" if by_turns else "at once"
        saved = min(whole - int(time[order[0]]), room, held) * by_turns
        names = [case.report.process_name(int(ops.processes[c])) for c in order]
        listed += [
            (label, name, int(time[c]), 100 * time[c] / whole)
            for c, name in zip(order, names, strict=True)
        ]
        findings += case.finding(
            "shared_gpus",
            f"{label} works {how} for {len(order)} processes:"
            f" {units.format_share(int(time[order[0]]), whole)} for"
            f" {brief(names[0], _NAME_CELLS)}, {units.format_share(second, whole)} for"
            f" {brief(names[1], _NAME_CELLS)}",
            "use MPS (nvidia-cuda-mps-control), if it is off, or a GPU for each"
            if fits
            else "give each a GPU of its own: their kernels have no room beside each other",
            subject=f"{label} shared by processes",
            saved_ns=saved,
            stake_ns=whole - int(time[order[0]]),
            window=(int(ops.start[rows[turns[0]]]), int(ops.end[rows[turns[0] + 1]])),
            device=device,
            at_most=None if saved or 2 * held > second else Severity.MEDIUM,
        )
    shown, hidden = cut(listed, arguments)
    columns = (
        (Column("GPU"), [row[0] for row in shown]),
        (Column("Process"), [row[1] for row in shown]),
        (Column("GPU Time", Unit.NS), [row[2] for row in shown]),
        (Column("Share", Unit.PERCENT, 1), [row[3] for row in shown]),
    )
    return Result(
        columns, tuple(sorted(findings, key=lambda one: -one.stake_ns)[:1]), hidden=hidden
    )


def _held(case: Case, rows: Sequence[Indices], runs: Sequence[Intervals]) -> int:
    """How long either of two processes has a kernel launched and waiting while the other works."""
    held, ops = 0, case.report.operations
    for mine, busy in zip(rows, reversed(runs), strict=True):
        calls = case.report.calls[mine]
        begun = ops.start[mine].copy()
        begun[calls >= 0] = np.minimum(begun, case.report.api.end[calls])[calls >= 0]
        held += intervals.overlap_length((begun, ops.start[mine]), busy)
    return held


@rule(
    "GPUs on which a process opened a context and ran nothing",
    advice="The context takes memory of a GPU that stays idle: give it work, or hide it from the"
    " process (CUDA_VISIBLE_DEVICES).",
    nothing="Every GPU with a CUDA context works, or no contexts are recorded.",
)
def unused_gpus(case: Case, arguments: Arguments) -> Result:  # noqa: ARG001
    """GPUs with a context of a process that works on others: these run nothing, or hardly anything.

    A thousandth of what the busiest one does is hardly anything; in a window it may come later.
    """
    report = case.report
    names = {
        pid_of(process): report.process_name(process) for process in report.operations.processes
    }
    busy = {split.device.number: split.busy_ns for split in case.splits}
    least = _HARDLY * max(busy.values(), default=0) * (case.scope.window is None)
    seen = {device.number for device in report.devices}
    worked = {gpu for gpu in seen if busy.get(gpu, least) >= least}
    users = {
        gpu: names[pid]
        for pid, gpu in report.metadata.contexts
        if pid in names and gpu not in worked and case.scope.devices is None
    }
    findings: list[Finding] = []
    if users:
        few = len(users) <= _GPUS_NAMED
        which = ", ".join(f"GPU {gpu}" for gpu in users) if few else f"{len(users)} GPUs"
        process = brief(next(iter(users.values())), _NAME_CELLS)
        findings = case.finding(
            "unused_gpus",
            f"{which} ran {'hardly anything' if seen & users.keys() else 'nothing'} beside"
            f" {units.plural(len(worked), 'busy GPU')}: {process} has a CUDA context there",
            "give each GPU a part of the work, or hide it from the process (CUDA_VISIBLE_DEVICES)",
            subject=f"{which} without work",
            saved_ns=0,
            window=None,
            command="nsys-tui overview REPORT --section devices",
            at_least=Severity.MEDIUM,
        )
    columns = (
        (Column("GPU"), [f"GPU {gpu}" for gpu in users]),
        (Column("Process"), [*users.values()]),
    )
    return Result(columns, findings)
