"""Topology: rings, trees and the transport of each edge, as the graph lines tell it.

Most graph lines name no communicator. They belong to the one that their thread is setting up: the
one whose START (or rank line) came before, else the one whose COMPLETE comes after, else the last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nsys_tui.logs.nccl.communicators import CommunicatorTable
from nsys_tui.logs.nccl.messages import CommEvent, GraphLine
from nsys_tui.logs.nccl.participants import Communicator

_OLD_SHARED_MEMORY: Final = "direct shared memory"
"""As NCCL up to 2.10 printed it."""


@dataclass(frozen=True)
class Ring:
    """One ring, from the line that shows it whole or else from the ranks' own lines."""

    channel: int
    ranks: tuple[int, ...]
    whole: bool
    """Whether the ring closes over all ranks; otherwise the log shows a part of it."""


@dataclass(frozen=True)
class TreeNode:
    """One rank's place in a tree; ``up`` is -1 at the root."""

    channel: int
    rank: int
    up: int
    down: tuple[int, ...]
    nvls: bool


@dataclass(frozen=True)
class Edge:
    """A connection that a rank set up, with its transport as printed."""

    channel: int
    source: int
    target: int
    direction: str
    """``send`` or ``receive`` for network edges, else empty."""
    transport: str

    @property
    def kind(self) -> str:
        """Transport without device and options, such as ``P2P/IPC``, ``SHM`` or ``NET/IB``."""
        if self.transport == _OLD_SHARED_MEMORY:
            return "SHM"
        parts = self.transport.split("/")
        return "/".join(parts[:2]) if parts[0] in ("P2P", "NET") else parts[0]

    @property
    def gpu_direct(self) -> bool:
        """Whether a network edge goes past host memory."""
        return "GDRDMA" in self.transport


@dataclass(frozen=True)
class GroupTopology:
    """What the log shows of one communicator group; -1 where it cannot be told which."""

    group: int
    rings: tuple[Ring, ...]
    trees: tuple[TreeNode, ...]
    edges: tuple[Edge, ...]
    channels: tuple[tuple[str, int], ...]
    """Channels by kind: coll, p2p, p2p_per_peer, nvls, collnet."""
    nvls_heads: int
    nvls_head_ranks: tuple[tuple[int, tuple[int, ...]], ...]
    """Head and the ranks that reduce through it, over the nodes."""
    facts: tuple[tuple[str, int], ...]
    """Other lines, with how often each was said."""

    def transports(self) -> dict[str, int]:
        """Edges by transport kind."""
        return dict(Counter(edge.kind for edge in self.edges).most_common())


@dataclass(frozen=True)
class Topology:
    """Graphs by communicator group, and what was said about networks and adapters."""

    groups: tuple[GroupTopology, ...]
    network: tuple[tuple[str, str, int], ...]
    """(subject, what was said, lines)."""
    unattributed: int
    """Graph lines whose communicator could not be found; shown under group -1."""


@dataclass(slots=True)
class _Gathered:
    order: dict[int, tuple[int, ...]] = field(default_factory=dict)
    next_of: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    trees: dict[tuple[int, int, bool], TreeNode] = field(default_factory=dict)
    edges: dict[Edge, None] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)
    nvls_heads: int = 0
    nvls_head_ranks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    facts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, data: tuple[Any, ...]) -> None:
        if kind == "order":
            self.order[data[0]] = data[1]
        elif kind == "ring":
            channel, _, me, after = data
            self.next_of[channel][me] = after
        elif kind in ("tree", "nvls_tree"):
            nvls = kind == "nvls_tree"
            self.trees[data[0], data[1], nvls] = TreeNode(data[0], data[1], data[2], data[3], nvls)
        elif kind == "edge":
            self.edges[Edge(*data)] = None
        elif kind == "channels":
            for name, count in data:
                self.channels[name] = max(count, self.channels.get(name, 0))
        elif kind == "nvls":
            self.nvls_heads = max(self.nvls_heads, data[1])
        elif kind == "nvls_head":
            self.nvls_head_ranks[data[0]] = data[1]
        else:
            self.facts[data[0]] += 1

    def freeze(self, group: int, nranks: int) -> GroupTopology:
        channels = sorted(self.order.keys() | self.next_of.keys())
        return GroupTopology(
            group,
            tuple(
                _ring(channel, self.order.get(channel, ()), self.next_of[channel], nranks)
                for channel in channels
            ),
            tuple(self.trees[key] for key in sorted(self.trees)),
            tuple(sorted(self.edges, key=lambda e: (e.channel, e.source, e.target, e.direction))),
            tuple(self.channels.items()),
            max(self.nvls_heads, len(self.nvls_head_ranks)),
            tuple(sorted(self.nvls_head_ranks.items())),
            tuple(self.facts.most_common()),
        )


