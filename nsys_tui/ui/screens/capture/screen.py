"""Capture: profile a program, or the one of the open report again, and open what comes home."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from nsys_tui.capture import events
from nsys_tui.capture.again import plan_again, replayed_values
from nsys_tui.capture.capture import Capture
from nsys_tui.capture.plan import Form, Plan, form_from_plan, plan_from_json
from nsys_tui.capture.record import Store
from nsys_tui.errors import NsysTuiError
from nsys_tui.names import visible
from nsys_tui.state import Selection
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.dialogs.prompt import Confirm, Prompt
from nsys_tui.ui.dialogs.secret import ask
from nsys_tui.ui.keymap import Action, bindings
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import Failed
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.screens.capture import form as forms
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_tui.capture.again import Again
    from nsys_tui.capture.askpass import Prompt as Question
    from nsys_tui.capture.record import Record
    from nsys_tui.model.report import Report
    from nsys_tui.ui.session import Session
    from nsys_tui.ui.widgets.lines import Line

ACTIONS: tuple[Action, ...] = (
    Action("capture.run", ("enter",), "run", "start the capture", 5),
    Action("capture.edit", ("space",), "change", "next choice, or type the value", 6),
    Action("capture.type", ("i",), "type", "type the value of a field that has choices"),
    Action("capture.stop", ("K",), "stop", "stop: asks whether to keep or discard", 7),
    Action("capture.preset", ("P",), "preset", "choose ready-made options", 8),
    Action("capture.fill", ("F",), "from report", "fill in how the open report was made"),
    Action("capture.past", ("h",), "past", "past captures: reopen, repeat, attach, delete", 9),
    Action("capture.targets", ("ctrl+e",), "targets", "edit the targets in $EDITOR"),
)
LOG_LINES: Final = 2000


class FormPane(LinePane):
    """The form: Enter runs the capture instead of opening a line."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is opened here."""
        return False if action == "nav_open" else super().check_action(action, parameters)


