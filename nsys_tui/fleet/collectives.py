"""Collectives over the ranks: the k-th of a name and communicator on each is the same one.

That is a match by order, not by identity, and called so. Late is who starts last; the others wait
in their kernels until then: how long because of whom, and why that one was late.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.fleet.summary import Collectives
from nsys_tui.fleet.summary_parts import PARTS
from nsys_tui.fleet.times import SessionClock
from nsys_tui.model.arrays import Bool, Float64, Indices, Int64


@dataclass(frozen=True, eq=False)
class Group:
    """All calls of one kernel name on one communicator, by at least two ranks."""

    name: str
    communicator: str
    members: tuple[int, ...]
    """Places of the ranks in the fleet."""
    start: Int64
    """Fleet time, shape (members, calls)."""
    end: Int64
    counts: tuple[int, ...]
    """Calls that each member has; those after the shortest sequence are not matched."""
    gap: Int64
    """Time since each rank's collective before; -1 for its first."""
    before: NDArray[np.float32]
    """``arrivals.PARTS`` of it, shape (members, calls, parts)."""
    number: int = 0
    """Of its first call, among those of all groups; the others follow."""
    earlier: Int64 = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """Number of the call that each rank came out of, -1 for none, shape (members, calls)."""

    @property
    def calls(self) -> int:
        """Calls that all members have."""
        return int(self.start.shape[1])

    @property
    def unmatched(self) -> int:
        """Calls that some ranks have and others lack."""
        return sum(self.counts) - self.calls * len(self.members)

    @cached_property
    def last_start(self) -> Int64:
        """When the last rank came to each call."""
        return np.asarray(self.start.max(axis=0), np.int64)

    @cached_property
    def last(self) -> Indices:
        """Row of the rank that came last to each call; of several, the first row."""
        return np.asarray(np.argmax(self.start, axis=0))

    @cached_property
    def skew(self) -> Int64:
        """Last start - first start of each call."""
        return np.asarray(self.last_start - self.start.min(axis=0), np.int64)

    @cached_property
    def wait(self) -> Int64:
        """How long each rank waits for the last one, shape (members, calls).

        Never longer than its kernel: where clocks are off, it would be.
        """
        waited = np.minimum(self.last_start, self.end) - self.start
        return np.asarray(np.maximum(waited, 0), np.int64)

    @cached_property
    def behind(self) -> Int64:
        """How much sooner each call had begun with its last rank as early as the last but one."""
        ordered = np.sort(self.start, axis=0)
        return np.asarray(ordered[-1] - ordered[-2], np.int64)

    @cached_property
    def time(self) -> Int64:
        """Time of each call: last end - last start."""
        return np.asarray(np.maximum(self.end.max(axis=0) - self.last_start, 0), np.int64)

    @cached_property
    def apart(self) -> Bool:
        """Calls that did not run at the same time on all ranks.

        Either the clocks are off, or they belong to several communicators.
        """
        return np.asarray(self.last_start >= self.end.min(axis=0))


@dataclass(frozen=True, eq=False)
class Matched:
    """Every group, in the order of their first calls."""

    groups: tuple[Group, ...]
    alone: int
    """Calls of names and communicators that only one rank has."""
    ranks: int
    """Ranks of the fleet."""

    @property
    def calls(self) -> int:
        """Calls matched."""
        return sum(group.calls for group in self.groups)

    @cached_property
    def end_spread(self) -> int | None:
        """Median distance between the first and the last end of a call, ns.

        All ranks leave a collective nearly together, so it tells how well the clocks agree.
        """
        spreads = [g.end.max(axis=0) - g.end.min(axis=0) for g in self.groups]
        return int(np.median(np.concatenate(spreads))) if self.calls else None

    def by_rank(self) -> Lateness:
        """Sums per rank."""
        lateness = Lateness(*(np.zeros(self.ranks, np.int64) for _ in range(5)))
        for group in self.groups:
            rows = np.array(group.members)
            lateness.calls[rows] += group.calls
            lateness.waited[rows] += group.wait.sum(axis=1)
            late = group.start - group.start.min(axis=0)
            lateness.late[rows] += late.sum(axis=1)
            skewed = group.skew > 0
            counts = np.bincount(group.last[skewed], minlength=len(rows))
            lateness.last[rows] += counts
            held = np.zeros(len(rows), np.int64)
            np.add.at(held, group.last, group.behind)
            lateness.held_up[rows] += held
        return lateness


@dataclass(frozen=True, eq=False)
class Lateness:
    """What each rank did in its matched collectives, int64 [ranks] each."""

    calls: Int64
    last: Int64
    """Calls to which it came last."""
    late: Int64
    """Sum of its starts after the first rank's."""
    waited: Int64
    """Time it waited for the last rank."""
    held_up: Int64
    """Time that everybody waited for it alone: from the start of the last but one to its own."""


