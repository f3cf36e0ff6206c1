"""What a fleet says: first in one line who holds the others up, and all as one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.fleet.collective_tables import NOTHING, Told, late_rank, late_together, short_of_calls
from nsys_tui.fleet.collectives import blame
from nsys_tui.fleet.fleet import Clock, Fleet
from nsys_tui.fleet.steps import fleet_steps
from nsys_tui.fleet.summary import SPLIT
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.model.arrays import Float64
from nsys_tui.model.table import (
    OPEN,
    Column,
    Document,
    Form,
    Table,
    column,
    columns,
    data,
    number,
    record,
    records,
)
from nsys_tui.units import format_duration, format_share, named_ranks, out_of

APART: Final = 0.02
"""Part of the usual step from which a rank is slower: below it are ordinary differences."""


STOPPED: Final = 0.1
"""Part of the others' calls that a rank lacks, from which that is the first word."""


WORTH: Final = 0.01
"""Part of the others' time from which waiting for one rank is worth a word."""


def verdict(fleet: Fleet) -> Told:
    """One line; who stopped, then a late rank before slow steps before shares of busy time."""
    if len(fleet.members) < 2:
        return Told("one rank alone: open the reports of the others beside it to see who is late")
    told = next((told for make in _IN_ORDER if (told := make(fleet)).text), NOTHING)
    for stopped in short_of_calls(fleet, STOPPED)[:1]:
        named = told if stopped.rank is None else stopped
        told = named._replace(text=f"{stopped.text}; {told.text}")
    return told


def _late(fleet: Fleet) -> Told:
    """Who holds the others up; that nobody does where it is little of their time."""
    told, doubt = late_rank(fleet), _not_aligned(fleet)
    if not doubt.text and (together := late_together(fleet, WORTH)).text:
        return together
    cost = int(blame(fleet.collectives).cost.max(initial=0))
    bases = [member.lasted for member in fleet.members]
    known = fleet.collectives.calls and (told.text or not doubt.text)
    if not known or cost >= WORTH * (sum(bases) - max(bases)):
        return told
    most = f"waiting for one costs {format_duration(cost)} at most"
    if (waited := int(fleet.collectives.by_rank().waited.sum())) >= WORTH * sum(bases):
        most += f", for whoever is last {format_duration(waited)}"
    if doubt.text:
        return doubt._replace(text=f"{doubt.text}; among the rest {most}")
    if fleet.absent:
        return Told(f"no rank here holds the others up: {most}; {_absent(fleet)} may")
    return Told(f"no rank holds the others up: {most}")


def _absent(fleet: Fleet) -> str:
    return f"{named_ranks(fleet.absent)}, of which there is no report,"


def _not_aligned(fleet: Fleet) -> Told:
    """Who may hold the others up unseen, and what tells it without clocks; empty for nobody."""
    off = [member.rank for member in fleet.members if not member.clock.aligned]
    if not off:
        return NOTHING
    slow = NOTHING if _several_runs(fleet) else _most_compute(fleet)
    text = f"who holds the others up is not known: {named_ranks(off)} cannot be aligned"
    if _several_runs(fleet):
        text += ", as ranks of several runs cannot"
    return slow._replace(text=f"{slow.text}{text}")


def _several_runs(fleet: Fleet) -> bool:
    """Whether no two ranks leave their collectives together, and their steps are not as many.

    Ranks of one run that were captured for other times look so too: steps are matched wrongly then.
    """
    counts = {len(member.process.steps.labels) for member in fleet.members}
    return len(counts) > 1 and not any(member.clock.aligned for member in fleet.members)


def _stands_out(values: Float64, room: float) -> tuple[list[int], float]:
    """The rows of the largest values, by how much they exceed the median of the rest.

    None where there is no rest, or it is no more than ``room`` below.
    """
    high = values >= np.nanmax(values) - room
    rest = values[~high & ~np.isnan(values)]
    more = float(np.nanmax(values) - np.median(rest)) if len(rest) else 0.0
    return (np.flatnonzero(high).tolist(), more) if more > room else ([], 0.0)


def _computing(rows: Sequence[int], ranks: Sequence[int], more: float, each: str = "") -> Told:
    """Who computes longer than the others, before what else is told; empty for nobody."""
    if not rows:
        return NOTHING
    who = [ranks[row] for row in rows]
    verb, one = ("computes", who[0]) if len(who) == 1 else ("compute", None)
    took = f"{format_duration(round(more))}{each} longer than the others"
    return Told(f"{named_ranks(who)} {verb} {took}; ", one)


def _most_compute(fleet: Fleet) -> Told:
    """The ranks that compute longer in a step than the others, by clocks of their own."""
    steps = fleet_steps(fleet)
    if steps is None or np.isnan(medians := steps.median("compute")).all():
        return NOTHING
    rows, more = _stands_out(medians, APART * float(np.nanmedian(steps.time)))
    return _computing(rows, steps.ranks, more, " a step")


