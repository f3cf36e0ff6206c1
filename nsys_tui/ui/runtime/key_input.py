"""Keys as terminals send them: a lone Escape is told soon, and no byte ends the app.

Escape and the first byte of an arrow key are the same. The rest of an arrow key comes in the same
packet, also over SSH, so a short wait tells them apart (tmux waits 10 ms, Neovim 50). Textual 8.2.8
looks every 100 ms only, so that it takes 100 to 200 ms, and its input thread dies of a byte that is
not UTF-8, such as an e with an accent from a Latin-1 terminal, and spins when the terminal is gone.
All three are said in the module of the driver and can be set by no option.
"""

from __future__ import annotations

import codecs
import os
import selectors
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Final

from textual import constants
from textual.driver import Driver

# select() knows no descriptor from 1024 on; poll() knows no terminals on macOS.
if sys.platform == "linux":
    from selectors import PollSelector as Selector
else:
    from selectors import SelectSelector as Selector


WAIT: Final = 0.03
"""Seconds, unless the user set ``ESCDELAY``."""


class KeySelector(Selector):
    """Looks again soon after each input; between inputs as seldom as it is asked to.

    Textual's parser can tell a lone Escape only when the selector comes back.
    """

    _fresh = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for input, after the last one no longer than an Escape has to wait.

        With nothing left to wait for, as when the app closes, it comes back at once.
        """
        if not self.get_map():
            return []
        ready = super().select(constants.ESCAPE_DELAY if self._fresh else timeout)
        self._fresh = bool(ready)
        return ready


class TerminalDecoder:
    """Decodes what a terminal sends, with U+FFFD for what is not in the encoding.

    Args:
        encoding: of the terminal.
    """

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    def decode(self, data: bytes, final: bool = False) -> str:
        """Decodes some bytes.

        Raises:
            EOFError: there are none: the terminal is gone. Textual's thread would ask for more at
                once and for ever; this ends it.
        """
        if not data and not final:
            raise EOFError("the terminal is gone")
        return self._decoder.decode(data, final)


def terminal_decoder(encoding: str) -> Callable[[], TerminalDecoder]:
    """Stands in for ``codecs.getincrementaldecoder``."""
    return partial(TerminalDecoder, encoding)


def prepare_input(driver: type[Driver]) -> None:
    """Makes a driver of Textual's tell a lone Escape soon, and take any byte."""
    if "ESCDELAY" not in os.environ:
        vars(constants)["ESCAPE_DELAY"] = WAIT
    module = vars(sys.modules[driver.__module__])
    module["selectors"] = SimpleNamespace(
        SelectSelector=KeySelector, EVENT_READ=selectors.EVENT_READ
    )
    module["getincrementaldecoder"] = terminal_decoder
