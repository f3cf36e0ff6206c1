"""Process and thread columns of the traces, and how a table calls a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.model.groups import factorise
from nsys_tui.model.kinds import Kind
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.model.events import Int64

_24_BITS: Final = np.int64(0xFFFFFF)


def pids(global_ids: Int64) -> Int64:
    """Process ids of globalTids or globalPids."""
    return (global_ids >> np.int64(24)) & _24_BITS


def tids(global_tids: Int64) -> Int64:
    """Thread ids of globalTids."""
    return global_tids & _24_BITS


def thread_facts(query: Query, threads: Int64) -> tuple[NDArray[Any], NDArray[Any]]:
    """Priority and name of each event's thread, None and empty where not recorded."""
    found = query.report.rows(Kind.THREAD, "global_tid", "priority")
    facts = dict(zip(*found.lists(), strict=True))
    codes, distinct = factorise(threads)
    priorities = np.array([facts.get(int(t)) for t in distinct], object)
    named = [int(t) in facts for t in distinct]
    names = np.array(
        [
            query.report.thread_name(int(t)) if known else ""
            for t, known in zip(distinct, named, strict=True)
        ],
        object,
    )
    return priorities[codes], names[codes]


def rank_label(ranks: Mapping[int, int], global_pid: int) -> str:
    """How a table calls a process: its rank, or its pid where no rank was recorded."""
    rank = ranks.get(global_pid)
    return f"pid {pid_of(global_pid)}" if rank is None else str(rank)
