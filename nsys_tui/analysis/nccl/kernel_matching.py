"""Which launch of collectives was which kernel: by the call that launched it, else by order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

import numpy as np

from nsys_tui.analysis.nccl.calls import ANY_KIND, Calls, Launches
from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import factorise
from nsys_tui.model.report import Report
from nsys_tui.model.target import pid_of, tid_of
from nsys_tui.units import plural

_KERNEL: Final = re.compile(r"(?:nccl|rccl|msccl)", re.IGNORECASE)
_KINDS: Final = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "SendRecv", "Reduce")
_TID: Final = 0xFFFFFF
"""Bits of a thread id; -1, for none, has all of them and so stands last."""
_PREFIX: Final = 64
"""Launches compared first when a place is looked for: most places fail there."""


class How(IntEnum):
    """How a launch was joined with its kernel."""

    NOT = 0
    BY_CALL = 1
    """Launched by a call inside the range of the launch, on its thread."""
    BY_ORDER = 2
    """The k-th launch of a process is its k-th kernel."""


@dataclass(frozen=True, eq=False)
class NcclKernels:
    """The kernels of collectives, ascending by (process, thread, call); without a thread last."""

    row: Indices
    """Row in ``Report.operations``."""
    device: Int32
    """Place in ``Report.devices``."""
    pid: Int64
    thread: Int64
    """Thread id of the call, -1 where there is none."""
    call: Int64
    """Start of the call, else of the kernel, ns."""
    kind: Int32
    """Index into ``kinds``."""
    kinds: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, eq=False)
class Match:
    """The kernel of each launch."""

    first: Int64
    """Row of the first kernel in ``Report.operations``, -1 for none."""
    start: Int64
    end: Int64
    """Of all its kernels, ns; 0 where there is none."""
    how: Int32
    """``How`` of each launch."""
    notes: tuple[str, ...] = ()


def kernel_kind(name: str) -> str:
    """The operation that a kernel's name tells; empty where it tells none."""
    return next((kind for kind in _KINDS if kind.lower() in name.lower()), ANY_KIND)


def nccl_kernels(report: Report) -> NcclKernels:
    """NCCL's kernels of a report, with the calls that launched them."""
    ops, api = report.operations, report.api
    named = np.array([_KERNEL.match(name.short) is not None for name in ops.names], bool)
    rows = np.flatnonzero(ops.category == Category.COMM)
    rows = rows[named[ops.name[rows]]]
    calls = report.calls[rows]
    known = calls >= 0
    call = np.where(known, api.start[calls], ops.start[rows]) if len(api) else ops.start[rows]
    tids = np.array([tid_of(int(tid)) for tid in api.threads], np.int64)
    thread = np.where(known, tids[api.thread[calls]], -1) if len(api) else np.full(len(rows), -1)
    pids = np.array([pid_of(int(pid)) for pid in ops.processes], np.int64)
    pid = pids[ops.process[rows]]
    kinds = (*_KINDS, ANY_KIND)
    codes = np.array([kinds.index(kernel_kind(name.short)) for name in ops.names], np.int32)
    order = np.lexsort((rows, call, thread & _TID, pid))
    rows = rows[order]
    return NcclKernels(
        rows, ops.device[rows], pid[order], thread[order], call[order], codes[ops.name[rows]], kinds
    )


def kernels_inside(
    kernels: NcclKernels, pids: Int64, thread: Int64, start: Int64, end: Int64
) -> tuple[Int64, Int64]:
    """Kernels [first, last) launched by each thread between two times, both edges included."""
    begin, until = np.zeros(len(pids), np.int64), np.zeros(len(pids), np.int64)
    keys = kernels.pid << 24 | (kernels.thread & _TID)
    for key, places in _by(pids << 24 | (thread & _TID)):
        lo, hi = np.searchsorted(keys, [key, key + 1])
        times = kernels.call[lo:hi]
        begin[places] = lo + np.searchsorted(times, start[places], side="left")
        until[places] = lo + np.searchsorted(times, end[places], side="right")
    return begin, until


def match_by_call(report: Report, kernels: NcclKernels, calls: Calls, launches: Launches) -> Match:
    """Joins launches known from NVTX with the kernels that were launched inside their ranges.

    A group that launched one kernel per communicator is told apart by their order in it.
    """
    first = np.full(len(launches), -1, np.int64)
    last = first.copy()
    pids = np.array([p.pid for p in calls.processes], np.int64)[launches.process]
    begin, until = kernels_inside(kernels, pids, launches.thread, launches.start, launches.end)
    for _, places in _by(pids << 24 | (launches.thread & _TID)):
        _take(launches.group[places], places, begin[places], until[places], first, last)
    return _matched(report, kernels, first, last, np.int32(How.BY_CALL))


def _take(
    group: Int64,
    places: Indices,
    begin: Int64,
    end: Int64,
    first: Int64,
    last: Int64,
) -> None:
    """Shares the kernels of each group of launches out among them."""
    code, _ = factorise(group)
    members = np.bincount(code)
    heads = np.flatnonzero(np.append(True, np.diff(code) != 0))
    within = np.arange(len(code)) - heads[code]
    sizes = end - begin
    alone = (members[code] == 1) & (sizes >= 1)
    first[places[alone]] = begin[alone]
    last[places[alone]] = end[alone] - 1
    paired = (members[code] > 1) & (sizes == members[code])
    first[places[paired]] = last[places[paired]] = (begin + within)[paired]


