"""Bookmarks: set under a letter, with a note, and shown at the side."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from nsys_tui.analysis.timeline.facts import ranges_around
from nsys_tui.names import fit
from nsys_tui.render.cells import Emphasis, Ink, style
from nsys_tui.state import Mark, marked
from nsys_tui.ui.dialogs.prompt import Prompt
from nsys_tui.ui.mark_spans import span_between, split_between
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.screens.timeline.areas import Areas
from nsys_tui.ui.screens.timeline.stepping import Stepping
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    Line = list[tuple[str, int]]

LETTER: Final = style(Ink.MARK, emphasis=Emphasis.BOLD)
MUTED: Final = style(Ink.MUTED)
NAME: Final = 32
"""Cells of an event's name that leave room for the range around it."""


class LetterPrompt(Dialog[str | None]):
    """Waits for one letter."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]
    DEFAULT_CSS: ClassVar[str] = """
    LetterPrompt { align: center bottom; background: transparent; }
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


class Marking(Areas, Stepping):
    """Actions on bookmarks."""

    def show_report(self) -> None:
        """The marks of an earlier run are there."""
        super().show_report()
        self.show_marks()

    def load_finished(self) -> None:
        """What the GPUs did between two marks can be told."""
        super().load_finished()
        self.show_marks()

    def action_mark_set(self) -> None:
        """Asks for a letter and sets the mark."""
        question = f" mark {self.moment(self.cursor_time)}: press a letter a-z, esc leaves"
        self.app.push_screen(LetterPrompt(question), lambda letter: self._set_mark(letter, ""))

    def action_mark_note(self) -> None:
        """The same with a note."""
        question = f" mark {self.moment(self.cursor_time)} with a note: press a letter a-z"

        def ask(letter: str | None) -> None:
            if letter:
                old = self.state.marks.get(letter)
                prompt = Prompt(f"Note on mark {letter}", "one line", old.note if old else "")
                self.app.push_screen(prompt, lambda note: self._set_mark(letter, note))

        self.app.push_screen(LetterPrompt(question), ask)

    def _set_mark(self, letter: str | None, note: str | None) -> None:
        if not letter or note is None:
            return
        label = self._described()
        state = self.state
        mark = Mark(
            letter,
            self.cursor_time,
            self.SCREEN,
            self._lane_key,
            state.selection,
            state.window,
            state.filter,
            state.display.colour_by,
            label,
            note,
        )
        self.app.set_state(marked(state, mark))

    def _described(self) -> str:
        """What is under the cursor: the event's name, and the innermost range around it."""
        picked = self.under_cursor()
        owner = None if picked is None else self.owner(picked.events)
        if picked is None or owner is None:
            return ""
        name = self.store.naming(picked.events)(picked.row)
        rows = ranges_around(owner.report, owner.events, picked.row)
        ranges = owner.report.ranges
        return f"{fit(name, NAME)} in {ranges.names[ranges.name[rows[-1]]]}" if rows else name

    def _in_order(self) -> list[Mark]:
        return sorted(self.state.marks.values(), key=lambda mark: (mark.time, mark.letter))

    def mark_lines(self, marks: list[Mark]) -> list[Line]:
        """One line a mark: letter, time, distance to the one before, what was there, note."""
        lines: list[Line] = []
        before: int | None = None
        for mark in marks:
            apart = "" if before is None else f"+{format_duration(mark.time - before, 3)}"
            before = mark.time
            text = f"{self._exactly(mark.time):<11} {apart:<8} {mark.label}"
            lines.append([(f" {mark.letter} ", LETTER), (text, 0), (f"  {mark.note}", MUTED)])
        return lines

    def show_marks(self) -> None:
        """Shows the marks and what lies between the first and the last two of them."""
        marks = self._in_order()
        pane = self.query_one("#marks", LinePane)
        lines = self.mark_lines(marks) or [[(" m and a letter sets a mark", MUTED)]]
        if len(marks) < 2:
            pane.show(lines)
            return
        first, last = marks[-2:]
        pane.show([*lines, [(f" {span_between(first, last)}", 0)]])
        report = self.report
        if report is None or not self.session.exact:
            return

        def show(text: str) -> None:
            if self._in_order() == marks:
                span, _, split = text.partition(": ")
                pane.show([*lines, [(f" {span}", 0)], [(f"   {split}", 0)]])

        self.compute("between", lambda: split_between(report, first, last), show)
