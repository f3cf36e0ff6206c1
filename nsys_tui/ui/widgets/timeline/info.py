"""The line below the lanes: filter, search, hidden lanes; and the box that takes a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.visual import VisualType

from nsys_tui.names import cell_len, cut, visible
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.ui.widgets.chrome import Line


class InfoLine(Line):
    """A text at the left and one at the right; the left one gives way."""

    DEFAULT_CSS: ClassVar[str] = """
    InfoLine { color: $muted; }
    """

    def render(self) -> VisualType:
        """Both texts with blanks between."""
        left, right = (visible(str(part)) for part in (*self._shown, "", "")[:2])
        room = max(0, self.size.width - cell_len(right) - 2)
        left = cut(left, room)
        return Content(f"{left}{' ' * (self.size.width - cell_len(left) - cell_len(right))}{right}")


class FindBox(LineInput):
    """Takes a pattern: Enter searches, Ctrl+F filters, Escape leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("ctrl+f", "filter", show=False, priority=True),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    FindBox { display: none; height: 1; width: 1fr; }
    FindBox.-open { display: block; }
    """

    @dataclass
    class Entered(Message):
        """A pattern was entered, as a search or as a filter."""

        pattern: str
        as_filter: bool

    class Left(Message):
        """The box was left without a word."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        hint = "find: a regular expression or words   enter finds, ctrl+f filters, esc leaves"
        super().__init__(id=id, placeholder=hint, compact=True)
        self.cursor_blink = False

    def open(self, value: str) -> None:
        """Shows the box with a pattern in it."""
        self.value = value
        self.add_class("-open")
        self.focus()
        self.action_select_all()

    def close(self) -> None:
        """Hides it."""
        self.remove_class("-open")

    def on_input_submitted(self, event: LineInput.Submitted) -> None:
        """Searches."""
        event.stop()
        self.post_message(self.Entered(self.value, as_filter=False))

    def action_filter(self) -> None:
        """Filters."""
        self.post_message(self.Entered(self.value, as_filter=True))

    def action_leave(self) -> None:
        """Leaves."""
        self.post_message(self.Left())
