"""Steps and the pace of a kernel or range over the ranks, as tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_tui.fleet.fleet import Fleet
from nsys_tui.fleet.steps import FleetSteps, fleet_steps
from nsys_tui.fleet.table_parts import Ask, Columns, count_column, cut, share_column, time_column
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.table import Column, Table, Unit


@dataclass(frozen=True, eq=False)
class RankPace:
    """Instances on one rank, in order of their starts."""

    rank: int
    start: Int64
    """Fleet time, ns."""
    duration: Int64
    behind: Int64
    """ns after the first rank's start of the same instance."""

    @property
    def cumulative(self) -> Int64:
        """Sum of the durations up to and with each instance."""
        return np.cumsum(self.duration)

    @property
    def drift(self) -> float | None:
        """ns that the rank falls back from one instance to the next (least squares)."""
        count = len(self.behind)
        if count < 2:
            return None
        place = np.arange(count) - (count - 1) / 2
        return float((place * self.behind).sum() / (place * place).sum())


@dataclass(frozen=True, eq=False)
class FleetPace:
    """One kernel or range over all ranks that have it."""

    name: str
    kind: str
    ranks: tuple[RankPace, ...]


def fleet_pace(fleet: Fleet) -> FleetPace | None:
    """Puts the instances of the ranks side by side, the k-th of each together.

    Returns:
        None where no rank has the kernel or range that was asked for.
    """
    having = [m for m in fleet.members if m.process.pace.kind and m.clock.aligned]
    if not having:
        return None
    starts = [member.clock.fleet(member.process.pace.start) for member in having]
    first = np.full(max(map(len, starts)), np.iinfo(np.int64).max)
    for times in starts:
        first[: len(times)] = np.minimum(first[: len(times)], times)
    pace = having[0].process.pace
    ranks = tuple(
        RankPace(member.rank, times, member.process.pace.duration, times - first[: len(times)])
        for member, times in zip(having, starts, strict=True)
    )
    return FleetPace(pace.name, pace.kind, ranks)


def steps_table(fleet: Fleet, ask: Ask) -> Table:
    """Every step: its times over the ranks, the slowest rank, and who had most to compute."""
    fleet = fleet.run
    steps = fleet_steps(fleet)
    if steps is None:
        return Table.of(
            "steps", "Steps", [], ["no steps found: name their ranges with --iteration"]
        )
    slow, busiest = steps.slowest, steps.most("compute")
    median = np.nanmedian(steps.time, axis=0)
    longest = np.nanmax(steps.time, axis=0)
    most = np.take_along_axis(steps.figure("compute"), busiest[np.newaxis], axis=0)[0]
    columns: Columns = [
        (Column("Step"), list(steps.labels)),
        (count_column("Ranks"), (~np.isnan(steps.time)).sum(axis=0)),
        (time_column("Min"), np.nanmin(steps.time, axis=0)),
        (time_column("Median"), median),
        (time_column("Max"), longest),
        (Column("Slowest rank", Unit.NONE), _ranks(steps, slow)),
        (share_column("Over median"), 100 * (longest / np.maximum(median, 1) - 1)),
        (time_column("Most compute"), most),
        (Column("Compute rank", Unit.NONE), _ranks(steps, busiest)),
        (time_column("Start skew"), steps.skew),
    ]
    first = f"the first {steps.warm_up} are" if steps.warm_up > 1 else "the first is"
    warm_up = f"; {first} warm-up" if steps.warm_up else ""
    notes = [f"steps: {'; '.join(steps.rules)}{warm_up}", *fleet.unknown]
    if steps.never_closed:
        notes.append(f"end unknown, so in no statistics: {', '.join(steps.never_closed)}")
    if not steps.by_label:
        notes.append("≈ steps of the ranks matched by order: their names differ or repeat")
    return cut(Table.of("steps", "Steps", columns, notes), ask.top)


def _ranks(steps: FleetSteps, rows: Indices) -> list[int | None]:
    """The ranks of some rows; None for -1."""
    return [steps.ranks[row] if row >= 0 else None for row in rows.tolist()]


def step_ranks_table(fleet: Fleet, ask: Ask) -> Table:
    """Times of each rank's steps that count, and how often it was the slowest."""
    fleet = fleet.run
    steps = fleet_steps(fleet)
    if steps is None:
        return Table.of("step-ranks", "Steps by rank", [], ["no steps found"])
    wins = steps.times_slowest
    times = [m.process.steps.steady for m in fleet.members if len(m.process.steps.labels)]
    columns: Columns = [
        (Column("Rank", Unit.NONE), list(steps.ranks)),
        (count_column("Steps"), [len(of_rank) for of_rank in times]),
        (time_column("Mean"), [float(of_rank.mean()) for of_rank in times]),
        (time_column("Median"), [float(np.median(of_rank)) for of_rank in times]),
        (
            time_column("StdDev"),
            [float(of_rank.std(ddof=1)) if len(of_rank) > 1 else 0.0 for of_rank in times],
        ),
        (time_column("Max"), [int(of_rank.max()) for of_rank in times]),
        (count_column("Slowest"), wins),
        (time_column("Median compute"), steps.median("compute")),
        (time_column("Median comm"), steps.median("comm")),
        (time_column("Median exposed"), steps.median("exposed_comm")),
    ]
    return cut(Table.of("step-ranks", "Steps by rank", columns, fleet.unknown), ask.top)


def pace_table(fleet: Fleet, ask: Ask) -> Table:
    """Every instance of the kernel or range that was asked for, on every rank."""
    pace = fleet_pace(fleet)
    if pace is None:
        asked = fleet.options.pace
        why = f"no rank has {asked!r}" if asked else "name a kernel or range with --pace"
        return Table.of("pace", "Pace", [], [why])
    ranks = pace.ranks
    columns: Columns = [
        (Column("Rank", Unit.NONE), np.concatenate([np.full(len(r.start), r.rank) for r in ranks])),
        (count_column("Instance"), np.concatenate([np.arange(len(r.start)) for r in ranks])),
        (time_column("Start"), np.concatenate([r.start for r in ranks])),
        (time_column("Duration"), np.concatenate([r.duration for r in ranks])),
        (time_column("Cumulative"), np.concatenate([r.cumulative for r in ranks])),
        (time_column("Behind"), np.concatenate([r.behind for r in ranks])),
    ]
    notes = ["Behind: after the first rank's start of the same instance, matched by order"]
    title = f"Pace of {pace.kind} {pace.name}"
    return cut(Table.of("pace", title, columns, notes), ask.top)


def pace_ranks_table(fleet: Fleet, ask: Ask) -> Table:
    """The pace of each rank in one row, and how it drifts."""
    pace = fleet_pace(fleet)
    if pace is None:
        return Table.of(
            "pace-ranks", "Pace by rank", [], ["nothing to compare: see the section pace"]
        )
    ranks = pace.ranks
    columns: Columns = [
        (Column("Rank", Unit.NONE), [r.rank for r in ranks]),
        (count_column("Instances"), [len(r.start) for r in ranks]),
        (time_column("Total"), [int(r.duration.sum()) for r in ranks]),
        (time_column("Mean"), [float(r.duration.mean()) for r in ranks]),
        (time_column("Max"), [int(r.duration.max()) for r in ranks]),
        (time_column("Behind median"), [float(np.median(r.behind)) for r in ranks]),
        (time_column("Behind max"), [int(r.behind.max()) for r in ranks]),
        (time_column("Drift per instance"), [r.drift for r in ranks]),
    ]
    return cut(Table.of("pace-ranks", f"Pace of {pace.name} by rank", columns), ask.top)
