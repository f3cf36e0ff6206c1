"""Our rules on GPUs: launch-bound phases, exposed collectives, occupancy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.kernel_facts import LIMITS, occupancy
from nsys_tui.analysis.launches import launches_graphs
from nsys_tui.analysis.nccl.collectives import names_collectives
from nsys_tui.analysis.rules.communication import (
    SEVERAL,
    could_hide,
    exchange_little,
    finer_batches,
    idle_for_host,
    late_gpu,
    launched_late,
    of_last_ranks,
    pairwise,
    staying,
    waiting,
)
from nsys_tui.analysis.rules.copy_advice import mpi_advice
from nsys_tui.analysis.rules.finding import Finding, Severity, by_ncu
from nsys_tui.analysis.rules.gap_facts import waits_for_each
from nsys_tui.analysis.rules.idle_causes import NEXT_GRAPH
from nsys_tui.analysis.rules.nsys import (
    DEVICE_TO_HOST,
    HOST_COPIES,
    READ_LESS,
    SMALL_COPY,
    VALUE,
)
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, most_of, rule
from nsys_tui.config import LaunchBoundConfig
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import BLOCK, REGISTERS
from nsys_tui.model.groups import factorise_rows, sums
from nsys_tui.model.kernel_names import of_library
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import brief

if TYPE_CHECKING:
    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.launches import LaunchBoundRun
    from nsys_tui.analysis.rules.alike import Alike
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.model.report import Report

_NAME_CELLS: Final = 22
"""Cells of names in findings, which are one line."""
_LITTLE: Final = 0.1
"""Compute that hides no communication yet, as a part of what is exposed: overlap adds nothing."""
NOT_TO_HIDE: Final = (
    "compute could hide no more of it: for the rest send fewer bytes, or use a faster link"
)
"""What to do about communication that more overlap would not shorten."""
BY_TURNS: Final = "waiting for GPUs by turns in collectives"
"""Subject of the communication in which a GPU waits now for one and now for another."""
_GATHER: Final = "gather the small copies in one, or keep the data on the GPU; then fuse kernels"
_OFTEN_READ: Final = 6
"""Operations for each of which a value is read: no graph holds more of them."""
_BOUND: Final = LaunchBoundConfig()
_AMONG_RANKS: Final = (
    (
        "even out the ranks' work; a pipeline could use {} times the micro-batches",
        "overlap it with compute, or send less; a pipeline could receive ahead",
    ),
    (
        "stages wait for each other: even them out, or use {} times the micro-batches",
        "stages wait for each other: even them out, or receive ahead;"
        " more micro-batches would hardly help",
    ),
)
"""What to do about sends and receives, which two GPUs may make for an all-to-all, too; then what
where more micro-batches would hardly help."""
_EXCHANGE: Final = (
    "exchange more at once and less often (wider halos), or compute the inside meanwhile"
)
_EVERY_RANK: Final = "nsys-tui fleet FOLDER, with a report of every rank"
"""What tells waiting from transferring where a report has one rank alone."""
_SIZES: Final = "nsys profile --trace=cuda,nvtx"
"""What records the collectives that NCCL's ranges name, from NCCL 2.18 on."""


