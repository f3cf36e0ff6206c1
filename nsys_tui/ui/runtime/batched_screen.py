"""When a screen is painted: soon after a key, once a batch, and never twice for one layout.

Textual 8.2.8 paints at every change within a batch although only the last paint of it reaches the
terminal. Without the others a dialog opens in half the CPU time (help 42 to 29 ms, palette 45 to
29 at 160x45). It keeps to a beat of 1/60 s, styles the whole screen anew when a pane is maximised,
forgets to size widgets that came back between two layouts, and takes a second answer of a dialog.
"""

from __future__ import annotations

import time
from asyncio import sleep
from typing import ClassVar, Final

from textual._compositor import Compositor, ReflowResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.timer import Timer
from textual.widget import Widget

from nsys_tui.ui.runtime.faults import KeepsGoing

GRACE: Final = 0.001
"""Seconds that widgets have to say what else changed."""
PERIOD: Final = 0.01
"""Seconds between two frames, and at least as many as the last one took."""


class FrameTimer(Timer):
    """Ticks once whenever it was resumed.

    Textual's own keeps to a beat of 1/60 s: what changes right after a frame waits up to 33 ms.
    """

    async def _run(self) -> None:
        due = 0.0
        while True:
            await self._active.wait()
            await sleep(max(GRACE, due - time.monotonic()))
            began = time.monotonic()
            if self._active.is_set():
                await self._tick(next_timer=began, count=0)
            now = time.monotonic()
            due = now + max(PERIOD, now - began)


class Layouts(Compositor):
    """Textual's compositor, which tells every widget that came back how large it is now.

    Textual looks up which ones were there in a map that is also renewed between layouts.
    """

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lays out everything; ``shown`` is what was not laid out the last time."""
        before = self.widgets
        result = super().reflow(parent, size)
        return result._replace(shown=result.shown | (self.widgets - before))


class BatchedScreen(KeepsGoing, Screen[ScreenResultType]):
    """A screen that waits with painting until the batch is over."""

    _frames: FrameTimer | None = None

    def __init__(self) -> None:
        super().__init__()
        self._compositor = Layouts()

    @property
    def _update_timer(self) -> Timer:
        """What paints after a change."""
        if self._frames is None:
            self._frames = FrameTimer(self, PERIOD, callback=self._on_timer_update, pause=True)
            self._frames._start()
            self._timers.add(self._frames)
        return self._frames

    def _watch_maximized(self, before: Widget | None, now: Widget | None) -> None:
        """Styles the pane alone; Textual styles all of the screen anew, a third of the time."""
        if before is not None:
            before.remove_class("-maximized")
        if now is not None:
            now.add_class("-maximized")

    def _compositor_refresh(self) -> None:
        if self.app._batch_count:
            self._repaint_required = True
        else:
            super()._compositor_refresh()


class Dialog(BatchedScreen[ScreenResultType], ModalScreen[ScreenResultType]):
    """A modal screen that waits likewise, and ends once; Esc ends it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("ctrl+c", "app.interrupt", show=False),  # a modal screen hides the app's own
    ]
    DEFAULT_CSS: ClassVar[str] = """
    Dialog { align: center middle; background: transparent; }
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Ends the dialog; keys that came meanwhile are no second answer."""
        if self.is_current:
            return super().dismiss(result)
        return AwaitComplete()
