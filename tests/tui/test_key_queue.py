"""Keys that arrive in one packet have their effect one after another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from textual import events
from textual.widgets import Input
from tui.frames import running, settled, text

from nsys_tui.ui.runtime import key_input
from nsys_tui.ui.screens.timeline.screen import TimelineScreen

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

NAMES = {"/": "slash", "\r": "enter", "\x1b": "escape"}


async def typed(pilot: Pilot[int], keys: str) -> None:
    """All keys at once, as a terminal sends what was pasted or came over a slow line."""
    for key in keys:
        character = key if key.isprintable() else None
        pilot.app.post_message(events.Key(NAMES.get(key, key), character))
    await settled(pilot)


@pytest.fixture(autouse=True)
def _no_late_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key may need the timer."""
    monkeypatch.setattr(key_input, "LATE", 1e6)


@pytest.mark.parametrize("screen", ["2", "3", "4"])
async def test_a_word_typed_with_the_slash_is_in_the_box(small: Path, screen: str) -> None:
    async with running(small) as pilot:
        await typed(pilot, f"{screen}/wasd0")
        assert isinstance(pilot.app.focused, Input)
        assert pilot.app.focused.value == "wasd0"


async def test_a_dialog_gets_what_was_typed_with_its_key(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await typed(pilot, "2g50%\r")
        assert app.state.cursor.time == sum(app.session.extent) // 2
        assert app.screen is app.front


async def test_a_busy_machine_gives_no_key_to_what_is_below_the_dialog(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the queue looks again before the dialog is open; here it looks all the time."""
    opens = TimelineScreen.action_timeline_goto

    async def slowly(screen: TimelineScreen) -> None:
        for _ in range(500):
            await asyncio.sleep(0)
        opens(screen)

    monkeypatch.setattr(key_input, "LATE", 1e-3)
    monkeypatch.setattr(TimelineScreen, "action_timeline_goto", slowly)
    async with running(small) as pilot:
        app: Any = pilot.app
        await typed(pilot, "2g50%\r")
        assert app.state.cursor.time == sum(app.session.extent) // 2
        assert app.screen is app.front


async def test_keys_after_a_dialog_go_to_the_screen_again(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await typed(pilot, "2mag50%\r?\x1bww")
        assert app.screen is app.front
        assert "a" in app.state.marks
        start, end = app.session.extent
        assert app.state.window[1] - app.state.window[0] < (end - start) / 2
        assert "Help" not in text(pilot)


async def test_a_key_whose_widget_is_gone_keeps_no_other_waiting(small: Path) -> None:
    async with running(small) as pilot:
        await typed(pilot, "?\x1b")
        await typed(pilot, "2")
        await typed(pilot, "'\x1b")
        await typed(pilot, "3")
        assert "[3 Kern" in text(pilot)
