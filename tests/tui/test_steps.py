"""The steps screen: figures are those of plain arithmetic over the ranges of the file."""

from __future__ import annotations

import sqlite3
import statistics
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from synth import Synth
from tui.frames import rows, running, settled, text

from nsys_tui.render.spark import MARGIN, bar_column
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

FIRST_BAR = 1 + MARGIN
"""Column of the first bar in its frame."""
STEPS = """
    select coalesce(n.text, s.value), n.start, n.end from NVTX_EVENTS n
    left join StringIds s on s.id = n.textId
    where coalesce(n.text, s.value) like 'Train step%' and n.globalTid = (
        select globalTid from NVTX_EVENTS where start = ?
    ) order by n.start
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), steps=10).path


def steps_in_sql(path: Path, first: int) -> list[tuple[str, int, int]]:
    """Name, start and time of each closed step of the thread whose first one begins then.

    A step lasts until the next one starts.
    """
    database = sqlite3.connect(path)
    found = database.execute(STEPS, (first,)).fetchall()
    database.close()
    ends = [*(start for _, start, _ in found[1:]), found[-1][2]]
    return [
        (name, start, end - start)
        for (name, start, own), end in zip(found, ends, strict=True)
        if own is not None
    ]


def expected_of(screen: Any, path: Path) -> list[tuple[str, int, int]]:
    """The same for the thread that the screen took."""
    return steps_in_sql(path, int(screen.answer.table.iterations.start[0]))


async def ready(pilot: Pilot[int], *keys: str) -> Any:
    for key in ("4", "t", *keys):
        await pilot.press(key)
        await settled(pilot)
    return pilot.app.screen


async def test_each_step_has_its_time(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        assert screen.SCREEN == "steps"
        expected = expected_of(screen, demo)
        lines = rows(pilot)
        for name, _, time in expected:
            line = next(line for line in lines if f"{name} " in line)
            assert format_duration(time) in line
        assert 0 <= screen.table.shown - len(expected) <= 1, "one may never have been closed"
        assert "by NVTX name" in lines[2]


async def test_a_step_says_how_far_it_is_from_the_median(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "right_square_bracket")
        expected = expected_of(screen, demo)
        median = statistics.median(time for _, _, time in expected[1:])
        slow = max(range(1, len(expected)), key=lambda place: expected[place][2])
        assert screen.table.row == slow
        away = expected[slow][2] - median
        seen = text(pilot)
        assert (
            f"{format_duration(round(away))} ({100 * away / median:.1f}%) above the median" in seen
        )
        assert "outlier, z=" in seen


async def test_the_typical_step_is_nearest_to_the_median(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "t")
        expected = [time for _, _, time in expected_of(screen, demo)]
        median = statistics.median(expected[1:])
        nearest = min(range(1, len(expected)), key=lambda place: abs(expected[place] - median))
        assert screen.table.row == nearest


async def test_enter_shows_the_whole_step_and_back_finds_the_row(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "down", "down")
        _, start, time = expected_of(screen, demo)[2]
        await pilot.press("enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.screen.SCREEN == "timeline"
        window = app.state.window
        assert window.start <= start < start + time <= window.end
        assert window.width < 1.1 * time
        assert app.state.selection.label.startswith("Train step 2")
        await pilot.press("backspace")
        await settled(pilot)
        assert app.screen.SCREEN == "steps"
        assert app.screen.table.row == 2


async def test_a_window_makes_no_other_step_the_first(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        whole = rows(pilot)[4:15]
        await pilot.press("down", "down", "down", "enter", "4", "t")
        await settled(pilot)
        app: Any = pilot.app
        assert app.state.window is not None
        assert [row.replace(">", " ", 1) for row in rows(pilot)[4:15]] == [
            row.replace(">", " ", 1) for row in whole
        ]
        assert screen.table.row == 3, "the step that was shown"
        assert rows(pilot)[0].rstrip().endswith("(all)")


async def test_enter_lays_an_outlier_beside_a_typical_step(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "right_square_bracket")
        steps, row, usual = expected_of(screen, demo), screen.table.row, screen.answer.typical
        assert row in screen.answer.outliers
        await pilot.press("enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.screen.SCREEN == "compare"
        windows = app.screen.twins.windows
        for step, window in zip((usual, row), windows, strict=True):
            _, start, time = steps[step]
            assert window.start <= start < start + time <= window.end
        assert windows[0].width == windows[1].width
        assert steps[usual][1] - windows[0].start == steps[row][1] - windows[1].start
        longer = (steps[row][2] - steps[usual][2]) / 1e6
        assert f"takes {longer:.4g} ms longer than typical step" in text(pilot)
        await pilot.press("backspace")
        await settled(pilot)
        assert app.screen.SCREEN == "steps"


async def test_a_report_without_steps_says_why(small: Path) -> None:
    async with running(small, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        if screen.answer is None:
            assert "no iterations found" in text(pilot)
            assert "nsys-tui iterations REPORT --iteration REGEX" in text(pilot)
            assert "typical" not in rows(pilot)[-1]
            assert "freq" not in rows(pilot)[-1]
        await pilot.press("right_square_bracket", "t", "enter")
        await settled(pilot)
        assert pilot.app.error is None  # type: ignore[attr-defined]


async def test_the_critical_path_stands_in_place_of_the_facts_and_goes(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await ready(pilot, "right_square_bracket", "c")
        seen = text(pilot)
        assert "Critical path of Train step 8" in seen
        assert "pread64" in seen
        assert "from start to end" in seen
        await pilot.press("up")
        await settled(pilot)
        assert "Critical path of Train step 7" in text(pilot)
        await pilot.press("c")
        await settled(pilot)
        assert "to median  part" in text(pilot)


async def test_enter_on_the_critical_path_goes_to_what_the_line_is_about(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "right_square_bracket", "c", "tab", "tab")
        app: Any = pilot.app
        pane = app.focused
        assert pane.id == "step"
        kinds = set()
        for line, choice in enumerate(pane._choices):
            if choice is None:
                continue
            pane.cursor, path = line, screen._path
            await pilot.press("enter")
            await settled(pilot)
            segment, selection = path.longest(choice), app.state.selection
            assert app.screen.SCREEN == "timeline"
            assert max(selection.span.start, segment.start) < min(selection.span.end, segment.end)
            assert selection.label.startswith(segment.name)
            assert app.state.window.start <= selection.span.start < app.state.window.end
            kinds.add(selection.kind)
            await pilot.press("backspace")
            await settled(pilot)
        assert kinds == {"operation", "api", "osrt", "path"}


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_steps_of_long_names_are_told_apart_beside_their_notes(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    end = 0
    for number in range(16):
        at, end = end, end + (19_000_000 if number == 5 else 10_000_000 + number % 3 * 100_000)
        synth.nvtx(f"batch of, op_id = {990_347 + 555 * number}", at, end)
        synth.kernel("k", at, end)
    async with running(synth.write(), size=size) as pilot:
        await pilot.press("4", "t")
        await settled(pilot)
        shown = [row for row in rows(pilot) if row[2:].startswith("batch of")]
        assert len({row[2:16] if size[0] == 80 else row[2:26] for row in shown}) == len(shown) >= 9
        assert all("~" in row[:16] for row in shown) == (size[0] == 80), "cut where it must be"
        assert "outlier (z" in text(pilot)


async def test_names_that_a_pane_has_no_room_for_end_with_a_mark(demo: Path) -> None:
    async with running(demo) as pilot:
        await ready(pilot, "right_square_bracket", "c", "tab", "tab")
        lines = [row.rstrip(" |") for row in rows(pilot)]
        whole = [line for line in lines if "(GPU " in line]
        assert len(whole) > 2, "the path has the width of the screen"
        assert all(line.endswith((")", "~")) for line in whole), whole


async def test_what_a_tall_screen_leaves_goes_to_chart_and_facts(demo: Path) -> None:
    async with running(demo, size=(240, 67)) as pilot:
        screen = await ready(pilot)
        lower = screen.query_one("#lower")
        assert lower.size.height > 30, "ten steps need no more"
        assert not screen.query_one("#step").show_vertical_scrollbar
        assert "##### #####" in rows(pilot)[-4], "bars are as wide as there is room for"


async def test_a_click_on_a_bar_goes_to_its_step_and_a_double_click_opens_it(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        app: Any = pilot.app
        chart = screen.query_one("#chart")

        def bar(step: int) -> tuple[int, int]:
            return 1 + bar_column(step, screen.table.size_all, chart.room), 4

        await pilot.click("#chart", offset=bar(3))
        await settled(pilot)
        assert screen.table.row == 3
        assert app.screen is screen
        await pilot.click("#chart", offset=(FIRST_BAR - 4, 2))
        await settled(pilot)
        assert screen.table.row == 3, "the scale is no bar"
        _, start, time = expected_of(screen, demo)[4]
        await pilot.click("#chart", offset=bar(4), times=2)
        await settled(pilot)
        assert app.screen.SCREEN == "timeline"
        assert app.state.window.start <= start < start + time <= app.state.window.end
