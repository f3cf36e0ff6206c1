"""Keys at random on every screen: no exception reaches the error bar or ends the app.

Keys and sizes follow from the screen's name alone, so a failure comes again.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest
from demo_making import make_report
from tui.frames import running, settled

from nsys_tui.errors import NsysTuiError
from nsys_tui.ui import host
from nsys_tui.ui.keymap import GLOBAL, SCREENS, ScreenSpec, normal_key
from nsys_tui.ui.loader import unexpected

if TYPE_CHECKING:
    from pathlib import Path

KEYS: Final = 25
"""Thousands were tried when this was written; a longer search needs only a higher number."""
TOGETHER: Final = 8
"""Most keys at a time; then the app may come to rest, or not."""
SIZES: Final = [(80, 24), (120, 30), (160, 45), (60, 20)]
MOVES: Final = (
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "space", "ctrl+f"),
    *("enter", "escape", "tab", "a", "1", "."),
)
LEFT_OUT: Final = ("app.quit", "view.capture", "capture.again")
"""The app goes on, and captures nothing."""
WALKED: Final = [spec for spec in SCREENS if spec.name != "capture"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("random")
    return [make_report(folder / f"{steps}.sqlite", steps=steps).report for steps in (2, 3)]


def keys_of(spec: ScreenSpec) -> list[str]:
    """The screen's own keys and those to move by more often than those of every screen."""
    own = [key for action in spec.actions() for key in action.keys]
    every = [key for action in GLOBAL if action.id not in LEFT_OUT for key in action.keys]
    barred = {key for action in GLOBAL if action.id in LEFT_OUT for key in action.keys}
    keys = [*own, *own, *own, *MOVES, *MOVES, *every]
    return [normal_key(key) for key in keys if key not in barred]


@pytest.mark.parametrize("spec", WALKED, ids=lambda spec: spec.name)
async def test_no_key_at_random_is_a_fault(
    reports: list[Path], spec: ScreenSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # what is exported goes there
    faults: list[Exception] = []

    def noted(error: Exception) -> NsysTuiError:
        if not isinstance(error, NsysTuiError):
            faults.append(error)
        return unexpected(error)

    monkeypatch.setattr(host, "unexpected", noted)
    rng = random.Random(spec.name)
    keys = keys_of(spec)
    pressed: list[str] = []
    async with running(*reports, size=rng.choice(SIZES)) as pilot:
        app: Any = pilot.app
        while len(pressed) < KEYS:
            if app.current_mode != spec.name and rng.random() < 0.3:
                await pilot.press("escape", "escape")
                app.show(spec.name)
            some = [rng.choice(keys) for _ in range(rng.randint(1, TOGETHER))]
            pressed += some
            await pilot.press(*some)
            if rng.random() < 0.1:
                await settled(pilot)
            if rng.random() < 0.05:
                await pilot.resize_terminal(*rng.choice(SIZES))
            assert not faults, pressed
            assert app.is_running, pressed
        await settled(pilot)
        assert not faults, pressed
