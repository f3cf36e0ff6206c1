"""ReportScreen: the frame that all screens share, and how they learn what changed.

A screen overrides ``body`` and the hooks ``show_report``, ``part_loaded``, ``state_changed`` and
``load_finished``. Hooks run only while the screen is in front; what happened meanwhile is delivered
when it comes back, so a hidden screen costs nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual.binding import Binding
from textual.containers import Container
from textual.content import Content
from textual.geometry import Offset
from textual.reactive import Reactive
from textual.widgets import Static

from nsys_tui.model.report import NOTHING
from nsys_tui.names import visible
from nsys_tui.state import ViewState, Window
from nsys_tui.times import window_text
from nsys_tui.ui.front import FrontScreen
from nsys_tui.ui.keymap import GLOBAL, Action, effective_keys, shown_key
from nsys_tui.ui.open_reports import tab_at, tabs
from nsys_tui.ui.widgets.chrome import KeyLine, StatusLine, TabLine, TitleLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from nsys_tui.model.report import Report
    from nsys_tui.ui.host import Host
    from nsys_tui.ui.session import Session
    from nsys_tui.ui.widgets.icicle import IciclePane
    from nsys_tui.ui.widgets.table.grid import Grid

T = TypeVar("T")

MIN_WIDTH, MIN_HEIGHT = 80, 24


class ReportScreen(FrontScreen, inherit_bindings=False):
    """Base of the screens behind the number keys."""

    OF_WHOLE_TRACE: ClassVar[bool] = False
    """Whether its figures are of the whole trace, whatever the window."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("ctrl+c,super+c", "screen.copy_text", "Copy selected text", show=False)
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide"), (160, "-xwide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-medium"), (40, "-tall")]  # noqa: RUF012
    app: Host
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Panes show focus themselves: painting the whole screen for it took 25 ms at 160x45."""

    DEFAULT_CSS: ClassVar[str] = """
    ReportScreen { layout: vertical; overflow: hidden hidden; }
    ReportScreen > #body { height: 1fr; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._unfocused: Widget | None = None
        """What had the focus when the terminal became too small."""
        self._seen_session: Session | None = None
        self._seen_report: Report | None = None
        self._seen_parts: set[str] = set()
        self._seen_state: ViewState | None = None
        self._seen_finished = False

    @property
    def session(self) -> Session:
        """The report in front, with its view state."""
        return self.app.session

    @property
    def report(self) -> Report | None:
        """The open report; None until its metadata are read, and the screen has heard of it."""
        return self._seen_report if self._seen_session is self.session else None

    @property
    def state(self) -> ViewState:
        """The shared view state; replace it with ``self.app.set_state``."""
        return self.session.state

    def tab_offset(self, name: str) -> Offset | None:
        """Where a screen's tab is, or None where it has none."""
        tabs = self.query_one(TabLine)
        spot = next((start for start, _, tab in tabs.targets if tab == f"view.{name}"), None)
        return None if spot is None else tabs.region.offset + Offset(spot, 0)

    def body(self) -> Iterable[Any]:
        """Widgets between tabs and footer."""
        return ()

    def show_report(self) -> None:
        """A report's metadata are there, or another report came to the front: start afresh."""

    def part_loaded(self, part: str) -> None:
        """One of ``PARTS`` is complete; ``sample`` stands for a sample of the operations."""

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """The shared view state was replaced."""

    def load_finished(self) -> None:
        """Nothing more will be loaded by itself."""

    def report_closed(self, session: Session) -> None:
        """A report is no longer open: what is kept of it is given up."""
        if self._seen_session is session:
            self._seen_session = self._seen_report = self._seen_state = None

    @property
    def exported(self) -> Grid | IciclePane | None:
        """What is written where the pane in focus cannot be: the first table or picture seen."""
        # By name: the first screen has none of them, and need not wait for their modules.
        panes = cast("Iterable[Any]", self.query("VirtualTable, VirtualTree, IciclePane"))
        hidden = self.maximized is not None  # by the pane that fills the screen
        return next((p for p in panes if (p.size.height or hidden) and p.display), None)

    def action_export_view(self) -> None:
        """Asks for a file name and writes what is shown."""
        if (pane := self.exported) is not None:
            pane.action_export_view()

    @property
    def can_export(self) -> bool:
        """Whether there is anything to write."""
        return self.exported is not None and bool(self.exported.check_action("export_view", ()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What would do nothing is off."""
        if action == "export_view":
            return self.can_export
        return super().check_action(action, parameters)

    def compose(self) -> ComposeResult:
        """Builds the frame around the body."""
        yield Static(id="notice")
        yield TitleLine(id="title")
        yield TabLine(id="tabs")
        yield Container(*self.body(), id="body")
        yield StatusLine(id="status")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Catches up with what is loaded."""
        self.sync()

    def on_screen_resume(self) -> None:
        """Catches up with what happened while the screen was hidden."""
        self.sync()

    def on_descendant_focus(self) -> None:
        """Other keys may work in the newly focused pane."""
        self.refresh_keys()

    def on_resize(self, event: events.Resize) -> None:
        """Below the smallest size a notice takes the place of the body."""
        small = event.size.width < MIN_WIDTH or event.size.height < MIN_HEIGHT
        self.set_class(small, "-too-small")
        if small:
            size = f"{event.size.width}x{event.size.height}"
            text = (
                f"needs {MIN_WIDTH}x{MIN_HEIGHT}, this is {size}: enlarge the terminal,"
                f" or run: nsys-tui overview {visible(self.session.name)}"
            )
            self.query_one("#notice", Static).update(Content(text))
            self._unfocused = self.focused or self._unfocused
        elif self.focused is None and self._unfocused is not None:
            self.call_after_refresh(self.set_focus, self._unfocused)
        if self.app.screen is self:
            self.refresh_keys()

    def sync(self) -> None:
        """Delivers to the hooks what they have not seen yet, unless the app is closing."""
        if not (self.is_mounted and self.is_current and self.app.is_running):
            return
        session = self.app.session
        if session is not self._seen_session or session.report is not self._seen_report:
            self._seen_session, self._seen_report = session, session.report
            self._seen_parts, self._seen_finished = set(), False
            self._seen_state = session.state
            self.drop_tasks()
            if session.report is not None:
                self.show_report()
        for part in [part for part in session.loaded if part not in self._seen_parts]:
            self._seen_parts.add(part)
            self.part_loaded(part)
        if session.finished and not self._seen_finished:
            self._seen_finished = True
            self.load_finished()
        if self._seen_state is not session.state:
            old, self._seen_state = self._seen_state, session.state
            if old is not None:
                self.state_changed(old, session.state)
        self.refresh_chrome()

    def refresh_chrome(self) -> None:
        """Brings title, tabs, status and footer up to date."""
        self.query_one(TitleLine).show(*self.title_parts())
        self.query_one(TabLine).show(self.SCREEN)
        self.refresh_status()
        self.refresh_keys()

    def refresh_status(self) -> None:
        """Brings the progress or error line up to date."""
        text, error = self.app.status_text()
        # Progress may come before the screen has its lines.
        for line in self.query(StatusLine):
            line.say(text, error=error)

    def title_parts(self) -> tuple[str, str]:
        """Left and right part of the title line."""
        session = self.session
        named = tabs(self.app.sessions, session, self.size.width // 2)
        left = " | ".join(part for part in ("nsys-tui", named, session.gpus) if part)
        left = visible(left)
        if session.report is None or not session.loaded:
            return left, ""
        if session.finished and session.extent == NOTHING:
            return left, "no events"
        whole = self.OF_WHOLE_TRACE or self.state.window is None
        window = Window(*session.extent) if whole else session.window
        text = window_text(window, self.state.display.time, session.report)
        return left, f"{text} (all)" if whole else text

    def on_title_line_clicked(self, message: TitleLine.Clicked) -> None:
        """Shows the report whose name was clicked."""
        sessions, left = self.app.sessions, self.title_parts()[0]
        clicked = tab_at(sessions, self.session, left, message.cell)
        if clicked is not None and clicked is not self.session:
            self.app.bring_to_front(clicked)

    def refresh_keys(self) -> None:
        """Shows in the footer the ranked actions that work here.

        Below a dialog the footer stays as it was: what works then is the dialog's to say.
        """
        if self.app.screen is not self:
            return
        handler = self.app.handler
        shown = []
        for action, keys in self._ranked_keys:
            free = (k for k, rivals in keys if not any(handler(rival) for rival in rivals))
            if (key := next(free, None)) is not None and handler(action.id):
                shown.append((shown_key(key), action))
        self.query_one(KeyLine).show_keys(tuple(shown))

    @cached_property
    def _ranked_keys(self) -> list[tuple[Action, list[tuple[str, list[str]]]]]:
        """What the footer may show: per key of an action, the screen's own that come before it."""
        keymap, actions = self.app.keymap, self.ACTIONS

        def rivals(action: Action, key: str) -> list[str]:
            others = () if action in actions else actions
            return [other.id for other in others if key in effective_keys(other, keymap)]

        ranked = sorted((each for each in (*actions, *GLOBAL) if each.rank), key=lambda a: a.rank)
        return [(a, [(k, rivals(a, k)) for k in effective_keys(a, keymap)]) for a in ranked]

    def _on_timer_update(self) -> None:
        """Keys follow what is painted: what is empty, an estimate or hidden is not exported."""
        if self.is_mounted:
            self.refresh_keys()
        super()._on_timer_update()
