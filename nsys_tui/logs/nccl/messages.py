"""NCCL messages other than COLL: communicators, graph, network, tuning, environment, warnings.

Each kind of message is a small function registered under the first word of its text. Records are
plain; who they belong to (which communicator, which rank) is worked out by ``communicators``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_tui.logs.line_prefixes import Head


class Place(NamedTuple):
    """Where a message was written and by whom."""

    file: int
    line: int
    process: int
    thread: int
    device: int


class CommEvent(NamedTuple):
    """A line that names a communicator with its rank."""

    place: Place
    pointer: str
    phase: str
    """``start``, ``complete``, ``nodes``, ``destroy`` or ``abort``."""
    facts: dict[str, str]
    """Words of the line by name: rank, nranks, cudaDev, nvmlDev, busId, commId, nNodes, …"""


class GraphLine(NamedTuple):
    """A line about rings, trees, edges or channels; its communicator is not always named."""

    place: Place
    kind: str
    data: tuple[Any, ...]
    pointer: str
    """Communicator pointer where RCCL prints it, else empty."""


class Timing(NamedTuple):
    """``Init timings``: seconds that a rank took to set a communicator up."""

    place: Place
    rank: int
    nranks: int
    parts: dict[str, str]


class Tuning(NamedTuple):
    """One choice of the tuner, as printed."""

    op: str
    bytes: int
    algorithm: str
    protocol: str
    channels: str


@dataclass(slots=True)
class KernelSpans:
    """RCCL's kernel trace: collective kernels on one block, from begin (KL) to end (KE)."""

    begun: dict[tuple[int, str, str], tuple[str, Decimal]] = field(default_factory=dict)
    """Kernel and seconds of those without an end, by process, block and opCount."""
    ended: dict[str, list[int]] = field(default_factory=dict)
    """Count, least, total and greatest ns of those with one, by kernel."""

    def add(self, process: int, line: re.Match[str]) -> None:
        """Takes in a line of ``_KERNEL``."""
        seconds, block, op_count, kind, name = line.groups(default="")
        key = (process, block, op_count)
        if kind == "KL":
            self.begun[key] = name, Decimal(seconds)
        elif kind == "KE" and key in self.begun:
            name, start = self.begun.pop(key)
            ns = int((Decimal(seconds) - start) * 10**9)
            self.join(name, [1, ns, ns, ns])

    def join(self, name: str, lines: Sequence[int]) -> None:
        """Adds sums of a kernel, as in ``ended``."""
        known = self.ended.get(name, [0, lines[1], 0, lines[3]])
        least, most = min(known[1], lines[1]), max(known[3], lines[3])
        self.ended[name] = [known[0] + lines[0], least, known[2] + lines[2], most]


