"""Steps of calls and the step window: a trainer's line is printed after the step and closes it.

The AWK kit that this replaces took the printed number as a state for the lines that follow, and so
held the collectives of the *next* step; ``legacy`` does the same, for parity.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from nsys_tui.logs.figures import Spread, mean_of, spread_of, weighted_spread
from nsys_tui.logs.nccl.calls import NO_STEP
from nsys_tui.logs.result import LogResult, Window
from nsys_tui.logs.trainers.step_lines import PER_GPU, UNKNOWN, StepLine, distinct
from nsys_tui.model.arrays import Int64

LEGACY_STEPS: Final = (45, 50)
"""The kit's window: 44 < state <= 50."""
LEGACY_AVERAGE: Final = (45, 49)
"""The steps that the kit's average takes."""


@dataclass(frozen=True, eq=False)
class Clock:
    """Step lines of one file as arrays, by line."""

    lines: Int64
    """Last line that belongs to each step."""
    printed: Int64
    """Line that shows the number."""
    steps: Int64

    @classmethod
    def of(cls, steps: Sequence[StepLine], file: int, epoch: int | None = None) -> Clock:
        """The step lines of a file; those of another epoch close their steps and own none."""
        mine = [one for one in steps if one.file == file]
        owned = [epoch is None or one.epoch in (epoch, NO_STEP) for one in mine]
        return cls(
            np.array([one.last_line for one in mine], dtype=np.int64),
            np.array([one.line for one in mine], dtype=np.int64),
            np.array(
                [one.step if owns else NO_STEP for one, owns in zip(mine, owned, strict=True)],
                dtype=np.int64,
            ),
        )

    def owner(self, lines: Int64) -> Int64:
        """Step that each line belongs to: the next step line's; ``NO_STEP`` after the last."""
        steps = np.append(self.steps, NO_STEP)
        return steps[np.searchsorted(self.lines, lines, side="left")]

    def state(self, lines: Int64) -> Int64:
        """The kit's state at each line: the number printed last; ``NO_STEP`` before the first."""
        steps = np.concatenate(([NO_STEP], self.steps))
        return steps[np.searchsorted(self.printed, lines, side="right")]

    def lines_inside(self, first: int, last: int, total: int, *, legacy: bool) -> int:
        """Lines of the file whose owner (or state) is in the window."""
        bounds = np.append(self.printed, total + 1) if legacy else np.append(0, self.lines)
        return int(np.diff(bounds)[(self.steps >= first) & (self.steps <= last)].sum())


def make_window(
    clocks: Sequence[Clock], totals: Sequence[int], first: int, last: int, *, legacy: bool
) -> Window:
    """Describes a window over files.

    Args:
        clocks: step lines of each file.
        totals: lines of each file.
        first: first step.
        last: last step, included.
        legacy: whether to follow the AWK kit.
    """
    lines = 0
    printed: set[int] = set()
    held: set[int] = set()
    for clock, total in zip(clocks, totals, strict=True):
        lines += clock.lines_inside(first, last, total, legacy=legacy)
        inside = (clock.steps >= first) & (clock.steps <= last)
        printed.update(clock.steps[inside].tolist())
        owning = np.append(clock.steps[1:], NO_STEP) if legacy else clock.steps
        held.update(owning[inside].tolist())
    held.discard(NO_STEP)
    return Window(first, last, legacy, lines, tuple(sorted(printed)), tuple(sorted(held)))


def carry_steps(step: Int64, group: Int64, op_count: Int64) -> Int64:
    """Gives calls of files without step lines the step of their partners on other ranks.

    Calls of one communicator group with one opCount belong together, so they are of one step.

    Args:
        step: step of each call, ``NO_STEP`` where it is to be found.
        group: communicator group of each call, -1 where it is not certain.
        op_count: NCCL's launch counter of each call.

    Returns:
        The steps, still ``NO_STEP`` where no partner is known or partners disagree.
    """
    known = (step != NO_STEP) & (group >= 0)
    wanted = (step == NO_STEP) & (group >= 0)
    if not known.any() or not wanted.any():
        return step
    counts, count_code = np.unique(op_count, return_inverse=True)
    _, code = np.unique(group * len(counts) + count_code, return_inverse=True)
    top = np.full(code.max() + 1, NO_STEP, dtype=np.int64)
    bottom = np.full(code.max() + 1, np.iinfo(np.int64).max, dtype=np.int64)
    np.maximum.at(top, code[known], step[known])
    np.minimum.at(bottom, code[known], step[known])
    agreed = np.where(top == bottom, top, NO_STEP)
    result = step.copy()
    result[wanted] = agreed[code[wanted]]
    return result


_FEWEST: Final = 3
"""Timed lines below which nothing is left out as warm-up."""
_ENOUGH: Final = 8
"""Lines from which the times themselves tell how long the warm-up lasts."""


