"""Jump: a letter over every pane and tab; pressing it goes there."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.widgets import Static

from nsys_tui.ui.keymap import SCREENS
from nsys_tui.ui.runtime.batched_screen import Dialog

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import ComposeResult
    from textual.geometry import Offset

    from nsys_tui.ui.host import Host


class JumpOverlay(Dialog[None]):
    """Shows the letters until a key is pressed."""

    DEFAULT_CSS: ClassVar[str] = """
    JumpOverlay { layers: letters; align: left top; }
    JumpOverlay Static {
        layer: letters; position: absolute; width: 3; height: 1; text-style: bold reverse;
    }
    """

    def __init__(self, targets: dict[str, tuple[Offset, Callable[[], object]]]) -> None:
        super().__init__()
        self._targets = targets

    def compose(self) -> ComposeResult:
        """One letter per target."""
        for letter, (offset, _) in self._targets.items():
            label = Static(Content(f" {letter} "))
            label.styles.offset = offset
            yield label

    def on_key(self, event: events.Key) -> None:
        """Goes where the letter says; any other key closes."""
        event.stop()
        target = self._targets.get(event.character or "")
        self.dismiss(None)
        if target is not None:
            self.app.call_later(target[1])


def open_jump(app: Host) -> None:
    """Shows letters over the panes and tabs of the screen in front."""
    front = app.front
    if front is None:
        return
    letters = iter(ascii_lowercase)
    targets: dict[str, tuple[Offset, Callable[[], object]]] = {}
    for widget in front.focus_chain:
        if widget.region.size:
            targets[next(letters)] = (widget.region.offset, widget.focus)
    for spec in SCREENS:
        spot = front.tab_offset(spec.name)
        if spec.number and spot is not None:
            action = app.handler(f"view.{spec.name}")
            if action is not None:
                targets[str(spec.number)] = (spot, action)
    app.push_screen(JumpOverlay(targets))
