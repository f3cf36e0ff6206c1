"""OS runtime, system calls, OpenACC, OpenMP, MPI: a time, a name, a thread; and network ports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.stats.query import Columns, Needs, Query, report
from nsys_tui.analysis.stats.summary import NAME, by_total, moments, pick, summarise, time_columns
from nsys_tui.analysis.window import EVERYTHING, row_count
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import EventSet
from nsys_tui.model.groups import pair_codes, regroup
from nsys_tui.model.kinds import OPENACC, Kind
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import PROCESS_MASK, pid_of, tid_of


def host_summary(
    query: Query,
    kinds: Iterable[Kind],
    count: str,
    source: tuple[Column, Mapping[Kind, str]] | None = None,
) -> Columns:
    """Events of some kinds of ``report.host_events`` by name, or by (source, name).

    Args:
        query: the report and its restrictions.
        kinds: kinds of host events.
        count: header of the count.
        source: a column that tells the kinds apart, and what it says for each.

    Raises:
        NoDataError: none of the kinds has rows in scope.
    """
    events = query.report.host_events
    wanted = np.isin(events.kinds, list(kinds)) if events.kinds else np.zeros(1, bool)
    rows = query.events(events, wanted[events.kind])
    if not row_count(events, rows):
        raise NoDataError("no rows")
    kind = events.kind[rows] if source else np.zeros(row_count(events, rows), np.uint8)
    codes, name, of_kind = pair_codes(events.name[rows], kind, max(len(events.kinds), 1))
    summary = summarise(query, events, rows, codes, len(name))
    labels: Columns = [(NAME, [events.names[place] for place in name.tolist()])]
    if source:
        column, texts = source
        labels.insert(0, (column, [texts[Kind(events.kinds[place])] for place in of_kind.tolist()]))
    return time_columns(summary, count, labels)


def rows_summary(
    query: Query,
    rows: list[dict[str, Any]],
    names: Sequence[tuple[str, ...]],
    count: str,
    labels: tuple[Column, ...],
) -> Columns:
    """Rows of rarely used tables by one or more labels; rows without an end take no part.

    Args:
        query: decides whether time is clipped to the window.
        rows: as ``query.raw`` returns them.
        names: the labels of each row.
        count: header of the count.
        labels: columns of the labels.

    Raises:
        NoDataError: no row has an end.
    """
    kept = [place for place, row in enumerate(rows) if row["end"] is not None]
    if not kept:
        raise NoDataError("no rows")
    codes, keys = regroup(np.arange(len(kept)), [names[place] for place in kept])
    start = np.array([rows[place]["start"] for place in kept], np.int64)
    end = np.array([rows[place]["end"] for place in kept], np.int64)
    events = EventSet(start, end, np.arange(len(kept)))
    summary = summarise(query, events, EVERYTHING, codes, len(keys))
    texts: Columns = [(column, [key[place] for key in keys]) for place, column in enumerate(labels)]
    return time_columns(summary, count, texts)


_CALL: Final = 27
"""Event class of calls; the others mark the start and the end of the tracing."""


@report(
    "OS Runtime Summary",
    Needs("OS Runtime trace", "--trace=osrt", (Capability.OSRT,)),
    old="osrtsum",
)
def osrt_sum(query: Query) -> Columns:
    """OS runtime library calls by function, nested calls included, and their durations."""
    osrt = query.report.osrt
    rows = query.events(osrt, osrt.event_class == _CALL)
    if not row_count(osrt, rows):
        raise NoDataError("no OS runtime calls")
    summary = summarise(query, osrt, rows, osrt.name[rows], len(osrt.names))
    return time_columns(summary, "Num Calls", [(NAME, list(osrt.names))])


_SYSCALLS: Final = Needs("syscall", "--trace=syscall (newer than 2023.4)")


@report("Syscall Summary", _SYSCALLS, old="syscallsum")
def syscall_sum(query: Query) -> Columns:
    """System calls by name and their durations."""
    return host_summary(query, (Kind.SYSCALL,), "Num Calls")


_MARKERS: Final = (79, 80)
"""Event class of OpenMP rows that mark the start and the end of the trace."""


@report("OpenACC Summary", Needs("OpenACC event", "--trace=openacc"), old="openaccsum")
def openacc_sum(query: Query) -> Columns:
    """OpenACC events by name and their durations."""
    return host_summary(query, OPENACC, "Count")


@report("OpenMP Summary", Needs("OpenMP event", "--trace=openmp"), old="openmpevtsum")
def openmp_sum(query: Query) -> Columns:
    """OpenMP events by name and their durations."""
    rows = query.raw(Kind.OPENMP, "name", "event_class")
    rows = [row for row in rows if row["event_class"] not in _MARKERS]
    names = [(row["name"] or "",) for row in rows]
    return rows_summary(query, rows, names, "Count", (NAME,))


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


_KINDS: Final = (Kind.NIC_METRIC, Kind.SWITCH_METRIC)
_SEND_WAIT: Final = re.compile(r"(?i)send[ _]?waits?|xmit[ _]?wait")
_THRESHOLD: Final = 10_000
_NS_PER_MS: Final = 1_000_000


@report(
    "Network Devices Congestion",
    Needs("network metrics", "--nic-metrics=true"),
    old="networkcongestion",
    arguments={"ticks_threshold=": f"list events above so many ticks/ms, {_THRESHOLD} by default"},
)
def network_congestion(query: Query) -> Columns:
    """Intervals in which a port waited to send at a high rate; ticks differ between devices."""
    threshold = _threshold(query.arguments.get("ticks_threshold"))
    waits = _send_wait_metrics(query)
    devices = _devices(query)
    records = []
    fields = ("global_id", "metrics_list_id", "metrics_idx", "value")
    for kind in _KINDS:
        for row in query.raw_counted(kind, *fields):
            duration = (row["end"] or 0) - row["start"]
            is_wait = (row["metrics_list_id"], row["metrics_idx"]) in waits
            if is_wait and duration > 0:
                rate = (row["value"] or 0) * _NS_PER_MS / duration
                if rate > threshold:
                    named = devices.get(row["global_id"], (row["global_id"], ""))
                    records.append((row["start"], row["end"], duration, rate, *named))
    if not records:
        raise NoDataError("no congestion above the threshold")
    records.sort()
    start, end, duration, rate, guid, name = (list(values) for values in zip(*records, strict=True))
    return [
        (Column("Start", Unit.NS), start),
        (Column("End", Unit.NS), end),
        (Column("Duration", Unit.NS), duration),
        (Column("Send wait rate (ticks/ms)", Unit.NONE, 1), rate),
        (Column("GUID"), [f"0x{(g or 0) & 0xFFFFFFFFFFFFFFFF:016X}" for g in guid]),
        (Column("Name"), name),
    ]


def _threshold(text: str | None) -> float:
    if text is None:
        return _THRESHOLD
    try:
        return float(text)
    except ValueError as error:
        hint = "write network_congestion:ticks_threshold=10000"
        raise UsageError(f"network_congestion: {text!r} is no number", hint=hint) from error


def _send_wait_metrics(query: Query) -> set[tuple[Any, Any]]:
    """(list, index) of the metrics that count send waits."""
    fields = ("metrics_list_id", "metrics_idx", "name")
    keys = zip(*query.report.rows(Kind.NETWORK_METRIC_NAME, *fields).lists(), strict=True)
    return {(listed, index) for listed, index, name in keys if _SEND_WAIT.search(name or "")}


def _devices(query: Query) -> Mapping[int, tuple[int, str]]:
    """globalId -> (GUID, name) of the network cards; switches are known by their id only."""
    cards = query.report.rows(Kind.NIC, "guid", "global_id", "nic_id", "name")
    by_nic: dict[Any, tuple[int, str]] = {}
    known: dict[int, tuple[int, str]] = {}
    for guid, global_id, nic, name in zip(*cards.lists(), strict=True):
        facts = (guid if guid is not None else global_id or 0, name or "")
        by_nic[nic] = facts
        if global_id is not None:
            known[global_id] = facts
    ids = query.report.rows(Kind.NIC_ID, "nic_id", "global_id")
    for nic, global_id in zip(*ids.lists(), strict=True):
        if nic in by_nic:
            known[global_id] = by_nic[nic]
    return known
