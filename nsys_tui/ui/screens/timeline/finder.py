"""Finder: looks for events by their names in the lanes of a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.analysis.timeline.search import Found, search
from nsys_tui.timeline import moving, searching, stepping

if TYPE_CHECKING:
    from nsys_tui.ui.dialogs.find_line import Sought
    from nsys_tui.ui.screens.timeline.model_screen import ModelScreen


class Finder:
    """Searches in a thread, and goes to what it found.

    Args:
        screen: whose lanes are searched, and whose model moves.
    """

    def __init__(self, screen: ModelScreen) -> None:
        self._screen = screen

    def same_name(self) -> None:
        """Finds all events of the name of the one selected or under the cursor."""
        model = self._screen.model
        if model.current is None:
            self._screen.app.say(stepping.NO_EVENT)
        else:
            self.search(model.name_of(model.current), exact=True, go=True)

    def step(self, *, forward: bool) -> None:
        """The next match, or the one before; without a search, of the selected event's name."""
        model = self._screen.model
        if model.found is None and model.picked is not None:
            self.search(model.name_of(model.picked), exact=True, forward=forward)
        else:
            self._screen.take(searching.step_match(model, forward=forward))

    def again(self) -> None:
        """Looks for the same in other lanes."""
        wanted = self._screen.state.search
        if wanted.pattern:
            self.search(wanted.pattern, exact=wanted.exact)

    def entered(self, sought: Sought) -> None:
        """A pattern was entered; an empty one ends the search."""
        screen = self._screen
        if sought.as_filter:
            screen.take(searching.filtered_by(screen.model, sought.pattern))
        elif sought.pattern:
            self.search(sought.pattern, go=True)
        else:
            screen.take(searching.search_ended(screen.model))

    def search(
        self,
        pattern: str,
        *,
        exact: bool = False,
        go: bool = False,
        fit: bool = False,
        forward: bool | None = None,
    ) -> None:
        """Searches the present lanes; ``go`` goes to the first match, which ``fit`` fits.

        What is fitted is what has just this name, if anything has. ``forward`` steps from the
        cursor to the match after it, or before.
        """
        screen = self._screen
        lineup, style = screen.model.lanes.shown.lineup, screen.state.display.names

        def work() -> tuple[Found, bool]:
            named = search(lineup, pattern, style, exact=True) if exact or fit else None
            if named is not None and (exact or named.total):
                return named, True
            return search(lineup, pattern, style), False

        def show(result: tuple[Found, bool]) -> None:
            found, named = result
            screen.take(searching.searched(screen.model, found, exact=named))
            if go:
                screen.take(searching.first_match(screen.model, work=fit))
            if forward is not None:
                screen.take(searching.step_match(screen.model, forward=forward))
            if fit and found.total:
                screen.take(moving.fit(screen.model))

        screen.compute("search", work, show)
