"""Logs: what NCCL, trainer and MPI logs say, and which collective was which kernel."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.timer import Timer

from nsys_tui.errors import NsysTuiError, UsageError
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.model.table import Table
from nsys_tui.render.cells import MUTED
from nsys_tui.state import ViewState
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.evidence import show_on_timeline
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import failures_shown
from nsys_tui.ui.recent import logs_in
from nsys_tui.ui.screens.logs.data import (
    JOINED,
    Joined,
    Opened,
    Place,
    call_of,
    find_collectives,
    open_logs,
    reopen_grown,
    section_table,
    sections,
    telling,
)
from nsys_tui.ui.screens.result import CANCELLED, ResultScreen, failure_text
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.actions import TABLE
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.result_columns import columns_of
from nsys_tui.ui.widgets.table.table import VirtualTable


def entries(folders: list[Path]) -> list[Entry]:
    """What the picker offers: each folder that holds several logs, then the logs themselves."""
    listed: list[Entry] = []
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        logs = logs_in(folder)
        if len(logs) > 1:
            listed.append(Entry(f"{folder}/  ({len(logs)} logs)", "all", str(folder)))
        listed += [Entry(str(path), "here", str(path)) for path in logs]
    return listed


def expand(text: str) -> list[Path]:
    """Files that a typed text names: a file, a folder of logs, or a pattern such as ``r*.log``.

    Raises:
        UsageError: it names none.
    """
    path = Path(text.strip()).expanduser()
    if path.is_dir():
        paths = sorted(logs_in(path))
    elif path.is_file():
        paths = [path]
    else:
        paths = sorted(p for name in glob.glob(str(path)) if (p := Path(name)).is_file())
    if not paths:
        raise UsageError(f"no log there: {text}", hint="a file, a folder, or a pattern: rank*.log")
    return paths


ACTIONS = (
    Action("report.open", ("o",), "open logs", "open NCCL, trainer or MPI logs", 1),
    Action("logs.follow", ("t",), "follow", "read the logs again when they grow; again stops"),
    *TABLE,
)

FOLLOW_S = 2.0
"""Seconds between two looks at logs that are followed."""
MOST_OTHERS: Final = 63
"""Open reports that are joined with the one in front."""
NOTHING: Final = (
    "no log is open: o opens NCCL, trainer or MPI logs; what NCCL has to write:",
    "NCCL_DEBUG=INFO  NCCL_DEBUG_SUBSYS=INIT,COLL,NET,NVLS,GRAPH,TUNING,ENV",
    "NCCL_DEBUG_FILE=nccl.%h.%p.log, one file per process",
)


class LogsScreen(ResultScreen[Joined]):
    """Sections at the left, the table of the chosen one at the right, its notes below."""

    SCREEN = "logs"
    KIND = "join"
    OF_ONE_REPORT = False
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#sections"
    DEFAULT_CSS: ClassVar[str] = """
    LogsScreen #sections { width: 17; height: 1fr; }
    LogsScreen #right { width: 1fr; height: 1fr; }
    LogsScreen #table { height: 1fr; }
    LogsScreen #notes { height: 5; }
    LogsScreen.-tall #notes { height: 9; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.opened: Opened | None = None
        self._others: dict[Path, Report] = {}
        self.section = ""
        self._tables: dict[str, Table] = {}
        self._follower: Timer | None = None
        self._looking = False

    def body(self) -> Iterable[Any]:
        """Sections, table and notes."""
        yield Horizontal(
            LinePane("Logs", id="sections", always_cursor=True),
            Vertical(
                VirtualTable("", empty="", id="table"),
                LinePane("Notes", id="notes"),
                id="right",
            ),
        )

    def on_mount(self) -> None:
        """Reads the logs that were chosen before the app stood."""
        super().on_mount()
        if self.app.logs:
            self.call_after_refresh(self.open, list(self.app.logs))  # a first sync drops all work

    table = query_one("#table", VirtualTable)
    """The table of the section."""

    def clear(self) -> None:
        """Another report: the logs stay, their join is made anew."""
        self._refill()

    def report_closed(self, session: Session) -> None:
        """The join is with reports that are open."""
        super().report_closed(session)
        self.result = None
        self._others.pop(session.path, None)

    def needs_new(self, old: ViewState, new: ViewState) -> bool:  # noqa: ARG002
        """Whole reports are joined."""
        return False

    def work(self, report: Report) -> Callable[[Progress], Joined]:
        """Finds the collectives of the open reports, by the logs where there are any."""
        front, opened = Place(self.session.path, report), self.opened
        # Without logs nobody asked for the other reports, so those not yet read are left alone.
        others = [
            session
            for session in self.app.sessions
            if session is not self.session and (session.finished or opened is not None)
        ]

        def work(progress: Progress) -> Joined:
            places, notes = self._read_others(others, progress)
            return find_collectives(front, places, notes, opened)

        return work

    def _read_others(
        self, sessions: list[Session], progress: Progress
    ) -> tuple[list[Place], list[str]]:
        """Reports that are open beside the one in front, read where they were not yet shown."""
        places, notes = [], []
        for done, session in enumerate(sessions[:MOST_OTHERS]):
            progress("reading the other open reports", done, len(sessions))
            report = session.report if session.finished else self._others.get(session.path)
            try:
                report = report or self.app.opener(session.path, progress)
            except NsysTuiError as error:
                notes.append(f"{session.name} is not joined: {error.title}")
                continue
            if not session.finished:
                self._others[session.path] = report
            places.append(Place(session.path, report))
        if len(sessions) > MOST_OTHERS:
            notes.append(f"{len(sessions) - MOST_OTHERS} more open reports are not joined")
        return places, notes

    def show_result(self, report: Report, result: Joined) -> None:  # noqa: ARG002
        """There are more sections now, and one of them may be the chosen one."""
        self._refill()

    def say_busy(self) -> None:
        """The sections there are stay meanwhile."""
        self._busy("joining with the open reports")

    def say_stopped(self, why: str) -> None:
        """What was there stays."""
        self._busy("")
        if why != CANCELLED:
            self.table.empty = why
            self.table.refresh()

    def _busy(self, what: str) -> None:
        self.table.busy = what
        self.table.redraw_heading()

    def _refill(self) -> None:
        """Lists the sections there are now; the chosen one stays chosen if it is still there."""
        self._busy("")
        self._tables.clear()
        names = sections(self.opened, self.result)
        pane = self.query_one("#sections", LinePane)
        if self.section in names:
            pane.cursor = names.index(self.section)
        pane.show([[(f" {name}", 0)] for name in names], names)
        self.call_after_refresh(pane.scroll_to_cursor)
        if not names:
            self.section = ""
            self.table.title, self.table.empty = "Logs", NOTHING[0].partition(";")[0]
            self.table.show_rows((), 0)
            self._show_notes(NOTHING)
        else:
            self._choose(names[min(pane.cursor, len(names) - 1)])

    def on_line_pane_moved(self, message: LinePane.Moved) -> None:
        """Shows the section under the cursor."""
        name = message.choice
        if message.pane.id == "sections" and isinstance(name, str) and name != self.section:
            self._choose(name)

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """Enter on a section goes into its table."""
        if message.pane.id == "sections":
            self.table.focus()

    def _choose(self, name: str) -> None:
        self.section = name
        if name in self._tables:
            self._show(name, self._tables[name])
            return
        work = partial(section_table, name, self.opened, self.result)
        self.compute("section", work, partial(self._show, name))

    def _show(self, name: str, table: Table | None) -> None:
        if name != self.section or table is None:
            return
        self._tables[name] = table
        self.table.title, self.table.empty = table.title, "none"
        self.table.show_rows(columns_of(table, least=16), len(table))
        joined = self.result.calls.notes if self.result is not None and name in JOINED else ()
        self._show_notes(dict.fromkeys((*table.notes, *joined)))

    def _show_notes(self, notes: Iterable[str], heading: str = "Notes") -> None:
        pane = self.query_one("#notes", LinePane)
        pane.heading(heading)
        pane.show_texts(notes, MUTED)

    def action_report_open(self) -> None:
        """Asks for logs: one file, a folder, or a pattern for one per rank."""
        folders = [Path.cwd(), self.session.path.parent]
        title = "Open logs: choose, or type a file, folder or pattern"
        self.app.ask(Picker(title, entries(folders), free=True), self._picked)

    def _picked(self, text: str) -> None:
        with failures_shown(self.app):
            self.open(expand(text))

    def open(self, paths: list[Path]) -> None:
        """Reads logs in a worker and shows them."""
        self._busy(f"reading {len(paths)} log{'s' * (len(paths) > 1)}")

        def work(progress: Progress) -> Opened:
            return open_logs(paths, progress)

        self.compute_telling(
            "read",
            work,
            self._take_logs,
            partial(self.say_stopped, CANCELLED),
            lambda error: self.say_stopped(failure_text(error)),
        )

    def action_logs_follow(self) -> None:
        """Reads the logs anew whenever they grow, or no more."""
        if self._follower is not None:
            self._follower.stop()
            self._follower = None
            self.app.notify("logs are followed no more")
        elif self.opened is None:
            self.app.notify("no log is open to follow: o opens logs")
        else:
            self._follower = self.set_interval(FOLLOW_S, self._look)
            self.app.notify("following the logs; t stops")

    def _look(self) -> None:
        opened = self.opened
        if opened is None or self._looking:
            return
        self._looking = True
        self.compute("look", partial(reopen_grown, opened), self._take_grown)

    def _take_grown(self, opened: Opened | None) -> None:
        self._looking = False
        if opened is not None and self._follower is not None:
            self._take_logs(opened, self.section)

    def _take_logs(self, opened: Opened, section: str = "") -> None:
        self.opened, self.section = opened, section or telling(opened)
        self.result = None
        self._refill()
        self.make()

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """The kernel of a collective on the timeline, of the rank that came last; other rows whole.

        Of an operation it is its longest collective.

        The notes come back with the section.
        """
        joined = self.result
        call = None if joined is None else call_of(self.section, joined.calls, message.row)
        if joined is None or call is None:
            cells = ((c.header, c.text(message.row).strip()) for c in self.table.columns)
            whole = "   ".join(f"{header}: {text}" for header, text in cells if text)
            self._show_notes([whole], f"Row {message.row + 1:,} in full")
            return
        calls = joined.calls
        row = calls.kernel_row(call)
        path, report = joined.places[calls.members[calls.last[call]].report]
        if report is not self.report:
            self.app.open_path(path)
        show_on_timeline(self.app, report.operations, row, report.extent)
