"""Drives the timeline in tests: every key is seen before the next one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui.frames import rows, running, settled, text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["frame", "rows", "running", "settled", "text"]


async def frame(path: Path, size: tuple[int, int], *keys: str, **options: Any) -> list[str]:
    """The rows after some keys; the first of them goes to the timeline."""
    async with running(path, size=size, **options) as pilot:
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        return rows(pilot)
