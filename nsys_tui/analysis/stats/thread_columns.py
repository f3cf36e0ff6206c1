"""Process and thread columns of the traces, and which MPI rank a process is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.model.groups import factorise
from nsys_tui.model.target import PROCESS_MASK, pid_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report

_24_BITS: Final = np.int64(0xFFFFFF)
_MPI_THREAD: Final = re.compile(r"MPI Rank (\d+)")


def pids(global_ids: Int64) -> Int64:
    """Process ids of globalTids or globalPids."""
    return (global_ids >> np.int64(24)) & _24_BITS


def tids(global_tids: Int64) -> Int64:
    """Thread ids of globalTids."""
    return global_tids & _24_BITS


def thread_facts(query: Query, threads: Int64) -> tuple[NDArray[Any], NDArray[Any]]:
    """Priority and name of each event's thread, None and empty where not recorded."""
    found = query.report.rows("ThreadNames", "globalTid", "priority", "nameId")
    facts = {
        tid: (priority, name)
        for tid, priority, name in zip(
            found["globalTid"], found["priority"], found["nameId"], strict=True
        )
    }
    codes, distinct = factorise(threads)
    priorities = np.array([facts.get(int(t), (None, None))[0] for t in distinct], object)
    named = [int(t) in facts for t in distinct]
    names = np.array(
        [
            query.report.thread_name(int(t)) if known else ""
            for t, known in zip(distinct, named, strict=True)
        ],
        object,
    )
    return priorities[codes], names[codes]


def process_ranks(report: Report) -> dict[int, int]:
    """globalPid -> MPI rank, from MPI_RANKS or from threads that MPI named ``MPI Rank 3``."""
    found = report.rows("MPI_RANKS", "globalTid", "rank")
    ranks = {
        int(tid) & PROCESS_MASK: int(rank)
        for tid, rank in zip(found["globalTid"], found["rank"], strict=True)
    }
    if ranks:
        return ranks
    named = report.rows("NVTX_EVENTS", "eventType", "text", "globalTid")
    for kind, text, tid in zip(named["eventType"], named["text"], named["globalTid"], strict=True):
        match = _MPI_THREAD.fullmatch(text or "") if kind == 39 and tid is not None else None
        if match:
            ranks[int(tid) & PROCESS_MASK] = int(match.group(1))
    return ranks


def rank_label(ranks: dict[int, int], global_pid: int) -> str:
    """How a table calls a process: its rank, or its pid where no rank was recorded."""
    rank = ranks.get(global_pid)
    return f"pid {pid_of(global_pid)}" if rank is None else str(rank)
