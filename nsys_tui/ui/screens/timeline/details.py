"""Details: the panes that tell what is known of the selection, the area and the marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from textual.containers import Vertical

from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.timeline.area import Area, area
from nsys_tui.analysis.timeline.evidence import finding_facts, gap_facts
from nsys_tui.analysis.timeline.facts import Facts, facts_of
from nsys_tui.analysis.timeline.search import lanes_of
from nsys_tui.model.report import Report
from nsys_tui.render.cells import MUTED, Line
from nsys_tui.state import Mark, Selection, ViewState, Window
from nsys_tui.timeline.areas import selected_tracks
from nsys_tui.timeline.cell_facts import cell_facts, cell_title, gap_cause
from nsys_tui.timeline.marking import mark_lines, marks_in_order
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.times import window_text
from nsys_tui.ui.findings import findings
from nsys_tui.ui.mark_spans import span_between, split_between
from nsys_tui.ui.screens.timeline.lines import (
    area_lines,
    column_lines,
    flowing_lines,
    low_lines,
    telling,
)
from nsys_tui.ui.screens.timeline.model_screen import ModelScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_duration

Moment: TypeAlias = Callable[[int], str]

EVIDENCE: Final = ("gap", "finding")
"""``Selection.kind`` of what has facts beyond its span."""


def span_facts(selection: Selection, moment: Moment) -> Facts:
    """What a selection says by itself: its kind, label and span."""
    if selection.span is None:
        return Facts(selection.label, ())
    start, end = selection.span
    title = f"{selection.kind}: {selection.label}" if selection.label else selection.kind
    what = (("what", selection.label),) if selection.label else ()
    return Facts(title, (("start", moment(start)), ("dur", format_duration(end - start)), *what))


def evidence_facts(session: Session, selection: Selection, moment: Moment) -> Facts:
    """All that is known about a gap or a finding; slow, for a worker."""
    report = session.report
    if report is None:
        return span_facts(selection, moment)
    known = (_gap if selection.kind == "gap" else _finding)(session, report, selection, moment)
    return known or span_facts(selection, moment)


def _gap(session: Session, report: Report, selection: Selection, moment: Moment) -> Facts | None:
    device, start, end = (value if isinstance(value, int) else -1 for value in selection.key)
    work = session.memo("host_work", lambda: HostWork(report))
    return gap_facts(report, work, (device, start, end), moment)


def _finding(
    session: Session, report: Report, selection: Selection, moment: Moment
) -> Facts | None:
    fits = (
        entry
        for entry in findings(session, report).ranked
        if entry.window is not None
        and (entry.rule, *entry.window) == selection.key
        and entry.title == selection.label
    )
    entry = next(fits, None)
    return None if entry is None else finding_facts(report, entry, moment)


PLAIN: Final = ("dur", "start", "stream", "GPU", "call", "name", "bytes", "corr")
"""Facts that are told of most events and need no word."""
KINDS: Final = {
    "states": "thread state", "syncs": "sync call", "osrt": "os runtime calls", "ranges": "range",
    "operations": "operation", "api": "call", "projected": "GPU time of a range", "steps": "step",
}  # fmt: skip
"""Word for the events of a row, by its part."""
STRIP: Final = 5
"""Most lines of the strip below the lanes."""


class Details:
    """Fills the panes of a screen.

    Args:
        screen: whose model they tell about, and whose workers find it out.
    """

    def __init__(self, screen: ModelScreen) -> None:
        self._screen = screen
        self.facts_pane = LinePane("Selected", id="facts")
        self.area_pane = LinePane("Area (v)", id="area")
        self.marks_pane = LinePane("Marks (')", id="marks")
        self.side = Vertical(self.facts_pane, self.area_pane, self.marks_pane, id="side")
        """Where one of them has something to tell, and the screen is wide."""
        self.strip = LinePane("Selected", id="strip")
        """Below the lanes."""
        self.opened = False
        """Whether all that is known of the selection is asked for."""
        self.facts: Facts | None = None
        """What is known of the selection."""
        self._put_away: Mapping[str, Mark] | None = None
        """Marks of which Esc hid the list."""

    @property
    def words(self) -> list[str]:
        """The cause of a gap, the terms of the selected event, or the kind of the cursor's row."""
        row, words = self._model.row, [gap_cause(self._model)]
        if self.facts is not None:
            words = [text for name, text in self.facts.facts if name == "cause"]
            names = [name for name, _ in self.facts.facts if name and name not in PLAIN]
            words += sorted(names, key=telling)
        kinds = () if row is None else (KINDS.get(row.part, ""), row.words or row.label)
        return [*words, *kinds]

    @property
    def _model(self) -> TimelineModel:
        return self._screen.model

    def reset(self) -> None:
        """Nothing is known yet of another report."""
        self.area_pane.heading("Area (v)")
        self.area_pane.show([[(" v begins an area, v ends it", MUTED)]])
        self.show_facts()
        self.show_marks()
        self.close()

    def arrange(self) -> None:
        """Shows the panes that have something to tell; narrow screens have the strip for it."""
        state = self._screen.state
        counted = state.selection is not None and state.selection.kind == "area"
        if state.selection is None:
            self.opened = False
        self.facts_pane.display = self.opened and not counted
        self.area_pane.display = counted
        self.marks_pane.display = bool(state.marks) and state.marks != self._put_away
        told = any(pane.display for pane in (self.facts_pane, self.area_pane, self.marks_pane))
        self.side.display = told and not self._screen.has_class("-narrow")
        if not self.side.display and self._screen.focused in self.side.children:
            self._screen.canvas.focus()

    def put_marks_away(self) -> bool:
        """Hides the list of marks until they change; False where it is not in view."""
        seen = self.marks_pane.display and self.side.display
        if seen:
            self._put_away = self._screen.state.marks
            self.arrange()
        return seen

    def close(self) -> None:
        """Gives the pane with all that is known up again."""
        self.opened = False
        self.arrange()

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """Tells what is new of it."""
        self.arrange()
        chosen = old.selection != new.selection
        here = new.selection is None and (old.cursor, old.window) != (new.cursor, new.window)
        named = old.display.names != new.display.names
        timed = old.display.time != new.display.time
        if chosen or named or timed or here:
            self.show_facts()
        if chosen or named:
            self.count_area()
        if timed or old.marks != new.marks:
            self.show_marks()

    def show_facts(self) -> None:
        """Shows what is known of the selected event or evidence, or what the keys would do."""
        model = self._model
        picked, selection = model.picked, model.view.selection
        owner = None if picked is None else model.owner(picked.events)
        if picked is not None and owner is not None:
            names, row, at_home = model.view.display.names, picked.row, owner

            def moment(time: int) -> str:
                return model.exactly(time + at_home.offset)

            work = partial(facts_of, at_home.report, at_home.events, row, names, moment)
            self._screen.compute("facts", work, self._found_out)
        elif selection is None or selection.span is None or selection.kind == "area":
            self.facts = None
            self._tell_cell()
        else:
            session, evidence = self._screen.session, selection
            self._show(span_facts(evidence, model.exactly))
            if session.finished and evidence.kind in EVIDENCE:
                known = partial(evidence_facts, session, evidence, model.exactly)
                self._screen.compute("facts", known, self._found_out)

    def _tell_cell(self) -> None:
        """What the cell under the cursor holds, while nothing is selected."""
        # Not in a worker: one millisecond, and its job would hold a closed report.
        self._show_cell(cell_title(self._model), cell_facts(self._model))

    def _show_cell(self, title: str, facts: tuple[list[str], Area | None]) -> None:
        said, sums = facts
        hint = "tab snaps to an event, . steps on" if sums or said else "enter: the next event"
        row = self._model.row
        stepped = row is not None and bool(lanes_of(row))  # samples and counters have no events
        self.strip.heading(title or "Nothing selected", "enter: select" * stepped)
        if self._model.view.selection is not None:
            return
        first: list[Line] = [[(f" {'   '.join(said)}", 0)]] if said else []
        self.strip.show_built(
            lambda width: [
                *first,
                *(low_lines(sums, width, ascii_only=self._screen.app.ascii) if sums else []),
                *([[(f" {hint}", MUTED)]] if stepped else []),
            ]
        )

    def _found_out(self, facts: Facts) -> None:
        selection = self._model.view.selection
        if selection is not None and selection.kind != "area":
            self._show(facts)

    def _show(self, facts: Facts) -> None:
        self.facts = facts
        self.facts_pane.heading(f"Selected: {facts.title}")
        self.facts_pane.show_built(lambda width: column_lines(facts, width))
        self.strip.heading(facts.title, "enter: all")
        self.strip.show_built(
            lambda width: (flowing_lines if self._strip_is_low else column_lines)(facts, width)
        )

    @property
    def _strip_is_low(self) -> bool:
        """Whether the strip has its few lines only, and not the whole screen."""
        return self.strip.size.height <= STRIP

    def open_pane(self, side: LinePane) -> bool:
        """Goes to a pane at the side, or has the strip fill the screen; False if it is there."""
        pane = self.strip if self._screen.has_class("-narrow") else side
        if pane.has_focus:
            return False
        self.opened = self.opened or pane is self.facts_pane
        self.arrange()
        pane.focus()
        if pane is self.strip:
            self._screen.maximize(pane)
        return True

    def count_area(self) -> None:
        """Counts the selected area in a worker."""
        model = self._model
        selection = model.view.selection
        if selection is None or selection.kind != "area" or selection.span is None:
            return
        span, names, keys = selection.span, model.view.display.names, frozenset(selection.lanes)
        where = f"{len(selection.lanes)} lanes" if selection.lanes else "all lanes"
        self._screen.compute(
            "area",
            lambda: area(selected_tracks(model, keys), (span.start, span.end), names),
            lambda sums: self._show_area(sums, where),
        )

    def _show_area(self, sums: Area, where: str) -> None:
        screen, state, span = self._screen, self._screen.state, Window(*sums.span)
        text = window_text(span, state.display.time, screen.report)
        title = f"Area {text}, {format_duration(span.width)}"
        ascii_only = screen.app.ascii
        self.area_pane.heading(title, where)
        self.area_pane.show_built(lambda width: area_lines(sums, width, ascii_only=ascii_only))
        if state.selection is not None and state.selection.kind == "area":
            self.strip.heading(f"{title}, {where}", "enter: all")
            self.strip.show_built(
                lambda width: (low_lines if self._strip_is_low else area_lines)(
                    sums, width, ascii_only=screen.app.ascii
                )
            )

    def show_marks(self) -> None:
        """Shows the marks and what lies between the last two of them."""
        screen, marks, lines = self._screen, marks_in_order(self._model), mark_lines(self._model)
        report = screen.report
        if len(marks) < 2:
            self.marks_pane.show(lines)
            return
        first, last = marks[-2:]
        self.marks_pane.show([*lines, [(f" {span_between(first, last)}", 0)]])
        if report is None or not screen.session.exact:
            return

        def show(text: str) -> None:
            if marks_in_order(self._model) == marks:
                span, _, split = text.partition(": ")
                self.marks_pane.show([*lines, [(f" {span}", 0)], [(f"   {split}", 0)]])

        screen.compute("between", lambda: split_between(report, first, last), show)
