"""Steps: every step of the run with its time, its phases and what is odd about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, partialmethod
from typing import Any, ClassVar, Final

import numpy as np
from textual.containers import Horizontal

from nsys_tui.analysis.iterations.answer import IterationAnswer, answer_of
from nsys_tui.analysis.iterations.critical_path import Edge
from nsys_tui.analysis.iterations.path_answer import OnPath, StepPath, Stretch, step_path
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Int64
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.model.table import Table
from nsys_tui.model.target import pid_of
from nsys_tui.render.cells import MUTED, Ink, Line, style
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.spark import MARGIN, bar_at, draw_bars
from nsys_tui.state import Cursor, Selection, ViewState, Window
from nsys_tui.times import moment_text
from nsys_tui.ui.evidence import selection_of, show_segment
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.pane_text import labelled, uncounted, uncounted_remark, wrapped
from nsys_tui.ui.scoping import report_scope, same_scope
from nsys_tui.ui.screens.tables import TableScreen
from nsys_tui.ui.widgets.lines import Built, LinePane
from nsys_tui.ui.widgets.table.actions import TABLE
from nsys_tui.ui.widgets.table.columns import Numbers, TableColumn
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.result_columns import columns_of
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.units import format_difference, format_duration, format_share, plural

LATE: Final = style(Ink.STALL)
NOTABLE: Final = 0.1
"""Part of a phase by which it is longer than its median to be marked."""
ON_PATH: Final = 8
"""Kinds of work of a critical path that are listed."""
ASSUMED: Final = "≈ "


def chart_lines(
    answer: IterationAnswer, chosen: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """A bar a step, outliers marked, the chosen one in another colour.

    The scale is that of the steady part: what is in no statistics is cut there and marked.
    """
    iterations, tall = answer.table.iterations, max(1, height - 1)
    times = bar_times(answer)
    apart = uncounted(iterations)
    outliers = iterations.outliers
    rows, _ = draw_bars(times, width, tall, glyphs, format_duration, outliers, chosen, apart)
    return [row.runs() for row in rows]


def bar_times(answer: IterationAnswer) -> Int64:
    """How high the bar of each step is."""
    iterations = answer.table.iterations
    return np.minimum(iterations.duration, int(iterations.steady.max()))


def chart_remark(answer: IterationAnswer, room: int) -> str:
    """What a bar stands for, and the median that steps are held against."""
    merged = max(1, -(-len(answer.table) // max(1, room - MARGIN)))
    bars = f"bar: {merged} steps, the slowest  " if merged > 1 else ""
    remark = uncounted_remark(answer.table.iterations)
    apart = f"{remark}, " if remark else ""
    return f"{bars}{apart}median {format_duration(round(answer.whole.median))}"


def step_lines(answer: IterationAnswer, step: int, width: int) -> list[Line]:
    """How long a step took, and which of its phases differ most from their medians."""
    iterations = answer.table.iterations
    time, median = int(iterations.duration[step]), answer.whole.median
    lines = [
        *labelled("time", f"{format_duration(time)}, {_against(time, median)}", width),
        *labelled("", _standing(answer, step), width),
    ]
    busy = answer.shares[~np.isnan(answer.shares) & iterations.counted]
    if len(busy) and not answer.gpu_doubt and not np.isnan(answer.shares[step]):
        text = f"{format_share(answer.shares[step])}, median {format_share(np.median(busy))}"
        lines += labelled("GPU busy", text, width)
    table = answer.table
    if why := table.why(step):
        lines += labelled("longer", why, width)
    parts = table.parts.differences(step, table.usual) if table.knows(step) else []
    phases = differences(answer, step) if len(answer.by_phase) > 1 else []
    for what, rows in (("part", parts), ("phase", phases)):
        if rows:
            lines.append([(f"{'this step':>10} {'to median':>11}  {what}", MUTED)])
            lines += [_phase_line(*row) for row in rows]
    return lines


def path_lines(path: StepPath, width: int) -> Built:
    """The critical path of a step: where its time lies, then one stretch after the other."""
    work, lines, choices = path.work[:ON_PATH], list[Line](), list[object]()
    for heading, listed in (("on the path", work), ("from start to end", path.stretches)):
        lines.append([(f"{'time':>10} {'share':>6}  {heading}", MUTED)])
        lines += [_path_line(one, path) for one in listed]
        choices += [None, *listed]
    notes = (*path.notes, f"{ASSUMED.strip()}: assumed to have waited for the line above")
    lines += [[(part, MUTED)] for note in notes for part in wrapped(note, width)]
    return lines, choices


def _path_line(one: OnPath | Stretch, path: StepPath) -> Line:
    mark = ASSUMED if isinstance(one, Stretch) and one.edge == Edge.ASSUMED else ""
    figures = f"{format_duration(one.time_ns):>10} {format_share(one.time_ns, path.time_ns):>6}  "
    text = f"{mark}{one.name or one.what} ({one.where})"
    return [(figures, 0), (text, 0)]


def differences(answer: IterationAnswer, step: int) -> list[tuple[str, int, int]]:
    """Phase, its time in a step, and how far that is from its median; the farthest first."""
    phases = [
        (name, int(answer.times[name][step]), round(int(answer.times[name][step]) - times.median))
        for name, times in answer.by_phase
    ]
    return sorted(phases, key=lambda phase: -abs(phase[2]))


def _standing(answer: IterationAnswer, step: int) -> str:
    iterations = answer.table.iterations
    if iterations.never_closed[step]:
        return f"{iterations.unended}: counted as far as recorded, in no statistics"
    if not iterations.counted[step]:
        return "warm-up: in no statistics"
    if step in answer.outliers:
        return f"outlier, z={iterations.z[step]:.1f}"
    return "typical" if step == answer.typical else "within the usual scatter"


def _against(time: int, median: float) -> str:
    away = round(time - median)
    if not away or not median:
        return "the median"
    side = "above" if away > 0 else "below"
    return f"{format_duration(abs(away))} ({format_share(abs(away), median)}) {side} the median"


def _phase_line(name: str, time: int, away: int) -> Line:
    text = f"{format_duration(time):>10} {format_difference(away):>11}  "
    ink = LATE if away > NOTABLE * time else 0
    return [(text, ink), (name, 0)]


ACTIONS = (
    *TABLE,
    Action("steps.outlier_next", ("]",), "outlier", "next step that takes far longer", 3),
    Action("steps.outlier_previous", ("[",), "outlier", "previous step that takes far longer"),
    Action("steps.typical", ("t",), "typical", "the step nearest to the median", 4),
    Action("steps.path", ("c",), "critical path", "what the end of the step waited for", 5),
)
FIGURES = ("Time", "Of median", "GPU busy")
NAME, NOTE, WHOLE_NOTE = 14, 28, 64
"""Least cells of a step's name and of what is odd about it; those before there are more figures."""
AROUND = 50
"""On the timeline a step has one part in so many beside it."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a report, or why it has none."""

    answer: IterationAnswer | None
    table: Table | None
    why: str = ""