class CaptureScreen(ReportScreen):
    """Screen 9."""

    SCREEN = "capture"
    ACTIONS = ACTIONS
    BINDINGS: ClassVar = bindings(ACTIONS)
    AUTO_FOCUS = "#form"
    DEFAULT_CSS: ClassVar[str] = """
    CaptureScreen #form { height: 1fr; }
    CaptureScreen #command { height: 7; }
    CaptureScreen #log { height: 6; }
    CaptureScreen.-running #form { height: 6; }
    CaptureScreen.-running #log { height: 1fr; }
    CaptureScreen.-tall #log { height: 12; }
    CaptureScreen.-tall #command { height: 10; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.form = Form()
        self.again: Again | None = None
        self.ticked: frozenset[str] = frozenset()
        self.repeats = ""
        self.capture: Capture | None = None
        self.previous: Session | None = None
        self._log: list[str] = []
        self._state = "idle"

    def body(self) -> Iterable[Any]:
        """Form, command and log."""
        yield FormPane("Capture a new report", "space: change, enter: run", id="form")
        yield LinePane("Command (y copies it)", id="command")
        yield LinePane("Log", id="log")

    def on_mount(self) -> None:
        """Shows the form; captures left running by an earlier run are named."""
        super().on_mount()
        self.form = replace(self.form, target=self.app.config.capture.default_target)
        self._redraw()
        running = Store().unfinished()
        if running:
            where = ", ".join(sorted({record.target_name for record in running}))
            self._say(f"{len(running)} capture(s) not finished on {where}: h lists and attaches")

    def show_report(self) -> None:
        """Another report in front: the form stays as it is."""
        self._redraw()

    def _redraw(self) -> None:
        if not self.is_mounted:
            return
        config = self.app.config
        entries = forms.fields(self.form, config, self.again, self.ticked)
        width = max(20, self.size.width - 4)
        form = self.query_one("#form", FormPane)
        form.show(forms.form_lines(entries, width), entries)
        self.query_one("#command", LinePane).show(forms.command_lines(self._plan(), width))
        self._show_log()
        self.set_class(self.capture is not None, "-running")
        self.refresh_keys()

    def _plan(self) -> Plan | NsysTuiError:
        plan = forms.planned(self.form, self.app.config)
        if isinstance(plan, Plan) and self.ticked:
            return replace(plan, replayed=tuple(sorted(self.ticked)))
        return plan

    def _say(self, line: str) -> None:
        self._log = [*self._log, line][-LOG_LINES:]
        self._show_log()

    def _show_log(self) -> None:
        pane = self.query_one("#log", LinePane)
        lines: list[Line] = [[(line, 0)] for line in self._log]
        pane.show(lines)
        pane.heading("Log", self._state)
        pane.scroll_end(animate=False)

    def _field(self) -> forms.Field | None:
        choice = self.query_one("#form", FormPane).choice
        return choice if isinstance(choice, forms.Field) else None

    def _set(self, key: str, text: str) -> None:
        self.form = forms.changed(self.form, key, text)
        self._redraw()

    def action_capture_edit(self) -> None:
        """Next choice of the field, or a box to type in."""
        entry = self._field()
        if entry is None or self.capture is not None:
            return
        if entry.key.startswith("replay:"):
            if entry.choices:
                self.ticked = self.ticked ^ {entry.key.removeprefix("replay:")}
                self._redraw()
        elif entry.choices:
            self._set(entry.key, forms.next_choice(entry))
        else:
            self.action_capture_type()

    def action_capture_type(self) -> None:
        """A box to type the value in."""
        entry = self._field()
        if entry is None or entry.key.startswith("replay:") or self.capture is not None:
            return

        def check(text: str) -> None:
            forms.changed(self.form, entry.key, text)

        def done(text: str | None) -> None:
            if text is not None:
                self._set(entry.key, text)

        self.app.push_screen(Prompt(entry.label, entry.hint, entry.value, check), done)

    def action_capture_preset(self) -> None:
        """Chooses ready-made options; they replace those in the form."""
        from nsys_tui.capture.presets import presets

        known = presets(self.app.config.capture)

        def chosen(name: str | None) -> None:
            if name is not None and name in known:
                preset = known[name]
                env = {**self.form.env, **preset.env}
                self.form = replace(self.form, preset=name, options=dict(preset.options), env=env)
                self._redraw()

        entries = [Entry(f"{name}: {p.about}", "preset", name) for name, p in known.items()]
        self.app.push_screen(Picker("Presets", entries), chosen)

    def action_capture_fill(self) -> None:
        """Fills in how the open report was made."""
        self.fill_from_report()

    def fill_from_report(self) -> None:
        """Profile again: from our own record of the report, else from its metadata."""
        report = self.report
        if report is None or self.capture is not None:
            return

        def work() -> tuple[Plan, Again | None, str] | NsysTuiError:
            from nsys_tui.reader.cache import report_id

            try:
                identity = report_id(report.path)
                plan, again = plan_again(metadata(report), identity, self.app.config)
            except NsysTuiError as error:
                return error
            return plan, again, identity

        def done(found: tuple[Plan, Again | None, str] | NsysTuiError) -> None:
            if isinstance(found, NsysTuiError):
                self._say(f"{found.title}; {found.hint}")
                return
            plan, self.again, self.repeats = found
            self.form, self.ticked = form_from_plan(plan), frozenset()
            self.previous = self.session
            for remark in self.again.remarks if self.again else ():
                self._say(remark)
            self._redraw()

        self.compute("again", work, done)

    def action_capture_run(self) -> None:
        """Starts what the form says."""
        plan = self._plan()
        if self.capture is not None:
            self.app.say("a capture is running: K stops it")
        elif isinstance(plan, NsysTuiError):
            self.app.say(str(plan).replace("\n", ": "))
        else:
            self.previous = self.session
            self._start(plan)

    def _start(self, plan: Plan) -> None:
        try:
            secrets = replayed_values(metadata(self.report), plan.replayed) if self.report else {}
            capture = Capture.create(
                plan,
                self.app.config,
                on_event=self._happened,
                on_prompt=self._asked,
                secrets=secrets,
                repeats=self.repeats,
            )
        except NsysTuiError as error:
            self.app.post_message(Failed(error))
            return
        self._drive(capture)

    def _drive(self, capture: Capture) -> None:
        self.capture, self._log = capture, []
        self._redraw()

        async def job() -> None:
            record = None
            try:
                record = await capture.run()
            except NsysTuiError as error:
                self._say(f"! {error.title}")
                for line in (error.message, error.hint):
                    if line:
                        self._say(line)
            except asyncio.CancelledError:
                self._say("left: the job goes on; h attaches to it again")
                raise
            finally:
                self.capture = None
                self._redraw()
            if record is not None:
                self._ended(record)

        self.app.run_worker(job(), group="capture", exit_on_error=False)

    def _happened(self, event: events.Event) -> None:
        """Everything that a capture tells, in the app's own loop."""
        if not self.is_mounted:
            return
        match event:
            case events.StateChanged(state, detail):
                self._state = f"{state}{': ' if detail else ''}{detail}"
            case events.LogChanged(updates):
                for update in updates:
                    if update.replaces and self._log:
                        self._log.pop()
                    self._log.append(visible(update.text))
                self._log = self._log[-LOG_LINES:]
            case events.Progress(name, done, total, rate, left):
                share = f"{100 * done // total} %" if total else "0 %"
                eta = "" if left is None else f", {format_duration(int(left * 1e9))} left"
                self._state = f"fetching {name} {share}, {format_bytes(int(rate))}/s{eta}"
            case events.Checked(checks):
                for check in checks:
                    if check.severity != "ok":
                        self._log.append(visible(f"{check.severity}: {check.name}: {check.text}"))
            case events.Remark(severity, text, remedy):
                self._log.append(visible(f"{severity}: {text} {remedy}".strip()))
            case events.Reconnecting(attempt, wait_s, reason):
                self._state = f"reconnecting, try {attempt} in {wait_s:.0f} s: {reason}"
            case events.StopStuck():
                self._ask_to_kill()
            case events.Finished(record):
                self._state = str(record.state)
        if self.is_current:
            self._show_log()

    async def _asked(self, question: Question) -> str | None:
        """A question of ssh's: a dialog shows its own words."""
        return await ask(self.app, question)

    def action_capture_stop(self) -> None:
        """Asks whether to keep what was collected."""
        capture = self.capture
        if capture is None:
            self.app.say("no capture is running here")
            return

        def answered(answer: str | None) -> None:
            if answer is not None:
                self.app.run_worker(capture.stop(keep=answer == "k"), exit_on_error=False)

        question = "Stop the program: keep what was collected, or discard it?"
        self.app.push_screen(Confirm(question, {"k": "keep", "d": "discard"}), answered)

    def _ask_to_kill(self) -> None:
        capture = self.capture
        if capture is None:
            return

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.app.run_worker(capture.kill(), exit_on_error=False)

        question = "The program ignores INT and TERM. KILL ends it and loses the report. Kill it?"
        self.app.push_screen(Confirm(question, {"y": "kill", "n": "wait"}), answered)

    def _ended(self, record: Record) -> None:
        home = reports_of(record)
        status = record.program_exit
        self._state = str(record.state)
        if not home:
            self._say("no report came home" + (f"; the program exited {status}" if status else ""))
            return
        for path in home:
            self._say(f"report: {path}")
        if status:
            self._say(f"the program exited {status}; its report is complete")
        compare = self.previous is not None and self.app.handler("view.compare") is not None
        answers = {"o": "open", **({"c": "compare with the previous"} if compare else {})}

        def answered(answer: str | None) -> None:
            if answer is None:
                return
            self._open(home)
            if answer == "c" and self.previous is not None:
                self.app.bring_to_front(self.previous)
                self.app.show("compare", selection=Selection("compare", (str(home[0]),)))
            else:
                self.app.show("overview")

        self.app.push_screen(Confirm(f"{home[0].name} came home.", answers), answered)

    def _open(self, paths: list[Path]) -> None:
        for path in paths:
            self.app.open_path(path)

    def action_copy_cell(self) -> None:
        """Copies the exact command."""
        plan = self._plan()
        if isinstance(plan, Plan):
            self.app.copy(plan.command_text(), "the command")

    def action_capture_past(self) -> None:
        """Lists past captures."""
        entries = [Entry(past_line(record), str(record.state), record) for record in Store().all()]
        if not entries:
            self.app.say("no captures yet")
            return
        self.app.push_screen(Picker("Past captures", entries), self._past_chosen)

    def _past_chosen(self, record: Record | None) -> None:
        if record is None:
            return
        home = reports_of(record)
        answers = {
            **({"o": "open its report"} if home else {}),
            **({"a": "attach"} if not record.state.over else {}),
            "r": "repeat",
            "d": "delete its record here",
        }

        def answered(answer: str | None) -> None:
            if answer == "o":
                self._open(home)
            elif answer == "a":
                self._attach_to(record)
            elif answer == "r":
                self.form = form_from_plan(plan_from_json(record.plan))
                self.again, self.ticked, self.repeats = None, frozenset(), record.id
                self._redraw()
            elif answer == "d":
                self._delete(record)

        self.app.push_screen(Confirm(past_line(record), answers), answered)

    def _attach_to(self, record: Record) -> None:
        try:
            capture = Capture.attach(
                record.id, self.app.config, on_event=self._happened, on_prompt=self._asked
            )
        except NsysTuiError as error:
            self.app.post_message(Failed(error))
            return
        self._drive(capture)

    def _delete(self, record: Record) -> None:
        kept = ", ".join(str(path) for path in reports_of(record)) or "none"

        def answered(answer: str | None) -> None:
            if answer == "y":
                Store().remove(record.id)
                self.app.say(f"removed the record of {record.id}")

        self.app.push_screen(
            Confirm(
                f"Delete the record and log of {record.id}? Reports stay: {kept}. Files over there"
                f" stay too: nsys-tui captures rm {record.id} removes them.",
                {"y": "delete", "n": "no"},
            ),
            answered,
        )

    def action_capture_targets(self) -> None:
        """Edits the configuration in the user's editor, checked when it is left."""
        import subprocess
        import sys

        from nsys_tui.config import load_config

        with self.app.suspend():
            edit = [sys.executable, "-m", "nsys_tui", "targets", "edit"]
            status = subprocess.run(edit, check=False).returncode
        try:
            self.app.config = load_config()
        except NsysTuiError as error:
            self.app.post_message(Failed(error))
        self.app.say("targets read again" if status == 0 else f"the editor ended with {status}")
        self._redraw()


def metadata(report: Report | None) -> list[tuple[str, str]]:
    """META_DATA_CAPTURE as pairs; the environment among them is shown redacted only."""
    if report is None:
        return []
    rows = report.rows("META_DATA_CAPTURE", "name", "value")
    return [(str(n), str(v)) for n, v in zip(rows["name"], rows["value"], strict=True)]


def reports_of(record: Record) -> list[Path]:
    """What of a capture can be opened here: the export where there is one."""
    found = [Path(file.sqlite or file.local) for file in record.reports if file.local]
    return [path for path in found if path.exists()]


def past_line(record: Record) -> str:
    """What, where, when, from which commit, and with what result."""
    when = next(iter(record.times.values()), "")[:16].replace("T", " ")
    commit = (
        f" @{record.git_commit[:8]}{'+' if record.git_dirty else ''}" if record.git_commit else ""
    )
    result = f"{len(reports_of(record))} report(s) here" if record.reports else str(record.state)
    return f"{when}  {record.target_name}  {' '.join(record.program)}{commit}  {result}"
