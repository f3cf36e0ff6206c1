"""Host: what screens, dialogs and widgets know of the app.

Open reports, the loader, the screens behind the number keys, and the one way that state and actions
travel. It knows screens as ``FrontScreen`` alone; what the keys of every screen do is registered.
"""

from __future__ import annotations

import time
from asyncio import get_running_loop
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding

from nsys_tui.config import Config
from nsys_tui.errors import NsysTuiError
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.names import pad, visible
from nsys_tui.paths import told_apart
from nsys_tui.state import ViewState, here, jumped
from nsys_tui.ui import keymap, open_reports, presets
from nsys_tui.ui.front import FrontScreen
from nsys_tui.ui.links import settle
from nsys_tui.ui.loader import load, unexpected
from nsys_tui.ui.marks import save_marks
from nsys_tui.ui.messages import Failed, LoadFinished, PartLoaded, ProgressMoved, ReportOpened
from nsys_tui.ui.progress import LONG, Work
from nsys_tui.ui.recent import remember
from nsys_tui.ui.runtime.threads import background, counted
from nsys_tui.ui.session import NO_REPORT, Session, initial_state, nothing_open
from nsys_tui.ui.terminal import Terminal, probe
from nsys_tui.ui.themed_app import ThemedApp
from nsys_tui.units import plural

HINT = (
    " New here? Enter opens what the cursor is on, Esc goes back, 1 to 8 are screens;\n"
    " ? explains words and keys, Ctrl+P runs anything by its name.  (esc: seen)"
)
"""What the first screen says where no report was opened before."""

ReportOpener = Callable[[Path, "Progress"], "Report"]


