"""Capture: profile a program, or the one of the open report again, and open what comes home."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from nsys_tui.capture.capture import preflight
from nsys_tui.capture.options.presets import Preset
from nsys_tui.capture.options.target_facts import Facts
from nsys_tui.capture.plan import Form, Plan, form_from_plan, plan_from_json
from nsys_tui.capture.preflight import checks
from nsys_tui.capture.profile_again import Again, plan_again, replayed_values
from nsys_tui.capture.record import Record, Store
from nsys_tui.capture.scripts import typed_command
from nsys_tui.capture.targets import find_target, with_nsys
from nsys_tui.errors import NsysTuiError
from nsys_tui.ui.dialogs.picker import Prompt, choose, nothing
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.screens.capture import form as forms
from nsys_tui.ui.screens.capture.asking import Asking
from nsys_tui.ui.screens.capture.running import Running, metadata
from nsys_tui.ui.widgets.lines import LinePane

ACTIONS: tuple[Action, ...] = (
    Action("capture.run", ("enter",), "run", "start the capture", 5),
    Action("capture.edit", ("space",), "change", "next choice, or type the value", 6),
    Action("capture.type", ("i",), "type", "type the value of a field that has choices"),
    Action("capture.stop", ("K",), "stop", "stop: asks whether to keep or discard", 7),
    Action("capture.preset", ("P",), "preset", "presets: use, save this form's, delete", 8),
    Action("capture.ask", ("a",), "ask", "what to find out, which sets options; or the form", 8),
    Action("capture.check", ("c",), "check", "look at the target: nsys, rights, disk", 9),
    Action("capture.past", ("h",), "past", "past captures: open, repeat, attach, delete", 9),
    Action("capture.attach", ("A",), "attach", "follow a capture that was left running"),
    Action("capture.fill", ("F",), "from report", "fill in how the open report was made"),
    Action("capture.targets", ("ctrl+e",), "targets", "targets: add, edit, check, delete", 9),
)
COMMAND_ROWS: Final = 8
VALUE_SHOWN: Final = 500


class FormPane(LinePane):
    """The form: Enter runs the capture instead of opening a line."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is opened here."""
        return False if action == "nav_open" else super().check_action(action, parameters)


