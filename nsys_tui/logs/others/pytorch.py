"""What PyTorch says of collectives: its watchdog's time-outs, and its flight recorder's dumps.

A rank that waits in a collective is no culprit: the one to look at is the rank that did not enqueue
it, or enqueued another. A rank that printed nothing may be it, and the log cannot tell. The default
dump is a pickle, which runs what is in it when it is read: such a file is never opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Final, cast

from nsys_tui.errors import UnreadableReportError
from nsys_tui.logs.nccl.grammar import FRONT, RANK_LABELS
from nsys_tui.units import named_ranks

_GROUP: Final = r"(?:ID \d+ PG GUID )?(?P<group>[^\]]*?)"
_TIMEOUT: Final = re.compile(
    rf"(?:\[PG {_GROUP} Rank \d+\] )?\[Rank (?P<rank>\d{{1,7}})\] Watchdog caught "
    r"collective operation timeout: WorkNCCL\((?:SeqNum=(?P<seq>\d{1,18}), )?OpType=(?P<op>\w+),"
    r"(?: NumelIn=(?P<sent>\d{1,18}), NumelOut=\d{1,18},)?(?:(?!Watchdog caught).)*?"
    r"Timeout\(ms\)=(?P<limit>\d{1,18})\)(?: ran for (?P<ran>\d{1,18}) milliseconds)?"
)
_PLACE: Final = re.compile(
    rf"\[PG {_GROUP} Rank (?P<rank>\d{{1,7}})\](?:(?!\[PG ).)*?at (?:NCCL )?work(?: sequence id)?: "
    r"(?P<seq>\d{1,18}),?(?: PG status:)? last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18}), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)
WATCHDOG_WORDS: Final = (b"Watchdog caught collective", b"last enqueued ")


@dataclass(frozen=True)
class Timeout:
    """A collective of one rank that ran out of time; -1 for what is not printed."""

    rank: int
    group: str
    """Process group as printed, empty where no line names it."""
    seq: int
    """Sequence number within the group."""
    op: str
    sent: int
    """Elements in."""
    limit_ms: int
    ran_ms: int
    enqueued: int
    """Sequence number of the last collective that the rank enqueued."""
    completed: int
    """That of the last one that completed."""
    file: int
    line: int


@dataclass
class WatchdogLines:
    """Gathers the time-outs of one file."""

    file: int
    found: dict[tuple[int, int], Timeout] = field(default_factory=dict)
    """By rank and sequence number."""

    def add(self, text: bytes, line: int) -> bool:
        """Takes a line in if it is a watchdog's; returns whether it is."""
        if not any(word in text for word in WATCHDOG_WORDS):
            return False
        decoded = text.decode("utf-8", "replace")
        for match in _TIMEOUT.finditer(decoded):
            told = {k: int(v) for k, v in match.groupdict("-1").items() if k not in ("op", "group")}
            one = self._known(told["rank"], told["seq"], line)
            self.found[one.rank, one.seq] = replace(
                one,
                op=match["op"],
                group=one.group or match["group"] or "",
                sent=told["sent"],
                limit_ms=told["limit"],
                ran_ms=told["ran"],
            )
        for match in _PLACE.finditer(decoded):
            one = self._known(int(match["rank"]), int(match["seq"]), line)
            self.found[one.rank, one.seq] = replace(
                one,
                group=match["group"],
                enqueued=int(match["enqueued"]),
                completed=int(match["completed"]),
            )
        return True

    def _known(self, rank: int, seq: int, line: int) -> Timeout:
        empty = Timeout(rank, "", seq, "", -1, -1, -1, -1, -1, self.file, line)
        return self.found.get((rank, seq), empty)


def timeout_verdicts(timeouts: Sequence[Timeout]) -> list[str]:
    """Who is behind, in a sentence for each process group."""
    named = {one.group for one in timeouts if one.group}
    groups: dict[str, list[Timeout]] = {}
    for one in timeouts:
        # A rank's second line names the group; where it is lost and there is one group, it is that.
        only = next(iter(named)) if len(named) == 1 else ""
        groups.setdefault(one.group or only, []).append(one)
    return [_verdict(group, mine) for group, mine in groups.items()]


