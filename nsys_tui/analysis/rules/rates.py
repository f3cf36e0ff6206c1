"""Whether waits, and pictures, end by a clock: at a fixed rate, whatever is done between them."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.stalls.causes import Cause, Gaps
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Int64
from nsys_tui.model.intervals import Intervals

FEWEST_TICKS: Final = 10
REGULAR: Final = {Cause.SLEEP: 0.02, Cause.WAIT: 0.005, Cause.OSRT: 0.005}
"""Deviation of the time between ticks, as a part of it, up to which a program keeps a rate.

A timer or a device that it waits for is more regular than somebody who works.
"""
_RATES: Final = np.array((1, 2, 5, 10, 15, 20, 24, 25, 30, 50, 60, 100, 120))
"""A second."""
_EVEN: Final = 0.05
"""Deviation of a clock's ticks, as a part of the time between, up to which they are such."""
_EXACT, _ODD = 0.002, 0.01
"""How far a rate may be from one of these: at least, for what few ticks tell, and at most."""
_LITTLE_WORK: Final = 0.75
"""Part of the time that is waited from which on little is done between."""
_NEARLY_ALL: Final = 0.9
"""Part of the time that equal sleeps have, with a GPU that idles, where they are the rate."""
_ROUNDS, _ENOUGH = 8, 5
_MOST: Final = 0.68
"""Part of values that deviate by no more than a standard deviation, where chance alone rules."""


def keeps_a_rate(case: Case, cause: Cause, thread: int, gaps: Gaps, waits: Intervals) -> bool:
    """Whether the last waits before GPU work end by a clock, or at a fixed rate.

    However long each was: those of a fixed length end at a rate, too, and so are told by their
    lengths, but where sleeps have nearly all time they are the rate. A rate that is lost for a
    moment, as when a camera starts anew, is one all the same.
    """
    calls = case.work.near(thread, *waits).by_class[cause]
    waited = intervals.union(calls.starts, calls.ends)
    place = np.searchsorted(np.sort(gaps.start), waits[0], side="right")
    ends = waits[1][np.flatnonzero(np.diff(place, append=-1))]
    if len(ends) <= FEWEST_TICKS:
        return False
    lasted = intervals.covered(waited, np.append(waits[0][:1], ends[:-1]), ends)
    long = 2 * lasted > np.quantile(lasted, _MOST)
    ends, lasted = ends[long], lasted[long]
    if len(ends) <= FEWEST_TICKS:
        return False
    period = np.diff(ends)
    regular = spread(period) <= REGULAR[cause] * float(np.median(period))
    if (regular and 2 * spread(period) < spread(lasted)) or on_a_grid(ends, lasted):
        return True
    if cause is not Cause.SLEEP:
        return at_usual_rate(ends, lasted)
    return regular and intervals.total(*waits) >= _NEARLY_ALL * (ends[-1] - waits[0][0])


def begins_by_a_clock(gaps: Gaps) -> bool:
    """Whether what ends some gaps of a GPU begins on a grid of times, at a rate of displays.

    So it is known where no call shows what the host waits for.
    """
    order = np.argsort(gaps.end, kind="stable")
    ends, idle = gaps.end[order], gaps.idle[order]
    long = 2 * idle > np.quantile(idle, _MOST)
    ends, idle = ends[long], idle[long]
    return len(ends) > FEWEST_TICKS and on_a_grid(ends, idle) and at_usual_rate(ends, idle, 0)


def on_a_grid(ends: Int64, lasted: Int64) -> bool:
    """Whether waits end about evenly on a grid of times, some of which may pass without one.

    However long each is. Who works drifts: of rounds that take as long as they take, eight together
    deviate nearly three times as much as one does; on a grid they deviate alike.
    """
    usual = float(np.median(np.diff(ends)))
    one, eight = (spread(_beside_ticks(ends, usual, rounds)) for rounds in (1, _ROUNDS))
    known = len(ends) >= (_ENOUGH + 1) * _ROUNDS and one <= _EVEN * usual
    return known and 2 * spread(lasted) > one and 2 * eight < 3 * one


def _beside_ticks(ends: Int64, period: float, rounds: int) -> Float64:
    """How far the time of so many rounds is from the nearest multiple of a period."""
    took = ends[rounds:] - ends[:-rounds]
    return np.asarray(took - period * np.round(took / max(period, 1)), np.float64)


def at_usual_rate(ends: Int64, lasted: Int64, waits: float = _LITTLE_WORK) -> bool:
    """Whether waits, with little work between, end about evenly at a rate that devices have.

    Waits that are of such a length themselves end by it.
    """
    period = np.diff(ends)
    usual, deviates, length = float(np.median(period)), spread(period), float(np.median(lasted))
    if not deviates <= _EVEN * usual > 0 or length < waits * usual:
        return False
    mean = float(period[np.abs(period - usual) <= 3 * deviates].mean())
    near = min(_ODD, max(_EXACT, 3 * deviates / usual / len(period) ** 0.5))
    return bool(_beside_rate(mean) <= min(near, _beside_rate(length)))


def _beside_rate(ns: float) -> float:
    """How far a period is from the nearest of the rates that devices and timers have."""
    return float(np.abs(ns * _RATES / 1e9 - 1).min())


def spread(values: Int64 | Float64) -> float:
    """Deviation from the median of all but the third that deviate most."""
    return float(np.quantile(np.abs(values - np.median(values)), _MOST)) if len(values) else 0.0
