"""Drives the timeline in tests: waits until its lanes are built one after the other."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textual.worker import WorkerCancelled
from tui.frames import rows, running, text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

__all__ = ["frame", "rows", "running", "settled", "text"]

PATIENCE = 30.0
"""Seconds after which a timeline that still works is taken to be stuck."""


async def settled(pilot: Pilot[int]) -> None:
    """Waits until nothing is being built, collected or drawn, twice in a row."""
    calm, deadline = 0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        screen: Any = pilot.app.front  # type: ignore[attr-defined]
        waiting = [getattr(getattr(screen, "builder", None), "busy", False)]
        waiting.append(getattr(getattr(screen, "canvas", None), "_waiting", False))
        calm = 0 if any(waiting) or len(pilot.app.workers) else calm + 1
        if calm == 2:
            return
    raise AssertionError(f"the timeline does not come to rest: {waiting}, {pilot.app.workers!r}")


async def frame(path: Path, size: tuple[int, int], *keys: str, **options: Any) -> list[str]:
    """The rows after some keys; the first of them goes to the timeline."""
    async with running(path, size=size, **options) as pilot:
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        return rows(pilot)
