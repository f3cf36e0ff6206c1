from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from tui.frames import FANCY, settled

from demo.pictures import FOLDER, SIZE, STILLS, Shot, shots, texts
from nsys_tui.reader import open_report
from nsys_tui.ui.tour import STOPS, Stop, TourApp

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def taken() -> list[Shot]:
    return shots(SIZE)


@pytest.mark.parametrize("size", [(80, 24), SIZE], ids=["80x24", "picture"])
def test_every_stop_shows_its_caption_and_what_it_tells(
    size: tuple[int, int], taken: list[Shot]
) -> None:
    seen = taken if size == SIZE else shots(size)
    for number, (stop, shot) in enumerate(zip(STOPS, seen, strict=True), 1):
        assert f" {number}/{len(STOPS)}  {stop.caption}\n" in shot.text, shot.text
        for words in stop.evidence:
            assert words in shot.text, shot.text


def written(svg: str) -> str:
    """The letters that a picture draws, without blanks."""
    body = re.sub(r"<(desc|style)>.*?</\1>", "", svg, flags=re.DOTALL)
    return re.sub(r"\s", "", unescape(re.sub(r"<[^>]*>", "", body)))


@pytest.mark.parametrize("name", ["tour", *STILLS])
def test_pictures_show_what_the_app_shows(name: str, taken: list[Shot]) -> None:
    """Where this fails on purpose, demo/pictures.py takes them again."""
    wanted = taken if name == "tour" else [taken[STILLS[name] - 1]]
    svg = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert "\f".join(texts(svg)) == "\f".join(shot.text for shot in wanted), (
        "meant so? .venv/bin/python demo/pictures.py takes the pictures again"
    )
    assert written(svg) == re.sub(r"\s", "", "".join(shot.text for shot in wanted))
    assert len(svg.encode()) < (1_000_000 if name == "tour" else 150_000)
    assert "://" not in svg.replace("http://www.w3.org/2000/svg", "")


async def test_escape_ends_the_tour_and_leaves_the_user_in_the_app(tmp_path: Path) -> None:
    path = make(tmp_path, steps=2).path
    arrived = asyncio.Event()

    async def stay(app: TourApp, stop: Stop) -> None:
        arrived.set()
        await app.on.wait()

    def opener(path: Path, progress: Any) -> Any:
        return open_report(path, use_cache=False, progress=progress)

    app = TourApp([path], opener, terminal=FANCY, stay=stay)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrived.wait()
        assert STOPS[0].caption in app.caption
        await pilot.press("7")
        assert app.current_mode == "overview", "the user's keys wait until the tour is over"
        await pilot.press("escape")
        await settled(pilot)
        assert (app.caption, app.current_mode) == ("", "overview")
        await pilot.press("3")
        await settled(pilot)
        assert app.current_mode == "kernels"
