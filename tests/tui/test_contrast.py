"""Words and marks can be read in every theme, by the colours that reach the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from tui.frames import FANCY, running, settled

from nsys_tui.render.colour import contrast
from nsys_tui.render.palette import theme_names
from nsys_tui.ui.theming import find_theme

if TYPE_CHECKING:
    from collections.abc import Iterator

SCENES = (
    "1",
    "2 f tab",
    "2 i",
    "3",
    "4",
    "5",
    "6",
    "f7",
    "question_mark",
    "3 e home",
    "8 i s home",
)
THEMES = [name for name in theme_names(Path("none")) if find_theme(name).kind == "rgb"]


@pytest.mark.parametrize("keys", SCENES)
async def test_everything_on_a_screen_can_be_read(keys: str, tmp_path: Path) -> None:
    async with running(make(tmp_path, steps=2).path, terminal=FANCY) as pilot:
        app: Any = pilot.app
        for key in keys.split():
            await pilot.press(key)
            await settled(pilot)
        for theme in THEMES:
            app.use_theme(theme)
            await settled(pilot)
            assert not list(_faint(app)), (theme, keys)


def _faint(app: Any) -> Iterator[str]:
    for strip in app.screen._compositor.render_strips():
        for text, look, _ in strip:
            if text.isspace() or look is None or look.color is None or look.bgcolor is None:
                continue
            colours = [c.get_truecolor().hex for c in (look.color, look.bgcolor)]
            least = 4.5 if any(char.isalnum() for char in text) else 3.0
            if contrast(*colours) < least:
                yield f"{text!r} in {colours[0]} on {colours[1]}"
