"""Faults are shown and everything goes on working; signals end the app as its own key does.

In Textual 8.2.8 the first exception in a handler ends the loop of the widget or screen that it
belongs to: what is left draws, but takes no key any more.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from rich.console import RenderableType
from textual.app import App
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
SIGNALLED: Final = 128
"""Added to the number of the signal, as shells do: 143 for SIGTERM, 129 for SIGHUP."""


def on_ending(leave: Callable[[int], None]) -> None:
    """Has ``leave`` called with an exit code in the running loop; what ``nohup`` ignores stays so.

    Args:
        leave: ends the app.
    """
    loop = asyncio.get_running_loop()
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, leave, SIGNALLED + number)


MOST: Final = 20
"""Faults within ``SPAN`` after which the app gives up: showing one causes the next."""
SPAN: Final = 5.0
"""Seconds."""
HANGUP: Final = SIGNALLED + signal.SIGHUP
"""Exit code when the terminal went away, with its signal or without."""


class KeepsGoing(MessagePump):
    """Mixin for apps, screens and widgets whose handlers may fail; put it before them."""

    def set_timer(self, *delay_and_callback: Any, **options: Any) -> Timer:
        """A timer that always rings.

        Textual 8.2.8 skips one whose moment is past when it first looks at the clock: on a busy
        machine the screen that waited for its end of 5 ms was never drawn again.
        """
        timer = super().set_timer(*delay_and_callback, **options)
        timer._skip = False
        return timer

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            self.app._handle_exception(error)


class KeepsDrawing(KeepsGoing, Widget):
    """Mixin for widgets whose drawing may fail as well: they are blank then."""

    _blank = False
    """Whether the last drawing failed, so that its fault is not told again."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draws the widget, or nothing."""
        try:
            strips = super().render_lines(crop)
        except Exception as error:
            if not self._blank:
                self._blank = True
                self.app.call_later(self.app._handle_exception, error)
            return [Strip.blank(crop.width)] * crop.height
        self._blank = False
        return strips


class TolerantApp(KeepsGoing, App[Any], inherit_bindings=False):
    """An app that survives faults, up to a number of them at a time.

    Tests get the first fault with its traceback, unless they set ``keeps_going``.
    """

    crash: Exception | None = None
    """What ended the app, for who started it."""
    keeps_going: bool | None = None
    """Whether faults are shown; where it is None, on a terminal only."""

    def __init__(self) -> None:
        super().__init__()
        self._fault_times: deque[float] = deque(maxlen=MOST)

    def show_fault(self, error: Exception) -> None:
        """Shows a fault of the program itself."""
        raise NotImplementedError

    def report_fault(self, error: Exception) -> None:
        """Shows a fault of work in the background; called from any thread."""
        self.call_later(self.show_fault, error)

    def _handle_exception(self, error: Exception) -> None:
        keeps_going = not self.is_headless if self.keeps_going is None else self.keeps_going
        if not keeps_going:
            super()._handle_exception(error)
            return
        times, now = self._fault_times, time.monotonic()
        times.append(now)
        if len(times) == MOST and now - times[0] < SPAN:
            self._give_up(error)
        else:
            self.show_fault(error)

    def panic(self, *renderables: RenderableType) -> None:
        """Ends the app where even Textual cannot go on, such as without its input thread."""
        if self.is_headless:
            super().panic(*renderables)
            return
        from rich.traceback import Traceback  # 50 ms that only a fault is worth

        traces = [each.trace for each in renderables if isinstance(each, Traceback)]
        if any(stack.exc_type == EOFError.__name__ for trace in traces for stack in trace.stacks):
            self.exit(return_code=HANGUP)
        else:
            self._give_up(RuntimeError("keys can be read no longer"))

    def _give_up(self, error: Exception) -> None:
        self.crash = error
        self.exit(return_code=1)
