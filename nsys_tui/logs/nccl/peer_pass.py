"""Whether all sends and receives meet: passes over a log that keep counts, and no calls.

What they clear needs no ``peers``, which tells what does not fit from all calls of a communicator
at once, or from those around the first one that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsys_tui.logs.nccl.calls import (
    CallLog,
    Calls,
    joined,
    narrow,
    narrowed,
    no_rows,
    rows_by,
    take,
)
from nsys_tui.logs.nccl.grammar import POINT_TO_POINT
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.groups import by_code, factorise_rows

HELD: Final = 1_000_000
"""Calls of a group that are held; of more only those around the first fault are."""
_CHUNK: Final = 64
"""Calls of an end that have one digest."""
_LACKING: Final = -1
_BLOCKS: Final = 8
"""Unpacked blocks that are kept: ranks of one file stand at about the same place of it."""


class Selection(NamedTuple):
    """Calls of a group."""

    calls: Calls
    places: Integers
    """Of each call, among all of its communicator's."""
    cut: Indices
    """Calls behind which those with the same peer are left out."""


class PeerPass:
    """What each end of each pair of ranks made, in all communicators of a log.

    An end is a communicator's sending to one rank, its receiving from it, or its collectives.
    """

    def __init__(self, log: CallLog, communicators: int) -> None:
        self._log = log
        kinds = log.by_kind
        self._communicator = kinds.communicator.astype(np.int64)
        self._datatype = kinds.datatype.astype(np.uint64)
        sends, pairwise = kinds.are(("Send",)), kinds.are(("Send", "Recv"))
        codes, ends = factorise_rows([self._communicator, kinds.root, sends.astype(np.int64)])
        self._meetings = len(ends)
        """Collectives of a communicator are the end with this code more than its own."""
        end = np.where(pairwise, codes, self._communicator + self._meetings)
        none = self._meetings + communicators
        self._end: Int64 = np.where(~pairwise & kinds.are(POINT_TO_POINT), none, end)
        self._ends = {(row[0], row[1], row[2]): code for code, row in enumerate(ends.tolist())}
        self._number = np.zeros(none + 1, np.int64)
        self._calls = np.zeros(communicators, np.int64)
        self._blocks: dict[int, list[int]] = {}
        self._counting: set[int] = set()
        parts = [self._count(place) for place in range(len(log.blocks))]
        self._first_chunk = np.append(0, np.cumsum(-(-self._number // _CHUNK)))
        self._digest = np.zeros(self._first_chunk[-1], np.uint64)
        for ends_of, chunks, digests in parts:
            self._digest[self._first_chunk[ends_of] + chunks] += digests
        self._unpacked = lru_cache(_BLOCKS)(self._unpack)

    def _count(self, place: int) -> tuple[Int64, Int64, NDArray[np.uint64]]:
        """End, number and digest of the chunks of a block, each once."""
        block = self._log.blocks[place]
        kind = block.column("kind")
        communicator = self._communicator[kind]
        self._calls += np.bincount(communicator, minlength=len(self._calls))
        for one in np.unique(communicator).tolist():
            self._blocks.setdefault(one, []).append(place)
        counted = kind[block.column("op_count") != 0]
        self._counting.update(np.unique(self._communicator[counted]).tolist())
        said = (block.column("count").astype(np.uint64) << np.uint64(8)) ^ self._datatype[kind]
        end = self._end[kind]
        nth = _numbered(end, self._number)
        digest = _mixed(said ^ _mixed(nth.astype(np.uint64)))
        chunk = nth // _CHUNK
        order = np.lexsort((chunk, end))
        end, chunk = end[order], chunk[order]
        starts = np.flatnonzero((np.diff(end, prepend=-1) != 0) | (np.diff(chunk, prepend=-1) != 0))
        return end[starts], chunk[starts], np.add.reduceat(digest[order], starts)

    def by_order(self, members: Mapping[int, int]) -> bool:
        """Whether opCount stays 0, so that it does not tell which calls start together.

        Then order and waiting are not looked at, only counts, types and lone ends.
        """
        return self._counting.isdisjoint(members.values())

    def held(self, members: Mapping[int, int]) -> bool:
        """Whether a group of communicators, given by their rank, is looked at as a whole."""
        return int(self._calls[[*members.values()]].sum()) <= HELD

    def fits(self, members: Mapping[int, int]) -> bool:
        """Whether nothing is odd in a group of communicators."""
        other = self._other_ends(members)
        if self._unlike(other):
            return False
        return self.by_order(members) or self._play([*members.values()], other, {}) is None

    def _other_ends(self, members: Mapping[int, int]) -> dict[int, int]:
        """The other end of each one that should have it in the logs; ``_LACKING`` if one lacks."""
        rank_of = {member: rank for rank, member in members.items()}
        return {
            end: self._ends.get((members[peer], rank_of[member], 1 - sends), _LACKING)
            for (member, peer, sends), end in self._ends.items()
            if self._number[end] and member in rank_of and peer in members
        }

    def _unlike(self, other: Mapping[int, int]) -> dict[int, int]:
        """Calls before the chunk in which an end first differs from its other one."""
        unlike = {}
        for end, met in other.items():
            ours, theirs = self._digests(end), self._digests(met)
            both = min(len(ours), len(theirs))
            odd = np.flatnonzero(ours[:both] != theirs[:both])
            if len(odd) or len(ours) != len(theirs):
                unlike[end] = _CHUNK * int(odd[0] if len(odd) else both)
        return unlike

    def _digests(self, end: int) -> NDArray[np.uint64]:
        if end == _LACKING:
            return self._digest[:0]
        return self._digest[self._first_chunk[end] : self._first_chunk[end + 1]]

    def _play(
        self, members: list[int], other: Mapping[int, int], unlike: Mapping[int, int]
    ) -> dict[int, int] | None:
        """Plays the launches through: a rank leaves one when all that it meets have begun.

        Args:
            members: the communicators of the group.
            other: the other end of each.
            unlike: calls of ends after which to stop.

        Returns:
            Calls that each end has made where the ranks came to a stop; None if they ended well.
        """
        member_of = {end: member for (member, _, _), end in self._ends.items()}
        meeting = {self._meetings + member: member for member in members}
        made = dict.fromkeys((*other, *meeting, _LACKING), 0)
        launches = {member: self._launches(member, made) for member in members}
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
                ends = standing[member] = [end for end in launch if end not in meeting]
                for end in ends:
                    made[end] += 1
                    if made[end] > unlike.get(end, made[end]):
                        return made
                    ready.add(member_of.get(other[end], member))
                if len(ends) < len(launch):
                    made[self._meetings + member] += len(launch) - len(ends)
                    which = meetings[member] = meetings[member] + 1
                    come[which] = come.get(which, 0) + 1
                    if come[which] == len(members):
                        del come[which]
                        met = which
                        ready.update(members)
        return None if len(ended) == len(members) else made

    def _launches(self, member: int, counted: Mapping[int, int]) -> Iterator[list[int]]:
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
                if end in counted:
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

    def select(self, members: Mapping[int, int]) -> Selection:
        """Calls of a group, if they are many those around the first one that does not fit."""
        first = np.zeros(len(self._number), np.int64)
        past = self._number.copy()
        if not self.held(members):
            past[:] = 0
            for one, span in self._near(members).items():
                first[one], past[one] = span
        wanted = np.zeros(len(self._calls), np.bool_)
        wanted[[*members.values()]] = True
        ended = np.zeros_like(self._number)
        placed = np.zeros_like(self._calls)
        parts = [no_rows() | dict.fromkeys(("place", "nth"), np.empty(0, np.int64))]
        for block in self._log.blocks:
            kind = block.column("kind")
            end, communicator = self._end[kind], self._communicator[kind]
            nth, place = _numbered(end, ended), _numbered(communicator, placed)
            chosen = wanted[communicator] & (first[end] <= nth) & (nth < past[end])
            if chosen.any():
                parts.append(narrowed(take(block.rows() | {"place": place, "nth": nth}, chosen)))
        rows = joined(parts)
        places, nth, end = rows.pop("place"), rows.pop("nth"), self._end[rows["kind"]]
        cut = np.flatnonzero((nth == past[end] - 1) & (past[end] < self._number[end]))
        return Selection(self._log.calls(rows), places, cut)

    def _near(self, members: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """Numbers of the calls of each end around the first one that does not fit."""
        other = self._other_ends(members)
        unlike = self._unlike(other)
        meetings = [self._meetings + member for member in members.values()]
        come = None
        if not self.by_order(members):
            come = self._play([*members.values()], other, unlike)
        if come is None:  # Ranks go on about evenly.
            share = min((at / self._number[end] for end, at in unlike.items()), default=0.0)
            come = {end: int(share * self._number[end]) for end in (*other, *meetings)} | unlike
        pairs = [[end, met] if met in other else [end] for end, met in other.items()]
        share = HELD / (4 * int(self._calls[[*members.values()]].sum()))
        near: dict[int, tuple[int, int]] = {}
        for ends in (*pairs, meetings):
            near |= self._spans(ends, come, share)
        return near

    def _spans(
        self, ends: list[int], come: Mapping[int, int], share: float
    ) -> dict[int, tuple[int, int]]:
        """The same calls of ends that meet, around those to which they have come.

        Args:
            ends: the ends.
            come: calls that each has made.
            share: how many more are taken on either side, of all.
        """
        number = self._number[ends].tolist()
        more = _CHUNK + int(share * max(number))
        low = max(0, min(come[end] for end in ends) - more)
        high = max(come[end] for end in ends) + _CHUNK + more
        # One that is left out lies before: behind it ends are counted from their last call.
        later = int(len(ends) == 2 and max(number) - min(number) == 1)
        return {
            end: (low, high + later * (made == max(number)))
            for end, made in zip(ends, number, strict=True)
        }

    def last_two(self, member: int) -> Selection:
        """The last two calls of a communicator, or fewer."""
        parts = [no_rows()]
        for place in self._blocks.get(member, ())[-2:]:
            rows = self._log.blocks[place].rows()
            mine = np.flatnonzero(self._communicator[rows["kind"]] == member)
            parts.append(take(rows, mine[-2:]))
        rows = joined(parts)
        calls = self._log.calls(take(rows, np.arange(len(rows["kind"]))[-2:]))
        places = self._calls[member] - np.arange(len(calls), 0, -1)
        return Selection(calls, places, np.empty(0, np.intp))


def _numbered(codes: Int64, before: Int64) -> Int64:
    """Number of each row among those of its code, from those before on, to which it adds them."""
    order, edges = by_code(codes, len(before))
    size = np.diff(edges)
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) + np.repeat(before - edges[:-1], size)
    before += size
    return numbers


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Other numbers for numbers, one to one, in which each bit hangs on all (splitmix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
