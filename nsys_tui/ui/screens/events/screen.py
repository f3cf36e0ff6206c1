"""Events: everything that happened in the window, as one table in time order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from textual.containers import Container

from nsys_tui.analysis.events_table import (
    NO_CORRELATION,
    Dictionary,
    EventsTable,
    Member,
    events_table,
)
from nsys_tui.analysis.timeline.events import find
from nsys_tui.analysis.timeline.facts import Facts, facts_of
from nsys_tui.model.arrays import Int64
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.render.cells import MUTED, style, word_ink
from nsys_tui.state import Display, Selection, ViewState
from nsys_tui.times import moment_text, window_text
from nsys_tui.ui.evidence import evidence_of, show_on_timeline
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.pane_text import labelled
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.tables import TableScreen
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.actions import TABLE, WHOLE
from nsys_tui.ui.widgets.table.columns import Source, TableColumn, durations, numbers, texts
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.units import format_duration


def event_columns(table: EventsTable, display: Display) -> tuple[TableColumn, ...]:
    """Start, duration, kind, place, correlation and name of each event.

    Args:
        table: the events.
        display: how times are written.
    """
    origin = start_of(table, int(table.order[0])) if len(table) else 0
    starts = Source(lambda: table.column(_starts), lambda row: start_of(table, row))
    lengths = Source(lambda: table.column(_durations), lambda row: duration_of(table, row))

    def moment(ns: int) -> str:
        return moment_text(ns, 1, display.time, table.report, origin)

    def duration(ns: int) -> str:
        return format_duration(ns) if ns else "-"

    def ink(row: int) -> int:
        return style(word_ink(table.category(row)))

    return (
        durations("start", 14, starts, moment),
        durations("duration", 10, lengths, duration),
        texts("kind", 8, _codes(table.kinds), table.kinds.labels),
        texts("where", 17, _codes(table.places), table.places.labels),
        numbers(
            "correlation",
            11,
            Source(table.correlations, table.correlation),
            str,
            absent=NO_CORRELATION,
            extra=True,
        ),
        texts("name", 20, _codes(table.names), table.names.labels, grow=True, names=True, ink=ink),
    )


def _codes(dictionary: Dictionary) -> Source:
    return Source(dictionary.codes, dictionary.at)


def start_of(table: EventsTable, row: int) -> int:
    """Start of an event, ns."""
    member, position = table.locate(row)
    return int(member.events.start[position])


def duration_of(table: EventsTable, row: int) -> int:
    """Duration of an event, ns; 0 for points in time."""
    member, position = table.locate(row)
    return max(int(member.events.end[position] - member.events.start[position]), 0)


def _starts(member: Member) -> Int64:
    return member.events.start[member.rows]


def _durations(member: Member) -> Int64:
    return member.events.durations(member.rows)


ACTIONS = (*TABLE, WHOLE)

LABEL_LIMIT = 2_000
"""Characters of a fact that are wrapped into lines."""


class EventsScreen(TableScreen[EventsTable]):
    """All events of the window or of the selected area."""

    SCREEN = "events"
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#events"
    READING, MAKING, BUSY = "reading events ...", "putting events in order ...", "listing events"
    BY_NAMES = GOES_BACK = True
    DEFAULT_CSS: ClassVar[str] = """
    EventsScreen #split { layout: vertical; height: 1fr; }
    EventsScreen #events { height: 1fr; width: 1fr; }
    EventsScreen #event { height: 7; width: 1fr; }
    EventsScreen.-medium #event { height: 10; }
    EventsScreen.-wide #split, EventsScreen.-xwide #split { layout: horizontal; }
    EventsScreen.-wide #event, EventsScreen.-xwide #event { width: 42; height: 1fr; }
    EventsScreen.-xwide #event { width: 52; }
    """

    def body(self) -> Iterable[Any]:
        """The table, and all that is known about the event under the cursor."""
        yield Container(
            VirtualTable("Events", share_filter=True, id="events"),
            LinePane("Event", id="event"),
            id="split",
        )

    def needs_new(self, old: ViewState, new: ViewState) -> bool:
        """Window, area, filters and names change the rows."""
        shortest = old.filter.min_duration != new.filter.min_duration
        return super().needs_new(old, new) or _area(old) != _area(new) or shortest

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Times are written anew."""
        if old.display.time != new.display.time and self.report and self.result:
            self.show_result(self.report, self.result)

    def work(self, report: Report) -> Callable[[Progress], EventsTable]:
        """Lists what window, area and filters let through."""
        state = self.state
        scope, area = report_scope(report, state), _area(state)
        if area is not None and area.span is not None:
            scope = replace(scope, window=area.span)
        work = partial(
            events_table,
            report,
            scope,
            state.display.names,
            lanes=area.lanes if area is not None else (),
            min_duration=state.filter.min_duration,
        )
        return lambda progress: _ready(work(progress=progress))

    def show_result(self, report: Report, result: EventsTable) -> None:
        """Fills the table."""
        self.table.note = self._note(report, result)
        self.table.empty = "no events here: 0 shows the whole trace"
        if self.state.window is None and _area(self.state) is None:
            self.table.empty = "no events in this report"
        columns = event_columns(result, self.state.display)
        self.table.show_rows(columns, len(result), natural=result.order)
        if not len(result):
            self.query_one("#event", LinePane).show([])

    def _note(self, report: Report, result: EventsTable) -> str:
        notes = []
        if (area := _area(self.state)) is not None and area.span is not None:
            text = window_text(area.span, self.state.display.time, report)
            lanes = f", {len(area.lanes)} lanes" if area.lanes else ""
            notes.append(f"area {text}{lanes}")
        if result.hidden:
            shortest = format_duration(self.state.filter.min_duration)
            notes.append(f"{result.hidden:,} shorter than {shortest} hidden")
        return "  ".join(notes)

    def go_to(self, selection: Selection) -> None:
        """Puts the cursor on the selected event, if it is listed."""
        if (listed := self.result) is None:
            return
        hit = find(listed.report, selection.kind, selection.key)
        self.table.go_to_row(None if hit is None else listed.row_of(*hit))

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another event: all that is known about it."""
        if message.row is not None:
            self._look(message.row)

    def _look(self, row: int) -> None:
        """Looks at an event; while one look is under way, only the last wish is kept."""
        if self.result is not None and row < len(self.result):
            work = partial(_facts, self.result, row, self.state.display)
            self.look_at("event", work, self._show_facts, "#event")

    def _show_facts(self, facts: Facts) -> None:
        pane = self.query_one("#event", LinePane)
        pane.heading(facts.title)
        pane.show_built(lambda width: fact_lines(facts, width))

    def action_timeline_whole(self) -> None:
        """The whole trace again, without an area."""
        changes: dict[str, Any] = {"window": None}
        if _area(self.state) is not None:
            changes["selection"] = None
        self.app.show(self.SCREEN, **changes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There may be nothing to widen."""
        if action == "timeline_whole":
            return self.state.window is not None or _area(self.state) is not None
        return super().check_action(action, parameters)

    @property
    def evidence(self) -> Evidence:
        """The event under the cursor."""
        row = self.table.row
        if self.result is None or row is None:
            return super().evidence
        member, position = self.result.locate(row)
        return evidence_of(member.events, position)

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """Shows the event on the timeline."""
        if self.result is not None:
            member, position = self.result.locate(message.row)
            show_on_timeline(self.app, member.events, position)


def _area(state: ViewState) -> Selection | None:
    """The selected area, if one is selected."""
    selection = state.selection
    return selection if selection is not None and selection.kind == "area" else None


def _ready(listed: EventsTable) -> EventsTable:
    """Builds what every column needs, while still in the worker."""
    _ = listed.kinds, listed.names, listed.places
    return listed


def fact_lines(facts: Facts, width: int) -> list[list[tuple[str, int]]]:
    """Facts behind their names; the call stack last."""
    lines = [
        line for name, text in facts.facts for line in labelled(name, text[:LABEL_LIMIT], width)
    ]
    if facts.stack:
        lines.append([("call stack", MUTED)])
        lines += [[(f" {frame}", 0)] for frame in facts.stack]
    return lines


def _facts(listed: EventsTable, row: int, display: Display) -> Facts:
    """All that is known about an event; in a worker."""
    report = listed.report
    member, position = listed.locate(row)

    def moment(ns: int) -> str:
        return moment_text(ns, 1, display.time, report, ns)

    return facts_of(report, member.events, position, display.names, moment)
