"""Search over all lanes, and the filter that a pattern or a shortest duration makes."""

from __future__ import annotations

from dataclasses import replace

from nsys_tui.analysis.timeline.search import Found, search
from nsys_tui.errors import UsageError
from nsys_tui.state import Cursor, Search
from nsys_tui.ui.dialogs.prompt import Prompt
from nsys_tui.ui.screens.timeline.stepping import Stepping
from nsys_tui.ui.widgets.timeline.info import FindBox
from nsys_tui.ui.widgets.timeline.painter import Picked
from nsys_tui.units import format_count, format_duration, parse_duration


class Searching(Stepping):
    """Actions that look for events by name."""

    _exact_search = False

    def action_find_open(self) -> None:
        """Opens the box for a pattern."""
        self.query_one(FindBox).open(self.state.search.pattern)

    def on_find_box_entered(self, message: FindBox.Entered) -> None:
        """A pattern was entered."""
        self._close_box()
        if message.as_filter:
            wanted = replace(self.state.filter, pattern=message.pattern)
            self.app.set_state(replace(self.state, filter=wanted))
        else:
            self.search_for(message.pattern)

    def on_find_box_left(self) -> None:
        """The box was left."""
        self._close_box()

    def _close_box(self) -> None:
        self.query_one(FindBox).close()
        self.canvas.focus()

    def search_for(self, pattern: str, *, exact: bool = False) -> None:
        """Searches all lanes and goes to the first match from the cursor on."""
        self._exact_search = exact
        if not pattern:
            self._show_found(None)
            return
        self._search(pattern, go=True)

    def search_again(self) -> None:
        """Repeats the search on the present lanes."""
        self._search(self.state.search.pattern, go=False)

    def _search(self, pattern: str, *, go: bool) -> None:
        lineup, style = self.store.filtered.lineup, self.state.display.names
        exact = self._exact_search

        def show(found: Found) -> None:
            self._show_found(found)
            if go:
                self._first_match()

        self.compute("search", lambda: search(lineup, pattern, style, exact=exact), show)

    def _show_found(self, found: Found | None) -> None:
        self.found = found
        self._serial += 1
        shown = Search(found.pattern, found.counts) if found is not None else Search()
        self.app.set_state(replace(self.state, search=shown))

    def _first_match(self) -> None:
        if self.found is None or not self.found.total:
            self.app.say(f"nothing matches {self.state.search.pattern}")
            return
        self.app.say("")
        self._match(forward=True, here=(self.cursor_time, -1))

    def action_find_next(self) -> None:
        """The next match, over all lanes in order of time."""
        self._match(forward=True)

    def action_find_previous(self) -> None:
        """The match before."""
        self._match(forward=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Matches can be stepped through while a search is on."""
        if action in ("find_next", "find_previous"):
            return self.found is not None
        return super().check_action(action, parameters)

    def _match(self, *, forward: bool, here: tuple[int, int] | None = None) -> None:
        if self.found is None:
            return
        found = self.found.without(self.state.display.hidden)
        if here is None:
            here = (self.cursor_time, found.lineup.places.get(self._lane_key, -1))
        number = found.step(*here, forward=forward)
        wrapped = ""
        if number is None and found.total:
            number = 0 if forward else found.total - 1
            wrapped = "from the start again" if forward else "from the end again"
        if number is None:
            self.app.say("no match in lanes that are shown")
            return
        self._go_to_match(found, number)
        if wrapped:
            self.app.say(wrapped)

    def _go_to_match(self, found: Found, number: int) -> None:
        track = found.lineup.tracks[found.place[number]]
        if track.lane is None or track.events is None:
            return
        self.unfold(track)
        time = int(found.start[number])
        row = int(track.lane.index[found.position[number]])
        self.picked = Picked(track.events, row)
        self.jump(
            window=self.shifted(time),
            cursor=Cursor(time, track.key),
            selection=self.selection_of(track.events, row),
            search=Search(found.pattern, found.counts, number + 1),
        )

    def action_timeline_min_duration(self) -> None:
        """Asks for the shortest duration to show."""
        now = self.state.filter.min_duration
        value = format_duration(now).replace(" ", "") if now else ""
        hint = "such as 10us or 1.5ms; nothing shows all events again"
        title = "Hide events shorter than"
        self.app.push_screen(Prompt(title, hint, value, check=shortest), self._shorter)

    def _shorter(self, text: str | None) -> None:
        if text is not None:
            wanted = replace(self.state.filter, min_duration=shortest(text))
            self.app.set_state(replace(self.state, filter=wanted))

    def clear_search(self) -> bool:
        """Ends a search, then a filter; tells whether there was one."""
        if self.found is not None:
            self._show_found(None)
            return True
        wanted = replace(self.state.filter, pattern="", min_duration=0)
        if wanted != self.state.filter:
            self.app.set_state(replace(self.state, filter=wanted))
            return True
        return False

    def info(self) -> tuple[str, str]:
        """What is searched and filtered, and how many lanes are hidden."""
        left, right = super().info()
        parts = [left] if left else []
        if self.found is not None:
            current = self.state.search.current
            of = f"match {format_count(current)} of " if current > 0 else ""
            parts.append(f"find: /{self.found.pattern}/  {of}{format_count(self.found.total)}  n/N")
        wanted = self.state.filter
        terms = [f"/{wanted.pattern}/"] if wanted.pattern else []
        if wanted.min_duration:
            terms.append(f"dur >= {format_duration(wanted.min_duration, 3)}")
        if wanted:
            hidden = format_count(self.store.filtered.hidden)
            parts.append(f"filter: {' '.join(terms) or 'lanes'} (hides {hidden} events)")
        lanes = len(self.state.display.hidden)
        pinned = len(self.state.display.pinned)
        counts = [f"hidden lanes {lanes}"] if lanes else []
        counts += [f"pinned {pinned}"] if pinned else []
        return "   ".join(parts), "  ".join([*counts, right]).strip()


def shortest(text: str) -> int:
    """A shortest duration in ns.

    Raises:
        UsageError: it is no duration, or below zero.
    """
    value = parse_duration(text) if text.strip() else 0
    if value < 0:
        raise UsageError(f"a duration cannot be negative: {text!r}")
    return value
