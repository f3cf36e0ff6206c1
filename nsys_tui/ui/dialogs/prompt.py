"""Prompt: one line of text with a check; Confirm and LetterPrompt: answered by a letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import ascii_lowercase
from typing import Any, ClassVar, TypeAlias

from textual import events
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from nsys_tui.errors import NsysTuiError
from nsys_tui.names import visible, visible_lines
from nsys_tui.ui.dialogs.picker import DialogBox
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.runtime.line_input import LineInput

Answer: TypeAlias = tuple[str, Callable[[], object]]


class Prompt(Dialog[str | None]):
    """Asks for one line of text.

    Args:
        title: heading.
        hint: one line below the box, such as an example.
        value: what stands in the box at first.
        check: called with the text; if it raises ``NsysTuiError``, that is shown and nothing ends.
        live: what to say about the text as it is typed, in place of the hint; empty = the hint.
    """

    DEFAULT_CSS: ClassVar[str] = """
    Prompt Static { color: $muted; }
    """

    def __init__(
        self,
        title: str,
        hint: str = "",
        value: str = "",
        check: Callable[[str], object] | None = None,
        live: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__()
        self._title, self._hint, self._value, self._check = title, hint, value, check
        self._live = live

    def compose(self) -> ComposeResult:
        """Box, input and hint."""
        box = DialogBox(
            LineInput(self._value, compact=True),
            Static(Content(self._hint), id="hint", markup=False),
        )
        box.heading(self._title, "enter: ok, esc: close")
        yield box

    def on_input_changed(self, event: Input.Changed) -> None:
        """Says what there is to say about the text so far."""
        if self._live is not None:
            self._tell(self._live(event.value) or self._hint)

    def _tell(self, text: str) -> None:
        self.query_one("#hint", Static).update(Content(visible(text)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Checks the text and returns it."""
        try:
            if self._check is not None:
                self._check(event.value)
        except NsysTuiError as error:
            self._tell(error.one_line)
        else:
            self.dismiss(event.value)


class Confirm(Dialog[str | None]):
    """Asks a question that one key answers.

    Args:
        question: the whole question.
        answers: key to what it means, such as ``{"y": "discard", "n": "keep"}``.
        title: heading: who asks.
        emphasis: the part of the question to look at; it gets a line of its own.
    """

    def __init__(
        self,
        question: str,
        answers: Mapping[str, str],
        title: str = "Please answer",
        emphasis: str = "",
    ) -> None:
        super().__init__()
        self._question, self._answers = question, answers
        self._title, self._emphasis = title, emphasis

    def compose(self) -> ComposeResult:
        """The question and what the keys mean."""
        keys = "   ".join(f"{key} {meaning}" for key, meaning in self._answers.items())
        box = DialogBox(Static(Content.assemble(self._asked(), f"\n\n{keys}   esc neither")))
        box.heading(self._title)
        yield box

    def _asked(self) -> Content:
        if not self._emphasis:
            return Content(visible_lines(self._question))
        before, what, after = map(visible_lines, self._question.partition(self._emphasis))
        return Content.assemble(f"{before}\n", (what, "bold"), after)

    def on_key(self, event: events.Key) -> None:
        """One of the answers ends it."""
        if event.character in self._answers:
            event.stop()
            self.dismiss(event.character)


def choose(app: App[Any], question: str, answers: Mapping[str, Answer]) -> None:
    """Asks a question whose answers do something.

    Args:
        app: shows the question.
        question: the whole question.
        answers: key to what it means and what it does, such as ``{"n": ("no", nothing)}``.
    """

    def answered(key: str | None) -> None:
        if key is not None:
            answers[key][1]()

    means = {key: word for key, (word, _) in answers.items()}
    app.push_screen(Confirm(question, means), answered)


def nothing() -> None:
    """What "no" does."""


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
