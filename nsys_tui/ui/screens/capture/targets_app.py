"""The target dialogs without a report: ``nsys-tui targets edit``."""

from __future__ import annotations

from typing import Any, cast

from nsys_tui.config import Config
from nsys_tui.ui.screens.capture.targets import TargetList
from nsys_tui.ui.terminal import Terminal
from nsys_tui.ui.themed_app import ThemedApp


class TargetsApp(ThemedApp, inherit_bindings=False):
    """Shows the list of targets and ends with it.

    Args:
        config: the settings; what is changed is written to its file.
        terminal: what the terminal can show.
        first: a target to edit at once; one that does not exist begins as a new one.
    """

    def __init__(self, config: Config, terminal: Terminal, first: str = "") -> None:
        super().__init__(config, terminal)
        self._first = first

    def on_mount(self) -> None:
        """The list is all there is."""
        dialog = cast("Any", TargetList(self._first))
        self.push_screen(dialog, lambda _: self.exit())
