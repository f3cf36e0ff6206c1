"""Mismatched collectives and ranks that fell behind: what a hang looks like in a log.

NCCL counts the launches of a communicator, so calls of different ranks with one (communicator,
opCount) belong together and must agree. Where the counter stays 0 the order of the lines takes its
place. A call that was logged was issued; whether it ended no log tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.logs.calls import rows_by
from nsys_tui.logs.describe import describe
from nsys_tui.logs.grammar import POINT_TO_POINT, REDUCTIONS, reduction_name
from nsys_tui.logs.hang_report import Drift, HangReport, Member, Mismatch, Progress
from nsys_tui.logs.peer_findings import begun_late, find_peer_faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.logs.calls import Calls
    from nsys_tui.logs.participants import Group
    from nsys_tui.logs.result import LogResult

MOST_MISMATCHES: Final = 1000
_AT_ONCE: Final = 1 << 19
"""About so many calls are compared at a time: they take 100 bytes each."""


def find_hangs(result: LogResult) -> HangReport:
    """Compares what the ranks of each communicator called."""
    calls = result.every_call
    point_to_point = [i for i, op in enumerate(calls.ops) if op in POINT_TO_POINT]
    kept = ~np.isin(calls.op, point_to_point) & (calls.process >= 0)
    late = begun_late(calls) if point_to_point else set()
    checked = _Checked(result, kept, late)
    mismatches: list[Mismatch] = []
    more = 0
    drifts = []
    unchecked = 0
    for index, group in enumerate(result.groups):
        members = [m for m in group.members if m in checked.rows_of]
        if not members:
            continue
        silent = checked.silent(group)
        if len(members) + len(silent) < 2 or not checked.comparable(group, members):
            unchecked += group.nranks > 1
            continue
        found = checked.mismatches(index, members, MOST_MISMATCHES - len(mismatches))
        mismatches += found[0]
        more += found[1]
        if drift := checked.drift(index, group, members, silent):
            drifts.append(drift)
    progress = tuple(checked.progress(member) for member in sorted(checked.rows_of))
    peers = find_peer_faults(result, late)
    return HangReport(
        progress,
        (*mismatches, *peers.mismatches),
        more,
        (*drifts, *peers.drifts),
        unchecked,
        peers.unchecked,
        peers.partly,
    )


class _Checked:
    """The calls that can be compared, by communicator."""

    def __init__(self, result: LogResult, kept: NDArray[np.bool_], late: set[int]) -> None:
        self._late = late
        self._calls = result.every_call
        self._communicators = result.communicators
        every = rows_by(self._calls.communicator)
        self.rows_of = {one: mine for one, rows in every if len(mine := rows[kept[rows]])}
        self._peer_launches = _peer_launches(self._calls)
        self._half = result.half_calls
        torn = np.flatnonzero(self._calls.torn & (self._calls.process >= 0))
        lines = zip(self._calls.file[torn].tolist(), self._calls.line[torn].tolist(), strict=True)
        self._last_torn = dict(lines)

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
        counts = [np.unique(self._calls.op_count[self.rows_of[m]]) for m in members]
        return len(np.unique(np.concatenate(counts))) < sum(len(one) for one in counts)

    def silent(self, group: Group) -> list[int]:
        """Members that were set up and made no call, where the log shows all ranks of the group."""
        ranks = {self._communicators[m].rank for m in group.members} - {-1}
        told = group.certain or len(ranks) == len(group.members) == group.nranks
        return [m for m in group.members if m not in self.rows_of] if told else []

    def by_order(self, members: list[int]) -> bool:
        """Whether the order of the calls takes the counter's place.

        It does where the counter of every member stays 0, as some builds of NCCL print it, and
        where sends and receives moved it: each rank makes as many of these as it has peers.
        """
        return self._moved_by_peers(members) or not any(
            self._calls.op_count[self.rows_of[m]].any() for m in members
        )

    def _moved_by_peers(self, members: list[int]) -> bool:
        ranks_known = all(self._communicators[m].rank >= 0 for m in members)
        return ranks_known and len({self._peer_launches.get(m, 0) for m in members}) > 1

    def _keys(self, member: int, by_order: bool) -> NDArray[np.integer]:
        rows = self.rows_of[member]
        return np.arange(len(rows)) if by_order else self._calls.op_count[rows]

    def mismatches(self, index: int, members: list[int], room: int) -> tuple[list[Mismatch], int]:
        """Mismatches of a group, at most ``room`` of them, and how many more."""
        by_order = self.by_order(members)
        keys = [self._keys(m, by_order) for m in members]
        low, high = min(int(own.min()) for own in keys), max(int(own.max()) for own in keys)
        width = (high - low) // (sum(map(len, keys)) // _AT_ONCE + 1) + 1
        odd: list[int] = []
        for begin in range(low, high + 1, width):
            inside = [(begin <= own) & (own < begin + width) for own in keys]
            rows = [self.rows_of[m][mine] for m, mine in zip(members, inside, strict=True)]
            parts = [own[mine] for own, mine in zip(keys, inside, strict=True)]
            odd += self._unlike(rows, parts)
        made = [self._mismatch(index, members, value, by_order) for value in odd[:room]]
        return [one for one in made if one], max(0, len(odd) - room)

    def _unlike(
        self, rows: list[NDArray[np.integer]], keys: list[NDArray[np.integer]]
    ) -> list[int]:
        """Keys whose calls differ among ranks.

        Args:
            rows: calls of each rank.
            keys: what they are compared by.
        """
        key = np.concatenate(keys).astype(np.int64)
        if not len(key):
            return []
        who = np.repeat(np.arange(len(rows)), [*map(len, rows)])
        row = np.concatenate(rows)
        order = np.lexsort((row, who, key))
        key, who, row = key[order], who[order], row[order]
        # Calls of one group() share a counter: a rank's calls under one counter are one sequence.
        starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1) | np.diff(who, prepend=-1))
        place = np.arange(len(row)) - np.repeat(starts, np.diff(np.append(starts, len(row))))
        mixed = _signatures(self._calls, row) + np.uint64(1)
        mixed *= (2 * place + 1).astype(np.uint64)
        digest = np.add.reduceat(mixed, starts)
        distinct = key[starts]
        first = np.flatnonzero(np.diff(distinct, prepend=distinct[0] - 1))
        unlike = np.maximum.reduceat(digest, first) != np.minimum.reduceat(digest, first)
        found: list[int] = distinct[first][unlike].tolist()
        return found

    def _mismatch(
        self, index: int, members: list[int], value: int, by_order: bool
    ) -> Mismatch | None:
        found = []
        rows_of: list[NDArray[np.intp]] = []
        for member in members:
            rows = self.rows_of[member][self._keys(member, by_order) == value]
            if len(rows):
                rows_of.append(rows)
                found.append(self._member(member, rows))
        what = _difference(self._calls, rows_of)
        if what == "number of calls" and any(
            self._keys(one.communicator, by_order)[-1] == value for one in found
        ):
            return None  # The log ends inside a group: that rank is behind, not wrong.
        begun = (int(self._keys(one.communicator, by_order)[0]) for one in found)
        if value > 0 and value in begun and _same_ends(self._calls, rows_of):
            return None  # The log begins inside a group.
        ops = dict.fromkeys(
            self._calls.ops[op] for rows in rows_of for op in self._calls.op[rows].tolist()
        )
        op_count = int(self._calls.op_count[rows_of[0][0]])
        return Mismatch(index, op_count, by_order, tuple(ops), tuple(found), what)

    def _member(self, member: int, rows: NDArray[np.intp]) -> Member:
        described = tuple(describe(self._calls, row) for row in rows[:8].tolist())
        last = int(rows[-1])
        return Member(member, described, int(self._calls.file[last]), int(self._calls.line[last]))

    def _lost_one(self, member: int) -> bool:
        """Whether its next call may be lost: half of it ends a file, or a torn line follows."""
        last = int(self.rows_of[member][-1])
        torn = self._last_torn.get(int(self._calls.file[last]), 0)
        half = self._communicators[member].process in self._half
        return half or torn > int(self._calls.line[last])

    def progress(self, member: int) -> Progress:
        """How far a member came."""
        rows = self.rows_of[member]
        last = int(self._calls.op_count[rows[-1]])
        return Progress(member, len(rows), last, self._member(member, rows[-1:]))

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
        reached = {m: int(self._keys(m, by_order).max()) for m in members}
        top = max(reached.values())
        behind = [m for m in members if reached[m] < top - self._lost_one(m)]
        missing = max(0, group.nranks - len(group.members))
        if not behind and not silent:
            return None
        ahead = [m for m in members if reached[m] == top]
        keys = self._keys(ahead[0], by_order)
        limit = int(keys.min()) - 1 if silent else min(reached.values())
        rows = self.rows_of[ahead[0]][keys > limit][:8]
        return Drift(
            index,
            by_order,
            tuple(self._silent(m) for m in silent) + tuple(self.progress(m) for m in behind),
            tuple(self.progress(m) for m in ahead),
            missing,
            tuple(describe(self._calls, row) for row in rows.tolist()),
        )


def _peer_launches(calls: Calls) -> dict[int, int]:
    """Launches of sends and receives, by communicator."""
    codes = [i for i, op in enumerate(calls.ops) if op in POINT_TO_POINT]
    rows = np.isin(calls.op, codes)
    if not rows.any():
        return {}
    places = np.stack([calls.communicator[rows].astype(np.int64), calls.op_count[rows]])
    communicators, counts = np.unique(np.unique(places, axis=1)[0], return_counts=True)
    return dict(zip(communicators.tolist(), counts.tolist(), strict=True))


def describe_all(calls: Calls, rows: NDArray[np.intp]) -> list[tuple[str, int]]:
    """Calls as words with their root, in order: equal for ranks that agree."""
    return [(describe(calls, row), int(calls.root[row])) for row in rows.tolist()]


def _signatures(calls: Calls, rows: NDArray[np.integer]) -> NDArray[np.uint64]:
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


def _same_ends(calls: Calls, rows_of: list[NDArray[np.intp]]) -> bool:
    """Whether each sequence is the end of the longest one."""
    sequences = [describe_all(calls, rows) for rows in rows_of]
    longest = max(sequences, key=len)
    return all(longest[len(longest) - len(one) :] == one for one in sequences)


def _difference(calls: Calls, rows_of: list[NDArray[np.intp]]) -> str:
    sequences = [describe_all(calls, rows) for rows in rows_of]
    longest = max(sequences, key=len)
    if all(longest[: len(one)] == one for one in sequences):
        return "number of calls"
    columns: tuple[tuple[str, NDArray[Any]], ...] = (
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
