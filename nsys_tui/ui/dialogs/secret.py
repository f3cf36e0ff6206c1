"""Secret: a question of ssh's, answered without showing what is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.widgets import Static

from nsys_tui.capture.transport.askpass import Prompt as Question
from nsys_tui.capture.transport.askpass import PromptKind
from nsys_tui.names import visible_lines
from nsys_tui.ui.dialogs.picker import Confirm, DialogBox, Prompt
from nsys_tui.ui.runtime.line_input import LineInput

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from nsys_tui.ui.host import Host


class Secret(Prompt):
    """Asks for one line.

    Args:
        title: heading: who asks.
        text: the question in ssh's own words.
        masked: whether the answer stays hidden.
    """

    DEFAULT_CSS: ClassVar[str] = """
    Secret DialogBox { width: 72; }
    Secret Static { color: $foreground; }
    """

    def __init__(self, title: str, text: str, *, masked: bool) -> None:
        super().__init__(title, text)
        self._masked = masked

    def compose(self) -> ComposeResult:
        """Question and input."""
        question = Static(Content(visible_lines(self._hint)), markup=False)
        box = DialogBox(question, LineInput(password=self._masked, compact=True))
        box.heading(self._title, "enter: send, esc: cancel")
        yield box


async def ask(app: Host, question: Question) -> str | None:
    """Puts one question of ssh's to the user; None means cancelled. "yes" is never the default."""
    if question.kind is PromptKind.NOTICE:
        app.say(question.text)
        return ""
    title = f"{question.target} asks"
    if question.kind is PromptKind.HOST_KEY:
        answers = {"n": "no, refuse", "y": "yes, trust it"}
        confirm = Confirm(question.text, answers, title, question.fingerprint)
        return "yes" if await app.push_screen_wait(confirm) == "y" else "no"
    return await app.push_screen_wait(Secret(title, question.text, masked=question.masked))