def _slow_steps(fleet: Fleet) -> Told:
    steps = fleet_steps(fleet)
    if steps is None or len(steps.ranks) < 2 or _several_runs(fleet):
        return NOTHING
    if not steps.counted.any(axis=1).all():
        return NOTHING
    times = steps.times_slowest
    medians = np.nanmedian(np.where(steps.counted, steps.time, np.nan), axis=1)
    slow, more = _stands_out(medians, APART * float(np.median(medians)))
    unseen = "no collectives are matched between ranks to see who waits"
    if fleet.collectives.calls:
        unseen = "not all ranks can be aligned to see who waits"
    if not (slow and times.any()):
        if (doubt := _not_aligned(fleet)).text:
            return doubt
        least, most = (format_duration(round(ns)) for ns in np.quantile(medians, (0, 1)))
        told = _most_compute(fleet)
        text = f"{told.text}steps take as long on all ranks: their medians are {least} to {most}"
        return told._replace(text=f"{text}; {unseen}")
    above = format_duration(round(more))
    if len(slow) > 1:  # they keep step: any of them may hold up the rest
        told, ranks = _most_compute(fleet), named_ranks(steps.ranks[row] for row in slow)
        text = f"{told.text}steps of {ranks} take {above} longer than those of the others"
        return told._replace(text=f"{text}, perhaps of another group or run; {unseen}")
    rank = steps.ranks[slow[0]]
    often = out_of(int(times[slow[0]]), int(times.sum()))
    text = f"rank {rank} is slowest in {often} steps, its median {above} above that of the others"
    return Told(f"{text}; {unseen}", rank)


def _busy(fleet: Fleet) -> Told:
    place, shares = SPLIT.index("busy"), {}
    for member in fleet.members:
        if len(member.process.devices) and member.lasted:
            busy = float(member.process.splits[:, place].mean())
            shares[busy / member.lasted] = member.rank
    if not shares:
        return Told(f"no GPU work in these reports{_in_mpi(fleet)}")
    low, high, most = min(shares), max(shares), _most_work(fleet)
    return most._replace(
        text=f"{most.text}GPUs are busy {format_share(low)} (rank {shares[low]})"
        f" to {format_share(high)} (rank {shares[high]});"
        " no collectives are matched and no steps found"
    )


_IN_ORDER: Final = (_late, _slow_steps, _not_aligned, _busy)
"""What a verdict is, the first that says something."""


def _most_work(fleet: Fleet) -> Told:
    """The ranks whose GPUs compute longer than those of the others; empty for none."""
    place = SPLIT.index("compute")
    busy = {m.rank: float(m.process.splits[:, place].mean()) for m in fleet.members if m.gpus}
    values = np.array([*busy.values()])
    rows, more = _stands_out(values, APART * float(np.median(values)))
    return _computing(rows, [*busy], more)


def _in_mpi(fleet: Fleet) -> str:
    shares = fleet.mpi_shares()
    if len(shares) < 2:
        return ""
    (low, least), *_, (high, most) = sorted(shares.items(), key=lambda item: item[1])
    return (
        f"; in MPI calls for {format_share(least)} (rank {low})"
        f" to {format_share(most)} (rank {high}) of the session"
    )


@dataclass(frozen=True)
class FleetAnswer:
    """A fleet with the sections that were asked for."""

    fleet: Fleet
    ask: Ask
    wanted: Sequence[str]
    verdict: Told = NOTHING
    """What it comes to; empty where only sections were asked for."""

    def sections(self) -> dict[str, Table]:
        """The sections by name."""
        return {
            name.replace("-", "_"): SECTIONS[name](self.fleet, self.ask) for name in self.wanted
        }


_NO_RANKS: Final = Fleet((), (), Clock.AUTO)


def _span(answer: FleetAnswer, _: object) -> tuple[int, int] | None:
    fleet = answer.fleet
    return fleet.span if any(len(one.process.devices) for one in fleet.members) else None


def _section(name: str) -> Column:
    """A section: its columns in any fleet, and others that a fleet may have."""
    asked = (SECTIONS[name](_NO_RANKS, Ask(by_rank=by_rank)).columns for by_rank in (False, True))
    always, by_rank = asked
    known = (column for column in always if column in by_rank)
    rows = records("rows", (*known, *OPEN), lambda table, _: table)
    inner = (rows, column("notes", form=Form.LIST))
    return Column(key=name.replace("-", "_"), inner=inner, optional=True)


_LEFT: Final = (data("report", lambda failure, _: failure.path), *columns("reason"))
DOCUMENT: Final = Document(
    "fleet",
    (
        number("ranks", lambda answer, _: len(answer.fleet.members)),
        data("verdict", lambda answer, _: answer.verdict.text or None, optional=True),
        number("verdict_rank", lambda answer, _: answer.verdict.rank, optional=True),
        data(
            "verdict_collective", lambda answer, _: answer.verdict.collective or None, optional=True
        ),
        data("clock", lambda answer, _: answer.fleet.clock),
        data("span_ns", _span, form=Form.LIST),
        records("skipped", _LEFT, lambda answer, _: answer.fleet.failures),
        records("left_out", _LEFT, lambda answer, _: answer.fleet.left_out),
        record("sections", tuple(map(_section, SECTIONS)), lambda answer, _: answer.sections()),
    ),
)
"""A fleet as JSON; rows of a section have the columns of its table, by key."""
