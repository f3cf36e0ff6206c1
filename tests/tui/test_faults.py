"""A fault in a handler, in drawing or in a worker is shown, and every key still works."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make_report
from tui.frames import rows, running, settled, text

from nsys_tui.errors import UnreadableReportError
from nsys_tui.ui.screens.kernels.screen import KernelsScreen
from nsys_tui.ui.widgets.table.grid import Grid

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.strip import Strip


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "demo.sqlite"
    make_report(path, steps=4)
    return path


async def press(pilot: Pilot[int], *keys: str) -> str:
    await pilot.press(*keys)
    await settled(pilot)
    return text(pilot)


async def assert_every_screen_comes(pilot: Pilot[int]) -> None:
    app: Any = pilot.app
    for key, screen in (("1", "overview"), ("2", "timeline"), ("3", "kernels"), ("4", "nvtx")):
        await press(pilot, key)
        assert app.current_mode == screen
    await press(pilot, "question_mark")
    assert "THIS VIEW: NVTX" in text(pilot)
    await press(pilot, "escape")
    assert "THIS VIEW: NVTX" not in text(pilot)


async def test_a_report_cut_short_while_it_is_open_leaves_every_key_working(
    demo: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut.sqlite"
    shutil.copy(demo, path)
    async with running(path) as pilot:
        app: Any = pilot.app
        app.keeps_going = True
        os.truncate(path, path.stat().st_size // 3)
        for key in "234567":
            await press(pilot, key)
        while app.error is not None:
            await press(pilot, "escape")
        await assert_every_screen_comes(pilot)
        await press(pilot, "q")
        assert not app.is_running
        assert app.return_code == 0


async def test_a_fault_in_a_result_is_shown_and_the_next_result_is_taken(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show = KernelsScreen.show_result
    faults = [ValueError("argmax of an empty sequence")]

    def failing(screen: KernelsScreen, *arguments: Any) -> None:
        if faults:
            raise faults.pop()
        show(screen, *arguments)

    monkeypatch.setattr(KernelsScreen, "show_result", failing)
    async with running(small) as pilot:
        app: Any = pilot.app
        app.keeps_going = True
        seen = await press(pilot, "3")
        assert "! internal error: ValueError: argmax of an empty sequence" in seen
        assert "gemm_kernel" not in seen
        assert "R reads the report again" in seen
        seen = await press(pilot, "escape", "g")
        assert "internal error" not in seen
        assert "group: " in seen
        await assert_every_screen_comes(pilot)


async def panes_after_a_fault(
    small: Path, monkeypatch: pytest.MonkeyPatch, work: str, keys: str
) -> str:
    """What the panes say, without the message line, where one function raises an error."""

    def failing(*_: object, **__: object) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(f"nsys_tui.ui.screens.{work}", failing)
    async with running(small, size=(160, 45)) as pilot:
        app: Any = pilot.app
        app.keeps_going = True
        seen = await press(pilot, "escape", *keys.split())
    return "\n".join(line for line in seen.splitlines() if "!" not in line)


@pytest.mark.parametrize(
    ("work", "keys", "waiting"),
    [
        ("overview.screen.overview", "1", "reading"),
        ("kernels.screen.kernel_table", "3", "grouping"),
        ("nvtx.screen.nvtx_table", "4", "projecting"),
        ("stalls.screen.idle_gaps", "5", "finding gaps"),
        ("stacks.screen.fold", "6", "folding"),
        ("events.screen.events_table", "2 i", "putting events"),
        ("logs.screen.find_collectives", "f8", "joining"),
        ("fleet.screen.run_fleet", "f7", "reading"),
    ],
)
async def test_a_pane_that_cannot_be_filled_says_why_and_does_not_wait(
    small: Path, monkeypatch: pytest.MonkeyPatch, work: str, keys: str, waiting: str
) -> None:
    body = await panes_after_a_fault(small, monkeypatch, work, keys)
    assert "internal error: ValueError" in body
    assert "R reads the report again" in body
    assert waiting not in body


@pytest.mark.parametrize("key", ["2", "3", "6"])
async def test_a_screen_waits_for_nothing_that_could_not_be_read(
    small: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    def failing(*_: object) -> None:
        raise UnreadableReportError("cannot read it", "the disk is gone", "look for it")

    monkeypatch.setattr("nsys_tui.reader.source.build_operations", failing)
    async with running(small) as pilot:
        app: Any = pilot.app
        app.keeps_going = True
        seen = await press(pilot, key)
        while app.error is not None:
            assert "internal error" not in seen
            seen = await press(pilot, "escape")
    assert not re.search("reading|being drawn|folding|grouping", seen)


@pytest.mark.parametrize(
    ("work", "keys", "pane"),
    [
        ("kernels.detail.find_detail", "3", "Durations"),
        ("kernels.detail.kernel_facts", "3", "Facts"),
        ("kernels.detail.instance_columns", "3", "Instances"),
        ("nvtx.detail.step_times", "4", "per iteration"),
        ("stalls.screen.look", "5", "Scene"),
        ("stalls.screen.scene_lines", "5", "Scene"),
        ("events.screen.facts_of", "2 i", "Event"),
    ],
)
async def test_a_pane_about_a_row_says_its_fault(
    small: Path, monkeypatch: pytest.MonkeyPatch, work: str, keys: str, pane: str
) -> None:
    body = await panes_after_a_fault(small, monkeypatch, work, keys)
    assert "internal error: ValueError" in body, pane


async def test_a_fault_in_a_key_is_shown_and_the_next_key_works(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Grid, step: int) -> None:
        raise IndexError(f"no row {step}")

    async with running(small) as pilot:
        pilot.app.keeps_going = True  # type: ignore[attr-defined]
        await press(pilot, "3")
        with monkeypatch.context() as patched:
            patched.setattr(Grid, "action_move", failing)
            assert "internal error: IndexError: no row 1" in await press(pilot, "down")
        assert "internal error" not in await press(pilot, "escape", "down")
        await assert_every_screen_comes(pilot)


async def test_what_cannot_be_drawn_is_blank_and_told_once(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Grid, y: int) -> Strip:
        raise OverflowError(f"line {y}")

    async with running(small) as pilot:
        app: Any = pilot.app
        app.keeps_going = True
        told: list[Exception] = []
        show_fault = app.show_fault

        def telling(error: Exception) -> None:
            told.append(error)
            show_fault(error)

        monkeypatch.setattr(app, "show_fault", telling)
        with monkeypatch.context() as patched:
            patched.setattr(Grid, "render_line", failing)
            seen = await press(pilot, "3")
            assert "internal error: OverflowError: line 0" in seen
            assert "[ 3 Kernels ]" in rows(pilot)[1] or "3 Kern" in rows(pilot)[1]
            grids = len(app.screen.query("VirtualTable"))
            await press(pilot, "escape", "down", "up")
            assert len(told) <= grids
        await assert_every_screen_comes(pilot)
        assert "gemm_kernel" in await press(pilot, "3")


async def test_an_app_that_only_fails_ends_with_its_fault(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Grid, step: int) -> None:
        raise IndexError(f"no row {step}")

    async with running(small) as pilot:
        app: Any = pilot.app
        app.keeps_going = True
        await press(pilot, "3")
        monkeypatch.setattr(Grid, "action_move", failing)
        for _ in range(30):
            await pilot.press("down")
            if app.crash is not None:
                break
        assert isinstance(app.crash, IndexError)
        assert app.return_code


@pytest.mark.parametrize("screen", ["2", "3", "4", "5", "6", "7"])
async def test_going_back_to_a_screen_that_was_renewed_meanwhile(small: Path, screen: str) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await press(pilot, screen)
        before = app.current_mode
        await press(pilot, "1")
        await app.renew_screens([before])
        await press(pilot, "backspace")
        assert app.current_mode == before
        assert app.error is None
