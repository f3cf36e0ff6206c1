"""The logged calls as the columns that the analysis of collectives joins with a report."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.nccl.calls import CallProcess
from nsys_tui.analysis.nccl.calls import Calls as JoinCalls
from nsys_tui.logs.nccl.calls import Calls, reaches
from nsys_tui.logs.result import LogResult
from nsys_tui.model.arrays import Bool, Int64

_LARGEST: Final = 2**40
"""opCounts above are torn lines."""


def join_calls(result: LogResult) -> JoinCalls:
    """The calls that a report can be joined with: those whose process is known.

    All calls are taken, also those outside of a window of steps: a report may hold any of them.
    Those that the result was restricted to are marked as chosen.
    """
    kinds = result.every_call.by_kind
    kept = kinds.process >= 0
    calls = result.every_call.select(kept)
    chosen = _chosen(result, calls)
    zeros = np.zeros(len(calls), np.int64)
    stuck = _stuck(result, calls, kept)
    names = [
        group.comm_id or f"{'' if group.certain else '≈ '}group {number}"
        for number, group in enumerate(result.groups)
    ]
    group_of = np.array([one.group for one in result.communicators] or [0], np.int32)
    return JoinCalls(
        calls.process,
        calls.thread,
        calls.op,
        calls.bytes,
        calls.nranks,
        calls.rank,
        group_of[calls.communicator],
        np.zeros(len(calls), np.int32),
        _launches(calls, stuck),
        np.where(stuck | (calls.op_count > _LARGEST), -1, calls.op_count),
        zeros,
        zeros,
        chosen,
        calls.ops,
        tuple(names),
        tuple(CallProcess(one.host, one.pid, one.rank) for one in result.processes),
    )


def _chosen(result: LogResult, every: Calls) -> Bool:
    if len(result.calls) == len(result.every_call):
        return np.ones(len(every), np.bool_)
    calls = result.calls.select()
    all_places, places = (one.file.astype(np.int64) << 40 | one.line for one in (every, calls))
    return np.isin(all_places, places)


def _launches(calls: Calls, stuck: Bool) -> Int64:
    """Launch of each call: its (communicator, opCount), or itself where opCount stands still."""
    launch = np.where(stuck, np.arange(len(calls)), -1)
    columns = np.stack([calls.communicator, calls.op_count, launch], axis=1)
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


def _stuck(result: LogResult, calls: Calls, kept: Bool) -> Bool:
    """Calls of processes whose opCount never moves: only the order of their lines is left.

    One communicator alone tells nothing, for it may have made all of its calls in one group.
    """
    whole, _ = reaches(result.every_call, kept)
    processes = [one.process for one in result.communicators]
    moving = {processes[one] for one, reach in whole.items() if reach.low != reach.high}
    stuck = np.zeros(len(processes) + 1, np.bool_)
    for one, reach in whole.items():
        stuck[one] = reach.number > 1 and processes[one] not in moving
    return stuck[calls.communicator]
