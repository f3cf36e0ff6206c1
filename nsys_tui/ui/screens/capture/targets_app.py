"""The target dialogs without a report: ``nsys-tui targets edit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import App

from nsys_tui.names import visible
from nsys_tui.ui import clipboard
from nsys_tui.ui.asciify import Asciify
from nsys_tui.ui.screens.capture.targets import TargetList
from nsys_tui.ui.theming import StyleTable, choose_theme, find_theme, textual_theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.filter import LineFilter

    from nsys_tui.config import Config
    from nsys_tui.ui.terminal import Terminal


class TargetsApp(App[None], inherit_bindings=False):
    """Shows the list of targets and ends with it.

    Args:
        config: the settings; what is changed is written to its file.
        terminal: what the terminal can show.
        first: a target to edit at once; one that does not exist begins as a new one.
    """

    CSS_PATH = "../../styles/app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[Any]] = []

    def __init__(self, config: Config, terminal: Terminal, first: str = "") -> None:
        super().__init__()
        self.config = config
        theme = find_theme(
            choose_theme(config.display.theme, terminal), config.path.parent / "themes"
        )
        self.inks = StyleTable(theme)
        native = textual_theme(theme)
        self.register_theme(native)
        self.theme = native.name
        self._asciify = Asciify(enabled=terminal.ascii)
        self._first = first
        self.animation_level = "none"

    def on_mount(self) -> None:
        """The list is all there is."""
        dialog = cast("Any", TargetList(self._first))
        self.push_screen(dialog, lambda _: self.exit())

    def get_line_filters(self) -> Sequence[LineFilter]:
        """In ASCII mode everything is mapped to ASCII on its way out."""
        return [*super().get_line_filters(), *([self._asciify] if self._asciify.enabled else [])]

    def say(self, text: str) -> None:
        """Tells something in passing."""
        self.notify(visible(text), markup=False, timeout=4)

    def copy(self, text: str, what: str) -> None:
        """Copies a text."""
        driver = self._driver
        copied = clipboard.copy(text, driver.write if driver is not None else lambda _: None)
        self.say(f"copied {what} ({copied.sentence})")
