"""How far the communicators came: their first and last calls, in each block of a log and in all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.logs.calls import rows_by
from nsys_tui.logs.grammar import POINT_TO_POINT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.logs.call_log import CallLog, Rows
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
    row: Rows
    """The last one, as a row of ``CallLog.calls``; empty in a block."""

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
    communicator = log.by_kind.communicator
    for block in log.blocks:
        kind, op_count = block.column("kind"), block.column("op_count")
        mine = np.flatnonzero(kinds[kind])
        part = {}
        last: dict[int, int] = {}
        for one, at in rows_by(communicator[kind[mine]]):
            rows = mine[at]
            counts = op_count[rows]
            known = whole.get(one)
            part[one] = Reach(
                known.before + known.number if known else 0,
                len(rows),
                int(counts[0]),
                int(counts[-1]),
                int(counts.min()),
                int(counts.max()),
                {},
            )
            last[one] = int(rows[-1])
        every = block.rows() if last else {}
        for one, place in last.items():
            row = {name: values[place : place + 1].copy() for name, values in every.items()}
            whole[one] = _joined(whole.get(one), replace(part[one], row=row))
        parts.append(part)
    return whole, parts


def _joined(known: Reach | None, one: Reach) -> Reach:
    if known is None:
        return one
    return Reach(
        0,
        known.number + one.number,
        known.first,
        one.last,
        min(known.low, one.low),
        max(known.high, one.high),
        one.row,
    )


def point_to_point(calls: Calls) -> NDArray[np.bool_]:
    """Which calls are those of two ranks."""
    codes = [i for i, op in enumerate(calls.ops) if op in POINT_TO_POINT]
    return np.isin(calls.op, codes)


def begun_late(log: CallLog) -> set[int]:
    """Communicators whose first call in the logs is not their first one: NCCL counts from 0."""
    whole, _ = reaches(log, np.ones(len(log.by_kind), np.bool_))
    return {one for one, reach in whole.items() if reach.first > 0}
