"""Targets on the screen: a list to add to, copy and delete from, and an editor with a check."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.getters import query_one

from nsys_tui.capture.capture import preflight
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.preflight import checks
from nsys_tui.capture.targets import LOCAL, find_target, usable_targets
from nsys_tui.config import Config, TargetConfig
from nsys_tui.config_edit import remove_target, reread, save_setting, save_target
from nsys_tui.errors import NsysTuiError
from nsys_tui.render.cells import BOLD, MUTED, STALL
from nsys_tui.ui.dialogs.picker import DialogBox, Prompt, choose, nothing
from nsys_tui.ui.dialogs.secret import ask
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.screens.capture import target_form as forms
from nsys_tui.ui.widgets.lines import Line, LinePane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.app import ComposeResult

    from nsys_tui.capture.transport.askpass import Prompt as Question
    from nsys_tui.ui.dialogs.picker import Answer
    from nsys_tui.ui.host import Host


INKS: Final = {"error": STALL, "warning": STALL, "note": MUTED}
"""How remarks stand out, by their severity."""


class Checking(Dialog[Any]):
    """A dialog with lines to choose from above, and what there is to say about them below."""

    DEFAULT_CSS: ClassVar[str] = """
    Checking { align: center middle; background: transparent; }
    Checking DialogBox { width: 100; max-width: 100%; height: 100%; max-height: 36; }
    Checking LinePane { border: none; height: 1fr; }
    Checking #said { height: 8; border-top: solid $frame; }
    """
    KEYS: ClassVar[str] = ""
    app: Host

    def __init__(self, heading: str) -> None:
        super().__init__()
        self._heading = heading

    @property
    def config(self) -> Config:
        """The settings as they are now."""
        return self.app.config

    def compose(self) -> ComposeResult:
        """Lines above, remarks below."""
        box = DialogBox(LinePane(framed=False, id="lines"), LinePane(framed=False, id="said"))
        box.heading(self._heading)
        box.border_subtitle = Content(self.KEYS)
        yield box

    def on_mount(self) -> None:
        """The cursor is in the lines."""
        self.query_one("#said", LinePane).can_focus = False
        self.query_one("#lines", LinePane).focus()
        self.draw()

    @abstractmethod
    def draw(self) -> None:
        """Shows the lines anew."""

    lines = query_one("#lines", LinePane)
    """The pane of lines."""

    def say(self, remarks: Iterable[tuple[str, str]]) -> None:
        """Shows remarks as (severity, text); the last ones where there are too many."""
        said = [remark for remark in remarks if remark[1]]
        self.query_one("#said", LinePane).show_built(
            lambda width: [
                [(line, INKS.get(severity, 0))]
                for severity, text in said
                for line in wrapped(f"{severity}: {text}", width)
            ]
        )

    def change(self, act: Callable[[], None]) -> bool:
        """Writes the config file and reads it again; a fault is shown."""
        try:
            act()
            self.app.config = reread(self.config)
        except NsysTuiError as error:
            self.say([("error", error.one_line)])
            return False
        return True

    def check(self, target: Target) -> None:
        """Looks at a target and shows each finding."""
        self.say([("note", f"looking at {target.describe()} …")])
        self.run_worker(self._check(target), group="check", exclusive=True)

    async def _check(self, target: Target) -> None:
        try:
            plan = forms.plan_of(target, self.config)
            probed = await preflight(plan, self.config, self._asked)
        except NsysTuiError as error:
            self.say([("error", error.title), ("cause", error.message), ("next", error.hint)])
            return
        findings = checks(probed, target, plan)
        self.say((one.severity, f"{one.name}: {one.told}") for one in findings)

    async def _asked(self, question: Question) -> str | None:
        return await ask(self.app, question)


class TargetList(Checking):
    """All targets; the editor opens on one of them."""

    KEYS = "enter: edit, a: add, u: duplicate, d: delete, c: check, *: default, esc"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
        Binding("enter,e", "edit", show=False, priority=True),
        Binding("a", "add", show=False),
        Binding("u", "duplicate", show=False),
        Binding("d", "delete", show=False),
        Binding("c", "check", show=False),
        Binding("asterisk", "default", show=False),
    ]

    def __init__(self, first: str = "") -> None:
        """Opens the editor at once on the target ``first``, if it is named."""
        super().__init__("Targets")
        self._first = first

    def on_mount(self) -> None:
        """Goes on to the editor where one target was asked for."""
        super().on_mount()
        self.say([("note", f"targets are kept in {self.config.path}")])
        if self._first:
            self._edit(self._first)

    def draw(self) -> None:
        """One line per target."""
        targets, faults = usable_targets(self.config)
        default = self.config.capture.default_target
        wide = max((len(target.name) for target in targets), default=0) + 2
        lines: list[Line] = []
        for target in targets:
            mark = " *" if target.name == default else "  "
            command = " ".join(target.settings.command)
            lines.append(
                [(f"{mark}{target.name:<{wide}}", BOLD), (target.describe(), 0),
                 (f"  {command}", MUTED)]
            )  # fmt: skip
        here = f"{self.config.path}: "
        lines += [[(f"  {fault.title.removeprefix(here)}", STALL)] for fault in faults]
        self.lines.show(lines, [*targets, *[None] * len(faults)])

    def _chosen(self) -> Target | None:
        choice = self.lines.choice
        return choice if isinstance(choice, Target) else None

    def _open(self, texts: dict[str, str], old_name: str) -> None:
        def left(saved: str | None) -> None:
            self.draw()
            if saved:
                names = [target.name for target in usable_targets(self.config)[0]]
                self.lines.action_move(names.index(saved) - self.lines.cursor)
                self.say([("ok", f"saved {saved} in {self.config.path}")])

        self.app.push_screen(TargetEditor(texts, old_name), left)

    def _edit(self, name: str) -> None:
        known = name == LOCAL or name in self.config.targets
        settings = find_target(self.config, name).settings if known else TargetConfig()
        self._open(forms.texts_of(name, settings), name if known else "")

    def action_edit(self) -> None:
        """Opens the editor on the target under the cursor."""
        if (target := self._chosen()) is not None:
            self._edit(target.name)

    def action_add(self) -> None:
        """Opens the editor on a new target."""
        self._open(forms.texts_of("", TargetConfig()), "")

    def action_duplicate(self) -> None:
        """Opens the editor on a copy."""
        if (target := self._chosen()) is not None:
            self._open(forms.texts_of(f"{target.name}-2", target.settings), "")

    def action_delete(self) -> None:
        """Deletes the target under the cursor from the file."""
        target = self._chosen()
        if target is None or target.name not in self.config.targets:
            self.say([("note", "this machine needs no section in the file: nothing to delete")])
            return

        def delete() -> None:
            if self.change(lambda: remove_target(self.config.path, target.name)):
                self.say([("ok", f"deleted {target.name}; its past captures stay")])
                self.draw()

        question = f"Delete target {target.name} from {self.config.path}?"
        choose(self.app, question, {"y": ("delete", delete), "n": ("no", nothing)})

    def action_check(self) -> None:
        """Looks whether captures can run there."""
        if (target := self._chosen()) is not None:
            self.check(target)

    def action_default(self) -> None:
        """Makes the target the one that is taken when none is named."""
        target = self._chosen()
        if target is not None and self.change(
            lambda: save_setting(self.config.path, "capture.default_target", target.name)
        ):
            self.draw()


class TargetEditor(Checking):
    """The fields of one target; returns its name once it is saved.

    Args:
        texts: the fields as they are.
        old_name: the target that is edited; empty for a new one.
    """

    KEYS = "space: change, c: check, s: save, esc: leave"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("space,enter,i", "change_field", show=False, priority=True),
        Binding("c", "check", show=False),
        Binding("s,ctrl+s", "save", show=False),
    ]

    def __init__(self, texts: dict[str, str], old_name: str) -> None:
        super().__init__(f"Target {old_name}" if old_name else "New target")
        self.texts = dict(texts)
        self._before = dict(texts)
        self._old_name = old_name

    def draw(self) -> None:
        """One line per field, and what is wrong with them."""
        fields = forms.shown_fields(self.texts)
        lines: list[Line] = []
        for field in fields:
            value = self.texts.get(field.key, "")
            mark = "<> " if field.choices else "   "
            shown = (value, 0) if value else (f"({field.hint})", MUTED)
            lines.append([(f" {field.label:<13}", MUTED), (mark, MUTED), shown])
        self.lines.show(lines, fields)
        self.say(self._remarks() or [("ok", "no fault found; c looks at the place itself")])

    def _remarks(self) -> list[tuple[str, str]]:
        return forms.remarks(self.texts, self.config, self._old_name)

    def action_change_field(self) -> None:
        """Next choice, or a box to type in; faults are named while it is typed."""
        field = self.lines.choice
        if not isinstance(field, forms.TargetField):
            return
        value = self.texts.get(field.key, "")
        if field.choices:
            place = field.choices.index(value) if value in field.choices else -1
            self._set(field.key, field.choices[(place + 1) % len(field.choices)])
            return

        def live(text: str) -> str:
            faults = forms.remarks({**self.texts, field.key: text}, self.config, self._old_name)
            return "; ".join(f"{severity}: {said}" for severity, said in faults[:2])

        prompt = Prompt(field.label, field.hint, value, live=live)
        self.app.ask(prompt, partial(self._set, field.key))

    def _set(self, key: str, text: str) -> None:
        self.texts[key] = text
        self.draw()

    def action_check(self) -> None:
        """Looks at the place as the fields describe it, saved or not."""
        try:
            self.check(forms.target_of(self.texts, self.config))
        except NsysTuiError:
            self.draw()

    def action_save(self) -> None:
        """Writes the target, unless something is wrong with it."""
        faults = self._remarks()
        if any(severity == "error" for severity, _ in faults):
            self.say(faults)
            return
        name, path = self.texts["name"].strip(), self.config.path

        def write() -> None:
            save_target(path, name, forms.settings_of(self.texts))
            if self._old_name not in ("", name) and self._old_name in self.config.targets:
                remove_target(path, self._old_name)

        if self.change(write):
            self.dismiss(name)

    def action_leave(self) -> None:
        """Leaves; asks first when something was changed."""
        if self.texts == self._before:
            self.dismiss(None)
            return
        answers: dict[str, Answer] = {
            "s": ("save", self.action_save),
            "d": ("discard", partial(self.dismiss, None)),
        }
        choose(self.app, "The target was changed.", answers)
