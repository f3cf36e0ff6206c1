"""ThemedApp: what each app of ours has, whatever it shows: theme, characters, questions, copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen

from nsys_tui.config import Config
from nsys_tui.names import visible
from nsys_tui.render.glyphs import Glyphs, glyphs_for
from nsys_tui.render.palette import Theme
from nsys_tui.ui import clipboard
from nsys_tui.ui.loader import unexpected
from nsys_tui.ui.runtime.ascii_filter import AsciiFilter
from nsys_tui.ui.runtime.faults import TolerantApp
from nsys_tui.ui.runtime.responsive_app import ResponsiveApp
from nsys_tui.ui.terminal import Terminal
from nsys_tui.ui.theming import StyleTable, choose_theme, find_theme, textual_theme


class ThemedApp(TolerantApp, ResponsiveApp, inherit_bindings=False):
    """An app that looks as the settings and the terminal want it.

    Args:
        config: the settings of this run.
        terminal: what the terminal can show.
    """

    CSS_PATH = Path(__file__).parent / "styles" / "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[Any]] = []

    def __init__(self, config: Config, terminal: Terminal) -> None:
        super().__init__()
        self.config = config
        self.terminal = terminal
        self._ascii_filter = AsciiFilter(enabled=terminal.ascii)
        self.animation_level = "none"
        self.first_theme = choose_theme(config.display.theme, terminal)
        self.first_ascii = terminal.ascii
        self.use_theme(self.first_theme)

    @property
    def theme_folder(self) -> Path:
        """Where the user's own themes lie."""
        return self.config.path.parent / "themes"

    def use_theme(self, name: str) -> None:
        """Changes the theme.

        Raises:
            ConfigError: there is no such theme, or its file is bad.
        """
        theme = find_theme(name, self.theme_folder)
        self.palette: Theme = theme
        self.inks = StyleTable(theme)
        native = textual_theme(theme)
        self.register_theme(native)
        self.theme = native.name
        self._redraw()

    def _redraw(self) -> None:
        for screen in self.screen_stack if self.is_running else ():
            for widget in screen.walk_children(with_self=True):
                widget.refresh()

    @property
    def ascii(self) -> bool:
        """Whether only ASCII may be drawn."""
        return self._ascii_filter.enabled

    @property
    def glyphs(self) -> Glyphs:
        """What lanes, bars and trees are drawn with."""
        return glyphs_for(self.ascii, self.inks.theme.kind)

    def use_ascii(self, ascii_only: bool) -> None:
        """Changes the set of characters."""
        self._ascii_filter.enabled = ascii_only
        self._redraw()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """In ASCII mode the chrome is mapped to ASCII on its way out.

        Under ``NO_COLOR`` Textual makes the terminal's own two colours black both: themes that use
        them lose their colours instead.
        """
        filters = super().get_line_filters()
        if self.native_ansi_color:
            filters = [NoColor() if isinstance(f, Monochrome) else f for f in filters]
        return [*filters, *([self._ascii_filter] if self._ascii_filter.enabled else [])]

    def show_fault(self, error: Exception) -> None:
        """Tells of a fault of the program itself; ``Host`` has a line for it."""
        self.say(str(unexpected(error)))

    def say(self, text: str) -> None:
        """Tells something in passing."""
        self.notify(visible(text), markup=False, timeout=4)

    def ask(self, dialog: Screen[Any], take: Callable[[Any], object]) -> None:
        """Opens a dialog; its answer is taken, unless the user leaves without one."""

        def answered(answer: Any) -> None:
            if answer is not None:
                take(answer)

        self.push_screen(dialog, answered)

    def copy(self, text: str, what: str) -> None:
        """Copies a text and says where it went.

        Args:
            text: what to copy.
            what: what it is called then, such as ``1 row``.
        """

        def send(sequence: str) -> None:
            if self._driver is not None:
                self.call_from_thread(self._driver.write, sequence)

        def job() -> None:
            copied = clipboard.copy(text, send)
            self.call_from_thread(self.say, f"copied {what} ({copied.sentence})")

        self.run_worker(job, thread=True, group="copy", exit_on_error=False)
