"""Sends and receives that do not fit: by count, type, peer or order, or with none at the other end.

On a communicator the n-th send of a rank to another one meets the n-th receive there, whatever its
group; calls of one group start together, and a rank's next group waits until the last one is done.
So what a run came to is played through: a call whose other end nobody makes holds its rank, and
what waits for that rank is a consequence and no finding of its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from nsys_tui.logs.calls import rows_by
from nsys_tui.logs.grammar import POINT_TO_POINT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from nsys_tui.logs.calls import Calls

Ends: TypeAlias = "dict[tuple[int, int], NDArray[np.intp]]"
"""Rows of the calls by (from, to)."""
UNKNOWN: Final = -1
MOST_CALLS: Final = 300_000
"""Calls of one communicator that are played through; of more only counts and types are compared."""


class Odd(NamedTuple):
    """What does not fit, as rows of the calls."""

    what: str
    """``size``, ``type``, ``peer``, ``order`` or ``one-sided``."""
    rows: tuple[int, ...]
    """The calls that do not fit together, of different ranks."""
    waiting: tuple[int, ...] = ()
    """Calls at which other ranks wait because of it."""
    passed: bool = True
    """Whether its ranks met again behind it: else the other end may only not have come to it."""


@dataclass(slots=True)
class _Launch:
    """Calls of one rank that start together."""

    rows: list[int]
    partners: list[tuple[int, int]] = field(default_factory=list)
    """(rank, launch) of the other end of each call."""
    missing: Sequence[int] = ()
    """Calls whose other end nobody makes."""
    meeting: Sequence[tuple[int, int]] = ()
    """(rank, launch) of all who make its collective, itself too; one list for all of them."""
    left: int = 0
    """Ends that it still waits for."""

    def needs(self) -> Iterator[tuple[int, int]]:
        """All launches that must have begun before it ends."""
        yield from self.partners
        yield from self.meeting


@dataclass(frozen=True, eq=False)
class Peers:
    """The calls of one communicator, by rank."""

    calls: Calls
    rows_of: dict[int, NDArray[np.intp]]
    """All calls of each rank of it in the logs, in order."""
    stuck_counter: bool
    """Whether opCount stays 0, so that it does not tell which calls start together."""

    def odd(self) -> list[Odd]:
        """What does not fit."""
        sends, receives = self._ends()
        other = np.full(len(self.calls), UNKNOWN)
        found = []
        for pair in sorted(sends.keys() & receives.keys()):
            if not all(rank in self.rows_of for rank in pair):
                continue  # The other end is in no log.
            met = min(len(sends[pair]), len(receives[pair]))
            sent, received = sends[pair][:met], receives[pair][:met]
            other[sent], other[received] = received, sent
            found += self._unlike(sent, received)
        return found + (self._play(other) if self.played else self._one_sided(other))

    @property
    def played(self) -> bool:
        """Whether order and waiting are looked at, not only counts, types and lone ends."""
        return not self.stuck_counter and sum(map(len, self.rows_of.values())) <= MOST_CALLS

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

    def _is(self, rows: NDArray[np.intp], names: Sequence[str]) -> NDArray[np.bool_]:
        codes = [i for i, op in enumerate(self.calls.ops) if op in names]
        return np.isin(self.calls.op[rows], codes)

    def _unlike(self, sent: NDArray[np.intp], received: NDArray[np.intp]) -> list[Odd]:
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

    def _one_sided(self, other: NDArray[np.int64]) -> list[Odd]:
        """Without knowing which calls start together: the first lone call of each rank."""
        alone = [self._lacking(rows, other)[:1].tolist() for rows in self.rows_of.values()]
        met = {row: self._met_behind(row, other) for rows in alone for row in rows}
        return _together(self.calls, met, ())

    def _met_behind(self, row: int, other: NDArray[np.int64]) -> bool:
        """Whether the other rank took part in what this one sent or received later."""
        rank, peer = int(self.calls.rank[row]), int(self.calls.root[row])
        met = other[self.rows_of[rank][self.rows_of[rank] > row]]
        return rank == peer or bool((self.calls.rank[met[met >= 0]] == peer).any())

    def _lacking(self, rows: NDArray[np.intp], other: NDArray[np.int64]) -> NDArray[np.intp]:
        """Calls whose other end should be in the logs and is not."""
        alone = rows[self._is(rows, ("Send", "Recv")) & (other[rows] == UNKNOWN)]
        here: NDArray[np.bool_] = np.isin(self.calls.root[alone], [*self.rows_of])
        return np.asarray(alone[here], np.intp)

    def _launches(self, rank: int) -> list[_Launch]:
        rows = self.rows_of[rank]
        counts = self.calls.op_count[rows]
        starts = np.flatnonzero(np.diff(counts, prepend=counts[:1] - 1))
        return [_Launch(part.tolist()) for part in np.split(rows, starts[1:].tolist())]

    def _play(self, other: NDArray[np.int64]) -> list[Odd]:
        """Plays the launches through, and looks where ranks are held."""
        launches = {rank: self._launches(rank) for rank in self.rows_of}
        number = np.zeros(len(self.calls), np.int64)
        for mine in launches.values():
            for i, launch in enumerate(mine):
                number[launch.rows] = i
        self._link(launches, number, other)
        reached = _run(launches)
        held = {
            rank: launches[rank][at] for rank, at in reached.items() if at < len(launches[rank])
        }
        alone = {
            row: self._passed(row, launches[rank][reached[rank] + 1 :])
            for rank, launch in held.items()
            for row in launch.missing
        }
        waiting = tuple(launch.rows[0] for launch in held.values() if not launch.missing)
        if alone:
            return _together(self.calls, alone, waiting)
        if held and not self._only_behind(held, reached):
            return [Odd("order", waiting)]
        return []

    def _passed(self, row: int, later: Sequence[_Launch]) -> bool:
        rank, peer = int(self.calls.rank[row]), int(self.calls.root[row])
        return rank == peer or any(peer == one for launch in later for one, _ in launch.needs())

    def _link(
        self,
        launches: dict[int, list[_Launch]],
        number: NDArray[np.int64],
        other: NDArray[np.int64],
    ) -> None:
        """Tells each launch which others it needs."""
        ops = self.calls.ops
        meetings: list[list[tuple[int, int]]] = []
        for rank, mine in launches.items():
            met = 0
            missing = set(self._lacking(self.rows_of[rank], other).tolist())
            for i, launch in enumerate(mine):
                collective = False
                for row in launch.rows:
                    name = ops[int(self.calls.op[row])]
                    collective |= name not in POINT_TO_POINT
                    if other[row] != UNKNOWN:
                        end = int(other[row])
                        launch.partners.append((int(self.calls.rank[end]), int(number[end])))
                    elif row in missing:
                        launch.missing = (*launch.missing, row)
                if collective:
                    if met == len(meetings):
                        meetings.append([])
                    meetings[met].append((rank, i))
                    launch.meeting = meetings[met]
                    met += 1

    @staticmethod
    def _only_behind(held: dict[int, _Launch], reached: dict[int, int]) -> bool:
        """Whether every chain of waiting ends at a rank that has made all of its calls."""
        for start in held:
            rank, seen = start, set[int]()
            while rank in held and rank not in seen:
                seen.add(rank)
                waits_for = (peer for peer, i in held[rank].needs() if reached[peer] < i)
                rank = next(waits_for, UNKNOWN)
            if rank in seen:
                return False
        return True


def _run(launches: dict[int, list[_Launch]]) -> dict[int, int]:
    """Starts every rank's launches in turn; returns the one at which each came to a stop."""
    reached = dict.fromkeys(launches, 0)
    for mine in launches.values():
        for launch in mine:
            launch.left = len(launch.partners) + len(launch.missing) + bool(launch.meeting)
    begun: set[tuple[int, int]] = set()
    come: dict[tuple[int, int], int] = defaultdict(int)
    ready = [(rank, 0) for rank in launches]
    while ready:
        here = rank, at = ready.pop()
        if at >= len(launches[rank]):
            continue
        launch = launches[rank][at]
        begun.add(here)
        for partner in launch.partners:
            if partner in begun:
                launch.left -= 1
                if partner != here:
                    _met(launches, partner, reached, ready)
        if launch.meeting:
            come[launch.meeting[0]] += 1
            if come[launch.meeting[0]] == len(launch.meeting):
                for one in launch.meeting:
                    _met(launches, one, reached, ready)
        if not launch.left and reached[rank] == at:
            reached[rank] = at + 1
            ready.append((rank, at + 1))
    return reached