def match(calls_of: Sequence[Collectives], clocks: Sequence[SessionClock]) -> Matched:
    """Matches the collectives of ranks by order.

    Args:
        calls_of: collectives of each rank.
        clocks: of the session of each rank.
    """
    rows_of: dict[tuple[str, str], dict[int, Indices]] = {}
    for session, mine in enumerate(calls_of):
        for code, key in enumerate(mine.keys):
            rows_of.setdefault(key, {})[session] = np.flatnonzero(mine.key == code)
    alone = sum(len(rows) for of in rows_of.values() if len(of) == 1 for rows in of.values())
    numbers, count = [np.full(len(mine.key), -1, np.int64) for mine in calls_of], 0
    found: list[tuple[tuple[str, str], int, tuple[int, ...], dict[int, Indices]]] = []
    for key, of in rows_of.items():
        if len(of) < 2:
            continue
        counts = tuple(map(len, of.values()))
        matched = {session: rows[: min(counts)] for session, rows in of.items()}
        for session, rows in matched.items():
            numbers[session][rows] = np.arange(count, count + len(rows))
        found.append((key, count, counts, matched))
        count += min(counts)
    came = [_earlier(mine, own) for mine, own in zip(calls_of, numbers, strict=True)]
    groups = [
        Group(
            *key,
            tuple(matched),
            np.stack([clocks[s].fleet(calls_of[s].start[rows]) for s, rows in matched.items()]),
            np.stack([clocks[s].fleet(calls_of[s].end[rows]) for s, rows in matched.items()]),
            counts,
            *_before(calls_of, [*matched.items()]),
            first,
            np.stack([came[s][rows] for s, rows in matched.items()]),
        )
        for key, first, counts, matched in found
    ]
    groups.sort(key=lambda group: (int(group.start.min(initial=0)), group.name, group.communicator))
    return Matched(tuple(groups), alone, len(calls_of))


def _earlier(mine: Collectives, numbers: Int64) -> Int64:
    """Of each call of a rank the number of the one before it that ended last; -1 for none."""
    latest = np.maximum.accumulate(mine.end)
    at = np.maximum.accumulate(np.where(mine.end == latest, np.arange(len(latest)), 0))
    return np.append(np.full(1, -1), numbers[at[:-1]])[: len(numbers)]


def _before(
    calls_of: Sequence[Collectives], chosen: Sequence[tuple[int, Indices]]
) -> tuple[Int64, NDArray[np.float32]]:
    """What ranks did before some of their calls; nothing where summaries do not tell."""
    if any(len(calls_of[session].gap) == 0 for session, _ in chosen):
        shape = len(chosen), len(chosen[0][1])
        return np.full(shape, -1, np.int64), np.zeros((*shape, len(PARTS)), np.float32)
    gap = np.stack([calls_of[session].gap[rows] for session, rows in chosen])
    before = [calls_of[session].before[rows].astype(np.float32) for session, rows in chosen]
    return gap, np.stack(before)


CAUSES: Final = (
    "more kernel time",
    "data wait",
    "other comm",
    "idle GPU",
    "late before",
    "unknown",
)
"""Why a rank comes last, by what it did since its collective before, beside the others: longer
kernels, longer copies or loading, longer other communication, or a longer idle GPU; or it came
late out of the collective before. Unknown of the first one."""

_PASSED: Final = CAUSES.index("late before")


@dataclass(frozen=True, eq=False)
class Blame:
    """What each rank cost the others, ns over all of them."""

    cost: Int64
    """Shape (ranks,): each call's wait for it alone, times the ranks that waited; also of calls to
    which others came late because they had waited for it."""
    causes: Float64
    """Shape (ranks, causes); sums to the cost."""
    mostly: tuple[int, ...]
    """The group in which it cost most, place in ``Matched.groups``; -1 for none."""
    once: Float64
    """Shape (ranks,): the most that it cost in one call."""
    by_chance: float
    """What a rank costs at most where each call's last one is drawn by lot (3 deviations)."""


def blame(matched: Matched) -> Blame:
    """Blames the rank that comes last to each call, in its own communicator.

    Where that one came late out of a call for whose last rank it had waited, that rank is blamed.
    """
    groups = [group for group in matched.groups if group.calls]
    causes = np.zeros((matched.ranks, len(CAUSES)))
    (most, once), mostly = np.zeros((2, matched.ranks)), np.full(matched.ranks, -1)
    if not groups:
        return Blame(np.zeros(matched.ranks, np.int64), causes, tuple(mostly.tolist()), once, 0.0)
    parts = np.concatenate([_shares(group) for group in groups])
    cost = np.concatenate([g.behind.astype(np.float64) * (len(g.members) - 1) for g in groups])
    source, passed = _passed_on(groups, parts[:, _PASSED])
    parts[:, _PASSED] -= passed
    cost = _gathered(cost, source, passed)
    begins = np.cumsum([0, *(group.calls for group in groups)])
    for group, begin in zip(groups, begins, strict=False):
        members, own = np.array(group.members), slice(begin, begin + group.calls)
        waited = np.zeros((len(members), len(CAUSES)))
        np.add.at(waited, group.last, parts[own] * cost[own, None])
        np.maximum.at(once, members[group.last], cost[own])
        causes[members] += waited
        worse = waited.sum(axis=1) > most[members]
        mostly[members[worse]] = matched.groups.index(group)
        most[members[worse]] = waited.sum(axis=1)[worse]
    total = np.rint(causes.sum(axis=1)).astype(np.int64)
    by_chance = cost.sum() + 3 * math.sqrt((matched.ranks - 1) * np.dot(cost, cost))
    return Blame(total, causes, tuple(mostly.tolist()), once, by_chance / matched.ranks)


