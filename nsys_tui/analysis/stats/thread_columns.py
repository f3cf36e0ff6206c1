"""Process and thread columns of the traces, and how a table calls a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.groups import factorise
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.stats.registry import Columns
    from nsys_tui.model.events import Int64

_24_BITS: Final = np.int64(0xFFFFFF)


def pids(global_ids: Int64) -> Int64:
    """Process ids of globalTids or globalPids."""
    return (global_ids >> np.int64(24)) & _24_BITS


def tids(global_tids: Int64) -> Int64:
    """Thread ids of globalTids."""
    return global_tids & _24_BITS


def thread_columns(query: Query, threads: Int64) -> Columns:
    """Process, thread, priority and name of each event's thread; empty where not recorded."""
    found = query.report.rows(Kind.THREAD, "global_tid", "priority")
    facts = dict(zip(*found.lists(), strict=True))
    codes, distinct = factorise(threads)
    known = distinct.tolist()
    priorities = np.array([facts.get(tid) for tid in known], object)
    names = np.array(
        [query.report.thread_name(tid) if tid in facts else "" for tid in known], object
    )
    return [
        (Column("Pid", Unit.NONE), pids(threads)),
        (Column("Tid", Unit.NONE), tids(threads)),
        (Column("T-Pri", Unit.NONE), priorities[codes]),
        (Column("Thread Name"), names[codes]),
    ]


def rank_label(ranks: Mapping[int, int], global_pid: int) -> str:
    """How a table calls a process: its rank, or its pid where no rank was recorded."""
    rank = ranks.get(global_pid)
    return f"pid {pid_of(global_pid)}" if rank is None else str(rank)
