"""MPI calls: summary, trace and message sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.stats.host_tables import host_summary
from nsys_tui.analysis.stats.registry import Columns, report
from nsys_tui.analysis.stats.summary import NAME, moments, pick, rank
from nsys_tui.analysis.stats.thread_columns import process_ranks
from nsys_tui.errors import NoDataError
from nsys_tui.model.groups import regroup
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import PROCESS_MASK, pid_of, tid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.analysis.stats.query import Query

SOURCES: Final = {
    "MPI_P2P_EVENTS": "p2p",
    "MPI_COLLECTIVES_EVENTS": "collectives",
    "MPI_START_WAIT_EVENTS": "start_wait",
    "MPI_OTHER_EVENTS": "other",
}
OPTION: Final = "--trace=mpi"
SOURCE: Final = Column("Source")


@report("mpi_event_sum", "MPI Event Summary", data="MPI", option=OPTION, old=("mpieventsum",))
def mpi_event_sum(query: Query) -> Columns:
    """MPI calls by function and their durations."""
    return host_summary(query, SOURCES, "Instances", NAME, (SOURCE, SOURCES))


@report("mpi_event_trace", "MPI Event Trace", data="MPI", option=OPTION, old=("mpieventtrace",))
def mpi_event_trace(query: Query) -> Columns:
    """Every MPI call by its start, with its rank, peer, tag and sizes."""
    ranks = process_ranks(query.report)
    columns = ("textId", "tag", "remoteRank", "rootRank", "size", "recvSize")
    rows = [row | {"table": table} for table in SOURCES for row in query.raw(table, *columns)]
    if not rows:
        raise NoDataError("no MPI calls")
    rows.sort(key=lambda row: (row["start"], row["globalTid"] or 0))

    def size_of(*tables: str) -> list[Any]:
        return [row["size"] if row["table"] in tables else None for row in rows]

    def thread(value: Callable[[int], int]) -> list[Any]:
        return [None if r["globalTid"] is None else value(r["globalTid"]) for r in rows]

    return [
        (Column("Start", Unit.NS), [row["start"] for row in rows]),
        (Column("End", Unit.NS), [row["end"] for row in rows]),
        (Column("Duration", Unit.NS), [_duration(row) for row in rows]),
        (Column("Event"), [query.string(row["textId"]) for row in rows]),
        (Column("Pid", Unit.NONE), thread(pid_of)),
        (Column("Tid", Unit.NONE), thread(tid_of)),
        (Column("Tag", Unit.NONE), [row["tag"] for row in rows]),
        (
            Column("Rank", Unit.NONE),
            [ranks.get((r["globalTid"] or 0) & PROCESS_MASK) for r in rows],
        ),
        (Column("PeerRank", Unit.NONE), [row["remoteRank"] for row in rows]),
        (Column("RootRank", Unit.NONE), [row["rootRank"] for row in rows]),
        (Column("Size", Unit.BYTES), size_of("MPI_P2P_EVENTS")),
        (Column("CollSendSize", Unit.BYTES), size_of("MPI_COLLECTIVES_EVENTS")),
        (Column("CollRecvSize", Unit.BYTES), [row["recvSize"] for row in rows]),
    ]


def _duration(row: dict[str, Any]) -> int | None:
    return None if row["end"] is None else row["end"] - row["start"]


@report(
    "mpi_msg_size_sum",
    "MPI Message Size Summary",
    data="MPI",
    option=OPTION,
    old=("mpimsgsizesum",),
)
def mpi_msg_size_sum(query: Query) -> Columns:
    """Message sizes by function: point to point, sent and received by collectives."""
    p2p = query.raw_counted("MPI_P2P_EVENTS", "textId", "size")
    collectives = query.raw_counted("MPI_COLLECTIVES_EVENTS", "textId", "size", "recvSize")
    messages = [("p2p", row["textId"], row["size"]) for row in p2p]
    messages += [("coll_send", row["textId"], row["size"]) for row in collectives]
    messages += [("coll_recv", row["textId"], row["recvSize"]) for row in collectives]
    messages = [message for message in messages if message[2] is not None]
    if not messages:
        raise NoDataError("no MPI messages")
    codes, keys = regroup(np.arange(len(messages)), [(s, t) for s, t, _ in messages])
    stats = group_stats(codes, [size for _, _, size in messages], len(keys))
    names = [query.string(text) for _, text in keys]
    order = np.lexsort((rank(names), -stats.counts, -stats.totals))
    return [
        (Column("Total Message Volume", Unit.BYTES), stats.totals[order]),
        (Column("Instances", Unit.COUNT), stats.counts[order]),
        *moments(stats, order, Unit.BYTES, 1),
        (SOURCE, pick([source for source, _ in keys], order)),
        (NAME, pick(names, order)),
    ]
