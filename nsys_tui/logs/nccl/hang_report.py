"""What does not fit in the calls of the ranks: mismatches, and ranks that fell behind."""

from __future__ import annotations

from dataclasses import dataclass

from nsys_tui.logs.nccl.calls import Calls
from nsys_tui.logs.nccl.grammar import datatype_name, reduction_name


@dataclass(frozen=True)
class Member:
    """One rank of a mismatch or of a group that drifts apart."""

    communicator: int
    """Index into ``LogResult.communicators``."""
    calls: tuple[str, ...]
    """What it called, such as ``AllReduce fp32 × 9984512``."""
    file: int
    line: int
    number: int = 0
    """Its place among the rank's calls on the communicator, from 1; 0 where it is not told."""
    last_good: str = ""
    """The rank's call before it."""


@dataclass(frozen=True)
class Mismatch:
    """Ranks that called different things where all must call the same."""

    group: int
    op_count: int
    by_order: bool
    """Matched by order because the counter does not move."""
    ops: tuple[str, ...]
    members: tuple[Member, ...]
    what: str
    """``operation``, ``size``, ``type``, ``reduction`` or ``root``; of sends and receives ``size``,
    ``type``, ``peer``, ``order``, ``one-sided`` or ``circle``."""
    point_to_point: bool = False
    waiting: tuple[Member, ...] = ()
    """Ranks that wait because of it."""


@dataclass(frozen=True)
class Progress:
    """How far one rank came on a communicator."""

    communicator: int
    calls: int
    """0 of a rank that set the communicator up and never used it."""
    last_op_count: int
    last: Member


@dataclass(frozen=True)
class Drift:
    """A communicator whose ranks did not come equally far: where a hang would show."""

    group: int
    by_order: bool
    behind: tuple[Progress, ...]
    ahead: tuple[Progress, ...]
    missing_ranks: int
    """Ranks of it without any call in the log."""
    next_calls: tuple[str, ...]
    """What the ranks behind did not call, by those ahead."""
    point_to_point: bool = False
    """Whether it is the other end of a send or receive, which may also be left out."""


@dataclass(frozen=True)
class HangReport:
    """Last call of every rank on every communicator, and what does not fit."""

    progress: tuple[Progress, ...]
    mismatches: tuple[Mismatch, ...]
    more_mismatches: int
    """Mismatches beyond those listed."""
    drifts: tuple[Drift, ...]
    unchecked_groups: int
    """Groups of which only one rank is in the log, so nothing can be compared."""
    unchecked_peers: int = 0
    """Groups whose sends and receives are not compared: ranks unknown, lines torn, or first
    calls not in the logs."""
    partly_checked_peers: int = 0
    """Groups whose sends and receives were not played through, as opCount stays 0, or only around
    the first that does not fit, as they are too many."""


def describe(calls: Calls, row: int) -> str:
    """A call in words, such as ``AllReduce max fp32 × 4096`` or ``Send fp32 × 8 to rank 1``."""
    op = calls.ops[int(calls.op[row])]
    reduction = reduction_name(int(calls.reduction[row]), op)
    kind = datatype_name(int(calls.datatype[row]))
    towards = {"Send": " to", "Recv": " from"}.get(op)
    peer = f"{towards} rank {int(calls.root[row])}" if towards else ""
    return f"{op} {reduction + ' ' if reduction else ''}{kind} × {int(calls.count[row])}{peer}"
