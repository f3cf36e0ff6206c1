"""Overview: what was captured, where the time went, and what costs most."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from textual.containers import Horizontal

from nsys_tui.analysis.host_time import mpi_calls, osrt_calls
from nsys_tui.analysis.overview import Overview, overview
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.analysis.window import Scope
from nsys_tui.render.cells import BOLD, MUTED
from nsys_tui.state import Cursor, Selection, Window
from nsys_tui.timeline.opening import FewSteps, opening
from nsys_tui.times import moment_text
from nsys_tui.ui.evidence import show_longest
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.keymap import SCREENS, Action
from nsys_tui.ui.screens.overview import data, panes
from nsys_tui.ui.screens.result import ResultScreen
from nsys_tui.ui.widgets.lines import LinePane, Verdict
from nsys_tui.ui.widgets.trace import HINT, TracePane
from nsys_tui.units import format_duration, format_share, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual import events

    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report
    from nsys_tui.render.cells import Line
    from nsys_tui.state import ViewState
    from nsys_tui.ui.session import Session
    from nsys_tui.ui.widgets.lines import Built
    from nsys_tui.ui.widgets.trace import AnyRow, TraceRow

ACTIONS: tuple[Action, ...] = (
    Action("timeline.area", ("v",), "span", "begin or end a span of the trace; Enter opens it", 35),
)

MEDIUM, TALL = 30, 40
"""Rows from which panes are higher, and from which the trace shows ranges and a legend."""
LOW, SPLIT = 2, 6
"""Lines of the split on a narrow screen that is low, and else the part of its rows."""
FIXED, PART = 16, 4
"""Rows that other panes need at least, and the part of the rest that GPUs of the trace may take."""
READING: tuple[list[Line], list[panes.Chosen | None]] = ([[(" reading …", MUTED)]], [None])
WIDE = 120
"""Columns from which the split and the findings, kernels and ranges stand side by side."""
THREE = 200
"""Columns from which other GPU work stands beside them."""
FRAME = 2
"""Rows of a pane's frame."""
LEVEL = 5
"""Rows of a tall screen for which the trace has one level of ranges more."""


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
        self._gpu_rows: Sequence[AnyRow] = []
        self._host_rows: list[TraceRow] = []
        self._few: FewSteps | None = None
        self._findings = ""
        """Heading of the findings."""
        self._telling: list[int] = []
        """GPUs that findings are about, the one that others wait for first."""

    def body(self) -> Iterable[Any]:
        """Panes in reading order."""
        yield Verdict()
        yield Horizontal(
            LinePane("Time split", id="split"),
            LinePane("Report", id="findings"),
            id="upper",
        )
        yield Horizontal(
            LinePane("Top kernels", "enter: details", id="kernels", names=True),
            LinePane("Copies, memsets, graphs", "enter: details", id="others", names=True),
            LinePane("Top NVTX ranges", "enter: details", id="ranges", names=True),
            id="tops",
        )
        yield TracePane(id="trace")

    def clear(self) -> None:
        """A new report: nothing is known yet but its metadata."""
        self._asked = None
        self.set_class(False, "-findings")
        self._gpu_rows, self._host_rows, self._few, self._telling = [], [], None, []
        self._draw_trace()
        self.query_one("#findings", LinePane).heading("Report")
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

    def _find_host_rows(self, report: Report, part: str) -> None:
        """What the host did meanwhile: ranges, or calls where there are none."""
        session = self.session

        def show(rows: list[TraceRow]) -> None:
            self._host_rows = rows
            self._draw_trace()

        self.compute("host", lambda: data.host_rows(session, report, part), show)

    def _draw_trace(self) -> None:
        """GPUs always, as many as there is room for; ranges where the screen is tall."""
        height, pane = self.size.height, self.query_one(TracePane)
        most = max(2, (height - FIXED) // PART)
        levels = 1 + (height - TALL) // LEVEL if self._gpu_rows else most
        there = range(len(self._gpu_rows))
        telling = dict.fromkeys((*(place for place in self._telling if place in there), *there))
        gpus = [self._gpu_rows[place] for place in sorted([*telling][:most])]
        rows = [*gpus, *self._host_rows[: max(levels, 0)]]
        hidden = len(self._gpu_rows) - most
        rest = f" ({plural(hidden, 'more GPU')}: timeline)" if hidden > 0 else ""
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
        pane.set_class(not rows and self.session.finished, "-empty")

    def _show_estimates(self, found: Overview) -> None:
        glyphs, pane = self.app.glyphs, self.query_one("#kernels", LinePane)
        pane.heading("Top kernels", "≈ from a sample")
        top = partial(panes.top_names, found.kernels, "kernel", "kernel", glyphs, sampled=True)
        pane.show_choices(top)
        self._show_split(found, sampled=True)
        self._show_facts(found)

    def _show_split(self, found: Overview, *, sampled: bool = False) -> None:
        """Where the time went: a pane at the left, or on a narrow screen a few bare lines."""
        pane, glyphs = self.query_one("#split", LinePane), self.app.glyphs
        wide, gpus = self.size.width >= WIDE, self.session.gpus
        pane.set_class(wide, "framed")
        pane.can_focus = wide
        has_threads = found.host is not None and found.host.threads
        has_split = bool(found.headline.device_count or has_threads or not found.gpu_known)
        told = wide and self.has_class("-findings")
        pane.set_class(not (has_split or told), "-empty")
        split = "Time split" if has_split else "Report"
        pane.heading("Threads by CPU time" if has_threads else split)
        height = self.size.height
        most = height // SPLIT if height >= MEDIUM else LOW

        def build(width: int) -> list[Line]:
            lines = panes.time_split(found, width, glyphs, sampled=sampled)
            if not wide:
                pane.styles.height = min(len(lines), most)
                return lines[:most]
            facts = panes.report_facts(found, width, gpus) if told else []
            head: list[Line] = [[("", 0)], [("Report", BOLD)]] if lines and facts else []
            return [*lines, *head, *facts]

        if wide:
            pane.styles.height = "100%"
        pane.show_built(build)

    def _show_facts(self, found: Overview) -> None:
        """What was captured and what is missing, until there are findings."""
        gpus = self.session.gpus
        if not self.has_class("-findings"):
            pane = self.query_one("#findings", LinePane)
            pane.show_built(lambda width: panes.report_facts(found, width, gpus))

    def show_result(self, report: Report, result: Overview) -> None:
        """Figures, and where all is read what is wrong."""
        found = self.result = result
        self._show_split(found)
        self._show_facts(found)
        self._show_tops()
        self._draw_trace()
        self._compute_findings(report, found.devices)
        if self.session.finished:
            self.compute("opening", self.session.few_steps, self._show_steps)
            if not len(report.ranges):
                calls = "api" if len(report.api) else "osrt"
                self._find_host_rows(report, "host_events" if result.mpi else calls)

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
        self.app.remember(self.session, findings.verdict)
        self.query_one(Verdict).tell(findings.verdict)
        self.set_class(bool(found), "-findings")
        if self.result is not None:
            self._show_split(self.result)
        if not found:
            return
        pane, unseen = self.query_one("#findings", LinePane), findings.unseen
        extent, report = self.session.extent, self.report
        gpus = dict(enumerate(device.label for device in report.devices)) if report else {}

        def place(entry: Finding) -> str:
            gpu = gpus.get(-1 if entry.place is None else entry.place, "")
            time = self.state.display.time
            step = max(1, (extent[1] - extent[0]) // 1000)
            moment = moment_text(entry.window[0], step, time, report) if entry.window else ""
            return f"{gpu} {moment}".strip() or "report"

        def gain(entry: Finding) -> str:
            return format_share(entry.saved_ns, findings.base_ns) if entry.saved_ns > 0 else ""

        def build(width: int) -> Built:
            chosen = pane.choice or found[0]
            lines, choices = panes.finding_lines(found, chosen, width, place, gain)
            more = panes.unseen_lines(unseen, width, chosen=chosen is unseen)
            rest: list[object] = [unseen, *[None] * (len(more) - 1)] * bool(more)
            # A narrow screen has no other place for what was captured.
            result = self.result if self.size.width < WIDE else None
            facts = panes.report_facts(result, width, self.session.gpus) if result else []
            head: list[Line] = [[("Report", BOLD)]] if facts else []
            rest += (panes.Chosen("fact", str(number)) for number in range(len(head + facts)))
            return [*lines, *more, *head, *facts], [*choices, *rest]

        pane.show_choices(build)
        self._findings = f"Findings ({len(found)}), could give back up to % of the time"
        self._head_findings(pane)

    def _head_findings(self, pane: LinePane) -> None:
        """How many there are, and what records or prints the one under the cursor."""
        choice = pane.choice
        command = choice.command if isinstance(choice, Finding) else ""
        record = "p: record it" if data.recording(choice) else ""
        pane.heading(self._findings, record or command.replace("REPORT", self.session.name))

    def on_line_pane_moved(self, message: LinePane.Moved) -> None:
        """The finding under the cursor is told in full."""
        pane = message.pane
        if pane.id == "findings" and self.has_class("-findings"):
            pane.rebuild()
            pane.scroll_to_cursor()
            self._head_findings(pane)

    def _show_tops(self) -> None:
        """Lists side by side, or one below the other; what has nothing to list gives way."""
        if (found := self.result) is None:
            return
        glyphs = self.app.glyphs
        wide, finished = self.size.width >= WIDE, self.session.finished
        what = f"{found.called} calls" if found.mpi or found.calls else "kernels"
        titles, counts = {"kernel": what, "range": "NVTX ranges"}, panes.listed(found)
        kinds = [kind for kind in titles if kind in counts or not finished] or ["kernel"]
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
                    made = panes.top_list(found, kind, glyphs, width) if ready else READING
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
        self.query_one("#tops").styles.max_height = max(rows) + FRAME if finished else None

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002
        """One list or two, by the width; rows of the trace by the height."""
        self._show_tops()
        self._draw_trace()
        if self.result is not None:
            self._show_split(self.result)

    def action_export_view(self) -> None:
        """Writes what ``nsys-tui overview`` prints; csv holds the pane in focus, else the GPUs."""
        from nsys_tui.ui.saving import Saving, save
        from nsys_tui.ui.screens.overview.data import overview_writers

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
        """A kernel or range was chosen: its own screen, on it; of calls the longest is shown."""
        choice, report = message.choice, self.report
        if isinstance(choice, Finding):
            self._go_to(choice)
        elif isinstance(choice, panes.Chosen) and choice.kind == "call" and report is not None:
            of_mpi = self.result is not None and self.result.mpi
            calls = report.host_events if of_mpi else report.osrt
            rows = (mpi_calls if of_mpi else osrt_calls)(report, Scope())
            named = [name == choice.name for name in calls.names]
            show_longest(self.app, calls, rows[np.asarray(named)[calls.name[rows]]])
        elif isinstance(choice, panes.Chosen) and choice.kind != "fact":
            kind = "range_name" if choice.kind == "range" else "kernel_name"
            screen = "nvtx" if choice.kind == "range" else "kernels"
            chosen = Selection(kind, (choice.name,), label=choice.name)
            self.app.show(screen, window=None, selection=chosen)

    def _go_to(self, finding: Finding) -> None:
        """The evidence: its screen with its window, or the timeline where that is not there."""
        names = [spec.name for spec in SCREENS if str(spec.number) == finding.screen]
        screen = names[0] if names else "timeline"
        label = finding.title
        if finding.window is None:
            self.app.show(screen)
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
        self.app.show(screen, **changes)

    @property
    def evidence(self) -> Evidence:
        """The finding under the cursor."""
        found = self._told
        if isinstance(found, Finding):
            return Evidence(found.window, found.place, found.screen)
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
