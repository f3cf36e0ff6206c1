"""Overview: what was captured, where the time went, and what costs most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from textual import events
from textual.containers import Horizontal

from nsys_tui.analysis.breakdown import DeviceSplit
from nsys_tui.analysis.host_time import mpi_calls, osrt_calls
from nsys_tui.analysis.overview import Overview, overview
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.window import Scope
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.render.cells import BOLD, MUTED, Line
from nsys_tui.state import Selection, ViewState
from nsys_tui.timeline.opening import FewSteps
from nsys_tui.times import moment_text
from nsys_tui.ui.evidence import show_finding, show_longest
from nsys_tui.ui.findings import Findings, findings
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.screens.overview import data, panes
from nsys_tui.ui.screens.overview.findings import FindingsPane
from nsys_tui.ui.screens.overview.panes import WholeTrace
from nsys_tui.ui.screens.result import ResultScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import Built, LinePane, Verdict
from nsys_tui.ui.widgets.trace import AnyRow, TracePane, TraceRow

ACTIONS: tuple[Action, ...] = (
    Action("timeline.area", ("v",), "span", "begin or end a span of the trace; Enter opens it", 35),
)

MEDIUM = 30
"""Rows from which panes are higher."""
LOW, SPLIT = 2, 6
"""Lines of the split on a narrow screen that is low, and else the part of its rows."""
READING: tuple[list[Line], list[panes.Chosen | None]] = ([[(" reading …", MUTED)]], [None])
WIDE = 120
"""Columns from which the split and the findings, kernels and ranges stand side by side."""
THREE = 200
"""Columns from which other GPU work stands beside them."""
FRAME = 2
"""Rows of a pane's frame."""


