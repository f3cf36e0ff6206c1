"""The timeline's screen: keys go to ``nsys_tui.timeline``, the rows that it gives are drawn."""

from nsys_tui.ui.screens.timeline.actions import ACTIONS
from nsys_tui.ui.screens.timeline.screen import TimelineScreen

__all__ = ["ACTIONS", "TimelineScreen"]
