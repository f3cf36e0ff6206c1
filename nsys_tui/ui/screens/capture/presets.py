"""Presets on the form: taken, saved under a name of the user's, and deleted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nsys_tui.capture.presets import built_in, presets
from nsys_tui.config_edit import remove_table, reread, save_table
from nsys_tui.errors import NsysTuiError, UsageError
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.dialogs.prompt import Prompt, choose
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import Failed
from nsys_tui.ui.screens.base import ReportScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.capture.plan import Form
    from nsys_tui.capture.presets import Preset

_SAVE = object()


class Presets(ReportScreen):
    """What a screen with a form does about presets."""

    form: Form

    @abstractmethod
    def show_form(self) -> None:
        """Draws the form anew."""

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

        self.app.push_screen(Picker("Presets", entries), chosen)

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

        def named(name: str | None) -> None:
            if name is not None:
                section = ("capture", "presets", name.strip())
                save = partial(save_table, self.app.config.path, section, self.form.options)
                self._change(save, f"saved as preset {name.strip()}")

        hint = ", ".join(self.form.options)
        self.app.push_screen(Prompt("Save as preset", hint, self.form.preset, check), named)

    def _change(self, change: Callable[[], None], told: str) -> None:
        try:
            change()
            self.app.config = reread(self.app.config)
        except NsysTuiError as error:
            self.app.post_message(Failed(error))
        else:
            self.app.say(told)
        self.show_form()
