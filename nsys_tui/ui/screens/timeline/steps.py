"""Steps: what a timeline does with iterations, which are looked for at the first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.analysis.overview import top_kernels
from nsys_tui.timeline import moving, path
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.matching import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.timeline.model import TimelineModel
    from nsys_tui.ui.screens.timeline.finder import Finder
    from nsys_tui.ui.screens.timeline.model_screen import ModelScreen


class ZoomTo(Picker):
    """Asks for a width, or for a name: of the listed kernels also by number."""

    def find(self, typed: str) -> Sequence[Entry]:
        """Kernels that fit, and second all events whose name has the words."""
        found = super().find(typed)
        every = [Entry(f"every event with {typed!r} in its name", "any", typed)]
        return [*found[:1], *every, *found[1:]] if typed.strip() and found else found

    def taken(self, entry: Entry, typed: str) -> object:
        """A width is one whatever names have it in them."""
        is_width = moving.width_of(typed) is not None or moving.wanted_steps(typed)
        return typed if is_width else entry.value


class Steps:
    """Finds steps in a thread, and goes to them.

    Args:
        screen: whose model moves.
        finder: finds what is zoomed to by its name.
        redraw: draws the lanes, with the critical path or without it.
    """

    def __init__(self, screen: ModelScreen, finder: Finder, redraw: Callable[[], None]) -> None:
        self._screen, self._finder, self._redraw = screen, finder, redraw

    def iterate(self, step: int) -> None:
        """Goes to the next (1) or previous (-1) iteration."""
        self._with_steps(
            lambda iterations: moving.step_iteration(self._screen.model, iterations, step)
        )

    def fit(self) -> None:
        """Fits the selection, then wider and wider."""
        screen = self._screen
        known = screen.session.results.known("iterations")
        selected = screen.model.view.selection is not None
        if known is None and selected and screen.session.finished:
            self._with_steps(lambda iterations: moving.fit(screen.model, iterations))
        else:
            screen.take(moving.fit(screen.model, known))

    def ask_zoom(self) -> None:
        """Asks for a width or a name; kernels are listed by their time."""
        hint = "a width (50us, 3 steps), a number of the list, or words of a name"
        picker = ZoomTo("Zoom to", (), free=True, hint=hint)
        self._screen.app.ask(picker, self._zoom_to)
        session, report = self._screen.session, self._screen.report
        if report is None or not session.exact:
            return
        style = self._screen.state.display.names

        def work() -> list[Entry]:
            top = session.memo(("top kernels", style), lambda: top_kernels(report, style=style))
            return [Entry(one.name, str(n), one.name) for n, one in enumerate(top, 1)]

        self._screen.compute("kernels", work, picker.offer)

    def _zoom_to(self, text: str) -> None:
        screen = self._screen
        if (width := moving.width_of(text)) is not None:
            screen.take(moving.zoom_to_width(screen.model, width))
        elif count := moving.wanted_steps(text):
            self._with_steps(
                lambda iterations: moving.zoom_to_steps(screen.model, iterations, count)
            )
        else:
            self._finder.search(text, go=True, fit=True)

    def toggle_path(self) -> None:
        """What the end of the step at the cursor waited for, as a lane; or without it again."""
        screen = self._screen
        report, time = screen.report, screen.model.cursor_time

        def put(model: TimelineModel) -> None:
            screen.take(model)
            self._redraw()

        if path.has_path(screen.model):
            put(path.without_path(screen.model))
        elif (known := self._known("the critical path is")) and report is not None:
            screen.compute(
                "path",
                lambda: path.path_at(report, known(), time),
                lambda segments: put(path.with_path(screen.model, segments)),
            )

    def _with_steps(self, to_next: Callable[[Iterations], TimelineModel]) -> None:
        """Goes to the next moment with the steps."""
        screen = self._screen
        if known := self._known("iterations are"):
            screen.compute("iterations", known, lambda iterations: screen.take(to_next(iterations)))

    def _known(self, what: str) -> Callable[[], Iterations] | None:
        """Looks for the steps, in a worker; None, with a word, before the report is read."""
        session, report = self._screen.session, self._screen.report
        if report is None or not session.finished:
            self._screen.app.say(f"{what} known once the report is read")
            return None
        return lambda: session.memo("iterations", lambda: find_iterations(report))
