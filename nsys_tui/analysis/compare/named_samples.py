"""Samples of times by name: durations of instances, and sums in every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import Aggregate
from nsys_tui.analysis.compare.blocks import instance_errors
from nsys_tui.analysis.compare.side import Named, Steps
from nsys_tui.analysis.compare.stats import Sample, figures, samples
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.groups import sums

CELLS: Final = 1 << 24
"""Most (name, step) sums held at a time; beyond, the smaller names are compared by instances."""


def by_name(
    names: Sequence[str],
    groups: Aggregate,
    sizes: Int64 | None = None,
    step: Integers | None = None,
    steps: int = 0,
    block: int = 1,
) -> dict[str, Named]:
    """Samples of every group that has anything.

    Args:
        names: name of each group.
        groups: the events by group.
        sizes: of each event, what it moves or launches.
        step: step of each event; None where nothing is by step.
        steps: number of steps.
        block: neighbouring steps that are alike.
    """
    totals = groups.totals
    instances = _instances(groups)
    moved = np.zeros(len(names), np.int64)
    if sizes is not None:
        moved = sums(groups.codes, sizes, len(names))
    per_step = {} if step is None else _per_step(groups, step, steps, block)
    samples_by_name = {}
    for code, name in enumerate(names):
        if instances[code].count or totals[code]:
            of_steps, calls = per_step.get(code, (None, None))
            samples_by_name[name] = Named(
                instances[code], int(totals[code]), of_steps, calls, int(moved[code])
            )
    return samples_by_name


def in_steps(
    names: Sequence[str],
    group: Integers,
    lengths: Int64,
    step: Integers,
    steps: Steps,
    sizes: Int64 | None = None,
) -> dict[str, Named]:
    """Samples of events that each belong to a step, or to none (-1) and are left out."""
    groups, step, sizes = _inside(names, group, lengths, step, sizes)
    return by_name(names, groups, sizes, step, len(steps), steps.block)


def tallied(
    names: Sequence[str],
    group: Integers,
    lengths: Int64,
    step: Integers,
    steps: Steps,  # noqa: ARG001
    sizes: Int64 | None = None,
) -> dict[str, Named]:
    """How often and how long, and no more: half of the work of ``in_steps``."""
    groups, _, sizes = _inside(names, group, lengths, step, sizes)
    counts, totals = (np.bincount(groups.codes, minlength=len(names)), groups.totals)
    moved = totals * 0 if sizes is None else sums(groups.codes, sizes, len(names))
    rows = zip(names, counts.tolist(), totals.tolist(), moved.tolist(), strict=True)
    return {
        name: Named(Sample(count, total, 0, 0, 0.0, ()), total, amount=size)
        for name, count, total, size in rows
        if count
    }


def _inside(
    names: Sequence[str],
    group: Integers,
    lengths: Int64,
    step: Integers,
    sizes: Int64 | None,
) -> tuple[Aggregate, Integers, Int64 | None]:
    """The events that belong to a step."""
    inside = step >= 0
    if not inside.all():
        group, lengths, step = group[inside], lengths[inside], step[inside]
        sizes = None if sizes is None else sizes[inside]
    return Aggregate(group, len(names), lengths), step, sizes


def _instances(groups: Aggregate) -> list[Sample]:
    stats = groups.instances
    medians = np.nan_to_num(stats.median)
    errors = instance_errors(stats)
    return figures(stats.counts, stats.totals, stats.min, stats.max, medians, errors)


def _per_step(
    groups: Aggregate, step: Integers, steps: int, block: int
) -> dict[int, tuple[Sample, float]]:
    """Sums of each group in every step, and the median of its events per step.

    Only of the groups with most time where there are too many for ``CELLS``.
    """
    group, ns, total = groups.codes, groups.lengths, groups.totals
    kept = np.argsort(-total, kind="stable")[: max(1, CELLS // steps)]
    if len(kept) < len(total):
        place = np.full(len(total), -1)
        place[kept] = np.arange(len(kept))
        inside = place[group] >= 0
        group, ns, step = place[group[inside]], ns[inside], step[inside]
    else:
        kept = np.arange(len(total))
    cells = group.astype(np.int64) * steps + step
    size = len(kept) * steps
    time = sums(cells, ns, size).reshape(len(kept), steps)
    calls = np.median(np.bincount(cells, minlength=size).reshape(len(kept), steps), axis=1)
    pairs = zip(samples(time, block), calls.tolist(), strict=True)
    return dict(zip(kept.tolist(), pairs, strict=True))
