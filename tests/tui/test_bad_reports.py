"""The app on damaged and strange reports: a plain message or a calm screen, and nothing breaks."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from demo_making import make_report
from synth import Synth
from tui.frames import running, settled, text

from nsys_tui.errors import UnreadableReportError
from nsys_tui.ui.widgets.tree.tree import VirtualTree

if TYPE_CHECKING:
    from pathlib import Path

SCREENS: Final = (*"1234567", "f7", "f8")
DIALOGS: Final = ("question_mark", "ctrl+p", "apostrophe", "C")
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
            if screen in "24":
                for dialog in DIALOGS:
                    await pilot.press(dialog)
                    await settled(pilot)
                    seen.append(text(pilot))
                    await pilot.press("escape")
        assert pilot.app.error is None  # type: ignore[attr-defined]
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
    assert not VirtualTree().finder("a")().any()


async def test_every_text_of_a_report_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    path = make_report(tmp_path / "demo.sqlite", steps=2).report
    with closing(sqlite3.connect(path)) as db:
        columns = db.execute(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
            " WHERE m.type = 'table' AND c.type LIKE '%TEXT%' AND c.name NOT IN ('name', 'label')"
        ).fetchall()
        for table, column in columns:
            db.execute(
                f'UPDATE OR IGNORE "{table}" SET "{column}" = ? || "{column}"',
                ("a\x1b[31mred\x07[/]\u202e\x9b2J",),
            )
        db.commit()
    seen = await walk(path)
    assert NOT_SHOWN.findall(seen) == []
    assert "[31mred" in seen


async def test_thousands_of_threads_leave_the_app_running(tmp_path: Path) -> None:
    made = Synth(tmp_path / "threads.sqlite").process(100, "train").gpu(0)
    for thread in range(2_000):
        at = thread * 100
        made.thread(1000 + thread, f"worker {thread}").nvtx("step", at, at + 90, tid=1000 + thread)
        made.launch("gemm", call=(at, at + 10), gpu=(at + 20, at + 80), tid=1000 + thread)
    assert "2,000" in await walk(made.write())


async def test_keys_of_the_list_do_nothing_where_there_are_no_ranges(tmp_path: Path) -> None:
    made = Synth(tmp_path / "kernels.sqlite").process(100, "train").gpu(0)
    async with running(made.kernel("gemm", 0, 100).write()) as pilot:
        await pilot.press("4", "i")
        await settled(pilot)
        keys = ("slash", "a", "enter", "n", "escape", "s", "F", "escape", "greater_than_sign")
        for key in (*keys, "y", "Y", "enter", "slash", "a", "ctrl+f", "escape", "i"):
            await pilot.press(key)
            await settled(pilot)
        assert pilot.app.error is None  # type: ignore[attr-defined]
        assert "no NVTX ranges" in text(pilot)
