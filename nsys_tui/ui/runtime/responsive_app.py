"""ResponsiveApp: what keeps a Textual app quick over SSH, apart from what this one shows.

Only changed cells are sent, screens come at once, garbage is collected while nobody waits. Textual
8.2.8 waits 50 ms at a switch of screens (``delay_update``), parses all styles anew for a screen
that is visited first, and imports and builds screens on the thread that draws.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Protocol

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.driver import Driver
from textual.screen import Screen
from textual.timer import Timer

from nsys_tui.ui.runtime import garbage_collection
from nsys_tui.ui.runtime.changed_cells import ChangedCells, sending_changes
from nsys_tui.ui.runtime.faults import on_ending
from nsys_tui.ui.runtime.key_input import KeyPassed, KeyQueue, prepare_input
from nsys_tui.ui.terminal import erases_in_colour

SWITCH_DELAY: Final = 0.005
"""Seconds that a new screen has to be laid out before it is drawn."""
FILLED: Final = 0.1
"""Seconds that a new screen has to be filled before it is drawn."""
PATIENCE: Final = 3.0
"""Seconds within which Ctrl+C has to come again to leave."""
QUIET: Final = 0.3
"""Seconds after loading before anything is done ahead."""


class LazyScreen(Protocol):
    """A kind of screen whose module is imported when it is wanted."""

    @property
    def name(self) -> str:
        """Name of its mode."""

    @property
    def loaded(self) -> bool:
        """Whether it is imported, so that it comes at once."""

    def load(self) -> type:
        """Imports it."""

    def create(self) -> Screen[Any]:
        """A new screen of this kind."""


class ResponsiveApp(App[int], inherit_bindings=False):
    """An app whose modes are screens that are imported one by one."""

    LAZY_SCREENS: ClassVar[Sequence[LazyScreen]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.jobs: set[int] = set()
        """Threads that read or compute."""
        self._new_until = 0.0
        """Moment from which a screen visited for the first time is no longer waited for."""
        self._key_queue = KeyQueue(self)
        self._interrupted = -PATIENCE
        """When Ctrl+C was pressed last."""
        self._pause: Timer | None = None
        """Runs while the user presses no key."""
        for spec in self.LAZY_SCREENS:
            self._add_screen(spec)

    def _add_screen(self, spec: LazyScreen) -> None:
        self.add_mode(spec.name, partial(self._new_screen, spec))

    def built_screen(self, name: str) -> Screen[Any] | None:
        """The screen of a mode; None if it was not visited yet."""
        stack = self._screen_stacks.get(name)
        return stack[0] if stack else None

    async def renew_screens(self, names: Collection[str]) -> None:
        """Gives up hidden screens with all that they hold; the next visit builds them anew."""
        specs = [spec for spec in self.LAZY_SCREENS if spec.name in names]
        removed = [self.remove_mode(spec.name) for spec in specs]
        for spec in specs:
            self._add_screen(spec)
        for removal in removed:
            await removal

    def _new_screen(self, spec: LazyScreen) -> Screen[Any]:
        """A screen that Textual does not take for outdated, and that knows the terminal's size.

        All styles would be parsed and applied anew, twice: 55 ms at the first visit; and panes for
        wide terminals would come, and compute what they show, after the first frame only.
        """
        screen: Screen[Any] = spec.create()
        screen._css_update_count = self._css_update_count
        width, height = self.size
        screen.add_class(
            *screen._get_breakpoint_classes(width, screen.HORIZONTAL_BREAKPOINTS or []),
            *screen._get_breakpoint_classes(height, screen.VERTICAL_BREAKPOINTS or []),
        )
        self._new_until = time.monotonic() + FILLED
        return screen

    def on_mount(self) -> None:
        """Signals end the app as a key does."""
        if not self.is_headless:
            on_ending(self.leave)
        if self.is_web:
            server = os.getppid()
            self.set_interval(1, lambda: self.leave() if os.getppid() != server else None)

    def leave(self, status: int = 0) -> None:
        """Ends the app.

        Args:
            status: the exit code.
        """
        self.exit(status, return_code=status)

    def action_interrupt(self) -> None:
        """Copies selected text; where there is none, leaves at the second time."""
        if self.screen.get_selected_text() is not None:
            self.screen.action_copy_text()
            return
        now = time.monotonic()
        if now - self._interrupted < PATIENCE:
            self.leave()
        self._interrupted = now
        self.say("^C again leaves nsys-tui")

    def say(self, text: str) -> None:
        """Tells something in passing."""
        self.notify(text, markup=False)

    def delay_update(self, delay: float = SWITCH_DELAY) -> None:
        """Hides the moment between two screens; Textual's 50 ms were most of a switch.

        A new screen waits a little longer for what it computes: most are drawn once then, not
        empty, half full and full.
        """
        self._begin_batch()

        def end_batch() -> None:
            if time.monotonic() < self._new_until and self._fills:
                self.set_timer(delay, end_batch)
                return
            self._end_batch()
            if not self._batch_count:
                self.screen.refresh()

        self.set_timer(delay, end_batch)

    @property
    def _fills(self) -> bool:
        """Whether the screen in front computes what it shows."""
        busy = (worker.node for worker in self.workers if not worker.is_finished)
        return any(node is not self and node.screen is self.screen for node in busy)

    def push_screen(self, *args: Any, **options: Any) -> Any:
        """Opens a dialog; it is drawn once, when it is laid out."""
        self.delay_update()
        return super().push_screen(*args, **options)

    def pop_screen(self) -> AwaitComplete:
        """Closes a dialog; what was below it is drawn once."""
        self.delay_update()
        return super().pop_screen()

    def get_driver_class(self) -> type[Driver]:
        """The platform's driver, sending only the cells that changed."""
        driver = super().get_driver_class()
        prepare_input(driver)
        return sending_changes(driver, erases=erases_in_colour(os.environ))

    def on_resize(self) -> None:
        """After a resize the terminal may show anything."""
        self.forget_screen()

    def on_driver_signal_resume(self) -> None:
        """After ``fg`` the terminal is blank, and nothing else would draw before the next key."""
        self.forget_screen()
        self.screen.refresh()

    def forget_screen(self) -> None:
        """Has the next frames sent in full."""
        if isinstance(self._driver, ChangedCells):
            self._driver.shadow.forget()

    def on_ready(self) -> None:
        """The first frame is out: garbage is collected from now on, best while the user pauses."""
        if not self.is_headless:
            self._pause = garbage_collection.settle(self, lambda: bool(self.jobs))

    def keep(self) -> None:
        """What was made for a report stays as long as it: collections leave it out from now on."""
        if self._pause is not None:
            garbage_collection.keep()

    def thaw(self) -> None:
        """A report is not open any more: the next pause frees what was made for it."""
        if self._pause is not None:
            garbage_collection.thaw()
            self._pause.reset()

    async def on_event(self, event: events.Event) -> None:
        """Keys take turns, and every one begins a new pause."""
        if self._key_queue.holds(event):
            return
        if not await self.takes(event):
            if self._pause is not None and isinstance(event, events.Key):
                self._pause.reset()
            await super().on_event(event)
        self._key_queue.given(event)

    async def takes(self, event: events.Event) -> bool:  # noqa: ARG002
        """Whether the app itself takes an event, before any binding sees it."""
        return False

    def on_key_passed(self, message: KeyPassed) -> None:
        """The next key has its turn."""
        self._key_queue.passed(message)

    async def fetch_screen(self, name: str) -> None:
        """Imports one screen unless it is; the app stays live for the 100 ms that this takes."""
        spec = next(spec for spec in self.LAZY_SCREENS if spec.name == name)
        if not spec.loaded:
            await asyncio.to_thread(spec.load)

    def fetch_screens(self) -> None:
        """Imports the screens that were not visited yet: half the time of a first visit.

        It waits until nothing is computed any more, so that nothing on the screen comes later.
        """

        def job() -> None:
            for spec in self.LAZY_SCREENS:
                spec.load()

        def fetch() -> None:
            if self.jobs:
                self.set_timer(QUIET, fetch)
            else:
                self.run_worker(job, thread=True, group="screens", exit_on_error=False)

        self.set_timer(QUIET, fetch)
