from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from tui.frames import rows, running, settled, text

from nsys_tui.ui.screens.logs.files import expand
from nsys_tui.ui.screens.logs.screen import LogsScreen

if TYPE_CHECKING:
    from pathlib import Path

    from demo_making import Demo
    from textual.pilot import Pilot


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return make(tmp_path_factory.mktemp("demo"), steps=2)


def screen(pilot: Pilot[int]) -> LogsScreen:
    found: Any = pilot.app.screen
    assert isinstance(found, LogsScreen)
    return found


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def open_logs(pilot: Pilot[int], demo: Demo) -> None:
    await press(pilot, "f8", "o")
    await pilot.press(*("slash" if c == "/" else c for c in str(demo.logs[0].parent)))
    await press(pilot, "enter")


async def test_without_logs_and_collectives_the_screen_says_what_to_do(small: Path) -> None:
    async with running(small) as pilot:
        await press(pilot, "f8")
        shown = text(pilot)
        assert "[F8 Logs]" in rows(pilot)[1]
        assert "no log is open: o opens NCCL, trainer or MPI logs" in shown
        assert "NCCL_DEBUG=INFO" in shown


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_report_alone_shows_bandwidth_from_its_payloads(
    demo: Demo, size: tuple[int, int]
) -> None:
    async with running(demo.path, size=size) as pilot:
        await press(pilot, "f8")
        lines = rows(pilot)
        assert "bandwidth" in lines[3]
        header, first = lines[3], lines[4]
        assert "Bus GB/s" in header
        assert "AllReduce" in first
        assert "14.2 MB" in first
        shown = text(pilot)
        assert "sizes from NVTX payloads" in shown
        assert "per-op" not in shown


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_logs_of_a_folder_are_read_and_joined(demo: Demo, size: tuple[int, int]) -> None:
    async with running(demo.path, size=size) as pilot:
        await open_logs(pilot, demo)
        assert screen(pilot).section == "files"
        shown = text(pilot)
        assert "Logs 2 shown / 2" in shown
        assert "per-op" in shown
        await press(pilot, "j")
        assert screen(pilot).section == "per-op"
        assert "AllReduce" in text(pilot)
        await press(pilot, "k", "k")
        assert screen(pilot).section == "which kernel"
        notes = " ".join(text(pilot).split())
        assert "joined by order" in notes


async def test_enter_on_a_collective_shows_its_kernel_on_the_timeline(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8", "j", "j", "enter", "enter")
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.state.selection is not None
        report = app.session.report
        start, _ = app.state.selection.span
        names = {
            report.operations.names[n].short
            for n in report.operations.name[report.operations.start == start]
        }
        assert any("AllReduce" in name for name in names)


async def test_a_name_without_a_file_is_told_in_the_status_line(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8", "o")
        await pilot.press(*"nope")
        await press(pilot, "enter")
        assert "no log there: nope" in text(pilot)
        await press(pilot, "escape")
        assert "bandwidth" in text(pilot)


def test_a_pattern_names_one_log_per_rank(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text("x\n")
    assert [p.name for p in expand(str(tmp_path / "rank[01].log"))] == ["rank0.log", "rank1.log"]
    assert len(expand(str(tmp_path))) == 3
