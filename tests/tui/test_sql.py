"""The SQL screen: ask, complete, cancel, see errors in place, go on to the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hostile_sql import HOSTILE, UNSTOPPABLE
from synth import Synth
from tui.frames import running, settled, text

from nsys_tui.render.spark import bar_column
from nsys_tui.ui.screens.sql.editor import Editor, asked_before
from nsys_tui.ui.screens.sql.screen import SqlScreen

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

ENDLESS = "with recursive a(x) as (select 1 union all select x + 1 from a) select max(x) from a"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = Synth(tmp_path / "r.sqlite").launch("gemm()", (10, 20), (20, 40))
    return made.launch("relu()", (110, 120), (130, 190)).write()


async def asked(pilot: Pilot[int], query: str) -> None:
    """Goes to the screen, writes a query and asks it."""
    await pilot.press("8")
    await settled(pilot)
    pilot.app.screen.query_one(Editor).put(query)
    await pilot.press("f5")


async def test_a_question_is_answered_remembered_and_leads_to_the_timeline(path: Path) -> None:
    query = "select name, start_ns, duration_ns from kernels order by 3 desc"
    async with running(path) as pilot:
        await asked(pilot, query)
        await settled(pilot)
        shown = text(pilot)
        assert shown.index("relu") < shown.index("gemm")
        assert "60 ns" in shown
        assert asked_before() == [query]
        await pilot.press("enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.session.state.window.start <= 130 < 190 <= app.session.state.window.end
        await pilot.press("8", "f3", "enter")
        await settled(pilot)
        assert "relu" in text(pilot)


async def test_typing_completes_and_keys_of_screens_are_letters_there(path: Path) -> None:
    async with running(path) as pilot:
        await pilot.press("8")
        await settled(pilot)
        await pilot.press("i", *"select 3 from ker", "tab")
        await settled(pilot)
        assert pilot.app.screen.query_one(Editor).text == "select 3 from kernels"
        await pilot.press("ctrl+j")
        await settled(pilot)
        assert isinstance(pilot.app.screen, SqlScreen)
        assert "2 rows" in text(pilot)


async def test_an_error_stands_below_the_query_and_the_cursor_at_its_place(path: Path) -> None:
    async with running(path) as pilot:
        await asked(pilot, "select name,\n  nosuch from kernels")
        await settled(pilot)
        assert "no such column: nosuch in line 2, column 3" in text(pilot)
        editor = pilot.app.screen.query_one(Editor)
        assert editor.cursor_location == (1, 2)
        assert editor.has_focus
        editor.put("drop table StringIds")
        await pilot.press("f5")
        await settled(pilot)
        assert "not allowed: writing" in text(pilot)


async def test_beside_an_error_nothing_is_said_of_the_answer_before(path: Path) -> None:
    many = "with recursive n(i) as (select 1 union all select i + 1 from n limit 200000) select i"
    async with running(path) as pilot:
        await asked(pilot, f"{many} from n")
        await settled(pilot)
        assert "there are more" in text(pilot)
        await asked(pilot, "select nosuch")
        await settled(pilot)
        assert "no answer: see above" in text(pilot)
        assert "there are more" not in text(pilot)


async def test_escape_cancels_and_the_app_answers_meanwhile(path: Path) -> None:
    async with running(path) as pilot:
        await asked(pilot, ENDLESS)
        screen: Any = pilot.app.screen
        assert screen.is_making
        await pilot.press("f2", "escape")
        assert screen.is_making
        pilot.app.session.cancel.set()  # type: ignore[attr-defined]
        await settled(pilot)
        assert not screen.is_making
        assert "cancelled" in text(pilot)


async def test_without_an_answer_there_is_nothing_to_draw(path: Path) -> None:
    async with running(path) as pilot:
        await pilot.press("8", "f4")
        await settled(pilot)
        assert "no answer to draw" in text(pilot)
        assert " Chart " not in text(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert pilot.app.screen.SCREEN == "overview"  # type: ignore[attr-defined]


async def test_a_chart_and_a_snippet(path: Path) -> None:
    async with running(path, size=(100, 40)) as pilot:
        await asked(pilot, "select start_ns, duration_ns from kernels")
        await settled(pilot)
        await pilot.press("right", "f4")
        await settled(pilot)
        assert "duration_ns of each row by start_ns" in text(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert pilot.app.screen.SCREEN == "sql", "the chart goes first"  # type: ignore[attr-defined]
        assert "duration_ns of each row by start_ns" not in text(pilot)
        await pilot.press("f2", *"longest", "enter")
        await settled(pilot)
        assert "ORDER BY duration_ns DESC" in text(pilot)
        assert "2 rows" in text(pilot)


@pytest.mark.parametrize(
    ("query", "heading"),
    [
        ("values (1, 5), (0, -3), (2, NULL)", "column2 of each row by column1 (2 empty or below 0"),
        ("values ('a', 5), ('b', 0)", "column2 of each row -"),
    ],
)
async def test_a_chart_tells_how_it_is_ordered_and_what_has_no_bar(
    path: Path, query: str, heading: str
) -> None:
    async with running(path, size=(100, 40)) as pilot:
        await asked(pilot, query)
        await pilot.press("right", "f4")
        await settled(pilot)
        assert heading in text(pilot)


async def test_a_click_on_a_bar_goes_to_its_row(path: Path) -> None:
    async with running(path, size=(100, 40)) as pilot:
        app: Any = pilot.app
        await asked(pilot, "values (3, 5), (1, 4), (2, 9)")
        await pilot.press("right", "f4")
        await settled(pilot)
        for bar, row in enumerate((1, 2, 0)):
            await pilot.click("#chart", offset=(1 + bar_column(bar, 3, 98), 2))
            await settled(pilot)
            assert app.front.table.row == row
        await pilot.click("#chart", offset=(1 + bar_column(3, 3, 98), 2))
        await settled(pilot)
        assert app.front.table.row == 0, "no bar stands there"


async def test_nothing_hostile_is_answered_and_the_screen_goes_on(path: Path) -> None:
    before = path.read_bytes()
    async with running(path) as pilot:
        for query in HOSTILE[::4]:
            await asked(pilot, query)
            await settled(pilot)
            screen: Any = pilot.app.screen
            assert screen.result.error is not None, query
        await asked(pilot, "select name from kernels")
        await settled(pilot)
        assert "2 rows" in text(pilot)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_call_that_cannot_be_stopped_lets_the_screen_go(path: Path) -> None:
    async with running(path) as pilot:
        await asked(pilot, UNSTOPPABLE)
        screen: Any = pilot.app.screen
        pilot.app.session.cancel.set()  # type: ignore[attr-defined]
        await settled(pilot)
        assert not screen.is_making
        assert "cancelled" in text(pilot)
        pilot.app.session.cancel.clear()  # type: ignore[attr-defined]
        await asked(pilot, "select name from kernels")
        await settled(pilot)
        assert "2 rows" in text(pilot)


async def test_a_row_lands_on_its_own_event_stream_or_gpu(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1)
    made.launch("gemm()", (10, 20), (1000, 4000), stream=7)
    made.launch("other()", (30, 40), (1000, 4000), device=1, context=2, stream=15)
    made.launch("relu()", (50, 60), (50_000, 60_000), device=1, context=2, stream=15)
    made.launch("tail()", (70, 80), (90_000, 99_000), device=1, context=2, stream=16).write()
    rows = {
        "start_ns, duration_ns, device, stream from kernels where name = 'other'": (1, 15, True),
        "start_ns, end_ns, pid from kernels where name = 'tail'": (1, 16, True),
        "min(start_ns) as start_ns, max(end_ns) as end_ns, device, stream from kernels"
        " where stream = 15": (1, 15, False),
        "start_ns, idle_ns, device from stalls where device = 1": (1, None, False),
        "start_ns, duration_ns from kernels where name = 'gemm'": (0, None, False),
    }
    async with running(tmp_path / "r.sqlite") as pilot:
        for query, (device, stream, selects) in rows.items():
            await asked(pilot, f"select {query}")
            await settled(pilot)
            await pilot.press("enter")
            await settled(pilot)
            screen: Any = pilot.app.screen
            track = screen.model.row
            assert screen.SCREEN == "timeline"
            assert track.device == device, query
            assert stream is None or f"str {stream}" in track.title, query
            assert (screen.model.picked is not None) == selects, query


async def test_another_question_stands_in_its_own_order(path: Path) -> None:
    async with running(path) as pilot:
        app: Any = pilot.app
        await asked(pilot, "select start_ns, name from kernels order by 1")
        await settled(pilot)
        await pilot.press("s")
        await settled(pilot)
        table = app.screen.table
        assert table.arrangement.sort == "start_ns"
        await pilot.press("f5")
        await settled(pilot)
        assert table.arrangement.sort == "start_ns"
        await asked(pilot, "select start_ns from kernels order by 1")
        await settled(pilot)
        assert not table.arrangement.sort
