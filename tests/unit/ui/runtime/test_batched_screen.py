from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from textual._context import active_app

from nsys_tui.ui.runtime.batched_screen import GRACE, PERIOD, FrameTimer

if TYPE_CHECKING:
    from collections.abc import Callable


class Target:
    """Timers hold their target weakly."""


TARGET: Any = Target()


def timer_of(tick: Callable[[], None]) -> FrameTimer:
    app: Any = SimpleNamespace(_exit=False, features=())
    active_app.set(app)
    timer = FrameTimer(TARGET, PERIOD, callback=tick, pause=True)
    timer._start()
    return timer


async def test_changes_at_one_time_make_one_frame() -> None:
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        timer.pause()

    timer = timer_of(tick)
    await asyncio.sleep(2 * PERIOD)
    assert ticks == []
    timer.resume()
    timer.resume()
    await asyncio.sleep(5 * PERIOD)
    assert ticks == [1]
    timer.stop()


async def test_what_was_painted_otherwise_meanwhile_is_not_painted_again() -> None:
    ticks: list[int] = []
    timer = timer_of(lambda: ticks.append(1))
    timer.resume()
    await asyncio.sleep(0)
    timer.pause()
    await asyncio.sleep(5 * PERIOD)
    assert ticks == []
    timer.stop()


async def test_a_frame_that_took_long_leaves_as_much_time_to_everything_else() -> None:
    ticks: list[float] = []
    long = 5 * PERIOD

    def tick() -> None:
        ticks.append(time.monotonic())
        time.sleep(long)
        timer.pause()
        if len(ticks) < 2:
            timer.resume()

    timer = timer_of(tick)
    timer.resume()
    async with asyncio.timeout(10):
        while len(ticks) < 2:
            await asyncio.sleep(GRACE)
    assert ticks[1] - ticks[0] >= 2 * long
    timer.stop()
