"""The display panel: what is in force, where it came from, and what it writes."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest
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


NOTE: Final = " * 1 note (C: all): CUPTI_ACTIVITY_KIND_KERNEL has no column deviceId"


async def test_what_is_not_believed_is_said_on_every_screen_and_in_full_in_the_panel(
    small: Path, tmp_path: Path
) -> None:
    path = tmp_path / "strange.sqlite"
    shutil.copyfile(small, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME deviceId TO place")
    async with running(path, size=(120, 40)) as pilot:
        for key in "1234567":
            await pilot.press(key)
            await settled(pilot)
            assert any(NOTE in row for row in rows(pilot)), key
        await pilot.press("1")
        await settled(pilot)
        assert any("GPU work is not known" in row for row in rows(pilot))
        assert not any("compute 8" in row for row in rows(pilot))
        await pilot.press("C")
        await settled(pilot)
        panel = " ".join(" ".join(row[-41:-2] for row in rows(pilot)).split())
        assert "no GPU work is shown" in panel
    async with running(small) as pilot:
        assert not any("note (C" in row for row in rows(pilot))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_an_unknown_generation_is_said_on_every_screen(
    small: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "newer.sqlite"
    shutil.copyfile(small, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DELETE FROM META_DATA_EXPORT")
        made = [("EXPORT_PRODUCT_VERSION", "2099.1.1"), ("EXPORT_SCHEMA_VERSION", "9.0.0")]
        db.executemany("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", made)
    said = " * 1 note (C: all): nsys 2099.1.1 is newer than what this version knows"
    async with running(path, size=size) as pilot:
        for key in "123457":  # of 6 a toast covers the line
            await pilot.press(key)
            await settled(pilot)
            assert any(row.startswith(said) for row in rows(pilot)), key
