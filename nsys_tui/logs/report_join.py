"""The logged calls as the columns that the analysis of collectives joins with a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from nsys_tui.analysis.nccl.calls import CallProcess
from nsys_tui.analysis.nccl.calls import Calls as JoinCalls

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.logs.calls import Calls
    from nsys_tui.logs.result import LogResult

Values: TypeAlias = "NDArray[np.int64]"
_LARGEST: Final = 2**40
"""opCounts above are torn lines."""


def join_calls(result: LogResult) -> JoinCalls:
    """The calls that a report can be joined with: those whose process is known.

    All calls are taken, also those outside of a window of steps: a report may hold any of them.
    Those that the result was restricted to are marked as chosen.
    """
    kinds = result.every_call.by_kind
    calls = result.every_call.select((kinds.process >= 0) & (kinds.communicator >= 0))
    chosen = _chosen(result, calls)
    zeros = np.zeros(len(calls), np.int64)
    stuck = _stuck(calls)
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


def _chosen(result: LogResult, every: Calls) -> NDArray[np.bool_]:
    if len(result.calls) == len(result.every_call):
        return np.ones(len(every), np.bool_)
    calls = result.calls.select()
    all_places, places = (one.file.astype(np.int64) << 40 | one.line for one in (every, calls))
    return np.isin(all_places, places)


def _launches(calls: Calls, stuck: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Launch of each call: its (communicator, opCount), or itself where opCount stands still."""
    own = np.where(stuck, np.arange(len(calls)), -1)
    columns = np.stack([calls.communicator, calls.op_count, own], axis=1)
    code: NDArray[np.int64] = np.unique(columns, axis=0, return_inverse=True)[1].ravel()
    return code


def _stuck(calls: Calls) -> NDArray[np.bool_]:
    """Calls of processes whose opCount never moves: only the order of their lines is left.

    One communicator alone tells nothing, for it may have made all of its calls in one group.
    """
    if not len(calls):
        return np.empty(0, np.bool_)
    owner, communicator = calls.process, calls.communicator
    low, high = _extremes(communicator, calls.op_count)
    moves = np.bincount(owner, low[communicator] != high[communicator]) > 0
    lines = np.bincount(communicator)
    found: NDArray[np.bool_] = ~moves[owner] & (lines[communicator] > 1)
    return found


def _extremes(code: NDArray[np.int32], values: NDArray[np.int64]) -> tuple[Values, Values]:
    low = np.full(int(code.max()) + 1, np.iinfo(np.int64).max)
    high = np.full(len(low), np.iinfo(np.int64).min)
    np.minimum.at(low, code, values)
    np.maximum.at(high, code, values)
    return low, high
