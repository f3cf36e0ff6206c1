"""Mismatched collectives and ranks that fell behind: what a hang looks like in a log.

NCCL counts the launches of a communicator, so calls of different ranks with one (communicator,
opCount) belong together and must agree. Where the counter stays 0 the order of the lines takes its
place. A call that was logged was issued; whether it ended no log tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.logs.nccl.calls import (
    CallLog,
    Calls,
    Rows,
    begun_late,
    joined,
    no_rows,
    reaches,
    rows_by,
    take,
)
from nsys_tui.logs.nccl.grammar import POINT_TO_POINT, REDUCTIONS, reduction_name
from nsys_tui.logs.nccl.hang_report import Drift, HangReport, Member, Mismatch, Progress, describe
from nsys_tui.logs.nccl.participants import Group
from nsys_tui.logs.nccl.peer_findings import find_peer_faults
from nsys_tui.logs.result import LogResult
from nsys_tui.model.arrays import Array, Bool, Indices, Int64, Integers
from nsys_tui.model.groups import factorise_rows

MOST_MISMATCHES: Final = 1000
_AT_ONCE: Final = 1 << 17
"""About so many calls are compared at a time: they take 150 bytes each."""


def find_hangs(result: LogResult) -> HangReport:
    """Compares what the ranks of each communicator called."""
    kinds = result.every_call.by_kind
    pairwise = kinds.are(POINT_TO_POINT)
    late = begun_late(result.every_call) if pairwise.any() else set()
    checked = _Checked(result, ~pairwise & (kinds.process >= 0), late)
    mismatches: list[Mismatch] = []
    more = 0
    drifts = []
    unchecked = 0
    for index, group in enumerate(result.groups):
        members = [m for m in group.members if m in checked.reach_of]
        if not members:
            continue
        silent = checked.silent(group)
        if len(members) + len(silent) < 2 or not checked.comparable(group, members):
            unchecked += group.nranks > 1
            continue
        faults = checked.mismatches(index, members, MOST_MISMATCHES - len(mismatches))
        mismatches += faults[0]
        more += faults[1]
        if drift := checked.drift(index, group, members, silent):
            drifts.append(drift)
    progress = tuple(checked.progress(member) for member in sorted(checked.reach_of))
    peers = find_peer_faults(result, late)
    return HangReport(
        progress,
        (*mismatches, *peers.mismatches),
        more,
        (*drifts, *peers.drifts),
        unchecked,
        peers.unchecked_peers,
        peers.partly_checked_peers,
    )


class _Checked:
    """The calls that can be compared, by communicator."""

    def __init__(self, result: LogResult, kept: Bool, late: set[int]) -> None:
        self._late = late
        self._log = result.every_call
        self._kept = kept
        self._communicators = result.communicators
        self.reach_of, self._reach_in = reaches(self._log, kept)
        self._peer_launches = _peer_launches(self._log)
        self._half = result.half_calls
        kinds = self._log.by_kind
        torn = self._log.select(kinds.torn & (kinds.process >= 0))
        self._last_torn = dict(zip(torn.file.tolist(), torn.line.tolist(), strict=True))

    def comparable(self, group: Group, members: list[int]) -> bool:
        """Whether members belong together: certain, or a guess that shares a counter value.

        Calls that are counted by their order must all be in the logs, from the first one on.
        """
        if self.by_order(members) and not self._late.isdisjoint(members):
            return False
        if group.certain:
            return True
        if self._peer_launches.keys() & set(members):
            return False
        for calls, _ in self._windows(members, by_order=False):
            _, first = np.unique(calls.op_count, return_index=True)
            _, pairs = factorise_rows([calls.op_count, calls.communicator])
            if len(pairs) > len(first):
                return True
        return False

    def silent(self, group: Group) -> list[int]:
        """Members that were set up and made no call, where the log shows all ranks of the group."""
        ranks = {self._communicators[m].rank for m in group.members} - {-1}
        told = group.certain or len(ranks) == len(group.members) == group.nranks
        return [m for m in group.members if m not in self.reach_of] if told else []

    def by_order(self, members: list[int]) -> bool:
        """Whether the order of the calls takes the counter's place.

        It does where the counter of every member stays 0, as some builds of NCCL print it, and
        where sends and receives moved it: each rank makes as many of these as it has peers.
        """
        reached = [self.reach_of[m] for m in members]
        return self._moved_by_peers(members) or not any(one.low or one.high for one in reached)

    def _moved_by_peers(self, members: list[int]) -> bool:
        ranks_known = all(self._communicators[m].rank >= 0 for m in members)
        return ranks_known and len({self._peer_launches.get(m, 0) for m in members}) > 1

    def _windows(self, members: list[int], *, by_order: bool) -> Iterator[tuple[Calls, Int64]]:
        """The calls of members with their keys, some at a time: all with one key together."""
        reached = [self.reach_of[m] for m in members]
        low = min(one.keys(by_order)[0] for one in reached)
        high = max(one.keys(by_order)[1] for one in reached)
        width = (high - low) // (sum(one.number for one in reached) // _AT_ONCE + 1) + 1
        for begin in range(low, high + 1, width):
            yield self._between(members, begin, begin + width, by_order)

    def _between(
        self, members: list[int], begin: int, end: int, by_order: bool, most: int | None = None
    ) -> tuple[Calls, Int64]:
        """Calls of members in the log's order whose keys are in [begin, end), with these."""
        wanted = np.zeros(len(self._communicators), np.bool_)
        wanted[members] = True
        communicator = self._log.by_kind.communicator
        mine = self._kept & wanted[communicator]
        parts: list[Rows] = [no_rows() | {"key": np.empty(0, np.int64)}]
        for block, reached in zip(self._log.blocks, self._reach_in, strict=True):
            spans = (reached[m].keys(by_order) for m in reached.keys() & set(members))
            if not any(low < end and begin <= high for low, high in spans):
                continue
            rows = block.rows()
            rows = take(rows, mine[rows["kind"]])
            key = rows["key"] = rows["op_count"]
            if by_order:
                who = communicator[rows["kind"]]
                key = rows["key"] = _places(who, {m: one.before for m, one in reached.items()})
            parts.append(take(rows, (begin <= key) & (key < end)))
            if most and sum(len(one["key"]) for one in parts) >= most:
                break
        rows = joined(parts)
        key = rows.pop("key").astype(np.int64)
        return self._log.calls(rows), key

    def mismatches(self, index: int, members: list[int], room: int) -> tuple[list[Mismatch], int]:
        """Mismatches of a group, at most ``room`` of them, and how many more."""
        by_order = self.by_order(members)
        made: list[Mismatch | None] = []
        odd = 0
        for calls, key in self._windows(members, by_order=by_order):
            unlike = _unlike(calls, key)
            made += [
                self._mismatch(index, members, value, calls.take(key == value), by_order)
                for value in unlike[: max(0, room - odd)]
            ]
            odd += len(unlike)
        return [one for one in made if one], max(0, odd - room)

    def _mismatch(
        self, index: int, members: list[int], value: int, calls: Calls, by_order: bool
    ) -> Mismatch | None:
        every = ((m, np.flatnonzero(calls.communicator == m)) for m in members)
        rows_of = {m: rows for m, rows in every if len(rows)}
        named = [_member(calls, m, rows) for m, rows in rows_of.items()]
        what = _difference(calls, [*rows_of.values()])
        reached = [self.reach_of[m] for m in rows_of]
        if what == "number of calls" and any(one.ends(by_order)[1] == value for one in reached):
            return None  # The log ends inside a group: that rank is behind, not wrong.
        begun = (one.ends(by_order)[0] for one in reached)
        if value > 0 and value in begun and _same_ends(calls, [*rows_of.values()]):
            return None  # The log begins inside a group.
        rows = np.concatenate([*rows_of.values()])
        ops = dict.fromkeys(calls.ops[op] for op in calls.op[rows].tolist())
        op_count = int(calls.op_count[rows[0]])
        return Mismatch(index, op_count, by_order, tuple(ops), tuple(named), what)

    def _lost_one(self, member: int) -> bool:
        """Whether its next call may be lost: half of it ends a file, or a torn line follows."""
        last = self.progress(member).last
        half = self._communicators[member].process in self._half
        return half or self._last_torn.get(last.file, 0) > last.line

    def progress(self, member: int) -> Progress:
        """How far a member came."""
        reach = self.reach_of[member]
        block, row = reach.end
        rows = take(self._log.blocks[block].rows(), np.array([row]))
        last = _member(self._log.calls(rows), member, np.zeros(1, np.intp))
        return Progress(member, reach.number, reach.last, last)

    def _silent(self, member: int) -> Progress:
        file, line = self._communicators[member].first
        return Progress(member, 0, 0, Member(member, (), file, line))

    def drift(
        self, index: int, group: Group, members: list[int], silent: list[int]
    ) -> Drift | None:
        """The group's drift, None if all ranks in the log came equally far.

        Args:
            index: number of the group.
            group: the group.
            members: its communicators that made calls.
            silent: those that were set up and made none.
        """
        by_order = self.by_order(members)
        reached = {m: self.reach_of[m].keys(by_order)[1] for m in members}
        top = max(reached.values())
        behind = [m for m in members if reached[m] < top - self._lost_one(m)]
        missing = max(0, group.nranks - len(group.members))
        if not behind and not silent:
            return None
        ahead = [m for m in members if reached[m] == top]
        first = self.reach_of[ahead[0]].keys(by_order)[0] if silent else min(reached.values()) + 1
        calls, _ = self._between(ahead[:1], first, top + 1, by_order, most=8)
        return Drift(
            index,
            by_order,
            tuple(self._silent(m) for m in silent) + tuple(self.progress(m) for m in behind),
            tuple(self.progress(m) for m in ahead),
            missing,
            tuple(describe(calls, row) for row in range(min(8, len(calls)))),
        )


