"""Communicators that NCCL does not name: which ranks take part in each call of a stream.

Frameworks form groups of equally many ranks, each so many apart: neighbours for tensor parallelism,
every n-th for data parallelism. In a communicator nobody leaves before the last one came, and all
leave when the transfer is done, which takes as long as in the fastest group. A stream where that
holds for such groups, and not for all ranks together, has these; its calls may be of several kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.fleet.clocks import line
from nsys_tui.fleet.collectives import Group, match
from nsys_tui.fleet.summary import Collectives
from nsys_tui.fleet.times import SessionClock
from nsys_tui.model.arrays import Float64, Indices, Integers
from nsys_tui.model.groups import rows_of_codes

_SAMPLE: Final = 64
"""Calls of a stream that tell its groups, evenly chosen."""
_FEWEST: Final = 8
"""Calls that must speak against one communicator of all."""
_APART_NS: Final = 2_000
"""With an error up to this a call may be one of all ranks."""
_BETTER: Final = 0.5
"""Part of that error which groups may have at most."""
_EXPLAINED: Final = 0.7
"""Part of the calls that groups have to explain, and that of a further kind of groups."""
_FURTHER: Final = 0.1


def told_apart(
    calls_of: Sequence[Collectives],
    clocks: Sequence[SessionClock],
    sessions: Sequence[int],
    ranks: Sequence[int],
    world: int,
) -> list[Collectives]:
    """The collectives with a communicator of its own for each group of ranks.

    Args:
        calls_of: collectives of each rank.
        clocks: of the session of each rank, by UTC.
        sessions: session of each rank.
        ranks: their numbers.
        world: number of all ranks.
    """
    keys = [list(mine.keys) for mine in calls_of]
    codes = [mine.key.copy() for mine in calls_of]
    kinds = [*_kinds(np.array(ranks, np.int64), world)]
    for group in match(calls_of, clocks).groups:
        if not group.communicator.startswith("stream ") or group.unmatched or group.calls < _FEWEST:
            continue
        rows = list(group.members)
        sets = [np.zeros(len(rows), np.int64), *(kind[rows] for kind in kinds)]
        which = _kind_of_calls(group, [sessions[row] for row in rows], sets)
        told = 0
        for kind in np.unique(which[which >= 0]).tolist():
            for place, member in enumerate(rows):
                mine = calls_of[member]
                own = np.flatnonzero(mine.key == mine.keys.index((group.name, group.communicator)))
                codes[member][own[which == kind]] = len(keys[member])
                number = told + int(sets[kind][place]) + 1
                keys[member].append((group.name, f"≈ {group.communicator}, set {number}"))
            told += int(sets[kind].max()) + 1
    return [
        _with_keys(mine, own, code) for mine, own, code in zip(calls_of, keys, codes, strict=True)
    ]


def _with_keys(mine: Collectives, keys: Sequence[tuple[str, str]], codes: Integers) -> Collectives:
    used, key = np.unique(codes, return_inverse=True)
    return replace(mine, keys=tuple(keys[code] for code in used), key=key.astype(np.int32))


def _kinds(ranks: Integers, world: int) -> Iterator[Integers]:
    """Every way to cut a world into groups of equally many ranks: the group of each rank."""
    for apart in (step for step in range(1, world) if world % step == 0):
        for size in range(2, world // apart + 1):
            block = apart * size
            if world % block == 0 and size < world:
                yield ranks // block * apart + ranks % apart


def _kind_of_calls(group: Group, sessions: Sequence[int], kinds: Sequence[Integers]) -> Indices:
    """Which kind of groups makes each call; -1 for all ranks together.

    Args:
        group: calls of a stream, as if of one communicator.
        sessions: session of each rank.
        kinds: of each kind of groups the group of each rank; of the first all are one.
    """
    start, end = _on_one_clock(group, sessions)
    sample = np.arange(0, group.calls, max(1, -(-group.calls // _SAMPLE)))
    whole = _errors(start[:, sample], end[:, sample], kinds[0])
    clear = whole > _APART_NS
    if clear.sum() < max(_FEWEST, len(sample) // 2):
        return np.full(group.calls, -1)
    errors = np.array([_errors(start[:, sample], end[:, sample], kind) for kind in kinds])
    used = _explaining(errors[:, clear])
    if not used:
        return np.full(group.calls, -1)
    best = errors[used].min(axis=0)
    together = (best > _APART_NS) & (whole < _BETTER * best)
    if together.mean() >= _FURTHER:
        used.append(0)
    if len(used) == 1:
        return np.full(group.calls, used[0])
    every = np.array([_errors(start, end, kinds[kind]) for kind in used])
    return np.asarray(np.array(used)[np.argmin(every, axis=0)], np.intp)


def _explaining(errors: Float64) -> list[int]:
    """The kinds of groups that make some calls, each those that no earlier one does.

    Args:
        errors: of each kind and call, the first of all ranks together.
    """
    used: list[int] = []
    left = np.ones(errors.shape[1], bool)
    most = np.minimum(_BETTER * errors[0], np.maximum(errors.min(axis=0) / _BETTER, _APART_NS))
    while left.mean() > _FURTHER:
        kind = int(np.argmin(errors[:, left].sum(axis=1)))
        explained = left & (errors[kind] < most)
        if explained.mean() < _FURTHER:
            break
        used.append(kind)
        left &= ~explained
    return used if left.mean() <= 1 - _EXPLAINED else []


def _on_one_clock(group: Group, sessions: Sequence[int]) -> tuple[Float64, Float64]:
    """Starts and ends, those of each session moved to where most end with those of the others."""
    start, end = group.start.astype(np.float64), group.end.astype(np.float64)
    middle = np.median(end, axis=0)
    for rows in rows_of_codes(np.array(sessions), max(sessions) + 1):
        if not len(rows):
            continue
        offset, rate = line(end[rows].ravel(), np.tile(middle, len(rows)))
        start[rows], end[rows] = offset + rate * start[rows], offset + rate * end[rows]
    return start, end


def _errors(start: Float64, end: Float64, sets: Integers) -> Float64:
    """How badly calls are those of some sets of ranks, ns each.

    From the last start of a set to its first end the transfer takes place. It takes as long as the
    shortest kernel; longer, as long every time.
    """
    order = np.argsort(sets, kind="stable")
    begins = np.flatnonzero(np.diff(sets[order], prepend=-1))
    took = np.minimum.reduceat(end[order], begins) - np.maximum.reduceat(start[order], begins)
    apart = took - (end - start).min(axis=0)
    usual = np.maximum(np.median(apart, axis=1), 0)
    return np.asarray(np.abs(apart - usual[:, None]).mean(axis=0))
