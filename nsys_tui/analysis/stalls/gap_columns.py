"""Idle gaps as columns: where each lies, what came before and after it, and why it was."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_tui.analysis.stalls.causes import SHARES, Cause

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Bool, Int64, UInt8


class Edge(IntEnum):
    """Where a gap lies among the operations of its device."""

    INNER = 0
    HEAD = 1
    TAIL = 2
    RUN = 3
    """Between the operations of a launch-bound run, all of its gaps in one row."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Idle gaps, one value each; rows of operations and calls are rows of the report's sets.

    A launch-bound run is one row, from its first operation to its last.
    """

    place: NDArray[np.int16]
    """Place of the device in ``Report.devices``."""
    start: Int64
    """Start of the whole gap or run, ns."""
    end: Int64
    idle: Int64
    """Idle time inside the window."""
    edge: UInt8
    """``Edge``: before the first operation, after the last, between two, or in a run."""
    previous: Int64
    """Row of the operation that ends where the gap starts, -1 before the first."""
    next: Int64
    """Row of the operation that ends the gap, -1 after the last; of a run, its first one."""
    call: Int64
    """Row in ``Report.api`` of the call that launched ``next``, -1 where unknown."""
    caller: Int64
    """Place in ``Report.api.threads`` of the thread that ``next`` waited for, -1 where unknown."""
    cause: UInt8
    """``Cause``."""
    shares: Int64
    """Nanoseconds by cause, int64 [n, len(SHARES)]; zeros where the cause is no sharing one."""
    what: Int64
    """Name code of what took longest within the cause, such as the sync call; -1 for none."""
    range: Int64
    """Name code of the innermost NVTX range in which the host spent most of it, or in which a run
    begins; -1 for none."""
    count: Int64
    """Gaps that the row stands for: 1, or those of the run."""
    run: Int64
    """Place in ``Stalls.runs``, -1 for a gap."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def outside(self) -> Bool:
        """Which lie before the first operation or after the last: no loss of the work."""
        return np.isin(self.edge, (Edge.HEAD, Edge.TAIL))

    def take(self, index: Any) -> Gaps:
        """Some of the gaps, by mask or row numbers."""
        return Gaps(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def beside(self, *others: Gaps) -> Gaps:
        """In one set: longest idle first, of equals the earlier; head and tail last."""
        names, parts = [field.name for field in fields(self)], (self, *others)
        joined = Gaps(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})
        return joined.take(np.lexsort((joined.place, joined.start, -joined.idle, joined.outside)))


def unexplained(edge: UInt8, **columns: Any) -> Gaps:
    """Gaps of which only the place is known, not yet the cause."""
    blank = np.full(len(edge), -1, np.int64)
    shares = np.zeros((len(edge), len(SHARES)), np.int64)
    cause, count = np.full(len(edge), Cause.UNKNOWN, np.uint8), np.ones(len(edge), np.int64)
    others = {"shares": shares, "what": blank, "range": blank, "count": count, "run": blank}
    return Gaps(edge=edge, cause=cause, **{"previous": blank} | others | columns)
