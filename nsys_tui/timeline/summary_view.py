"""How all work of a device is drawn in one row, wherever it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.render.raster import LaneView

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.summary import Summary
    from nsys_tui.model.events import Int64
    from nsys_tui.render.viewport import Viewport

IDLE_THRESHOLD: Final = 10_000
"""Idle gaps of a GPU from 10 us on are drawn."""
NO_TIMES: Final = np.empty(0, np.int64)


def summary_view(summary: Summary, window: Viewport, explained: Int64 = NO_TIMES) -> LaneView:
    """A device's row in a window.

    Args:
        summary: its work.
        window: the cells.
        explained: sorted ends of the gaps whose cause is known.
    """
    lane = summary.lane(window.edges)
    return LaneView(lane, summary=True, idle=IDLE_THRESHOLD, explained=explained)
