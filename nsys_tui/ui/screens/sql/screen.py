"""SQL: a query above, its answer below as a table like all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from textual.getters import query_one

from nsys_tui.errors import CancelledError, NsysTuiError
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Table, Unit, column
from nsys_tui.render.cells import MUTED, Line
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.spark import bar_at, draw_bars
from nsys_tui.sql.console import Answer, Console
from nsys_tui.sql.faults import QueryError
from nsys_tui.sql.guard import TimeLimitError
from nsys_tui.sql.snippets import SNIPPETS
from nsys_tui.state import Cursor, ViewState
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.evidence import selection_of
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.screens.result import CANCELLED
from nsys_tui.ui.screens.sql.editor import Editor, asked_before, remember
from nsys_tui.ui.screens.sql.rows import beside, event_of, lane_of, row_of, span_of
from nsys_tui.ui.screens.tables import TableScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.actions import TABLE
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.result_columns import columns_of
from nsys_tui.ui.widgets.table.rows import Arrangement
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.units import format_duration, format_number, plural

SHOWN: Final = 100_000
"""Rows of an answer on the screen."""


@dataclass(frozen=True)
class Asked:
    """A query with its answer, or with why it has none."""

    query: str
    answer: Answer | None = None
    error: NsysTuiError | None = None


def ask(console: Console, query: str, progress: Progress) -> Asked:
    """Asks; only cancelling is raised, since what is wrong with a query is an answer too."""
    try:
        return Asked(query, console.run(query, limit=SHOWN, progress=progress))
    except TimeLimitError as error:
        return Asked(query, error=error)
    except CancelledError:
        raise
    except NsysTuiError as error:
        return Asked(query, error=error)


def with_units(table: Table) -> Table:
    """The same with times and bytes that are told by the endings of names."""
    return replace(table, columns=tuple(map(_with_unit, table.columns)))


def _with_unit(known: Column) -> Column:
    unit = column(known.header).unit
    timed = unit in (Unit.NS, Unit.BYTES) and not known.is_text
    return Column(known.header, unit, 0, known.key) if timed else known


def chart_lines(
    table: Table, across: int, up: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """One column over another: a bar a row, in the order of the first where that has numbers."""
    known, _ = chart_bars(table, across, up)
    if not len(known):
        return []
    is_time = column(table.columns[up].header).unit is Unit.NS
    written = format_duration if is_time else format_number
    rows, _ = draw_bars(known, width, max(1, height - 1), glyphs, written)
    return [row.runs() for row in rows]


def chart_bars(
    table: Table, across: int, up: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Heights of the bars in the order they stand in, and the row that each is of."""
    heights, order = _numbers(table, up), _numbers(table, across)
    rows = np.arange(len(heights))
    if not np.isnan(order).all():
        rows = np.argsort(order, kind="stable")
    return np.nan_to_num(np.maximum(heights[rows], 0)), rows


def chart_heading(table: Table, across: int, up: int) -> str:
    """What the bars are, how they are ordered, and how many rows have none."""
    order = "" if np.isnan(_numbers(table, across)).all() else f" by {table.columns[across].header}"
    without = int((~(_numbers(table, up) >= 0)).sum())
    left_out = f" ({without} empty or below 0: no bar)" if without else ""
    return f"{table.columns[up].header} of each row{order}{left_out}"


def _numbers(table: Table, place: int) -> npt.NDArray[np.float64]:
    values = table.data[place]
    return np.array([v if isinstance(v, int | float) else np.nan for v in values], np.float64)


def chart_columns(table: Table, chosen: int) -> tuple[int, int] | None:
    """Which column is drawn over which: the chosen one, else the first numbers, over the first."""
    numeric = [place for place, c in enumerate(table.columns) if not c.is_text]
    if not numeric or not len(table):
        return None
    up = chosen if chosen in numeric else numeric[-1]
    names = [c.header for c in table.columns]
    across = names.index("start_ns") if "start_ns" in names and names[up] != "start_ns" else 0
    return across, up


