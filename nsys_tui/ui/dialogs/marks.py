"""The list of bookmarks: a letter goes there with its context, Shift+letter only to the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from nsys_tui.names import pad, visible
from nsys_tui.render.cells import KEY, Line
from nsys_tui.state import Mark, at_mark, unmarked
from nsys_tui.times import moment_text
from nsys_tui.ui.mark_spans import span_between, split_between
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from nsys_tui.model.report import Report
    from nsys_tui.ui.host import Host


class MarkList(Dialog[tuple[str, bool]]):
    """Returns the letter and whether only its time is wanted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("apostrophe", "dismiss(None)", show=False),
        Binding("delete", "remove", show=False),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    MarkList LinePane, MarkList Static { width: 78; max-width: 100%; }
    MarkList LinePane { height: 70%; min-height: 8; }
    MarkList Static { height: 1; padding: 0 2; background: $panel; }
    """
    app: Host

    def compose(self) -> ComposeResult:
        """The list, and what lies between the mark under the cursor and the one before."""
        yield LinePane("Marks", "letter or enter: go, Shift+letter: time only, del: remove")
        yield Static(id="between", markup=False)

    def on_mount(self) -> None:
        """Shows the bookmarks in the order of time."""
        self._draw()

    def _marks(self) -> list[Mark]:
        return sorted(self.app.state.marks.values(), key=lambda mark: mark.time)

    def _draw(self) -> None:
        marks = self._marks()
        befores = [None, *marks][:-1]
        lines = [self._line(mark, before) for mark, before in zip(marks, befores, strict=True)]
        self.query_one(LinePane).show(lines, marks)

    def _line(self, mark: Mark, before: Mark | None) -> Line:
        style_now, report = self.app.state.display.time, self.app.session.report
        moment = moment_text(mark.time, 1_000, style_now, report)
        step = f"+{format_duration(mark.time - before.time)}" if before is not None else ""
        text = "  ".join(part for part in (mark.label, mark.note) if part)
        return [
            (f" {mark.letter}  ", KEY),
            (f"{pad(moment, 16)} {pad(step, 12)} ", 0),
            (visible(text), 0),
        ]

    def on_line_pane_moved(self, message: LinePane.Moved) -> None:
        """Tells what the GPUs did since the mark before."""
        marks, chosen = self._marks(), message.choice
        place = next((n for n, mark in enumerate(marks) if mark is chosen), 0)
        if not place:
            self.query_one("#between", Static).update("")
            return
        first, last = marks[place - 1], marks[place]
        self.query_one("#between", Static).update(Content(span_between(first, last)))
        report = self.app.session.report
        if report is not None and self.app.session.exact:
            self.run_worker(
                lambda: self._count(report, first, last), thread=True, exclusive=True, group="marks"
            )

    def _count(self, report: Report, first: Mark, last: Mark) -> None:
        text = Content(split_between(report, first, last))

        def show() -> None:
            if self.query_one(LinePane).choice is last:
                self.query_one("#between", Static).update(text)

        if self.is_attached:
            self.app.call_from_thread(show)

    def on_key(self, event: events.Key) -> None:
        """A letter goes to its mark."""
        letter = (event.character or "").lower()
        if letter in self.app.state.marks:
            event.stop()
            self.dismiss((letter, event.character != letter))

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """Enter goes to the mark under the cursor."""
        letter: str = getattr(message.choice, "letter", "")
        self.dismiss((letter, False))

    def action_remove(self) -> None:
        """Removes the mark under the cursor."""
        letter = getattr(self.query_one(LinePane).choice, "letter", "")
        self.app.set_state(unmarked(self.app.state, letter))
        self._draw()


def open_marks(app: Host) -> None:
    """Shows the list and goes where the user says."""

    def go(chosen: tuple[str, bool]) -> None:
        if (mark := app.state.marks.get(chosen[0])) is not None:
            app.show(mark.screen, **at_mark(app.state, mark, only_time=chosen[1]))

    if app.state.marks:
        app.ask(MarkList(), go)
    else:
        app.say("no marks yet: m and a letter sets one on the timeline")
