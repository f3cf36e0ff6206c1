"""Cyclic garbage is collected while the user pauses, not between a key and its frame.

Textual 8.2.8 leaves it to Python, apart from ``PAUSE_GC_ON_SCROLL``. A full collection took 60 to
160 ms and came every few dialogs; all of them together were a quarter of the CPU time of browsing.
What start-up makes stays for good, so it is left out of them.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App
    from textual.timer import Timer

PAUSE: Final = 3.0
"""Seconds without a key after which a full collection disturbs nobody."""
THRESHOLDS: Final = (5_000, 10, 100)
"""Of the three generations: the oldest one hardly ever by itself."""


def hold() -> None:
    """No collection until the first frame is out."""
    gc.disable()


def keep() -> None:
    """Leaves out of all further collections what exists now, after a look at what is young.

    For data that stay as long as their report and hold no cycles: counting references frees them,
    and a collection that goes through a hundred thousand lanes takes a third of a second.
    """
    gc.collect(1)
    gc.freeze()


def thaw() -> None:
    """Has the next collection look at everything once: a report was closed."""
    gc.unfreeze()


def settle(app: App[Any], busy: Callable[[], bool]) -> Timer:
    """Collections from now on; if they were held, without what exists now.

    Args:
        app: whose timer collects.
        busy: tells whether something is computed; that is waited for.

    Returns:
        The timer; every key resets it.
    """
    held = not gc.isenabled()
    if held:  # one app a process; what a test made before must not stay
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()

    def collect() -> None:
        if busy():
            return
        pause.pause()
        thawed = not gc.get_freeze_count()
        gc.collect()
        if held and thawed:
            gc.freeze()

    pause = app.set_interval(PAUSE, collect)
    return pause
