"""Asking: questions to the user whose answers lead to the timeline's next moment, or to a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from nsys_tui.analysis.window import Scope
from nsys_tui.export.perfetto import event_count, trace
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.timeline import arranging, marking, moving, searching
from nsys_tui.ui.dialogs.picker import LetterPrompt, Picker, Prompt
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.saving import Saving, text_writer
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.session import Session
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.timeline.model import TimelineModel
    from nsys_tui.ui.screens.timeline.model_screen import ModelScreen


def trace_of(session: Session, report: Report) -> Saving:
    """What can be written of a session's report."""
    selection = session.state.selection
    area = selection.span if selection is not None and selection.kind == "area" else None
    window = area or session.state.window
    what = "area" if area else ("window" if window else "whole trace")
    scope = report_scope(report, replace(session.state, window=window))
    return Saving(
        title=f"Write the {what} as a trace for Perfetto",
        name=f"{Path(session.name).stem}.trace.json",
        writers={".json": lambda file, progress: _write(report, scope, file, progress)},
    )


def _write(report: Report, scope: Scope, file: BinaryIO, progress: Progress) -> None:
    write = text_writer(lambda: trace(report, scope), event_count(report, scope), "writing events")
    write(file, progress)


class Asking:
    """Asks over a screen, and moves its model.

    Args:
        screen: whose model moves.
    """

    def __init__(self, screen: ModelScreen) -> None:
        self._screen = screen

    def time(self) -> None:
        """Asks for a time."""
        hint = "2.1s, 350ms, +3ms or -3ms from the cursor, 50% of the trace; seconds without a unit"
        prompt = Prompt(
            "Go to a time", hint, check=lambda text: moving.time_of(self._screen.model, text)
        )
        self._ask(prompt, moving.go_to)

    def shortest(self) -> None:
        """Asks for the shortest duration to show."""
        now = self._screen.state.filter.min_duration
        value = format_duration(now).replace(" ", "") if now else ""
        hint = "such as 10us or 1.5ms; nothing shows all events again"
        prompt = Prompt("Hide events shorter than", hint, value, check=searching.shortest)
        self._ask(prompt, searching.filtered_from)

    def hidden(self) -> None:
        """Lists hidden lanes; the chosen one comes back."""
        lineup = self._screen.model.lanes.whole.lineup
        hidden = sorted(self._screen.state.display.hidden)
        if not hidden:
            self._screen.app.say("no lane is hidden")
            return
        entries = [Entry("all of them", f"{len(hidden)}", "")]
        entries += [Entry(t.title if (t := lineup.track(key)) else key, "", key) for key in hidden]
        self._ask(Picker("Hidden lanes", entries), arranging.bring_back)

    def mark(self) -> None:
        """Asks for a letter and sets the mark."""
        question = f"{self._mark_question}: press a letter a-z, esc leaves"
        self._ask(LetterPrompt(question), marking.set_mark)

    def note(self) -> None:
        """The same with a note."""

        def ask(letter: str) -> None:
            old = self._screen.state.marks.get(letter)
            prompt = Prompt(f"Note on mark {letter}", "one line", old.note if old else "")
            self._ask(prompt, lambda model, note: marking.set_mark(model, letter, note))

        question = f"{self._mark_question} with a note: press a letter a-z"
        self._screen.app.ask(LetterPrompt(question), ask)

    @property
    def _mark_question(self) -> str:
        model = self._screen.model
        return f" mark {model.moment(model.cursor_time)}"

    def _ask(self, dialog: Any, to_next: Callable[[TimelineModel, str], TimelineModel]) -> None:
        """Goes to the next moment with what the user answers."""
        screen = self._screen
        screen.app.ask(dialog, lambda answer: screen.take(to_next(screen.model, answer)))
