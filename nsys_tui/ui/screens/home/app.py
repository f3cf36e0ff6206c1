"""The home screen, which stands before the app: it returns what is to be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from nsys_tui import __version__
from nsys_tui.render.cells import MUTED
from nsys_tui.ui.dialogs.picker import DialogBox, Picker
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.ui.runtime.responsive_app import ResponsiveApp
from nsys_tui.ui.screens.home.entries import Choice, home_entries
from nsys_tui.ui.themed_app import ThemedApp
from nsys_tui.ui.widgets.lines import LinePane

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from nsys_tui.config import Config
    from nsys_tui.ui.terminal import Terminal


class Home(Picker):
    """All that can be opened, and in full what is known of the line under the cursor."""

    DEFAULT_CSS: ClassVar[str] = """
    Home { align: center top; background: $background; }
    Home DialogBox { width: 100%; height: 100%; }
    Home #told { height: 5; border-top: solid $frame; }
    """

    def compose(self) -> ComposeResult:
        """The list fills the terminal; what is known of a line stands below it."""
        field = LineInput(placeholder="type to filter, or the path of a report", compact=True)
        entries = LinePane(framed=False, always_cursor=True)
        yield DialogBox(field, entries, LinePane(framed=False, id="told"))

    @property
    def pane(self) -> LinePane:
        """The list."""
        return self.query(LinePane).first()

    def on_line_pane_moved(self) -> None:
        """Tells of what is under the cursor now."""
        self._tell()

    def _filter(self, typed: str) -> None:
        super()._filter(typed)
        self._tell()

    def _tell(self) -> None:
        entry = self.pane.choice
        told = getattr(getattr(entry, "value", None), "told", "")
        self.query_one("#told", LinePane).show_built(
            lambda width: [
                [(f" {line}", MUTED)]
                for part in told.split("\n")
                for line in wrapped(part, width - 2)
            ]
        )


class HomeApp(ThemedApp, ResponsiveApp, inherit_bindings=False):
    """Shows what can be opened and ends with the ``Choice``, or None.

    Args:
        config: the settings of this run.
        terminal: what the terminal can show.
        folder: where to look for reports.
    """

    CSS_PATH = "../../styles/app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[Any]] = []

    def __init__(self, config: Config, terminal: Terminal, folder: Path) -> None:
        super().__init__(config, terminal)
        self._folder = folder
        self.choice: Choice | None = None

    def on_mount(self) -> None:
        """The list is all there is."""
        title = f"nsys-tui {__version__}: open a report"
        entries = home_entries(self._folder)
        self.push_screen(cast("Any", Home(title, entries, free=True)), self._chosen)

    def _chosen(self, choice: Choice | str | None) -> None:
        """A line of the list, or what was typed and is in none of them."""
        self.choice = Choice(name=choice) if isinstance(choice, str) else choice
        self.exit()
