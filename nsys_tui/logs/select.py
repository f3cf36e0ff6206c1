"""A result restricted to some calls, and the rank that a call counts for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.logs.calls import Calls
    from nsys_tui.logs.result import LogResult


def job_ranks(result: LogResult, calls: Calls) -> NDArray[np.int64]:
    """Rank in the job of each of some calls; -1 where no line tells it.

    A process that drives several GPUs has no rank of its own; then the communicator's rank counts,
    if it is one of the largest size.
    """
    of_process = np.array([p.rank for p in result.processes] + [-1], dtype=np.int64)
    rank = of_process[calls.process]
    largest = max((c.nranks for c in result.communicators), default=-1)
    return np.where((rank < 0) & (calls.nranks == largest), calls.rank, rank)


def restrict(result: LogResult, *, rank: int | None = None, gpu: int | None = None) -> LogResult:
    """The same result with the calls of one rank of the job or of the GPUs of one number only."""
    kinds = result.calls.by_kind
    keep = np.ones(len(kinds), dtype=np.bool_)
    if rank is not None:
        keep &= job_ranks(result, kinds) == rank
    if gpu is not None:
        devices = np.array([one.device for one in result.gpus] + [-1], dtype=np.int64)
        keep &= devices[kinds.gpu] == gpu
    if keep.all():
        return result
    return replace(result, calls=result.calls.where(lambda rows: keep[rows["kind"]]))
