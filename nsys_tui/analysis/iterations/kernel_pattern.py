"""Kernels that repeat: a period in the names of the busiest stream, launched alike each time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import sums
from nsys_tui.model.report import Report

ALIKE: Final = 0.25
"""Share of the median by which a step by pattern may differ from it."""
MOSTLY: Final = 0.75
"""Share of repeats that have to be alike: else they are a loop in a program, not its steps."""
SAME: Final = 0.9
"""Share of the launches of repeats that come from one thread, by the calls of the one before."""
UNEVEN: Final = 1.5
"""Times the usual time between two launches of a repeat that its longest lasts at least."""
FEWEST: Final = 3
COVERED: Final = 0.5
EQUALITY: Final = 0.9
_EXACT_SEARCH: Final = 4096
_PATTERN_LIMIT: Final = 1 << 20


class Repeats(NamedTuple):
    """Repeats of a pattern of kernels, in time order."""

    period: int
    """Kernels of each."""
    start: Int64
    end: Int64
    process: int
    """globalPid that they belong to."""


def repeated(report: Report, scope: Scope) -> Repeats | None:
    """Repeats of the busiest stream's kernel names."""
    ops = report.operations
    rows = row_numbers(ops, scope.operations(ops))
    rows = rows[ops.kind[rows] == OpKind.KERNEL]
    if not len(rows):
        return None
    busy = sums(ops.stream[rows], ops.durations(rows), len(ops.streams))
    rows = rows[ops.stream[rows] == int(np.argmax(busy))]
    period = smallest_period(ops.name[rows[:_PATTERN_LIMIT]])
    if period is None:
        return None
    heads = np.arange(0, len(rows) - period + 1, period)
    starts = ops.start[rows[heads]]
    ends = ops.end[rows[heads + period - 1]]
    if not (are_alike(np.diff(starts)) and is_launched_alike(report, rows, period)):
        return None
    span = report.span
    if span is None or int(ends[-1] - starts[0]) < COVERED * (span[1] - span[0]):
        return None
    return Repeats(period, starts, ends, int(ops.processes[ops.process[rows[0]]]))


def smallest_period(names: Integers) -> int | None:
    """The smallest shift at which at least 90 % of a sequence equals itself, with 3 repeats.

    A sequence that equals itself at a shift of one is a single kernel over and over: no period.

    Args:
        names: name codes in time order.

    Returns:
        the period in events, or None.
    """
    longest = len(names) // FEWEST
    for shift in _candidate_shifts(names, longest):
        if float((names[:-shift] == names[shift:]).mean()) >= EQUALITY:
            return int(shift) if shift > 1 else None
    return None


def _candidate_shifts(names: Integers, longest: int) -> Indices:
    """Shifts worth an exact look, ascending.

    For long sequences the share of equal pairs at every shift is estimated at once: each name gets
    a random sign, and the mean product of a sequence with its shifted self (by Fourier transform)
    is that share up to noise of order 1 / sqrt(n).
    """
    if len(names) <= _EXACT_SEARCH:
        return np.arange(1, longest + 1)
    random = np.random.default_rng(0)
    size = 1 << (2 * len(names) - 1).bit_length()
    total = np.zeros(longest + 1)
    draws = 4
    for _ in range(draws):
        signs = random.choice(np.array([-1.0, 1.0]), int(names.max()) + 1)[names]
        power = np.abs(np.fft.rfft(signs, size)) ** 2
        total += np.fft.irfft(power, size)[: longest + 1]
    equal = total / draws / (len(names) - np.arange(longest + 1))
    slack = 8 / np.sqrt(len(names) * draws)
    return np.flatnonzero(equal[1:] >= EQUALITY - slack) + 1


def are_alike(values: Int64) -> bool:
    """Whether most of some values are near their median."""
    middle = float(np.median(values))
    return float((np.abs(values - middle) <= ALIKE * middle).mean()) >= MOSTLY


def is_launched_alike(report: Report, rows: Indices, period: int) -> bool:
    """Whether the host launches each repeat of a pattern in the same way.

    One thread launches it, by the same calls in the same order, and makes about as many calls from
    one repeat to the next. True where the launching calls were not recorded.

    Args:
        report: the report.
        rows: kernels of the pattern, in time order.
        period: kernels of a repeat.
    """
    calls = report.calls[rows]
    if not len(report.api) or 2 * int((calls >= 0).sum()) < len(calls):
        return True
    api, known = report.api, calls >= 0
    thread = np.where(known, api.thread[calls], -1)
    usual = int(np.bincount(thread[known]).argmax())
    name = np.where(known, api.name[calls], -1)
    same = (name[:-period] == name[period:]).mean() if len(name) > period else 1.0
    if min(float((thread == usual).mean()), float(same)) < SAME:
        return False
    mine = np.flatnonzero((api.thread == usual) & api.real)
    position = np.searchsorted(api.start[mine], api.start[calls])
    whole = bool(known.all()) and _is_whole(report.operations.name[rows], position, period)
    if not (whole or _shows_bounds(api.start[calls], period)):
        return False
    between = np.diff(position[::period][known[::period]])
    return bool((between >= 0).mean() >= SAME) and are_alike(between) if len(between) else True


def _is_whole(names: Integers, places: Indices, period: int) -> bool:
    """Whether repeats are all that is launched, and other calls come between two of them alone.

    Args:
        names: of the kernels, in time order.
        places: of their launches among the calls of their thread.
        period: kernels of a repeat.
    """
    exact = not len(names) % period and bool((names[:-period] == names[period:]).all())
    return exact and not ((np.flatnonzero(np.diff(places) > 1) + 1) % period).any()


def _shows_bounds(launched: Int64, period: int) -> bool:
    """Whether a repeat's launches come unevenly: from an even stream of them nobody tells steps."""
    gaps = np.diff(launched)
    gaps = gaps[: len(gaps) // period * period].reshape(-1, period)
    usual = np.sort(np.median(gaps, axis=0))
    return bool(usual[-1] >= UNEVEN * usual[(period - 1) // 2])
