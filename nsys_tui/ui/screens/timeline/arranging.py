"""Lanes: pin, hide, fold; and what the colours stand for."""

from __future__ import annotations

from dataclasses import replace

from nsys_tui.render.cells import SLOTS
from nsys_tui.state import ColourBy, cycled, displayed
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.screens.timeline.core import TimelineCore

MEANING = {
    ColourBy.CATEGORY: "compute, communication, memory, …; ranges by their own colour",
    ColourBy.STREAM: "streams; the host by category",
    ColourBy.NAME: f"the {SLOTS - 1} names with most time, one colour for the rest",
    ColourBy.DURATION: "orders of magnitude, from under 10 ns up",
}
"""What the toast says on a change of colours."""


class Arranging(TimelineCore):
    """Actions on lanes."""

    def action_timeline_pin(self) -> None:
        """Pins the lane, or lets it go."""
        row, pinned = self.row, self.state.display.pinned
        if row is None:
            return
        kept = tuple(key for key in pinned if key != row.key)
        fresh = kept if row.key in pinned else (*pinned, row.key)
        self.app.set_state(displayed(self.state, pinned=fresh))

    def action_timeline_hide(self) -> None:
        """Hides the lane with all below it; the cursor goes to the next."""
        row = self.row
        if row is None:
            return
        number, count = self.row_number, len(self.rows)
        below = (t for n in range(number + 1, count) if row.key not in (t := self.rows[n]).parents)
        above = self.rows[number - 1] if number else None
        other = next(below, above)
        target = "" if other is None else other.key
        hidden = self.state.display.hidden | {row.key}
        state = displayed(self.state, hidden=hidden)
        self.app.set_state(replace(state, cursor=replace(state.cursor, lane=target)))
        self.app.say(f"hidden: {row.title} (X brings lanes back)")

    def action_timeline_show_hidden(self) -> None:
        """Lists hidden lanes; the chosen one comes back."""
        whole = self.store.whole
        hidden = sorted(self.state.display.hidden)
        if not hidden:
            self.app.say("no lane is hidden")
            return
        entries = [Entry("all of them", f"{len(hidden)}", "")]
        entries += [Entry(t.title if (t := whole.track(key)) else key, "", key) for key in hidden]
        self.app.push_screen(Picker("Hidden lanes", entries), self._bring_back)

    def _bring_back(self, key: str | None) -> None:
        if key is None:
            return
        hidden = self.state.display.hidden - {key} if key else frozenset()
        self.app.set_state(displayed(self.state, hidden=hidden))
        self.app.say("")

    def action_timeline_fold(self) -> None:
        """Folds or unfolds the group of the cursor's row."""
        row = self.row
        if row is None:
            return
        is_group = row.key in self.store.filtered.lineup.groups
        key = row.key if is_group else next(reversed(row.parents), "")
        if not key:
            return
        state = displayed(self.state, folded=self.state.display.folded ^ {key})
        self.app.set_state(replace(state, cursor=replace(state.cursor, lane=key)))

    def action_timeline_colour_by(self) -> None:
        """Changes what colours stand for."""
        by: ColourBy = cycled(self.state.display.colour_by)
        self.app.set_state(displayed(self.state, colour_by=by))
        self.app.say(f"colour by {by}: {MEANING[by]}")
