"""Collectives of one or several reports: which kernel, how fast, and who kept the others waiting.

The calls come from the reports' own NVTX ranges or from an NCCL log; see ``result`` for what
the figures mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.nccl.calls import UNKNOWN, launches_of
from nsys_tui.analysis.nccl.group_devices import with_slots
from nsys_tui.analysis.nccl.kernel_matching import match_by_call, match_by_order, nccl_kernels
from nsys_tui.analysis.nccl.nvtx_calls import MISSING, nvtx_calls
from nsys_tui.analysis.nccl.rank_matching import Side, Traced, join_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.nccl.calls import CallProcess, Calls, Launches
    from nsys_tui.analysis.nccl.kernel_matching import Match, NcclKernels
    from nsys_tui.analysis.nccl.result import Collectives
    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report


def collectives(traced: Sequence[Traced], logged: Calls | None = None) -> Collectives:
    """Finds the collectives of reports, with their kernels.

    Args:
        traced: the reports; times of all are put on the clock of the first by their UTC start.
        logged: calls of an NCCL log, which then give sizes instead of the reports' NVTX ranges.

    Returns:
        The collectives that were joined with a kernel. Ranks are joined by communicator and order.
    """
    sides = [_side(one, logged, _offset(one.report, traced[0].report)) for one in traced]
    return join_ranks(traced, sides, "NCCL log" if logged is not None else "NVTX payloads")


def _offset(report: Report, first: Report) -> int:
    here, there = report.metadata.session_start_utc_ns, first.metadata.session_start_utc_ns
    return 0 if here is None or there is None else here - there


def _side(traced: Traced, logged: Calls | None, offset: int) -> Side:
    report = traced.report
    kernels = nccl_kernels(report)
    own = with_slots(nvtx_calls(report), kernels)
    launches = launches_of(own)
    own_pids = _pids(own, launches)
    match = match_by_call(report, kernels, own, launches)
    match = match_by_order(report, kernels, launches, own_pids, match)
    notes: list[str] = []
    if logged is None:
        calls, pids = own, own_pids
        if len(kernels) and not (launches.bytes >= 0).any():
            notes.append(MISSING)
    else:
        calls, by_nvtx = logged, _sizes_by_kernel(launches, match)
        launches = launches_of(logged)
        place, note = _processes(traced, kernels, logged.processes)
        pids = np.array([*place, UNKNOWN], np.int64)[launches.process]
        match = match_by_order(report, kernels, launches, pids)
        notes += [note] if note else []
        notes += _agreement(by_nvtx, launches, match) + _unsized(launches, match)
    left = len(kernels) - int(np.count_nonzero(match.first >= 0))
    if left > 0:
        notes.append(f"{left:,} of {len(kernels):,} NCCL kernels belong to no known call")
    named = [f"{report.name}: {note}" for note in (*report.notes, *notes, *match.notes)]
    return Side(calls, launches, match, kernels, offset, pids, tuple(named))


def _pids(calls: Calls, launches: Launches) -> Int64:
    return np.array([p.pid for p in calls.processes], np.int64)[launches.process]


def _sizes_by_kernel(launches: Launches, match: Match) -> dict[int, int]:
    known = np.flatnonzero((match.first >= 0) & (launches.bytes >= 0))
    return dict(zip(match.first[known].tolist(), launches.bytes[known].tolist(), strict=True))


def _agreement(by_nvtx: dict[int, int], launches: Launches, match: Match) -> list[str]:
    """How well the log fits what NVTX says of the same kernels."""
    pairs = [
        (by_nvtx[row], size)
        for row, size in zip(match.first.tolist(), launches.bytes.tolist(), strict=True)
        if row in by_nvtx and size >= 0
    ]
    same = sum(a == b for a, b in pairs)
    return [f"sizes agree with NVTX in {same:,} of {len(pairs):,} calls"] if pairs else []


def _unsized(launches: Launches, match: Match) -> list[str]:
    """What has no bus bandwidth because the log tells no number of ranks."""
    count = int(np.count_nonzero((match.first >= 0) & (launches.ranks < 1)))
    text = (
        f"bus bandwidth of {count:,} collectives is unknown: no line tells how many ranks their"
        " communicator has (nsys-tui logs --ranks N gives it)"
    )
    return [text] if count else []


def _processes(
    traced: Traced, kernels: NcclKernels, processes: tuple[CallProcess, ...]
) -> tuple[list[int], str]:
    """Process of the report that each process of the log is, -1 for none, and how that was told."""
    here = np.unique(kernels.pid).tolist()
    host = traced.report.metadata.host.partition(".")[0].lower()
    if traced.rank >= 0 and len(here) == 1:
        return [here[0] if p.rank == traced.rank else UNKNOWN for p in processes], ""
    same = [p for p in processes if p.pid in here]
    if same:
        namesakes = len({p.pid for p in same}) < len(same)
        mine = [p for p in same if not namesakes or p.host.lower() == host]
        return [p.pid if p in mine else UNKNOWN for p in processes], ""
    if len(here) == 1 and traced.named_rank in {p.rank for p in processes if p.rank >= 0}:
        note = f"≈ no process id in common with the log: taken as rank {traced.named_rank} by name"
        return [here[0] if p.rank == traced.named_rank else UNKNOWN for p in processes], note
    if len(processes) == len(here):
        order = sorted(range(len(processes)), key=lambda i: (processes[i].rank, processes[i].pid))
        found = dict(zip(order, here, strict=True))
        note = "≈ no process id in common with the log: processes are paired by order"
        return [found[place] for place in range(len(processes))], note
    return [UNKNOWN] * len(processes), "no process id in common with the log: nothing is joined"
