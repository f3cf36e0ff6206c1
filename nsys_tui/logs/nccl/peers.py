"""Sends and receives that do not fit: by count, type, peer or order, or with none at the other end.

On a communicator the n-th send of a rank to another one meets the n-th receive there, whatever its
group; calls of one group start together, and a rank's next group waits until the last one is done.
So what a run came to is played through: a call whose other end nobody makes holds its rank, and
what waits for that rank is a consequence and no finding of its own.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from nsys_tui.logs.nccl.calls import Calls, rows_by
from nsys_tui.logs.nccl.grammar import POINT_TO_POINT
from nsys_tui.logs.nccl.repetition import broken, comes_over
from nsys_tui.model.arrays import Bool, Indices, Int32, Integers
from nsys_tui.model.groups import factorise_rows

Ends: TypeAlias = "dict[tuple[int, int], Int32]"
"""Rows of the calls by (from, to)."""
UNKNOWN: Final = -1
_TRIED: Final = 8
"""Pairs of ranks of which the first call may be the one left out: each is played through."""
_ALIKE: Final = 3
"""Calls of which both ends count alike, from which their counters tell which one is missing."""


class Odd(NamedTuple):
    """What does not fit, as rows of the calls."""

    what: str
    """``size``, ``type``, ``peer``, ``order``, ``one-sided``, or ``circle`` of ranks that wait."""
    rows: tuple[int, ...]
    """The calls that do not fit together, of different ranks."""
    waiting: tuple[int, ...] = ()
    """Calls at which other ranks wait because of it."""
    passed: bool = True
    """Whether its ranks met again behind it: else the other end may only not have come to it."""


@dataclass(frozen=True, eq=False)
class Peers:
    """The calls of one communicator, by rank."""

    calls: Calls
    places: Integers
    """Of each call, among all of its rank's."""
    cut: Indices
    """Calls behind which those with the same peer are left out: their other end is as well."""
    rows_of: dict[int, Int32]
    """Calls of each rank of it in the logs, in order."""
    played: bool
    """Whether order and waiting are looked at, not only counts, types and lone ends."""

    def odd(self) -> list[Odd]:
        """What does not fit."""
        sends, receives = self._ends()
        known = sorted(
            pair for pair in sends.keys() & receives.keys() if {*pair} <= {*self.rows_of}
        )
        other = np.full(len(self.calls), UNKNOWN, np.int32)
        pairs = []
        for pair in known:
            sent, received = self._matched(sends[pair], receives[pair])
            other[sent], other[received] = received, sent
            pairs += self._unlike(sent, received)
        other[self.cut] = np.where(other[self.cut] == UNKNOWN, self.cut, other[self.cut])
        if not self.played:
            return pairs + self._one_sided(other)
        stopped = self._play(other)
        if not pairs and [odd.what for odd in stopped] == ["circle"]:
            stopped = (
                self._first_left_out(other, [(sends[p], receives[p]) for p in known]) or stopped
            )
        return pairs + stopped

    def _first_left_out(self, other: Int32, ends: Sequence[tuple[Int32, Int32]]) -> list[Odd]:
        """What stops the ranks if one end lacks its first call, not its last; empty for nothing.

        In calls that come over and over the two look the same, but for the ranks that then wait.
        """
        uneven = [pair for pair in ends if abs(len(pair[0]) - len(pair[1])) == 1]
        for shorter, longer in (sorted(pair, key=len) for pair in uneven[:_TRIED]):
            codes, lacking, _ = self._kinds_beside(longer)
            if not comes_over(np.append(lacking, codes)):
                continue
            shifted = other.copy()
            shifted[longer[0]] = UNKNOWN
            shifted[longer[1:]], shifted[shorter] = shorter, longer[1:]
            stopped = self._play(shifted)
            if [odd.what for odd in stopped] == ["one-sided"] and stopped[0].rows == (longer[0],):
                return stopped
        return []

    def _matched(self, sent: Int32, received: Int32) -> tuple[Int32, Int32]:
        """The n-th send and the n-th receive, without the one that the other end leaves out."""
        met = min(len(sent), len(received))
        if len(sent) == met + 1:
            sent = np.delete(sent, self._left_out(sent, received))
        elif len(received) == met + 1:
            received = np.delete(received, self._left_out(received, sent))
        return sent[:met], received[:met]

    def _left_out(self, longer: Int32, shorter: Int32) -> int:
        """Which of some calls has no other end.

        It is the last one, if not those before and behind another are alike on both ends, in the
        counter, where that is no chance, or in count and type; or if the other rank does the same
        over and over, and once not this.
        """
        for columns, least in ((("op_count",), _ALIKE), (("count", "datatype"), 0)):
            mine, others = (
                np.column_stack([getattr(self.calls, name)[rows] for name in columns])
                for rows in (longer, shorter)
            )
            at = int(np.argmax(np.append((mine[:-1] != others).any(axis=1), True)))
            if least <= at < len(shorter) and (mine[at + 1 :] == others[at:]).all():
                return at
        codes, lacking, rows = self._kinds_beside(longer)
        place = None if lacking == UNKNOWN else broken(codes, lacking)
        return len(shorter) if place is None else int(np.searchsorted(shorter, rows[place]))

    def _kinds_beside(self, ends: Int32) -> tuple[Integers, int, Int32]:
        """What the rank at the other end of some calls does: operations and peers.

        Returns:
            The code of each of its calls that follow one another, the code of these, its calls.
        """
        rank, peer = int(self.calls.root[ends[0]]), int(self.calls.rank[ends[0]])
        rows, op = self.rows_of[rank], "Recv" if self._is(ends[:1], ("Send",))[0] else "Send"
        parts = np.split(rows, np.flatnonzero(np.diff(self.places[rows]) != 1) + 1)
        rows = max(parts, key=len)
        codes, kinds = factorise_rows([self.calls.op[rows], self.calls.root[rows]])
        same = (kinds == (self.calls.ops.index(op), peer)).all(axis=1)
        return codes, int(np.argmax(same)) if same.any() else UNKNOWN, rows

    def _ends(self) -> tuple[Ends, Ends]:
        """Sends and receives by (from, to)."""
        sends: Ends = {}
        receives: Ends = {}
        for rank, rows in self.rows_of.items():
            for peer, at in rows_by(self.calls.root[rows]):
                mine = rows[at]
                sends[rank, peer] = mine[self._is(mine, ("Send",))]
                receives[peer, rank] = mine[self._is(mine, ("Recv",))]
        return sends, receives

    def _is(self, rows: Int32, names: Container[str]) -> Bool:
        codes = [i for i, op in enumerate(self.calls.ops) if op in names]
        return np.isin(self.calls.op[rows], codes)

    def _unlike(self, sent: Int32, received: Int32) -> list[Odd]:
        """The first pair of calls that differ: those behind it may only be shifted by it."""
        count, kind = self.calls.count, self.calls.datatype
        unlike = (count[sent] != count[received]) | (kind[sent] != kind[received])
        if not unlike.any():
            return []
        at = int(np.argmax(unlike))
        pairs = [(int(sent[i]), int(received[i])) for i in range(at, min(at + 2, len(sent)))]
        told = [(self._said(one), self._said(other)) for one, other in pairs]
        if told[0][::-1] in told[1:]:
            return [Odd("order", (*pairs[0], *pairs[1]))]
        return [Odd("size" if told[0][0][0] != told[0][1][0] else "type", pairs[0])]

    def _said(self, row: int) -> tuple[int, int]:
        return int(self.calls.count[row]), int(self.calls.datatype[row])

    def _one_sided(self, other: Int32) -> list[Odd]:
        """Without knowing which calls start together: the first lone call of each rank."""
        alone = [self._lacking(rows, other)[:1].tolist() for rows in self.rows_of.values()]
        met = {row: self._met_behind(row, other) for rows in alone for row in rows}
        return _together(self.calls, met, ())

    def _met_behind(self, row: int, other: Int32) -> bool:
        """Whether the other rank took part in what this one sent or received later."""
        rank, peer = int(self.calls.rank[row]), int(self.calls.root[row])
        met = other[self.rows_of[rank][self.rows_of[rank] > row]]
        return rank == peer or bool((self.calls.rank[met[met >= 0]] == peer).any())

    def _lacking(self, rows: Int32, other: Int32) -> Indices:
        """Calls whose other end should be in the logs and is not."""
        alone = rows[self._is(rows, ("Send", "Recv")) & (other[rows] == UNKNOWN)]
        here: Bool = np.isin(self.calls.root[alone], [*self.rows_of])
        return np.asarray(alone[here], np.intp)

    def _play(self, other: Int32) -> list[Odd]:
        """Plays the launches through, and looks where ranks are held."""
        play = self._launches(other)
        lone = {at: play.lone(at) for at in play.held.values()}
        alone = {row: self._passed(row, play, at) for at, rows in lone.items() for row in rows}
        waiting = tuple(int(play.calls_of(at)[0]) for at, rows in lone.items() if not rows)
        if alone:
            return _together(self.calls, alone, waiting)
        circle = tuple(int(play.calls_of(play.held[rank])[0]) for rank in play.circle())
        others = tuple(row for row in waiting if row not in circle)
        return [Odd("circle", circle, others)] if circle else []

    def _passed(self, row: int, play: _Play, at: int) -> bool:
        """Whether the rank of a lone call met the one that it lacks in a later launch."""
        rank, peer = int(self.calls.rank[row]), int(self.calls.root[row])
        return rank == peer or play.meets_later(at, [*self.rows_of].index(peer))

    def _launches(self, other: Int32) -> _Play:
        """What starts together, and which others each needs."""
        rows = np.concatenate([*self.rows_of.values()])
        sizes = [*map(len, self.rows_of.values())]
        launch_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        begins = np.ones(len(rows), np.bool_)
        begins[1:] = (np.diff(self.calls.op_count[rows]) != 0) | (np.diff(launch_of) != 0)
        start = np.append(np.flatnonzero(begins), len(rows)).astype(np.int32)
        number = np.empty(len(self.calls), np.int32)
        number[rows] = np.cumsum(begins, dtype=np.int32) - 1
        end, owner = other[rows], launch_of[start[:-1]]
        lone = (end == UNKNOWN) & self._is(rows, ("Send", "Recv"))
        lone &= np.isin(self.calls.root[rows], [*self.rows_of])
        collective = np.logical_or.reduceat(~self._is(rows, POINT_TO_POINT), start[:-1])
        meeting = np.full(len(owner), UNKNOWN, np.int32)
        for rank in range(len(self.rows_of)):
            mine = np.flatnonzero(collective & (owner == rank))
            meeting[mine] = np.arange(len(mine))
        partner = np.where(end == UNKNOWN, np.int32(UNKNOWN), number[end])
        return _Play(rows, start, owner, partner, lone, meeting, len(sizes))


