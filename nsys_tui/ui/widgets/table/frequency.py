"""FrequencyList: how often each value of a column occurs; Enter filters the table by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType

from nsys_tui.names import visible
from nsys_tui.render.cells import Ink, style
from nsys_tui.ui.dialogs.picker import ListDialog
from nsys_tui.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from nsys_tui.ui.host import Host
    from nsys_tui.ui.widgets.table.columns import TableColumn, Tally

BAR: Final = 16
LONGEST: Final = 200


class FrequencyList(ListDialog):
    """Returns the chosen value, or None.

    Args:
        column: whose values.
        tallies: the counts, most frequent first or in the order of their bins.
        distinct: how many values there are; more than listed where the list is cut.
        rows: rows that were counted.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("F", "dismiss(None)", show=False)]
    app: Host

    def __init__(
        self, column: TableColumn, tallies: Sequence[Tally], distinct: int, rows: int
    ) -> None:
        super().__init__()
        self._column, self._tallies, self._distinct, self._rows = column, tallies, distinct, rows

    def compose(self) -> ComposeResult:
        """A box with the list."""
        cut = f"{len(self._tallies):,} of " if self._distinct > len(self._tallies) else ""
        what = "bins" if any(tally.high > tally.low for tally in self._tallies) else "values"
        title = f"Frequency of {self._column.header}: {cut}{self._distinct:,} {what}"
        yield from self.listing(title, "enter: filter, esc: close", len(self._tallies))

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
        self.pane.show(lines, self._tallies)
        self.pane.focus()
