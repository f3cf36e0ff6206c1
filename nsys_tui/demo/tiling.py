"""How often the training loop of a simulated run is repeated, and how far each copy is shifted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_tui.demo.events import KERNEL, Phase

if TYPE_CHECKING:
    from nsys_tui.demo.events import Trace

_MARGIN_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Tiling:
    """``copies`` of the loop, ``period`` ns apart; one copy is the run as it was simulated."""

    copies: int
    period: int
    counts: int
    """Correlation ids one copy uses."""
    steps: int
    kernels: int
    """Kernels in all."""

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
    loop = [o for o in trace.operations if o.phase is Phase.LOOP]
    per_copy = sum(o.kind == KERNEL for o in loop)
    copies = max(1, round((kernels or 0) / per_copy)) if per_copy else 1
    times = [(o.start, o.end) for o in loop]
    times += [(c.start, c.end) for c in trace.calls if c.phase is Phase.LOOP]
    times += [(c.start, c.end) for c in trace.os_calls if c.phase is Phase.LOOP]
    times += [(r.start, r.end or r.start) for r in trace.ranges if r.phase is Phase.LOOP]
    period = max(end for _, end in times) - min(start for start, _ in times) + _MARGIN_NS
    ids = [c.correlation for c in trace.calls]
    others = sum(o.kind == KERNEL for o in trace.operations) - per_copy
    total = others + copies * per_copy
    return Tiling(copies, period, max(ids) - min(ids) + 1, trace.steps, total)
