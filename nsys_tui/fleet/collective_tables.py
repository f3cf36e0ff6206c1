"""Collectives as tables: by name, by rank, and every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nsys_tui.fleet.collectives import CAUSES, Group, blame, blame_together
from nsys_tui.fleet.fleet import Fleet, Member
from nsys_tui.fleet.table_parts import (
    Ask,
    Columns,
    count_column,
    cut,
    percent,
    share_column,
    time_column,
)
from nsys_tui.model.arrays import Float64
from nsys_tui.model.kernel_names import short_name
from nsys_tui.model.table import Column, Table, Unit, Values
from nsys_tui.units import format_duration, format_share, named_ranks, ranks_text


def purpose(group: Group, members: Sequence[Member]) -> str:
    """A guess, marked ``≈``; empty where the shape tells nothing, as of all ranks together.

    Launchers number ranks node by node, and frameworks give tensor parallelism the closest ones: so
    neighbours on one host are that, and every n-th rank is data parallelism. Sends and receives are
    those of pipeline stages or of experts, which a kernel does not tell.

    Args:
        group: the calls of a communicator.
        members: all ranks of the fleet; those that are not aligned are in no group.
    """
    if "SendRecv" in group.name:
        return "≈ pipeline or expert parallel"
    ranks = sorted(members[member].rank for member in group.members)
    steps = set(np.diff(ranks).tolist())
    if len(ranks) == sum(m.clock.aligned for m in members) or len(steps) != 1:
        return ""
    if steps != {1}:
        return "≈ data parallel"
    hosts = {members[member].report.host for member in group.members}
    return "≈ tensor parallel" if len(hosts) == 1 else ""


_FAIR: Final = 0.25
_MOST: Final = 0.8
_SHORT: Final = 3
"""Groups of ranks with fewer calls that are named."""


def collectives_table(fleet: Fleet, ask: Ask) -> Table:
    """Collectives by name and communicator: times, skew, and who comes last."""
    matched = fleet.collectives
    groups = sorted(matched.groups, key=lambda g: -int(g.wait.sum()))
    ranks = [m.rank for m in fleet.members]
    lasts = [np.bincount(g.last, minlength=len(g.members)) for g in groups]
    worst = [int(np.argmax(counts)) for counts in lasts]
    columns: Columns = [
        (Column("Collective"), [g.name for g in groups]),
        (Column("Communicator"), [g.communicator for g in groups]),
        (count_column("Ranks"), [len(g.members) for g in groups]),
        (count_column("Calls"), [g.calls for g in groups]),
        (time_column("Kernel time"), [int((g.end - g.start).sum()) for g in groups]),
        (time_column("Time"), [int(g.time.sum()) for g in groups]),
        (time_column("Waited"), [int(g.wait.sum()) for g in groups]),
        (time_column("Skew median"), [_median(g.skew) for g in groups]),
        (time_column("Skew max"), [int(g.skew.max(initial=0)) for g in groups]),
        (Column("Last rank", Unit.NONE),
         [ranks[g.members[w]] for g, w in zip(groups, worst, strict=True)]),
        (share_column("Last"),
         [percent(int(c[w]), g.calls) for g, c, w in zip(groups, lasts, worst, strict=True)]),
        (count_column("Unmatched"), [g.unmatched for g in groups]),
        (count_column("Apart"), [int(g.apart.sum()) for g in groups]),
        (Column("Members"), [ranks_text(ranks[one] for one in g.members) for g in groups]),
        (Column("Purpose"), [purpose(g, fleet.members) or None for g in groups]),
    ]  # fmt: skip
    notes = _match_notes(fleet)
    if groups:
        notes.append("Last: share of the calls to which the last rank came last")
    return cut(Table.of("collectives", "Collectives", columns, notes), ask.top)


def _median(values: Values) -> float | None:
    return float(np.median(values)) if len(values) else None


def _match_notes(fleet: Fleet) -> list[str]:
    matched = fleet.collectives
    if not matched.groups:
        return fleet.unknown or ["no collective that two ranks have in common"]
    notes = [
        *fleet.unknown,
        "ranks matched by order: the k-th call of a name and communicator on each",
    ]
    spread, apart = matched.end_spread, sum(int(g.apart.sum()) for g in matched.groups)
    if spread is not None:
        notes.append(
            f"ranks leave a collective {spread:,} ns apart (median): clocks agree no better"
        )
    if apart:
        notes.append(
            f"{apart:,} of {matched.calls:,} calls did not run at the same time on all ranks:"
            " clocks are off (--clock ends aligns them), or several communicators share a stream"
            " number (NCCL's NVTX payloads tell them apart)"
        )
    if matched.alone:
        notes.append(f"{matched.alone:,} calls that only one rank has are not matched")
    unmatched = sum(g.unmatched for g in matched.groups)
    if unmatched:
        notes.append(
            f"{unmatched:,} calls beyond the shortest rank's are not matched; where a capture began"
            " later on some ranks, the others are matched wrongly"
        )
    return notes + [told.text for told in short_of_calls(fleet)]


class Told(NamedTuple):
    """A sentence of a fleet, and what it is about."""

    text: str
    rank: int | None = None
    """The rank that it names first, if that one alone."""
    collective: str = ""
    """Name of the collectives that show it; empty where something else does."""


NOTHING: Final = Told("")


def short_of_calls(fleet: Fleet, least: float = 0.0) -> list[Told]:
    """Which ranks made fewer calls than the others of their group, those that lack most first.

    Args:
        fleet: the ranks.
        least: part of the calls that must be lacking.
    """
    ranks = [member.rank for member in fleet.members]
    lacking: dict[tuple[int, ...], list[tuple[int, int, str]]] = {}
    for group in fleet.collectives.groups:
        most, pairs = max(group.counts), zip(group.members, group.counts, strict=True)
        if short := tuple(ranks[who] for who, count in pairs if count < most):
            lacking.setdefault(short, []).append((most - group.calls, most, group.name))
    told = sorted(((max(numbers), short) for short, numbers in lacking.items()), reverse=True)
    return [
        Told(
            f"{named_ranks(short)} made {most - fewer:,} of {most:,} calls of"
            f" {short_name(name).name}: stopped before the others did, or captured for a shorter"
            " time",
            short[0] if len(short) == 1 else None,
            name,
        )
        for (fewer, most, name), short in told[:_SHORT]
        if fewer > least * most
    ]


def stragglers_table(fleet: Fleet, ask: Ask) -> Table:
    """Who comes late to collectives, how long the others wait for it, and why; the worst first."""
    matched = fleet.collectives
    late, blamed = matched.by_rank(), blame(matched)
    order = [int(row) for row in np.argsort(-blamed.cost, kind="stable") if late.calls[row]]
    members = fleet.members
    shares = blamed.causes / np.maximum(blamed.causes.sum(axis=1), 1)[:, None]
    causes = [_cause(shares[row]) for row in order]
    where = [_group(matched.groups[n], members) if (n := blamed.mostly[r]) >= 0 else None
             for r in order]  # fmt: skip
    columns: Columns = [
        (Column("Rank", Unit.NONE), [members[row].rank for row in order]),
        (Column("Host"), [members[row].report.host or None for row in order]),
        (count_column("Calls"), late.calls[order]),
        (count_column("Last"), late.last[order]),
        (time_column("Held up"), late.held_up[order]),
        (time_column("Others waited"), blamed.cost[order]),
        (Column("Why late"), [cause and f"{cause} of that" for cause in causes]),
        *(
            (time_column(cause.capitalize()), np.rint(blamed.causes[order, place]).astype(np.int64))
            for place, cause in enumerate(() if ask.human else CAUSES)
        ),
        (time_column("Late mean"), late.late[order] / np.maximum(late.calls[order], 1)),
        (time_column("Waited"), late.waited[order]),
        (time_column("Waited mean"), late.waited[order] / np.maximum(late.calls[order], 1)),
        (Column("Mostly in"), where),
    ]
    notes = _match_notes(fleet)
    if order:
        notes = ["Held up: time that all others waited for this rank alone"]
        notes += [told.text for told in (*short_of_calls(fleet), late_rank(fleet)) if told.text]
    return cut(Table.of("stragglers", "Stragglers", columns, notes), ask.top)


def late_rank(fleet: Fleet) -> Told:
    """Who held the others up most, how much and why, in one line; empty where nobody did.

    The second is named, too, where it cost them a fair part.
    """
    matched = fleet.collectives
    blamed = blame(matched)
    if not (cost := int(blamed.cost.sum())):
        return NOTHING

    def part(row: int) -> str:
        cause = _cause(blamed.causes[row] / max(blamed.causes[row].sum(), 1))
        share = format_share(blamed.cost[row], cost)
        return f"{share} of what single late ranks cost: {cause} of that"

    worst, *others = np.argsort(-blamed.cost, kind="stable").tolist()
    most, second = (int(blamed.cost[row]) for row in (worst, others[0]))
    chance = most < min(_MOST * cost, blamed.by_chance) and blamed.once[worst] < cost / 2
    if chance or most < 2 * np.median(blamed.cost[others]):
        took = f"ranks cost the others {format_duration(cost)} of waiting, hidden or not"
        return Told(f"{took}, by turns, none of them more than {format_share(most, cost)}")
    took = format_duration(most)
    rank, why = fleet.members[worst].rank, blamed.mostly[worst]
    text = f"rank {rank} cost the others {took} of waiting, hidden or not, {part(worst)}"
    if 2 * blamed.once[worst] > most:
        text += ", mostly in one call"
    if second >= _FAIR * cost:
        text = f"{text}; rank {fleet.members[others[0]].rank} {part(others[0])}"
    return Told(text, rank, matched.groups[why].name if why >= 0 else "")


def late_together(fleet: Fleet, least: float) -> Told:
    """Ranks that hold the others up by what none of them does alone; empty where none do.

    Args:
        fleet: the ranks.
        least: part of the others' time that it has to cost.
    """
    if fleet.collectives.ranks < 4:
        return NOTHING
    rows, causes, within = blame_together(fleet.collectives)
    others = sum(m.lasted for place, m in enumerate(fleet.members) if place not in rows)
    cost = int(causes.sum())
    if (
        not cost
        or cost < least * others
        or cost < 2 * int(blame(fleet.collectives).cost.max(initial=0))
    ):
        return NOTHING
    ranks = [fleet.members[row].rank for row in rows.tolist()]
    took = f"{named_ranks(ranks)} cost the others {format_duration(cost)}"
    took += " of waiting, hidden or not, together"
    if CAUSES[int(np.argmax(causes))] != "late before":
        return Told(f"{took}: {_cause(causes / cost)} of that", ranks[0])
    if not within.calls:
        return NOTHING  # they only pass on that others were late
    among = blame(within)
    first = int(np.argmax(among.cost))
    own = int(among.cost[first])
    if own / (len(rows) - 1) < cost / (len(fleet.members) - len(rows)) / 2:
        return Told(f"{took}: they leave collectives of their own late", ranks[0])
    rank, why = fleet.members[first].rank, _cause(among.causes[first] / own)
    took = f"rank {rank} cost the others {format_duration(cost + own)} of waiting, hidden or not"
    held = named_ranks(other for other in ranks if other != rank)
    return Told(f"{took}, also through {held} that it holds up: {why} of what that costs", rank)


def _cause(shares: Float64) -> str | None:
    """The main cause of a rank's lateness with its share; None where it cost nothing.

    That it was late before only passes a lateness on: a fair part of another cause comes first.
    """
    order = sorted(range(len(CAUSES)), key=lambda cause: -shares[cause])
    if CAUSES[order[0]] == "late before" and shares[order[1]] >= _FAIR:
        told = order[1::-1]
    else:
        told = order[:1]
    parts = (f"{CAUSES[cause]} {format_share(shares[cause])}" for cause in told)
    return ", ".join(parts) if shares[told[0]] > 0 else None


def _group(group: Group, members: Sequence[Member]) -> str:
    guess = purpose(group, members)
    ranks_of = named_ranks(members[member].rank for member in group.members)
    return f"{group.name} of {ranks_of}" + (f" ({guess})" if guess else "")


def calls_table(fleet: Fleet, ask: Ask) -> Table:
    """Every matched call."""
    groups = [g for g in fleet.collectives.groups if g.calls]
    ranks = np.array([m.rank for m in fleet.members], np.int64)

    def joined(values: Callable[[Any], Any]) -> Values:
        parts = [np.asarray(values(g)) for g in groups]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    columns: Columns = [
        (Column("Collective"), [g.name for g in groups for _ in range(g.calls)]),
        (Column("Communicator"), [g.communicator for g in groups for _ in range(g.calls)]),
        (count_column("Call"), joined(lambda g: np.arange(g.calls))),
        (count_column("Ranks"), joined(lambda g: np.full(g.calls, len(g.members)))),
        (time_column("First start"), joined(lambda g: g.start.min(axis=0))),
        (time_column("Last start"), joined(lambda g: g.last_start)),
        (time_column("Last end"), joined(lambda g: g.end.max(axis=0))),
        (time_column("Skew"), joined(lambda g: g.skew)),
        (time_column("Time"), joined(lambda g: g.time)),
        (Column("Last rank", Unit.NONE), joined(lambda g: ranks[np.array(g.members)][g.last])),
        (time_column("Longest wait"), joined(lambda g: g.wait.max(axis=0))),
    ]
    return cut(Table.of("calls", "Calls of collectives", columns, _match_notes(fleet)), ask.top)
