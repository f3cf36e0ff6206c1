"""Steps over the ranks: which rank was slowest in each, and which had most to compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_tui.fleet.fleet import Fleet
from nsys_tui.fleet.summary import STEP_FIGURES
from nsys_tui.model.arrays import Bool, Float64, Indices


@dataclass(frozen=True, eq=False)
class FleetSteps:
    """Steps in the order of time; NaN where a rank lacks one."""

    labels: tuple[str, ...]
    by_label: bool
    """Whether steps were matched by their labels; else by order."""
    ranks: tuple[int, ...]
    """Ranks that have steps: the rows of what follows."""
    time: Float64
    """Time of each step on each rank, ns, shape (ranks, steps)."""
    start: Float64
    """Start in fleet time; NaN also for ranks whose clock is not aligned."""
    figures: Float64
    """``STEP_FIGURES``, shape (figures, ranks, steps); NaN also where GPU work is not known."""
    counted: Bool
    """Whether a step is in the statistics of a rank, shape (ranks, steps)."""
    never_closed: tuple[str, ...]
    """Steps whose end is not known on a rank."""
    rules: tuple[str, ...]
    """How the steps were found, every way that occurs."""
    warm_up: int
    """How many at the beginning are warm-up, on the rank with most."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def slowest(self) -> Indices:
        """Row of the rank with the longest time of each step; the first of several.

        -1 where it takes all ranks equally long.
        """
        longest = np.nanargmax(self.time, axis=0)
        apart = np.nanmax(self.time, axis=0) > np.nanmin(self.time, axis=0)
        return np.where(apart | (len(self.ranks) == 1), longest, -1)

    @property
    def times_slowest(self) -> Indices:
        """In how many steps each rank was the slowest, of those that count on every rank."""
        rows = self.slowest[(self.counted | np.isnan(self.time)).all(axis=0)]
        return np.bincount(rows[rows >= 0], minlength=len(self.ranks))

    @property
    def skew(self) -> Float64:
        """Last start - first start of each step over ranks with aligned clocks, ns; else NaN."""
        known = ~np.isnan(self.start).all(axis=0)
        skew = np.full(len(self), np.nan)
        starts = self.start[:, known]
        if starts.size:
            skew[known] = np.nanmax(starts, axis=0) - np.nanmin(starts, axis=0)
        return skew

    def median(self, name: str) -> Float64:
        """Median of one of ``STEP_FIGURES`` over the steps of each rank that count on it."""
        kept = np.where(self.counted, self.figure(name), np.nan)
        known = ~np.isnan(kept).all(axis=1)
        median = np.full(len(kept), np.nan)
        median[known] = np.nanmedian(kept[known], axis=1)
        return median

    def figure(self, name: str) -> Float64:
        """One of ``STEP_FIGURES``, shape (ranks, steps)."""
        return np.asarray(self.figures[STEP_FIGURES.index(name)], np.float64)

    def most(self, name: str) -> Indices:
        """Row of the rank with most of a figure in each step; -1 where no rank knows it."""
        figure = self.figure(name)
        known = ~np.isnan(figure).all(axis=0)
        return np.where(known, np.argmax(np.nan_to_num(figure, nan=-1), axis=0), -1)


def fleet_steps(fleet: Fleet) -> FleetSteps | None:
    """Matches the steps of all ranks: by label where labels are unique, else by order.

    Returns:
        the steps, or None where no rank has any.
    """
    having = [member for member in fleet.run.members if len(member.process.steps.labels)]
    if not having:
        return None
    steps_of = [member.process.steps for member in having]
    unique = all(len(set(steps.labels)) == len(steps.labels) for steps in steps_of)
    common = set.intersection(*(set(steps.labels) for steps in steps_of)) if unique else set()
    by_label = bool(common)
    firsts: dict[object, tuple[str, float]] = {}
    for member, steps in zip(having, steps_of, strict=True):
        for step, label in enumerate(steps.labels):
            key: object = label if by_label else step
            began = float(member.clock.fleet_time(int(steps.start[step])))
            if key not in firsts or began < firsts[key][1]:
                firsts[key] = (label, began)
    keys = sorted(firsts, key=lambda key: firsts[key][1])
    place_of = {key: step for step, key in enumerate(keys)}
    shape = (len(having), len(keys))
    time, start = np.full(shape, np.nan), np.full(shape, np.nan)
    figures = np.full((len(STEP_FIGURES), *shape), np.nan)
    counted, never_closed = np.zeros(shape, bool), np.zeros(len(keys), bool)
    for row, (member, steps) in enumerate(zip(having, steps_of, strict=True)):
        spots = [place_of[x] for x in (steps.labels if by_label else range(len(steps.labels)))]
        time[row, spots] = steps.end - steps.start
        if member.clock.aligned:
            start[row, spots] = member.clock.fleet(steps.start)
        if not member.report.gpu_doubt:
            figures[:, row, spots] = steps.figures.T
        counted[row, spots] = steps.counted
        never_closed[spots] |= steps.never_closed
    return FleetSteps(
        tuple(firsts[key][0] for key in keys),
        by_label,
        tuple(member.rank for member in having),
        time,
        start,
        figures,
        counted,
        tuple(firsts[keys[step]][0] for step in np.flatnonzero(never_closed).tolist()),
        tuple(dict.fromkeys(f"{steps.name} ({steps.rule})" for steps in steps_of)),
        max(steps.warm_up for steps in steps_of),
    )
