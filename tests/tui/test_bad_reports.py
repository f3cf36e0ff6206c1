"""The app on damaged and strange reports: a plain message or a calm screen, and nothing breaks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from synth import Synth
from tui.frames import running, settled, text

from nsys_tui.errors import UnreadableReportError
from nsys_tui.ui.widgets.tree.tree import VirtualTree

if TYPE_CHECKING:
    from pathlib import Path

SCREENS: Final = "12345"
LAST: Final = 2**63 - 1
NOT_SHOWN: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


async def walk(path: Path) -> str:
    """All screens one after the other, with a search on each; returns all that was seen."""
    seen = []
    async with running(path) as pilot:
        assert pilot.app.fatal is None  # type: ignore[attr-defined]
        for screen in SCREENS:
            await pilot.press(screen)
            await settled(pilot)
            seen.append(text(pilot))
            await pilot.press("down", "plus", "slash", "a", "escape", "escape")
        await settled(pilot)
    return "\n".join(seen)


async def test_names_of_every_kind_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    names = (
        "a\x1b[31mred\x07", "[red]markup[/red]", "[/]", "\u202egnp.exe", "wide \u5bbd \U0001f525",
        "x" * 100_000, "line\nbreak\ttab\r", "\x9b31m", "",
    )  # fmt: skip
    made = Synth(tmp_path / "evil.sqlite").process(100, "p\x1b[5m").gpu(0, name="GPU\x1b[2J[b]")
    for place, name in enumerate(names):
        at = place * 1000
        made.nvtx(name, at, at + 900)
        made.launch(name, call=(at + 10, at + 20), gpu=(at + 100, at + 400))
    seen = await walk(made.write())
    assert NOT_SHOWN.findall(seen) == []
    assert "[red]markup[/red]" in seen


async def test_absurd_times_and_open_ranges_leave_the_app_running(tmp_path: Path) -> None:
    made = Synth(tmp_path / "times.sqlite").process(100, "train").gpu(0)
    for start, end in ((-LAST - 1, LAST), (LAST, LAST), (1000, 10)):
        made.nvtx("step", start, end).launch("gemm", call=(start, end), gpu=(start, end))
    assert "gemm" in await walk(made.nvtx("open", 5, None).write())


async def test_a_file_that_cannot_be_read_ends_the_app_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    path.write_bytes(b"")
    async with running(path) as pilot:
        fatal = pilot.app.fatal  # type: ignore[attr-defined]
        assert isinstance(fatal, UnreadableReportError)
        assert "empty.sqlite" in str(fatal)


async def test_a_search_in_a_tree_that_was_never_filled_finds_nothing() -> None:
    assert not VirtualTree()._found("a").any()
