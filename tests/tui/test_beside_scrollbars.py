"""A scrollbar takes a column: nothing is drawn under it."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

from tui.frames import rows, running, settled

if TYPE_CHECKING:
    from pathlib import Path


async def test_lines_are_folded_beside_it(small: Path) -> None:
    said = ascii_lowercase * 20
    async with running(small, size=(80, 24)) as pilot:
        await pilot.press("9")
        await settled(pilot)
        screen = pilot.app.screen
        for _ in range(2):
            screen.live.say(said)  # type: ignore[attr-defined]
            screen.show_log()  # type: ignore[attr-defined]
            await settled(pilot)
        assert screen.query_one("#log").show_vertical_scrollbar
        shown = [row[1:78] for row in rows(pilot) if row[1:27].isalpha() and row[0] == "|"]
    assert len(shown) > 1
    assert said.endswith("".join(shown).strip())


async def test_the_last_column_of_a_tree_is_whole(small: Path) -> None:
    async with running(small, size=(80, 24)) as pilot:
        await pilot.press("4")
        await settled(pilot)
        tree = pilot.app.screen.query_one("#tree")
        before = tree.render_line(1).text  # type: ignore[attr-defined]
        tree.styles.overflow_y = "scroll"
        await settled(pilot)
        after = tree.render_line(1).text  # type: ignore[attr-defined]
    assert len(after) == len(before) - 1
    assert after.split()[-1] == before.split()[-1]
