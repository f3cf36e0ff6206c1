"""Kernels that repeat: a period in the names of the busiest stream, launched alike each time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.model.arrays import Float64, Indices, Int64, Integers
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
AS_WELL: Final = 0.01
"""Share by which a sequence may equal itself worse than at its best shift."""
_AS_LONG: Final = 0.9
"""Share of the longest pause of a repeat that another one lasts to be taken for its end, too."""
_EXACT_SEARCH: Final = 4096
_DRAWS: Final = 4
_PATTERN_LIMIT: Final = 1 << 20


class Repeats(NamedTuple):
    """Repeats of a pattern of kernels, in time order."""

    name: str
    """What repeats: ``250 kernels``."""
    start: Int64
    end: Int64
    process: int
    """globalPid that they belong to."""


def repeated(report: Report, scope: Scope) -> Repeats | None:
    """Repeats of the names of the busiest stream's kernels and graphs."""
    ops = report.operations
    rows = row_numbers(ops, scope.operations(ops))
    rows = rows[(ops.kind[rows] == OpKind.KERNEL) | (ops.kind[rows] == OpKind.GRAPH)]
    if not len(rows):
        return None
    busy = sums(ops.stream[rows], ops.durations(rows), len(ops.streams))
    rows = rows[ops.stream[rows] == int(np.argmax(busy))]
    period = smallest_period(ops.name[rows[:_PATTERN_LIMIT]])
    graphs = bool((ops.kind[rows] == OpKind.GRAPH).any())
    if period is None or (period == 1 and not graphs):
        return None
    whole = _whole_turn(report, rows, period)
    period = whole or period
    begin = 0 if whole else _begin(report, rows, period)
    if begin is None:
        return None
    rows = rows[begin:]
    heads = np.arange(0, len(rows) - period + 1, period)
    starts = ops.start[rows[heads]]
    ends = ops.end[rows[heads + period - 1]]
    if not (are_alike(np.diff(starts)) and (whole or is_launched_alike(report, rows, period))):
        return None
    span = report.span
    if span is None or int(ends[-1] - starts[0]) < COVERED * (span[1] - span[0]):
        return None
    what = "kernels and graphs" if graphs else "kernels"
    process = int(ops.processes[ops.process[rows[0]]])
    return Repeats("graph" if period == 1 else f"{period} {what}", starts, ends, process)


def _begin(report: Report, rows: Indices, period: int) -> int | None:
    """The first kernel of a whole repeat, after a pause of the host; None for an even stream.

    A capture that begins amid a step or with set-up has other kernels before. The first where the
    launching calls were not recorded.
    """
    calls = report.calls[rows]
    if period == 1 or not _are_known(calls):
        return 0
    gaps = np.diff(report.api.start[calls])
    gaps = gaps[: len(gaps) // period * period].reshape(-1, period)
    pauses = np.median(gaps, axis=0)
    if pauses.max() < UNEVEN * np.sort(pauses)[(period - 1) // 2]:
        return None
    ends = np.flatnonzero(pauses >= _AS_LONG * pauses.max())
    begin = int(ends[0] + 1) % period if ends[-1] < period - 1 else 0
    return begin if len(rows) - begin >= FEWEST * period else 0


def _whole_turn(report: Report, rows: Indices, period: int) -> int:
    """Kernels of a turn where repeats are all that is launched, and other calls end turns alone.

    What is launched without another call between, as layers of one request or by one graph, is one
    turn, however often it repeats. 0 where there is no such turn.
    """
    api, calls, names = report.api, report.calls[rows], report.operations.name[rows]
    if len(rows) % period or (calls < 0).any() or (names[:-period] != names[period:]).any():
        return 0
    mine = np.isin(api.thread, np.unique(api.thread[calls])) & api.real
    places = np.searchsorted(api.start[mine], api.start[calls])
    others = np.flatnonzero(np.diff(places) > 1) + 1
    turn = int(np.gcd.reduce(others, initial=0))
    return 0 if not turn or turn % period or len(rows) % turn or len(rows) < FEWEST * turn else turn


def _are_known(calls: Integers) -> bool:
    return len(calls) > 0 and 2 * int((calls >= 0).sum()) >= len(calls)


def smallest_period(names: Integers) -> int | None:
    """The smallest shift at which a sequence equals itself about as well as at any.

    At least 90 % have to be equal, and 3 repeats: layers repeat, and steps of many layers repeat
    better.

    Args:
        names: name codes in time order.

    Returns:
        the period in events, or None.
    """
    shifts, estimates = _shifts(names, len(names) // FEWEST)
    if not len(shifts):
        return None
    needed = max(EQUALITY, _equality(names, int(shifts[np.argmax(estimates)])) - AS_WELL)
    slack = 0.0 if len(names) <= _EXACT_SEARCH else 8 / np.sqrt(len(names) * _DRAWS)
    near = shifts[estimates >= needed - slack].tolist()
    return next((shift for shift in near if _equality(names, shift) >= needed), None)


def _equality(names: Integers, shift: int) -> float:
    return float((names[:-shift] == names[shift:]).mean())


def _shifts(names: Integers, longest: int) -> tuple[Indices, Float64]:
    """All shifts, with the share of a sequence that equals itself at each.

    For long sequences it is estimated at all shifts at once: each name gets a random sign, and the
    mean product of a sequence with its shifted self (by Fourier transform) is that share up to
    noise of order 1 / sqrt(n).
    """
    shifts = np.arange(1, longest + 1)
    if len(names) <= _EXACT_SEARCH:
        return shifts, np.array([_equality(names, shift) for shift in shifts.tolist()])
    random = np.random.default_rng(0)
    size = 1 << (2 * len(names) - 1).bit_length()
    total = np.zeros(longest + 1)
    for _ in range(_DRAWS):
        signs = random.choice(np.array([-1.0, 1.0]), int(names.max()) + 1)[names]
        power = np.abs(np.fft.rfft(signs, size)) ** 2
        total += np.fft.irfft(power, size)[: longest + 1]
    return shifts, total[1:] / _DRAWS / (len(names) - shifts)


def are_alike(values: Int64) -> bool:
    """Whether most of some values are near their median."""
    middle = float(np.median(values))
    return float((np.abs(values - middle) <= ALIKE * middle).mean()) >= MOSTLY


def is_launched_alike(report: Report, rows: Indices, period: int) -> bool:
    """Whether the host launches each repeat of a pattern in the same way.

    Each of its kernels is launched by the same thread and call as the one a repeat before; from one
    repeat to the next about as many calls are made, of which some launch no kernel. True where the
    launching calls were not recorded.

    Args:
        report: the report.
        rows: kernels of the pattern, in time order.
        period: kernels of a repeat.
    """
    calls = report.calls[rows]
    if not _are_known(calls):
        return True
    api, known = report.api, calls >= 0
    thread, name = (np.where(known, of[calls], -1) for of in (api.thread, api.name))
    again = (thread[:-period] == thread[period:]) & (name[:-period] == name[period:])
    if len(name) > period and float(again.mean()) < SAME:
        return False
    begin = api.start[calls[::period][known[::period]]]
    mine = np.isin(api.thread, np.unique(thread[known])) & api.real
    launching = np.zeros(len(api), np.bool_)
    launching[calls[known]] = True
    between, quiet = (
        np.diff(np.searchsorted(api.start[some], begin)) for some in (mine, mine & ~launching)
    )
    if not len(between):
        return True
    regular = (between >= 0).mean() >= SAME and are_alike(between)
    return bool(regular and np.median(quiet) >= 1)
