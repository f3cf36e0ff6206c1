#!/usr/bin/env python3
"""Takes the pictures of README and docs: the tour of the demo report, screen by screen.

    python demo/pictures.py     # writes docs/pictures/*.svg again

Each picture carries the text of its screen, by which a test tells whether it is still true.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.terminal_theme import SVG_EXPORT_THEME  # noqa: E402

from nsys_tui.config import Config, DisplayConfig  # noqa: E402
from nsys_tui.demo.report import make_report  # noqa: E402
from nsys_tui.reader import open_report  # noqa: E402
from nsys_tui.ui.printed import screen_rows  # noqa: E402
from nsys_tui.ui.terminal import Colours, Terminal  # noqa: E402
from nsys_tui.ui.tour import STOPS, Stop, TourApp  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = ROOT / "docs" / "pictures"
SIZE = (100, 34)
STILLS = {"overview": 1, "stalls": 2, "timeline": 3, "steps": 5, "stacks": 7}
"""Pictures of single screens, by the number of the stop."""
CELL = (12.2, 24.4)
"""Width and height that Rich draws a cell with."""
SECONDS = 4
"""That each screen of the animation stays."""
BODY = "{styles}\x00{lines}\x00{backgrounds}\x00{matrix}\x00{width} {height}"


@dataclass(frozen=True)
class Shot:
    """One screen: its text, and Rich's drawing of it."""

    text: str
    styles: str
    body: str


def shots(size: tuple[int, int] = SIZE) -> list[Shot]:
    """All stops of the tour, with their captions."""
    found: list[Shot] = []

    async def take(app: TourApp, _: Stop) -> None:
        number = len(found)
        found.append(_shot(app, f"f{number}"))

    with tempfile.TemporaryDirectory() as folder, _plain_places(folder):
        path = make_report(Path(folder) / "demo.sqlite").report
        app = TourApp(
            [path],
            lambda path, progress: open_report(path, use_cache=False, progress=progress),
            stay=take,
            config=Config(display=DisplayConfig(theme="dark")),
            terminal=Terminal(Colours.TRUE, ascii=False, app=True, dark=True, reasons={}),
            use_cache=False,
        )
        app.run(headless=True, size=size, mouse=False, auto_pilot=_until_done)
    assert len(found) == len(STOPS), "the tour ended early"
    return found


async def _until_done(pilot: Any) -> None:
    """Leaves when the tour has ended."""
    while pilot.app.touring:
        await pilot.pause(0.05)
    pilot.app.exit()


@contextmanager
def _plain_places(folder: str) -> Iterator[None]:
    """Nothing of this machine shows or is written to."""
    names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, folder))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _shot(app: TourApp, prefix: str) -> Shot:
    width, height = app.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
        safe_box=False,
    )
    console.print(app.screen._compositor.render_update(full=True))
    drawn = console.export_svg(title="", theme=SVG_EXPORT_THEME, code_format=BODY, unique_id=prefix)
    styles, _, backgrounds, matrix, _ = drawn.split("\x00")
    matrix = re.sub(r' clip-path="[^"]*"', "", matrix)
    text = "\n".join(row.rstrip() for row in screen_rows(app))
    return Shot(text, styles, backgrounds + matrix)


def page(*taken: Shot) -> str:
    """One picture; several shots follow each other, for ever."""
    columns, rows = SIZE
    width, height = round(columns * CELL[0], 1), round(rows * CELL[1], 1)
    groups = "\n".join(
        f'<g class="shot"><desc>{escape(shot.text)}</desc>\n{shot.body}</g>' for shot in taken
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">\n<style>\n'
        "text{font:21px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}\n"
        + (_one_by_one(len(taken)) if len(taken) > 1 else "")
        + "".join(shot.styles for shot in taken)
        + f'</style>\n<rect width="100%" height="100%" fill="#101014"/>\n{groups}\n</svg>\n'
    )


def _one_by_one(count: int) -> str:
    """Styles by which shots take turns; who wants no motion sees the first."""
    turns = "".join(
        f".shot:nth-of-type({i + 1}){{animation-delay:{i * SECONDS}s}}" for i in range(count)
    )
    return (
        f".shot{{visibility:hidden;animation:show {count * SECONDS}s step-end infinite}}"
        f"@keyframes show{{0%{{visibility:visible}}{100 / count:.4f}%{{visibility:hidden}}}}{turns}"
        "@media(prefers-reduced-motion:reduce){.shot{animation:none}"
        ".shot:first-of-type{visibility:visible}}\n"
    )


def texts(svg: str) -> list[str]:
    """The screens that a picture tells of."""
    return [unescape(text) for text in re.findall(r"<desc>(.*?)</desc>", svg, re.DOTALL)]


def pictures() -> dict[str, str]:
    """Every picture by its file name."""
    taken = shots()
    stills = {f"{name}.svg": page(taken[number - 1]) for name, number in STILLS.items()}
    return {"tour.svg": page(*taken), **stills}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, svg in pictures().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
        print(f"{name}: {len(svg.encode()) / 1000:.0f} kB")
