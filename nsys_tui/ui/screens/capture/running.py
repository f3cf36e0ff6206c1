"""A capture that runs: started or attached to, told as a log, stopped, and opened when home."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from rich.cells import chop_cells

from nsys_tui.capture import events
from nsys_tui.capture.capture import Capture
from nsys_tui.capture.plan import Plan
from nsys_tui.capture.profile_again import replayed_values
from nsys_tui.capture.record import Record
from nsys_tui.errors import NsysTuiError
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.names import visible
from nsys_tui.state import Selection
from nsys_tui.ui.dialogs.picker import Answer, choose, nothing
from nsys_tui.ui.messages import failures_shown
from nsys_tui.ui.screens.capture.past import PastCaptures
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import Line, LinePane

LOG_LINES: Final = 2000
IDLE_ROWS: Final = 4
"""Lines of the log while no capture runs, at most."""


@dataclass
class Live:
    """The log as it grows, and where the capture is.

    Attributes:
        state: state and detail, such as ``fetching a.nsys-rep: 43.0%, 21.0 MB/s, 12.0 s left``.
        began: monotonic time of the start; ``None`` while nothing runs.
    """

    lines: list[str] = field(default_factory=list)
    state: str = "idle"
    began: float | None = None

    def start(self) -> None:
        """A capture begins."""
        self.lines, self.state, self.began = [], "starting", time.monotonic()

    def say(self, line: str) -> None:
        """Adds a line."""
        self.lines = [*self.lines, visible(line)][-LOG_LINES:]

    def heading(self) -> str:
        """The line of state with the time since the start."""
        if self.began is None:
            return self.state
        seconds = int(time.monotonic() - self.began)
        return f"{self.state}, {seconds // 60}:{seconds % 60:02d}"

    def shown(self, width: int) -> list[Line]:
        """The log for a pane; long lines go on below, as in a terminal."""
        return [[(part, 0)] for line in self.lines for part in chop_cells(line, width) or [""]]

    def take(self, event: events.Event) -> None:
        """Notes one event."""
        match event:
            case events.StateChanged() | events.Progress():
                self.state = event.line()
            case events.LogChanged(updates):
                for update in updates:
                    if update.replaces and self.lines:
                        self.lines.pop()
                    self.lines.append(visible(update.text.expandtabs(4)))
                del self.lines[:-LOG_LINES]
            case events.Checked(checks):
                for check in checks:
                    if check.severity != "ok":
                        self.say(f"{check.severity}: {check.name}: {check.text}")
            case events.Remark():
                self.say(event.line())
            case events.Reconnecting():
                self.state = visible(event.line())
            case events.Finished(record):
                self.state, self.began = str(record.state), None


class Running(PastCaptures):
    """The part of the screen below the form."""

    def __init__(self) -> None:
        super().__init__()
        self.capture: Capture | None = None
        self.live = Live()
        self.previous: Session | None = None
        """The report that was in front when the capture began."""
        self.repeats = ""
        """Id of the capture or report that the form repeats."""

    @abstractmethod
    def show_form(self) -> None:
        """Draws form, command and log anew."""

    def say(self, line: str) -> None:
        """Adds a line to the log."""
        self.live.say(line)
        self.show_log()

    def show_log(self) -> None:
        """Draws the log anew."""
        pane = self.query_one("#log", LinePane)
        self.set_class(not self.live.lines and self.capture is None, "-quiet")
        pane.styles.height = None if self.capture else min(len(self.live.lines), IDLE_ROWS) + 2
        pane.show_built(self.live.shown)
        pane.heading("Log", self.live.heading())
        pane.scroll_end(animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what runs can be stopped."""
        if action == "capture_stop" and self.capture is None:
            return False
        return super().check_action(action, parameters)

    def start(self, plan: Plan) -> None:
        """Starts a capture and follows it."""
        with failures_shown(self.app):
            secrets = replayed_values(metadata(self.report), plan.replayed) if self.report else {}
            capture = Capture.create(
                plan,
                self.app.config,
                on_event=self._happened,
                on_prompt=self.asked,
                secrets=secrets,
                repeats=self.repeats,
            )
            self._drive(capture)

    def attach_to(self, record: Record) -> None:
        """Follows a capture that was left running."""
        if self.capture is not None:
            self.app.say("a capture is followed here already")
            return
        with failures_shown(self.app):
            capture = Capture.attach(
                record.id, self.app.config, on_event=self._happened, on_prompt=self.asked
            )
            self.repeat(record)
            self._drive(capture)

    def _drive(self, capture: Capture) -> None:
        self.capture = capture
        self.live.start()
        self.show_form()

        async def job() -> None:
            record = None
            try:
                record = await capture.run()
            except NsysTuiError as error:
                self.say(f"! {error.title}")
                for line in (*error.message.splitlines(), error.hint):
                    if line:
                        self.say(line)
            except asyncio.CancelledError:
                self.say(f"left: {capture.record.state.meanwhile}; A attaches to it again")
                raise
            finally:
                self.capture, self.live.began = None, None
                self.show_form()
            if record is not None:
                self._ended(record)

        self.app.run_worker(job(), group="capture", exit_on_error=False)

    def _happened(self, event: events.Event) -> None:
        """Everything that a capture tells, in the app's own loop."""
        if not self.is_mounted:
            return
        self.live.take(event)
        if isinstance(event, events.StopStuck):
            self._ask_to_kill()
        if self.is_current:
            self.show_log()

    def action_capture_stop(self) -> None:
        """Asks whether to keep what was collected."""
        capture = self.capture
        assert capture is not None

        def stop(*, keep: bool) -> None:
            self.app.run_worker(capture.stop(keep=keep), exit_on_error=False)

        question = "Stop the program: keep what was collected, or discard it?"
        keep, discard = partial(stop, keep=True), partial(stop, keep=False)
        choose(self.app, question, {"k": ("keep", keep), "d": ("discard", discard)})

    def _ask_to_kill(self) -> None:
        capture = self.capture
        if capture is None:
            return

        def kill() -> None:
            self.app.run_worker(capture.kill(), exit_on_error=False)

        question = "The program ignores INT and TERM. KILL ends it and loses the report. Kill it?"
        choose(self.app, question, {"y": ("kill", kill), "n": ("wait", nothing)})

    def _ended(self, record: Record) -> None:
        home = record.at_home
        status = record.program_exit
        self.live.state = str(record.state)
        if not home:
            self.say("no report came home")
            if record.kept == "discarded":
                self.remove_there(record, here=False)
            return
        for path in home:
            self.say(f"report: {path}")
        if status:
            self.say(f"the program exited {status}; its report is complete")
        several, previous = len(home) > 1, self.previous
        look = partial(self.open_reports, record)
        answers: dict[str, Answer] = {"o": ("open all as a fleet" if several else "open", look)}
        if previous is not None:

            def compare() -> None:
                look()
                self.app.show("compare", selection=Selection("compare", (str(previous.path),)))

            answers["c"] = ("compare with the previous", compare)
        came = f"{len(home)} reports of one run" if several else home[0].name
        said = record.failure.title if record.failure else f"{came} came home"
        choose(self.app, f"{said}.", answers)


def metadata(report: Report | None) -> list[tuple[str, str]]:
    """Settings of the capture as pairs; the environment among them is shown redacted only."""
    if report is None:
        return []
    rows = report.rows(Kind.CAPTURE_SETTING, "name", "value")
    return [(str(n), str(v)) for n, v in zip(rows["name"], rows["value"], strict=True)]