def _member(calls: Calls, member: int, rows: Indices) -> Member:
    described = tuple(describe(calls, row) for row in rows[:8].tolist())
    last = int(rows[-1])
    return Member(member, described, int(calls.file[last]), int(calls.line[last]))


def _places(who: Integers, before: Mapping[int, int]) -> Int64:
    """Place of each call of a block among those of its communicator."""
    place = np.empty(len(who), np.int64)
    for one, rows in rows_by(who):
        place[rows] = np.arange(len(rows)) + before[one]
    return place


def _unlike(calls: Calls, keys: Int64) -> list[int]:
    """Keys whose calls differ among communicators."""
    if not len(keys):
        return []
    row = np.lexsort((calls.communicator, keys))
    key, who = keys[row], calls.communicator[row].astype(np.int64)
    # Calls of one group() share a counter: a rank's calls under one counter are one sequence.
    starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1) | np.diff(who, prepend=-1))
    place = np.arange(len(row)) - np.repeat(starts, np.diff(np.append(starts, len(row))))
    mixed = _signatures(calls, row) + np.uint64(1)
    mixed *= (2 * place + 1).astype(np.uint64)
    digest = np.add.reduceat(mixed, starts)
    distinct = key[starts]
    first = np.flatnonzero(np.diff(distinct, prepend=distinct[0] - 1))
    unlike = np.maximum.reduceat(digest, first) != np.minimum.reduceat(digest, first)
    odd: list[int] = distinct[first][unlike].tolist()
    return odd


