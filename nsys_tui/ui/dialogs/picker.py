"""Picker: type to filter a list, Enter takes the line under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from nsys_tui.names import cell_len
from nsys_tui.render.cells import KEY, MUTED
from nsys_tui.ui.matching import Entry, matching
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.ui.widgets.frame import Framed
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import out_of

SHOWN: Final = 500
"""Most lines listed; the heading says how many there are."""


class DialogBox(Vertical, Framed):
    """The frame of a dialog."""

    DEFAULT_CSS: ClassVar[str] = """
    DialogBox { width: 64; max-width: 100%; height: auto; }
    DialogBox Static { height: auto; }
    DialogBox LinePane { height: 1fr; border: none; }
    """


class ListDialog(Dialog[Any]):
    """Returns what stands in the line that was chosen, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "take", show=False, priority=True)]
    DEFAULT_CSS: ClassVar[str] = """
    ListDialog DialogBox { width: 76; height: 80%; min-height: 12; }
    """

    def listing(self, title: str, remark: str, *above: Widget) -> ComposeResult:
        """A box with the list below other widgets."""
        box = DialogBox(*above, LinePane(framed=False, always_cursor=True))
        box.heading(title, remark)
        yield box

    @property
    def pane(self) -> LinePane:
        """The list."""
        return self.query_one(LinePane)

    def action_take(self) -> None:
        """Returns what is under the cursor."""
        self.dismiss(self.pane.choice)

    def on_line_pane_chosen(self) -> None:
        """A double click takes a line."""
        self.action_take()


class Picker(ListDialog):
    """Returns the value of the chosen entry, or None.

    Args:
        title: heading of the dialog.
        entries: what there is to choose from.
        typed: what stands in the box at first.
        free: Enter on something that no entry has returns the typed text itself.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", show=False, priority=True),
        Binding("down", "step(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
    ]

    def __init__(
        self, title: str, entries: Sequence[Entry], *, typed: str = "", free: bool = False
    ) -> None:
        super().__init__()
        self._title, self.entries, self._free = title, entries, free
        self._typed = typed

    def compose(self) -> ComposeResult:
        """A box with the input line above the list."""
        field = LineInput(self._typed, placeholder="type to filter", compact=True)
        yield from self.listing(self._title, "enter: choose, esc: close", field)

    def on_mount(self) -> None:
        """Shows everything."""
        self.pane.can_focus = False
        self._filter(self._typed)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters anew."""
        self._filter(event.value)

    def _filter(self, typed: str) -> None:
        self._typed = typed
        found = self.find(typed)
        width = max((cell_len(entry.detail) for entry in found[:SHOWN]), default=0)
        pane = self.pane
        lines = [[(f" {entry.detail:<{width}}  ", KEY), (entry.text, 0)] for entry in found[:SHOWN]]
        pane.cursor = 0
        if lines:
            pane.show(lines, found[:SHOWN])
        else:
            typed_goes = "; enter: take it as it is typed" if self._free else ""
            pane.show([[(f" nothing fits{typed_goes}", MUTED)]])
        rest = f"{out_of(len(found), len(self.entries))}, " if typed else f"{len(found)}, "
        self.query_one(DialogBox).heading(self._title, f"{rest}enter: choose, esc: close")

    def find(self, typed: str) -> Sequence[Entry]:
        """Entries that fit what was typed, best first."""
        return matching(self.entries, typed)

    def taken(self, entry: Entry, typed: str) -> object:  # noqa: ARG002
        """What choosing an entry returns."""
        return entry.value

    def action_step(self, step: int) -> None:
        """Moves the cursor of the list."""
        self.pane.action_move(step)

    def action_page(self, direction: int) -> None:
        """Moves it by a page."""
        self.pane.action_page(direction)

    def action_take(self) -> None:
        """Returns what is under the cursor."""
        typed = self.query_one(Input).value
        if typed != self._typed:  # Enter may overtake the change that the last key announced
            self._filter(typed)
        entry = self.pane.choice
        if isinstance(entry, Entry):
            self.dismiss(self.taken(entry, typed))
        elif self._free:
            self.dismiss(typed)
