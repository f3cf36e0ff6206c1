"""How far the communicators came: their first and last calls, in each block of a log and in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.logs.calls import rows_by
from nsys_tui.logs.grammar import POINT_TO_POINT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.logs.call_log import CallLog
    from nsys_tui.logs.calls import Calls


@dataclass(frozen=True, slots=True)
class Reach:
    """Calls of one communicator."""

    before: int
    """Calls before these: in a block, those of the blocks before it."""
    number: int
    first: int
    """opCount of the first one."""
    last: int
    low: int
    """Least opCount."""
    high: int
    end: tuple[int, int]
    """Block and row of the last one."""

    def keys(self, by_order: bool) -> tuple[int, int]:
        """The least and the greatest opCount, or the places of the first and the last call."""
        return (self.before, self.before + self.number - 1) if by_order else (self.low, self.high)

    def ends(self, by_order: bool) -> tuple[int, int]:
        """opCount of the first and of the last call, or their places."""
        return self.keys(True) if by_order else (self.first, self.last)


def reaches(
    log: CallLog, kinds: NDArray[np.bool_]
) -> tuple[dict[int, Reach], list[dict[int, Reach]]]:
    """Reach of each communicator with calls of some kinds: over the log, and in each block."""
    whole: dict[int, Reach] = {}
    parts = []
    for place, block in enumerate(log.blocks):
        kind, op_count = block.column("kind"), block.column("op_count")
        mine = np.flatnonzero(kinds[kind])
        part = {}
        for one, at in rows_by(log.by_kind.communicator[kind[mine]]):
            counts, known = op_count[mine[at]], whole.get(one)
            first, last, low, high = map(int, (counts[0], counts[-1], counts.min(), counts.max()))
            before, end = known.number if known else 0, (place, int(mine[at[-1]]))
            own = part[one] = Reach(before, len(at), first, last, low, high, end)
            whole[one] = own
            if known:
                number, low, high = before + len(at), min(low, known.low), max(high, known.high)
                whole[one] = Reach(0, number, known.first, last, low, high, end)
        parts.append(part)
    return whole, parts


def point_to_point(calls: Calls) -> NDArray[np.bool_]:
    """Which calls are those of two ranks."""
    codes = [i for i, op in enumerate(calls.ops) if op in POINT_TO_POINT]
    return np.isin(calls.op, codes)


def begun_late(log: CallLog) -> set[int]:
    """Communicators whose first call in the logs is not their first one: NCCL counts from 0."""
    whole, _ = reaches(log, np.ones(len(log.by_kind), np.bool_))
    return {one for one, reach in whole.items() if reach.first > 0}