@rule(
    "Launch-bound phases",
    advice="Here the GPU waits for launches of kernels that are shorter than their launches: fuse"
    " kernels, enlarge batches, or capture the phase as a CUDA graph.",
    nothing="No launch-bound phase.",
    parameters=(
        Parameter("operations", _BOUND.operations, "fewest operations of a run"),
        Parameter("duration", _BOUND.duration // 1000, "each shorter than this, in us"),
        Parameter("gap", _BOUND.gap // 1000, "no gap longer than this, in us"),
        Parameter("idle", 100 * _BOUND.idle, "idle part of the run, in percent"),
    ),
)
def launch_bound(case: Case, arguments: Arguments) -> Result:
    """Runs of short operations between which the device waits for the host.

    The defaults are those of [analysis.launch_bound] in the configuration, where it has them.
    """
    from nsys_tui.analysis.launches import launch_bound_runs, touching_runs

    own = case.report.launch_bound
    limits = replace(
        own,
        operations=int(arguments.given("operations", own.operations)),
        duration=int(arguments.given("duration", own.duration / 1000) * 1000),
        gap=int(arguments.given("gap", own.gap / 1000) * 1000),
        idle=arguments.given("idle", 100 * own.idle) / 100,
    )
    if limits == own:
        runs = touching_runs(case.stalls.bound, case.scope)
    else:
        runs = launch_bound_runs(case.report, case.scope, limits)
    runs.sort(key=lambda run: -run.idle_ns)
    shown, hidden = cut(runs, arguments)
    ops = case.report.operations
    columns = (
        (Column("GPU"), [case.report.devices[run.device].label for run in shown]),
        (Column("Start", Unit.NS), [run.start for run in shown]),
        (Column("Duration", Unit.NS), [run.end - run.start for run in shown]),
        (Column("Operations", Unit.COUNT), [run.operations for run in shown]),
        (Column("Idle", Unit.NS), [run.idle_ns for run in shown]),
        (Column("Idle Share", Unit.PERCENT, 1), [100 * run.idle_share for run in shown]),
        (Column("First Kernel"), [ops.shown[ops.name[run.first_row]] for run in shown]),
    )
    return Result(columns, _launch_bound_findings(case, runs), hidden=hidden)


def _launch_bound_findings(case: Case, runs: list[LaunchBoundRun]) -> list[Finding]:
    if not runs:
        return []
    idle = np.bincount([run.device for run in runs], [run.idle_ns for run in runs])
    device = int(np.argmax(idle))
    runs = [run for run in runs if run.device == device]
    starts, ends = np.array([(run.start, run.end) for run in runs], np.int64).T
    lost = case.idle_time.idle_part(device, (starts, ends))
    idle_ns = min(int(idle.max()), intervals.total(*lost))
    ops = case.report.operations
    rows = case.by_device[device]
    edges = ops.places(rows, np.stack((starts, ends)))
    operations = int(np.minimum(edges[1] - edges[0], [run.operations for run in runs]).sum())
    inside = np.concatenate([rows[first:last] for first, last in edges.T.tolist()])
    calls = case.report.calls[inside]
    small = np.isin(ops.copy_kind[inside], [*HOST_COPIES]) & (ops.bytes[inside] <= SMALL_COPY)
    values = (ops.copy_kind[inside] == DEVICE_TO_HOST) & (ops.bytes[inside] <= VALUE)
    mostly_copies = 2 * int(small.sum()) >= len(inside)
    advice = "fuse kernels, enlarge batches, or capture the phase as a CUDA graph"
    if 2 * int(launches_graphs(case.report, calls).sum()) > len(inside):
        advice = NEXT_GRAPH
    elif _OFTEN_READ * int(values.sum()) >= len(inside):
        advice = READ_LESS
    elif mostly_copies:
        advice = mpi_advice(case, inside[small]) or _GATHER
    elif seldom := waits_for_each(case, calls[calls >= 0]):
        advice = f"{seldom}, then {advice}"
    return case.finding(
        "launch_bound",
        f"{units.plural(len(runs), 'launch-bound phase')}: "
        f"{units.plural(operations, 'short operation')} on {case.device_labels([device])},"
        f" {units.format_duration(idle_ns)} idle between launches",
        advice,
        subject=f"idle between {'small copies and' if mostly_copies else 'short'} launches",
        saved_ns=min(idle_ns, intervals.total(*case.idle_time.late_part(device, lost))),
        window=(runs[0].start, runs[0].end),
        device=device,
        screen="5",
        command="nsys-tui stalls REPORT --each-gap",
        lost=lost,
    )


@rule(
    "Communication that nothing hides",
    advice="While these collectives run, nothing computes: overlap them with the backward pass,"
    " bucket gradients, or let fewer bytes cross.",
    nothing="No communication, or all of it is hidden behind compute.",
)
def exposed_communication(case: Case, arguments: Arguments) -> Result:
    """Time of communication kernels during which no compute kernel runs, for each GPU."""
    splits = [split for split in case.splits if split.comm_ns]
    shown, hidden = cut(splits, arguments)
    pairs = [(split.comm_ns, split.exposed_comm_ns) for split in shown]
    comm, exposed = np.array(pairs, np.int64).reshape(-1, 2).T
    columns = (
        (Column("GPU"), [split.device.label for split in shown]),
        (Column("Communication", Unit.NS), comm),
        (Column("Exposed", Unit.NS), exposed),
        (Column("Of Communication", Unit.PERCENT, 1), 100 * exposed / comm),
        (Column("Of Time", Unit.PERCENT, 1), 100 * exposed / max(case.base_ns, 1)),
    )
    return Result(columns, _exposed_findings(case), hidden=hidden)


def _exposed_findings(case: Case) -> list[Finding]:
    """Of the GPU with most of it; where that waits for a late one, of the late one, too.

    The late one waits for nobody: what it has exposed is the transfer, which is told where it is
    half as much as the waiting. Who sends to one other alone may wait for it nevertheless.
    """
    splits = {split.index: split for split in case.steady_splits}
    worst = max(splits.values(), key=lambda split: split.exposed_comm_ns, default=None)
    if worst is None or not worst.exposed_comm_ns:
        return []
    findings = _exposed_on(case, worst)
    late = splits.get(findings[0].late) if findings else None
    much = late and 2 * late.exposed_comm_ns > (worst.exposed_waiting_ns or 0)
    if late and much and not len(pairwise(case, late.index)):
        findings += _exposed_on(case, late)
    return findings


def _exposed_on(case: Case, worst: DeviceSplit) -> list[Finding]:
    """Priced at most as what the GPU's own compute could hide, whatever a graph may hold.

    What steps begin or end with stays. Waiting needs no compute to hide it: it goes where the
    others come in time and its own host need not launch first, and of a pipeline what more
    micro-batches would save. The run is never shorter than the other work of any GPU, so the
    busiest one bounds it too, and who comes last waits for transfers alone; while its host works,
    or copies run beside, hiding them shortens nothing.
    """
    share = units.format_share(worst.exposed_comm_ns, worst.comm_ns)
    bound = " (upper bound)" if worst.exposed_is_upper_bound else ""
    rest = f"{share} of it, {case.share(worst.exposed_comm_ns)}"
    advice, subject = "overlap collectives with compute, or bucket them", "communication not hidden"
    waited, late = waiting(case, worst), -1
    hidden = could_hide(case, worst.index) + worst.graph_ns
    others = min(s.idle_ns + s.exposed_comm_ns for s in case.steady_splits)
    least = min(worst.exposed_comm_ns, others)
    hosts = idle_for_host(case)
    apart = (s.idle_ns + s.exposed_comm_ns - hosts[s.index] for s in case.steady_splits)
    least_of_all, stake = max(0, min(apart)), worst.exposed_comm_ns
    if 2 * waited > worst.exposed_comm_ns:
        own = launched_late(case, worst.index)
        saved, stake = min(least, max(0, waited - own)), stake - own
        rest = f"{units.format_duration(waited)} of it waiting"
        late, by_turns = late_gpu(case, worst.index, waited)
        if by_turns:
            advice = "see what each GPU does before its collectives: they come late by turns"
            subject, rest = BY_TURNS, f"{rest} for GPUs by turns"
        else:
            whom = case.device_labels([late]) if late >= 0 else "other ranks"
            rest = f"{rest}, mostly for {whom}"
            advice = f"see what {whom} does before its collectives: it comes late to them"
            subject = f"waiting for {whom} in collectives"
    elif len(pairwise(case, worst.index)):
        saved, times = finer_batches(case, min(worst.exposed_comm_ns, least_of_all))
        advice = _AMONG_RANKS[len(case.splits) >= SEVERAL][times == 1].format(times)
        subject = "send and receive not hidden"
    elif exchange_little(case, worst.index):
        saved, advice = min(worst.exposed_comm_ns, least_of_all), _EXCHANGE
    else:
        kept = max(waited, staying(case, worst.index))
        transfers = of_last_ranks(case, worst.index, (Category.COMPUTE, Category.MEMORY))
        saved = min(least_of_all, hidden, worst.exposed_comm_ns - kept, transfers)
        if _LITTLE * worst.exposed_comm_ns > hidden:
            advice = NOT_TO_HIDE
    return case.finding(
        "exposed_communication",
        f"{worst.device.label}: {units.format_duration(worst.exposed_comm_ns)}{bound} of"
        f" communication exposed, {rest}",
        advice,
        subject=subject,
        saved_ns=saved,
        stake_ns=stake,
        window=worst.longest_exposed_comm,
        device=worst.index,
        settle=_EVERY_RANK * (worst.exposed_waiting_ns is None)
        or _SIZES * (not names_collectives(case.report)),
        late=late,
    )


@rule(
    "Kernels whose launch leaves SMs half empty",
    advice="Block size, registers or shared memory keep few warps on an SM. This is theoretical"
    " (≈) and no fault by itself.",
    nothing="No kernel of weight is launched at low theoretical occupancy.",
    parameters=(
        Parameter("below", 25.0, "theoretical occupancy that counts as low, in percent"),
        Parameter("share", 5.0, "leave out kernels with less of the GPU time, in percent"),
    ),
)
def low_occupancy(case: Case, arguments: Arguments) -> Result:
    """Kernels by launch configuration whose blocks fill few of an SM's warp slots.

    Matrix products and attention of libraries are left out: they are built so, and lose nothing.
    """
    report, ops = case.report, case.report.operations
    every = case.alike
    every = every.where((every.kind == OpKind.KERNEL) & (every.category == Category.COMPUTE))
    first, group = _configurations(report, every)
    seen = occupancy(report, first)
    time, count = (sums(group, of, len(first)) for of in (every.time, every.launched))
    whole = float(time.sum()) or 1.0
    low = 100 * seen.share < arguments.number("below")
    low &= 100 * time / whole >= arguments.number("share")
    built_so = [of_library(ops.names[code].demangled) for code in ops.name[first[low]].tolist()]
    wanted = np.flatnonzero(low)[~np.array(built_so, np.bool_)]
    order, hidden = cut(wanted[np.argsort(-time[wanted], kind="stable")], arguments)
    kernels = first[order]
    launch = report.launch_attributes
    names = [ops.shown[code] for code in ops.name[kernels].tolist()]
    findings: list[Finding] = []
    if len(order):
        share = 100 * time[wanted].sum() / whole
        mean = 100 * float(np.average(seen.share[wanted], weights=time[wanted]))
        top = int(kernels[0])
        findings = case.finding(
            "low_occupancy",
            f"{units.format_percent(share)} of compute time at"
            f" ≈{units.format_percent(mean)} theoretical occupancy,"
            f" {most_of(time[order[0]], time[wanted].sum(), 'most in')}"
            f" {brief(names[0], _NAME_CELLS)} ({LIMITS[seen.limit[order[0]]]})",
            "look at block size, registers and shared memory of these kernels",
            subject="low occupancy",
            saved_ns=0,
            window=(int(ops.start[top]), int(ops.end[top])),
            device=int(ops.device[top]),
            screen="3",
            at_least=Severity.LOW,
            settle=by_ncu(ops.names[ops.name[top]].short),
        )
    columns = (
        (Column("Occupancy ≈", Unit.PERCENT, 1), 100 * seen.share[order]),
        (Column("Limited By"), [LIMITS[limit] for limit in seen.limit[order].tolist()]),
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Launches", Unit.COUNT), count[order]),
        (Column("Block"), ["x".join(map(str, b)) for b in launch.of(kernels, BLOCK).tolist()]),
        (Column("Registers", Unit.NONE), launch.of(kernels, REGISTERS)),
        (Column("Shared Memory", Unit.BYTES), launch.shared[launch.code[kernels]]),
        (Column("Kernel"), names),
    )
    return Result(columns, findings, hidden=hidden)


def _configurations(report: Report, every: Alike) -> tuple[Int64, Integers]:
    """The first row of each distinct launch configuration, and which of them each kind is of."""
    launch = report.launch_attributes
    configuration, _ = factorise_rows((launch.threads, launch.table[:, REGISTERS], launch.shared))
    codes, keys = factorise_rows((every.device, every.name, configuration[every.code]))
    first = np.full(len(keys), len(launch.code))
    np.minimum.at(first, codes, every.first)
    return first, codes
