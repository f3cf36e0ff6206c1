"""From rows, bars and frames of the screens to the timeline: the right lane, event and window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from paths import needs_reports, report_paths
from tui.frames import running, settled

from nsys_tui.timeline.painter import position_of
from nsys_tui.ui.widgets.table.grid import Grid

if TYPE_CHECKING:
    from textual.pilot import Pilot

REPORTS = ("cloverleaf-a100-2024.5", "mpi-nvtx-callchains-2022.2", "windows-streams-2022.1")
ROWS = 1
"""Rows of each screen that are gone through, and the last one."""


def landed(pilot: Pilot[int], where: str) -> Any:
    """The timeline's model, with what was sent selected, in view, and on the cursor's lane."""
    app: Any = pilot.app
    assert app.error is None, where
    assert app.front.SCREEN == "timeline", where
    model = app.front.model
    selection = model.view.selection
    assert selection is not None, where
    assert selection.span is not None, where
    window = model.window
    assert selection.span.start < window.end, where
    assert selection.span.end >= window.start, where
    assert window.start <= model.cursor_time <= window.end, where
    picked, row = model.picked, model.row
    if picked is not None:
        assert row is not None, where
        lanes = (row,) if row.pair is None else (row, row.pair)
        assert any(one.events is picked.events for one in lanes), where
        assert any(position_of(one, picked.row) is not None for one in lanes), where
    assert model.top <= model.row_number < model.top + app.front.canvas.lanes_shown, where
    return model


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await settled(pilot)


@needs_reports
@pytest.mark.parametrize("name", REPORTS)
async def test_enter_on_rows_lands_on_their_events(name: str) -> None:
    (path,) = (path for path in report_paths() if path.stem == name)
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        gone = 0
        for screen in ("kernels", "nvtx", "stalls", "events"):
            app.show(screen)
            await settled(pilot)
            grid = app.front.focused
            if not isinstance(grid, Grid) or grid.row is None:
                continue
            for step in (*["down"] * ROWS, "end"):
                here, number = f"{name} {screen} {grid.row}", grid.row
                await press(pilot, "enter")
                if (
                    screen == app.front.SCREEN
                ):  # a range without work of the GPU opens its instances
                    await press(pilot, "enter")
                model = landed(pilot, here)
                gone += model.picked is not None or model.view.selection.kind == "gap"
                while screen != app.front.SCREEN:
                    await press(pilot, "escape")
                assert app.front.focused.row == number, here
                await press(pilot, step)
        assert gone > 3 * ROWS, name


@needs_reports
@pytest.mark.parametrize("name", ["pytorch-nccl-2gpu-2026.2", "windows-streams-2022.1"])
async def test_frames_of_stacks_and_bars_of_steps_land(name: str) -> None:
    (path,) = (path for path in report_paths() if path.stem == name)
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        await press(pilot, "6")
        for keys in ("j", "j", "s"):
            await press(pilot, keys)
            if app.front.icicle.stacks is None or not app.front.icicle.selected:
                continue
            here = f"{name} {app.front.icicle.selected}"
            await press(pilot, "g")
            landed(pilot, here)
            await press(pilot, "escape")
        app.show("steps")
        await settled(pilot)
        grid = app.front.focused
        if isinstance(grid, Grid) and grid.row is not None:
            await press(pilot, "t", "enter")
            start = app.state.cursor.time
            assert app.front.SCREEN == "timeline"
            assert app.front.model.window.start <= start < app.front.model.window.end
