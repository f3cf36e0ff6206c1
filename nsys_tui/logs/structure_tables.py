"""Tables of structure: communicators, tuning, topology, rings, trees and transports."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nsys_tui.logs.communicator_purpose import purposes
from nsys_tui.logs.table_parts import count, known, make, text
from nsys_tui.model.table import Unit

if TYPE_CHECKING:
    from nsys_tui.logs.result import LogResult
    from nsys_tui.logs.topology import GroupTopology
    from nsys_tui.model.table import Table


def communicators_table(result: LogResult) -> Table:
    """Communicators with rank, device and calls."""
    rows = result.communicators
    guess = purposes(result)
    return make(
        "communicators",
        "Communicators",
        {
            "Communicator": text([one.pointer for one in rows]),
            "Process": text([result.process_label(one.process) for one in rows]),
            "Group": text([result.group_label(one.group) for one in rows]),
            "Rank": known([one.rank for one in rows]),
            "Ranks": known([one.nranks for one in rows]),
            "Device": known([one.cuda_device for one in rows]),
            "Bus": text([one.bus_id or "-" for one in rows]),
            "Id": text([one.comm_id or "-" for one in rows]),
            "Calls": count([one.calls for one in rows]),
            "Purpose": text([guess[one.group] or "-" for one in rows]),
            "Ended": text([one.ended or "-" for one in rows]),
        },
    )


def tuning_table(result: LogResult) -> Table:
    """Shares of algorithms and protocols."""
    shares: dict[tuple[str, str, str], list[int]] = {}
    for row in result.tuning:
        found = shares.setdefault((row.op or "-", row.algorithm, row.protocol), [0, 0])
        found[0] += row.calls
        found[1] += row.calls * row.bytes
    calls = sum(n for n, _ in shares.values()) or 1
    keys = sorted(shares, key=lambda key: -shares[key][1])
    return make(
        "tuning",
        "Algorithms and protocols chosen",
        {
            "Operation": text([key[0] for key in keys]),
            "Algorithm": text([key[1] for key in keys]),
            "Protocol": text([key[2] or "-" for key in keys]),
            "Lines": count([shares[key][0] for key in keys]),
            "Share": (Unit.PERCENT, [100 * shares[key][0] / calls for key in keys]),
            "Bytes": count([shares[key][1] for key in keys]),
        },
        none="no TUNING lines (NCCL_DEBUG_SUBSYS with TUNING records them)",
    )


def rings_table(result: LogResult) -> Table:
    """Rings by communicator group."""
    rows = [(one.group, ring) for one in result.topology.groups for ring in one.rings]
    return make(
        "rings",
        "Rings",
        {
            "Group": known([group for group, _ in rows]),
            "Channel": count([ring.channel for _, ring in rows]),
            "Ranks": text(
                [
                    " > ".join(map(str, ring.ranks)) + ("" if ring.whole else " (part)")
                    for _, ring in rows
                ]
            ),
        },
        none="no ring lines (NCCL_DEBUG_SUBSYS with INIT,GRAPH records them)",
    )


def trees_table(result: LogResult) -> Table:
    """Trees by communicator group."""
    rows = [(one.group, node) for one in result.topology.groups for node in one.trees]
    return make(
        "trees",
        "Trees",
        {
            "Group": known([group for group, _ in rows]),
            "Channel": count([node.channel for _, node in rows]),
            "Rank": count([node.rank for _, node in rows]),
            "Up": text(["root" if node.up < 0 else node.up for _, node in rows]),
            "Down": text([" ".join(map(str, node.down)) or "-" for _, node in rows]),
            "Kind": text(["NVLS" if node.nvls else "tree" for _, node in rows]),
        },
    )


def edges_table(result: LogResult) -> Table:
    """Transports per edge."""
    rows = [(one.group, edge) for one in result.topology.groups for edge in one.edges]
    return make(
        "edges",
        "Transports",
        {
            "Group": known([group for group, _ in rows]),
            "Channel": count([edge.channel for _, edge in rows]),
            "From": count([edge.source for _, edge in rows]),
            "To": count([edge.target for _, edge in rows]),
            "Side": text([edge.direction or "-" for _, edge in rows]),
            "Transport": text([edge.transport for _, edge in rows]),
        },
        none="no channel lines (NCCL_DEBUG_SUBSYS with INIT,P2P,NET records them)",
    )


def topology_table(result: LogResult) -> Table:
    """One row per communicator group: nodes, channels, rings, transports."""
    rows = result.topology.groups
    nodes: list[int] = []
    for one in rows:
        members = result.groups[one.group].members if one.group >= 0 else ()
        nodes.append(max((result.communicators[m].nodes for m in members), default=-1))
    notes = [f"{subject}: {text}" for subject, text, _ in result.topology.network]
    lost = result.topology.unattributed
    if lost:
        notes.append(f"{lost} lines name no communicator that can be told; they are in the row '-'")
    return make(
        "topology",
        "Topology",
        {
            "Group": text([one.group if one.group >= 0 else "-" for one in rows]),
            "Ranks": known([result.groups[o.group].nranks if o.group >= 0 else -1 for o in rows]),
            "Nodes": known(nodes),
            "Transports": text([_transports(one) for one in rows]),
            "Rings": count([len(one.rings) for one in rows]),
            "Tree nodes": count([len(one.trees) for one in rows]),
            "NVLS heads": count([one.nvls_heads for one in rows]),
            "Channels": text([_channels(one.channels) for one in rows]),
        },
        notes,
    )


def _transports(one: GroupTopology) -> str:
    """``2 P2P/IPC, 1 NET/IB with GPU direct``, most edges first."""
    kinds = Counter(
        edge.kind + (" with GPU direct" if edge.gpu_direct else "") for edge in one.edges
    )
    return ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()) or "-"


def _channels(counts: tuple[tuple[str, int], ...]) -> str:
    """``2 coll, 2 p2p (1 per peer)``; kinds without a channel are left out."""
    per_peer = dict(counts).get("p2p_per_peer")
    shown = [
        f"{n} {kind}" + (f" ({per_peer} per peer)" if kind == "p2p" and per_peer else "")
        for kind, n in counts
        if n and kind != "p2p_per_peer"
    ]
    return ", ".join(shown) or "-"
