"""MPI calls: summary, trace and message sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.stats.host_tables import host_summary
from nsys_tui.analysis.stats.registry import Columns, Needs, report
from nsys_tui.analysis.stats.summary import NAME, by_total, moments, pick
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.groups import regroup
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import PROCESS_MASK, pid_of, tid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.analysis.stats.query import Query

SOURCES: Final = {
    Kind.MPI_P2P: "p2p",
    Kind.MPI_COLLECTIVE: "collectives",
    Kind.MPI_START_WAIT: "start_wait",
    Kind.MPI_OTHER: "other",
}
MPI: Final = Needs("MPI", "--trace=mpi", (Capability.MPI,))
SOURCE: Final = Column("Source")


@report("MPI Event Summary", MPI, old="mpieventsum")
def mpi_event_sum(query: Query) -> Columns:
    """MPI calls by function and their durations."""
    return host_summary(query, SOURCES, "Instances", (SOURCE, SOURCES))


@report("MPI Event Trace", MPI, old="mpieventtrace")
def mpi_event_trace(query: Query) -> Columns:
    """Every MPI call by its start, with its rank, peer, tag and sizes."""
    ranks = query.report.ranks
    fields = ("text", "tag", "remote_rank", "root_rank", "size", "recv_size")
    rows = [row | {"kind": kind} for kind in SOURCES for row in query.raw(kind, *fields)]
    if not rows:
        raise NoDataError("no MPI calls")
    rows.sort(key=lambda row: (row["start"], row["global_tid"] or 0))

    def size_of(kind: Kind) -> list[Any]:
        return [row["size"] if row["kind"] is kind else None for row in rows]

    def thread(value: Callable[[int], int]) -> list[Any]:
        return [None if r["global_tid"] is None else value(r["global_tid"]) for r in rows]

    return [
        (Column("Start", Unit.NS), [row["start"] for row in rows]),
        (Column("End", Unit.NS), [row["end"] for row in rows]),
        (Column("Duration", Unit.NS), [_duration(row) for row in rows]),
        (Column("Event"), [row["text"] or "" for row in rows]),
        (Column("Pid", Unit.NONE), thread(pid_of)),
        (Column("Tid", Unit.NONE), thread(tid_of)),
        (Column("Tag", Unit.NONE), [row["tag"] for row in rows]),
        (
            Column("Rank", Unit.NONE),
            [ranks.get((r["global_tid"] or 0) & PROCESS_MASK) for r in rows],
        ),
        (Column("PeerRank", Unit.NONE), [row["remote_rank"] for row in rows]),
        (Column("RootRank", Unit.NONE), [row["root_rank"] for row in rows]),
        (Column("Size", Unit.MB), size_of(Kind.MPI_P2P)),
        (Column("CollSendSize", Unit.MB), size_of(Kind.MPI_COLLECTIVE)),
        (Column("CollRecvSize", Unit.MB), [row["recv_size"] for row in rows]),
    ]


def _duration(row: dict[str, Any]) -> int | None:
    return None if row["end"] is None else row["end"] - row["start"]


@report("MPI Message Size Summary", MPI, old="mpimsgsizesum")
def mpi_msg_size_sum(query: Query) -> Columns:
    """Message sizes by function: point to point, sent and received by collectives."""
    p2p = query.raw_counted(Kind.MPI_P2P, "text", "size")
    collectives = query.raw_counted(Kind.MPI_COLLECTIVE, "text", "size", "recv_size")
    messages = [("p2p", row["text"], row["size"]) for row in p2p]
    messages += [("coll_send", row["text"], row["size"]) for row in collectives]
    messages += [("coll_recv", row["text"], row["recv_size"]) for row in collectives]
    messages = [message for message in messages if message[2] is not None]
    if not messages:
        raise NoDataError("no MPI messages")
    codes, keys = regroup(np.arange(len(messages)), [(s, t) for s, t, _ in messages])
    stats = group_stats(codes, [size for _, _, size in messages], len(keys))
    names = [text or "" for _, text in keys]
    order = by_total(stats, names)
    return [
        (Column("Total Message Volume", Unit.BYTES), stats.totals[order]),
        (Column("Instances", Unit.COUNT), stats.counts[order]),
        *moments(stats, order, Unit.BYTES, 1),
        (SOURCE, pick([source for source, _ in keys], order)),
        (NAME, pick(names, order)),
    ]
