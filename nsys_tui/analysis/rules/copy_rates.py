"""Our rules on copies that are slow or made again and again, and on much clearing."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.copies import FAST, LARGE, case_labels, exposed_ns, rates
from nsys_tui.analysis.rules.finding import Confidence, Finding, Severity, longest_of
from nsys_tui.analysis.rules.flushes import FLUSHES, are_flushes
from nsys_tui.analysis.rules.gap_facts import few_steps
from nsys_tui.analysis.rules.nsys import (
    DIRECTIONS,
    HOST_COPIES,
    PAGEABLE,
    of_memory,
)
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.model.arrays import Indices
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import factorise_rows, rows_of_codes, sums
from nsys_tui.model.table import Column, Unit

_FEWEST: Final = 4
"""Copies of a direction below which there is nothing to compare with."""
_LOOKED_AT: Final = 10
"""Sizes of uploads of which it is asked whether each step has them."""
_OTHER_GPUS: Final = (
    "bind the process to its GPU's NUMA node (numactl), and see its link (nvidia-smi topo -m)"
)
"""What to do about a GPU all of whose copies are slower than those of GPUs of its model."""


def large_copies(case: Case) -> Indices:
    """Copies between host and device whose rate tells something, in start order."""
    ops, rows = case.report.operations, case.copies
    rows = rows[np.isin(ops.copy_kind[rows], HOST_COPIES)]
    return rows[(ops.bytes[rows] >= LARGE) & (ops.durations(rows) > 0)]


@rule(
    "Copies slower than others of their direction",
    advice="Others of the same direction run twice as fast on this bus: pin the memory, and touch"
    " it before it is copied for the first time.",
    nothing="Large copies of a direction run at about the same rate. What the bus allows is not"
    " recorded.",
    parameters=(Parameter("below", 50.0, "rate that is slow, in percent of the fast copies'"),),
)
def slow_copies(case: Case, arguments: Arguments) -> Result:
    """Large copies at less than half the rate that the fastest tenth of either direction reaches.

    The bus is as quick in both, and for each GPU of a model. Copies of set-up are left out.
    """
    ops, rows = case.report.operations, large_copies(case)
    rows = rows[ops.start[rows] >= case.first_step]
    group, kinds = factorise_rows((ops.device[rows], ops.copy_kind[rows]))
    rate = ops.bytes[rows] / np.maximum(ops.durations(rows), 1)
    enough = np.bincount(group, minlength=len(kinds)) >= _FEWEST
    by_kind = rows_of_codes(group, len(kinds))
    best = np.array([np.quantile(rate[rows_of], FAST) for rows_of in by_kind], np.float64) * enough
    model = np.array([device.name or device.label for device in case.report.devices])[kinds[:, 0]]
    best = np.array([best[model == rows_of].max() for rows_of in model], np.float64)
    slow = (100 * rate < arguments.number("below") * best[group]) & enough[group]
    more = (ops.durations(rows) - ops.bytes[rows] / np.maximum(best, 1e-9)[group]) * slow
    lost = np.bincount(group, more, len(kinds))
    used = np.flatnonzero(lost > 0)
    order, hidden = cut(used[np.argsort(-lost[used], kind="stable")], arguments)
    time = sums(group[slow], ops.durations(rows[slow]), len(kinds))
    size = sums(group[slow], ops.bytes[rows[slow]], len(kinds))
    findings: list[Finding] = []
    if len(used):
        top = int(used[np.argmax(lost[used])])
        late, fast = rows[slow & (group == top)], rows[~slow & (model == model[top])[group]]
        findings = _slow(case, late, fast, float(best[top]), int(lost[top]))
    columns = (
        (Column("Could Save", Unit.NS), lost[order].astype(np.int64)),
        (Column("GPU"), case_labels(case, kinds[order, 0])),
        (Column("Direction"), [DIRECTIONS[kind] for kind in kinds[order, 1].tolist()]),
        (Column("Count", Unit.COUNT), np.bincount(group[slow], minlength=len(kinds))[order]),
        (Column("Throughput", Unit.MB_PER_S, 1), rates(size, time)[order]),
        (Column("Peak", Unit.MB_PER_S, 1), best[order] * 1e9),
    )
    return Result(columns, findings, hidden=hidden)


def _slow(case: Case, late: Indices, fast: Indices, best: float, lost: int) -> list[Finding]:
    """Slow copies of one direction, and why as far as it is recorded."""
    ops = case.report.operations
    device, kind = int(ops.device[late[0]]), int(ops.copy_kind[late[0]])
    told = units.format_rate(1e9 * ops.bytes[late].sum() / ops.durations(late).sum())
    usual = units.format_rate(1e9 * best)
    what, advice = f"{DIRECTIONS[kind]} copies", _OTHER_GPUS
    of_device = fast[ops.device[fast] == device]
    if len(of_device):
        every = len(late) + int((ops.copy_kind[of_device] == kind).sum())
        why, advice = _reason(case, late, of_device)
        if not why:
            return []
        few = few_steps(case, ops.start[late], ops.end[late], ops.durations(late))
        which = f"{units.format_count(len(late))} of {units.format_count(every)} large {what}"
        if few and len(late) == every:
            which = f"{units.format_count(every)} {what} in {few}"
        title = f"{which} run at {told}, others at {usual}: {why}"
    else:
        whole, others = (case.device_labels(ops.device[rows].tolist()) for rows in (late, fast))
        title = f"large {what} of {whole} run at {told}, those of {others} at {usual}"
    return case.finding(
        "slow_copies",
        title,
        advice,
        subject=f"slow {what}",
        saved_ns=min(lost, exposed_ns(case, device)),
        window=longest_of(ops, late),
        device=device,
    )


def _reason(case: Case, late: Indices, fast: Indices) -> tuple[str, str]:
    """What tells slow copies from fast ones: the kind of memory, or that they came first."""
    ops = case.report.operations
    slow, quick = (of_memory(ops, rows, PAGEABLE).mean() for rows in (late, fast))
    if slow > 0.5 > quick:
        return "pageable memory", "pin the host memory (cudaHostAlloc, pin_memory=True)"
    if ops.start[late].max() < ops.start[fast].min():
        return "they come first", "touch, register or reuse the memory before it is copied"
    if slow > 0.5:
        return "", ""  # Both are pageable: what nothing hides of them is told with that advice.
    return "why is not recorded", "see which memory these copies use, and what else crosses the bus"


@rule(
    "Uploads of one size again and again",
    advice="If these uploads carry the same data, keep it on the GPU. Reports do not tell what was"
    " in a copy.",
    nothing="No large upload of one size is repeated, or it is made once in every step.",
    parameters=(Parameter("count", 3, "so many uploads of one size count"),),
)
def repeated_uploads(case: Case, arguments: Arguments) -> Result:
    """Large copies to a device that have exactly one size; one in each named step is its batch."""
    ops, rows = case.report.operations, large_copies(case)
    rows = rows[ops.copy_kind[rows] == HOST_COPIES[0]]
    group, kinds = factorise_rows((ops.device[rows], ops.bytes[rows]))
    count = np.bincount(group, minlength=len(kinds))
    time = sums(group, ops.durations(rows), len(kinds))
    many = np.flatnonzero(count >= arguments.count("count"))
    order, hidden = cut(many[np.argsort(-time[many], kind="stable")], arguments)
    findings: list[Finding] = []
    for kind in order[:_LOOKED_AT].tolist():
        mine = rows[group == kind]
        if not findings and _apart(case, mine) and not _of_steps(case, mine):
            findings = _repeated(case, mine, int(kinds[kind, 1]))
    columns = (
        (Column("GPU"), case_labels(case, kinds[order, 0])),
        (Column("Count", Unit.COUNT), count[order]),
        (Column("Bytes Each", Unit.BYTES), kinds[order, 1]),
        (Column("GPU Time", Unit.NS), time[order]),
    )
    return Result(columns, findings, hidden=hidden)


def _apart(case: Case, rows: Indices) -> bool:
    """Whether kernels run between most of some uploads: those in a row are of several arrays."""
    ops = case.report.operations
    kernels = case.where(lambda rows: ops.kind[rows] == OpKind.KERNEL)
    run = np.diff(np.searchsorted(ops.start[kernels], ops.start[rows]))
    return 2 * int((run > 0).sum()) >= len(run)


def _of_steps(case: Case, rows: Indices) -> bool:
    """Whether most named steps have as many of some uploads: those are the step's own data."""
    if not case.has_loop:
        return False
    steps = case.iterations
    step = np.searchsorted(steps.start, case.begun(rows), side="right")
    count = np.bincount(step, minlength=len(steps) + 1)[1:]
    usual = float(np.median(count))
    return usual > 0 and 2 * int((count == usual).sum()) > len(count)


