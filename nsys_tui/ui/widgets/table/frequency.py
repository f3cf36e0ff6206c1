"""FrequencyList: how often each value of a column occurs; Enter filters the table by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType

from nsys_tui.names import visible
from nsys_tui.render.cells import Ink, style
from nsys_tui.ui.dialogs.picker import DialogBox
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from nsys_tui.ui.host import Host
    from nsys_tui.ui.widgets.table.columns import TableColumn, Tally

BAR: Final = 16
LONGEST: Final = 200


class FrequencyList(Dialog["Tally | None"]):
    """Returns the chosen value, or None.

    Args:
        column: whose values.
        tallies: the counts, most frequent first or in the order of their bins.
        distinct: how many values there are; more than listed where the list is cut.
        rows: rows that were counted.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,F", "dismiss(None)", show=False),
        Binding("enter", "take", show=False, priority=True),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    FrequencyList { align: center middle; background: transparent; }
    FrequencyList DialogBox { width: 76; max-width: 100%; height: 80%; min-height: 12; }
    FrequencyList LinePane { height: 1fr; border: none; }
    """
    app: Host

    def __init__(
        self, column: TableColumn, tallies: Sequence[Tally], distinct: int, rows: int
    ) -> None:
        super().__init__()
        self._column, self._tallies, self._distinct, self._rows = column, tallies, distinct, rows

    def compose(self) -> ComposeResult:
        """A box with the list."""
        box = DialogBox(LinePane(framed=False, always_cursor=True))
        cut = f"{len(self._tallies):,} of " if self._distinct > len(self._tallies) else ""
        what = "bins" if any(tally.high > tally.low for tally in self._tallies) else "values"
        title = f"Frequency of {self._column.header}: {cut}{self._distinct:,} {what}"
        box.heading(title, "enter: filter, esc: close")
        yield box

    def on_mount(self) -> None:
        """Fills the list."""
        glyphs = self.app.glyphs
        most = max(tally.rows for tally in self._tallies)
        width = max(len(f"{tally.rows:,}") for tally in self._tallies)
        lines = []
        for tally in self._tallies:
            filled = max(1, round(BAR * tally.rows / most))
            share = format_share(tally.rows, self._rows)
            lines.append(
                [
                    (f" {tally.rows:>{width},} {share:>6} ", 0),
                    (f"{glyphs.bar * filled:<{BAR}}  ", style(Ink.COUNTER)),
                    (visible(tally.text[:LONGEST]), 0),
                ]
            )
        pane = self.query_one(LinePane)
        pane.show(lines, self._tallies)
        pane.focus()

    def action_take(self) -> None:
        """Returns the value under the cursor."""
        self.dismiss(self._tallies[self.query_one(LinePane).cursor])

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """A double click takes a value."""
        self.dismiss(message.choice)  # type: ignore[arg-type]
