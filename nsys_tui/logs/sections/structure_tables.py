"""Sections of structure: communicators, tuning, topology, rings, trees and transports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from nsys_tui.logs.figures import known as known_value
from nsys_tui.logs.nccl.topology import GroupTopology
from nsys_tui.logs.result import LogResult
from nsys_tui.logs.sections.section import (
    LogAnswer,
    Section,
    count,
    file_path,
    host_pid,
    item,
    known,
    shown,
    text,
    whole_numbers,
)
from nsys_tui.model.table import Unit

COMMUNICATORS: Final = (
    text("comm", "Communicator", "pointer"),
    shown("Process", lambda one, result: result.process_label(one.process)),
    shown("Group", lambda one, result: result.group_label(one.group)),
    known("rank", "Rank"),
    known("nranks", "Ranks"),
    known("cuda_device", "Device"),
    text("bus_id", "Bus"),
    text("comm_id", "Id"),
    count("collective_lines", "Calls", lambda one, _: one.calls),
    *host_pid(lambda one, _: one.process),
    known("gpu"),
    *whole_numbers("group"),
    *map(known, ("nodes", "local_ranks", "local_rank")),
    text("parent"),
    shown("Purpose", lambda one, result: result.purposes[one.group] or None),
    text("ended", "Ended"),
    file_path(lambda one: one.first[0]),
    count("first_line", read=lambda one, _: one.first[1]),
)
_GROUP: Final = shown("Group", lambda row, _: known_value(row[0]), Unit.COUNT)
_CHANNEL: Final = shown("Channel", lambda row, _: row[1].channel, Unit.COUNT)


def _tuning(answer: LogAnswer) -> list[tuple[Any, ...]]:
    """Operation, algorithm, protocol, lines, share and bytes; most bytes first."""
    shares: dict[tuple[str, str, str], list[int]] = {}
    for row in answer.result.tuning:
        sums = shares.setdefault((row.op, row.algorithm, row.protocol), [0, 0])
        sums[0] += row.calls
        sums[1] += row.calls * row.bytes
    lines = sum(n for n, _ in shares.values()) or 1
    rows = [(*key, n, 100 * n / lines, size) for key, (n, size) in shares.items()]
    return sorted(rows, key=lambda row: -row[-1])


def _parts(name: str) -> Any:
    """Pairs of a group and each of its rings, trees or edges."""
    return lambda answer: [
        (one.group, part) for one in answer.result.topology.groups for part in getattr(one, name)
    ]


def _nodes(one: GroupTopology, result: LogResult) -> int | None:
    members = result.groups[one.group].members if one.group >= 0 else ()
    return known_value(max((result.communicators[m].nodes for m in members), default=-1))


def _ranks(one: GroupTopology, result: LogResult) -> int | None:
    return known_value(result.groups[one.group].nranks) if one.group >= 0 else None


def _network(answer: LogAnswer, _: Sequence[Any]) -> list[str]:
    topology = answer.result.topology
    notes = [f"{subject}: {said}" for subject, said, _ in topology.network]
    if lost := topology.unattributed:
        notes.append(f"lines that name no communicator that can be told, in the row '-': {lost}")
    return notes


def _transports(one: GroupTopology, _: LogResult) -> str | None:
    """``2 P2P/IPC, 1 NET/IB with GPU direct``, most edges first."""
    kinds = Counter(
        edge.kind + (" with GPU direct" if edge.gpu_direct else "") for edge in one.edges
    )
    return ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()) or None


def _channels(one: GroupTopology, _: LogResult) -> str | None:
    """``2 coll, 2 p2p (1 per peer)``; kinds without a channel are left out."""
    per_peer = dict(one.channels).get("p2p_per_peer")
    kinds = [
        f"{n} {kind}" + (f" ({per_peer} per peer)" if kind == "p2p" and per_peer else "")
        for kind, n in one.channels
        if n and kind != "p2p_per_peer"
    ]
    return ", ".join(kinds) or None


SECTIONS: Final = (
    Section(
        "communicators", "Communicators", COMMUNICATORS, lambda answer: answer.result.communicators
    ),
    Section(
        "tuning",
        "Algorithms and protocols chosen",
        (
            shown("Operation", lambda row, _: row[0] or None),
            shown("Algorithm", item(1)),
            shown("Protocol", lambda row, _: row[2] or None),
            shown("Lines", item(3), Unit.COUNT),
            shown("Share", item(4), Unit.PERCENT),
            shown("Bytes", item(5), Unit.COUNT),
        ),
        _tuning,
        none="no TUNING lines (NCCL_DEBUG_SUBSYS with TUNING records them)",
    ),
    Section(
        "topology",
        "Topology",
        (
            shown("Group", lambda one, _: known_value(one.group)),
            shown("Ranks", _ranks, Unit.COUNT),
            shown("Nodes", _nodes, Unit.COUNT),
            shown("Transports", _transports),
            shown("Rings", lambda one, _: len(one.rings), Unit.COUNT),
            shown("Tree nodes", lambda one, _: len(one.trees), Unit.COUNT),
            shown("NVLS heads", lambda one, _: one.nvls_heads, Unit.COUNT),
            shown("Channels", _channels),
        ),
        lambda answer: answer.result.topology.groups,
        _network,
        count=lambda a: len(a.result.topology.groups) + len(a.result.topology.network),
    ),
    Section(
        "rings",
        "Rings",
        (
            _GROUP,
            _CHANNEL,
            shown(
                "Ranks",
                lambda row, _: " > ".join(map(str, row[1].ranks)) + " (part)" * (not row[1].whole),
            ),
        ),
        _parts("rings"),
        none="no ring lines (NCCL_DEBUG_SUBSYS with INIT,GRAPH records them)",
    ),
    Section(
        "trees",
        "Trees",
        (
            _GROUP,
            _CHANNEL,
            shown("Rank", lambda row, _: row[1].rank, Unit.COUNT),
            shown("Up", lambda row, _: "root" if row[1].up < 0 else row[1].up),
            shown("Down", lambda row, _: " ".join(map(str, row[1].down)) or None),
            shown("Kind", lambda row, _: "NVLS" if row[1].nvls else "tree"),
        ),
        _parts("trees"),
    ),
    Section(
        "edges",
        "Transports",
        (
            _GROUP,
            _CHANNEL,
            shown("From", lambda row, _: row[1].source, Unit.COUNT),
            shown("To", lambda row, _: row[1].target, Unit.COUNT),
            shown("Side", lambda row, _: row[1].direction or None),
            shown("Transport", lambda row, _: row[1].transport),
        ),
        _parts("edges"),
        none="no channel lines (NCCL_DEBUG_SUBSYS with INIT,P2P,NET records them)",
    ),
)