@dataclass(frozen=True)
class Average:
    """Figures of the step lines of one trainer, or of one epoch of it."""

    format: str
    epoch: int
    """-1 over all."""
    steps: int
    """Distinct steps that have a line."""
    lines: int
    """Lines, with those that other processes printed of the same steps."""
    first: int
    last: int
    warmup: tuple[int, ...]
    """Steps whose lines are left out of the figures."""
    step: Spread | None
    """ns, without the warm-up as all spreads."""
    flops: Spread | None
    """TFLOP/s per GPU."""
    tokens: Spread | None
    samples: Spread | None
    estimated: bool
    """TFLOPs were worked out by us."""
    approximate: bool
    """Times were made of stamps or of bars of whole seconds, not printed."""
    step_ns: Fraction | None
    """Mean step time over all lines that have one, warm-up too."""
    timed: int
    """Lines that have a step time."""
    tflops: Fraction | None
    """Mean TFLOPs over all lines that have them."""
    rated: int
    """Lines that have TFLOPs."""

    @property
    def per_gpu(self) -> tuple[str, ...]:
        """Those of ``tokens`` and ``samples`` that are of one GPU; others are of the whole job."""
        return PER_GPU.get(self.format, ())


def average_range(result: LogResult) -> tuple[int | None, int | None]:
    """Steps that averages are taken over: the window, or what the AWK kit took in legacy mode."""
    window = result.window
    if window is None:
        return None, None
    if window.legacy and (window.first, window.last) == LEGACY_STEPS:
        return LEGACY_AVERAGE
    return window.first, window.last


def average_of(result: LogResult) -> Average | None:
    """Figures of the trainer whose step lines own the window."""
    return _average(result, result.trainer)


def all_averages(result: LogResult) -> list[Average]:
    """One for each trainer found."""
    formats = dict.fromkeys(step.format for step in result.step_lines)
    averages = [_average(result, name) for name in formats]
    return [one for one in averages if one]


def epoch_averages(result: LogResult) -> list[Average]:
    """One for each epoch of each trainer that prints more than one."""
    averages = []
    for name in dict.fromkeys(step.format for step in result.step_lines):
        epochs = sorted({step.epoch for step in result.step_lines if step.format == name} - {-1})
        if len(epochs) > 1:
            averages += [_average(result, name, epoch) for epoch in epochs]
    return [one for one in averages if one]


def _average(result: LogResult, name: str, epoch: int = UNKNOWN) -> Average | None:
    first, last = average_range(result)
    mine = [one for one in result.step_lines if one.format == name]
    every = distinct(mine)
    warm = warmup(every, result.warmup)
    chosen = [
        one
        for one in every
        if (first is None or one.step >= first)
        and (last is None or one.step <= last)
        and epoch in (UNKNOWN, one.epoch)
    ]
    if not chosen:
        return None
    kept = [one for one in chosen if one not in warm]
    numbers = [one.step for one in chosen]
    keys = {(one.epoch, one.step) for one in chosen}
    return Average(
        name,
        epoch,
        len(chosen),
        sum((one.epoch, one.step) in keys for one in mine),
        min(numbers),
        max(numbers),
        tuple(one.step for one in chosen if one in warm),
        weighted_spread([(one.step_ns, one.over) for one in kept]),
        spread_of([one.tflops for one in kept]),
        spread_of([one.tokens_per_s for one in kept]),
        spread_of([one.samples_per_s for one in kept]),
        any(one.estimated for one in kept),
        any(one.approximate for one in kept),
        mean_of([(one.step_ns, one.over) for one in chosen]),
        sum(one.step_ns is not None for one in chosen),
        mean_of([(one.tflops, 1) for one in chosen]),
        sum(one.tflops is not None for one in chosen),
    )


def warmup(steps: Sequence[StepLine], given: int | None) -> list[StepLine]:
    """Lines of a run's warm-up.

    The first line of a run counts as one, if the log shows that the run starts there; so do those
    that follow and are far from the median, where enough lines are there to tell. A trainer whose
    lines stand for many steps each has no line of a warm-up alone.

    Args:
        steps: distinct steps of one trainer, in order.
        given: number of lines to leave out, if the user says so.
    """
    if given is not None:
        return list(steps[:given])
    times = sorted(one.step_ns for one in steps if one.step_ns is not None)
    if len(times) < _FEWEST or any(one.over > 1 for one in steps[:2]):
        return []
    count = int(_starts(steps))
    if len(times) >= _ENOUGH:
        typical = times[len(times) // 2]
        off = itertools.takewhile(
            lambda one: one.step_ns is None or not typical / 2 <= one.step_ns <= 1.5 * typical,
            steps[: len(steps) // 4],
        )
        timed = (i for i, one in enumerate(off, 1) if one.step_ns is not None)
        count = max([count, *timed])
    return list(steps[:count])


def _starts(steps: Sequence[StepLine]) -> bool:
    """Whether the first line is the run's first: step 0 or 1, or one interval of lines."""
    first, second = steps[0].step, steps[1].step
    return 0 <= first <= max(1, second - first)
