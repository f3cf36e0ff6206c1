"""How all work of a device is drawn in one row, wherever it is drawn."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.model.arrays import Int64, UInt8
from nsys_tui.render.raster import LaneView
from nsys_tui.render.viewport import Viewport

IDLE_THRESHOLD: Final = 10_000
"""Idle gaps of a GPU from 10 us on are drawn."""


class Explained(NamedTuple):
    """Idle gaps whose cause is known, in the order of time."""

    ends: Int64
    causes: UInt8
    """A ``Cause`` each."""

    def reason(self, number: int) -> str:
        """The cause of a gap in a few words."""
        return Cause(int(self.causes[number])).label


NOTHING: Final = Explained(np.empty(0, np.int64), np.empty(0, np.uint8))


def summary_view(summary: Summary, window: Viewport, explained: Explained = NOTHING) -> LaneView:
    """A device's row in a window.

    Args:
        summary: its work.
        window: the cells.
        explained: the gaps whose cause is known.
    """
    lane = summary.lane(window.edges)
    return LaneView(
        lane,
        summary=True,
        idle=IDLE_THRESHOLD,
        explained=explained.ends,
        reason=explained.reason,
    )
