"""How often the training loop of a simulated run is repeated, and how far each copy is shifted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from nsys_tui.demo.events import KERNEL, Phase, Trace

_MARGIN_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Tiling:
    """``copies`` of the loop, ``period`` ns apart; one copy is the run as it was simulated."""

    copies: int
    period: int
    counts: int
    """Correlation ids one copy uses."""
    steps: int

    def shift(self, number: int) -> dict[str, int]:
        """What is added to times, ids and step numbers of copy ``number``."""
        return {
            "time": number * self.period,
            "count": number * self.counts,
            "step": number * self.steps,
        }


def tiling_for(trace: Trace, kernels: int | None) -> Tiling:
    """Repeats the loop until the report has about ``kernels`` kernels (at least one copy).

    The period leaves room for everything that belongs to the loop, so that copies never overlap
    and every figure of a device is the simulated one times the number of copies.
    """
    per_copy = sum(o.kind == KERNEL and o.phase is Phase.LOOP for o in trace.operations)
    copies = max(1, round((kernels or 0) / per_copy)) if per_copy else 1
    timed: Iterable[Any] = chain(trace.operations, trace.calls, trace.os_calls, trace.ranges)
    times = [(e.start, e.end or e.start) for e in timed if e.phase is Phase.LOOP]
    period = max(end for _, end in times) - min(start for start, _ in times) + _MARGIN_NS
    ids = [c.correlation for c in trace.calls]
    return Tiling(copies, period, max(ids) - min(ids) + 1, trace.steps)