def _ring(channel: int, order: tuple[int, ...], after: dict[int, int], nranks: int) -> Ring:
    """The whole ring if a line shows it, else the longest chain of the ranks' own lines."""
    if order:
        return Ring(channel, order, nranks < 1 or len(order) == nranks)
    starts = [rank for rank in sorted(after) if rank not in after.values()]
    rank = starts[0] if starts else min(after)
    chain = [rank]
    while (rank := after.get(rank, chain[0])) not in chain:
        chain.append(rank)
    return Ring(channel, tuple(chain), len(chain) == nranks)


def build_topology(
    graph: Iterable[GraphLine],
    events: Iterable[CommEvent],
    table: CommunicatorTable,
    communicators: Sequence[Communicator],
    nranks_of: Sequence[int],
    network: Counter[tuple[str, str]],
) -> Topology:
    """Attributes graph lines to communicator groups and gathers them.

    Args:
        graph: graph lines, in line order per file.
        events: communicator lines, in line order per file.
        table: finds an instance by pointer and place.
        communicators: instances, by index.
        nranks_of: size of each group.
        network: what was said about networks.
    """
    gathered: dict[int, _Gathered] = defaultdict(_Gathered)
    lost = 0
    for line, instance in _owners(list(graph), list(events), table, communicators):
        group = communicators[instance].group if instance >= 0 else -1
        lost += group < 0
        gathered[group].add(line.kind, line.data)
    groups = tuple(
        gathered[group].freeze(group, nranks_of[group] if group >= 0 else -1)
        for group in sorted(gathered)
    )
    said = tuple((subject, text, n) for (subject, text), n in sorted(network.items()))
    return Topology(groups, said, lost)


def _owners(
    graph: list[GraphLine],
    events: list[CommEvent],
    table: CommunicatorTable,
    communicators: Sequence[Communicator],
) -> list[tuple[GraphLine, int]]:
    """Each graph line with the index of its communicator instance, -1 if it cannot be told."""
    owned: list[tuple[GraphLine, int]] = []
    waiting: dict[tuple[int, int, int], list[GraphLine]] = defaultdict(list)
    opened: dict[tuple[int, int, int], int] = {}
    last: dict[tuple[int, int, int], int] = {}
    of_process: dict[int, list[int]] = defaultdict(list)
    for i, communicator in enumerate(communicators):
        of_process[communicator.process].append(i)

    lines_and_events: list[GraphLine | CommEvent] = [*graph, *events]
    lines_and_events.sort(key=lambda item: (item.place.file, item.place.line))
    for item in lines_and_events:
        place = item.place
        thread = (place.file, place.process, place.thread)
        pointer = item.pointer
        named = table.at(place.process, pointer, place.file, place.line) if pointer else -1
        if isinstance(item, GraphLine):
            if named >= 0 or thread in opened:
                owned.append((item, named if named >= 0 else opened[thread]))
            else:
                waiting[thread].append(item)
            continue
        phase = item.phase
        if phase in ("start", "nodes"):
            owned += [(line, last.get(thread, named)) for line in waiting.pop(thread, [])]
            opened[thread] = last[thread] = named
        elif phase == "complete":
            owned += [(line, named) for line in waiting.pop(thread, [])]
            opened.pop(thread, None)
            last[thread] = named
    for thread, lines in waiting.items():
        for line in lines:
            owned.append((line, last.get(thread, _by_device(line, of_process, communicators))))
    return owned


def _by_device(
    line: GraphLine, of_process: dict[int, list[int]], communicators: Sequence[Communicator]
) -> int:
    """A communicator of the line's process, if all that can be meant are of one group."""
    mine = of_process.get(line.place.process, [])
    same = [i for i in mine if communicators[i].cuda_device == line.place.device]
    candidates = same or mine
    if len({communicators[i].group for i in candidates}) == 1:
        return candidates[0]
    return -1
