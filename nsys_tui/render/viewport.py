"""Viewport: the time window of a timeline as cells, in whole nanoseconds."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.lanes import cell_edges


class Viewport:
    """A window [lo, hi) over ``width`` cells.

    Attributes:
        lo: first nanosecond shown.
        hi: end of the window; at least ``width`` nanoseconds after ``lo``.
        width: number of cells, at least 1.
        extent: the captured time [start, end); outside it, idle time is not drawn.
        edges: int64 [width + 1].
    """

    def __init__(self, lo: int, hi: int, width: int, extent: tuple[int, int] | None = None) -> None:
        self.lo = int(lo)
        self.width = max(1, width)
        self.hi = max(int(hi), self.lo + self.width)
        self.extent = extent or (self.lo, self.hi)
        self.edges: Int64 = cell_edges(self.lo, self.hi, self.width)

    @cached_property
    def widths(self) -> Int64:
        """Nanoseconds of each cell, at least 1."""
        return np.diff(self.edges)

    @cached_property
    def _middles(self) -> Int64:
        return self.edges[:-1] + (self.widths + 1) // 2

    def cells(self, times: Int64) -> Indices:
        """Cell that holds each time: -1 before the window, ``width`` from its end on."""
        return np.searchsorted(self.edges, times, side="right") - 1

    def nearest_edges(self, times: Int64) -> Indices:
        """Number of the cell edge nearest to each time: 0 to ``width``."""
        return np.searchsorted(self._middles, times, side="right")

    def nearest_edges_of(self, *times: int) -> tuple[int, ...]:
        """``nearest_edges`` of a few moments."""
        return tuple(self.nearest_edges(np.array(times, np.int64)).tolist())

    def cell(self, time: int) -> int | None:
        """Cell that holds a time, or None outside the window."""
        if not self.lo <= time < self.hi:
            return None
        return int(np.searchsorted(self.edges, time, side="right")) - 1

    def time(self, cell: int) -> int:
        """First nanosecond of a cell, which may lie outside the window."""
        inside = min(max(cell, 0), self.width)
        return int(self.edges[inside]) + (cell - inside) * self.step

    @property
    def step(self) -> int:
        """Nanoseconds of the narrowest cell."""
        return (self.hi - self.lo) // self.width
