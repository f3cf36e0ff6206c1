"""The tour: the app hunts the demo's planted stall by itself, with a caption for every screen.

Keys are pressed as a user would press them, so what is shown is what the app does. Each stop says
what must be on its screen; a test looks, and the pictures of README and docs are taken here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import events

from nsys_tui.ui.app import NsysTuiApp
from nsys_tui.ui.host import ReportOpener
from nsys_tui.ui.keymap import normal_key


@dataclass(frozen=True)
class Stop:
    """One screen of the tour."""

    name: str
    keys: tuple[str, ...]
    """What is pressed to come here."""
    caption: str
    evidence: tuple[str, ...]
    """Words that the screen shows, from which the caption can be believed."""


STOPS: Final = (
    Stop(
        "overview",
        (),
        "A training run on two GPUs, busy 84.9% of the time. What is the rest?",
        ("2 GPUs 84.9% busy", "compute 70.3%", "Findings"),
    ),
    Stop(
        "stalls",
        ("5",),
        "5  Every gap of an idle GPU, and its cause. The longest: a read of 55 ms.",
        ("55.25 ms", "pread64"),
    ),
    Stop(
        "timeline",
        ("enter",),
        "Enter  That moment: both GPUs wait, the data loader sits in pread64.",
        ("gap:", "pread64", "thread data loader"),
    ),
    Stop(
        "closer",
        ("w", "w"),
        "w, w  Closer. Copies wait for the shard, and kernels for the copies.",
        ("range read shard",),
    ),
    Stop(
        "steps",
        ("4", "t", "]"),
        "4, t, ]  Step by step: step 8 takes 54 ms longer, all of it idle.",
        (">Train step 8", "+54.42 ms idle"),
    ),
    Stop(
        "kernels",
        ("3", "0"),
        "3, 0  What ran in the whole run. s sorts, F counts values, / searches.",
        ("AllReduce", "gemm"),
    ),
    Stop(
        "stacks",
        ("6",),
        "6  The same time by NVTX path: a flame graph to walk by keyboard.",
        ("GPU time by NVTX path", "matmul"),
    ),
    Stop(
        "end",
        ("1",),
        "All of it in a pipe, too: nsys-tui stalls REPORT. ? lists the keys.",
        ("Findings",),
    ),
)
CALM: Final = 4
"""Looks one after the other without work before a screen counts as drawn."""
LOOK: Final = 0.03
"""Seconds between two looks."""
READING: Final = 14
"""Letters a second that a caption stays for."""


class TourApp(NsysTuiApp):
    """The app with a hand of its own; Esc ends the tour, Space goes on at once.

    Args:
        paths: the demo report.
        opener: as of the app.
        stay: what is done at every stop; by default it waits until the caption can be read.
        options: as of the app.
    """

    CSS: ClassVar[str] = """
    StatusLine { color: $background; background: $accent; text-style: bold; }
    """

    def __init__(
        self,
        paths: Sequence[Path],
        opener: ReportOpener,
        *,
        stay: Callable[[TourApp, Stop], Awaitable[None]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(paths, opener, **options)
        self.caption = ""
        self._stay = stay or _read
        self._own_key: events.Key | None = None
        self.on = asyncio.Event()
        """Set when the user wants the next stop."""
        self.touring = True

    def on_mount(self) -> None:
        """Starts the tour."""
        self.run_worker(self._play(), group="tour")

    async def _play(self) -> None:
        for number, stop in enumerate(STOPS, 1):
            await self._rest()
            for key in stop.keys:
                self._press(key)
                await self._rest()
            if not self.touring:
                return
            self.tell(f" {number}/{len(STOPS)}  {stop.caption}")
            await self._rest()
            self.on.clear()
            await self._stay(self, stop)
        self._end()

    def tell(self, caption: str) -> None:
        """Shows a caption on the line of progress and errors."""
        self.caption = caption
        self.refresh_status()

    def _end(self) -> None:
        self.touring = False
        self.on.set()
        self.tell("")

    def _press(self, key: str) -> None:
        if self.touring:
            self._own_key = events.Key(normal_key(key), key if len(key) == 1 else None)
            self.post_message(self._own_key)

    async def _rest(self) -> None:
        """Waits until nothing is loaded or computed any more."""
        calm = 0
        while calm < CALM and self.touring and self.fatal is None:
            await asyncio.sleep(LOOK)
            loading = any(s.started and not s.finished for s in self.sessions)
            busy = any(not w.is_finished for w in self.workers if w.group != "tour")
            calm = 0 if loading or busy or self.jobs else calm + 1

    def status_text(self) -> tuple[str, bool]:
        """The caption, unless there is an error."""
        text, error = super().status_text()
        return (text, True) if error or not self.caption else (self.caption, False)

    async def takes(self, event: events.Event) -> bool:
        """The tour's own keys go their way; of the user's only Esc, Space and those that leave."""
        if not self.touring or not isinstance(event, events.Key) or event is self._own_key:
            return await super().takes(event)
        if event.key == "escape":
            self._end()
        elif event.key == "space":
            self.on.set()
        return event.key not in ("q", "ctrl+q")


async def _read(app: TourApp, stop: Stop) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(app.on.wait(), 2 + len(stop.caption) / READING)
