"""Our rule on unified memory: kernels that wait for pages which are not on their GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import AND_OTHERS, Case, kept
from nsys_tui.analysis.rules.copies import FAST, LARGE
from nsys_tui.analysis.rules.copy_advice import bus_rate, page_advice
from nsys_tui.analysis.rules.finding import Finding, by_ncu
from nsys_tui.analysis.rules.register import Arguments, Result, cut, most_of, rule
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.groups import factorise_rows, regroup, rows_of_codes, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import brief

_NAME_CELLS: Final = 36
_FAULT_NS: Final = 100_000
"""A fault takes up to this, however short the migration before."""
_FEWEST_QUIET: Final = 3
"""Launches without migrations from which is known how long they take."""
_AFTER_FAULTS: Final = 3
"""Causes from here on follow no fault of their own."""


@rule(
    "Migrations of unified memory while a kernel runs",
    advice="A kernel that touches pages which are not on its GPU waits for each of them: prefetch"
    " (cudaMemPrefetchAsync), advise (cudaMemAdvise), or copy ahead of the launch.",
    nothing="No pages are known to migrate on demand while kernels run.",
)
def migrations_in_kernels(case: Case, arguments: Arguments) -> Result:
    """Kernels by name with the time and bytes of migrations that run at the same time.

    Recorded faults count as a whole; without them, in kernels in which pages come, what is shorter
    than the migration before.
    Prefetched pages still cross the bus, which other kernels can hide.
    """
    ops = case.report.operations
    moved = case.copies[case.on_demand(case.copies)]
    kernels = case.where(lambda rows: (ops.kind[rows] == OpKind.KERNEL) & (len(moved) > 0))
    time, size = np.zeros(len(kernels), np.int64), np.zeros(len(kernels), np.int64)
    pages, recorded = migrating(case)
    unseen = not recorded and bool((ops.migration[moved] < _AFTER_FAULTS).any())
    for device, covered in pages.items():
        mine = moved[ops.device[moved] == device]
        of_device = np.flatnonzero(ops.device[kernels] == device)
        starts, ends = ops.start[kernels[of_device]], ops.end[kernels[of_device]]
        sizes = np.append(0, np.cumsum(ops.bytes[mine]))
        first, last = (np.searchsorted(ops.start[mine], times) for times in (starts, ends))
        time[of_device] = intervals.covered(covered, starts, ends) * (recorded | (last > first))
        size[of_device] = sizes[last] - sizes[first]
    groups = sum(len(covered[0]) for covered in pages.values())
    kernels, time, size = (part[time > 0] for part in (kernels, time, size))
    codes, names = regroup(ops.name[kernels], ops.shown)
    of_name, bytes_of = sums(codes, time, len(names)), sums(codes, size, len(names))
    used = np.flatnonzero(of_name)
    order, hidden = cut(used[np.argsort(-of_name[used], kind="stable")], arguments)
    findings: list[Finding] = []
    if len(kernels):
        device = int(np.argmax(np.bincount(ops.device[kernels], time)))
        here = ops.device[kernels] == device  # GPUs side by side lose it once
        waits = pages[device]
        waiting = _Waiting(names, kernels[here], codes[here], time[here], waits)
        unseen = unseen and groups > len(time)
        findings = _waits_for_pages(case, device, waiting, moved, unseen=unseen)
    columns = (
        (Column("Migrating", Unit.NS), of_name[order]),
        (Column("Bytes", Unit.BYTES), bytes_of[order]),
        (Column("Launches", Unit.COUNT), np.bincount(codes, minlength=len(names))[order]),
        (Column("Kernel"), [names[code] for code in order.tolist()]),
    )
    return Result(columns, findings, hidden=hidden)


@kept
def migrating(case: Case) -> tuple[dict[int, Intervals], bool]:
    """When pages come on demand on each device that has some, and whether faults are recorded."""
    ops, moved = case.report.operations, case.copies[case.on_demand(case.copies)]
    recorded = len(moved) > 0 and case.report.has(Kind.UM_GPU_FAULT, "start", "end")
    faults, pages = _faults(case) if recorded else {}, dict[int, Intervals]()
    for device in np.unique(ops.device[moved]).tolist():
        mine = moved[ops.device[moved] == device]
        pages[device] = _with_faults((ops.start[mine], ops.end[mine]), faults.get(device))
    return pages, bool(faults)


class _Waiting(NamedTuple):
    """Launches of a GPU while which pages migrate."""

    names: Sequence[str]
    rows: Indices
    codes: Indices
    """Of their names."""
    time: Int64
    pages: Intervals
    """When pages come: kernels that run at the same time wait for the same ones."""


def _waits_for_pages(
    case: Case, device: int, waiting: _Waiting, moved: Indices, *, unseen: bool
) -> list[Finding]:
    """How much longer all kernels of a GPU take for pages, under the name that waits longest.

    Where others of their name tell how long they take without, what is more; else the time of
    migrations. Less what those need on the bus and no compute before the last one hides.
    """
    ops, (names, rows, codes, time, pages) = case.report.operations, waiting
    longer = {code: _without(case, rows[codes == code]) for code in np.unique(codes).tolist()}
    blind = np.isin(codes, [code for code, more in longer.items() if more is None])
    moved = moved[ops.device[moved] == device]
    during = intervals.union(ops.start[rows], ops.end[rows])
    moved = moved[intervals.covered(during, ops.start[moved], ops.start[moved] + 1) > 0]
    takes, size = (
        intervals.overlap_length(pages, ops.runs(rows[blind])),
        int(ops.bytes[moved].sum()),
    )
    least = _on_bus(case, moved, size)
    lasts = takes + sum(more for more in longer.values() if more)
    computes = case.runs(device, Category.COMPUTE)
    done = ops.end[moved].max(initial=0)
    hides = int(intervals.busy_before(computes, intervals.prefix(*computes), done))
    hides -= intervals.overlap_length(pages, during)
    lasts = min(lasts, intervals.total(*during))
    cost = lasts - max(0, min(lasts, least) - max(0, hides))
    of_name = sums(codes, time, len(names))
    top, unseen = int(np.argmax(of_name)), unseen and takes > 0
    several = bool(10 * of_name[top] < 9 * time.sum())
    name = brief(names[top], _NAME_CELLS)
    longest = int(rows[np.argmax(time * (codes == top))])
    ends = ", faults not recorded" * unseen if takes else " longer than without"
    return case.finding(
        "migrations_in_kernels",
        f"{units.format_bytes(size)} of pages migrate while"
        f" {'kernels run, ' + most_of(of_name[top], time.sum()) + ' ' if several else ''}{name}"
        f"{'' if several else ' runs'}: {units.format_duration(lasts)}{ends}",
        page_advice(case, moved),
        subject=f"pages migrate in {name}{AND_OTHERS * several}",
        saved_ns=cost,
        window=(int(ops.start[longest]), int(ops.end[longest])),
        device=device,
        gone=intervals.meet(pages, during),
        settle="nsys profile --cuda-um-gpu-page-faults=true"
        if unseen
        else by_ncu(ops.names[ops.name[longest]].short),
    )


def _on_bus(case: Case, moved: Indices, size: int) -> int:
    """How long pages of some size need at least, with those of one direction at the best rate.

    Large ones tell what the bus allows; else it may be as quick as its generation.

    Args:
        case: the report.
        moved: migrations of one GPU while kernels run that wait for them.
        size: bytes of those that count.
    """
    ops = case.report.operations
    moved = moved[ops.bytes[moved] > 0]
    if not len(moved):
        return 0
    of_kind = np.bincount(ops.copy_kind[moved], ops.bytes[moved])
    rate = ops.bytes[moved] / np.maximum(ops.durations(moved), 1)
    large = rate[ops.bytes[moved] >= LARGE]
    best = float(np.quantile(large if len(large) else rate, FAST))
    if not len(large):
        best = max(best, bus_rate(case, int(ops.device[moved[0]])))
    return round(size * float(of_kind.max() / of_kind.sum()) / best)


def _faults(case: Case) -> dict[int, Intervals]:
    """When each device serves page faults, by its place; empty where that is not recorded."""
    names = ("start", "end", "device_id", "global_pid")
    _, starts, ends, ordinal, process = case.report.numbers(Kind.UM_GPU_FAULT, *names)
    served = {}
    for place, device in enumerate(case.report.devices if len(starts) else ()):
        members = [member.pid << 32 | member.ordinal for member in device.members]
        own = (ends > starts) & np.isin((process >> 24 & 0xFFFFFF) << 32 | ordinal, members)
        served[place] = intervals.union(starts[own], ends[own])
    return served


def _with_faults(moves: Intervals, faults: Intervals | None) -> Intervals:
    """Migrations with recorded faults, else those between them, no longer than the one before."""
    starts, ends = moves
    if faults is not None:
        return intervals.joined(moves, faults)
    apart = starts[1:] - np.maximum.accumulate(ends)[:-1]
    near = apart <= np.maximum((ends - starts)[:-1], _FAULT_NS)
    until = np.where(near, np.maximum(starts[1:], ends[:-1]), ends[:-1])
    return intervals.union(starts, np.append(until, ends[-1:]))


def _without(case: Case, rows: Indices) -> int | None:
    """How much longer launches of a kernel take than others of its name and shape, all in all.

    Args:
        case: the report.
        rows: launches of a GPU during which pages migrate.

    Returns:
        None where too few others tell.
    """
    ops, launch, more = case.report.operations, case.report.launch_attributes, 0
    names, device = ops.name[rows], ops.device[rows[0]]
    every = case.where(lambda all_: np.isin(ops.name[all_], names) & (ops.device[all_] == device))
    codes, kinds = factorise_rows((ops.name[every], launch.code[every]))
    migrates = np.isin(every, rows)
    for same in rows_of_codes(codes, len(kinds)):
        time, slow = ops.durations(every[same]), migrates[same]
        if slow.any() and np.count_nonzero(~slow) < _FEWEST_QUIET:
            return None
        more += int((time[slow] - np.median(time[~slow])).clip(0).sum()) if slow.any() else 0
    return more