def _verdict(group: str, mine: Sequence[Timeout]) -> str:
    name = f"group {group}" if group else "group not named"
    last = max(one.seq for one in mine)
    at_last = [one for one in mine if one.seq == last]
    told = f"{name}: {named_ranks([one.rank for one in mine])} ran out of time"
    named = [one for one in at_last if one.op]
    if len({one.op for one in named}) > 1 or len({one.sent for one in named} - {-1}) > 1:
        sizes = {-1: ""} | {one.sent: f" of {one.sent}" for one in named if one.sent >= 0}
        made = "; ".join(f"rank {one.rank} {one.op}{sizes[one.sent]}" for one in named)
        return f"{told} in different collectives under one number, {last}: {made}"
    behind = [one for one in mine if -1 < one.enqueued < last or one.seq < last]
    if behind and not group:
        numbers = ", ".join(map(str, sorted({one.seq for one in mine})))
        return f"{told} in {numbers}: no line names their groups, so none is known to be behind"
    if behind:
        least = min(behind, key=lambda one: (one.seq, one.enqueued))
        at = f"enqueued {least.enqueued}" if least.enqueued >= 0 else f"waits in {least.seq}"
        return f"{told}; rank {least.rank} is behind: it {at}, others wait in {last}"
    words = next((one.op for one in at_last if one.op), "work"), str(last) * (last >= 0)
    return (
        f"{told} in {' '.join(words).strip()}, all of them had enqueued it: none of these is"
        " behind; a rank that printed nothing may be"
    )


LARGEST: Final = 256 << 20
"""Bytes of a dump that are read."""
_FRONT: Final = 400
"""Bytes of a file in which a dump begins."""
_MARKS: Final = (b'"pg_config"', b'"pg_status"', b'"collective_seq_id"')
_TUPLE: Final = re.compile(r'\(("[^"\n]*"(?:, *"[^"\n]*")*)\)')
_ELLIPSIS: Final = re.compile(r"^\s*\.\.\.,?\s*$", re.MULTILINE)
_TRAILING: Final = re.compile(r",(\s*[\]}])")
_RANK: Final = re.compile(r"(\d{1,7})(?:\.json)?$")


@dataclass(frozen=True)
class Entry:
    """One collective that a rank recorded; -1 for what is not told."""

    rank: int
    group: str
    seq: int
    """Sequence number within the group; of sends and receives their own."""
    op: str
    state: str
    """``scheduled``, ``started`` or ``completed``."""
    sizes: str
    duration_ns: int
    """From its creation to the discovery of its end."""
    point_to_point: bool


@dataclass(frozen=True)
class Status:
    """How far a rank came in a group."""

    rank: int
    group: str
    name: str
    members: str
    enqueued: int
    started: int
    """-1 where timing was off."""
    completed: int


@dataclass(frozen=True)
class Dump:
    """One rank's dump."""

    path: str
    version: str
    statuses: tuple[Status, ...]
    entries: tuple[Entry, ...]


def looks_like_dump(block: bytes) -> bool:
    """Whether a file that begins so is a dump."""
    return b"{" in block[:_FRONT] and sum(mark in block for mark in _MARKS) >= 2


def refuse_whole(path: str, block: bytes, why: str = "larger than 256 MiB") -> None:
    """Refuses a file that is nothing but a dump, as its first block tells.

    Raises:
        UnreadableReportError: it is.
    """
    if block.lstrip().startswith(b"{"):
        raise UnreadableReportError(
            f"cannot read the dump of PyTorch's flight recorder in {path!r}",
            why,
            "copy it again, or have that rank dump again, with fewer entries",
        )


def read_dumps(path: str, data: bytes) -> list[Dump]:
    """The dumps of a file: one, or one of each rank where a launcher labelled the lines.

    Raises:
        UnreadableReportError: the file is one dump, and no whole one.
    """
    first = data[: data.index(b"{")]
    lines = _by_rank(data, first[_front(first) :]) if first.strip() else {-1: [data]}
    dumps = []
    for rank, mine in lines.items():
        try:
            dumps.append(_dump(path, rank, b"\n".join(mine).decode("utf-8", "replace")))
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            refuse_whole(path, data[:_FRONT], f"cut or damaged: {error}")
    return dumps


def _by_rank(data: bytes, rest: bytes) -> dict[int, list[bytes]]:
    """Lines of each rank without their labels and what else, such as ``stdout F``, is in front."""
    lines: dict[int, list[bytes]] = {}
    for line in data.splitlines():
        front = _front(line)
        labels = (label.search(line[:front]) for label in RANK_LABELS)
        rank = next((int(label[1]) for label in labels if label), -1)
        lines.setdefault(rank, []).append(line[front:].removeprefix(rest))
    return lines


def _front(line: bytes) -> int:
    """Length of what launchers and collectors put before a line."""
    match = FRONT.match(line)
    return match.end() if match else 0


