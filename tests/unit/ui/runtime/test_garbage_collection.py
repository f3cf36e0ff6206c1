from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest
from textual.app import App

from nsys_tui.ui.runtime import garbage_collection

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


async def gone(what: weakref.ref[Knot]) -> None:
    for _ in range(100):
        await asyncio.sleep(0.05)
        if what() is None:
            return
    raise AssertionError("never collected")


async def test_a_pause_collects_what_keys_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "PAUSE", 0.05)
    garbage_collection.hold()
    assert not gc.isenabled()
    app: App[None] = App()
    jobs = {1}
    async with app.run_test():
        pause = garbage_collection.settle(app, lambda: bool(jobs))
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        left = weakref.ref(Knot())
        await asyncio.sleep(0.2)
        assert left() is not None, "something is computed"
        jobs.clear()
        await gone(left)
        later = weakref.ref(Knot())
        await asyncio.sleep(0.2)
        assert later() is not None  # no key since: nothing to collect
        pause.reset()
        await gone(later)


def test_what_is_kept_is_left_out_and_still_freed_by_counting() -> None:
    kept: list[list[list[int]]] = [[[]] for _ in range(100)]
    knot = Knot()
    young = weakref.ref(Knot())
    before = gc.get_freeze_count()
    garbage_collection.keep()
    assert young() is None, "what is young is collected first"
    assert gc.get_freeze_count() > before + len(kept)
    tied, free = weakref.ref(knot), weakref.ref(lone := Lone())
    garbage_collection.keep()
    del knot, lone
    gc.collect()
    assert tied() is not None, "a cycle that was kept stays"
    assert free() is None


class Lone:
    """Refers to nothing."""


async def test_after_a_thaw_a_pause_frees_what_was_there_before_and_the_rest_is_left_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage_collection, "PAUSE", 0.05)
    garbage_collection.hold()
    early = Knot()
    app: App[None] = App()
    async with app.run_test():
        pause = garbage_collection.settle(app, lambda: False)
        left = weakref.ref(early)
        del early
        await asyncio.sleep(0.2)
        assert left() is not None
        garbage_collection.thaw()
        pause.reset()
        await gone(left)
        assert gc.get_freeze_count() > 0
