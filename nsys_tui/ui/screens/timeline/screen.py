"""TimelineScreen: everything over time, lane by lane. Keys come in, rows of the model go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

from textual import events
from textual.containers import Horizontal, Vertical

from nsys_tui.state import ViewState
from nsys_tui.timeline import areas, arranging, moving, pointing, searching, stepping
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.timeline.opening import FewSteps
from nsys_tui.times import window_text
from nsys_tui.ui.dialogs.find_line import FindLine
from nsys_tui.ui.saving import save
from nsys_tui.ui.screens.timeline.actions import ACTIONS
from nsys_tui.ui.screens.timeline.asking import Asking, trace_of
from nsys_tui.ui.screens.timeline.details import EVIDENCE, Details
from nsys_tui.ui.screens.timeline.finder import Finder
from nsys_tui.ui.screens.timeline.lane_builder import LaneBuilder
from nsys_tui.ui.screens.timeline.model_screen import ModelScreen
from nsys_tui.ui.screens.timeline.reports_beside import ReportsBeside
from nsys_tui.ui.screens.timeline.steps import Steps
from nsys_tui.ui.widgets.timeline.canvas import TimelineCanvas
from nsys_tui.ui.widgets.timeline.minimap import Minimap

Step: TypeAlias = Callable[[TimelineModel], TimelineModel]


FAR: Final = 8
"""How many times closer the far zoom is."""


def step(to_next: Step) -> Callable[[TimelineScreen], None]:
    """An action that only goes to the next moment of the model."""
    return lambda screen: screen.take(to_next(screen.model))


def asks(question: Callable[[Asking], None]) -> Callable[[TimelineScreen], None]:
    """An action that asks something."""
    return lambda screen: question(screen.asking)


def finds(act: Callable[[Finder], None]) -> Callable[[TimelineScreen], None]:
    """An action that may search."""
    return lambda screen: act(screen.finder)


def by_steps(act: Callable[[Steps], None]) -> Callable[[TimelineScreen], None]:
    """An action that may need to know the steps."""
    return lambda screen: act(screen.steps)


class TimelineScreen(ModelScreen):
    """The second screen."""

    SCREEN = "timeline"
    ACTIONS = ACTIONS
    AUTO_FOCUS = "TimelineCanvas"
    ESCAPE_TO_MINIMIZE = False  # Esc also gives the focus back to the lanes
    DEFAULT_CSS: ClassVar[str] = """
    TimelineScreen #main { height: 1fr; }
    TimelineScreen #left { width: 1fr; }
    TimelineScreen #side { width: 40; display: none; }
    TimelineScreen #facts { height: 2fr; }
    TimelineScreen #area { height: 2fr; }
    TimelineScreen #marks { height: 8; }
    TimelineScreen #strip { height: 5; }
    TimelineScreen.-wide #strip, TimelineScreen.-xwide #strip { height: 7; }
    TimelineScreen Minimap { height: 1; }
    TimelineScreen.-tall Minimap { height: 3; }
    TimelineScreen.-xwide #side { width: 24%; min-width: 42; max-width: 64; }
    """

    action_timeline_zoom_in = step(partial(moving.zoom, factor=0.5))
    action_timeline_zoom_out = step(partial(moving.zoom, factor=2.0))
    action_timeline_zoom_in_far = step(partial(moving.zoom, factor=1 / FAR))
    action_timeline_zoom_out_far = step(partial(moving.zoom, factor=float(FAR)))
    action_timeline_pan_left = step(partial(moving.pan, part=-0.25))
    action_timeline_pan_right = step(partial(moving.pan, part=0.25))
    action_timeline_page_left = step(partial(moving.pan, part=-1))
    action_timeline_page_right = step(partial(moving.pan, part=1))
    action_timeline_cursor_left = step(partial(moving.step_column, step=-1))
    action_timeline_cursor_right = step(partial(moving.step_column, step=1))
    action_timeline_lane_up = step(partial(moving.step_lane, step=-1))
    action_timeline_lane_down = step(partial(moving.step_lane, step=1))
    action_timeline_lanes_up = step(partial(moving.step_screen, direction=-1))
    action_timeline_lanes_down = step(partial(moving.step_screen, direction=1))
    action_timeline_half_up = step(partial(moving.step_half_screen, direction=-1))
    action_timeline_half_down = step(partial(moving.step_half_screen, direction=1))
    action_timeline_lane_first = step(partial(moving.to_last_lane, direction=-1))
    action_timeline_lane_last = step(partial(moving.to_last_lane, direction=1))
    action_timeline_event_next = step(partial(stepping.step_event, forward=True))
    action_timeline_event_previous = step(partial(stepping.step_event, forward=False))
    action_timeline_flow_follow = step(partial(stepping.follow, back=False))
    action_timeline_flow_back = step(partial(stepping.follow, back=True))
    action_timeline_whole = step(moving.whole)
    action_timeline_area = step(areas.begin_or_end)
    action_timeline_pin = step(arranging.pin)
    action_timeline_hide = step(arranging.hide)
    action_timeline_empty = step(arranging.empty_lanes)
    action_timeline_fold = step(arranging.fold)
    action_timeline_colour_by = step(arranging.next_colours)
    action_timeline_goto = asks(Asking.time)
    action_timeline_min_duration = asks(Asking.shortest)
    action_timeline_show_hidden = asks(Asking.hidden)
    action_mark_set = asks(Asking.mark)
    action_mark_note = asks(Asking.note)
    action_timeline_iteration_next = by_steps(partial(Steps.iterate, step=1))
    action_timeline_iteration_previous = by_steps(partial(Steps.iterate, step=-1))
    action_timeline_path = by_steps(Steps.toggle_path)
    action_timeline_fit = by_steps(Steps.fit)
    action_timeline_zoom_to = by_steps(Steps.ask_zoom)
    action_find_next = finds(partial(Finder.step, forward=True))
    action_find_previous = finds(partial(Finder.step, forward=False))

    def __init__(self) -> None:
        super().__init__()
        self.builder = LaneBuilder(self, self._lanes_drawn)
        self.details = Details(self)
        self.reports_beside = ReportsBeside(self, self._lanes_changed)
        self.asking, self.finder = Asking(self), Finder(self)
        self.steps = Steps(self, self.finder, self.builder.draw)

    def body(self) -> Iterable[Any]:
        """Lanes, then what is known about the selection, the whole trace, and a line of facts."""
        details = self.details
        yield Horizontal(
            Vertical(self.canvas, details.strip, self.minimap, id="left"),
            details.side,
            id="main",
        )
        yield self.info_line

    def on_mount(self) -> None:
        """The strip is too low for a scrollbar."""
        self.details.strip.styles.scrollbar_size_vertical = 0
        super().on_mount()

    def on_resize(self, event: events.Resize) -> None:
        """Everything follows the size."""
        super().on_resize(event)
        self.details.arrange()
        self.call_after_refresh(self.redraw)

    def on_timeline_canvas_resized(self) -> None:
        """The lanes alone have another size, as when they fill the screen."""
        self.redraw()

    def theme_changed(self) -> None:
        """Colours that ranges bring along depend on the background."""
        self.builder.recolour()

    def show_report(self) -> None:
        """A new report: nothing is known yet."""
        self.builder.reset(loaded=self.session.finished)
        self.reports_beside.reset()
        self.start_model()
        self.details.reset()

    def part_loaded(self, part: str) -> None:
        """More lanes can be built."""
        self.builder.part_loaded(part)

    def load_finished(self) -> None:
        """What needs more than one part can be told now."""
        self.learn_trace()
        self._find_opening()
        self.builder.load_finished()
        if self.model.picked is None:
            self.details.show_facts()
        self.details.show_marks()
        self.redraw()

    def _find_opening(self) -> None:
        """Looks for steps, of which a few are shown where there are many."""

        def show(few: FewSteps | None) -> None:
            if few is not None:
                self.take(self.model.opened_on(few))

        if self.model.trace.few is None:
            self.compute("opening", self.session.few_steps, show)

    def sync(self) -> None:
        """Beside what every screen hears of: a report beside may have been read meanwhile."""
        super().sync()
        if self.is_mounted and self.is_current and self.session.finished:
            self.reports_beside.join_all()

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """Whatever changed is drawn; what needs a pass over events goes to a worker."""
        self.builder.recolour()
        if old.filter != new.filter:
            self.builder.draw()
        # A screen may send once more what it sent before: again without a lane.
        again = new.selection is not None and not new.cursor.lane
        if old.selection != new.selection or again:
            model = self.model.following()
            self.adopt((replace(model, reached=None) if again else model).reaching())
        if old.cursor.time != new.cursor.time and old.window == new.window:
            # Only the cursor was sent, to a time out of view: the window moves along.
            model = self.model
            self.adopt(model.looking(window=model.shifted(model.cursor_time)))
        self.details.state_changed(old, new)
        self.redraw()

    def _lanes_changed(self) -> None:
        """Reports came or went beside the one in front."""
        self.builder.draw()
        self.refresh_chrome()

    def _lanes_drawn(self) -> None:
        """Other lanes are there: what is looked for may be among them."""
        self.learn_trace()
        self.finder.again()
        if self.model.picked is None and self.state.selection is not None:
            self.adopt(self.model.following())
            self.details.show_facts()
        elif self.state.selection is None:
            self.details.show_facts()
        self.adopt(self.model.reaching())
        self.redraw()
        self.reports_beside.go_to_joined()

    def title_parts(self) -> tuple[str, str]:
        """The window may hold more than the report in front."""
        left, right = super().title_parts()
        model = self.model
        if self.state.window is None and model.home is not None:
            text = window_text(model.window, self.state.display.time, self.report)
            return left, f"{text} ({model.trace.few or 'work'})"
        if not model.beside:
            return left, right
        text = window_text(model.window, self.state.display.time, self.report)
        return left, f"{text} (all)" if self.state.window is None else text

    @property
    def words_here(self) -> list[str]:
        """The cause of a gap, the terms of the selected event, or the kind of the cursor's row."""
        return self.details.words

    def view(self) -> int:
        """The scroll position."""
        return self.model.top

    def restore(self, view: Any) -> None:
        """Scrolls back."""
        if isinstance(view, int):
            self.take(self.model.at_row(view))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Matches are stepped through while a search is on, or an event is selected."""
        if action in ("find_next", "find_previous"):
            return self.model.found is not None or self.model.picked is not None
        return super().check_action(action, parameters)

    def action_find_open(self) -> None:
        """Asks for a pattern."""
        self.app.ask(FindLine(self.state.search.pattern), self.finder.entered)

    def action_timeline_same_name(self) -> None:
        """Finds all events of the name of the one selected or under the cursor."""
        self.finder.same_name()

    def action_timeline_beside(self) -> None:
        """Asks for an open report whose lanes are to join or leave."""
        self.reports_beside.ask()

    def action_timeline_events(self) -> None:
        """The events of the window, or of the area, as a table."""
        self.app.show("events")

    @property
    def can_export(self) -> bool:
        """Before the report is read, the trace would lack what is still to come."""
        return self.session.finished

    def action_export_view(self) -> None:
        """Asks for a file name and writes the trace in a worker."""
        if self.report is not None:
            save(self.app, trace_of(self.session, self.report))

    def action_copy_cell(self) -> None:
        """Copies the name of the selected event."""
        picked = self.model.current
        if picked is not None:
            self.app.copy(self.model.name_of(picked), "1 name")

    def action_copy_row(self) -> None:
        """Copies the facts of what is selected."""
        if (facts := self.details.facts) is not None and self.state.selection is not None:
            lines = [f"name\t{facts.title}", *(f"{name}\t{text}" for name, text in facts.facts)]
            what = "1 event" if self.model.picked is not None else "facts"
            self.app.copy("\n".join(lines), what)

    def action_nav_open(self) -> None:
        """Selects the event under the cursor; then all that is known of it; then its stack."""
        model, details = self.model, self.details
        selection, picked = model.view.selection, model.picked
        if selection is not None and selection.kind == "area":
            details.open_pane(details.area_pane)
        elif picked is not None:
            if not details.open_pane(details.facts_pane):
                self._open_stack()
        elif not (self._on_evidence and details.open_pane(details.facts_pane)):
            self.take(stepping.select_here(model))

    @property
    def _on_evidence(self) -> bool:
        """Whether the cursor stands where a selected gap or finding begins, or on no event."""
        selection = self.state.selection
        return (
            selection is not None
            and selection.kind in EVIDENCE
            and selection.span is not None
            and (selection.span.start == self.model.cursor_time or self.model.current is None)
        )

    def _open_stack(self) -> None:
        """The stacks screen, on the selected event."""
        picked = self.model.picked
        if picked is not None and self.model.beside_of(picked.events) is not None:
            self.app.say(stepping.ELSEWHERE)
        else:
            self.app.show("stacks", selection=self.state.selection)

    def action_nav_escape(self) -> None:
        """Gives up area, search, filter, selection, the list of marks; then goes back.

        What another screen sent here is not given up: one step leads back to its row.
        """
        model = self.model
        without = areas.given_up(model) or searching.cleared(model)
        if without is not None:
            self.take(without)
        elif not self.canvas.has_focus:
            self.canvas.focus()
            self.details.close()
        elif model.view.selection is not None and not model.was_sent:
            self.take(model.unselected())
        elif model.was_sent or not self.details.put_marks_away():
            self.app.GLOBAL_COMMANDS["nav.escape"](self.app)

    def minimize(self) -> None:
        """The strip that filled the screen gives the focus back to the lanes."""
        super().minimize()
        if self.details.strip.has_focus:
            self.canvas.focus()

    def on_timeline_canvas_snapped(self, message: TimelineCanvas.Snapped) -> None:
        """Tab on the lanes."""
        self.take(stepping.snap(self.model, forward=message.forward))

    def on_minimap_dragged(self, message: Minimap.Dragged) -> None:
        """The window follows the pointer on the minimap; where all is shown, the cursor does."""
        self.take(moving.centre_window(self.model, message.moment))

    def on_timeline_canvas_pointed(self, message: TimelineCanvas.Pointed) -> None:
        """The pointer on the lanes; a double click is Enter, on a label it folds."""
        model, what, row, column = self.model, message.what, message.row, message.column
        if what == "open" and column >= 0:
            self.action_nav_open()
        elif what == "open" and row is not None:
            self.take(arranging.fold(model))
        elif what == "press":
            self.take(pointing.press(model, row, column))
        elif what == "drag":
            self.take(pointing.drag(model, row, column))
        elif what == "drop":
            self.take(pointing.drop(model, row))
        elif what != "open":
            self.take(pointing.turn_wheel(model, what, column, message.step))