def _peer_launches(log: CallLog) -> dict[int, int]:
    """Launches of sends and receives, by communicator."""
    pairwise = log.by_kind.are(POINT_TO_POINT)
    if not pairwise.any():
        return {}
    launches: dict[int, int] = {}
    reached: dict[int, int] = {}
    for calls in log.parts(pairwise):
        for one, rows in rows_by(calls.communicator):
            counts = calls.op_count[rows].astype(np.int64)
            begun = np.diff(counts, prepend=reached.get(one, int(counts[0]) - 1)) != 0
            launches[one] = launches.get(one, 0) + int(begun.sum())
            reached[one] = int(counts[-1])
    return launches


def describe_all(calls: Calls, rows: Indices) -> list[tuple[str, int]]:
    """Calls as words with their root, in order: equal for ranks that agree."""
    return [(describe(calls, row), int(calls.root[row])) for row in rows.tolist()]


def _signatures(calls: Calls, rows: Integers) -> NDArray[np.uint64]:
    """One number for what all ranks must agree on, of each of some calls."""
    reducing = np.array([bool(reduction_name(0, op)) for op in calls.ops], dtype=np.bool_)
    # Numbers of reductions that the user made are each rank's own.
    op = calls.op[rows]
    reduction = np.where(reducing[op], np.minimum(calls.reduction[rows], len(REDUCTIONS)), 0)
    signature = np.zeros(len(rows), dtype=np.uint64)
    for column in (op, calls.count[rows], calls.datatype[rows], reduction, calls.root[rows]):
        signature = signature * np.uint64(0x9E3779B97F4A7C15) + column.astype(np.uint64)
        signature ^= signature >> np.uint64(29)
    return signature


def _same_ends(calls: Calls, rows_of: list[Indices]) -> bool:
    """Whether each sequence is the end of the longest one."""
    sequences = [describe_all(calls, rows) for rows in rows_of]
    longest = max(sequences, key=len)
    return all(longest[len(longest) - len(one) :] == one for one in sequences)


def _difference(calls: Calls, rows_of: list[Indices]) -> str:
    sequences = [describe_all(calls, rows) for rows in rows_of]
    longest = max(sequences, key=len)
    if all(longest[: len(one)] == one for one in sequences):
        return "number of calls"
    columns: tuple[tuple[str, Array], ...] = (
        ("operation", calls.op),
        ("size", calls.count),
        ("type", calls.datatype),
        ("reduction", calls.reduction),
        ("root", calls.root),
    )
    for name, column in columns:
        if len({tuple(column[rows].tolist()) for rows in rows_of}) > 1:
            return name
    return "number of calls"
