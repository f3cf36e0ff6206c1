"""LineInput: one line of text that is edited in the order of typing."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.actions import SkipAction
from textual.reactive import reactive
from textual.widgets import Input

from nsys_tui.names import visible_in_place
from nsys_tui.ui.runtime.faults import KeepsGoing


class LineInput(KeepsGoing, Input):
    """An input whose editing keys act at once, and whose cursor does not blink.

    Those of Textual 8.2.8 wait until they have bubbled up to the app, behind letters of the same
    packet: over a slow line ``^U`` and a word typed after it left nothing.
    """

    cursor_blink = reactive(False, init=False)

    @property
    def _value(self) -> Text:
        """What is drawn: the names of files hold anything, and a terminal would obey it."""
        drawn = super()._value
        drawn.plain = visible_in_place(drawn.plain)
        return drawn

    def action_copy(self) -> None:
        """Copies the selected text; without any the key means what it means elsewhere."""
        if not self.selected_text:
            raise SkipAction
        super().action_copy()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "ctrl+c" and not self.selected_text:
            return
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            event.stop()
            event.prevent_default()
            await self.run_action(binding.action)
            return