class OverviewScreen(ResultScreen[Overview]):
    """The first screen."""

    SCREEN = KIND = "overview"
    OF_WHOLE_TRACE = True
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#findings"
    DEFAULT_CSS: ClassVar[str] = """
    OverviewScreen #upper { height: 3fr; min-height: 5; }
    OverviewScreen #tops { height: 2fr; min-height: 4; }
    OverviewScreen.-narrow #upper { layout: vertical; }
    OverviewScreen.-narrow.-short #upper { height: 2fr; }
    OverviewScreen.-narrow.-short #tops { height: 1fr; }
    OverviewScreen #split { width: 44; height: 100%; }
    OverviewScreen.-narrow #split { width: 100%; padding: 0 1; }
    OverviewScreen.-xwide #split { width: 30%; }
    OverviewScreen #findings { width: 1fr; height: 1fr; }
    OverviewScreen #tops LinePane { width: 1fr; }
    OverviewScreen.-narrow #ranges, OverviewScreen #others { display: none; }
    OverviewScreen.-three #others { display: block; }
    OverviewScreen .-empty { display: none !important; }
    OverviewScreen #trace { height: 5; }
    OverviewScreen.-narrow.-short #trace { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._asked: Session | None = None
        """The session whose findings are computed or shown."""

    def body(self) -> Iterable[Any]:
        """Panes in reading order."""
        yield Verdict()
        yield Horizontal(
            LinePane("Time split", id="split"),
            FindingsPane("Report", id="findings"),
            id="upper",
        )
        yield Horizontal(
            LinePane("Top kernels", "enter: details", id="kernels", names=True),
            LinePane("Copies, memsets, graphs", "enter: details", id="others", names=True),
            LinePane("Top NVTX ranges", "enter: details", id="ranges", names=True),
            id="tops",
        )
        yield WholeTrace(id="trace")

    def clear(self) -> None:
        """A new report: nothing is known yet but its metadata."""
        self._asked = None
        self.set_class(False, "-findings")
        self.query_one(WholeTrace).forget()
        self._draw_trace()
        self.query_one(FindingsPane).forget()
        self._fit_upper()
        for pane in self.query(LinePane):
            pane.show_built(lambda _: [[("reading …", MUTED)]])

    def part_loaded(self, part: str) -> None:
        """Draws what the part allows: first estimates, then the GPU figures, at last everything."""
        report, sample = self.report, self.session.sample
        if report is None:
            return
        names = self.state.display.names
        if part == "sample" and sample is not None:
            self.compute("trace", lambda: data.estimated_rows(sample), self._show_trace)
            self.compute(
                "overview", lambda: data.estimates(report, sample, names), self._show_estimates
            )
        elif part == "operations":
            session = self.session
            self.compute("trace", lambda: data.gpu_rows(session, report), self._show_trace)
            if sample is not None:
                self.compute(
                    "overview",
                    lambda: data.gpu_figures(session, report, names),
                    lambda result: self.show_result(report, result),
                )
        elif part == "ranges":
            self._find_host_rows(report, part)

    def needs_new(self, old: ViewState, new: ViewState) -> bool:
        """It is of the whole trace; only names change what is in it."""
        return old.display.names != new.display.names

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Times are written anew."""
        if old.display.time != new.display.time:
            self.query_one(TracePane).refresh()
            self.query_one("#findings", LinePane).rebuild()

    def work(self, report: Report) -> Callable[[Progress], Overview]:
        """All figures; then what is wrong can be found."""
        names, session = self.state.display.names, self.session

        def figures() -> Overview:
            known = data.gpu_figures(session, report, names)
            return overview(report, style=names, top=data.MOST, known=known)

        return lambda _: session.memo(("overview", names), figures)

    def say_stopped(self, why: str) -> None:
        """Panes that would wait for ever say why; earlier figures stay."""
        if self.result is None:
            lines: list[Line] = [[(line, MUTED)] for line in why.splitlines()]
            for pane in self.query(LinePane):
                pane.show_built(lambda _: lines)

    def _show_trace(self, rows: Sequence[AnyRow]) -> None:
        self.query_one(WholeTrace).gpu_rows = rows
        self._draw_trace()

    def _find_host_rows(self, report: Report, part: str) -> None:
        """What the host did meanwhile: ranges, or calls where there are none."""
        session = self.session

        def show(rows: list[TraceRow]) -> None:
            self.query_one(WholeTrace).host_rows = rows
            self._draw_trace()

        self.compute("host", lambda: data.host_rows(session, report, part), show)

    def _draw_trace(self) -> None:
        """What is known of the whole trace, as much as there is room for."""
        self.query_one(WholeTrace).fit_in(self.session, self.size)

    def _show_estimates(self, result: Overview) -> None:
        glyphs, pane = self.app.glyphs, self.query_one("#kernels", LinePane)
        pane.heading("Top kernels", "≈ from a sample")
        top = partial(panes.top_names, result.kernels, "kernel", "kernel", glyphs, sampled=True)
        pane.show_choices(top)
        self._show_split(result, sampled=True)
        self._show_facts(result)

    def _show_split(self, result: Overview, *, sampled: bool = False) -> None:
        """Where the time went: a pane at the left, or on a narrow screen a few bare lines."""
        pane, glyphs = self.query_one("#split", LinePane), self.app.glyphs
        wide, gpus = self.size.width >= WIDE, self.session.gpus
        pane.set_class(wide, "framed")
        pane.can_focus = wide
        has_threads = result.host is not None and result.host.threads
        has_split = bool(result.headline.device_count or has_threads or not result.gpu_known)
        told = wide and self.has_class("-findings")
        pane.set_class(not (has_split or told), "-empty")
        split = "Time split" if has_split else "Report"
        pane.heading("Threads by CPU time" if has_threads else split)
        height = self.size.height
        most = height // SPLIT if height >= MEDIUM else LOW

        def build(width: int) -> list[Line]:
            lines = panes.time_split(result, width, glyphs, sampled=sampled)
            if not wide:
                pane.styles.height = min(len(lines), most)
                return lines[:most]
            facts = panes.report_facts(result, width, gpus) if told else []
            head: list[Line] = [[("", 0)], [("Report", BOLD)]] if lines and facts else []
            return [*lines, *head, *facts]

        if wide:
            pane.styles.height = "100%"
        pane.show_built(build)

    def _show_facts(self, result: Overview) -> None:
        """What was captured and what is missing, until there are findings."""
        gpus = self.session.gpus
        if not self.has_class("-findings"):
            pane = self.query_one("#findings", LinePane)
            pane.show_built(lambda width: panes.report_facts(result, width, gpus))

    def show_result(self, report: Report, result: Overview) -> None:
        """Figures, and where all is read what is wrong."""
        answer = self.result = result
        self._show_split(answer)
        self._show_facts(answer)
        self._show_tops()
        self._draw_trace()
        if self._asked != self.session:
            first = partial(data.first_words, report, answer.devices)
            self.compute("verdict", first, self._show_first_words)
        self._compute_findings(report, answer.devices)
        if self.session.finished:
            self.compute("opening", self.session.few_steps, self._show_steps)
            if not len(report.ranges):
                calls = "api" if len(report.api) else "osrt"
                self._find_host_rows(report, "host_events" if result.mpi else calls)

    def _show_steps(self, few: FewSteps | None) -> None:
        """A few of many steps stand for the whole trace."""
        trace = self.query_one(WholeTrace)
        if few != trace.few:
            trace.few = few
            self._draw_trace()

    def _compute_findings(self, report: Report, splits: tuple[DeviceSplit, ...]) -> None:
        """Not before the figures are there: both at once would make the user wait for both."""
        session = self.session
        if not session.finished or self._asked == session:
            return
        self._asked = session
        self.compute_telling(
            "findings",
            lambda progress: findings(session, report, splits, progress),
            self._show_findings,
        )

    def _show_first_words(self, words: str) -> None:
        """As much of the verdict as the figures tell, until the rules have looked."""
        if words and (self._asked is None or self.task_of("findings").busy):
            self.query_one(Verdict).tell(words)

    def _show_findings(self, found: Findings) -> None:
        ranked = found.ranked
        late = [entry.late for entry in ranked if entry.late >= 0]
        places = (entry.device for entry in ranked if entry.device is not None)
        self.query_one(WholeTrace).telling = [*late, *places]
        self._draw_trace()
        self.app.remember(self.session, found.verdict)
        self.query_one(Verdict).tell(found.verdict)
        self.set_class(bool(ranked), "-findings")
        if self.result is not None:
            self._show_split(self.result)
        if ranked:
            pane = self.query_one(FindingsPane)
            pane.show_findings(found, self.session.name, self._place, self._facts)
        self.call_after_refresh(self._fit_upper)

    def on_line_pane_resized(self) -> None:
        """Also after a first layout, before which Textual may call what follows a refresh."""
        self._fit_upper()

    def _fit_upper(self) -> None:
        """Panes end where their last line does: what is left over is no frame around nothing."""
        split, told = self.query_one("#split", LinePane), self.query_one(FindingsPane)
        lines = max(split.virtual_size.height, told.whole or told.virtual_size.height)
        known = self.size.width >= WIDE and self._asked == self.session
        self.query_one("#upper").styles.max_height = lines + FRAME if known else None

    def _place(self, entry: Finding) -> str:
        """The GPU and the moment that a finding is about."""
        report, time = self.report, self.state.display.time
        start, end = (report and report.span) or self.session.extent
        places = [device.label for device in report.devices] if report else []
        number = -1 if entry.device is None else entry.device
        gpu = places[number] if 0 <= number < len(places) else ""
        step = max(1, (end - start) // 300)
        moment = moment_text(entry.window[0], step, time, report) if entry.window else ""
        return f"{gpu} {moment}".strip() or "report"

    def _facts(self, width: int) -> list[Line]:
        """What was captured, where a narrow screen has no other place for it."""
        result = self.result if self.size.width < WIDE else None
        return panes.report_facts(result, width, self.session.gpus) if result else []

    def _show_tops(self) -> None:
        """Lists side by side, or one below the other; what has nothing to list gives way."""
        if (result := self.result) is None:
            return
        glyphs = self.app.glyphs
        wide, finished = self.size.width >= WIDE, self.session.finished
        what = f"{result.called} calls" if result.mpi or result.calls else "kernels"
        titles, counts = {"kernel": what, "range": "NVTX ranges"}, panes.listed(result)
        kinds = [kind for kind in titles if kind in counts or not finished]
        lists = {"kernels": kinds}
        if wide:
            other = ["other"] * ("other" in counts)
            lists = {f"{kind}s": [kind] for kind in (*kinds, *other)}
        self.set_class(self.size.width >= THREE or (wide and "range" not in kinds), "-three")

        def show(pane: LinePane, kinds: Sequence[str]) -> None:
            def build(width: int) -> Built:
                lines: list[Line] = []
                choices: list[panes.Chosen | None] = []
                for kind in kinds:
                    ready = finished or kind != "range"
                    made = panes.top_list(result, kind, glyphs, width) if ready else READING
                    lines, choices = lines + made[0], choices + made[1]
                return lines, choices

            pane.show_choices(build)

        for pane in self.query("#tops LinePane").results(LinePane):
            own = lists.get(str(pane.id), [])
            pane.set_class(not own, "-empty")
            show(pane, own)
        kernels = " and ".join(titles.get(kind, "") for kind in lists.get("kernels", ()))
        self.query_one("#kernels", LinePane).heading(f"Top {kernels}", "enter: details")
        rows = (sum(counts.get(kind, 1) + 1 for kind in own) for own in lists.values())
        tops = self.query_one("#tops")
        tops.set_class(finished and not counts, "-empty")
        tops.styles.max_height = max(rows, default=0) + FRAME if finished else None

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002
        """One list or two, by the width; rows of the trace by the height."""
        self._show_tops()
        self._draw_trace()
        if self.result is not None:
            self._show_split(self.result)

    def action_export_view(self) -> None:
        """Writes what ``nsys-tui overview`` prints; csv holds the pane in focus, else the GPUs."""
        from nsys_tui.ui.saving import Saving, save

        report, names = self.report, self.state.display.names
        if report is None:
            return
        pane = self.focused.id if self.focused is not None else None
        section = pane if pane in ("kernels", "ranges") else "devices"
        name = f"{Path(self.session.name).stem}.overview.md"
        writers = data.overview_writers(report, names, section)
        save(self.app, Saving("Write the overview", name, writers))

    @property
    def can_export(self) -> bool:
        """Estimates are not written."""
        return self.report is not None and self.session.finished

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """A kernel or range was chosen: its own screen, on it; of calls the longest is shown."""
        choice, report = message.choice, self.report
        if isinstance(choice, Finding):
            show_finding(self.app, choice)
        elif isinstance(choice, panes.Chosen) and choice.kind == "call" and report is not None:
            of_mpi = self.result is not None and self.result.mpi
            calls = report.host_events if of_mpi else report.osrt
            rows = (mpi_calls if of_mpi else osrt_calls)(report, Scope())
            names = np.array(calls.names, object)
            show_longest(self.app, calls, rows[names[calls.name[rows]] == choice.name])
        elif isinstance(choice, panes.Chosen) and choice.kind != "fact":
            kind = "range_name" if choice.kind == "range" else "kernel_name"
            screen = "nvtx" if choice.kind == "range" else "kernels"
            chosen = Selection(kind, (choice.name,), label=choice.name)
            self.app.show(screen, window=None, selection=chosen)

    @property
    def evidence(self) -> Evidence:
        """The finding under the cursor."""
        shown = self._told
        if isinstance(shown, Finding):
            return Evidence(shown.window, shown.device, shown.screen)
        return super().evidence

    @property
    def to_record(self) -> str:
        """What would settle the finding under the cursor."""
        return data.recording(self._told)

    @property
    def _told(self) -> object:
        """The finding, or what was not looked at, under the cursor."""
        pane = self.query_one("#findings", LinePane)
        return pane.choice if pane.has_focus else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A span is chosen where the trace is shown."""
        if action == "timeline_area" and not self.query_one(TracePane).display:
            return False
        return super().check_action(action, parameters)

    def action_timeline_area(self) -> None:
        """Goes to the trace and begins a span there."""
        pane = self.query_one(TracePane)
        pane.focus()
        pane.action_timeline_area()

    def on_trace_pane_opened(self, message: TracePane.Opened) -> None:
        """The timeline, around the cursor."""
        self.app.show("timeline", window=message.window)
