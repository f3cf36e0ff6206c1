from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from synth import Synth
from textual.css.stylesheet import Stylesheet
from tui.frames import running, settled

from nsys_tui.ui.keymap import SCREENS, ScreenSpec

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def small(folder: Path) -> Path:
    made = Synth(folder / "r.sqlite").process(100, "train").gpu(0).nvtx("step", 0, 900)
    return made.launch("gemm", call=(10, 20), gpu=(100, 400)).write()


async def test_after_loading_the_other_screens_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    load = ScreenSpec.load

    def noted(spec: ScreenSpec) -> type:
        fetched.append(spec.name)
        return load(spec)

    monkeypatch.setattr(ScreenSpec, "load", noted)
    async with running(small(tmp_path)):
        for _ in range(200):
            if len(fetched) > len(SCREENS):
                break
            await asyncio.sleep(0.05)
    assert set(fetched) == {spec.name for spec in SCREENS}


async def test_a_switch_of_screens_reads_no_styles_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(small(tmp_path)) as pilot:
        read: list[Any] = []
        monkeypatch.setattr(Stylesheet, "reparse", lambda sheet: read.append(sheet))
        for key in "2341":
            await pilot.press(key)
            await settled(pilot)
        assert pilot.app.current_mode == "overview"
        assert read == []


async def test_a_theme_reaches_screens_that_are_built_and_screens_that_are_not(
    tmp_path: Path,
) -> None:
    async with running(small(tmp_path)) as pilot:
        app: Any = pilot.app
        await pilot.press("3")
        await pilot.press("1")
        app.use_theme("light")
        for key in "342":
            await pilot.press(key)
            await settled(pilot)
            wanted = app.get_css_variables()["background"]
            assert app.screen.styles.background.hex.lower() == wanted.lower()
