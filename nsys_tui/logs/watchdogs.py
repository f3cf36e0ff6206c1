"""PyTorch's watchdog: collectives that took too long, by rank, and who is behind.

A rank that waits in a collective is no culprit: the one to look at is the rank that did not enqueue
it, or enqueued another. A rank that printed nothing may be it, and the log cannot tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nsys_tui.units import named_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMEOUT: Final = re.compile(
    r"(?:\[PG (?P<group>[^\]]*?) Rank \d+\] )?\[Rank (?P<rank>\d{1,7})\] Watchdog caught "
    r"collective operation timeout: WorkNCCL\((?:SeqNum=(?P<seq>\d{1,18}), )?OpType=(?P<op>\w+),"
    r"(?: NumelIn=(?P<sent>\d{1,18}), NumelOut=(?P<received>\d{1,18}),)?.*?"
    r"Timeout\(ms\)=(?P<limit>\d{1,18})\)(?: ran for (?P<ran>\d{1,18}) milliseconds)?"
)
_PLACE: Final = re.compile(
    r"\[PG (?P<group>[^\]]*?) Rank (?P<rank>\d{1,7})\].*?at (?:NCCL )?work(?: sequence id)?: "
    r"(?P<seq>\d{1,18}),?(?: PG status:)? last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18}), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)
WORDS: Final = (b"Watchdog caught collective", b"last enqueued ")


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
    received: int
    """Elements out."""
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
        if not any(word in text for word in WORDS):
            return False
        decoded = text.decode("utf-8", "replace")
        if match := _TIMEOUT.search(decoded):
            told = {k: int(v) for k, v in match.groupdict("-1").items() if k not in ("op", "group")}
            known = self._known(told["rank"], told["seq"], line)
            self.found[known.rank, known.seq] = replace(
                known,
                op=match["op"],
                group=known.group or match["group"] or "",
                sent=told["sent"],
                received=told["received"],
                limit_ms=told["limit"],
                ran_ms=told["ran"],
            )
            return True
        if match := _PLACE.search(decoded):
            known = self._known(int(match["rank"]), int(match["seq"]), line)
            self.found[known.rank, known.seq] = replace(
                known,
                group=match["group"],
                enqueued=int(match["enqueued"]),
                completed=int(match["completed"]),
            )
            return True
        return False

    def _known(self, rank: int, seq: int, line: int) -> Timeout:
        empty = Timeout(rank, "", seq, "", -1, -1, -1, -1, -1, -1, self.file, line)
        return self.found.get((rank, seq), empty)


def verdicts(timeouts: Sequence[Timeout]) -> list[str]:
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
    ranks = [one.rank for one in mine]
    calls = {one.seq: one for one in mine}
    last = max(calls)
    told = f"{name}: {named_ranks(ranks)} ran out of time"
    unlike = {(one.op, one.sent) for one in mine if one.seq == last and one.op}
    if len(unlike) > 1:
        made = "; ".join(
            f"rank {one.rank} {one.op} of {one.sent}" for one in mine if one.seq == last
        )
        return f"{told} in different collectives under one number, {last}: {made}"
    behind = [one for one in mine if -1 < one.enqueued < last or one.seq < last]
    if behind:
        least = min(behind, key=lambda one: (one.seq, one.enqueued))
        at = f"enqueued {least.enqueued}" if least.enqueued >= 0 else f"waits in {least.seq}"
        return f"{told}; rank {least.rank} is behind: it {at}, others wait in {last}"
    what = f"{calls[last].op} {last}" if last >= 0 else calls[last].op
    return (
        f"{told} in {what}, all of them had enqueued it: none of these is behind; a rank that"
        " printed nothing may be"
    )
