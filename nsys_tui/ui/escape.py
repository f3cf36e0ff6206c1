"""A lone Escape is taken for one after 30 ms; Textual alone waits 100 to 200.

Escape and the first byte of an arrow key are the same. The rest of an arrow key comes in the same
packet, also over SSH, so a short wait tells them apart (tmux waits 10 ms, Neovim 50).
"""

from __future__ import annotations

import os
import selectors
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from textual import constants

# select() knows no descriptor from 1024 on; poll() knows no terminals on macOS.
if sys.platform == "linux":
    from selectors import PollSelector as Selector
else:
    from selectors import SelectSelector as Selector

if TYPE_CHECKING:
    from textual.driver import Driver

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
        found = super().select(constants.ESCAPE_DELAY if self._fresh else timeout)
        self._fresh = bool(found)
        return found


def hasten_escape(driver: type[Driver]) -> None:
    """Makes a driver of Textual's tell a lone Escape soon."""
    if "ESCDELAY" not in os.environ:
        vars(constants)["ESCAPE_DELAY"] = WAIT
    own = SimpleNamespace(SelectSelector=KeySelector, EVENT_READ=selectors.EVENT_READ)
    vars(sys.modules[driver.__module__])["selectors"] = own
