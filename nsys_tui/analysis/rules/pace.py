"""Our rules on what changes in a run: first uses of code, slower kernels, processes by turns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.copies import moved_first
from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.analysis.rules.gpu_work import filled
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge, Gaps
from nsys_tui.analysis.stalls.explained import LONG_CALL_NS, shares_of
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import rows_of_codes, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of
from nsys_tui.names import api_name, fit

_FEWEST: Final = 10
"""Launches of a kernel in the first and in the last third from which its pace is known."""
_NEARLY_ALL: Final = 0.9
"""Part of the time whose kernels must slow down: of one alone its data may have grown."""
_GROWN: Final = 1.5
_GROWS: Final = 1.05
"""Factors of a kernel whose data grows: in all, and at least from each later quarter to the next,
so that one change is no growth."""
_TURNS: Final = 20
_NAME_CELLS: Final = 15
_GPUS_NAMED: Final = 3


@rule(
    "Kernels that take longer and longer",
    advice="All kernels slow down from the first third of the run to the last: look at the GPU's"
    " clocks, power limit and temperature, and for other programs on it.",
    nothing="Kernels take as long at the end as at the beginning, or only some take longer.",
    parameters=(Parameter("slower", 5.0, "mean increase that counts, in percent"),),
)
def slowing_kernels(case: Case, arguments: Arguments) -> Result:
    """Mean time of each kernel in the last third of a GPU's work against the first third.

    Nearly all of them must slow down, at the same shapes: of one that takes longer and longer, or
    whose grid grows, its data grows. Their short launches must as well as their long ones: else
    there are but more long ones at the end.
    """
    ops = case.report.operations
    findings: list[Finding] = []
    listed: list[tuple[str, float, float, str]] = []
    for device, rows in case.by_device.items():
        rows = rows[(ops.kind[rows] == OpKind.KERNEL) & (ops.category[rows] == Category.COMPUTE)]
        third = len(rows) // 3
        if third < _FEWEST:
            continue
        thirds = (rows[:third], rows[len(rows) - third :])
        early, late = (_paces(case, part) for part in thirds)
        known = np.flatnonzero((early[1] >= _FEWEST) & (late[1] >= _FEWEST) & (early[0] > 0))
        if not len(known):
            continue
        first, last = (times[known] / count[known] for times, count in (early, late))
        slow = last >= first * (1 + arguments.number("slower") / 100)
        least = _NEARLY_ALL * max(late[0].sum(), 1)
        of_old_shape = _of_old_shape(case, *thirds)
        if min(late[0][known[slow]].sum(), of_old_shape) < least or slow.sum() < 2:
            cost = late[0][known] - first * late[1][known]
            top = int(np.argmax(np.where(last >= _GROWN * first, cost, -1)))
            if last[top] >= _GROWN * first[top]:
                findings += _growing(
                    case, device, rows[ops.name[rows] == known[top]], (first[top], last[top])
                )
            continue
        factor = 1 + arguments.number("slower") / 200
        longer = _are_all_longer(case, thirds, known[slow], factor)
        if late[0][known[slow][longer]].sum() < least:
            continue
        usual = np.zeros(len(ops.names))
        usual[known] = first
        more = (ops.durations(rows) - usual[ops.name[rows]]) * (usual[ops.name[rows]] > 0)
        by_time = np.argsort(-late[0][known], kind="stable")
        label = case.device_labels([device])
        listed += [(label, first[k], last[k], ops.shown[known[k]]) for k in by_time.tolist()]
        factor = float(late[0][known].sum() / (first * late[1][known]).sum())
        findings += case.finding(
            "slowing_kernels",
            f"kernels of {label} take {units.format_share(factor - 1)} longer at the end"
            " than at first",
            "see its clocks, power limit and temperature, and what else runs on it",
            subject=f"kernels of {label} slow down",
            saved_ns=max(0, int(more.sum())),
            window=(int(ops.start[rows[-third]]), int(ops.end[rows].max())),
            device=device,
        )
    shown, hidden = cut(listed, arguments)
    columns = (
        (Column("GPU"), [row[0] for row in shown]),
        (Column("First Third", Unit.NS), [row[1] for row in shown]),
        (Column("Last Third", Unit.NS), [row[2] for row in shown]),
        (Column("Kernel"), [row[3] for row in shown]),
    )
    return Result(
        columns, tuple(sorted(findings, key=lambda one: -one.order_ns)[:1]), hidden=hidden
    )


def _are_all_longer(case: Case, thirds: Sequence[Indices], names: Int64, factor: float) -> Bool:
    """Of which names both the short and the long launches take longer in the second of thirds."""
    ops, quartiles = case.report.operations, []
    for rows in thirds:
        of_name = rows_of_codes(ops.name[rows], len(ops.names))
        times = [ops.durations(rows[of_name[name]]) for name in names.tolist()]
        quartiles.append(np.array([np.percentile(time, (25, 75)) for time in times]))
    return np.asarray((quartiles[1] >= factor * quartiles[0]).all(axis=1), np.bool_)


def _of_old_shape(case: Case, early: Indices, late: Indices) -> int:
    """GPU time of late kernels whose grids and blocks were there before: others have more data."""
    code = case.report.launch_attributes.code
    return int(case.report.operations.durations(late[np.isin(code[late], code[early])]).sum())


def _growing(case: Case, device: int, rows: Indices, means: tuple[float, float]) -> list[Finding]:
    """A kernel that takes longer and longer.

    Args:
        case: the report.
        device: of its GPU.
        rows: of its launches.
        means: in the first and in the last third.
    """
    ops = case.report.operations
    quarters = [part.mean() for part in np.array_split(ops.durations(rows), 4)]
    if any(after < _GROWS * before for before, after in pairwise(quarters[1:])):
        return []
    cost = max(0, int((ops.durations(rows) - means[0]).sum()))
    name = fit(ops.shown[ops.name[rows[0]]], 2 * _NAME_CELLS)
    takes = f"{name} takes {means[1] / means[0]:.1f}x as long at the end"
    return case.finding(
        "slowing_kernels",
        f"{takes}: {units.format_duration(cost)} more in all",
        "see whether its data has to grow so: a cache or a list that nobody cuts",
        subject=takes,
        saved_ns=0,
        stake_ns=cost,
        window=(int(ops.start[rows[-1]]), int(ops.end[rows[-1]])),
        device=device,
        screen="3",
        at_most=Severity.MEDIUM,
        doubt="the work may be meant to grow, as with the length of a sequence",
        settle="print the size of its data in each step, in the program itself",
    )


def _paces(case: Case, rows: Indices) -> tuple[Int64, Int64]:
    """GPU time and launches by code of the name."""
    ops = case.report.operations
    count = np.bincount(ops.name[rows], minlength=len(ops.names))
    return sums(ops.name[rows], ops.durations(rows), len(ops.names)), count.astype(np.int64)


@rule(
    "GPUs that work for several processes",
    advice="Without MPS a GPU switches between processes, and their kernels never run together:"
    " use MPS where they leave room for each other, else a GPU for each process.",
    nothing="Each GPU works for one process, or for several that do not wait for each other on it.",
    parameters=(Parameter("share", 10.0, "share of a GPU's time that counts, in percent"),),
)
def shared_gpus(case: Case, arguments: Arguments) -> Result:
    """GPUs that switch often between processes, or whose processes' kernels have no room together.

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
        time = sums(code, ops.durations(rows), len(ops.processes))
        turns = np.flatnonzero(np.diff(code))
        if len(turns) < _TURNS or np.count_nonzero(time) < 2:
            continue
        order = [c for c in np.argsort(-time, kind="stable").tolist() if time[c]]
        whole, second = int(time.sum()), int(time[order[1]])
        spans = [rows[code == c] for c in order[:2]]
        runs = [intervals.union(ops.start[of_process], ops.end[of_process]) for of_process in spans]
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
            f" {units.format_share(int(time[order[0]]), whole)} of its time for"
            f" {fit(names[0], _NAME_CELLS)}, {units.format_share(second, whole)} for"
            f" {fit(names[1], _NAME_CELLS)}",
            "use MPS (nvidia-cuda-mps-control), if it is off, or a GPU for each"
            if fits
            else "give each a GPU of its own: their kernels have no room beside each other",
            subject=f"{label} shared by processes",
            saved_ns=saved,
            stake_ns=whole - int(time[order[0]]),
            window=(int(ops.start[rows[turns[0]]]), int(ops.end[rows[turns[0] + 1]])),
            device=device,
            at_most=None if saved else Severity.MEDIUM,
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
        held += intervals.overlap_length(intervals.union(begun, ops.start[mine]), busy)
    return held


