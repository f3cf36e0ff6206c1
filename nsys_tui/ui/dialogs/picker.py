"""Dialogs that ask: for an entry of a list, a line of text, a yes or no, or a letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Input, Static

from nsys_tui.errors import NsysTuiError
from nsys_tui.names import cell_len, visible, visible_lines
from nsys_tui.render.cells import KEY, MUTED
from nsys_tui.ui.matching import Entry, matching
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.ui.widgets.frame import Framed
from nsys_tui.ui.widgets.lines import Built, LinePane
from nsys_tui.units import out_of

if TYPE_CHECKING:
    from nsys_tui.ui.themed_app import ThemedApp

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
    ListDialog DialogBox { width: 80%; min-width: 76; max-width: 130; height: 80%; min-height: 12; }
    """

    def listing(self, title: str, remark: str, rows: int, *above: Widget) -> ComposeResult:
        """A box with the list, of so many rows at first, below other widgets."""
        box = DialogBox(*above, LinePane(framed=False, always_cursor=True))
        box.styles.max_height = rows + 3
        box.heading(title, remark)
        yield box

    pane = query_one(LinePane)
    """The list."""

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
        hint: what stands in the empty box.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", show=False, priority=True),
        Binding("down", "step(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        entries: Sequence[Entry],
        *,
        typed: str = "",
        free: bool = False,
        hint: str = "type to filter",
    ) -> None:
        super().__init__()
        self._title, self.entries, self._free = title, entries, free
        self._typed, self._hint = typed, hint

    def compose(self) -> ComposeResult:
        """A box with the input line above the list."""
        field = LineInput(self._typed, placeholder=self._hint, compact=True)
        rows = len(self.entries)
        yield from self.listing(self._title, "enter: choose, esc: close", rows, field)

    def on_mount(self) -> None:
        """Shows everything."""
        self.pane.can_focus = False
        self._filter(self._typed)

    def offer(self, entries: Sequence[Entry]) -> None:
        """Puts what takes a while to find in the list of an open dialog."""
        self.entries = entries
        self.call_later(self._list)  # it may not be mounted yet

    def _list(self) -> None:
        self.query_one(DialogBox).styles.max_height = len(self.entries) + 3
        self._filter(self.query_one(Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters anew."""
        self._filter(event.value)

    def _filter(self, typed: str) -> None:
        self._typed = typed
        entries = self.find(typed)
        width = max((cell_len(entry.detail) for entry in entries[:SHOWN]), default=0)

        def build(room: int) -> Built:
            rows = [
                (entry if first else None, entry.detail if first else "", text)
                for entry in entries[:SHOWN]
                for first, text in self.lines(entry.text, room - width - 3)
            ]
            lines = [[(f" {detail:<{width}}  ", KEY), (text, 0)] for _, detail, text in rows]
            return lines, [entry for entry, _, _ in rows]

        typed_goes = "; enter: take it as it is typed" if self._free else ""
        pane = self.pane
        pane.show([[(f" nothing fits{typed_goes}", MUTED)]])
        if entries:
            pane.show_choices(build)
        rest = f"{out_of(len(entries), len(self.entries))}, " if typed else f"{len(entries)}, "
        self.query_one(DialogBox).heading(self._title, f"{rest}enter: choose, esc: close")

    def lines(self, text: str, room: int) -> Sequence[tuple[bool, str]]:  # noqa: ARG002
        """The text of an entry in lines, and which one is the first."""
        return [(True, text)]

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
            self.dismiss(typed if typed.strip() else None)


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


def choose(app: ThemedApp, question: str, answers: Mapping[str, Answer]) -> None:
    """Asks a question whose answers do something.

    Args:
        app: shows the question.
        question: the whole question.
        answers: key to what it means and what it does, such as ``{"n": ("no", nothing)}``.
    """
    means = {key: word for key, (word, _) in answers.items()}
    app.ask(Confirm(question, means), lambda key: answers[key][1]())


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
