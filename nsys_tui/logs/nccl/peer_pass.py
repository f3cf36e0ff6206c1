"""Whether all sends and receives meet: passes over a log that keep counts, and no calls.

What they clear needs no ``peers``, which tells what does not fit from all calls of a communicator
at once.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.logs.nccl.calls import CallLog, narrow, rows_by
from nsys_tui.logs.nccl.grammar import POINT_TO_POINT
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.groups import factorise_rows

MOST_CALLS: Final = 3_000_000
"""Calls of one communicator that are played through; of more only counts and types are compared."""
_NO_END: Final = -1
_COLLECTIVE: Final = -2
_BLOCKS: Final = 8
"""Unpacked blocks that are kept: ranks of one file stand at about the same place of it."""


class PeerPass:
    """What each end of each pair of ranks made, in all communicators of a log.

    An end is a communicator's sending to one rank, or its receiving from it.
    """

    def __init__(self, log: CallLog) -> None:
        self._log = log
        kinds = log.by_kind
        self._communicator = kinds.communicator.astype(np.int64)
        self._datatype = kinds.datatype.astype(np.uint64)
        sends = kinds.are(("Send",))
        codes, ends = factorise_rows([self._communicator, kinds.root, sends.astype(np.int64)])
        end = np.where(sends | kinds.are(("Recv",)), codes, _NO_END)
        self._end: Int64 = np.where(kinds.are(POINT_TO_POINT), end, _COLLECTIVE)
        self._ends = {(row[0], row[1], row[2]): code for code, row in enumerate(ends.tolist())}
        self._number = np.zeros(len(ends), np.int64)
        self._digest = np.zeros(len(ends), np.uint64)
        self._calls: dict[int, int] = {}
        self._blocks: dict[int, list[int]] = {}
        self._counting: set[int] = set()
        for place in range(len(log.blocks)):
            self._count(place)
        self._unpacked = lru_cache(_BLOCKS)(self._unpack)

    def _count(self, place: int) -> None:
        block = self._log.blocks[place]
        kind = block.column("kind")
        for one, rows in rows_by(self._communicator[kind]):
            self._calls[one] = self._calls.get(one, 0) + len(rows)
            self._blocks.setdefault(one, []).append(place)
        counted = kind[block.column("op_count") != 0]
        self._counting.update(np.unique(self._communicator[counted]).tolist())
        said = (block.column("count").astype(np.uint64) << np.uint64(8)) ^ self._datatype[kind]
        for end, rows in rows_by(self._end[kind]):
            if end >= 0:
                nth = np.arange(len(rows), dtype=np.uint64) + np.uint64(self._number[end])
                self._digest[end : end + 1] += _mixed(said[rows] ^ _mixed(nth)).sum()
                self._number[end] += len(rows)

    def by_order(self, members: Mapping[int, int]) -> bool:
        """Whether opCount stays 0, so that it does not tell which calls start together."""
        return self._counting.isdisjoint(members.values())

    def played(self, members: Mapping[int, int]) -> bool:
        """Whether order and waiting are looked at, not only counts, types and lone ends."""
        calls = sum(self._calls.get(member, 0) for member in members.values())
        return not self.by_order(members) and calls <= MOST_CALLS

    def fits(self, members: Mapping[int, int]) -> bool:
        """Whether nothing is odd in a group of communicators, given by their rank."""
        other = self._other_ends(members)
        if other is None or not all(
            self._number[end] == self._number[met] and self._digest[end] == self._digest[met]
            for end, met in other.items()
        ):
            return False
        return not self.played(members) or self._ends_well([*members.values()], other)

    def _other_ends(self, members: Mapping[int, int]) -> dict[int, int] | None:
        """The other end of each one that has it in the logs; None if one lacks there."""
        rank_of = {member: rank for rank, member in members.items()}
        other = {}
        for (member, peer, sends), end in self._ends.items():
            if self._number[end] and member in rank_of and peer in members:
                met = self._ends.get((members[peer], rank_of[member], 1 - sends))
                if met is None:
                    return None
                other[end] = met
        return other

    def _ends_well(self, members: list[int], other: Mapping[int, int]) -> bool:
        """Plays the launches through: a rank leaves one when all that it meets have begun."""
        owner = {end: member for (member, _, _), end in self._ends.items()}
        made = dict.fromkeys(other, 0)
        launches = {member: self._launches(member, other) for member in members}
        standing: dict[int, list[int]] = {member: [] for member in members}
        meetings = dict.fromkeys(members, 0)
        come: dict[int, int] = {}
        met = 0
        ended = set[int]()
        ready = set(members)
        while ready:
            member = ready.pop()
            while meetings[member] <= met and all(
                made[other[end]] >= made[end] for end in standing[member]
            ):
                launch = next(launches[member], None)
                if launch is None:
                    ended.add(member)
                    break
                ends = standing[member] = [end for end in launch if end >= 0]
                for end in ends:
                    made[end] += 1
                    ready.add(owner[other[end]])
                if len(ends) < len(launch):
                    which = meetings[member] = meetings[member] + 1
                    come[which] = come.get(which, 0) + 1
                    if come[which] == len(members):
                        del come[which]
                        met = which
                        ready.update(members)
        return len(ended) == len(members)

    def _launches(self, member: int, other: Container[int]) -> Iterator[list[int]]:
        """What starts together: ends with another one in the logs, and collectives."""
        launch: list[int] = []
        last = None
        for place in self._blocks.get(member, ()):
            ends, counts = self._unpacked(place)[member]
            for end, count in zip(ends.data, counts.data, strict=True):
                if count != last:
                    if launch:
                        yield launch
                    launch, last = [], count
                if end == _COLLECTIVE or end in other:
                    launch.append(end)
        if launch:
            yield launch

    def _unpack(self, place: int) -> dict[int, tuple[Integers, Integers]]:
        """End and opCount of the calls of a block, by communicator."""
        block = self._log.blocks[place]
        kind, counts = block.column("kind"), block.column("op_count")
        ends = self._end[kind]
        return {
            one: (narrow(ends[rows]), narrow(counts[rows]))
            for one, rows in rows_by(self._communicator[kind])
        }


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Other numbers for numbers, one to one, in which each bit hangs on all (splitmix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