def _dump(path: str, label: int, text: str) -> Dump:
    """The dump that a text is. Samples that were cut short are read too.

    Raises:
        ValueError: it is none; likewise the other errors of values that are not what they should.
    """
    document = _json(text)
    told = document.get("rank")
    named = _RANK.search(Path(path).name)
    rank = told if isinstance(told, int) else int(named[1]) if named and label < 0 else label
    return Dump(
        path,
        str(document.get("version", "")),
        _statuses(rank, document),
        _entries(rank, document),
    )


def _json(text: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", json.loads(text))
    except ValueError:
        mended = _TRAILING.sub(r"\1", _ELLIPSIS.sub("", _TUPLE.sub(r"[\1]", text)))
        return cast("dict[str, Any]", json.loads(mended))


def _statuses(rank: int, document: dict[str, Any]) -> tuple[Status, ...]:
    config = document.get("pg_config") or {}
    return tuple(
        Status(
            rank,
            str(group),
            str((config.get(group) or {}).get("desc", "")),
            str((config.get(group) or {}).get("ranks", "")),
            int(status.get("last_enqueued_collective", -1)),
            int(status.get("last_started_collective", -1)),
            int(status.get("last_completed_collective", -1)),
        )
        for group, status in (document.get("pg_status") or {}).items()
    )


def _entries(rank: int, document: dict[str, Any]) -> tuple[Entry, ...]:
    return tuple(
        _entry(rank, one) for one in document.get("entries") or () if isinstance(one, dict)
    )


def _entry(rank: int, one: dict[str, Any]) -> Entry:
    created, done = one.get("time_created_ns"), one.get("time_discovered_completed_ns")
    peers = bool(one.get("is_p2p"))
    group = one.get("process_group")
    sizes = [*zip(one.get("input_sizes") or [], one.get("input_dtypes") or [], strict=False)]
    return Entry(
        rank,
        str(group[0] if isinstance(group, list) and group else one.get("pg_id", "")),
        int(one.get("p2p_seq_id" if peers else "collective_seq_id", -1)),
        str(one.get("profiling_name", "")),
        str(one.get("state", "")),
        ", ".join(f"{kind} {shape}" for shape, kind in sizes),
        -1 if created is None or done is None else int(done) - int(created),
        peers,
    )


def dump_verdicts(dumps: Sequence[Dump]) -> list[str]:
    """Who is behind, and where ranks called different collectives, in sentences."""
    verdicts = []
    groups: dict[str, list[Status]] = {}
    for dump in dumps:
        for status in dump.statuses:
            groups.setdefault(status.group, []).append(status)
    for group, statuses in groups.items():
        most = max(one.enqueued for one in statuses)
        behind = [one for one in statuses if one.enqueued < most]
        verdicts += [
            f"group {group}: rank {one.rank} is behind: it enqueued {one.enqueued}, others {most}"
            for one in behind
        ]
        waiting = [one for one in statuses if one.completed < one.enqueued]
        if waiting and not behind:
            first = min(one.completed for one in waiting) + 1
            members = {int(rank) for rank in re.findall(r"\d+", statuses[0].members)}
            whole = members and members <= {one.rank for one in statuses}
            verdicts.append(
                f"group {group}: {len(waiting)} of the ranks dumped did not complete {first};"
                " all of them enqueued it: "
                + ("none is behind" if whole else "a rank without a dump may be behind")
            )
    return verdicts + _unlike(dumps)


def _unlike(dumps: Sequence[Dump]) -> list[str]:
    calls: dict[tuple[str, int], dict[int, tuple[str, str]]] = {}
    for dump in dumps:
        for one in dump.entries:
            if not one.point_to_point and one.seq >= 0:
                calls.setdefault((one.group, one.seq), {})[one.rank] = one.op, _elements(one)
    return [
        f"group {group}: ranks called different collectives under number {seq}: "
        + "; ".join(f"rank {rank} {op}{size}" for rank, (op, size) in sorted(by_rank.items())[:8])
        for (group, seq), by_rank in sorted(calls.items())
        if any(len({*said} - {""}) > 1 for said in zip(*by_rank.values(), strict=True))
    ][:20]


_EVEN: Final = ("nccl:all_reduce", "nccl:_all_gather_base", "nccl:_reduce_scatter_base")
"""Collectives to which every rank brings as many elements."""
_SHAPE: Final = re.compile(r"(\w+) \[([\d, ]*)\]")


def _elements(one: Entry) -> str:
    """Types and numbers of elements, where all ranks must agree in them."""
    if one.op not in _EVEN:
        return ""
    shapes = ((kind, re.findall(r"\d+", shape)) for kind, shape in _SHAPE.findall(one.sizes))
    told = ", ".join(f"{kind} × {prod(map(int, shape))}" for kind, shape in shapes)
    return f" of {told}" if told else ""