class Host(ThemedApp, inherit_bindings=False):
    """The app, apart from what the keys of every screen do.

    Args:
        paths: reports to open; the first is in front. None: a screen that needs none is first.
        opener: opens one report; called in a worker thread.
        config: the settings of this run.
        terminal: what the terminal can show; probed when not given.
        start: name of the first screen.
        resume: whether reports are shown as they were left.
        use_cache: whether what is computed may be kept in the cache folder.
    """

    TITLE = "nsys-tui"
    LAZY_SCREENS = keymap.SCREENS
    GLOBAL_COMMANDS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Action id to what it does, for the actions that every screen has."""
    BINDINGS: ClassVar[list[Any]] = [
        *keymap.bindings(keymap.GLOBAL),
        Binding("ctrl+c", "interrupt", show=False, system=True),
    ]

    def __init__(
        self,
        paths: Sequence[Path],
        opener: ReportOpener,
        *,
        config: Config | None = None,
        terminal: Terminal | None = None,
        start: str = "overview",
        resume: bool = False,
        use_cache: bool = True,
        remembers: bool = True,
    ) -> None:
        super().__init__(config or Config(), terminal or probe())
        self.opener = opener
        self.use_cache = use_cache
        self.first_state = initial_state(self.config.display)
        self.sessions = [Session(path, state=self.first_state) for path in paths]
        self.session = self.sessions[0] if paths else nothing_open(self.first_state)
        self.name_sessions()
        self.keymap = presets.effective(self.config.keys)
        self.chords = presets.chords(self.keymap)
        self._chord_prefix = ""
        self.set_keymap(presets.textual_keymap(self.keymap))
        self.error: NsysTuiError | None = None
        self.fatal: NsysTuiError | None = None
        self._has_opened = False
        self.progress: ProgressMoved | None = None
        self.work = Work()
        self._start, self._resume, self._remembers = start, resume, remembers
        self.logs: Sequence[Path] = ()
        """What the Logs screen reads as soon as it stands."""
        self.hint = ""
        """Stands on the first screen until Esc, or until it is left."""

    def on_mount(self) -> None:
        """Shows the first screen and begins to load."""
        get_running_loop().set_default_executor(background())
        self.switch_mode(self._start)
        self.begin_load(self.session)
        self.run_worker(self._tell_unfinished, thread=True, group="captures", exit_on_error=False)

    def leave(self, status: int = 0) -> None:
        """Ends the app; whatever is still loading stops at its next step."""
        if self.front is not None and self._remembers:
            open_reports.keep_session(self.sessions, self.session, self.front.SCREEN)
        for session in self.sessions:
            session.cancel.set()
        super().leave(status)

    def _tell_unfinished(self) -> None:
        """Captures that an earlier run left behind can be taken up again."""
        from nsys_tui.capture.record import Store

        if left := Store().left_running():
            self.call_from_thread(self.say, f"{left}: 9, then A attaches")

    def say(self, text: str) -> None:
        """Tells something in passing: in the footer where it fits (cheap), else in a toast.

        An empty text takes back what the footer says.
        """
        footer: Any = next(iter(self.screen.query("KeyLine")), None)
        if footer is None or not footer.say(visible(text)):
            super().say(text)

    @property
    def state(self) -> ViewState:
        """View state of the report in front."""
        return self.session.state

    def set_state(self, state: ViewState) -> None:
        """Replaces the view state; the screen in front hears of it at once, others when shown."""
        changed = state.marks is not self.session.state.marks
        self.session.state = state
        if changed and self.session.report_id:
            refused = save_marks(self.session.report_id, dict(state.marks))
            if refused:
                self.call_later(self.say, f"bookmarks are not saved: {refused}")
        self.sync()

    def sync(self) -> None:
        """Lets the screen in front catch up."""
        if (screen := self.front) is not None:
            screen.sync()

    @property
    def report_screens(self) -> list[FrontScreen]:
        """All screens visited so far."""
        built = (self.built_screen(spec.name) for spec in keymap.SCREENS)
        return [screen for screen in built if isinstance(screen, FrontScreen)]

    def use_theme(self, name: str) -> None:
        """Changes the theme; hidden screens hear of it too."""
        super().use_theme(name)
        for screen in self.report_screens:
            screen.theme_changed()

    @property
    def front(self) -> FrontScreen | None:
        """The report screen in front, also when a dialog covers it."""
        stack = self.screen_stack if self._screen_stacks.get(self.current_mode) else []
        return next((s for s in reversed(stack) if isinstance(s, FrontScreen)), None)

    def show(self, name: str, **changes: Any) -> None:
        """Goes to a screen as a jump that Backspace undoes.

        Args:
            name: screen name of ``keymap.SCREENS``.
            changes: fields of ``ViewState`` to replace, such as ``window=`` or ``selection=``.
        """
        front, self.hint = self.front, ""
        if front is not None and (changes or name != front.SCREEN):
            origin = here(self.state, front.SCREEN, front.view())
            self.session.state = jumped(self.state, origin, **changes)
        self.switch_mode(name)
        self.sync()

    async def visit(self, name: str) -> None:
        """Goes to a screen, which may have to be imported first."""
        await self.fetch_screen(name)
        self.show(name)

    def handler(self, action_id: str) -> Callable[[], Any] | None:
        """What an action does now: a method of the focused widget, its ancestors, screen or app."""
        if action_id == "nav.escape" and self.wants_escape:
            return partial(self.GLOBAL_COMMANDS[action_id], self)
        name = action_id.replace(".", "_")
        focused = self.screen.focused
        nodes = focused.ancestors_with_self if focused is not None else [self.screen, self]
        for node in nodes:
            method: Callable[[], Any] | None = getattr(node, f"action_{name}", None)
            if method is not None and node.check_action(name, ()):
                return method
        if action_id.startswith("view."):
            mode = action_id.removeprefix("view.")
            return partial(self.visit, mode) if mode in self._modes else None
        command = self.GLOBAL_COMMANDS.get(action_id)
        return partial(command, self) if command else None

    @property
    def wants_escape(self) -> bool:
        """Whether an error, a maximised pane or work in progress comes before any pane's Esc."""
        waiting = self.error is not None or self.progress is not None
        return waiting or bool(self.hint) or self.screen.maximized is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An action of the table is enabled where something implements it."""
        if action == "do":
            return self.handler(str(parameters[0])) is not None
        return super().check_action(action, parameters)

    async def action_do(self, action_id: str) -> None:
        """Runs an action of the table by its id."""
        if (method := self.handler(action_id)) is not None:
            result = method()
            if isawaitable(result):
                await result

    async def takes(self, event: events.Event) -> bool:
        """The two keys of a chord are caught before the bindings see them."""
        return bool(self.chords) and isinstance(event, events.Key) and await self._chord(event)

    async def _chord(self, event: events.Key) -> bool:
        focused = self.screen.focused
        if focused is not None and focused.check_consume_key(event.key, event.character):
            return False
        prefix, self._chord_prefix = self._chord_prefix, ""
        action = self.chords.get((prefix, event.key))
        if action is not None and self.handler(action) is not None:
            await self.action_do(action)
            return True
        ways = [
            (f"{keymap.shown_key(first)}{keymap.shown_key(second)}", a)
            for (first, second), a in self.chords.items()
            if first == event.key and self.handler(a) is not None
        ]
        if ways:
            self._chord_prefix = event.key
            self.say("   ".join(f"{keys} {self._label(a)}" for keys, a in ways))
        return bool(ways)

    def _label(self, action_id: str) -> str:
        actions = self.front.ACTIONS if self.front is not None else ()
        return next((a.label for a in (*actions, *keymap.GLOBAL) if a.id == action_id), action_id)

    def begin_load(self, session: Session) -> None:
        """Opens and loads a session's report in a worker thread, unless that was done."""
        if session.started:
            return
        session.started = True
        self.work = Work()

        def job() -> None:
            with counted(self.jobs):
                load(session, lambda p: self.opener(session.path, p), self.post_message)

        self.run_worker(job, thread=True, group="load", exit_on_error=False)

    def session_at(self, path: Path) -> Session:
        """The session of a report; one that is not open yet is read when it is needed first."""
        for session in self.sessions:
            if session.path.absolute() == path.absolute():
                return session
        session = Session(path, state=self.first_state)
        self.sessions.append(session)
        self.name_sessions()
        if self.session not in self.sessions:
            self.bring_to_front(session)
        return session

    def name_sessions(self) -> None:
        """Names the open reports so that two ``report1`` are told apart."""
        names = told_apart([session.path for session in self.sessions])
        for session, name in zip(self.sessions, names, strict=True):
            session.label = name

    def open_path(self, path: Path) -> None:
        """Opens a report, or brings it to the front where it is open already."""
        self.bring_to_front(self.session_at(path))

    def bring_to_front(self, session: Session) -> None:
        """Shows another of the open reports; it is loaded when it comes to the front first."""
        if self.front is not None:
            self.session.screen = self.front.SCREEN
        self.session = session
        self.begin_load(session)
        self.sync()

    def put_beside(self, guest: Session) -> None:
        """Has the lanes of another open report join the timeline of the one in front."""
        if guest not in self.session.beside:
            self.session.beside.append(guest)
        self.begin_load(guest)

    def on_report_opened(self, message: ReportOpened) -> None:
        """The screen in front starts on the new report."""
        session, self._has_opened = message.session, True
        marks = {**message.marks, **session.state.marks}
        session.state = replace(session.state, marks=marks)
        linked = session.place is not None
        if self._resume and not linked and (left := open_reports.take_up(session, self.sessions)):
            for guest in session.beside:
                self.begin_load(guest)
            self._return_to(left, session)
        self.remember(session)
        if message.session is self.session:
            self.sync()

    def remember(self, session: Session, verdict: str = "") -> None:
        """Keeps for the next start that a report was opened, and what was concluded of it."""
        if self._remembers:
            remember(session.path, verdict=verdict)

    def _return_to(self, screen: str, session: Session) -> None:
        """Goes to where the user left a report, unless another screen was asked for."""
        if session is self.session and self._start == "overview":
            self.call_later(self.visit, screen)
            self.call_later(self.say, "as you left it; 0 on the timeline shows the whole trace")

    def on_part_loaded(self, message: PartLoaded) -> None:
        """The screen in front may draw more."""
        message.session.loaded.append(message.part)
        settle(message.session)
        if message.session is self.session:
            self.sync()

    def on_load_finished(self, message: LoadFinished) -> None:
        """Progress gives way to nothing, or to the word that loading was cancelled."""
        message.session.finished = True
        self.work_done()
        if message.session not in self.sessions:
            return
        if message.cancelled:
            self.say("loading cancelled: R reads the report again")
        self.sync()
        self.fetch_screens()

    def on_progress_moved(self, message: ProgressMoved) -> None:
        """Shows progress once the work has lasted half a second."""
        began = self.work.began is not None
        self.work.moved(message, time.monotonic())
        if not began:
            self.set_timer(LONG, self._show_progress)
        self._show_progress()

    def _show_progress(self) -> None:
        """Work may last without getting on, so a timer looks too."""
        self.progress = self.work.last if self.work.is_long(time.monotonic()) else None
        self.refresh_status()

    def on_work_ended(self) -> None:
        """The work that the line told about is over."""
        self.work_done()

    def work_done(self) -> None:
        """Nothing is being built any more: the line goes away."""
        self.work, self.progress = Work(), None
        self.refresh_status()

    def on_failed(self, message: Failed) -> None:
        """The bar holds the error until it is seen; where the only report is none, the app ends."""
        error, before = message.error, self.error
        if message.unread is not None and before is not None:  # each of several files is named
            error = type(error)(f"{before.title}\n{error.title}", error.message, error.hint)
        self.error = error
        if message.unread is not None and not self._has_opened and len(self.sessions) == 1:
            self.fatal = error
            code = error.exit_code
            self.exit(code, return_code=code)
            return
        self.refresh_status()

    def report_fault(self, error: Exception) -> None:
        """Shows a fault of work in the background; called from any thread."""
        self.post_message(Failed(unexpected(error)))

    def refresh_status(self) -> None:
        """Brings the progress or error line up to date."""
        if (front := self.front) is not None:
            front.refresh_status()

    def show_fault(self, error: Exception) -> None:
        """The bar holds a fault of the program itself until it is seen."""
        self.error = unexpected(error)
        self.refresh_status()

    def status_text(self) -> tuple[str, bool]:
        """Text of the status line and whether it is an error."""
        if self.error is not None:
            lines = [visible(line) for line in str(self.error).splitlines()]
            return "\n".join([f"! {lines[0]}", *lines[1:]]) + "  (esc: seen)", True
        if self.progress is None:
            return self._notes_text(), False
        return self.work.text(self.progress, time.monotonic()), False

    def _notes_text(self) -> str:
        """What there is to know about the report in front before its figures are believed."""
        report = self.session.report
        about_reports = self.front is None or self.front.OF_ONE_REPORT
        if report is None and self.session.finished and about_reports:
            if self.session.path == NO_REPORT:
                return " no report is open: o opens one, 9 profiles a program"
            return " this report is not read: R reads it again, o opens another"
        notes = () if report is None else report.notes.texts
        if self.hint or not notes:
            return self.hint
        text = f" * {plural(len(notes), 'note')} (C: all): {visible(notes[0])}"
        return pad(text, self.size.width)
