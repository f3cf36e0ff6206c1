"""Steps of calls and the step window: a trainer's line is printed after the step and closes it.

The AWK kit that this replaces took the printed number as a state for the lines that follow, and so
held the collectives of the *next* step; ``legacy`` does the same, for parity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.logs.calls import NO_STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nsys_tui.logs.trainers import StepLine

LEGACY_STEPS: Final = (45, 50)
"""The kit's window: 44 < state <= 50."""
LEGACY_AVERAGE: Final = (45, 49)
"""The steps that the kit's average takes."""


@dataclass(frozen=True)
class Window:
    """A window over steps, both ends included."""

    first: int
    last: int
    legacy: bool
    lines: int
    """Lines of text inside, over all files."""
    step_lines: tuple[int, ...]
    """Steps whose line is printed inside."""
    steps: tuple[int, ...]
    """Steps whose collectives it really holds; the step after the last printed one is included."""


@dataclass(frozen=True, eq=False)
class Clock:
    """Step lines of one file as arrays, by line."""

    lines: NDArray[np.int64]
    """Last line that belongs to each step."""
    printed: NDArray[np.int64]
    """Line that shows the number."""
    steps: NDArray[np.int64]

    @classmethod
    def of(cls, steps: Sequence[StepLine], file: int, epoch: int | None = None) -> Clock:
        """The step lines of a file; those of another epoch close their steps and own none."""
        mine = [one for one in steps if one.file == file]
        owned = [epoch is None or one.epoch in (epoch, NO_STEP) for one in mine]
        return cls(
            np.array([one.last_line for one in mine], dtype=np.int64),
            np.array([one.line for one in mine], dtype=np.int64),
            np.array(
                [one.step if own else NO_STEP for one, own in zip(mine, owned, strict=True)],
                dtype=np.int64,
            ),
        )

    def owner(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Step that each line belongs to: the next step line's; ``NO_STEP`` after the last."""
        steps = np.append(self.steps, NO_STEP)
        return steps[np.searchsorted(self.lines, lines, side="left")]

    def state(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """The kit's state at each line: the number printed last; ``NO_STEP`` before the first."""
        steps = np.concatenate(([NO_STEP], self.steps))
        return steps[np.searchsorted(self.printed, lines, side="right")]

    def lines_inside(self, first: int, last: int, total: int, *, legacy: bool) -> int:
        """Lines of the file whose owner (or state) is in the window."""
        if legacy:
            bounds = np.append(self.printed, total + 1)
            lengths, kept = np.diff(bounds), self.steps
        else:
            lengths, kept = np.diff(np.concatenate(([0], self.lines))), self.steps
        return int(lengths[(kept >= first) & (kept <= last)].sum())


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
        if legacy:
            following = np.append(clock.steps[1:], NO_STEP)[inside]
            held.update(step for step in following.tolist() if step != NO_STEP)
        else:
            held.update(clock.steps[inside].tolist())
    return Window(first, last, legacy, lines, tuple(sorted(printed)), tuple(sorted(held)))


def carry_steps(
    step: NDArray[np.int64], group: NDArray[np.int64], op_count: NDArray[np.int64]
) -> NDArray[np.int64]:
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
