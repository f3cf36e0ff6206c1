"""The display panel: what is in force, where it came from, and what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui.frames import rows, running, settled

from nsys_tui.config import Config, load_config
from nsys_tui.state import ColourBy

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

FILE = """\
# mine
[display]
theme = "light"  # easier on the eyes

[keys]
preset = "vim"
"""


async def line(pilot: Pilot[int], label: str) -> str:
    await settled(pilot)
    found = next(row for row in rows(pilot) if f"{label:<15}" in row)
    return " ".join(found[found.index(label) :].split("|")[0].split())


async def test_it_tells_where_values_come_from_and_writes_one_without_touching_the_rest(
    small: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    config = load_config(path, environ={"NSYS_TUI_TIME": "ns"})
    async with running(small, config=config) as pilot:
        app: Any = pilot.app
        await pilot.press("2", "c", "C")
        assert await line(pilot, "colour by") == "colour by stream here"
        assert (await line(pilot, "theme")).startswith("theme light file")
        assert await line(pilot, "time") == "time ns environment"
        assert await line(pilot, "counters") == "counters blocks default"
        await pilot.press("w")
        assert await line(pilot, "colour by") == "colour by stream file"
        line_before = 'theme = "light"  # easier on the eyes\n'
        expected = FILE.replace(line_before, f'{line_before}colour_by = "stream"\n')
        assert path.read_text() == expected
        await pilot.press("right")
        assert await line(pilot, "colour by") == "colour by name here"
        await pilot.press("r")
        assert await line(pilot, "colour by") == "colour by stream file"
        await pilot.press("right", "escape")
        assert app.state.display.colour_by is ColourBy.NAME
    again = load_config(path, environ={})
    assert (again.display.colour_by, again.display.theme, again.keys.preset) == (
        "stream",
        "light",
        "vim",
    )


async def test_a_file_that_cannot_be_written_is_an_error_and_not_lost(
    small: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("display = 3 = 4")
    config = Config(path=path)
    async with running(small, config=config) as pilot:
        await pilot.press("C", "right", "w")
        await settled(pilot)
        assert path.read_text() == "display = 3 = 4"
        assert "not written" in "".join(rows(pilot))
