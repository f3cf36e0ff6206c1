"""Links copied in the app lead back to what they were copied from; the page is written by a key."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, cast

import pytest
from demo_making import make
from tui.frames import running, settled, text

from nsys_tui.analysis.links import parse_place, split_link
from nsys_tui.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from nsys_tui.analysis.links import Place
    from nsys_tui.ui.app import NsysTuiApp


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("links")).path


async def press(pilot: Pilot[int], *keys: str) -> str:
    await pilot.press(*keys)
    await settled(pilot)
    await settled(pilot)
    return text(pilot)


def place_of(report: Path, link: str) -> Place:
    name, place = split_link(link, lambda name: name == str(report))
    assert name == str(report)
    assert place is not None
    return place


async def test_rows_are_copied_as_links(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    async with running(report, size=(120, 40)) as pilot:
        monkeypatch.setattr(pilot.app, "copy", lambda text, _: copied.append(text))
        for screen in "532":
            await press(pilot, screen)
            await press(pilot, "ctrl+y")
    gap, kernel, whole = (place_of(report, link) for link in copied)
    assert gap.window is not None
    assert gap.screen == kernel.screen == whole.screen == "2"
    start, end = gap.window
    connection = sqlite3.connect(report)
    query = "select count(*) from CUPTI_ACTIVITY_KIND_{} where deviceId = 0 and {} in (?, ?)"
    touching = sum(
        connection.execute(query.format(table, edge), gap.window).fetchone()[0]
        for table in ("KERNEL", "MEMCPY", "MEMSET")
        for edge in ("start", "end")
    )
    assert end - start > 50_000_000, "the planted stall is the longest"
    assert touching >= 2, "work ends where it begins, and begins where it ends"
    assert kernel.window is not None
    assert kernel.device is not None
    query = "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL where start = ? and end = ?"
    assert connection.execute(query, kernel.window).fetchone() == (1,)


async def test_ranges_and_changes_are_copied_as_links(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    other = tmp_path / "other.sqlite"
    other.write_bytes(report.read_bytes())
    async with running(report, other, size=(120, 40)) as pilot:
        monkeypatch.setattr(pilot.app, "copy", lambda text, _: copied.append(text))
        for screen in "47":
            await press(pilot, screen)
            await press(pilot, "down", "ctrl+y")
    ranged, kernel = (place_of(report, link) for link in copied)
    assert ranged.window is not None
    assert kernel.window is not None
    connection = sqlite3.connect(report)
    query = "select count(*) from NVTX_EVENTS where start = ? and end = ?"
    assert connection.execute(query, ranged.window).fetchone()[0] >= 1
    query = "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL where start = ? and end = ?"
    assert connection.execute(query, kernel.window).fetchone() == (1,)
    assert kernel.device is not None


async def test_a_link_opens_its_window_and_its_gpu(report: Path) -> None:
    place = parse_place("910.9ms-966.2ms/GPU1/2")
    assert place is not None
    async with running(report, size=(120, 40), place=place) as pilot:
        app = cast("NsysTuiApp", pilot.app)
        assert app.front is not None
        assert app.front.SCREEN == "timeline"
        assert "0.91090-0.96620" in text(pilot)
        assert app.state.window == (910_900_000, 966_200_000)
        assert app.state.cursor.lane == "gpu:1"


async def test_the_page_is_written_by_a_key(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(report, size=(120, 40)) as pilot:
        assert "Write a page about the report" in await press(pilot, "ctrl+r")
        said = await press(pilot, "enter")
        assert "written: " in said
        assert "demo.html" in said
    assert "<h1>demo.sqlite</h1>" in (tmp_path / "demo.html").read_text("utf-8")


def test_without_a_terminal_a_link_prints_its_part(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{report}#0.9s-1s/GPU0/2"]) == 0
    assert "window    900.0 ms to 1.000 s" in capsys.readouterr().out
