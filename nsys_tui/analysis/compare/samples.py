"""Samples of times by name: durations of instances, and sums in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.compare.side import Named
from nsys_tui.analysis.compare.stats import Spread, rows_as_spreads, spreads
from nsys_tui.analysis.grouping import group_stats
from nsys_tui.analysis.window import clipped, starting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nsys_tui.analysis.compare.side import Steps
    from nsys_tui.analysis.window import Rows
    from nsys_tui.model.events import EventSet, Int64

CELLS: Final = 1 << 24
"""Most (name, step) sums held at a time; beyond, the smaller names are compared by instances."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of time, each with a group, which add up to the groups' totals."""

    group: NDArray[np.integer]
    ns: Int64
    bytes: Int64 | None = None
    step: NDArray[np.integer] | None = None
    """Step of each piece; None where nothing is by step."""


def by_name(
    names: Sequence[str], pieces: Pieces, instances: tuple[NDArray[np.integer], Int64], steps: int
) -> dict[str, Named]:
    """Samples of every group that has anything.

    Args:
        names: name of each group.
        pieces: what totals are sums of.
        instances: group and whole duration of each instance.
        steps: number of steps.
    """
    size = len(names)
    stats = group_stats(*instances, size)
    samples = spreads(stats)
    whole = pieces.ns is instances[1]
    total = stats.totals if whole else _sums(pieces.group, pieces.ns, size)
    moved = np.zeros(size, np.int64)
    if pieces.bytes is not None:
        moved = _sums(pieces.group, pieces.bytes, size)
    per_step = _per_step(pieces, steps, total) if pieces.step is not None else {}
    found = {}
    for code, name in enumerate(names):
        if samples[code].count or total[code]:
            sums, calls = per_step.get(code, (None, None))
            found[name] = Named(samples[code], int(total[code]), sums, calls, int(moved[code]))
    return found


def in_steps(
    names: Sequence[str],
    group: NDArray[np.integer],
    lengths: Int64,
    step: NDArray[np.integer],
    steps: Steps,
    sizes: Int64 | None = None,
) -> dict[str, Named]:
    """Samples of events that each belong to a step, or to none (-1) and are left out."""
    inside = step >= 0
    if not inside.all():
        group, lengths, step = group[inside], lengths[inside], step[inside]
        sizes = None if sizes is None else sizes[inside]
    return by_name(names, Pieces(group, lengths, sizes, step), (group, lengths), len(steps))


def in_window(
    names: Sequence[str],
    group: NDArray[np.integer],
    events: EventSet,
    rows: Rows,
    window: tuple[int, int] | None,
    sizes: Int64 | None = None,
) -> dict[str, Named]:
    """Samples of some events in a window: totals are clipped, instances count where they start."""
    begun = starting(events, rows, window)
    start, end = clipped(events, rows, window)
    whole = events.durations(rows)[begun]
    return by_name(names, Pieces(group, end - start, sizes), (group[begun], whole), 0)


def _sums(group: NDArray[np.integer], values: Int64, size: int) -> Int64:
    # Sums of whole ns below 2**53 are exact in the floats that bincount adds in.
    return np.bincount(group, values, size).astype(np.int64)


def _per_step(pieces: Pieces, steps: int, total: Int64) -> dict[int, tuple[Spread, float]]:
    """Sums of each group in every step, and the median of its pieces per step.

    Only of the groups with most time where there are too many for ``CELLS``.
    """
    assert pieces.step is not None
    group, ns, step = pieces.group, pieces.ns, pieces.step
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
    sums = np.bincount(cells, ns, size).reshape(len(kept), steps)
    calls = np.median(np.bincount(cells, minlength=size).reshape(len(kept), steps), axis=1)
    found = zip(rows_as_spreads(sums), calls.tolist(), strict=True)
    return dict(zip(kept.tolist(), found, strict=True))