@dataclass(slots=True)
class Messages:
    """What the messages of one file say."""

    comm_events: list[CommEvent] = field(default_factory=list)
    graph: list[GraphLine] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    tuned: Counter[bytes] = field(default_factory=Counter)
    """TUNING lines by their text up to the estimated time, which differs on every line."""
    kernels: KernelSpans = field(default_factory=KernelSpans)
    versions: Counter[str] = field(default_factory=Counter)
    environment: Counter[tuple[str, str]] = field(default_factory=Counter)
    network: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(subject, what was said) -> lines, for networks, adapters, GPU-direct and NVLS."""
    warnings: Counter[str] = field(default_factory=Counter)

    def add_tuning(self, message: bytes) -> None:
        """Takes in a TUNING line."""
        self.tuned[message.partition(b" time ")[0]] += 1

    def tuning(self) -> Counter[Tuning]:
        """Choices of the tuner."""
        counts: Counter[Tuning] = Counter()
        for message, count in self.tuned.items():
            if match := _TUNED.match(message.strip().decode("utf-8", "replace")):
                op, size, algorithm, protocol, number, channels = match.groups(default="")
                counts[Tuning(op, int(size), algorithm or number, protocol, channels)] += count
        return counts

    def add(self, head: Head, place: Place, text: str, cut: bool) -> None:
        """Takes in one message.

        Args:
            head: who wrote it.
            place: where it stands.
            text: the message behind ``NCCL LEVEL``.
            cut: whether it filled NCCL's buffer, so that its last word cannot be trusted.
        """
        if head.level == "WARN":
            self.warnings[_VARYING.sub("…", text.strip())] += 1
            return
        text = text.strip()
        first, _, _ = text.partition(" ")
        handler = _HANDLERS.get(first)
        if handler is not None:
            handler(self, place, text.rsplit(" ", 1)[0] if cut else text)
        elif "coll channels" in text:
            _channels(self, place, text)
        elif first.startswith(("NCCL_", "RCCL_")):
            _environment(self, place, text)


_VARYING: Final = re.compile(
    r"(?<=0x)[0-9a-f]{6,16}\b|(?<=<)\d+(?=>)|(?<=opcode[= ])\d+|(?<=\blen[= ])\d+"
    r"|(?:[0-9a-f]{0,4}:){4,}[0-9a-f]{1,4}"
)
"""Differs from line to line of one kind: pointers, ports, GIDs, and those fields of a completion
that mean nothing where it failed."""
_HANDLERS: Final[dict[str, Callable[[Messages, Place, str], None]]] = {}


def _on(*words: str) -> Callable[[Callable[[Messages, Place, str], None]], Any]:
    def register(function: Callable[[Messages, Place, str], None]) -> Any:
        _HANDLERS.update(dict.fromkeys(words, function))
        return function

    return register


_COMM: Final = re.compile(
    r"(?:\[Rank \d+\] )?(?:nccl\w+ )?comm (?P<pointer>0x[0-9a-f]+) (?=rank )(?P<facts>.*?)"
    r"(?:- (?P<verb>Init|Destroy|Abort) (?P<phase>START|COMPLETE))?$"
)
_FACT: Final = re.compile(r"(\w+) (-?(?:0x)?[0-9a-fA-F]+|\(nil\))")


@_on(
    "comm",
    "[Rank",
    "ncclCommInitRank",
    "ncclCommInitRankConfig",
    "ncclCommInitRankScalable",
    "ncclCommInitAll",
    "ncclCommSplit",
    "ncclCommShrink",
    "ncclCommGrow",
)
def _communicator(messages: Messages, place: Place, text: str) -> None:
    match = _COMM.match(text)
    if match is None:
        return
    facts = dict(_FACT.findall(match["facts"]))
    if "nRanks" in facts:
        facts["nranks"] = facts.pop("nRanks")
    told = match["phase"] if match["verb"] == "Init" else match["verb"]
    phase = told.lower() if told else "nodes" * ("nNodes" in facts)
    if phase:
        messages.comm_events.append(CommEvent(place, match["pointer"], phase, facts))


_TIMINGS: Final = re.compile(
    r"Init timings(?: - \w+)?: rank (\d+) nranks (\d+) total ([\d.]+)(?: \((.*)\))?"
)


@_on("Init")
def _timings(messages: Messages, place: Place, text: str) -> None:
    if match := _TIMINGS.match(text):
        parts = dict(re.findall(r"(\w+) ([\d.]+)", match[4] or ""))
        messages.timings.append(
            Timing(place, int(match[1]), int(match[2]), {"total": match[3], **parts})
        )


_OF_COMM: Final = re.compile(r"\s+comm (0x[0-9a-f]+) n[rR]anks \d+.*$")
_EDGE: Final = re.compile(
    r"\w+ (\d+)(?:/\d+)? : (\d+)(?:\[[0-9a-f]+\])? -> (\d+)(?:\[[0-9a-f]+\])? "
    r"(?:\[(send|receive)\] )?via (.+)$"
)
_RING: Final = re.compile(r"Ring (\d+) : (\d+) -> (\d+) -> (\d+)$")
_ORDER: Final = re.compile(r"Channel (\d+)(?:/\d+)? :((?:\s+\d+)+)$")


def _of_comm(text: str) -> tuple[str, str]:
    """The communicator that RCCL names at the end of a line, and what stands before it."""
    tail = _OF_COMM.search(text)
    return (tail[1], text[: tail.start()]) if tail else ("", text)


@_on("Channel", "Ring", "CollNet", "CollNetDirect", "CollNetChain")
def _channel(messages: Messages, place: Place, text: str) -> None:
    pointer, text = _of_comm(text)
    if match := _EDGE.match(text):
        channel, source, target, direction, via = match.groups(default="")
        edge = (int(channel), int(source), int(target), direction, via)
        messages.graph.append(GraphLine(place, "edge", edge, pointer))
    elif match := _RING.match(text):
        ring = tuple(int(word) for word in match.groups())
        messages.graph.append(GraphLine(place, "ring", ring, pointer))
    elif match := _ORDER.match(text):
        ranks = tuple(int(word) for word in match[2].split())
        messages.graph.append(GraphLine(place, "order", (int(match[1]), ranks), pointer))


_TREE_WORD: Final = re.compile(
    r"\[(\d+)\] (-?\d+(?:/-?\d+)*)->(-?\d+)->(-?\d+(?:/-?\d+)*)(?![\d/])"
)
_TREE: Final = re.compile(r"Tree (\d+) : (-?\d+) -> (\d+) -> (-?\d+(?:/-?\d+)*)")


@_on("Trees", "Tree")
def _trees(messages: Messages, place: Place, text: str) -> None:
    pointer, _ = _of_comm(text)
    for tree in _parents(text):
        messages.graph.append(GraphLine(place, "tree", tree, pointer))


def _parents(text: str) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """(channel, me, up, downs) of each tree; the side with slashes holds the children."""
    if match := _TREE.match(text):
        yield int(match[1]), int(match[3]), int(match[2]), _children(match[4])
        return
    for channel, left, me, right in _TREE_WORD.findall(text):
        up, down = (left, right) if "/" in right and "/" not in left else (right, left)
        yield int(channel), int(me), int(up), _children(down)


def _children(text: str) -> tuple[int, ...]:
    return tuple(rank for word in text.split("/") if (rank := int(word)) >= 0)


_CHANNELS: Final = re.compile(r"(\d+) (coll|collnet|nvls|p2p) channels(?: per peer)?")


def _channels(messages: Messages, place: Place, text: str) -> None:
    counts = {}
    for match in _CHANNELS.finditer(text):
        counts[match[2] + ("_per_peer" if match[0].endswith("peer") else "")] = int(match[1])
    messages.graph.append(GraphLine(place, "channels", tuple(counts.items()), ""))


_FACTS: Final = ("=== System", "Pattern ", "P2P Chunksize", "Connected all", "Connected NVLS")


@_on("===", "Pattern", "P2P", "Connected")
def _fact(messages: Messages, place: Place, text: str) -> None:
    pointer, text = _of_comm(text)
    if text.startswith(_FACTS):
        messages.graph.append(GraphLine(place, "fact", (text.strip("= "),), pointer))


_TUNED: Final = re.compile(
    r"(?:(\w+)(?: \[[^\]]*\])?: )?(\d+) Bytes -> (?:Algo (\w+) proto (\w+)|(\w+))"
    r"(?:.*?channel\{Lo\.\.Hi\}=\{(\d+\.\.\d+)\})?"
)


_SET: Final = re.compile(r"([NR]CCL_\w+) set by environment to (.*?)\.?$")


def _environment(messages: Messages, _place: Place, text: str) -> None:
    if match := _SET.match(text):
        messages.environment[(match[1], match[2])] += 1


_VERSION: Final = re.compile(r"([NR]CCL) version *:? *(\S+)")


@_on("NCCL", "RCCL")
def _version(messages: Messages, _place: Place, text: str) -> None:
    if match := _VERSION.match(text):
        prefix = "RCCL " if match[1] == "RCCL" else ""
        messages.versions[prefix + match[2]] += 1


_GDR: Final = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for (.+)")
_NVLS_SUPPORT: Final = re.compile(r"NVLS multicast support is (not )?available on dev (\d+)")


@_on("Using", "NET/IB", "NET/Socket", "NET/OFI", "NET/Plugin", "NET/AWS", "NVLS", "GPU")
def _network(messages: Messages, place: Place, text: str) -> None:
    if match := _GDR.search(text):
        messages.network[("GPU Direct RDMA", f"{match[1].lower()} for {match[2]}")] += 1
    elif match := _NVLS_SUPPORT.match(text):
        state = "not available" if match[1] else "available"
        messages.network[("NVLS multicast", f"{state} on device {match[2]}")] += 1
    elif text.startswith("NVLS "):
        _nvls(messages, place, text)
    elif text.startswith("Using network "):
        messages.network[("network", text.removeprefix("Using network "))] += 1
    elif (
        ": Using [" in text or "Selected Provider" in text or ("/RoCE" in text or "/IB" in text[8:])
    ):
        subject, _, rest = text.partition(" ")
        messages.network[(subject.rstrip(":"), rest.removeprefix(": "))] += 1


_NVLS_HEAD: Final = re.compile(r"NVLS Head +(\d+):((?: +\d+)+)$")
_NVLS_HEADS: Final = re.compile(r"NVLS comm (0x[0-9a-f]+) headRank (-?\d+) nHeads (\d+)")


def _nvls(messages: Messages, place: Place, text: str) -> None:
    if match := _NVLS_HEADS.match(text):
        data = (int(match[2]), int(match[3]))
        messages.graph.append(GraphLine(place, "nvls", data, match[1]))
    elif match := _NVLS_HEAD.match(text):
        ranks = tuple(int(word) for word in match[2].split())
        messages.graph.append(GraphLine(place, "nvls_head", (int(match[1]), ranks), ""))
    elif text.startswith("NVLS Trees"):
        for tree in _parents(text.replace("NVLS Trees :", "Trees")):
            messages.graph.append(GraphLine(place, "nvls_tree", tree, ""))
    elif "ulticast group" in text:
        verb = text.split()[1].lower()
        messages.network[("NVLS multicast group", verb)] += 1


_KERNEL: Final = re.compile(
    r"## \[([\d.]+)\] \[([0-9a-f:\-]+)\] ([0-9a-f\-]+) (KL|KE|CL|CE|PE)(?: HWID +\S+)?(?: (\w+))?"
)


@_on("##")
def _kernel(messages: Messages, place: Place, text: str) -> None:
    if match := _KERNEL.match(text):
        messages.kernels.add(place.process, match)


_WORDS: Final = frozenset(word.encode() for word in _HANDLERS)


def wanted(message: bytes) -> bool:
    """Whether ``Messages.add`` would find anything in an INFO message; most say nothing to us."""
    return (
        message.lstrip().partition(b" ")[0] in _WORDS
        or b"coll channels" in message
        or message.startswith((b"NCCL_", b"RCCL_"))
    )