class StepsScreen(TableScreen[Steps]):
    """The main loop, turn by turn."""

    SCREEN = "steps"
    OF_WHOLE_TRACE = True
    GROWS_FROM = 16
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#steps"
    ON_ROWS = (*TableScreen.ON_ROWS, "steps_")
    READING, MAKING, BUSY = "reading ...", "finding steps ...", "finding steps"
    DEFAULT_CSS: ClassVar[str] = """
    StepsScreen #steps { height: 1fr; }
    StepsScreen #lower { height: 9; }
    StepsScreen #chart, StepsScreen #step { width: 1fr; }
    StepsScreen.-narrow.-path #chart { display: none; }
    StepsScreen.-medium #lower { height: 12; }
    StepsScreen.-tall #lower { height: 16; }
    """

    def body(self) -> Iterable[Any]:
        """The table above, times of all steps and facts about one below."""
        yield VirtualTable("Steps", share_filter=True, id="steps")
        yield Horizontal(
            LinePane("Time of each step", id="chart"), LinePane("Step", id="step"), id="lower"
        )

    path_shown = False
    """Whether the pane of facts shows the critical path of the step."""
    _path: StepPath | None = None

    @property
    def answer(self) -> IterationAnswer | None:
        """The steps that are shown, if there are any."""
        return None if self.result is None else self.result.answer

    def work(self, report: Report) -> Callable[[Progress], Steps]:
        """Finds the steps of the run: in a window other steps would be warm-up and median."""
        scope = replace(report_scope(report, self.state), window=None)
        return partial(find_steps, report, scope)

    def needs_new(self, old: ViewState, new: ViewState) -> bool:
        """Another choice of GPUs, processes or streams does."""
        return not same_scope(replace(old, window=new.window), new)

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Moments are written anew."""
        if old.display.time != new.display.time and self.report and self.result:
            self.show_result(self.report, self.result)

    def show_result(self, report: Report, result: Steps) -> None:
        """Fills the table; the cursor stays on its step."""
        if result.answer is None or result.table is None:
            self.table.say(result.why)
            for pane in self.query(LinePane):
                pane.show([])
            return
        iterations = result.answer.table.iterations
        outliers = len(iterations.outliers)
        odd = f"{plural(outliers, 'outlier')}, " if outliers else ""
        odd += f"{iterations.coverage}, " if iterations.coverage else ""
        gpus, of = result.answer.table.gpus, len(report.devices)
        whose = f", {gpus} of {of} GPUs: pid {pid_of(iterations.process)}" if 0 < gpus < of else ""
        self.table.note = f"{odd}{iterations.name} ({iterations.rule}){whose}"
        columns = self._columns(report, result.table, int(iterations.start[0]))
        self.table.show_rows(columns, len(iterations), row=self.table.row)

    def _columns(self, report: Report, table: Table, origin: int) -> tuple[TableColumn, ...]:
        """The table's columns: phases come last where not all have room."""

        def moment(ns: int) -> str:
            return moment_text(ns, 1_000, self.state.display.time, report, origin)

        def written(column: TableColumn) -> TableColumn:
            if column.header == "Iteration":
                long = column.width > NAME
                wanted, least = column.width, min(column.width, NAME)
                return replace(column, width=least, wanted=wanted, grow=long, names=True)
            if column.header == "Note":
                least = min(column.width, NOTE)
                return replace(column, width=least, wanted=column.width, grow=True)
            if column.header == "Start" and isinstance(column, Numbers):
                return replace(column, write=moment, width=15, extra=True)
            return replace(column, extra=column.header not in FIGURES)

        return tuple(map(written, columns_of(table, WHOLE_NOTE)))

    def go_to(self, selection: Selection) -> None:
        """Puts the cursor on the step that a selected event begins in."""
        if self.answer is None or selection.span is None:
            return
        starts = self.answer.table.iterations.start
        self.table.go_to_row(int(np.searchsorted(starts, selection.span.start, side="right")) - 1)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another step: where it stands among all, and what made it long."""
        answer, step = self.answer, message.row
        if answer is None or step is None:
            return
        chart = self.query_one("#chart", LinePane)
        chart.heading("Time of each step", chart_remark(answer, chart.room))
        glyphs = self.app.glyphs
        chart.show_built(lambda width: chart_lines(answer, step, width, chart.size.height, glyphs))
        self._show_step(answer, step)

    def _show_step(self, answer: IterationAnswer, step: int) -> None:
        facts = self.query_one("#step", LinePane)
        if self.path_shown:
            self._find_path(answer, step)
            return
        facts.heading(answer.table.iterations.labels[step], "c: critical path")
        facts.show_built(lambda width: step_lines(answer, step, width))

    def action_steps_path(self) -> None:
        """The critical path in place of the facts about the step, and back."""
        answer, step = self.answer, self.table.row
        if answer is None or step is None:
            return
        self.path_shown = not self.path_shown
        self.set_class(self.path_shown, "-path")
        self._show_step(answer, step)

    def _find_path(self, answer: IterationAnswer, step: int) -> None:
        report, iterations = self.report, answer.table.iterations
        if report is not None:
            self.compute("path", lambda: step_path(report, iterations, step), self._show_path)

    def _show_path(self, path: StepPath) -> None:
        if not self.path_shown or path.step != self.table.row:
            return
        facts = self.query_one("#step", LinePane)
        facts.heading(f"Critical path of {path.label}", "c: facts")
        facts.show_choices(lambda width: path_lines(path, width))
        self._path = path

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """A line of the critical path: its longest part on the timeline."""
        if self._path is not None and isinstance(message.choice, OnPath | Stretch):
            show_segment(self.app, self._path.longest(message.choice))

    def on_line_pane_clicked(self, message: LinePane.Clicked) -> None:
        """A click on a bar goes to its step, a double click opens it."""
        if self.answer is None or message.pane.id != "chart":
            return
        step = bar_at(bar_times(self.answer), message.pane.room, message.column)
        if step is None:
            return
        self.table.go_to_row(step)
        if message.twice:
            self.table.action_nav_open()

    def _go_to_outlier(self, step: int) -> None:
        """The next outlier in the order shown, or the one before; after the last one the first."""
        outliers = self.answer.outliers if self.answer is not None else ()
        places = [self.table.position_of(place) for place in outliers]
        shown = sorted((place for place in places if place is not None), key=lambda p: p * step)
        if not shown:
            self.app.say("no step takes far longer than the others")
            return
        here = self.table.cursor * step
        self.table.put_cursor(next((p for p in shown if p * step > here), shown[0]))

    action_steps_outlier_next = partialmethod(_go_to_outlier, 1)
    action_steps_outlier_previous = partialmethod(_go_to_outlier, -1)

    def action_steps_typical(self) -> None:
        """The step nearest to the median."""
        if self.answer is not None:
            self.table.go_to_row(self.answer.typical)

    @property
    def evidence(self) -> Evidence:
        """The step under the cursor."""
        row = self.table.row
        if self.answer is None or row is None:
            return super().evidence
        iterations = self.answer.table.iterations
        return Evidence((int(iterations.start[row]), int(iterations.end[row])))

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """An outlier beside a typical step; another step on the timeline, with its range."""
        if self.answer is None or self.report is None:
            return
        if message.row in self.answer.outliers:
            self._lay_beside(self.answer, self.answer.typical, message.row)
            return
        iterations, ranges = self.answer.table.iterations, self.report.ranges
        start, end = int(iterations.start[message.row]), int(iterations.end[message.row])
        beside = (end - start) // AROUND
        selection = None
        if len(iterations.rows):
            row = int(iterations.rows[message.row])
            selection = selection_of(ranges, row, self.state.display.names)
        window = Window(start - beside, end + beside)
        self.app.show("timeline", window=window, cursor=Cursor(start), selection=selection)

    def _lay_beside(self, answer: IterationAnswer, *steps: int) -> None:
        """Steps above each other in the same scale, with what differs between them."""
        iterations, key = answer.table.iterations, []
        for step in steps:
            name = "typical step" if step == answer.typical else "outlier"
            title = f"{name} {iterations.labels[step]}"
            key += [int(iterations.start[step]), int(iterations.end[step]), title]
        self.app.show("compare", selection=Selection("parts", tuple(key)))


def find_steps(report: Report, scope: Scope, progress: Progress) -> Steps:
    """The steps in a scope, and their figures as a table."""
    progress("finding steps", 0, len(report.ranges))
    try:
        answer = answer_of(report, None, scope)
    except NoDataError as error:
        return Steps(None, None, str(error))
    return Steps(answer, answer.each(exact=False, parts=True))
