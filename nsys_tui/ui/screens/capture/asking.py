"""What is to be found out, asked before the form, and presets: both set options."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from textual.getters import query_one

from nsys_tui.capture.options.presets import (
    Preset,
    added,
    built_in,
    changed,
    fitted,
    presets,
    questions,
)
from nsys_tui.capture.options.target_facts import Facts
from nsys_tui.capture.plan import Form
from nsys_tui.config_edit import remove_table, reread, save_table
from nsys_tui.config_values import option_text
from nsys_tui.errors import UsageError
from nsys_tui.render.cells import BOLD, MUTED, STALL
from nsys_tui.text.folding import wrapped
from nsys_tui.ui.dialogs.picker import Picker, Prompt, choose
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import failures_shown
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.widgets.lines import Line, LinePane

_SAVE = object()


class Asking(ReportScreen):
    """What comes before the form, and presets: what a screen with a form does about both."""

    form: Form
    _untouched: Form

    questions = query_one("#questions", LinePane)
    """The pane with the questions."""

    @abstractmethod
    def show_form(self) -> None:
        """Draws the form anew."""

    @property
    @abstractmethod
    def form_facts(self) -> Facts | None:
        """What is known of the target of the form."""

    @property
    @abstractmethod
    def unknown(self) -> str:
        """Why nothing is known of it."""

    @abstractmethod
    def fill_from_report(self, options: str = "", question: Preset | None = None) -> None:
        """Fills in how the open report was made, then what is to be recorded besides."""

    def action_capture_preset(self) -> None:
        """Chooses ready-made options, or saves those of the form, or deletes some."""
        known = presets(self.app.config.capture)
        own = self.app.config.capture.presets
        entries = [
            Entry(f"{name}: {p.about}", "yours" if name in own else "preset", name)
            for name, p in known.items()
        ]
        if self.form.options:
            entries.append(Entry("save the options of this form as a preset", "save", _SAVE))

        def chosen(name: object) -> None:
            if name is _SAVE:
                self._save()
            elif isinstance(name, str) and name in own:
                self._use_or_delete(known[name])
            elif isinstance(name, str):
                self._use(known[name])

        self.app.ask(Picker("Presets", entries), chosen)

    def _use(self, preset: Preset) -> None:
        env = {**self.form.env, **preset.env}
        self.form = replace(self.form, preset=preset.name, options=dict(preset.options), env=env)
        self.show_form()

    def _use_or_delete(self, preset: Preset) -> None:
        section = ("capture", "presets", preset.name)
        remove = partial(remove_table, self.app.config.path, section)
        delete = partial(self._change, remove, f"deleted preset {preset.name}")
        question = f"Your preset {preset.name}: {', '.join(preset.options)}"
        answers = {"u": ("use", partial(self._use, preset)), "d": ("delete", delete)}
        choose(self.app, question, answers)

    def _save(self) -> None:
        def check(name: str) -> None:
            if not name.strip():
                raise UsageError("a preset needs a name")
            if name.strip() in built_in():
                raise UsageError(f"{name.strip()} is a built-in preset", hint="take another name")

        def named(name: str) -> None:
            section = ("capture", "presets", name.strip())
            save = partial(save_table, self.app.config.path, section, self.form.options)
            self._change(save, f"saved as preset {name.strip()}")

        hint = ", ".join(self.form.options)
        self.app.ask(Prompt("Save as preset", hint, self.form.preset, check), named)

    def _change(self, change: Callable[[], None], told: str) -> None:
        with failures_shown(self.app):
            change()
            self.app.config = reread(self.app.config)
            self.app.say(told)
        self.show_form()

    def show_questions(self, *, on: bool) -> None:
        """Puts the questions into the place of the form, or the form back."""
        pane, was_on = self.questions, self.has_class("-asking")
        self.set_class(on, "-asking")
        if on:
            choices = [choice for one in questions() for choice in (one, None)]
            pane.show(question_lines(), choices)
            self.show_detail()
        if on != was_on:
            self.query_one("#questions" if on else "#form").focus()

    def show_detail(self) -> None:
        """Tells more about the question under the cursor."""
        facts, why, question = self.form_facts, self.unknown, self.questions.choice
        if isinstance(question, Preset):
            self.query_one("#detail", LinePane).show_built(
                lambda width: question_detail(question, facts, why, width)
            )

    def on_line_pane_moved(self, message: LinePane.Moved) -> None:
        """Another question is under the cursor."""
        if isinstance(message.choice, Preset):
            self.show_detail()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The form's keys work on the form."""
        if action in ("capture_run", "capture_edit", "capture_type"):
            return not self.has_class("-asking")
        return super().check_action(action, parameters)

    def action_capture_ask(self) -> None:
        """The questions, or the form again."""
        self._untouched = self.form
        self.show_questions(on=not self.has_class("-asking"))
        self.show_form()

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """A question was chosen: its options, for the program of the open report."""
        question = message.choice
        if not isinstance(question, Preset):
            return
        if self.form.program or self.report is None:
            self.take(question)
        else:
            self.fill_from_report(question=question)

    def take(self, question: Preset | None = None, options: str = "") -> None:
        """Sets the options of a question, or adds those that a finding asks for."""
        wanted = added(self.form.options, options)
        if question is not None:
            wanted = changed(wanted, fitted(question.options, self.form_facts).options)
        self.form = replace(self.form, options=wanted)
        self.show_questions(on=False)
        self.show_form()


def question_lines() -> list[Line]:
    """Two lines a question: itself, and what it costs."""
    lines: list[Line] = []
    for one in questions():
        lines += [[(f" {one.asks}", BOLD)], [(f"   {one.cost}", 0)]]
    return lines


def question_detail(question: Preset, facts: Facts | None, why: str, width: int) -> list[Line]:
    """What a capture would show, by which options, and what of them the target lacks."""
    fit = fitted(question.options, facts)
    words = [f"--{name}={option_text(value)}" for name, value in fit.options.items()]
    known = why or "being looked at"
    if facts:
        known = f"nsys {facts.version} has all of it" if facts.version else "no nsys was found"
    support = f"left out: {'; '.join(fit.lost)}" if fit.lost else f"target: {known}"
    parts = ((question.about, 0), (" ".join(words), MUTED), (support, STALL if fit.lost else MUTED))
    return [[(line, ink)] for text, ink in parts for line in wrapped(text, width)]
