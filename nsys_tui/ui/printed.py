"""A screen of the app as lines of text, without a terminal: for pipes, logs and agents."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from textual.worker import WorkerCancelled

from nsys_tui.state import Window
from nsys_tui.ui.runtime.ascii_filter import asciify
from nsys_tui.units import Edges, closed

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from nsys_tui.ui.host import Host

CALM: Final = 4
"""Looks one after the other without work: what a worker leaves is drawn a frame or two later."""
PATIENCE: Final = 6000
"""Looks at most; a large report takes a minute to load."""


def printed_screen(app: Host, size: tuple[int, int], window: Edges) -> list[str]:
    """Runs the app until nothing is being computed any more, and reads its screen.

    Args:
        app: not yet running.
        size: columns and lines.
        window: what to show, ns; None for the trace's own edge.
    """
    pages: list[str] = []

    async def look(pilot: Pilot[Any]) -> None:
        await _at_rest(pilot, app)
        if window != (None, None):
            shown = Window(*closed(window, app.session.extent))
            app.set_state(replace(app.state, window=shown))
            await _at_rest(pilot, app)
        pages.extend(screen_rows(app))
        app.exit()

    app.run(headless=True, size=size, mouse=False, auto_pilot=look)
    return pages


def screen_rows(app: Any) -> list[str]:
    """The screen as a terminal would show it, one text per line."""
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip) for strip in strips]
    shown = [asciify(line) for line in lines] if app.ascii else lines
    return [line.ljust(app.size.width) for line in shown]


async def _at_rest(pilot: Pilot[Any], app: Host) -> None:
    calm = 0
    for _ in range(PATIENCE):
        with contextlib.suppress(WorkerCancelled):
            await app.workers.wait_for_complete()
        await pilot.pause()
        loading = app.fatal is None and any(s.started and not s.finished for s in app.sessions)
        busy = loading or any(not worker.is_finished for worker in app.workers)
        calm = 0 if busy else calm + 1
        if calm == CALM or app.fatal is not None:
            return