def _repeated(case: Case, rows: Indices, size: int) -> list[Finding]:
    ops = case.report.operations
    device, time = int(ops.device[rows[0]]), ops.durations(rows)
    return case.finding(
        "repeated_uploads",
        f"{units.plural(len(rows), 'upload')} of exactly {units.format_bytes(size)} to"
        f" {case.device_labels([device])}: {units.format_duration(int(time.sum()))}",
        "if they carry the same data, keep it on the GPU",
        subject=f"uploads of {units.format_bytes(size)} each",
        saved_ns=0,
        stake_ns=min(int(time[1:].sum()), exposed_ns(case, device)),
        window=(int(ops.start[rows[0]]), int(ops.end[rows[-1]])),
        device=device,
        at_most=Severity.LOW,
        confidence=Confidence.GUESS,
    )


@rule(
    "Memsets that take much of the GPU's time",
    advice="Clear less often, let the kernel that writes first do it, or clear on another stream.",
    nothing="Memsets take little of the GPU's time.",
    parameters=(Parameter("share", 10.0, "share of GPU time that is much, in percent"),),
)
def memsets(case: Case, arguments: Arguments) -> Result:
    """Memsets of each GPU against the time of all its work."""
    ops = case.report.operations
    devices = len(case.report.devices)
    whole = np.zeros(devices, np.int64)
    whole[[split.index for split in case.splits]] = [split.sum_ns for split in case.splits]
    rows = case.where(lambda rows: ops.kind[rows] == OpKind.MEMSET)
    time = sums(ops.device[rows], ops.durations(rows), devices)
    size = sums(ops.device[rows], ops.bytes[rows], devices)
    share = 100 * time / np.maximum(whole, 1)
    order = np.flatnonzero(time)
    order, hidden = cut(order[np.argsort(-time[order], kind="stable")], arguments)
    findings: list[Finding] = []
    if len(order) and share[order[0]] >= arguments.number("share"):
        device = int(order[0])
        mine = rows[ops.device[rows] == device]
        clears = are_flushes(case, mine)
        taken = min(int(time[device]), exposed_ns(case, device))
        findings = case.finding(
            "memsets",
            f"{units.plural(len(mine), 'memset')} take {units.format_percent(share[device])}"
            f" of the GPU time of {case.device_labels([device])}:"
            f" {units.format_bytes(int(size[device]))}, {units.format_duration(int(time[device]))}",
            FLUSHES if clears else "clear less, or let the kernel that writes first do it",
            subject="memsets before what is timed" if clears else "memsets",
            saved_ns=0 if clears else taken,
            stake_ns=taken,
            at_most=Severity.LOW if clears else None,
            window=longest_of(ops, mine),
            device=device,
            confidence=Confidence.GUESS if clears else None,
        )
    columns = (
        (Column("GPU"), case_labels(case, order)),
        (Column("Of GPU Time", Unit.PERCENT, 1), share[order]),
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Bytes", Unit.BYTES), size[order]),
    )
    return Result(columns, findings, hidden=hidden)
