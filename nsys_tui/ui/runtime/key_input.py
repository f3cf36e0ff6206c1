"""Keys as terminals send them: a lone Escape is told soon, no byte ends the app, each takes effect.

Escape and the first byte of an arrow key are the same. The rest of an arrow key comes in the same
packet, also over SSH, so a short wait tells them apart (tmux waits 10 ms, Neovim 50). Textual 8.2.8
looks every 100 ms only, so that it takes 100 to 200 ms, and its input thread dies of a byte that is
not UTF-8, such as an e with an accent from a Latin-1 terminal, and spins when the terminal is gone.
All of this is said in the module of the driver and can be set by no option.
"""

from __future__ import annotations

import codecs
import os
import re
import selectors
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from types import SimpleNamespace
from typing import Any, Final

from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.dom import DOMNode
from textual.driver import Driver
from textual.message import Message
from textual.timer import Timer

LATE: Final = 0.3
"""Seconds after which keys no longer wait where the widget that had the last one is gone."""
LATEST: Final = 3.0
"""Seconds after which they wait for none: on a busy machine a dialog may take one to open."""


@dataclass
class KeyPassed(Message):
    """Follows a key through the same widgets; when it is at the app, the key was there before."""

    key: events.Event


class KeyQueue:
    """Keeps the keys that came while another is on its way.

    Args:
        app: gives the keys out; it calls ``holds`` before and ``given`` after an event is given
            out, and ``passed`` when ``KeyPassed`` arrives.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._waiting: deque[events.Event] = deque()
        self._given: events.Event | None = None
        self._target: DOMNode | None = None
        self._timer: Timer | None = None
        self._given_at = 0.0

    def holds(self, event: events.Event) -> bool:
        """Whether an event is a key that has to wait; it comes back in its turn."""
        typed = isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded
        if not typed or event is self._given:
            return False
        if self._given is None or not (self._waiting or self._on_its_way):
            self._given = event
            return False
        self._waiting.append(event)
        self._wait()
        return True

    @property
    def _on_its_way(self) -> bool:
        """Whether what the last key was given to is still there, and may pass it on."""
        return self._target is not None and self._target.is_attached

    def given(self, event: events.Event) -> None:
        """If an event is the key whose turn it is, its follower goes the same way."""
        if event is self._given and self._app.screen_stack:
            self._target, self._given_at = self._app.focused or self._app.screen, monotonic()
            self._target.post_message(KeyPassed(event))

    def passed(self, message: KeyPassed) -> None:
        """The focus that the key moved comes first, then what the dialog it opened is made of."""
        done = partial(self._app.call_later, self._next, message.key)
        self._app.call_later(lambda: self._app.screen.call_later(done))

    def _wait(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._app.set_interval(LATE, partial(self._look, self._given))

    def _look(self, key: events.Event | None) -> None:
        if not self._on_its_way or monotonic() - self._given_at > LATEST:
            self._next(key)

    def _next(self, key: events.Event | None) -> None:
        if key is not self._given:
            return
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._given = self._waiting.popleft() if self._waiting else None
        if self._given is not None:
            self._app.post_message(self._given)
        self._wait()


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


_ALONE: Final = re.compile(r"\x1b(?=[^\x00-\x1f\x7f\[\]\\OP_])")
"""Escape before a character that begins no sequence and no answer of a terminal."""


class KeyParser(XTermParser):
    """Reads Escape and a character of one packet as two keys: no key here is one with Alt.

    Textual would type the character into the box that Escape was to close, or a pound sign for 3.
    """

    def feed(self, data: str) -> Iterator[Message]:
        """Reads what a terminal sent, as messages."""
        first, *others = _ALONE.split(data)
        yield from super().feed(first) if first or not others else ()
        for rest in others:
            yield events.Key("escape", "\x1b")
            yield from super().feed(rest)


def prepare_input(driver: type[Driver]) -> None:
    """Makes a driver of Textual's tell Escape soon and by itself, and take any byte."""
    if "ESCDELAY" not in os.environ:
        vars(constants)["ESCAPE_DELAY"] = WAIT
    module = vars(sys.modules[driver.__module__])
    module["selectors"] = SimpleNamespace(
        SelectSelector=KeySelector, EVENT_READ=selectors.EVENT_READ
    )
    module["getincrementaldecoder"] = terminal_decoder
    module["XTermParser"] = KeyParser
