"""Blocks: the cells that events of a cell's width or more take, and what they leave to others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.intervals import in_stretches, stretched
from nsys_tui.model.lanes import Lane
from nsys_tui.render.viewport import Viewport


@dataclass(frozen=True, eq=False)
class Blocks:
    """Events drawn as blocks, from left to right, and the cells between them."""

    spots: Indices
    """Position in the lane of each block's event, [k]."""
    starts: Int64
    ends: Int64
    first: Indices
    """First cell of each block, [k]: the edge nearest to the event's start."""
    last: Indices
    """Cell after the last of each block, [k]."""
    owner: Indices
    """Block that owns each cell, -1 for none: [W]."""
    busy: Int64
    """Busy nanoseconds of each cell, all events: [W]."""
    other_busy: Int64
    """The same without the blocks' own part, [W]."""
    other_starts: Int64
    """Events other than blocks that start in each cell, [W]."""

    @property
    def dense(self) -> Bool:
        """Cells that no block owns and that other events are busy in or start in, [W]."""
        return (self.owner < 0) & ((self.other_busy > 0) | (self.other_starts > 0))


def find_blocks(lane: Lane, view: Viewport, merged_only: bool = False) -> Blocks:
    """Lays out the events of a lane that are as wide as a cell.

    Edges round to the nearest cell edge, so that neighbours never overlap. A cell at a block's
    edge in which other events start is left to them, unless it is the block's only one: however
    small, an event is visible somewhere.

    Args:
        lane: events that do not overlap each other (``lanes.split``).
        view: the window.
        merged_only: lay out no block at all, as for the summary of a device.
    """
    busy, counts = lane.busy(view.edges), lane.count(view.edges)
    spots = np.empty(0, np.intp) if merged_only else lane.at_least(view.lo, view.hi, view.step)
    starts, ends = lane.starts[spots], lane.ends[spots]
    first, last = view.nearest_edges(starts), view.nearest_edges(ends)
    first = np.maximum(first, np.append(0, np.maximum.accumulate(last)[:-1])[: len(first)])
    wide = last > first
    spots, starts, ends, first, last = (part[wide] for part in (spots, starts, ends, first, last))
    others = counts.copy()
    begun = view.cells(starts)
    np.subtract.at(others, begun[begun >= 0], 1)
    first, last = _make_room(view, others, starts, ends, first, last)
    owner = np.full(view.width, -1, np.intp)
    block, cell = in_stretches(first, last)
    owner[cell] = block
    rest = busy - _covered(view, starts, ends)
    return Blocks(spots, starts, ends, first, last, owner, busy, np.maximum(rest, 0), others)


def _make_room(
    view: Viewport, others: Int64, starts: Int64, ends: Int64, first: Indices, last: Indices
) -> tuple[Indices, Indices]:
    """Shrinks blocks by a cell that they cover in part and in which others start."""
    partial = (view.edges[first] < starts) & (others[np.minimum(first, view.width - 1)] > 0)
    first = first + (partial & (last - first > 1))
    tail = last - 1
    partial = (view.edges[last] > ends) & (others[tail] > 0)
    return first, last - (partial & (last - first > 1))


def _covered(view: Viewport, starts: Int64, ends: Int64) -> Int64:
    """Nanoseconds of each cell that the blocks cover."""
    covered = np.zeros(view.width, np.int64)
    left = np.maximum(starts, view.lo)
    right = np.minimum(ends, view.hi)
    head, tail = view.cells(left), view.cells(right - 1)
    same = head == tail
    np.add.at(covered, head[same], (right - left)[same])
    head, tail, left, right = (part[~same] for part in (head, tail, left, right))
    np.add.at(covered, head, view.edges[head + 1] - left)
    np.add.at(covered, tail, right - view.edges[tail])
    inner = stretched(head + 1, tail)
    covered[inner] += view.widths[inner]
    return covered