def match_by_order(
    report: Report,
    kernels: NcclKernels,
    launches: Launches,
    pids: Int64,
    before: Match | None = None,
) -> Match:
    """Joins launches with kernels by their order, thread by thread where threads agree.

    Where one side has more than the other, for a log that is longer than the capture, the shorter
    one is placed where the operations fit; if they fit at several places, nothing is joined.

    Args:
        report: the report.
        kernels: its kernels.
        launches: the launches; those of communicators of one rank run no kernel.
        pids: process of the report that each launch belongs to, -1 for none.
        before: an earlier join, whose launches and kernels are left alone.
    """
    first = np.full(len(launches), -1, np.int64)
    open_launches = (pids >= 0) & (launches.ranks != 1)
    open_kernels = np.ones(len(kernels), bool)
    if before is not None:
        open_launches &= before.how == How.NOT
        open_kernels &= ~np.isin(kernels.row, before.first[before.first >= 0])
    notes: list[str] = []
    for pid, places in _by(np.where(open_launches, pids, -1)):
        if pid < 0:
            continue
        theirs = np.flatnonzero((kernels.pid == pid) & open_kernels)
        for mine, rows in _threads(launches.thread, places, kernels, theirs):
            note = _align(launches, mine, kernels, rows, first)
            if note:
                notes.append(f"pid {pid}: {note}")
    joined = replace(
        _matched(report, kernels, first, first, np.int32(How.BY_ORDER)), notes=tuple(notes)
    )
    return joined if before is None else _together(before, joined)


def _threads(
    thread: Int64, places: Indices, kernels: NcclKernels, rows: Indices
) -> Iterator[tuple[Indices, Indices]]:
    """Pairs of launches and kernels of a thread, or of the whole process if threads disagree."""
    mine, theirs = np.unique(thread[places]), np.unique(kernels.thread[rows])
    if len(mine) > 1 and np.array_equal(mine, theirs):
        for tid in mine:
            yield places[thread[places] == tid], rows[kernels.thread[rows] == tid]
    else:
        yield places, rows[np.argsort(kernels.call[rows], kind="stable")]


def _align(
    launches: Launches,
    places: Indices,
    kernels: NcclKernels,
    rows: Indices,
    first: Int64,
) -> str:
    """Puts the shorter of two sequences where it fits into the longer one; says what went wrong."""
    wanted = np.array([_code(kind) for kind in launches.kinds])[launches.kind[places]]
    given = np.array([_code(kind) for kind in kernels.kinds])[kernels.kind[rows]]
    counts = f"{len(places):,} launch{'es' * (len(places) != 1)} and {plural(len(rows), 'kernel')}"
    if not len(rows) or not len(places):
        return f"{counts}: nothing to join"
    swap = len(wanted) > len(given)
    offsets = _fits(given, wanted) if swap else _fits(wanted, given)
    if len(offsets) != 1:
        where = "nowhere" if not offsets else "at several places"
        return f"{counts} fit together {where}: not joined"
    if swap:
        places = places[offsets[0] : offsets[0] + len(rows)]
    else:
        rows = rows[offsets[0] : offsets[0] + len(places)]
    first[places] = rows
    return "" if len(wanted) == len(given) else f"≈ {counts}: joined at the only place that fits"


def _code(kind: str) -> int:
    return -1 if kind == ANY_KIND else _KINDS.index(kind)


def _fits(short: Integers, long: Integers) -> list[int]:
    """Places at which a sequence of operations fits into a longer one; two are enough to know."""
    fitting: list[int] = []
    head = short[:_PREFIX]
    for offset in range(len(long) - len(short) + 1):
        if _agree(head, long[offset : offset + len(head)]) and _agree(
            short, long[offset : offset + len(short)]
        ):
            fitting.append(offset)
            if len(fitting) == 2:
                break
    return fitting


def _agree(a: Integers, b: Integers) -> bool:
    same: Bool = (a == b) | (a < 0) | (b < 0)
    return bool(same.all())


def _matched(
    report: Report, kernels: NcclKernels, first: Int64, last: Int64, how: np.int32
) -> Match:
    """Times of the kernels from the first to the last of each launch."""
    ops = report.operations
    matched = np.flatnonzero(first >= 0)
    start, end = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    row = np.full(len(first), -1, np.int64)
    row[matched] = kernels.row[first[matched]]
    start[matched] = ops.start[row[matched]]
    end[matched] = ops.end[row[matched]]
    for member in matched[last[matched] > first[matched]].tolist():
        rows = kernels.row[first[member] : last[member] + 1]
        start[member], end[member] = ops.start[rows].min(), ops.end[rows].max()
    return Match(row, start, end, np.where(first >= 0, how, How.NOT).astype(np.int32))


def _together(before: Match, after: Match) -> Match:
    new = before.how == How.NOT
    return Match(
        np.where(new, after.first, before.first),
        np.where(new, after.start, before.start),
        np.where(new, after.end, before.end),
        np.where(new, after.how, before.how),
        (*before.notes, *after.notes),
    )


def _by(keys: Int64) -> Iterator[tuple[int, Indices]]:
    """(key, places) of each distinct key; places ascend."""
    order = np.argsort(keys, kind="stable")
    if not len(keys):
        return
    for part in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        yield int(keys[part[0]]), part
