"""KeyQueue: a key is given out when the one before it has had its effect.

Textual 8.2.8 gives keys to what has the focus when they arrive. Keys of one packet, as they come
over a slow line or from a script, all went to the same widget: a word typed after ``/`` moved the
lanes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message import Message
from textual.timer import Timer

LATE: Final = 0.3
"""Seconds after which keys no longer wait: the widget that had the last one may be gone."""


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
            self._target = self._app.focused or self._app.screen
            self._target.post_message(KeyPassed(event))

    def passed(self, message: KeyPassed) -> None:
        """The focus that the key moved comes first, then what the dialog it opened is made of."""
        done = partial(self._app.call_later, self._next, message.key)
        self._app.call_later(lambda: self._app.screen.call_later(done))

    def _wait(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._app.set_timer(LATE, partial(self._next, self._given))

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
