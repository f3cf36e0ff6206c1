"""Compare: two reports side by side: verdict, changes by name, both timelines, flame graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from nsys_tui.analysis.compare.stacks import DifferentialStacks, differential_stacks
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.dialogs.prompt import Prompt
from nsys_tui.ui.evidence import selection_of
from nsys_tui.ui.keymap import Action, bindings
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import Failed
from nsys_tui.ui.screens.compare.core import CompareCore
from nsys_tui.ui.screens.compare.files import comparison_writers, flame_writers
from nsys_tui.ui.screens.compare.flame import DifferenceIcicle
from nsys_tui.ui.screens.compare.pair import Part
from nsys_tui.ui.screens.compare.parts import PARTS, others, parts, typed_part
from nsys_tui.ui.screens.compare.positions import GROUPS
from nsys_tui.ui.widgets.table.actions import TABLE, WHOLE
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.units import format_duration, parse_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nsys_tui.ui.saving import Writer
    from nsys_tui.ui.session import Session


ACTIONS: tuple[Action, ...] = (
    Action("compare.swap", ("b",), "swap A/B", "exchange A and B", 1),
    Action("compare.group", ("g",), "group", "kernels, copies, NVTX, API, stalls, findings", 2),
    Action("compare.threshold", ("t",), "threshold", "changes below it count as none", 3),
    Action("compare.next_change", ("n",), "change", "next row that is better or worse", 4),
    Action("compare.previous_change", ("N",), "change", "previous row that is better or worse"),
    Action("compare.choose", ("B",), "other", "choose the report or baseline to compare with", 5),
    Action("compare.parts", ("i",), "parts", "two iterations, windows or marks of this report", 8),
    Action("compare.flame", ("v",), "flame", "timelines, or flame graph of the difference", 6),
    Action("compare.lock", ("L",), "lock", "move both timelines together, or each alone", 7),
    Action("compare.pan_left", ("a",), "left", "both timelines a quarter window to the left"),
    Action("compare.pan_right", ("d",), "right", "both timelines a quarter window to the right"),
    Action("compare.zoom_in", ("w", "+"), "zoom in", "both timelines twice as close"),
    Action("compare.zoom_out", ("-",), "zoom out", "both half as close; s with the focus there"),
    Action("compare.step_next", (")",), "step", "both timelines to the next step"),
    Action("compare.step_previous", ("(",), "step", "both timelines to the previous step"),
    *TABLE,
    WHOLE,
)


@dataclass(frozen=True)
class CompareView:
    """How the screen looked, for the history."""

    group: str
    threshold: float
    swapped: bool
    other: str
    parts: tuple[Part, Part] | None = None


class CompareScreen(CompareCore):
    """Screen 7."""

    ACTIONS = ACTIONS
    BINDINGS: ClassVar[list[Any]] = bindings(ACTIONS)

    def action_compare_swap(self) -> None:
        """Exchanges A and B."""
        self.is_swapped = not self.is_swapped
        self._compare()

    def action_compare_group(self) -> None:
        """The next grouping."""
        order = [*GROUPS]
        self.group = order[(order.index(self.group) + 1) % len(order)]
        self._fill()

    def action_compare_threshold(self) -> None:
        """Asks for the threshold."""

        def done(text: str | None) -> None:
            if text:
                self.threshold = parse_percent(text)
                self._compare()

        value = f"{100 * self.threshold:g}%"
        self.app.push_screen(
            Prompt("Threshold", "smaller changes count as none: 1%", value, parse_percent), done
        )

    def action_compare_next_change(self) -> None:
        """The next row that is better or worse."""
        self._step_change(1)

    def action_compare_previous_change(self) -> None:
        """The row before that is better or worse."""
        self._step_change(-1)

    def _step_change(self, step: int) -> None:
        table = self.table
        has_changed = self._has_changed
        changed = [place for place in range(table.shown) if has_changed(table.row_at(place))]
        if not changed:
            self.app.say(f"no change of {100 * self.threshold:g}% or more in this list")
            return
        ahead = [place for place in changed if (place - table.cursor) * step > 0]
        table.put_cursor(min(ahead, key=lambda p: abs(p - table.cursor)) if ahead else changed[0])

    def _has_changed(self, row: int) -> bool:
        if self.group == "findings":
            found = self.result.found.findings if self.result is not None else None
            return found is not None and found[row].status != "in both"
        return bool(self._rows) and self._rows[row].verdict in ("better", "worse")

    def action_compare_lock(self) -> None:
        """Locks both timelines, or lets each move alone."""
        self.twins.locked = not self.twins.locked
        self.twins.redraw()

    def action_compare_pan_left(self) -> None:
        """A quarter window to the left."""
        self.twins.pan(-1)

    def action_compare_pan_right(self) -> None:
        """A quarter window to the right."""
        self.twins.pan(1)

    def action_compare_zoom_in(self) -> None:
        """Twice as close."""
        self.twins.zoom(closer=True)

    def action_compare_zoom_out(self) -> None:
        """Half as close."""
        self.twins.zoom(closer=False)

    def action_compare_step_next(self) -> None:
        """The next step of both."""
        self._move_step(1)

    def action_compare_step_previous(self) -> None:
        """The step before of both."""
        self._move_step(-1)

    def _move_step(self, by: int) -> None:
        result = self.result
        if result is None or self._step is None:
            self.app.say("no steps to go to")
            return
        last = min(len(result.found.a.steps), len(result.found.b.steps)) - 1
        self._go_to_step(min(max(self._step + by, 0), last))

    def action_compare_flame(self) -> None:
        """The flame graph of the difference, or the timelines again."""
        self.add_class("-lower")
        self.toggle_class("-flame")
        pane = self.query_one(DifferenceIcicle)
        if self.has_class("-flame"):
            pane.focus()
            self._fold(pane)
        elif not self.has_class("-tall"):
            self.twins.canvases[0].focus()
        else:
            self.table.focus()

    def _fold(self, pane: DifferenceIcicle) -> None:
        result = self.result
        if result is None or self._flame_for is result:
            return
        first, second = result.plans
        if first is None or second is None:
            pane.heading("Flame graph of the difference", "a baseline holds no stacks")
            return
        pane.heading("Flame graph of the difference", "folding ...")

        def work() -> DifferentialStacks | NoDataError:
            try:
                return differential_stacks(first, second)
            except NoDataError as error:
                return error

        def done(found: DifferentialStacks | NoDataError) -> None:
            if isinstance(found, NoDataError):
                pane.heading("Flame graph of the difference", str(found))
                return
            self._flame_for = result
            per = "per step, " if found.by_step else ""
            count, lost = found.gone
            gone = f" (not in it: {count} of A, {format_duration(lost, 3)})" if count else ""
            pane.heading(f"GPU time of B by NVTX path{gone}", f"{per}blue: less, orange: more")
            pane.show_difference(found, self.threshold)

        self.compute("flame", work, done)

    def action_compare_choose(self) -> None:
        """Asks what to compare with."""

        def chosen(value: Session | Path | str | None) -> None:
            if value == PARTS:
                self.action_compare_parts()
            elif value:
                self.choose(value)

        def ask(entries: list[Entry]) -> None:
            self.app.push_screen(Picker("Compare with", entries, free=True), chosen)

        front, sessions = self.session, tuple(self.app.sessions)
        self.compute("others", lambda: others(front, sessions), ask)

    def action_compare_parts(self) -> None:
        """Asks for two parts of the report in front."""
        session, report = self.session, self.report
        if report is None:
            return

        def ask(found: list[Part]) -> None:
            entries = [
                Entry(part.title, "step" if part.single else "window", part) for part in found
            ]
            self._ask_part("A (before)", entries, lambda a: second(entries, a))

        def second(entries: list[Entry], a: Part) -> None:
            rest = [entry for entry in entries if entry.value != a]
            self._ask_part("B (after)", rest, lambda b: self.choose_parts(a, b))

        self.compute("parts", lambda: parts(session, report), ask)

    def _ask_part(self, which: str, entries: list[Entry], then: Callable[[Part], None]) -> None:
        def chosen(value: Part | str | None) -> None:
            report = self.report
            if not value or report is None:
                return
            try:
                then(value if isinstance(value, Part) else typed_part(self.session, report, value))
            except UsageError as error:
                self.app.post_message(Failed(error))

        title = f"Part {which}: choose, or type a window such as 1.2s/1.5s"
        self.app.push_screen(Picker(title, entries, free=True), chosen)

    def action_timeline_whole(self) -> None:
        """The whole of both reports instead of their windows."""
        if self.parts is not None:
            self.parts = None
            self._chosen()
            return
        pair = self.pair
        for session in pair.sessions if pair is not None else ():
            if session is not self.session:
                session.state = replace(session.state, window=None)
        self.app.show(self.SCREEN, window=None)

    @property
    def _is_part(self) -> bool:
        pair = self.pair
        return pair is not None and (
            self.parts is not None or any(s.state.window is not None for s in pair.sessions)
        )

    def action_nav_open(self) -> None:
        """From one of the timelines to the timeline screen, on the same window."""
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
        difference = self.query_one(DifferenceIcicle).difference
        if self.has_class("-flame") and difference is not None:
            return flame_writers(difference, f"{result.found.a.label} and {result.found.b.label}")
        return comparison_writers(result.found)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What works depends on what there is and what has the focus."""
        return self._allowed(action) and super().check_action(action, parameters)

    def _allowed(self, action: str) -> bool:
        tests: dict[str, Callable[[], bool]] = {
            "compare_swap": lambda: self.pair is not None,
            "compare_parts": lambda: self.session.finished,
            "timeline_whole": lambda: self._is_part,
            "compare_next_change": lambda: not self.table.pattern,
            "compare_previous_change": lambda: not self.table.pattern,
            "compare_lock": lambda: self._lower_shown,
            "compare_pan_left": lambda: self._lower_shown,
            "compare_pan_right": lambda: self._lower_shown,
            "compare_zoom_in": lambda: self._lower_shown,
            "compare_zoom_out": lambda: self._lower_shown,
            "compare_step_next": lambda: self._lower_shown,
            "compare_step_previous": lambda: self._lower_shown,
            "nav_open": lambda: isinstance(self.focused, TimelineCanvas),
            "nav_escape": self._can_leave,
        }
        test = tests.get(action)
        return test is None or test()

    def _can_leave(self) -> bool:
        return self.has_class("-lower") or not self.table.has_focus

    def view(self) -> CompareView:
        """Grouping, threshold, and what is compared."""
        return CompareView(self.group, self.threshold, self.is_swapped, self.other_name, self.parts)

    def restore(self, view: Any) -> None:
        """Takes them up again."""
        if not isinstance(view, CompareView):
            return
        self.group, self.threshold = view.group, view.threshold
        if view.other and view.other != self.other_name:
            self.choose(view.other)
        self.parts, self.is_swapped = view.parts, view.swapped
        self._fill()
        self._compare()
