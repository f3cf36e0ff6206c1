"""Which launches of several ranks are one collective, and what follows for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import numpy as np

from nsys_tui.analysis.nccl.calls import UNKNOWN, Calls, Launches, coded
from nsys_tui.analysis.nccl.kernel_matching import How, Match
from nsys_tui.analysis.nccl.result import Collectives, Member, Parts
from nsys_tui.model.arrays import Array, Indices, Int64, Integers
from nsys_tui.model.groups import factorise, factorise_rows
from nsys_tui.model.report import Report

_COLUMNS: Final = (
    "launches.bytes",
    "launches.wire",
    "launches.ranks",
    "launches.calls",
    "launches.chosen",
    "match.how",
    "match.first",
)


@dataclass(frozen=True)
class Traced:
    """A report that takes part."""

    report: Report
    rank: int = UNKNOWN
    """Rank that the user says it is of; for a report of one process."""
    named_rank: int = UNKNOWN
    """Rank that its name or environment tells, for want of a process id in common with a log."""


@dataclass(frozen=True, eq=False)
class Side:
    """What one report gives: its launches with their kernels."""

    calls: Calls
    launches: Launches
    match: Match
    offset: int
    """To be added to its times, ns."""
    pids: Int64
    """Process in the report of each launch."""
    notes: tuple[str, ...]


def join_ranks(traced: Sequence[Traced], sides: Sequence[Side], sized_by: str) -> Collectives:
    """Joins the launches of all ranks, by communicator and by their order in it."""
    members: dict[tuple[int, int, int], int] = {}
    names: dict[str, int] = {}
    columns: list[Int64] = []
    for number, side in enumerate(sides):
        kept = np.flatnonzero(side.match.first >= 0)
        ops = traced[number].report.operations
        code, distinct = factorise_rows((side.pids[kept], ops.device[side.match.first[kept]]))
        member = coded(((number, *key) for key in distinct.tolist()), members)[code]
        communicator = coded(side.calls.communicators, names)[side.launches.communicator[kept]]
        columns.append(
            np.stack(
                [
                    np.full(len(kept), number),
                    kept,
                    member,
                    communicator,
                    _ordinals(side, traced[number].report, kept),
                    side.match.start[kept] + side.offset,
                    side.match.end[kept] + side.offset,
                ]
            )
        )
    made = np.concatenate(columns, axis=1) if columns else np.empty((7, 0), np.int64)
    return _Joiner(traced, sides, members, tuple(names), made).result(sized_by)


def _ordinals(side: Side, report: Report, kept: Indices) -> Int64:
    """Number of each launch within its GPU's part of a communicator, over all, joined or not.

    It is NCCL's own number where all launches of the communicator have one, else their order.
    """
    launches = side.launches
    columns = (side.pids, launches.communicator, launches.rank, _devices(side, report))
    number = _within(columns)
    unnumbered = np.unique(launches.communicator[launches.number < 0])
    told = ~np.isin(launches.communicator, unnumbered)
    return np.where(told, launches.number, number)[kept]


def _devices(side: Side, report: Report) -> Int64:
    """GPU of each launch: its kernel's; without one that of its neighbours, -1 for none."""
    launches, first = side.launches, side.match.first
    known = first >= 0
    device = np.full(len(launches), UNKNOWN, np.int64)
    device[known] = report.operations.device[first[known]]
    if known.all():
        return device
    columns = (side.pids, launches.communicator, launches.rank, launches.slot, launches.thread)
    code, distinct = factorise_rows(columns)
    home = np.full(len(distinct), UNKNOWN, np.int64)
    home[code[known]] = device[known]
    return np.where(known, device, home[code])


def _within(columns: Sequence[Integers]) -> Int64:
    """Number of each row of some columns among those that equal it, in order."""
    code, _ = factorise_rows(columns)
    order = np.argsort(code, kind="stable")
    heads = np.flatnonzero(np.diff(code[order], prepend=-1))
    number = np.empty(len(code), np.int64)
    lengths = np.diff(np.append(heads, len(code)))
    number[order] = np.arange(len(code)) - np.repeat(heads, lengths)
    return number


