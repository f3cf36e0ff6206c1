"""Opening: which part of a trace is shown until the user asks for another."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.iterations.steps import OUTLIER_Z, Iterations, Rule
from nsys_tui.state import Window

SHORT_WORK: Final = 3
"""GPU work that takes less than this part of the trace is what is shown at first."""
ROOM: Final = 20
"""What is shown leaves a part this small of itself free at either side."""
MANY: Final = 12
"""Steps up to which all of them are shown."""
SHOWN: Final = 5
"""Steps that are shown of more."""
BELIEVED: Final = (Rule.ASKED, Rule.NAME, Rule.PATTERN)
"""How steps must be known; a range that repeats may be a part of one."""


class FewSteps(NamedTuple):
    """Some usual steps that stand for many."""

    start: int
    end: int
    first: int
    """Number of the first one, from 1 on."""
    of: int
    """How many steps there are."""

    def __str__(self) -> str:
        """``steps 3-7 of 80``."""
        return f"steps {self.first:,}-{self.first + SHOWN - 1:,} of {self.of:,}"


def few_steps(steps: Iterations) -> FewSteps | None:
    """The first run of usual steps after the warm-up; None where all steps can be shown."""
    if len(steps) <= MANY or steps.rule not in BELIEVED:
        return None
    usual = steps.usual & (np.abs(steps.z) <= OUTLIER_Z)
    runs = np.convolve(usual[1:], np.ones(SHOWN, np.intp), "valid")
    first = 1 + int(np.argmax(runs))
    start, end = int(steps.start[first]), int(steps.end[first + SHOWN - 1])
    return FewSteps(start, end, first + 1, len(steps))


def opening(
    span: tuple[int, int] | None, few: FewSteps | None, extent: tuple[int, int], columns: int
) -> Window | None:
    """A few of many steps, else GPU work that is a small part of the trace; None for all of it.

    Args:
        span: begin and end of the work, ns; None where there is none, or not all of it is read.
        few: steps that stand for all.
        extent: of the trace, ns.
        columns: cells that show it, which also is the least room in ns.
    """
    if few is not None:
        start, end = few.start, few.end
    elif span is None or (span[1] - span[0]) * SHORT_WORK >= extent[1] - extent[0]:
        return None
    else:
        start, end = span
    room = max((end - start) // ROOM, columns)
    return Window(max(start - room, extent[0]), min(end + room, extent[1]))
