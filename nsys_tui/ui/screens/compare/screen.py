"""Compare: two reports side by side: verdict, changes by name, both timelines, flame graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.containers import Vertical

from nsys_tui import __version__
from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.stats import RUN_NOISE, Rules
from nsys_tui.errors import UsageError
from nsys_tui.export.measured_sides import side_cache
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.state import Selection, ViewState
from nsys_tui.ui.dialogs.picker import Prompt
from nsys_tui.ui.evidence import selection_of
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.saving import Writer
from nsys_tui.ui.screens.compare.actions import ACTIONS, CHOOSE, OF_TIMELINES
from nsys_tui.ui.screens.compare.changes import ChangesTable
from nsys_tui.ui.screens.compare.choosing import Choosing, asked_parts
from nsys_tui.ui.screens.compare.flame import (
    DifferenceIcicle,
    comparison_writers,
    difference_of,
    flame_writers,
)
from nsys_tui.ui.screens.compare.pair import Pair, Part, Result, gather, glance, with_findings
from nsys_tui.ui.screens.compare.panes import summary_lines
from nsys_tui.ui.screens.compare.row_times import RowTimes
from nsys_tui.ui.screens.compare.timelines import Half, TwinTimelines, half_of
from nsys_tui.ui.screens.result import ResultScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.units import parse_percent


@dataclass(frozen=True)
class CompareView:
    """How the screen looked, for the history."""

    group: str
    threshold: float
    swapped: bool
    other: str
    parts: tuple[Part, Part] | None = None
    noise: float = RUN_NOISE


def on_twins(act: Callable[[TwinTimelines], object]) -> Callable[[CompareScreen], object]:
    """An action on both timelines."""
    return lambda screen: act(screen.twins)


class CompareScreen(ResultScreen[Result]):
    """Screen 7."""

    SCREEN = KIND = "compare"
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#changes"
    DEFAULT_CSS: ClassVar[str] = """
    CompareScreen #summary { height: 10; }
    CompareScreen #changes { height: 1fr; }
    CompareScreen #lower { height: 1fr; display: none; }
    CompareScreen #difference { height: 1fr; display: none; }
    CompareScreen.-lower #summary, CompareScreen.-flame #changes { display: none; }
    CompareScreen.-lower #changes { height: 4; }
    CompareScreen.-flame #summary { height: 5; }
    CompareScreen.-tall #summary { height: 24%; min-height: 10; }
    CompareScreen.-tall #changes { height: 1fr; }
    CompareScreen.-lower #lower, CompareScreen.-tall #lower { display: block; }
    CompareScreen.-flame #summary, CompareScreen.-tall #summary { display: block; }
    CompareScreen.-tall #changes { display: block; }
    CompareScreen.-alone.-alone #lower, CompareScreen.-alone #summary { display: none; }
    CompareScreen.-flame #difference { display: block; }
    CompareScreen.-flame #twins { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.choosing = Choosing(self, self._chosen)
        self.table = ChangesTable(CHOOSE)
        self.summary = LinePane("Compare", id="summary")
        self.twins = TwinTimelines(id="twins")
        self.difference = DifferenceIcicle(id="difference")
        self.row_times = RowTimes(self, self.table, self.twins)
        self.noise = RUN_NOISE
        self._asked: tuple[Pair, str, Rules] | None = None
        self._taken: Selection | None = None

    def body(self) -> Iterable[Any]:
        """Verdict and figures, changes by name, both timelines or the flame graph."""
        yield self.summary
        yield self.table
        yield Vertical(self.twins, self.difference, id="lower")

    def sync(self) -> None:
        """Also another report than the one in front may have become ready."""
        super().sync()
        if self.is_mounted and self.is_current:
            self._take_selection()
            self.make()

    def _take_selection(self) -> None:
        """Another screen may ask for a comparison: the report at a path, before the one in front.

        ``app.show("compare", selection=Selection("compare", (str(path),)))`` does. ``"parts"`` with
        start, end and title of two parts of the report in front shows these side by side.
        """
        selection = self.state.selection
        if selection is None or selection is self._taken:
            return
        if selection.kind == "compare":
            self._taken = selection
            self.choosing.choose_before(Path(str(selection.key[0])))
        elif selection.kind == "parts" and self.report is not None and self.session.finished:
            self._taken = selection
            self.choosing.choose_parts(asked_parts(self.session, self.report, selection))
            self.add_class("-lower")

    def _chosen(self) -> None:
        self.show_report()
        self.make()
        self.refresh_chrome()

    def report_closed(self, session: Session) -> None:
        """Neither it nor parts of it are compared any more."""
        super().report_closed(session)
        self.choosing.forget(session)
        self.show_report()

    def clear(self) -> None:
        """Other reports: nothing is compared yet."""
        self._asked = None
        self.twins.forget()
        self.difference.result = None
        self.table.forget()
        self.summary.show([])

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Names and times are written anew."""
        if old.display != new.display:
            self.twins.redraw()

    def make(self) -> None:
        """Compares when both are loaded, unless it was asked for already."""
        pair = self.choosing.pair
        self.set_class(pair is None, "-alone")
        if pair is None:
            self.table.tell(CHOOSE)
            return
        for session in pair.sessions:
            self.app.begin_load(session)
        if not pair.ready:
            waiting = ", ".join(s.name for s in pair.sessions if not s.finished)
            self.table.tell(f"reading {waiting} ..." if waiting else "a report cannot be read")
            return
        rules = Rules(self.table.threshold, self.noise)
        asked = (pair, str(self.state.display.names), rules)
        if asked == self._asked:
            return
        if self._asked is not None and self._asked[0] != pair:
            self.show_report()
        self._asked = asked
        super().make()

    def work(self, report: Report) -> Callable[[Progress], Result]:  # noqa: ARG002
        """Compares what was asked for last."""
        asked = self._asked
        if asked is None:
            raise UsageError("nothing to compare", hint=CHOOSE)
        cache = side_cache(self.app.config, __version__, use_cache=self.app.use_cache)

        def compared(_: Progress) -> Result:
            if self.result is None and (look := glance(*asked, cache)) is not None:
                self.call_later(self._show_verdict, asked[0], look)
            return gather(*asked, cache)

        return compared

    def say_busy(self) -> None:
        """Shows that both are compared."""
        self.table.tell("comparing ...")

    def say_stopped(self, why: str) -> None:
        """Shows why there is no comparison."""
        self.table.tell(why)

    def show_result(self, report: Report, result: Result) -> None:  # noqa: ARG002
        """Shows the figures; findings and timelines take longer."""
        self._show_figures(result)
        self.compute("findings", lambda: with_findings(result), self._show_figures)
        ends = (result.pair.a, result.pair.b)
        if self.twins.ends != ends:
            self.table.open_on_rows()

            def halves() -> tuple[Half | None, Half | None]:
                return half_of(ends[0], result.plans[0]), half_of(ends[1], result.plans[1])

            def drawn(lanes: tuple[Half | None, Half | None]) -> None:
                self.twins.show_result(result, lanes)
                self.row_times.follow(self.table.row)

            self.compute("lanes", halves, drawn)

    def _show_figures(self, result: Result) -> None:
        self.result = self.twins.result = result
        self.table.comparison = result.comparison
        self._show_summary(result.pair, result.comparison)
        self.table.fill()

    def _show_verdict(self, pair: Pair, comparison: Comparison) -> None:
        """Shows what the verdict is before the rows are made."""
        if self.result is None and self._asked is not None and self._asked[0] == pair:
            self._show_summary(pair, comparison)

    def _show_summary(self, pair: Pair, comparison: Comparison) -> None:
        aligned = "step" if comparison.by_step else "name"
        names = "A: {}   B: {}".format(*pair.names)
        whole = "0: whole  " if pair.titles else ""
        self.summary.heading(f"Compare  {names}", f"{whole}aligned on: {aligned}")
        self.summary.show_built(
            lambda width: summary_lines(comparison, width, pair.titles, single=pair.single)
        )

    def on_resize(self, event: events.Resize) -> None:
        """Columns follow the width."""
        super().on_resize(event)
        self.call_after_refresh(self.table.fill)

    def title_parts(self) -> tuple[str, str]:
        """The title says that two are compared."""
        left, right = super().title_parts()
        return left, "A vs B" if self.choosing.pair is not None else right

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """Both timelines, on the row's name in a usual step."""
        if self.result is None:
            return
        self.remove_class("-flame")
        self.add_class("-lower")
        # Which lanes are in view depends on the height that the timelines have by then.
        self.call_after_refresh(self.row_times.show, message.row)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Timelines in view follow the row under the cursor."""
        self.row_times.follow(message.row)

    @property
    def evidence(self) -> Evidence:
        """An event of the row's name, in the report in front."""
        return self.row_times.evidence() or super().evidence

    def action_compare_swap(self) -> None:
        """Exchanges A and B."""
        self.choosing.is_swapped = not self.choosing.is_swapped
        self.make()

    def action_compare_group(self) -> None:
        """The next grouping."""
        self.table.turn()

    def action_compare_threshold(self) -> None:
        """Asks for the threshold."""
        hint = "smaller changes count as none: 1%"
        self._ask_share("Threshold", hint, self.table, "threshold")

    def action_compare_noise(self) -> None:
        """Asks how far runs differ."""
        hint = "standard deviation from run to run where fewer than 3 runs a side show it: 2%"
        self._ask_share("Run noise", hint, self, "noise")

    def _ask_share(self, title: str, hint: str, holder: object, name: str) -> None:
        def done(text: str) -> None:
            setattr(holder, name, parse_percent(text))
            self.make()

        value = f"{100 * getattr(holder, name):g}%"
        self.app.ask(Prompt(title, hint, value, parse_percent), done)

    def action_compare_runs(self) -> None:
        """Asks for another run, and for its side."""
        self.choosing.ask_run()

    def _step_change(self, step: int) -> None:
        """Goes to the next (1) or previous (-1) row that is better or worse."""
        if not self.table.step_change(step):
            self.app.say("no row of this list is better or worse")

    action_compare_next_change = partialmethod(_step_change, 1)
    action_compare_previous_change = partialmethod(_step_change, -1)

    action_compare_lock = on_twins(TwinTimelines.toggle_lock)
    action_compare_pan_left = on_twins(partial(TwinTimelines.pan, direction=-1))
    action_compare_pan_right = on_twins(partial(TwinTimelines.pan, direction=1))
    action_compare_zoom_in = on_twins(partial(TwinTimelines.zoom, closer=True))
    action_compare_zoom_out = on_twins(partial(TwinTimelines.zoom, closer=False))
    action_compare_step_next = on_twins(partial(TwinTimelines.move_step, by=1))
    action_compare_step_previous = on_twins(partial(TwinTimelines.move_step, by=-1))

    def action_compare_flame(self) -> None:
        """The flame graph of the difference, or the timelines again."""
        self.add_class("-lower")
        self.toggle_class("-flame")
        if self.has_class("-flame"):
            self.difference.focus()
            self._fold()
        else:
            self.table.focus()

    def _fold(self) -> None:
        pane, result, threshold = self.difference, self.result, self.table.threshold
        if result is not None and pane.begin(result):
            take = partial(pane.show_difference, threshold=threshold)
            self.compute("flame", lambda: difference_of(result), take)

    def action_compare_choose(self) -> None:
        """Asks what to compare with."""
        self.choosing.ask()

    def action_compare_parts(self) -> None:
        """Asks for two parts of the report in front."""
        self.choosing.ask_parts()

    def action_timeline_whole(self) -> None:
        """The whole of both reports instead of their windows."""
        self.choosing.choose_whole()

    def action_nav_open(self) -> None:
        """What to compare with; from one of the timelines to the timeline screen, same window."""
        if self.choosing.pair is None:
            self.choosing.ask()
            return
        canvases = self.twins.canvases
        for side, canvas in enumerate(canvases):
            half = self.twins.halves[side]
            if canvas.has_focus and half is not None:
                picked, window = self.twins.picked[side], self.twins.windows[side]
                self.app.bring_to_front(half.session)
                changes: dict[str, Any] = {"window": window}
                if picked is not None:
                    names = self.state.display.names
                    changes["selection"] = selection_of(picked.events, picked.row, names)
                self.app.show("timeline", **changes)

    def action_nav_escape(self) -> None:
        """From the lower half back to the table."""
        self.remove_class("-lower")
        self.remove_class("-flame")
        self.table.focus()

    def writers(self) -> Mapping[str, Writer]:
        """What ``nsys-tui compare`` prints; of the flame graph its picture and stacks."""
        result = self.result
        if result is None:
            return {}
        difference = self.difference.difference
        if self.has_class("-flame") and difference is not None:
            return flame_writers(
                difference, f"{result.comparison.a.label} and {result.comparison.b.label}"
            )
        return comparison_writers(result.comparison)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What works depends on what there is and what has the focus."""
        if action == "timeline_whole":
            return self.choosing.is_part
        return self._allowed(action) and super().check_action(action, parameters)

    def _allowed(self, action: str) -> bool:
        if self.choosing.pair is None and action.startswith("compare_"):
            return action == "compare_choose" or (
                action == "compare_parts" and self.session.finished
            )
        tests: dict[str, Callable[[], bool]] = {
            "compare_runs": lambda: self.choosing.parts is None,
            "compare_parts": lambda: self.session.finished,
            "compare_next_change": lambda: not self.table.pattern,
            "compare_previous_change": lambda: not self.table.pattern,
            **dict.fromkeys(OF_TIMELINES, lambda: not self.classes.isdisjoint(("-lower", "-tall"))),
            "nav_open": lambda: (
                self.choosing.pair is None or isinstance(self.focused, TimelineCanvas)
            ),
            "nav_escape": lambda: self.has_class("-lower") or not self.table.has_focus,
        }
        test = tests.get(action)
        return test is None or test()

    def view(self) -> CompareView:
        """Grouping, threshold, and what is compared."""
        table, chosen = self.table, self.choosing
        return CompareView(
            table.group,
            table.threshold,
            chosen.is_swapped,
            chosen.other_name,
            chosen.parts,
            self.noise,
        )

    def restore(self, view: Any) -> None:
        """Takes them up again."""
        if not isinstance(view, CompareView):
            return
        self.table.group, self.table.threshold = view.group, view.threshold
        self.noise = view.noise
        if view.other and view.other != self.choosing.other_name:
            self.choosing.choose(view.other)
        self.choosing.parts, self.choosing.is_swapped = view.parts, view.swapped
        self.table.fill()
        self.make()
