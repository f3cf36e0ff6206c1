"""Faults of sends and receives as findings: which rank, which call of it, and its last good one."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial

import numpy as np

from nsys_tui.logs.nccl.hang_report import Drift, HangReport, Member, Mismatch, Progress, describe
from nsys_tui.logs.nccl.participants import Group
from nsys_tui.logs.nccl.peer_pass import PeerPass, Selection
from nsys_tui.logs.nccl.peers import Odd, Peers
from nsys_tui.logs.result import LogResult


def find_peer_faults(result: LogResult, late: AbstractSet[int]) -> HangReport:
    """Compares the sends and receives of each communicator.

    Args:
        result: the logs.
        late: communicators whose first calls are not in them.

    Returns:
        A part of the report; a call whose other end was not made when the log ended is a drift: its
        rank may only be behind.
    """
    kinds = result.every_call.by_kind
    using = set(kinds.communicator[kinds.are(("Send", "Recv"))].tolist())
    mismatches: list[Mismatch] = []
    drifts: list[Drift] = []
    unchecked = partly = 0
    passed = PeerPass(result.every_call, len(result.communicators)) if using else None
    for index, group in enumerate(result.groups):
        members = [*group.members]
        if passed is None or group.nranks < 2 or not using.intersection(members):
            continue
        if not _comparable(result, group, members) or not late.isdisjoint(members):
            unchecked += 1
            continue
        member_of = {result.communicators[m].rank: m for m in members}
        fits, by_order = passed.fits(member_of), passed.by_order(member_of)
        partly += by_order or not (fits or passed.held(member_of))
        if not fits:
            faults = _Found(result, index, member_of, passed)
            mismatches += faults.mismatches
            drifts += faults.drifts
    return HangReport((), tuple(mismatches), 0, tuple(drifts), 0, unchecked, partly)


def _comparable(result: LogResult, group: Group, members: list[int]) -> bool:
    """Whether ranks are known, two are in the logs, and no line of theirs was lost."""
    ranks = [result.communicators[m].rank for m in members]
    if len(members) < 2 or not group.certain or min(ranks) < 0 or len(set(ranks)) < len(ranks):
        return False
    kinds = result.every_call.by_kind
    files = np.unique(kinds.file[np.isin(kinds.communicator, members)]).tolist()
    return not any(result.files[file].torn_lines or result.files[file].cut_short for file in files)


class _Found:
    """The findings of one group."""

    def __init__(
        self, result: LogResult, index: int, member_of: dict[int, int], passed: PeerPass
    ) -> None:
        self._passed = passed
        self._chosen = passed.select(member_of)
        self._calls = self._chosen.calls
        self._result = result
        self._index = index
        self._member = member_of
        self._rows = {
            rank: np.flatnonzero(self._calls.communicator == m).astype(np.int32)
            for rank, m in self._member.items()
        }
        self._by_order = passed.by_order(member_of)
        self.mismatches: list[Mismatch] = []
        self.drifts: list[Drift] = []
        for odd in Peers(*self._chosen, self._rows, not self._by_order).odd():
            self._take(odd)

    def _take(self, odd: Odd) -> None:
        ended = all(self._result.communicators[m].ended == "destroy" for m in self._member.values())
        if odd.what == "circle" and ended:
            return  # The run ended well, so nothing waited for long.
        if odd.what == "one-sided" and not ended and not odd.passed:
            self.drifts.append(self._drift(odd))
            return
        at = partial(_at, self._chosen)
        ops = dict.fromkeys(self._calls.ops[int(self._calls.op[row])] for row in odd.rows)
        self.mismatches.append(
            Mismatch(
                self._index,
                int(self._calls.op_count[odd.rows[0]]),
                self._by_order,
                tuple(ops),
                tuple(at(row) for row in odd.rows) + self._other_end(odd),
                odd.what,
                point_to_point=True,
                waiting=tuple(at(row) for row in odd.waiting),
            )
        )

    def _other_end(self, odd: Odd) -> tuple[Member, ...]:
        """Of a lone call the rank that should have met it, with its last call."""
        if odd.what != "one-sided":
            return ()
        peer = int(self._calls.root[odd.rows[0]])
        return () if peer == int(self._calls.rank[odd.rows[0]]) else (self._last(peer).last,)

    def _last(self, rank: int) -> Progress:
        """How far a rank came."""
        member = self._member[rank]
        last = self._passed.last_two(member)
        if len(last.calls):
            return _progress(last, len(last.calls) - 1)
        file, line = self._result.communicators[member].first
        return Progress(member, 0, 0, Member(member, (), file, line))

    def _drift(self, odd: Odd) -> Drift:
        row = odd.rows[0]
        ahead = _progress(self._chosen, row)
        behind = self._last(int(self._calls.root[row]))
        who = f"rank {int(self._calls.rank[row])}"
        other = f"the other end of call {ahead.calls} of {who}, {describe(self._calls, row)}"
        return Drift(self._index, self._by_order, (behind,), (ahead,), 0, (other,), True)


def _at(chosen: Selection, row: int) -> Member:
    """A rank at one of its calls."""
    calls, places, _ = chosen
    member, place = int(calls.communicator[row]), int(places[row])
    before = np.flatnonzero((calls.communicator == member) & (places == place - 1)).tolist()
    return Member(
        member,
        (describe(calls, row),),
        int(calls.file[row]),
        int(calls.line[row]),
        place + 1,
        f"call {place}, {describe(calls, before[0])}" if before else "",
    )


def _progress(chosen: Selection, row: int) -> Progress:
    """How far a rank came that is at one of its calls."""
    at = _at(chosen, row)
    return Progress(at.communicator, at.number, int(chosen.calls.op_count[row]), at)
