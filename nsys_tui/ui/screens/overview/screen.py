"""Overview: what was captured, where the time went, and what costs most."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Horizontal

from nsys_tui.analysis.overview import Overview, overview
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.render.cells import MUTED
from nsys_tui.state import Cursor, Selection, Window
from nsys_tui.timeline.opening import FewSteps, opening
from nsys_tui.times import moment_text
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.keymap import SCREENS, Action
from nsys_tui.ui.recent import remember
from nsys_tui.ui.screens.overview import data, panes
from nsys_tui.ui.screens.result import ResultScreen
from nsys_tui.ui.widgets.lines import LinePane, Verdict
from nsys_tui.ui.widgets.trace import HINT, TracePane
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual import events

    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.rules.bound import NotLookedAt
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report
    from nsys_tui.render.cells import Line
    from nsys_tui.state import ViewState
    from nsys_tui.ui.session import Session
    from nsys_tui.ui.widgets.trace import AnyRow, TraceRow

ACTIONS: tuple[Action, ...] = (
    Action("timeline.area", ("v",), "span", "begin or end a span of the trace; Enter opens it", 35),
)

MEDIUM, TALL = 30, 40
"""Rows from which panes are higher."""
TAKEN = (22, 27, 36)
"""Rows of all panes but the trace's GPUs, below these and above; of the kernels' pane five."""

READING: tuple[list[Line], list[panes.Chosen | None]] = ([[(" reading …", MUTED)]], [None])
WIDE = 120
"""Columns from which kernels and ranges stand side by side."""


class OverviewScreen(ResultScreen[Overview]):
    """The first screen."""

    SCREEN = KIND = "overview"
    OF_WHOLE_TRACE = True
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#kernels"
    DEFAULT_CSS: ClassVar[str] = """
    OverviewScreen #upper { height: 8; }
    OverviewScreen #split { width: 38; }
    OverviewScreen #report, OverviewScreen #findings { width: 1fr; }
    OverviewScreen #findings, OverviewScreen #facts { display: none; }
    OverviewScreen.-findings #findings, OverviewScreen.-findings #facts { display: block; }
    OverviewScreen.-findings #report { display: none; }
    OverviewScreen #facts { height: 1; padding: 0 1; }
    OverviewScreen #facts.framed { height: 5; padding: 0; }
    OverviewScreen.-tall #facts { height: 6; }
    OverviewScreen #tops { height: 1fr; }
    OverviewScreen #kernels { width: 1fr; }
    OverviewScreen #ranges { width: 1fr; display: none; }
    OverviewScreen #trace { height: 5; }
    OverviewScreen.-medium #upper { height: 11; }
    OverviewScreen.-tall #upper { height: 36%; min-height: 16; }
    OverviewScreen.-wide #split { width: 44; }
    OverviewScreen.-wide #ranges, OverviewScreen.-xwide #ranges { display: block; }
    OverviewScreen.-xwide #split { width: 48; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._detail: Finding | list[NotLookedAt] | None = None
        """The finding, or what was not looked at, that the strip at the bottom tells in full."""
        self._asked: Session | None = None
        """The session whose findings are computed or shown."""
        self._gpu_rows: Sequence[AnyRow] = []
        self._nvtx_rows: list[TraceRow] = []
        self._few: FewSteps | None = None
        self._telling: list[int] = []
        """GPUs that findings are about, the one that others wait for first."""

    def body(self) -> Iterable[Any]:
        """Panes in reading order."""
        yield Verdict()
        yield Horizontal(
            LinePane("Time split", id="split"),
            LinePane("Findings", "enter: go", id="findings"),
            LinePane("Report", id="report"),
            id="upper",
        )
        yield Horizontal(
            LinePane("Top kernels", "enter: details", id="kernels", names=True),
            LinePane("Top NVTX ranges", "enter: details", id="ranges", names=True),
            id="tops",
        )
        yield TracePane(id="trace")
        yield LinePane("Report", id="facts")

    def clear(self) -> None:
        """A new report: nothing is known yet but its metadata."""
        self._asked = None
        self.set_class(False, "-findings")
        self._gpu_rows, self._nvtx_rows, self._few, self._telling = [], [], None, []
        self._draw_trace()
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
                    lambda: data.gpu_figures(report, names),
                    lambda found: self.show_result(report, found),
                )
        elif part == "ranges":
            self.compute("nvtx", lambda: data.nvtx_rows(report.ranges), self._show_ranges)

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
        names, memo = self.state.display.names, self.session.memo
        return lambda _: memo(
            ("overview", names), lambda: overview(report, style=names, top=data.MOST)
        )

    def say_stopped(self, why: str) -> None:
        """Panes that would wait for ever say why; earlier figures stay."""
        if self.result is None:
            lines: list[Line] = [[(line, MUTED)] for line in why.splitlines()]
            for pane in self.query(LinePane):
                pane.show_built(lambda _: lines)

    def _show_trace(self, rows: Sequence[AnyRow]) -> None:
        self._gpu_rows = rows
        self._draw_trace()

    def _show_ranges(self, rows: list[TraceRow]) -> None:
        self._nvtx_rows = rows
        self._draw_trace()

    def _draw_trace(self) -> None:
        """GPUs always, as many as there is room for; ranges where the screen is tall."""
        height, pane = self.size.height, self.query_one(TracePane)
        ranges = self._nvtx_rows if height >= TALL or not self._gpu_rows else []
        taken = TAKEN[(height >= MEDIUM) + (height >= TALL)] + len(ranges) * (height >= TALL)
        most = max(2, height - taken)
        telling = dict.fromkeys((*self._telling, *range(len(self._gpu_rows))))
        rows = [*(self._gpu_rows[place] for place in sorted([*telling][:most])), *ranges]
        hidden = len(self._gpu_rows) - most
        rest = f" ({hidden} more GPUs: timeline)" if hidden > 0 else ""
        estimated = self.session.report is not None and not self.session.exact
        mark = "≈ from a sample, " if estimated and self._gpu_rows else ""
        extent, report = self.session.extent, self.session.report
        span = report.span if report is not None and self.session.exact else None
        work = opening(span, self._few, extent, self.size.width)
        whole = format_duration(extent[1] - extent[0])
        busy = "" if span is None else format_duration(span[1] - span[0])
        part = "" if work is None else f"GPU work, {busy} of {whole}"
        part = part if self._few is None else f"{self._few} ({whole})".capitalize()
        pane.heading(f"{part or 'Whole trace'}{rest}", f"{mark}{HINT}")
        legend = height >= TALL and bool(self._gpu_rows)
        pane.show(rows, work or extent, legend=legend)
        pane.styles.height = len(rows) + legend + 3
        pane.display = bool(rows) or not self.session.finished

    def _show_estimates(self, found: Overview) -> None:
        glyphs, pane = self.app.glyphs, self.query_one("#kernels", LinePane)
        pane.heading("Top kernels", "≈ from a sample")
        top = partial(panes.top_names, found.kernels, "kernel", "kernel", glyphs, sampled=True)
        pane.show_built(lambda width: top(width)[0], top(0)[1])
        self.query_one("#split", LinePane).show_built(
            lambda width: panes.time_split(found, width, glyphs, sampled=True)
        )
        self._show_facts(found)

    def _show_facts(self, found: Overview) -> None:
        gpus = self.session.gpus
        for name in ("#report", "#facts"):
            self.query_one(name, LinePane).show_built(
                lambda width: panes.report_facts(found, width, gpus)
            )

    def show_result(self, report: Report, result: Overview) -> None:
        """Figures, and where all is read what is wrong."""
        found = self.result = result
        glyphs = self.app.glyphs
        split = self.query_one("#split", LinePane)
        has_threads = found.host is not None and found.host.threads
        split.heading("Threads by CPU time" if has_threads else "Time split")
        split.show_built(lambda width: panes.time_split(found, width, glyphs))
        self._show_facts(found)
        self._show_tops()
        self._draw_trace()
        self._compute_findings(report, found.devices)
        if self.session.finished:
            self.compute("opening", self.session.few_steps, self._show_steps)

    def _show_steps(self, few: FewSteps | None) -> None:
        """A few of many steps stand for the whole trace."""
        if few != self._few:
            self._few = few
            self._draw_trace()

    def _compute_findings(self, report: Report, splits: tuple[DeviceSplit, ...]) -> None:
        """Not before the figures are there: both at once would make the user wait for both."""
        session = self.session
        if not session.finished or self._asked == session:
            return
        self._asked = session
        self.compute_telling(
            "findings",
            lambda progress: data.findings(session, report, splits, progress),
            self._show_findings,
        )

    def _show_findings(self, findings: data.Findings) -> None:
        found = findings.ranked
        late = [entry.late for entry in found if entry.late >= 0]
        self._telling = [*late, *(entry.place for entry in found if entry.place is not None)]
        self._draw_trace()
        remember(self.session.path, verdict=findings.verdict)
        self.query_one(Verdict).tell(findings.verdict)
        self.set_class(bool(found), "-findings")
        pane, extent = self.query_one("#findings", LinePane), self.session.extent
        unseen = findings.unseen
        rest = f", {len(unseen)} not looked at" if unseen else ""
        pane.heading(f"Findings ({len(found)}){rest}", "enter: go")

        def place(entry: Finding) -> str:
            gpu = self._gpu_label(entry.place)
            time = self.state.display.time
            step = max(1, (extent[1] - extent[0]) // 1000)
            moment = moment_text(entry.window[0], step, time, self.report) if entry.window else ""
            return f"{gpu} {moment}".strip() or "report"

        choices: list[object] = [choice for entry in found for choice in (entry, None)]
        choices += [unseen] * bool(unseen)
        pane.show_built(
            lambda width: [
                *panes.finding_lines(found, width, place),
                *panes.unseen_line(unseen, width),
            ],
            choices,
        )

    def on_line_pane_moved(self, message: LinePane.Moved) -> None:
        """The strip at the bottom gives the whole text of the finding under the cursor."""
        strip, entry = self.query_one("#facts", LinePane), message.choice
        if entry is self._detail or not (isinstance(entry, Finding | list) or self._detail):
            return
        self._detail = entry if isinstance(entry, Finding | list) else None
        strip.set_class(self._detail is not None, "-detail")
        self._fit_facts()
        hint = "p: record it" if data.recording(entry) else ""
        if isinstance(entry, Finding):
            strip.heading("Finding", hint or entry.command.replace("REPORT", self.session.name))
            strip.show_built(lambda width: panes.finding_detail(entry, width))
        elif isinstance(entry, list):
            strip.heading(f"Not looked at ({len(entry)})", hint)
            strip.show_built(lambda width: panes.unseen_detail(entry, width))
        elif self.result is not None:
            strip.heading("Report")
            self._show_facts(self.result)

    def _gpu_label(self, place: int | None) -> str:
        report = self.report
        if place is None or report is None or place >= len(report.devices):
            return ""
        return report.devices[place].label

    def _show_tops(self) -> None:
        """Kernels and ranges side by side, or one below the other where there is no room."""
        if (found := self.result) is None:
            return
        glyphs = self.app.glyphs
        wide, finished = self.size.width >= WIDE, self.session.finished
        left = self.query_one("#kernels", LinePane)
        what = "OS runtime calls" if found.calls else "kernels"

        def show(pane: LinePane, *kinds: str) -> None:
            def build(width: int) -> tuple[list[Line], list[panes.Chosen | None]]:
                lines: list[Line] = []
                choices: list[panes.Chosen | None] = []
                for kind in kinds:
                    ready = finished or kind != "range"
                    made = panes.top_list(found, kind, glyphs, width) if ready else READING
                    lines, choices = lines + made[0], choices + made[1]
                return lines, choices

            pane.show_built(lambda width: build(width)[0], build(0)[1])

        show(self.query_one("#ranges", LinePane), "range")
        left.heading(f"Top {what}{'' if wide else ' and NVTX ranges'}", "enter: details")
        show(left, *(("kernel",) if wide else ("kernel", "range")))

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002
        """One list or two, by the width; rows of the trace by the height."""
        self._show_tops()
        self._draw_trace()
        self._fit_facts()

    def _fit_facts(self) -> None:
        """On a low screen one bare line, unless a finding is told in full."""
        strip = self.query_one("#facts", LinePane)
        strip.can_focus = self.size.height >= TALL or self._detail is not None
        strip.set_class(strip.can_focus, "framed")

    def action_export_view(self) -> None:
        """Writes what ``nsys-tui overview`` prints; csv holds the pane in focus, else the GPUs."""
        from nsys_tui.ui.saving import Saving, save
        from nsys_tui.ui.screens.overview.files import overview_writers

        report, names = self.report, self.state.display.names
        if report is None:
            return
        pane = self.focused.id if self.focused is not None else None
        section = pane if pane in ("kernels", "ranges") else "devices"
        name = f"{Path(self.session.name).stem}.overview.md"
        writers = overview_writers(report, names, section)
        save(self.app, Saving("Write the overview", name, writers))

    @property
    def can_export(self) -> bool:
        """Estimates are not written."""
        return self.report is not None and self.session.finished

    def on_line_pane_chosen(self, message: LinePane.Chosen) -> None:
        """A kernel or range was chosen: its own screen, on it."""
        choice = message.choice
        if isinstance(choice, Finding):
            self._go_to(choice)
        if isinstance(choice, panes.Chosen):
            kind = f"{choice.kind}_name"
            screen = "kernels" if choice.kind == "kernel" else "nvtx"
            chosen = Selection(kind, (choice.name,), label=choice.name)
            self._go(screen, window=None, selection=chosen)

    def _go_to(self, finding: Finding) -> None:
        """The evidence: its screen with its window, or the timeline where that is not there."""
        number = int(finding.screen) if finding.screen.isdigit() else 2
        names = [spec.name for spec in SCREENS if spec.number == number]
        label = finding.title
        if finding.window is None:
            self._go(names[0] if names else "timeline")
            return
        start, end = finding.window
        margin = max((end - start) // 5, 1)
        selection = Selection("finding", (finding.rule, start, end), Window(start, end), (), label)
        changes: dict[str, Any] = {
            "window": Window(start - margin, end + margin),
            "selection": selection,
        }
        lane = "" if finding.place is None else gpu_key(finding.place)
        changes["cursor"] = Cursor(start, lane)
        self._go(names[0] if names else "timeline", **changes)

    @property
    def evidence(self) -> Evidence:
        """The finding in the strip."""
        found = self._detail
        if isinstance(found, Finding):
            return Evidence(found.window, found.place, found.screen)
        return super().evidence

    @property
    def to_record(self) -> str:
        """What would settle the finding in the strip."""
        return data.recording(self._detail)

    def action_timeline_area(self) -> None:
        """Goes to the trace and begins a span there."""
        pane = self.query_one(TracePane)
        pane.focus()
        pane.action_timeline_area()

    def on_trace_pane_opened(self, message: TracePane.Opened) -> None:
        """The timeline, around the cursor."""
        self._go("timeline", window=message.window)

    def _go(self, screen: str, **changes: Any) -> None:
        if self.app.handler(f"view.{screen}") is not None:
            self.app.show(screen, **changes)
