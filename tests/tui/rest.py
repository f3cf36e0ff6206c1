"""When an app is at rest: every message handled, and what that changed painted.

Textual's pilot waits for a moment in which the process computes little. On a busy machine that says
nothing, and on an idle one most of a test's time is such moments.
"""

from __future__ import annotations

import asyncio
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

LOOK: Final = 0.001
"""Seconds from one look to the next."""
SLICE: Final = 0.005
"""Seconds in which a worker that only waits, as tests have some do, computes nothing."""
LONGEST: Final = 1.0
"""Seconds after which a key is on its way although something still computes."""


def at_rest(app: App[Any]) -> bool:
    """Whether nothing that this thread does is on its way; what workers do is not asked."""
    if app._exit or app._exception is not None:
        return True
    loop: Any = asyncio.get_running_loop()
    keys: Any = app._key_queue  # type: ignore[attr-defined]
    later = keys._waiting, app._resize_event, app._batch_count, app.animator._animations
    if loop._ready or any(later):
        return False
    return all(map(_listens, [app, *app._registry])) and not any(map(_paints, app.screen_stack))


def _listens(pump: Any) -> bool:
    """Whether a widget waits for its next message, and has no drawing put off (the timeline's)."""
    if pump._closed or not pump._running:
        return True
    queue = pump._message_queue
    listens = not queue.values and any(not each.done() for each in queue.ready_event._waiters)
    return listens and not getattr(pump, "_waiting", False)


def _paints(screen: Screen[Any]) -> bool:
    """Whether a frame is due, or something that waits for one."""
    return screen._update_timer._active.is_set() or bool(screen._callbacks)


def working(app: App[Any]) -> bool:
    """Whether a report is read or something is computed."""
    sessions: Any = () if app.fatal is not None else app.sessions  # type: ignore[attr-defined]
    loading = any(session.started and not session.finished for session in sessions)
    return loading or any(not worker.is_finished for worker in app.workers)


async def for_rest(app: App[Any], least: float = 0) -> None:
    """Waits until the app is at rest, and its workers are done or wait for something themselves."""
    begun = monotonic()
    while monotonic() - begun < LONGEST:
        computed = process_time()
        await asyncio.sleep(SLICE if working(app) else LOOK)
        if at_rest(app) and (not working(app) or process_time() - computed < SLICE / 20):
            return
