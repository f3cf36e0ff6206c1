"""Which category takes most of each cell.

Exact at any zoom. Few visible events are counted when drawn; for more, ``Layers`` are built once
(in a worker: a pass over the lane) and then answer with a few binary searches. Until they are
there, an even sample of the events stands in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsys_tui.model import intervals
from nsys_tui.model.arrays import Int64, Integers, UInt8
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.lanes import Lane

ON_THE_FLY = 8192
"""Visible events of a lane up to which layers are made for one drawing (about 1 ms)."""


@dataclass(frozen=True, eq=False)
class Layers:
    """Busy time of a lane by code, as one normalised set of intervals a code."""

    codes: tuple[int, ...]
    """Codes present, ascending."""
    sets: tuple[tuple[Intervals, Int64] | None, ...]
    """Intervals and their prefix for each code; None for the one that is the rest of the lane."""

    @classmethod
    def build(
        cls,
        lane: Lane,
        column: Integers | None = None,
        part: slice = slice(None),
        rest: bool = True,
    ) -> Layers:
        """Splits a lane's busy time by code.

        Args:
            lane: the lane; where its events do not overlap, the most frequent code is not stored
                but found as the rest, which halves the memory or better.
            column: the owner's column of codes; the lane's categories by default.
            part: positions to look at.
            rest: False keeps every code, for a part that is not all of what is visible.
        """
        codes = codes_of(lane, part, column)
        counts = np.bincount(codes)
        present = np.flatnonzero(counts)
        starts, ends = lane.starts[part], lane.ends[part]
        implied = int(counts.argmax()) if len(present) else -1
        if not rest or not (len(present) == 1 or (starts[1:] >= ends[:-1]).all()):
            implied = -1
        sets: list[tuple[Intervals, Int64] | None] = []
        for code in present.tolist():
            mine = codes == code
            merged = intervals.union(starts[mine], ends[mine]) if code != implied else None
            sets.append(merged and (merged, intervals.prefix(*merged)))
        return cls(tuple(present.tolist()), tuple(sets))

    def busy(self, lane: Lane, edges: Int64) -> Int64:
        """Busy nanoseconds by code and cell: int64 [codes, W]."""
        busy = np.zeros((len(self.codes), len(edges) - 1), np.int64)
        for place, layer in enumerate(self.sets):
            if layer is not None:
                busy[place] = np.diff(intervals.busy_before(*layer, edges))
        for place, layer in enumerate(self.sets):
            if layer is None:
                busy[place] = lane.busy(edges) - busy.sum(axis=0)
        return busy


def codes_of(
    lane: Lane, where: slice | npt.NDArray[np.generic], column: Integers | None = None
) -> Integers:
    """Codes of events by position: from the owner's column, or their categories."""
    return lane.categories(where) if column is None else column[lane.index[where]]


def dominant(
    lane: Lane, edges: Int64, column: Integers | None = None, layers: Layers | None = None
) -> UInt8:
    """The code with most busy time in each cell; the lower code wins a tie.

    Args:
        lane: the lane.
        edges: int64 [W + 1].
        column: codes of the owner's rows; the lane's categories by default.
        layers: built before from the same column.

    Returns:
        uint8 [W]. A cell in which events only start gets the code of the first of them; one without
        any event an arbitrary code.
    """
    part = lane.visible(int(edges[0]), int(edges[-1]))
    if layers is None:
        sample = max(-(-(part.stop - part.start) // ON_THE_FLY), 1)
        layers = Layers.build(lane, column, slice(part.start, part.stop, sample), sample == 1)
    if not layers.codes:
        return np.zeros(len(edges) - 1, np.uint8)
    if len(layers.codes) == 1:
        return np.full(len(edges) - 1, layers.codes[0], np.uint8)
    busy = layers.busy(lane, edges)
    chosen: UInt8 = np.array(layers.codes, np.uint8)[busy.argmax(axis=0)]
    instants = np.flatnonzero(busy.max(axis=0) == 0)
    if len(instants) and len(lane):
        first = np.searchsorted(lane.starts, edges[instants], side="left")
        chosen[instants] = codes_of(lane, np.minimum(first, len(lane) - 1), column)
    return chosen
