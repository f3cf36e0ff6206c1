"""The line at the bottom that takes a pattern, to search or to filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.units import out_of

Count: TypeAlias = Callable[[str, Callable[[int], None]], None]


class Sought(NamedTuple):
    """What was entered."""

    pattern: str
    as_filter: bool


class FindLine(Dialog[Sought | None]):
    """Enter searches, Ctrl+F filters, Esc changes nothing; an empty pattern clears.

    Args:
        pattern: what stands in the box at first.
        count: called with each pattern typed and a function that takes the number of matches.
        size: number of things that are counted.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+f,alt+enter", "filter", show=False, priority=True),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    FindLine { align: left bottom; }
    FindLine Horizontal { height: 1; width: 1fr; background: $background; }
    FindLine .sign { width: 2; text-style: bold; }
    FindLine Input { height: 1; width: 1fr; }
    FindLine #count { width: auto; color: $muted; padding: 0 1; }
    """

    def __init__(self, pattern: str, count: Count | None = None, size: int = 0) -> None:
        super().__init__()
        self._pattern, self._count, self._whole = pattern, count, size

    def compose(self) -> ComposeResult:
        """A slash, the box, and what it matches."""
        yield Horizontal(
            Static("/", classes="sign", markup=False),
            LineInput(self._pattern, placeholder="regex or words", compact=True),
            Static(Content("enter: search  ^F: filter  esc: close"), id="count", markup=False),
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        """Counts the matches of what is typed."""
        pattern = event.value
        if pattern and self._count is not None:
            self._count(pattern, lambda number: self._tell(pattern, number))

    def _tell(self, pattern: str, number: int) -> None:
        if self.is_attached and self.query_one(Input).value == pattern:
            text = f"{out_of(number, self._whole)}  enter: search  ^F: filter"
            self.query_one("#count", Static).update(Content(text))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Searches."""
        self.dismiss(Sought(event.value, as_filter=False))

    def action_filter(self) -> None:
        """Filters."""
        self.dismiss(Sought(self.query_one(Input).value, as_filter=True))