def _met(
    launches: dict[int, list[_Launch]],
    place: tuple[int, int],
    reached: dict[int, int],
    ready: list[tuple[int, int]],
) -> None:
    """One end that a launch waits for has begun."""
    rank, at = place
    launch = launches[rank][at]
    launch.left -= 1
    if not launch.left and reached[rank] == at:
        reached[rank] = at + 1
        ready.append((rank, at + 1))


def _together(calls: Calls, alone: dict[int, bool], waiting: tuple[int, ...]) -> list[Odd]:
    """Lone calls as findings: a send and a receive that miss each other are one.

    Args:
        calls: the calls.
        alone: rows of calls without another end, and whether its rank passed it over.
        waiting: rows at which the other ranks stand.
    """
    left = dict(alone)
    found = []
    while left:
        row = next(iter(left))
        passed = left.pop(row)
        partner = next((one for one in (*left, *waiting) if _miss(calls, row, one)), None)
        if partner is None:
            found.append(Odd("one-sided", (row,), waiting, passed))
        else:
            left.pop(partner, None)
            rest = tuple(one for one in waiting if one != partner)
            found.append(Odd("peer", (row, partner), rest))
    return found


def _miss(calls: Calls, one: int, other: int) -> bool:
    """Whether a send went elsewhere than to the rank that waits for it, or came from elsewhere."""
    if {calls.ops[int(calls.op[row])] for row in (one, other)} != {"Send", "Recv"}:
        return False
    here, there = int(calls.rank[one]), int(calls.rank[other])
    to_there = there == int(calls.root[one])
    to_here = here == int(calls.root[other])
    return to_there is not to_here
