"""LetterPrompt: waits for the letter of a bookmark."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.widgets import Static

from nsys_tui.ui.runtime.batched_screen import Dialog

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult


class LetterPrompt(Dialog[str | None]):
    """Waits for one letter."""

    DEFAULT_CSS: ClassVar[str] = """
    LetterPrompt { align: center bottom; }
    LetterPrompt Static { width: 100%; height: 1; text-style: bold; background: $panel; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """One line at the bottom."""
        yield Static(Content(self._question))

    def on_key(self, event: events.Key) -> None:
        """A letter answers; anything else leaves."""
        if event.key == "escape":
            return
        event.stop()
        letter = event.character or ""
        self.dismiss(letter if letter in ascii_lowercase and letter else None)
