"""The comparison on the screen: which two, what is shown of them, and when it is worked out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.containers import Vertical

from nsys_tui.analysis.compare.stats import THRESHOLD
from nsys_tui.errors import UsageError
from nsys_tui.export import baselines
from nsys_tui.ui.messages import Failed
from nsys_tui.ui.screens.compare.columns import finding_columns, row_columns
from nsys_tui.ui.screens.compare.flame import DifferenceIcicle
from nsys_tui.ui.screens.compare.pair import (
    Pair,
    Part,
    Result,
    end_name,
    gather,
    shown_part,
    with_findings,
)
from nsys_tui.ui.screens.compare.panes import summary_lines
from nsys_tui.ui.screens.compare.positions import GROUPS, ComparePositions
from nsys_tui.ui.screens.compare.timelines import TwinTimelines
from nsys_tui.ui.screens.result import failure_text
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.table import VirtualTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events

    from nsys_tui.analysis.compare.rows import Row
    from nsys_tui.export.baselines import Baseline
    from nsys_tui.state import Selection, ViewState
    from nsys_tui.ui.widgets.table.grid import Grid

CHOOSE: Final = "B: compare with another report or a baseline  i: two parts of this one"


class CompareCore(ComparePositions):
    """Which two are compared, and what is shown of them; ``CompareScreen`` adds the keys."""

    SCREEN = "compare"
    AUTO_FOCUS = "#changes"
    DEFAULT_CSS: ClassVar[str] = """
    CompareCore #summary { height: 10; }
    CompareCore #changes { height: 1fr; }
    CompareCore #lower { height: 1fr; display: none; }
    CompareCore #difference { height: 1fr; display: none; }
    CompareCore.-lower #changes { display: none; }
    CompareCore.-lower #summary { height: 5; }
    CompareCore.-tall #summary { height: 10; }
    CompareCore.-lower #lower, CompareCore.-tall #lower { display: block; }
    CompareCore.-tall #changes { display: block; }
    CompareCore.-flame #difference { display: block; }
    CompareCore.-flame #twins { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.threshold = THRESHOLD
        self.other: Session | Baseline | None = None
        self.parts: tuple[Part, Part] | None = None
        """Two parts of one report, which are compared while it is in front."""
        self.is_swapped = False
        self._asked: tuple[Pair, str, float] | None = None
        self._rows: tuple[Row, ...] = ()
        self._taken: Selection | None = None
        self._flame_for: Result | None = None

    def body(self) -> Iterable[Any]:
        """Verdict and figures, changes by name, both timelines or the flame graph."""
        yield LinePane("Compare", id="summary")
        yield VirtualTable("Kernels", empty=CHOOSE, id="changes")
        yield Vertical(TwinTimelines(id="twins"), DifferenceIcicle(id="difference"), id="lower")

    @property
    def table(self) -> VirtualTable:
        """Changes by name."""
        return self.query_one("#changes", VirtualTable)

    @property
    def pair(self) -> Pair | None:
        """What is compared, as its window and filter show it.

        Two parts of the report in front, or that report and the one chosen, of which the one
        opened first is A.
        """
        pair = self._parts_pair() or self._reports_pair()
        return pair.swapped if pair is not None and self.is_swapped else pair

    def _parts_pair(self) -> Pair | None:
        parts = self.parts
        return Pair(*parts) if parts is not None and parts[0].session is self.session else None

    def _reports_pair(self) -> Pair | None:
        front, sessions = self.session, self.app.sessions
        other = self.other
        if isinstance(other, Session):
            other = next((s for s in sessions if s.path == other.path), None)
        if other is None or other is front:
            others = [session for session in sessions if session is not front]
            other = others[0] if len(sessions) == 2 else None
        if other is None:
            return None
        if not isinstance(other, Session):
            return Pair(other, shown_part(front))
        pair = Pair(shown_part(other), shown_part(front))
        return pair.swapped if sessions.index(front) < sessions.index(other) else pair

    def sync(self) -> None:
        """Also another report than the one in front may have become ready."""
        super().sync()
        if self.is_mounted and self.is_current:
            self._take_selection()
            self._compare()

    def _take_selection(self) -> None:
        """Another screen may ask for a comparison: the report at a path, before the one in front.

        ``app.show("compare", selection=Selection("compare", (str(path),)))`` does.
        """
        selection = self.state.selection
        if selection is None or selection.kind != "compare" or selection is self._taken:
            return
        self._taken = selection
        self.parts = None
        earlier = self.other = self._opened(Path(str(selection.key[0])))
        front, sessions = self.session, self.app.sessions
        self.is_swapped = sessions.index(front) < sessions.index(earlier)

    def choose_parts(self, a: Part, b: Part) -> None:
        """Compares two parts of the report in front."""
        self.parts = a, b
        self._chosen()

    def choose(self, value: Session | Path | str) -> None:
        """Compares with an open report, a baseline by its name, or the report at a path."""
        self.parts = None
        if isinstance(value, str) and value in baselines.names():
            try:
                self.other = baselines.load(value)
            except UsageError as error:
                self.app.post_message(Failed(error))
                return
        elif isinstance(value, Session):
            self.other = value
        else:
            self.other = self._opened(Path(value).expanduser())
        self._chosen()

    def _chosen(self) -> None:
        self.is_swapped = False
        self._asked = None
        self._forget()
        self._compare()
        self.refresh_chrome()

    @property
    def other_name(self) -> str:
        """What was chosen, as ``choose`` understands it; empty where nothing was."""
        if isinstance(self.other, Session):
            return str(self.other.path)
        return self.other.name if self.other is not None else ""

    def _opened(self, path: Path) -> Session:
        """The session of a path; a new one is read without coming to the front."""
        for session in self.app.sessions:
            if session.path.absolute() == path.absolute():
                return session
        session = Session(path, state=self.app.first_state)
        self.app.sessions.append(session)
        return session

    def report_closed(self, session: Session) -> None:
        """Neither it nor parts of it are compared any more."""
        super().report_closed(session)
        if self.other is session:
            self.other = None
        if self.parts is not None and self.parts[0].session is session:
            self.parts = None
        self._forget()

    def show_report(self) -> None:
        """Another report came to the front."""
        self._forget()

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """Names decide what is one kernel; times are written anew."""
        if old.display != new.display:
            self.twins.redraw()

    def _forget(self) -> None:
        self.result = self._asked = self._lanes_for = self._flame_for = self._step = None
        self._rows = ()
        self.twins.forget()
        self.table.show_rows((), 0)
        self.query_one("#summary", LinePane).show([])

    def _compare(self) -> None:
        """Compares when both are loaded, unless it was asked for already."""
        pair = self.pair
        if pair is None:
            self.table.empty = CHOOSE
            self.query_one("#summary", LinePane).heading("Compare", "B: choose the other report")
            self.table.refresh()
            return
        for session in pair.sessions:
            if not session.started:
                self.app.begin_load(session)
        if not pair.ready:
            waiting = ", ".join(s.name for s in pair.sessions if not s.finished)
            self.table.empty = f"reading {waiting} ..." if waiting else "a report cannot be read"
            self.table.refresh()
            return
        asked = (pair, str(self.state.display.names), self.threshold)
        if asked == self._asked:
            return
        if self._asked is not None and self._asked[0] != pair:
            self._forget()
        self._asked = asked
        self.table.empty = "comparing ..."
        self.table.refresh()
        self.compute("compare", lambda: gather(*asked), self._show, failed=self._failed)

    def _failed(self, error: Exception) -> None:
        self.table.empty = failure_text(error)
        self.table.refresh()

    def _show(self, result: Result) -> None:
        self._show_result(result)
        self.compute("findings", lambda: with_findings(result), self._show_result)
        self._prepare_lanes(result)

    def _show_result(self, result: Result) -> None:
        self.result = result
        found, pair = result.found, result.pair
        basis = {"steps": "step", "identity": "step" if found.by_step else "name"}
        aligned = basis.get(found.judgement.basis, "name")
        pane = self.query_one("#summary", LinePane)
        names = f"A: {end_name(pair.a)}   B: {end_name(pair.b)}"
        whole = "0: whole  " if pair.titles else ""
        pane.heading(f"Compare  {names}", f"{whole}aligned on: {aligned}")
        pane.show_built(lambda width: summary_lines(found, width, pair.titles))
        self._fill()

    def _fill(self) -> None:
        """The rows of the group in the table; the cursor stays on its name."""
        result, table = self.result, self.table
        if result is None:
            return
        here = self.row.name if self.row is not None else ""
        title, groups = GROUPS[self.group]
        table.title = title
        found = result.found
        if self.group == "findings":
            self._rows = ()
            changes = found.findings or ()
            table.note = "" if found.findings is not None else "running the rules ..."
            table.empty = "no findings on either side" if found.findings is not None else "..."
            table.show_rows(finding_columns(changes), len(changes))
            return
        rows = [row for group in groups for row in found.groups[group]]
        self._rows = tuple(sorted(rows, key=lambda row: (-abs(row.delta), -row.a_total)))
        per = "per step, " if found.by_step else ""
        table.note = f"{per}by |delta|  < less  > more  threshold {100 * self.threshold:g}%"
        table.empty = next(
            (note for note in found.notes if groups[0] in note.lower()), found.why_empty(groups[0])
        )
        names = [row.name for row in self._rows]
        row = names.index(here) if here in names else None
        table.show_rows(row_columns(self._rows, table.size.width), len(self._rows), row=row)

    @property
    def row(self) -> Row | None:
        """The change under the cursor."""
        place = self.table.row
        return self._rows[place] if place is not None and place < len(self._rows) else None

    def on_resize(self, event: events.Resize) -> None:
        """Columns follow the width."""
        super().on_resize(event)
        self.call_after_refresh(self._fill)

    def title_parts(self) -> tuple[str, str]:
        """The title says that two are compared."""
        left, right = super().title_parts()
        return left, "A vs B" if self.pair is not None else right

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """Both timelines, on the row's name in a usual step."""
        result, row = self.result, self.row
        if result is None:
            return
        self.remove_class("-flame")
        self.add_class("-lower")
        step = self._step if self._step is not None else result.step
        # Which lanes are in view depends on the height that the timelines have by then.
        if self.group == "findings":
            self.call_after_refresh(self._go_to_finding, message.row)
        elif row is None:
            self.call_after_refresh(self._go_to_step, step)
        else:
            self.compute(
                "pick", lambda: self._pick(row, step), lambda found: self._go_to_step(step, found)
            )
        if not self.has_class("-tall"):
            self.twins.canvases[0].focus()

    @property
    def _lower_shown(self) -> bool:
        return self.has_class("-lower") or self.has_class("-tall")