@dataclass(frozen=True, eq=False)
class _Play:
    """Launches, those of one rank after those of another: calls of a rank that start together."""

    rows: Int32
    """Calls in the order of the launches."""
    start: Int32
    """Place in ``rows`` of the first call of each launch; at last their number."""
    owner: Int32
    """Rank of each launch, counted from 0."""
    partner: Int32
    """Launch of the other end of each call of ``rows``; -1 for none."""
    missing: Bool
    """Calls of ``rows`` whose other end nobody makes."""
    meeting: Int32
    """Which collective of its rank a launch makes; -1 for none."""
    ranks: int

    @cached_property
    def first(self) -> list[int]:
        """The first launch of each rank; at last their number."""
        return [int(at) for at in np.searchsorted(self.owner, np.arange(self.ranks + 1))]

    @cached_property
    def held(self) -> dict[int, int]:
        """The launch at which each rank stands that cannot make all of its calls."""
        last = self.first[1:]
        return {i: at for i, at in enumerate(self.reached) if at < last[i]}

    @cached_property
    def _meetings(self) -> tuple[Indices, Indices]:
        """Launches by the collective that they make, and where those of each begin."""
        made = np.flatnonzero(self.meeting >= 0)
        which = self.meeting[made]
        edges = np.append(0, np.cumsum(np.bincount(which)))
        return made[np.argsort(which, kind="stable")], edges

    def _meeting(self, launch: int) -> list[int]:
        """All launches that make its collective, itself too."""
        which, (order, edges) = int(self.meeting[launch]), self._meetings
        return [] if which < 0 else order[edges[which] : edges[which + 1]].tolist()

    def _span(self, launch: int) -> slice:
        return slice(int(self.start[launch]), int(self.start[launch + 1]))

    def calls_of(self, launch: int) -> Int32:
        """Its calls."""
        return self.rows[self._span(launch)]

    def lone(self, launch: int) -> list[int]:
        """Its calls whose other end nobody makes."""
        missing: list[int] = self.calls_of(launch)[self.missing[self._span(launch)]].tolist()
        return missing

    def meets_later(self, launch: int, rank: int) -> bool:
        """Whether its own rank has a later launch that needs one of another rank."""
        last = self.first[int(self.owner[launch]) + 1]
        later = self.partner[self.start[launch + 1] : self.start[last]]
        if (self.owner[later[later >= 0]] == rank).any():
            return True
        theirs = self.meeting[self.first[rank] : self.first[rank + 1]].max(initial=UNKNOWN)
        mine = self.meeting[launch + 1 : last]
        return bool((mine[mine >= 0] <= theirs).any())

    def circle(self) -> list[int]:
        """Ranks that wait for one another; none where each waits for one that is done."""
        for begun in self.held:
            rank, seen = begun, dict[int, None]()
            while rank in self.held and rank not in seen:
                seen[rank] = None
                at = self.held[rank]
                needs = [*self.partner[self._span(at)].tolist(), *self._meeting(at)]
                owners = ((end, int(self.owner[end])) for end in needs if end >= 0)
                rank = next(
                    (process for end, process in owners if self.reached[process] < end), UNKNOWN
                )
            if rank in seen:
                around = [*seen]
                around = around[around.index(rank) :]
                least = around.index(min(around))
                return around[least:] + around[:least]
        return []

    @cached_property
    def reached(self) -> list[int]:
        """Starts every rank's launches in turn: the launch at which each came to a stop."""
        ends = np.add.reduceat((self.partner >= 0) | self.missing, self.start[:-1], dtype=np.int32)
        left, begun = (ends + (self.meeting >= 0)).data, bytearray(len(ends))
        start, partner, owner = self.start.data, self.partner.data, self.owner.data
        come = np.diff(self._meetings[1]).tolist()
        meeting, reached, last = self.meeting.data, self.first[:-1], self.first[1:]
        ready = [at for at, end in zip(reached, last, strict=True) if at < end]

        def go_on(at: int) -> None:
            """A rank that stands at a launch leaves it where that waits for nothing more."""
            rank = owner[at]
            if not left[at] and reached[rank] == at:
                reached[rank] = at + 1
                if at + 1 < last[rank]:
                    ready.append(at + 1)

        while ready:
            at = ready.pop()
            begun[at] = 1
            for place in range(start[at], start[at + 1]):
                end = partner[place]
                if end >= 0 and begun[end]:
                    left[at] -= 1
                    if end != at:
                        left[end] -= 1
                        go_on(end)
            if meeting[at] >= 0:
                come[meeting[at]] -= 1
                if not come[meeting[at]]:
                    for one in self._meeting(at):
                        left[one] -= 1
                        go_on(one)
            go_on(at)
        return reached


def _together(calls: Calls, alone: dict[int, bool], waiting: tuple[int, ...]) -> list[Odd]:
    """Lone calls as findings: a send and a receive that miss each other are one.

    Args:
        calls: the calls.
        alone: rows of calls without another end, and whether its rank passed it over.
        waiting: rows at which the other ranks stand.
    """
    left = dict(alone)
    groups = []
    while left:
        row = next(iter(left))
        passed = left.pop(row)
        partner = next((one for one in left if _miss(calls, row, one)), None)
        if partner is None:
            groups.append(Odd("one-sided", (row,), waiting, passed))
        else:
            del left[partner]
            groups.append(Odd("peer", (row, partner), waiting))
    return groups


def _miss(calls: Calls, one: int, other: int) -> bool:
    """Whether a send went elsewhere than to the rank that waits for it, or came from elsewhere."""
    if {calls.ops[int(calls.op[row])] for row in (one, other)} != {"Send", "Recv"}:
        return False
    here, there = int(calls.rank[one]), int(calls.rank[other])
    to_there = there == int(calls.root[one])
    to_here = here == int(calls.root[other])
    return to_there is not to_here
