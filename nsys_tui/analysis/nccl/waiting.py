"""Time of communication kernels in which a GPU waits for other ranks, apart from the transfer.

A rank waits in its kernel until the last rank's kernel of the same collective starts. Which kernels
are one collective is told by communicator and order where NVTX names them, else by the order of
kernels alone; kernels of one collective that did not run at the same time are not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import Coverage, Covered, DeviceSplit, coverages, split_of
from nsys_tui.analysis.nccl.collectives import collectives
from nsys_tui.analysis.nccl.kernel_matching import nccl_kernels
from nsys_tui.analysis.nccl.rank_matching import Traced
from nsys_tui.analysis.window import Scope, clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import factorise, factorise_rows
from nsys_tui.model.report import Report

MOST_APART: Final = 0.01
"""Part of a group's collectives that may run apart before its matching is not believed."""
_AT_ONCE: Final = 0.1
"""Part of the longest kernel of a collective within which all of its kernels end."""
_PAIR: Final = 2
PAIRWISE: Final = "SendRecv"
"""In the names of kernels that talk to one other rank."""
_NONE: Final = np.empty((3, 0), np.int64)
"""Rows, ends of waiting and last ranks' rows of no kernel."""


@dataclass(frozen=True, eq=False)
class Waits:
    """Kernels of collectives whose partners are known, and how many are not."""

    row: Int64
    """Rows of ``Report.operations``, ascending."""
    until: Int64
    """When the last rank of each one's collective started, at most the kernel's own end; ns."""
    last: Int64
    """Row of that rank's kernel."""
    by_order: int
    """Kernels of them that only their order tells."""
    unmatched: int
    """Kernels of communication whose partners are not known."""
    partial: bool
    """Whether there are, or may be, ranks that the report does not show: then waiting is a
    lower bound."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def note(self) -> str:
        """What is not known about the waiting, as one sentence; empty where nothing is."""
        said = []
        if self.unmatched:
            total = self.unmatched + len(self)
            said.append(
                f"partners of {self.unmatched:,} of {total:,} communication kernels are not"
                " known: their waiting counts as communication"
            )
        if self.by_order:
            said.append(f"{self.by_order:,} kernels are matched by their order alone")
        if len(self) and self.partial:
            said.append("waiting is a lower bound: ranks may be missing in this report")
        return "; ".join(said)


@dataclass(frozen=True, eq=False)
class Waiting:
    """When communication of one device was nothing but waiting for other ranks."""

    all: Covered
    exposed: Covered
    """The part of it that no compute hides."""


def collective_waits(report: Report) -> Waits:
    """Finds the kernels that waited; made once for a report."""
    waits = report.derived("collective_waits_4", lambda: _waits(report))
    by_order, unmatched, partial = waits["facts"].tolist()
    return Waits(waits["row"], waits["until"], waits["last"], by_order, unmatched, bool(partial))


def waiting_of(report: Report, coverage: Coverage, waits: Waits) -> Waiting | None:
    """The waiting of one device within the scope of a coverage.

    What one kernel transfers while another one waits is no waiting.

    Returns:
        None where no partner of any of the device's communication is known.
    """
    comm = coverage.of[Category.COMM]
    position = np.searchsorted(waits.row, comm)
    known = np.zeros(len(comm), bool)
    inside = position < len(waits)
    known[inside] = waits.row[position[inside]] == comm[inside]
    if not known.any():
        return None
    start, end = clipped(report.operations, comm, coverage.window)
    until = start.copy()
    until[known] = np.clip(waits.until[position[known]], start[known], end[known])
    waited = intervals.subtract((start, until), (until, end))
    compute = coverage.compute
    # The part that compute hides comes first: all of compute is too much to subtract.
    hidden = intervals.meet(waited, (compute.starts, compute.ends))
    exposed = intervals.subtract(waited, hidden)
    return Waiting(Covered(*waited), Covered(*exposed))


def splits_with_waiting(
    report: Report,
    scope: Scope,
    known: Sequence[DeviceSplit] = (),
    parts: Iterable[Coverage] | None = None,
) -> list[DeviceSplit]:
    """Where the time of each device in scope went, waiting for other ranks included.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        known: the same without waiting, where it is there already.
        parts: when each device did what, where that is known already.
    """
    waits = collective_waits(report)
    if known and not len(waits):
        return [*known]
    split = partial(_split, report, scope, waits)
    # Without a name for each: the last one would stay, 190 MB, while the next is made.
    parts = coverages(report, scope) if parts is None else parts
    return [*map(split, parts, known or repeat(None))]


def _split(
    report: Report, scope: Scope, waits: Waits, coverage: Coverage, known: DeviceSplit | None
) -> DeviceSplit:
    split = known or split_of(report, coverage, scope)
    waiting = waiting_of(report, coverage, waits)
    if waiting is None:
        return split
    return replace(
        split,
        comm_waiting_ns=waiting.all.total(),
        exposed_waiting_ns=waiting.exposed.total(),
    )


def waited_for(report: Report, device: int) -> Float64:
    """How long a GPU waited in collectives for each, by its place: float64 [devices], ns."""
    ops, waits = report.operations, collective_waits(report)
    mine = np.flatnonzero(ops.device[waits.row] == device)
    waited = np.maximum(waits.until[mine] - ops.start[waits.row[mine]], 0)
    by_device = np.bincount(ops.device[waits.last[mine]], waited, len(ops.devices))
    by_device[device] = 0
    return np.asarray(by_device, np.float64)


def _waits(report: Report) -> dict[str, Int64]:
    ops = report.operations
    devices = len(np.unique(ops.device[ops.category == Category.COMM]))
    row, until, last = _NONE
    partial, by_order = False, 0
    if devices > 1:
        named, partial = _named(report)
        kernels = nccl_kernels(report)
        left = np.setdiff1d(kernels.row, named[0])
        own = np.setdiff1d(np.flatnonzero(ops.category == Category.COMM), kernels.row)
        apart = (_ordered(report, left, devices), _ordered(report, own, devices, by_name=True))
        ordered = np.concatenate(apart, axis=1)
        by_order = ordered.shape[1]
        # Nothing but the number of ranks in a communicator tells that all are here.
        partial |= by_order > 0
        row, until, last = np.concatenate((named, ordered), axis=1)
    order = np.argsort(row)
    comm = int(np.count_nonzero(ops.category == Category.COMM))
    facts = np.array((by_order, comm - len(row), partial), np.int64)
    return {"row": row[order], "until": until[order], "last": last[order], "facts": facts}


def _named(report: Report) -> tuple[Int64, bool]:
    """``Waits`` of kernels whose collective NVTX names, as rows; whether ranks are missing.

    A send or receive waits for its partner alone, which is known where there are but two.
    """
    calls = collectives([Traced(report)])
    if not len(calls):
        return _NONE, False
    pairwise = np.array(["Send" in label or "Recv" in label for label in calls.label], bool)
    alone = np.where(calls.ranks > 0, calls.ranks, len(calls.members)) == 2
    whole = (calls.seen > 1) & (alone | ~pairwise)
    partial = bool((whole & ((calls.seen < calls.ranks) | (calls.ranks < 1))).any())
    codes = {text: code for code, text in enumerate(dict.fromkeys(calls.communicator))}
    communicator = np.array([codes[text] for text in calls.communicator], np.int64)
    parts = calls.parts
    chosen = whole[parts.collective]
    code = parts.collective[chosen]
    kept = _believed(report, parts.row[chosen], code, communicator[code])
    return kept, partial


def _believed(
    report: Report, row: Int64, collective: Int64, group: Integers, *, end_together: bool = False
) -> Int64:
    """``Waits`` of the kernels of collectives that ran on all ranks at one time, as rows.

    Args:
        report: the report.
        row: kernels, rows of ``Report.operations``.
        collective: number of the collective of each.
        group: what was matched in one go, such as a communicator; one with too many collectives
            that ran apart is left out.
        end_together: kernels that end at different times count as apart, too.
    """
    if not len(row):
        return _NONE
    ops = report.operations
    code, distinct = factorise(collective)
    last, first = np.full((2, len(distinct)), 0)
    last[:], first[:] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    np.maximum.at(last, code, ops.start[row])
    np.minimum.at(first, code, ops.end[row])
    together = (last < first)[code]
    if end_together:
        longest, until = np.full((2, len(distinct)), np.iinfo(np.int64).min)
        np.maximum.at(longest, code, ops.durations(row))
        np.maximum.at(until, code, ops.end[row])
        together &= (until - first <= _AT_ONCE * longest)[code]
    count = np.bincount(group)
    share = np.bincount(group, ~together) / np.maximum(count, 1)
    kept = together & (share <= MOST_APART)[group]
    came = np.empty(len(distinct), np.int64)
    order = np.argsort(ops.start[row], kind="stable")
    came[code[order]] = row[order]
    return np.stack((row[kept], np.minimum(last[code], ops.end[row])[kept], came[code][kept]))


def _ordered(report: Report, rows: Integers, devices: int, *, by_name: bool = False) -> Int64:
    """The same for kernels that no call names: the k-th of streams with equal sequences are one.

    Args:
        report: the report.
        rows: of these kernels.
        devices: GPUs that communicate.
        by_name: each name is believed for itself, as a framework's own kernels may be local.
    """
    parts = [_NONE]
    for streams in _alike(report, rows):
        count = len(streams[0])
        number = np.tile(np.arange(count), len(streams))
        names = report.operations.name[streams[0]]
        sends = any(PAIRWISE in report.operations.names[code].short for code in np.unique(names))
        # Of more GPUs than two those talk to each other whose kernels end as one.
        several = sends and devices > _PAIR
        group = np.tile(names * by_name, len(streams))
        parts.append(
            _believed(report, np.concatenate(streams), number, group, end_together=several)
        )
    return np.concatenate(parts, axis=1)


def _alike(report: Report, rows: Integers) -> Iterator[list[Integers]]:
    """Kernels of streams of several GPUs that ran the same kernels in the same order.

    A sequence that a GPU has on two streams fits in two ways, and so in none.
    """
    ops = report.operations
    lane, distinct = factorise_rows((ops.device[rows], ops.stream[rows]))
    groups: dict[tuple[str, ...], list[tuple[int, Integers]]] = {}
    for code in range(len(distinct)):
        mine = rows[lane == code]
        names = tuple(ops.names[code].short for code in ops.name[mine].tolist())
        groups.setdefault(names, []).append((int(distinct[code, 0]), mine))
    for entries in groups.values():
        gpus = len({device for device, _ in entries})
        if gpus > 1 and gpus == len(entries):
            yield [mine for _, mine in entries]
