"""The timeline: a core that draws, and one file for each kind of action."""

from nsys_tui.ui.screens.timeline.actions import ACTIONS
from nsys_tui.ui.screens.timeline.screen import TimelineScreen

__all__ = ["ACTIONS", "TimelineScreen"]