class CaptureScreen(Running, Asking):
    """Screen 9."""

    SCREEN = "capture"
    OF_ONE_REPORT = False
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#form"
    DEFAULT_CSS: ClassVar[str] = """
    CaptureScreen #form { height: 1fr; }
    CaptureScreen #questions, CaptureScreen #detail { height: 1fr; display: none; }
    CaptureScreen.-asking #questions, CaptureScreen.-asking #detail { display: block; }
    CaptureScreen #questions { height: 12; }
    CaptureScreen.-asking #form, CaptureScreen.-asking #command { display: none; }
    CaptureScreen #log { height: 6; }
    CaptureScreen.-quiet #log { display: none; }
    CaptureScreen.-running #form { height: 6; }
    CaptureScreen.-running #log { height: 1fr; }
    CaptureScreen.-tall #log { height: 12; }
    CaptureScreen.-tall.-running #log { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.form = Form()
        self.again: Again | None = None
        self.ticked: frozenset[str] = frozenset()
        self.facts: Facts | None = None
        self._looked_at = ("", "")
        """Target and working directory that ``facts`` belong to."""
        self._fault = ""
        """Why nothing is known of them."""
        self._untouched = self.form
        """The form that the questions stand before."""
        self._filling = False
        """Whether the form is about to be filled in from a report."""

    def body(self) -> Iterable[Any]:
        """Form, command and log."""
        yield LinePane("What do you want to find out?", "enter: use  a: the form", id="questions")
        yield LinePane("What it takes (estimates)", id="detail")
        yield FormPane("Capture a new report", "space: change, enter: run", id="form")
        yield LinePane("Command (y copies it)", id="command")
        yield LinePane("Log", id="log")

    def on_mount(self) -> None:
        """Shows the form; captures left running by an earlier run are named."""
        super().on_mount()
        self.form = replace(self.form, target=self.app.config.capture.default_target)
        if left := Store().left_running():
            self.say(f"{left}: A attaches")
        self.set_interval(1, self._tick)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """Asks first, unless something has filled the form in by now."""
        if self.form.program or self.form.options or self._filling or self.capture is not None:
            self.show_form()
        else:
            self.action_capture_ask()

    def show_report(self) -> None:
        """Another report in front: the form stays as it is."""
        self.show_form()

    def _tick(self) -> None:
        if self.live.began is not None and self.is_current:
            self.query_one("#log", LinePane).heading("Log", self.live.heading())

    def show_form(self) -> None:
        """Draws form, command and log anew."""
        if not self.is_mounted:
            return
        if self.has_class("-asking"):
            self.show_questions(on=self.form is self._untouched and self.capture is None)
        entries = forms.fields(self.form, self.app.config, self.again, self.ticked, self.form_facts)
        width = max(20, self.size.width - 4)
        self.query_one("#form", FormPane).show(forms.form_lines(entries, width), entries)
        self._show_command(width)
        self.show_log()
        self.set_class(self.capture is not None, "-running")
        self.refresh_chrome()
        self._look_nearby()

    def _show_command(self, width: int) -> None:
        facts = self.form_facts
        note = "" if facts else self.unknown
        pane = self.query_one("#command", LinePane)
        lines = forms.command_lines(self._plan(), width, facts, note)
        pane.styles.height = min(len(lines), COMMAND_ROWS) + 2
        pane.show(lines)

    @property
    def form_facts(self) -> Facts | None:
        """What is known of the target of the form."""
        return self.facts if self._looked_at == (self.form.target, self.form.cwd) else None

    @property
    def unknown(self) -> str:
        """Why nothing is known of the target; empty while it is looked at by itself."""
        if self._looked_at == (self.form.target, self.form.cwd) and self._fault:
            return self._fault
        return "not looked at: c does" if self._is_elsewhere() else ""

    def _is_elsewhere(self) -> bool:
        try:
            target = find_target(self.app.config, self.form.target)
        except NsysTuiError:
            return False
        return target.remote

    def _plan(self) -> Plan | NsysTuiError:
        plan = forms.planned(self.form, self.app.config)
        if isinstance(plan, Plan) and self.ticked:
            return replace(plan, replayed=tuple(sorted(self.ticked)))
        return plan

    def _field(self) -> forms.Field | None:
        choice = self.query_one("#form", FormPane).choice
        return choice if isinstance(choice, forms.Field) else None

    def _set(self, key: str, text: str) -> None:
        self.form = forms.changed(self.form, key, text)
        self.show_form()

    def action_capture_edit(self) -> None:
        """Next choice of the field, or a box to type in."""
        entry = self._field()
        if entry is None or self.capture is not None:
            return
        if entry.key.startswith("replay:"):
            if entry.choices:
                self._tick_variable(entry.key.removeprefix("replay:"))
        elif entry.choices:
            self._set(entry.key, forms.next_choice(entry))
        else:
            self.action_capture_type()

    def _tick_variable(self, name: str) -> None:
        """Takes a recorded variable into the capture, after its value was shown this once."""
        if name in self.ticked:
            self.ticked -= {name}
            self.show_form()
            return

        def replay() -> None:
            self.ticked |= {name}
            self.show_form()

        value = replayed_values(metadata(self.report), [name])[name]
        question = f"Replay {name}={value[:VALUE_SHOWN]}{'…' if len(value) > VALUE_SHOWN else ''}"
        choose(self.app, question, {"y": ("replay", replay), "n": ("no", nothing)})

    def action_capture_type(self) -> None:
        """A box to type the value in; what it would bring is said meanwhile."""
        entry = self._field()
        if entry is None or entry.key.startswith("replay:") or self.capture is not None:
            return

        def check(text: str) -> None:
            forms.changed(self.form, entry.key, text)

        def live(text: str) -> str:
            return forms.live_text(self.form, self.app.config, entry.key, text, self.facts)

        prompt = Prompt(entry.label, entry.hint, entry.value, check, live)
        self.app.ask(prompt, partial(self._set, entry.key))

    def action_capture_fill(self) -> None:
        """Fills in how the open report was made."""
        self.fill_from_report()

    def fill_from_report(self, options: str = "", question: Preset | None = None) -> None:
        """Profile again: from our own record of the report, else from its metadata.

        Args:
            options: of nsys, which a finding would need to be sure.
            question: what this capture is to find out.
        """
        report = self.report
        if report is None or self.capture is not None:
            return
        self._filling = True

        def work() -> tuple[Plan, Again | None, str] | NsysTuiError:
            from nsys_tui.reader.filecheck import report_id

            try:
                identity = report_id(report.path)
                plan, again = plan_again(
                    metadata(report), identity, self.app.config, driver=report.metadata.driver
                )
            except NsysTuiError as error:
                return error
            return plan, again, identity

        def done(filled: tuple[Plan, Again | None, str] | NsysTuiError) -> None:
            self._filling = False
            if isinstance(filled, NsysTuiError):
                self.say(f"{filled.title}; {filled.hint}")
                self.take(question, options)
                return
            plan, self.again, self.repeats = filled
            self.form, self.ticked = form_from_plan(plan), frozenset()
            self.previous = self.session
            for remark in self.again.remarks if self.again else ():
                self.say(remark)
            self.take(question, options)

        self.compute("again", work, done)

    def repeat(self, record: Record) -> None:
        """Fills the form in as an earlier capture had it."""
        self.form = form_from_plan(plan_from_json(record.plan))
        self.again, self.ticked, self.repeats = None, frozenset(), record.id
        self.show_form()

    def action_copy_cell(self) -> None:
        """Copies the command as one types it by hand, with ssh, container or Slurm in front."""
        plan = self._plan()
        if isinstance(plan, Plan):
            self.app.copy(typed_command(plan), "the command")

    def action_capture_targets(self) -> None:
        """Lists the targets to change them; the form hears of what they are afterwards."""
        from nsys_tui.ui.screens.capture.targets import TargetList

        def left(_: object) -> None:
            self._looked_at = ("", "")
            self.show_form()

        self.app.push_screen(TargetList(), left)

    def _look_nearby(self) -> None:
        """Looks at this machine by itself; another one only when asked, since it may ask back."""
        place = (self.form.target, self.form.cwd)
        if place != self._looked_at and self.is_current and not self._is_elsewhere():
            self._looked_at, self.facts = place, None
            self.run_worker(self._look(told=False), group="look", exclusive=True)

    def action_capture_check(self) -> None:
        """Looks at the target and says what there is."""
        if self.capture is not None:
            self.app.say("a capture is running")
            return
        self.say(f"looking at {self.form.target or 'the default target'} …")
        self.run_worker(self._look(told=True), group="look", exclusive=True)

    async def _look(self, *, told: bool) -> None:
        place = (self.form.target, self.form.cwd)
        plan = self._plan()
        try:
            if isinstance(plan, NsysTuiError):
                config = self.app.config
                target = with_nsys(find_target(config, self.form.target), config)
                plan = Plan(target, ("true",), self.form.cwd or target.settings.cwd)
            probed = await preflight(plan, self.app.config, self.asked if told else None)
        except NsysTuiError as error:
            self._looked_at, self.facts, self._fault = place, None, error.one_line
            if told:
                self.say(f"error: {error.one_line}")
            self.show_form()
            return
        self._looked_at, self.facts, self._fault = place, probed.facts, ""
        for check in checks(probed, plan.target, plan) if told else ():
            self.say(f"{check.severity}: {check.name}: {check.told}")
        self.show_form()

    def action_capture_run(self) -> None:
        """Starts what the form says."""
        plan = self._plan()
        if self.capture is not None:
            self.app.say("a capture is running: K stops it")
        elif isinstance(plan, NsysTuiError):
            self.app.say(str(plan).replace("\n", ": "))
        else:
            self.previous = self.session
            self.start(plan)
