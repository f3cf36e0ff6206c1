from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest
from textual.app import App

from nsys_tui.ui import garbage

if TYPE_CHECKING:
    from collections.abc import Iterator


class Knot:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    was = gc.get_threshold()
    yield
    gc.set_threshold(*was)
    gc.enable()
    gc.unfreeze()


async def test_a_pause_collects_what_keys_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "PAUSE", 0.05)
    garbage.hold()
    assert not gc.isenabled()
    app: App[None] = App()
    async with app.run_test():
        pause = garbage.settle(app)
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        left = weakref.ref(Knot())
        for _ in range(100):
            await asyncio.sleep(0.05)
            if left() is None:
                break
        assert left() is None
        later = weakref.ref(Knot())
        await asyncio.sleep(0.2)
        assert later() is not None  # no key since: nothing to collect
        pause.reset()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if later() is None:
                break
        assert later() is None
