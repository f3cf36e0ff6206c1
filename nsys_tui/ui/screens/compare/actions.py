"""What the keys of the comparison do."""

from __future__ import annotations

from typing import Final

from nsys_tui.ui.keymap import Action
from nsys_tui.ui.widgets.table.actions import TABLE, WHOLE

CHOOSE: Final = "enter: compare with another report or a baseline  i: two parts of this one"

ACTIONS: tuple[Action, ...] = (
    Action("compare.swap", ("b",), "swap A/B", "exchange A and B", 1),
    Action("compare.group", ("g",), "group", "kernels, copies, NVTX, API, stalls, findings", 2),
    Action("compare.threshold", ("t",), "threshold", "changes below it count as none", 3),
    Action("compare.noise", ("r",), "noise", "how far runs differ where they do not show it", 9),
    Action("compare.next_change", ("n",), "change", "next row that is better or worse", 4),
    Action("compare.previous_change", ("N",), "change", "previous row that is better or worse"),
    Action("compare.choose", ("B",), "other", "choose the report or baseline to compare with", 5),
    Action("compare.parts", ("i",), "parts", "two iterations, windows or marks of this report", 8),
    Action("compare.runs", ("u",), "runs", "add another run to A or to B", 8),
    Action("compare.flame", ("v",), "flame", "timelines, or flame graph of the difference", 6),
    Action("compare.lock", ("L",), "lock", "move both timelines together, or each alone", 7),
    Action("compare.pan_left", ("a",), "left", "both timelines a quarter window to the left"),
    Action("compare.pan_right", ("d",), "right", "both timelines a quarter window to the right"),
    Action("compare.zoom_in", ("w", "+"), "zoom in", "both timelines twice as close"),
    Action("compare.zoom_out", ("-",), "zoom out", "both half as close; s with the focus there"),
    Action("compare.step_next", (")",), "step", "both timelines to the next step"),
    Action("compare.step_previous", ("(",), "step", "both timelines to the previous step"),
    *TABLE,
    WHOLE,
)
OF_TIMELINES: Final = (
    *("compare_lock", "compare_pan_left", "compare_pan_right", "compare_zoom_in"),
    *("compare_zoom_out", "compare_step_next", "compare_step_previous"),
)
"""Actions that need the timelines in view."""
