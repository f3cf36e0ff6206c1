"""Fleet: all open reports as one run of many ranks: who is who, and where time went when."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any, ClassVar, Final

from textual.getters import query_one

from nsys_tui.analysis.links import Place
from nsys_tui.fleet.answer import verdict
from nsys_tui.fleet.engine import Result, default_workers
from nsys_tui.fleet.fleet import Fleet
from nsys_tui.fleet.heat_maps import HeatMap, heat_map, map_names
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening
from nsys_tui.fleet.summary import Options
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.names import visible
from nsys_tui.reader.cache import cache_at
from nsys_tui.state import ViewState, Window
from nsys_tui.ui.dialogs.picker import Prompt
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.links import look_at
from nsys_tui.ui.screens.fleet.heat import HeatPane
from nsys_tui.ui.screens.fleet.reading import (
    EXAMPLES,
    Cut,
    Partial,
    RankRow,
    Shown,
    gpu_of,
    parse_cut,
    shown,
    typical,
)
from nsys_tui.ui.screens.result import CANCELLED
from nsys_tui.ui.screens.tables import TableScreen
from nsys_tui.ui.widgets.lines import LinePane, Verdict
from nsys_tui.ui.widgets.table.actions import TABLE
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.units import out_of

ACTIONS: tuple[Action, ...] = (
    Action("fleet.map", ("m",), "map", "next heat map: busy, communication, overlap, memory", 1),
    Action("fleet.map_back", ("M",), "map", "the heat map before"),
    Action("fleet.part", ("w",), "part", "only a window, step, range, GPU, process or stream", 2),
    Action("fleet.beside", ("b",), "beside", "the rank's lanes in the timeline of the front", 3),
    *TABLE,
)
BINS: Final = 500
FEW: Final = 3
"""Up to so many reports are read in this process: starting others takes longer."""


class FleetScreen(TableScreen[Shown]):
    """Ranks of all open reports in a table, and a heat map of ranks over time below it."""

    SCREEN = KIND = "fleet"
    READING = MAKING = "reading reports ..."
    BUSY = "reading"
    wish: Cut = Cut()
    OF_ONE_REPORT = False
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#ranks"
    WORKERS: ClassVar[int | None] = None
    """Processes that read reports; one per processor by default."""
    DEFAULT_CSS: ClassVar[str] = """
    FleetScreen #ranks { height: 1fr; }
    FleetScreen #heat { height: 1fr; }
    FleetScreen #notes { height: 4; display: none; }
    FleetScreen.-medium.-noted #notes, FleetScreen.-tall.-noted #notes { display: block; }
    FleetScreen.-tall #notes { height: 6; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.map = "busy"
        self._paths: tuple[Path, ...] = ()
        """What is shown, or being read."""
        self._cancelled = False
        self._reading: object | None = None
        """What is being read: results of anything else come too late."""
        self._shown: Shown | None = None
        """The ranks known so far."""

    def body(self) -> Iterable[Any]:
        """Who holds the others up, ranks, and time below."""
        yield Verdict()
        yield VirtualTable("Ranks", empty=self.READING, id="ranks")
        yield HeatPane(id="heat")
        yield LinePane("Notes", id="notes")

    @property
    def fleet(self) -> Fleet | None:
        """The ranks known so far."""
        return self._shown.fleet if self._shown is not None else None

    @property
    def _rows(self) -> list[RankRow]:
        return self._shown.rows if self._shown is not None else []

    heat = query_one("#heat", HeatPane)
    """The heat map."""

    def on_screen_resume(self) -> None:
        """What was cancelled is taken up again."""
        if self._cancelled:
            self._cancelled, self._paths = False, ()
        super().on_screen_resume()

    def sync(self) -> None:
        """Beside what every screen hears of: reports may have been opened meanwhile."""
        if not self.is_mounted or not self.is_current:
            return
        super().sync()
        paths = tuple(session.path.absolute() for session in self.app.sessions)
        if paths != self._paths:
            self._paths = paths
            self.make()

    @property
    def can_begin(self) -> bool:
        """Reports of other processes are read, not those of the app."""
        return True

    def show_report(self) -> None:
        """Another report in front changes nothing."""

    def load_finished(self) -> None:
        """Nor does one that was read."""

    def drop_tasks(self) -> None:
        """What is being read does not depend on the report in front: another one voids nothing."""

    def needs_new(self, old: ViewState, new: ViewState) -> bool:  # noqa: ARG002
        """Windows and filters are those of the report in front."""
        return False

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Times follow the display."""
        if old.display.time != new.display.time:
            self.heat.refresh()

    def work(self, report: Report) -> Callable[[Progress], Shown]:  # noqa: ARG002
        """Reads all reports, and hands on what is known meanwhile."""
        paths = self._paths
        workers = self.WORKERS or default_workers()
        workers = workers if len(paths) > FEW else 1
        config = self.app.config
        options = self.wish.of(Options(patterns=config.analysis.communication))
        cache = cache_at(config.cache.dir, config.cache.limit)
        opening, window = Opening(config.nsys.path, self.app.use_cache, cache), self.wish.window
        in_one_go = window is None and options == options.unrestricted
        reading = self._reading = object()

        def show(figures: Shown, done: int) -> None:
            self.app.call_from_thread(self._show_partial, reading, figures, done)

        def work(progress: Progress) -> Shown:
            partial = Partial([str(path) for path in paths], options, show)

            def alive(done: int, total: int) -> None:
                progress("reading reports of the fleet", done, total)

            def told(path: str, result: Result, done: int, total: int) -> None:
                alive(done, total)
                if in_one_go:
                    partial.take(path, result)

            fleet = run_fleet(
                paths,
                options,
                workers=workers,
                opening=opening,
                window=window,
                told=told,
                alive=alive,
            )
            return shown(fleet)._replace(verdict=verdict(fleet))

        return work

    def _show_partial(self, reading: object, figures: Shown, done: int) -> None:
        """The ranks known so far."""
        if reading is not self._reading or not self.is_current:
            return
        self._show_ranks(figures, f"{out_of(done, len(self._paths))} reports read, Esc stops")
        self._show_map()

    def say_stopped(self, why: str) -> None:
        """Coming back reads on what was cancelled."""
        self._reading, self._cancelled = None, why == CANCELLED
        if why == CANCELLED:
            why = self.table.note = "cancelled: coming back here reads on"
        super().say_stopped(why)

    def show_result(self, report: Report, result: Shown) -> None:  # noqa: ARG002
        """The whole fleet."""
        self._reading, fleet = None, result.fleet
        skipped = f"{len(fleet.failures)} skipped" if fleet.failures else ""
        only = f"only {visible(self.wish.text)}" if self.wish.text else ""
        self._show_ranks(result, "  ".join(filter(None, (only, skipped))))
        self.query_one(Verdict).tell(result.verdict.text)
        notes = [f"skipped: {visible(f.path)}: {f.reason.splitlines()[0]}" for f in fleet.failures]
        notes += fleet.notes
        self.set_class(bool(notes), "-noted")
        self.query_one("#notes", LinePane).show_texts(notes)
        if fleet.failures:
            self.app.say(
                f"{out_of(len(fleet.failures), len(self._paths))} reports skipped: see notes"
            )
        self._show_map()

    def _show_ranks(self, figures: Shown, note: str) -> None:
        """Another table; the cursor stays on its rank, or goes to the report in front.

        From there it goes to the first rank that the verdict names alone.
        """
        here, at_front = self._identity(self.table.row), self.table.row in (None, self._front())
        self._shown = figures
        self.table.note = "  ".join(filter(None, ("% of span", note)))
        self.table.empty = "no rank in these reports"
        places = {self._identity(row): row for row in range(len(self._rows))}
        row = self._front() if here is None else places.get(here)
        if at_front and (named := figures.verdict.rank) is not None:
            ranks = [figures.fleet.members[row.member].rank for row in figures.rows]
            row = ranks.index(named) if named in ranks else row
        self.table.show_rows(figures.columns, len(self._rows), row=row)

    def _identity(self, row: int | None) -> tuple[str, int, int, int | None] | None:
        """What a row of the table is about, whatever its place."""
        if self.fleet is None or row is None or row >= len(self._rows):
            return None
        wanted = self._rows[row]
        member = self.fleet.members[wanted.member]
        return member.path, member.process.process, member.process.unit, wanted.device

    def _front(self) -> int | None:
        """The first row of the report in front."""
        front = str(self.session.path.absolute())
        members = self.fleet.members if self.fleet else ()
        return next((n for n, r in enumerate(self._rows) if members[r.member].path == front), None)

    def _show_map(self) -> None:
        fleet = self.fleet
        names = map_names(fleet) if fleet else []
        self.heat.display = bool(names)
        if fleet is None or not names:
            self.heat.show(None)
            return
        name = self.map if self.map in names else names[0]

        def done(shown: HeatMap) -> None:
            self.heat.show(shown)
            self._follow(self.table.row)

        self.compute("map", lambda: heat_map(fleet, name, BINS), done)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """The map follows the table."""
        self._follow(message.row)

    def _follow(self, row: int | None) -> None:
        shown = self.heat.shown
        if row is None or shown is None or row >= len(self._rows):
            return
        wanted = self._rows[row]
        key = (wanted.member, wanted.device)
        place = next((n for n, r in enumerate(shown.rows) if r == key), None)
        if place is not None:
            self.heat.put_row(place)

    def on_heat_pane_moved(self, message: HeatPane.Moved) -> None:
        """The table follows the map."""
        self.table.go_to_row(self._row_of(message.row))

    def _row_of(self, map_row: int) -> int | None:
        """Row of the table for a row of the map; None for a GPU metric."""
        shown = self.heat.shown
        key = shown.rows[map_row] if shown is not None else None
        if key is None:
            return None
        return next((n for n, r in enumerate(self._rows) if (r.member, r.device) == key), None)

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """The rank's report, at the time under the map's cursor if it was moved."""
        self._open(self._rows[message.row], self.heat.window())

    def on_heat_pane_opened(self, message: HeatPane.Opened) -> None:
        """The rank's report at that time."""
        row = self._row_of(message.row)
        if row is None:
            self.app.say("a GPU metric belongs to no single rank")
        else:
            self._open(self._rows[row], message.window)

    def _open(self, row: RankRow, window: tuple[int, int] | None) -> None:
        """Brings a rank's GPU to the front, on the timeline, with a typical rank below it."""
        fleet = self.fleet
        if fleet is None:
            return
        member, usual = fleet.members[row.member], typical(fleet)
        other = fleet.members[usual] if usual is not None and usual != row.member else None
        shown = {member.process.process}
        self.app.open_path(Path(member.path))
        if other is not None and other.path == member.path:
            shown.add(other.process.process)
        elif other is not None:
            self.app.put_beside(self.app.session_at(Path(other.path)))
        gpu = gpu_of(member, row)
        look_at(self.app.session, Place(device=int(gpu) if gpu.isdecimal() else None))
        changes: dict[str, Any] = {"cursor": self.state.cursor}
        if window is not None:
            start, end = map(member.clock.session_time, window)
            changes["window"] = Window(start, end)
            changes["cursor"] = replace(self.state.cursor, time=start)
        if len(member.report.processes) == len(shown):
            shown.clear()
        changes["filter"] = replace(self.state.filter, processes=frozenset(shown))
        self.app.show("timeline", **changes)
        beside = f", rank {other.rank} is typical" if other is not None else ""
        told = f"rank {member.rank}{beside}: F7 goes back to the fleet"
        self.app.call_after_refresh(self.app.say, told)

    def action_fleet_part(self) -> None:
        """Asks which part of the ranks counts."""
        prompt = Prompt("Only this part", EXAMPLES, self.wish.text, parse_cut)
        self.app.ask(prompt, lambda text: self.change(parse_cut(text)))

    def action_fleet_beside(self) -> None:
        """The rank's lanes below those of the report in front, in one timeline."""
        row = self.table.row
        if self.fleet is None or row is None:
            return
        path = self.fleet.members[self._rows[row].member].path
        guest = next((s for s in self.app.sessions if str(s.path.absolute()) == path), None)
        if guest is None or guest is self.session:
            self.app.say("this is the report in front: b on another rank adds that one's lanes")
            return
        self.app.put_beside(guest)
        self.app.show("timeline")

    def _turn(self, step: int) -> None:
        names = map_names(self.fleet) if self.fleet else []
        if names:
            here = names.index(self.map) if self.map in names else 0
            self.map = names[(here + step) % len(names)]
            self._show_map()

    action_fleet_map = partialmethod(_turn, 1)
    action_fleet_map_back = partialmethod(_turn, -1)