ACTIONS = (
    Action("sql.edit", ("i",), "edit", "write the question; Tab completes, Esc leaves", 3),
    Action("sql.run", ("f5", "ctrl+j"), "run", "ask; Esc cancels what takes long", 4),
    Action("sql.snippets", ("f2",), "snippets", "questions to start from", 5),
    Action("sql.history", ("f3",), "history", "questions asked before", 6),
    Action(
        "sql.chart",
        ("f4",),
        "chart",
        "the column under the cursor, a bar a row, by start_ns or the first",
    ),
    *TABLE,
)
INTRODUCTION: Final = (
    "i: write a question in SQL, F2: some to start from, F3: asked before, F5: ask",
    "views: kernels copies memsets api ranges launches stalls steps collectives",
)


class SqlScreen(TableScreen[Asked]):
    """Questions of one's own."""

    SCREEN = "sql"
    OF_WHOLE_TRACE = True
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#answer"
    READING, MAKING, BUSY = "reading ...", "asking ...", "asking"
    DEFAULT_CSS: ClassVar[str] = """
    SqlScreen #query { height: 7; }
    SqlScreen.-medium #query { height: 8; }
    SqlScreen.-tall #query { height: 9; }
    SqlScreen #said { height: 2; }
    SqlScreen.-tall #said { height: 3; }
    SqlScreen #answer { height: 1fr; }
    SqlScreen #chart { height: 7; display: none; }
    SqlScreen.-medium #chart { height: 10; }
    SqlScreen.-chart #chart { display: block; }
    SqlScreen.-chart.-short #query { height: 4; }
    """
    wish: str = ""

    def __init__(self) -> None:
        super().__init__()
        self._consoles: dict[Report, Console] = {}
        self._answered = ""

    def body(self) -> Iterable[Any]:
        """The editor, what is to be said about the query, the answer, a chart of it."""
        yield Editor(id="query")
        yield LinePane(framed=False, id="said")
        yield VirtualTable("Answer", id="answer")
        yield LinePane("Chart", id="chart")

    editor = query_one(Editor)
    """Where the query is written."""

    def on_mount(self) -> None:
        """Names the editor."""
        super().on_mount()
        self.editor.heading("Question", "F5: ask")

    def clear(self) -> None:
        """Another report: says how to begin, and asks it the same."""
        super().clear()
        self._say(*INTRODUCTION)

    def _say(self, *texts: str) -> None:
        self.query_one("#said", LinePane).show_texts(texts, MUTED)

    def needs_new(self, old: ViewState, new: ViewState) -> bool:
        """A question is about the whole report, whatever the window."""
        del old, new
        return False

    def make(self) -> None:
        """Asks what is wished for, if anything."""
        if self.wish:
            super().make()
            return
        self.table.empty = "no question yet: F2 has some to start from"
        self.table.refresh()
        if (report := self.report) is not None and self.can_begin:
            self.compute("tables", partial(self._console_of, report), self._know)

    def _console_of(self, report: Report) -> Console:
        """The console of a report, opened once, and anew after a query that could not be stopped.

        In a worker.
        """
        known = self._consoles.get(report)
        if known is None or known.stuck:
            patterns = self.app.config.analysis.communication
            self._consoles[report] = Console(report, patterns)
        return self._consoles[report]

    def _know(self, console: Console) -> None:
        self.editor.tables = console.tables

    def work(self, report: Report) -> Callable[[Progress], Asked]:
        """Asks in a worker."""
        query = self.wish
        return lambda progress: ask(self._console_of(report), query, progress)

    def show_result(self, report: Report, result: Asked) -> None:
        """The answer in the table, or what is wrong and where."""
        self._know(self._consoles[report])
        if result.answer is None:
            self._show_error(result)
            return
        table = with_units(result.answer.table)
        self.table.note = "the first ones: there are more" if result.answer.more else ""
        self.table.empty = "no row is an answer"
        if result.query != self._answered:  # its own order, not that of the last answer
            self.table.arrangement, self._answered = Arrangement(), result.query
        self.table.show_rows(columns_of(table, least=16), len(table))
        self._say(plural(len(table), "row"), *result.answer.notes)
        self._draw_chart()
        self.table.focus()

    def _show_error(self, result: Asked) -> None:
        error = result.error
        self.table.note = ""
        self.table.say("no answer: see above")
        self._say(*str(error).splitlines())
        if isinstance(error, QueryError) and error.offset >= 0 and self.editor.text == result.query:
            self.editor.go_to(error.offset)
        self.editor.focus()

    def say_stopped(self, why: str) -> None:
        """Cancelled: the same key asks again."""
        super().say_stopped(why)
        if why == CANCELLED:
            self.main.empty = "cancelled: F5 asks again"

    def report_closed(self, session: Session) -> None:
        """Its file is let go."""
        super().report_closed(session)
        if session.report is not None and (console := self._consoles.pop(session.report, None)):
            self.compute("close", console.close, lambda _: None)

    def on_editor_offered(self, message: Editor.Offered) -> None:
        """The words that Tab goes through."""
        self._say("Tab: " + "  ".join(message.words[:40]))

    def action_sql_edit(self) -> None:
        """Goes to the editor."""
        self.editor.focus()

    def action_sql_run(self) -> None:
        """Asks what is written."""
        query = self.editor.text.strip()
        if not query:
            self._say(*INTRODUCTION)
            return
        self.editor.put(query) if query != self.editor.text else None
        self.compute("remember", partial(remember, query), lambda _: None)
        self.change(query)

    def action_sql_snippets(self) -> None:
        """Questions to start from; the chosen one is asked at once."""
        entries = [Entry(s.title, "", s.sql) for s in SNIPPETS]
        self.app.ask(Picker("Questions to start from", entries), self._chosen)

    def action_sql_history(self) -> None:
        """Questions asked before."""
        entries = [Entry(" ".join(query.split()), "", query) for query in asked_before()]
        self.app.ask(Picker("Asked before", entries), self._chosen)

    def _chosen(self, query: str) -> None:
        self.editor.put(query)
        self.action_sql_run()

    def action_sql_chart(self) -> None:
        """Shows or hides the chart."""
        if self.result is None or self.result.answer is None:
            self.app.say("no answer to draw: F5 asks")
            return
        self.toggle_class("-chart")
        self.call_after_refresh(self._draw_chart)

    def _draw_chart(self) -> None:
        answer = self.result.answer if self.result is not None else None
        if not self.has_class("-chart") or answer is None:
            return
        pane, table = self.query_one("#chart", LinePane), answer.table
        places = chart_columns(table, self.table.column)
        if places is None:
            pane.say("no column of numbers")
            return
        across, up = places
        pane.heading(chart_heading(table, across, up))
        glyphs = self.app.glyphs
        pane.show_built(
            lambda width: chart_lines(table, across, up, width, pane.size.height, glyphs)
        )

    def on_line_pane_clicked(self, message: LinePane.Clicked) -> None:
        """A click on a bar goes to its row, a double click opens it."""
        answer = self.result.answer if self.result is not None else None
        places = chart_columns(answer.table, self.table.column) if answer is not None else None
        if answer is None or places is None or message.pane.id != "chart":
            return
        heights, rows = chart_bars(answer.table, *places)
        if (bar := bar_at(heights, message.pane.room, message.column)) is None:
            return
        row = int(rows[bar])
        self.table.go_to_row(row)
        if message.twice and self.table.row == row:
            self.table.action_nav_open()

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """A row that has times, on the timeline."""
        answer = self.result.answer if self.result is not None else None
        row = row_of(answer.table, message.row) if answer is not None else {}
        span = span_of(row)
        if span is None or self.report is None:
            self.app.say("no column start_ns: nothing to show on the timeline")
            return
        event = event_of(self.report, row, span)
        self.app.show(
            "timeline",
            window=beside(span),
            selection=event and selection_of(*event, self.app.state.display.names),
            cursor=Cursor(span.start, "" if event else lane_of(self.report, row)),
        )

    def action_nav_escape(self) -> None:
        """Leaves the editor, then the chart."""
        if not self.editor.has_focus:
            self.remove_class("-chart")
        self.table.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the screen's only in the editor and while there is a chart."""
        if action == "nav_escape":
            return self.editor.has_focus or self.has_class("-chart")
        return super().check_action(action, parameters)