def _passed_on(groups: Sequence[Group], late: Float64) -> tuple[Indices, Float64]:
    """Of all calls the one that made the last rank late, and which part of the lateness it did.

    No more than its own last rank was behind there.

    Args:
        groups: all that have calls.
        late: part of the lateness of each call with which the last rank came out of another.
    """
    numbers = np.concatenate([np.arange(g.number, g.number + g.calls) for g in groups])
    places = np.full(int(numbers.max()) + 2, -1)
    places[numbers] = np.arange(len(numbers))
    earlier = np.concatenate([g.earlier[g.last, np.arange(g.calls)] for g in groups])
    source = places[np.minimum(earlier, len(places) - 1)]
    began = np.concatenate([group.last_start for group in groups])
    behind = np.concatenate([group.behind for group in groups])
    known = (source >= 0) & (began[source] < began) & (late > 0)
    most = np.divide(
        behind[source], behind * late, out=np.zeros(len(late)), where=known & (behind > 0)
    )
    return np.where(known, source, 0), late * np.minimum(most, 1)


def _gathered(cost: Float64, source: Indices, passed: Float64) -> Float64:
    """Costs with those that later calls pass on to these, by ways of doubled length."""
    while passed.any():
        cost = cost + np.bincount(source, cost * passed, len(cost))
        source, passed = source[source], passed * passed[source]
    return cost


def blame_together(matched: Matched) -> tuple[Indices, Float64, Matched]:
    """The ranks, two at least, whose mean lateness stands apart, and what they cost the others.

    Of two that come equally late neither costs much alone: the others wait for both. By chance
    they would be less late than by four standard errors of it.

    Returns:
        Ranks, none where it is most of them, ns over all others by cause, and the groups that these
        ranks have among themselves.
    """
    late = matched.by_rank()
    means = late.late / np.maximum(late.calls, 1)
    order = np.argsort(-means, kind="stable")
    rows = order[: 2 + int(np.argmax(means[order[1:-1]] - means[order[2:]]))]
    causes = np.zeros(len(CAUSES))
    within = tuple(group for group in matched.groups if {*group.members} <= {*rows.tolist()})
    if len(rows) > matched.ranks // 2:
        return rows[:0], causes, replace(matched, groups=())
    later = [np.zeros(1)]
    for group in matched.groups:
        own = np.isin(group.members, rows)
        if group.calls and own.any() and not own.all():
            behind = group.start[own].max(axis=0) - group.start[~own].max(axis=0)
            causes += (np.maximum(behind, 0) * (~own).sum()) @ _shares(group)
            later.append(group.start[own].mean(axis=0) - group.start[~own].mean(axis=0))
    each = np.concatenate(later)
    if each.mean() < 4 * each.std() / math.sqrt(len(each)):
        causes[:] = 0
    return np.sort(rows), causes, replace(matched, groups=within)


def _shares(group: Group) -> Float64:
    """Of each call: parts of the lateness of its last rank by cause, shape (calls, causes).

    What a rank did longer than the median of the members counts, on the mean of calls in a row to
    which it came last: others that wait in one compute meanwhile what it computes after it. How
    late it came out of the call before counts of each: those in a row pass it on.
    """
    calls = np.arange(group.calls)
    gap = group.gap.astype(np.float64)
    *parts, beside = np.moveaxis(group.before.astype(np.float64), 2, 0)
    idle = gap - sum(parts)
    before = np.stack([parts[0] + beside, *parts[1:], idle, group.start - gap], axis=2)
    excess = before[group.last, calls] - np.median(before, axis=0)
    first = (group.gap < 0).any(axis=0)
    excess[first] = 0
    in_a_row = np.cumsum(np.diff(group.last, prepend=-1) != 0) - 1
    own = np.stack([np.bincount(in_a_row, one) for one in excess[:, :_PASSED].T], axis=1)
    excess[:, :_PASSED] = (own / np.bincount(in_a_row)[:, None])[in_a_row]
    shares = np.zeros((group.calls, len(CAUSES)))
    shares[:, :-1] = np.maximum(excess, 0)
    shares[first] = 0
    total = shares.sum(axis=1)
    shares[total == 0, -1] = 1
    return np.asarray(shares / np.where(total > 0, total, 1)[:, None])
