"""Runs of one baseline in their order: where a figure jumped, or whether it drifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from nsys_tui.analysis.compare.side import Side
from nsys_tui.analysis.compare.stats import LEVEL, SEED, THRESHOLD
from nsys_tui.model.arrays import Float64
from nsys_tui.units import format_change

FEWEST_RUNS: Final = 10
_SHORTEST: Final = 3
"""Runs on either side of a jump whose chance is told."""
_LEAST: Final = 2
"""Runs on either side of the place of a jump."""
_SHUFFLES: Final = 999
_TELLING: Final = 2.0
"""Difference of the criterion from which the one or the other is told."""


@dataclass(frozen=True)
class Shift:
    """A figure that changed in the course of the runs."""

    name: str
    kind: str
    """``jump``; ``drift``, which grew or shrank steadily; ``either``, which cannot be told."""
    at: int
    """The first run after the jump, from 0."""
    size: float
    """Relative change: of the jump, or of a drift from the first run to the last."""


def shifts(sides: Sequence[Side]) -> list[Shift]:
    """What changed in runs in their order: the time of a step first, then kernels, largest first.

    Nothing of fewer than ``FEWEST_RUNS`` runs. Figures that a run lacks are passed over.
    """
    if len(sides) < FEWEST_RUNS or not all(side.by_step for side in sides):
        return []
    wall = _shifted({"wall": [side.metrics["wall"].mean for side in sides]})
    names = set.intersection(*(set(side.names("kernels")) for side in sides))
    series = {name: _per_step(sides, name) for name in sorted(names)}
    kernels = _shifted({name: values for name, values in series.items() if values})
    return wall + sorted(kernels, key=lambda shift: -abs(shift.size))


def _per_step(sides: Sequence[Side], name: str) -> list[float]:
    samples = [side.names("kernels")[name].per_step for side in sides]
    return [sample.mean for sample in samples if sample is not None and sample.mean > 0]


def _shifted(series: dict[str, list[float]]) -> list[Shift]:
    """The figures that changed, of which false discoveries are ``LEVEL`` at most."""
    whole = max(map(len, series.values()), default=0)
    names = [name for name, values in series.items() if len(values) == whole]
    if not names:
        return []
    values = np.log([series[name] for name in names])
    gains = _step_gains(values).max(axis=1)
    random = np.random.default_rng(SEED)
    beaten = np.zeros(len(names))
    for _ in range(_SHUFFLES):
        beaten += _step_gains(random.permuted(values, axis=1)).max(axis=1) >= gains - 1e-12
    chances = (beaten + 1) / (_SHUFFLES + 1)
    order = np.sort(chances)
    passed = np.flatnonzero(order <= LEVEL * np.arange(1, len(order) + 1) / len(order))
    limit = order[passed[-1]] if len(passed) else -1.0
    changed = [_shift(names[place], values[place]) for place in np.flatnonzero(chances <= limit)]
    return [shift for each in changed for shift in each if abs(shift.size) >= THRESHOLD]


def _step_gains(values: Float64) -> Float64:
    """Squares that a jump before each run explains; a row for each figure."""
    count = values.shape[1]
    away = np.cumsum(values - values.mean(axis=1, keepdims=True), axis=1)
    before = np.arange(_SHORTEST, count - _SHORTEST + 1)
    return np.asarray(away[:, before - 1] ** 2 * count / (before * (count - before)), np.float64)


def _shift(name: str, values: Float64) -> list[Shift]:
    """One jump, two, or a drift, whichever explains most by the Bayesian information criterion.

    Below a difference of ``_TELLING`` neither jump nor drift is told (Kass and Raftery 1995); a
    second jump, whose place is sought in so many pairs, needs five times as much.
    """
    count, away = len(values), values - values.mean()
    times = np.arange(count) - (count - 1) / 2
    slope = float(times @ values / (times @ times))

    def criterion(explained: float, numbers: int) -> float:
        rest = max(float(away @ away) - explained, 1e-18)
        return count * float(np.log(rest)) + numbers * float(np.log(count))

    (one, at_one), (two, at_two) = (_best_jumps(away, jumps) for jumps in (1, 2))
    odd = float(max(away[0] ** 2, away[-1] ** 2)) * count / (count - 1)
    if odd > max(one, two):
        return []  # The first or the last run alone is another: no other one shows a jump.
    drift = criterion(slope**2 * float(times @ times), 2)
    jump, places = criterion(one, 3), at_one
    if criterion(two, 5) + 5 * _TELLING < min(jump, drift):
        jump, places = criterion(two, 5), at_two
    if jump - drift >= _TELLING:
        return [Shift(name, "drift", 0, float(np.expm1(slope * (count - 1))))]
    kind = "jump" if drift - jump >= _TELLING else "either"
    means = [part.mean() for part in np.split(values, places)]
    sizes = np.expm1(np.diff(means)).tolist()
    return [Shift(name, kind, at, size) for at, size in zip(places, sizes, strict=True)]


def _best_jumps(away: Float64, jumps: int) -> tuple[float, tuple[int, ...]]:
    """Squares that jumps before the best runs explain of deviations from the mean, and these."""
    count, sums = len(away), np.append(0.0, np.cumsum(away))
    runs = np.arange(_LEAST, count - _LEAST + 1)
    pairs = (runs[at] for at in np.triu_indices(len(runs), _LEAST))
    edges = [0, *([runs] if jumps == 1 else pairs), count]
    explained = sum(
        (sums[end] - sums[begin]) ** 2 / (end - begin) for begin, end in pairwise(edges)
    )
    best = int(np.argmax(explained))
    return float(explained[best]), tuple(int(places[best]) for places in edges[1:-1])


def sentences(jumps: Sequence[Shift], labels: Sequence[str]) -> list[str]:
    """What is said of shifts: the time of a step, and the kernels that changed with it."""
    told = []
    for shift in jumps:
        what = "mean wall per step" if shift.name == "wall" else shift.name
        size = format_change(shift.size)
        place = f"run {shift.at + 1} of {len(labels)} ({labels[shift.at]})"
        said = {
            "jump": f"jumped by {size} at {place}",
            "drift": f"drifts: {size} over {len(labels)} runs",
            "either": f"drifts, or jumped by {size} at {place}: these runs cannot tell which",
        }
        told.append(f"{what} {said[shift.kind]}")
    return told


def since_jump(jumps: Sequence[Shift]) -> int:
    """The first run after the last jump of the time of a step; 0 without one."""
    return max((s.at for s in jumps if s.name == "wall" and s.kind == "jump"), default=0)
