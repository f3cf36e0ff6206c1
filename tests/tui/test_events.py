from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from paths import REPORTS, needs_reports
from tui.frames import rows, running, settled, text

from nsys_tui.analysis.timeline.events import key_of
from nsys_tui.state import Selection, Window

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), steps=2).path


async def ready(pilot: Pilot[int], **changes: Any) -> Any:
    app: Any = pilot.app
    app.show("events", **changes)
    await settled(pilot)
    await settled(pilot)
    return app.front


async def test_events_at_80x24_stand_in_time_order(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        lines = rows(pilot)
        assert "[Events]" in lines[1]
        assert lines[2].startswith("+- > Events ")
        assert lines[3].split() == ["|", "start", "duration", "kind", "where", "name", "|"]
        starts = [line.split()[0].lstrip("|>") for line in lines[4:10]]
        assert starts == sorted(starts)
        assert f"Events {len(screen.result):,} of" in lines[2]
        assert "overhead" in lines[4]
        assert all(line.isascii() and len(line) == 80 for line in lines)


async def test_wide_frame_tells_everything_about_the_event_under_the_cursor(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        kinds = screen.result.kinds
        kernel = next(
            row for row in range(len(screen.result)) if kinds.labels[kinds.at(row)] == "kernel"
        )
        screen.table.put_cursor(screen.table.position_of(kernel))
        await settled(pilot)
        for word in ("corr ", "grid", "regs", "launch"):
            assert word in text(pilot)


async def test_frequency_of_kinds_filters_by_one(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot.press(">", ">", "F")
        await settled(pilot)
        assert "Frequency of kind" in text(pilot)
        await pilot.press("enter")
        await settled(pilot)
        column = screen.table.columns[2]
        seen = {column.text(screen.table.row_at(i)) for i in range(screen.table.shown)}
        assert len(seen) == 1
        assert f"kind = {seen.pop()}" in text(pilot)


async def test_sorting_by_duration_puts_the_longest_on_top(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot.press(">", "s")
        await settled(pilot)
        lengths = []
        for position in range(50):
            member, place = screen.result.locate(screen.table.row_at(position))
            lengths.append(int(member.events.end[place] - member.events.start[place]))
        assert lengths == sorted(lengths, reverse=True)


async def test_enter_goes_to_the_event_and_back_with_everything_as_it_was(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot.press(">", "s", "pagedown", "down")
        await settled(pilot)
        member, place = screen.result.locate(screen.table.row)
        before = screen.table.view()
        await pilot.press("enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.state.selection.key[1] == int(member.events.rowid[place])
        await pilot.press("backspace")
        await settled(pilot)
        assert app.front is screen
        assert screen.table.view() == before


async def test_the_timeline_opens_the_table_on_its_selection(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        app: Any = pilot.app
        ops = app.session.report.operations
        row = 25
        key = tuple(key_of(ops, row))
        start, end = int(ops.start[row]), int(ops.end[row])
        app.show(
            "timeline",
            window=Window(start - 100_000, end + 100_000),
            selection=Selection("operation", key, Window(start, end)),
        )
        await settled(pilot)
        await pilot.press("i")
        await settled(pilot)
        await settled(pilot)
        screen = app.front
        assert screen.SCREEN == "events"
        member, place = screen.result.locate(screen.table.row)
        assert (member.part, place) == ("operations", row)
        await pilot.press("escape")
        await settled(pilot)
        assert app.front.SCREEN == "timeline"


async def test_an_area_is_listed_alone_and_left_with_0(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        app: Any = pilot.app
        report = app.session.report
        stream = report.streams[0]
        lane = (
            f"gpu:{stream.device}/{stream.globalPid >> 24 & 0xFFFFFF}:{stream.context}:{stream.id}"
        )
        lo, hi = report.span
        area = Selection("area", (), Window(lo, (lo + hi) // 2), (lane,), label="area")
        screen = await ready(pilot, selection=area)
        ops = report.operations
        inside = (ops.stream == 0) & (ops.start < (lo + hi) // 2) & (ops.end > lo)
        assert len(screen.result) == int(inside.sum())
        assert "area" in rows(pilot)[2]
        await pilot.press("0")
        await settled(pilot)
        assert len(screen.result) > int(inside.sum())


async def test_an_empty_window_says_how_to_leave_it(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        await ready(pilot, window=Window(10, 20))
        assert "no events here: 0 shows the whole trace" in text(pilot)


@pytest.mark.parametrize("size", [(120, 30), (240, 67)])
async def test_every_size_fills_the_screen(demo: Path, size: tuple[int, int]) -> None:
    async with running(demo, size=size) as pilot:
        await ready(pilot)
        assert {len(line) for line in rows(pilot)} == {size[0]}


@needs_reports
@pytest.mark.parametrize(
    "name", ["no-events", "no-metadata-old", "uvm-migration-2025.1", "mpi-nvtx-callchains-2022.2"]
)
async def test_real_reports_open_in_every_table(name: str) -> None:
    async with running(REPORTS / f"{name}.sqlite", size=(80, 24)) as pilot:
        app: Any = pilot.app
        for screen in ("kernels", "nvtx", "events"):
            app.show(screen)
            await settled(pilot)
            assert app.error is None
            assert screen == app.front.SCREEN
            assert {len(line) for line in rows(pilot)} == {80}