@rule(
    "GPUs on which a process opened a context and ran nothing",
    advice="The context takes memory of a GPU that stays idle: give it work, or hide it from the"
    " process (CUDA_VISIBLE_DEVICES).",
    nothing="Every GPU with a CUDA context works, or no contexts are recorded.",
)
def unused_gpus(case: Case, arguments: Arguments) -> Result:  # noqa: ARG001
    """GPUs with a CUDA context of a process that works on others, and without any GPU work."""
    report = case.report
    names = {
        pid_of(process): report.process_name(process) for process in report.operations.processes
    }
    worked = {device.number for device in report.devices}
    users = {
        gpu: names[pid]
        for pid, gpu in report.metadata.contexts
        if pid in names and gpu not in worked and case.scope.devices is None
    }
    findings: list[Finding] = []
    if users:
        few = len(users) <= _GPUS_NAMED
        which = ", ".join(f"GPU {gpu}" for gpu in users) if few else f"{len(users)} GPUs"
        process = fit(next(iter(users.values())), _NAME_CELLS)
        findings = case.finding(
            "unused_gpus",
            f"{which} ran nothing beside {units.plural(len(worked), 'busy GPU')}:"
            f" {process} has a CUDA context there",
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


_CALL_CELLS: Final = 22
_TOLD_APART: Final = frozenset(
    (Cause.LOCK, Cause.WAIT, Cause.IO, Cause.SLEEP, Cause.OSRT, Cause.SYNC, Cause.API)
)
"""Causes with a finding for each call; of the others one finding names the worst."""


def kinds_of(gaps: Gaps) -> Int64:
    """Of each gap the cause, and the call at fault where that tells more: int64 [2, n]."""
    apart = np.isin(gaps.cause, [*_TOLD_APART])
    return np.stack((gaps.cause.astype(np.int64), np.where(apart, gaps.what, -1)))


@rule(
    "First use of code",
    advice="Loading, compiling and setting up happen once: leave the first steps out of what you"
    " measure, load eagerly (CUDA_MODULE_LOADING=EAGER), or ship code for this GPU.",
    nothing="No GPU idles while code is loaded or used for the first time.",
)
def warm_up(case: Case, arguments: Arguments) -> Result:
    """Idle gaps that come in the first of named steps alone, first uses of code, copies made once.

    In the steps after these, ``module_loading`` tells of what is loaded.
    """
    gaps = case.stalls.gaps
    gaps = gaps.take(gaps.edge == Edge.INNER)
    gaps = gaps.take(first_uses(case, gaps))
    shown, hidden = cut(np.argsort(-gaps.idle, kind="stable"), arguments)
    work = case.stalls.work
    columns = (
        (Column("Idle", Unit.NS), gaps.idle[shown]),
        (Column("Start", Unit.NS), gaps.start[shown]),
        (Column("What"), [work.name(code) for code in gaps.what[shown].tolist()]),
    )
    findings = (_warm_up(case, gaps) if len(gaps) else []) + moved_first(case)
    return Result(columns, tuple(findings), hidden=hidden)


def _warm_up(case: Case, gaps: Gaps) -> list[Finding]:
    device = int(np.argmax(np.bincount(gaps.device, gaps.idle)))
    gaps = gaps.take(gaps.device == device)
    early = _middle(gaps) < case.set_up_until[gaps.device]
    each = np.where(early, _charged(gaps), _used_first(gaps))
    cost, worst, tried = int(each.sum()), int(np.argmax(gaps.idle)), _tried(case, device)
    name = case.stalls.work.name(int(gaps.what[worst])) or Cause(gaps.cause[worst]).key
    longest = f", longest in {fit(name, _CALL_CELLS)}" if name != Cause.NOTHING.key else ""
    loads = np.isin(gaps.cause[worst], (Cause.MODULE, Cause.API, Cause.LAUNCH_LATENCY))
    longest = (
        f", tries kernels for {units.format_duration(tried)}" if 10 * tried > cost else longest
    )
    before = 2 * int(each[early].sum()) > cost
    first = "before most of its work"
    if case.has_named_steps:
        first = "before the second step" if case.warm_up_steps == 1 else "in the first steps"
    where = first if before else "at first use of code"
    return case.finding(
        "warm_up",
        f"{case.device_labels([device])} idle {units.format_duration(cost)} {where}{longest}:"
        " only once",
        "leave it out of what you measure" + (", or load code before (eagerly)" if loads else ""),
        subject="set-up (once)" if before else "first use of code (once)",
        saved_ns=cost + tried,
        at_most=Severity.MEDIUM if case.has_named_steps else None,
        window=(int(gaps.start[worst]), int(gaps.end[worst])),
        device=device,
        screen="5",
        command="nsys-tui stalls REPORT",
        lost=case.idle_time.idle_part(device, (gaps.start, gaps.end)),
    )


def _tried(case: Case, device: int) -> int:
    """How long a GPU runs kernels, in the first of named steps, that never come again."""
    ops, rows = case.report.operations, case.by_device[device]
    rows = rows[ops.category[rows] != Category.MEMORY]
    last = np.zeros(len(ops.names), np.int64)
    np.maximum.at(last, ops.name[rows], ops.start[rows])
    warm = case.set_up_until[device] if case.has_named_steps else -FARTHEST
    once = rows[last[ops.name[rows]] < warm]
    return intervals.total(*intervals.union(ops.start[once], ops.end[once]))


def _charged(gaps: Gaps) -> Int64:
    """Of each gap what its witness shows of its cause; all of it where the GPU itself waited."""
    cause = np.minimum(gaps.cause, len(SHARES) - 1)
    charged = shares_of(gaps)[np.arange(len(gaps)), cause]
    return np.where(gaps.cause < len(SHARES), charged, gaps.idle)


def _used_first(gaps: Gaps) -> Int64:
    """Of each gap the part in which code was loaded, or the call that happens once was made."""
    loaded = gaps.shares[:, Cause.MODULE]
    called = gaps.shares[:, Cause.API] * (gaps.cause == Cause.API)
    called += gaps.shares[:, Cause.ALLOCATION] * (gaps.cause == Cause.ALLOCATION)
    return np.asarray(np.minimum(loaded + called, gaps.idle), np.int64)


def _middle(gaps: Gaps) -> Int64:
    """Where most of each gap lies: one that begins with a step is of it, not of the step before."""
    return (gaps.start + gaps.end) // 2


def _sets_up(case: Case, gaps: Gaps) -> Bool:
    """In which gaps the process that ends them makes its first CUDA call."""
    api = case.report.api
    processes, owner = np.unique(api.thread_process, return_inverse=True)
    first = np.zeros(len(processes), np.int64)
    # Of equal places the last that is assigned stays.
    first[owner[api.thread[::-1]]] = api.start[::-1]
    known = np.flatnonzero((gaps.call >= 0) & (gaps.idle >= _CONTEXT_NS))
    begun = first[owner[api.thread[gaps.call[known]]]]
    with_set_up = np.zeros(len(gaps), bool)
    with_set_up[known] = (begun >= gaps.start[known]) & (begun < gaps.end[known])
    return with_set_up


_CONTEXT_NS: Final = 10_000_000
"""No context is set up in less time: the call is merely the first that was recorded."""
_ONCE: Final = 2
"""Calls of one name up to which they are set-up."""
_AGAIN: Final = 5
"""Loads before kernels that ran already, after set-up, from which on loading belongs to the run."""


def _usual(case: Case, gaps: Gaps) -> Bool:
    """Which gaps come again in the steady part, of one cause and about as long, and so not once."""
    _, kind = np.unique(kinds_of(gaps), axis=1, return_inverse=True)
    kind = kind.ravel()
    steady = _middle(gaps) >= case.set_up_until[gaps.device]
    longest = np.zeros(kind.max(initial=-1) + 1, np.int64)
    np.maximum.at(longest, kind[steady], gaps.idle[steady])
    return np.asarray(gaps.idle <= 2 * longest[kind], np.bool_)


def first_uses(case: Case, gaps: Gaps) -> Bool:
    """Which gaps happen once: before the second step, at first use of code, in a lone call.

    So does the one in which a process makes its first CUDA call, which sets its context up.
    """
    report = case.report
    api = report.api
    before = gaps.start < (case.loop[0] if case.has_loop else FARTHEST)
    used_first = np.isin(gaps.next, case.first_of_names) & before
    first: Bool = (gaps.cause == Cause.MODULE) & before
    again = first & ~used_first & (_middle(gaps) >= case.set_up_until[gaps.device])
    if again.sum() >= _AGAIN:
        first &= ~again
    first |= (_middle(gaps) < case.set_up_until[gaps.device]) & ~_usual(case, gaps)
    first |= used_first & (gaps.shares[:, Cause.MODULE] > 0)
    first |= _sets_up(case, gaps) & before
    by_api = np.flatnonzero((gaps.cause == Cause.API) & (gaps.call >= 0))
    if not len(by_api):
        return first
    count = np.bincount(api.name[api.real], minlength=len(api.names))
    rare = [api_name(api.names[code]) for code in np.flatnonzero((count > 0) & (count <= _ONCE))]
    first[by_api] |= np.isin(gaps.what[by_api], [case.stalls.work.code(name) for name in rare])
    long = api.durations(gaps.call[by_api]) >= LONG_CALL_NS
    long &= report.operations.kind[gaps.next[by_api]] == OpKind.KERNEL
    first[by_api] |= used_first[by_api] & long
    return first
