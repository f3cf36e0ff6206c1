"""``:``: runs an action by its name, with an argument where it asks for one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.widgets import Input

from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.keymap import GLOBAL, effective_keys, shown_key
from nsys_tui.ui.matching import Entry, matching

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.ui.host import Host

LOOKS: Final = 100
"""Looks, 10 ms apart, for the box that an action opens for its argument."""


class CommandLine(Picker):
    """Returns the id of an action and what stands after it, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", show=False, priority=True)]

    def find(self, typed: str) -> Sequence[Entry]:
        """Actions that fit the first word, by their ids before all others."""
        name = typed.partition(" ")[0]
        found = matching(self.entries, name)
        return sorted(found, key=lambda entry: (entry.value != name, name not in entry.value))

    def action_complete(self) -> None:
        """Writes the id of the action under the cursor in full."""
        entry = self.pane.choice
        if isinstance(entry, Entry):
            field = self.query_one(Input)
            rest = field.value.partition(" ")[2]
            field.value = f"{entry.value} {rest}"
            field.cursor_position = len(field.value)

    def taken(self, entry: Entry, typed: str) -> object:
        """The action and its argument."""
        return entry.value, typed.partition(" ")[2].strip()


def open_command_line(app: Host) -> None:
    """Asks for an action and runs it."""

    def chosen(found: tuple[str, str]) -> None:
        app.run_worker(_run(app, *found), exit_on_error=False)

    title = "Run an action: tab completes, an argument follows (goto 2.1s)"
    app.ask(CommandLine(title, [*_entries(app)]), chosen)


def _entries(app: Host) -> Iterator[Entry]:
    actions = app.front.ACTIONS if app.front is not None else ()
    for action in {action.id: action for action in (*GLOBAL, *actions)}.values():
        if app.handler(action.id) is not None:
            keys = effective_keys(action, app.keymap)
            shown = shown_key(keys[0]) if keys else ""
            yield Entry(f"{action.id}: {action.help}", shown, action.id, loose=True)


async def _run(app: Host, action_id: str, argument: str) -> None:
    before = app.screen.focused
    await app.action_do(action_id)
    if not argument:
        return
    for _ in range(LOOKS):
        field = app.screen.focused
        if isinstance(field, Input) and field is not before:
            field.value = argument
            if isinstance(app.screen, Picker):
                app.screen.action_take()
            else:
                await field.action_submit()
            return
        await asyncio.sleep(0.01)
    app.say(f"{action_id} takes no argument")