class _Joiner:
    """Puts the parts of all ranks together."""

    def __init__(
        self,
        traced: Sequence[Traced],
        sides: Sequence[Side],
        members: dict[tuple[int, int, int], int],
        names: tuple[str, ...],
        made: Int64,
    ) -> None:
        self.traced, self.sides, self.names = traced, sides, names
        self.keys = list(members)
        self.side, self.launch, self.member, self.communicator = made[:4]
        self.ordinal, self.start, self.end = made[4:]
        self.notes = [note for side in sides for note in side.notes]

    def result(self, sized_by: str) -> Collectives:
        label, kernel = self._gathered(self._label), self._gathered(self._kernel)
        code, count = self._collectives(label)
        first_start = _least(code, self.start, count)
        by_start = np.argsort(first_start, kind="stable")
        rank = np.empty(count, np.int64)
        rank[by_start] = np.arange(count)
        code = rank[code]
        start, end = _least(code, self.start, count), -_least(code, -self.end, count)
        last_start = -_least(code, -self.start, count)
        head = np.full(count, -1, np.int64)
        # The part that started last stands for its collective; of several, the first.
        order = np.lexsort((np.arange(len(code)), -self.start, code))
        heads = np.flatnonzero(np.append(True, np.diff(code[order]) != 0)) if count else order
        head = order[heads]
        size, wire, ranks, calls, chosen, how, row = map(self._column, _COLUMNS)
        seen = np.bincount(code, minlength=count)
        self._check_overlap(code, count, last_start, seen)
        if (seen > 1).any():
            told = all((side.launches.number >= 0).all() for side in self.sides)
            key = (
                "opCount" if told else "order: the k-th launch in a communicator is one collective"
            )
            self.notes.insert(0, f"ranks joined by {key}")
        joined = Collectives(
            tuple(label[head].tolist()),
            tuple(self.names[c] for c in self.communicator[head].tolist()),
            calls[head].astype(np.int32),
            size[head].astype(np.int64),
            wire[head].astype(np.float64),
            ranks[head].astype(np.int32),
            seen.astype(np.int32),
            start,
            last_start,
            end,
            self.member[head].astype(np.int32),
            (-_least(code, -how.astype(np.int64), count)).astype(np.int32),
            tuple(kernel[head].tolist()),
            Parts(code, self.member.astype(np.int32), row.astype(np.int64), self.start, self.end,
                  how.astype(np.int32), chosen.astype(bool)),
            tuple(self._member(key) for key in self.keys),
            sized_by if (size >= 0).any() else "",
            (),
        )  # fmt: skip
        return _with_notes(joined, self.notes)

    def _column(self, name: str) -> Array:
        """One column of all launches."""
        of = attrgetter(name)
        return self._gathered(lambda number, rows: of(self.sides[number])[rows])

    def _gathered(self, of: Callable[[int, Int64], Array]) -> Array:
        """What launches of each side have, in the order of the parts."""
        sides = range(len(self.sides))
        parts = [of(number, self.launch[self.side == number]) for number in sides]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _label(self, number: int, rows: Int64) -> Array:
        launches = self.sides[number].launches
        return np.array(launches.labels, object)[launches.label[rows]]

    def _kernel(self, number: int, rows: Int64) -> Array:
        """Short names of first kernels."""
        ops, first = self.traced[number].report.operations, self.sides[number].match.first
        return np.array([name.short for name in ops.names], object)[ops.name[first[rows]]]

    def _collectives(self, label: Array) -> tuple[Int64, int]:
        """Number of the collective of each part: by communicator and order where ranks agree."""
        alone = np.zeros(len(self.launch), bool)
        for communicator in range(len(self.names)):
            rows = np.flatnonzero(self.communicator == communicator)
            owners = np.unique(self.member[rows])
            if len(owners) < 2:
                continue
            sequences = [rows[self.member[rows] == owner] for owner in owners]
            name = self.names[communicator] or "unknown communicator"
            why = self._disagreement(sequences, label)
            if why:
                alone[rows] = True
                self.notes.append(f"{name}: ranks are not joined, {why}")
            elif not self.names[communicator]:
                self.notes.append(
                    f"≈ {name}: the k-th collectives of all processes are taken as one"
                )
        key = self.communicator * (self.ordinal.max(initial=0) + 1) + self.ordinal
        key = np.where(alone, -1 - np.arange(len(key)), key)
        code, distinct = factorise(key)
        return code.astype(np.int64), len(distinct)

    def _disagreement(self, sequences: list[Indices], label: Array) -> str:
        counts = [len(rows) for rows in sequences]
        if not self.names[int(self.communicator[sequences[0][0]])] and len(set(counts)) > 1:
            return f"they launched {min(counts):,} to {max(counts):,} collectives"
        reports = {int(self.side[rows[0]]) for rows in sequences}
        starts = [self.traced[r].report.metadata.session_start_utc_ns for r in sorted(reports)]
        if len(reports) > 1 and None in starts:
            return "a report does not tell when its session began"
        merged = np.concatenate(sequences)
        _, first, inverse = np.unique(self.ordinal[merged], return_index=True, return_inverse=True)
        if (label[merged] != label[merged][first][inverse]).any():
            return "the order of their operations differs"
        return ""

    def _check_overlap(self, code: Int64, count: int, last_start: Int64, seen: Int64) -> None:
        """No rank can leave a collective before the last one came, whatever the order says."""
        first_end = _least(code, self.end, count)
        odd = int(np.count_nonzero((seen > 1) & (first_end < last_start)))
        if odd:
            self.notes.append(
                f"in {odd:,} of {int((seen > 1).sum()):,} collectives a rank ended before another"
                " began: the ranks may be joined wrongly, or their clocks differ"
            )

    def _member(self, key: tuple[int, int, int]) -> Member:
        number, pid, device = key
        side, traced = self.sides[number], self.traced[number]
        label = traced.report.devices[device].label
        if traced.rank >= 0:
            return Member(number, pid, traced.rank, label)
        alone = len({d for n, p, d in self.keys if (n, p) == (number, pid)}) == 1
        told = [
            process.rank
            for process, mine in zip(side.calls.processes, _owners(side), strict=True)
            if mine == pid and process.rank >= 0
        ]
        if alone and told:
            return Member(number, pid, told[0], label)
        views = traced.report.devices[device].members
        ordinal = next((view.ordinal for view in views if view.pid == pid), None)
        if (rank := side.calls.rank_of(pid, ordinal)) >= 0:
            return Member(number, pid, rank, label)
        mine = self.launch[(self.side == number) & (self.member == self.keys.index(key))]
        largest = mine[np.argmax(side.launches.ranks[mine])]
        return Member(number, pid, int(side.launches.rank[largest]), label)


def _owners(side: Side) -> list[int]:
    """Process of the report that each process of the calls is."""
    owner = np.full(len(side.calls.processes), UNKNOWN, np.int64)
    owner[side.launches.process] = side.pids
    return owner.tolist()


def _least(code: Int64, values: Int64, count: int) -> Int64:
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, code, values)
    return least


def _with_notes(joined: Collectives, before: list[str]) -> Collectives:
    notes = [f"sizes from {joined.sized_by}"] if joined.sized_by else []
    by_call = int(np.count_nonzero(joined.parts.how == How.BY_CALL))
    if by_call:
        notes.append(f"joined by the call that launched them: {by_call:,} kernels")
    by_order = int(np.count_nonzero(joined.parts.how == How.BY_ORDER))
    if by_order:
        notes.append(
            f"joined by order: {by_order:,} of {len(joined.parts.how):,} kernels are the k-th of"
            " their process as the call is; nothing else links them"
        )
    if joined.estimated.any():
        count = int(joined.estimated.sum())
        notes.append(f"≈ in {count:,} collectives the time includes waiting for ranks not seen")
    return replace(joined, notes=(*notes, *before))
