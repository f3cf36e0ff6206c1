"""Drives the app without a terminal and reads the screen as text rows.

async with running(path, size=(80, 24)) as pilot:
    await settled(pilot)
    assert "compute " in text(pilot)
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from textual.notifications import Notification
from textual.worker import WorkerCancelled
from tui.rest import SLICE, at_rest, for_rest, working

from nsys_tui.config import Config, DisplayConfig
from nsys_tui.reader import open_report
from nsys_tui.ui.app import NsysTuiApp
from nsys_tui.ui.links import first_screen, look_at
from nsys_tui.ui.runtime.ascii_filter import asciify
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.terminal import Colours, Terminal
from nsys_tui.ui.widgets import chrome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from nsys_tui.analysis.links import Place
    from nsys_tui.ui.session import Session

PLAIN = Terminal(Colours.TRUE, ascii=True, app=True, dark=True, reasons={})
FANCY = replace(PLAIN, ascii=False)
FOR_EVER = 1e6
"""Seconds that passing messages stay: a busy machine takes longer than theirs to look at one."""


@asynccontextmanager
async def running(
    *paths: Path,
    size: tuple[int, int] = (80, 24),
    terminal: Terminal = PLAIN,
    config: Config | None = None,
    theme: str = "dark",
    place: Place | None = None,
) -> AsyncIterator[Pilot[int]]:
    """The app on some reports, loaded and drawn."""
    settings = config or Config(display=DisplayConfig(theme=theme))

    def opener(path: Path, progress: Any) -> Any:
        return open_report(path, use_cache=False, progress=progress)

    start = first_screen(place) if place is not None else "overview"
    app = NsysTuiApp(paths, opener, config=settings, terminal=terminal, start=start)
    if place is not None:
        look_at(app.session, place)
    with (
        patch.object(ReportScreen, "session", property(own_session)),
        patch.object(chrome, "MESSAGE_SECONDS", FOR_EVER),
        patch.object(Notification, "time_left", FOR_EVER),
        patch("textual.app.wait_for_idle", partial(for_rest, app)),
        patch("textual.pilot.wait_for_idle", partial(for_rest, app)),
    ):
        async with app.run_test(size=size, notifications=True) as pilot:
            await settled(pilot)
            yield pilot


def own_session(screen: ReportScreen) -> Session:
    """The report in front, which a worker must not ask for: by then it may be another one."""
    assert current_thread() is main_thread(), "a worker is given its session when it is started"
    return screen.app.session


async def settled(pilot: Pilot[int]) -> None:
    """Waits until everything is loaded, no worker runs and all messages are handled."""
    for _ in range(300):
        with suppress(WorkerCancelled):  # the app was closed by an error
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if at_rest(pilot.app) and not working(pilot.app):
            return
    raise AssertionError("the app does not come to rest")


async def until(wanted: Callable[[], bool]) -> None:
    """Waits for what a timer or a thread brings about; pytest ends a test that waits in vain."""
    while not wanted():
        await asyncio.sleep(SLICE)


def rows(pilot: Pilot[int]) -> list[str]:
    """The screen as the terminal would show it, one text per row."""
    app = pilot.app
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip) for strip in strips]
    assert len(lines) == height
    shown = [asciify(line) if app.ascii else line for line in lines]  # type: ignore[attr-defined]
    return [line.ljust(width) for line in shown]


def text(pilot: Pilot[int]) -> str:
    """All rows joined."""
    return "\n".join(rows(pilot))


async def frame(path: Path, size: tuple[int, int], *keys: str, **options: Any) -> list[str]:
    """The rows after some keys."""
    async with running(path, size=size, **options) as pilot:
        for key in keys:
            await pilot.press(key)
        await settled(pilot)
        return rows(pilot)
