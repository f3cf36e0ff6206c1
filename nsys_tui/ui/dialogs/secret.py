"""Secret: a question of ssh's, answered without showing what is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from nsys_tui.capture.askpass import PromptKind
from nsys_tui.names import visible_lines
from nsys_tui.ui.dialogs.picker import DialogBox
from nsys_tui.ui.dialogs.prompt import Confirm
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.runtime.line_input import LineInput

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from nsys_tui.capture.askpass import Prompt
    from nsys_tui.ui.host import Host


class Secret(Dialog[str | None]):
    """Asks for one line.

    Args:
        title: heading: who asks.
        text: the question in ssh's own words.
        masked: whether the answer stays hidden.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]
    DEFAULT_CSS: ClassVar[str] = """
    Secret { align: center middle; background: transparent; }
    Secret DialogBox { width: 72; max-width: 100%; height: auto; }
    Secret Input { height: 1; }
    Secret Static { height: auto; }
    """

    def __init__(self, title: str, text: str, *, masked: bool) -> None:
        super().__init__()
        self._title, self._text, self._masked = title, text, masked

    def compose(self) -> ComposeResult:
        """Question and input."""
        question = Static(Content(visible_lines(self._text)), markup=False)
        box = DialogBox(question, LineInput(password=self._masked, compact=True))
        box.heading(self._title, "enter: send, esc: cancel")
        yield box

    def on_mount(self) -> None:
        """No blinking; the input has the focus."""
        self.query_one(Input).cursor_blink = False
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The answer goes to ssh and is kept nowhere."""
        self.dismiss(event.value)


async def ask(app: Host, question: Prompt) -> str | None:
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
