"""From rows, bars and frames of the screens to the timeline: the right lane, event and window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from paths import needs_reports, report_paths
from tui.frames import running, settled

from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.names import similar_name
from nsys_tui.timeline.painter import position_of
from nsys_tui.ui.keymap import SCREENS
from nsys_tui.ui.screens.compare.changes import GROUPS
from nsys_tui.ui.screens.overview.panes import Chosen
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


@needs_reports
async def test_a_step_without_a_range_leaves_nothing_else_selected() -> None:
    (path,) = (path for path in report_paths() if path.stem == "cloverleaf-a100-2024.5")
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        app.front.query_one("#findings").focus()
        await press(pilot, "down", "enter")
        assert app.state.selection.kind == "finding"
        app.show("steps")
        await settled(pilot)
        await press(pilot, "enter")
        assert app.front.SCREEN == "timeline"
        assert app.state.selection is None


@needs_reports
@pytest.mark.parametrize(
    "name", [*REPORTS, "cuda-graph-2025.5", "many-kernels-2025.5", "nsys-stats-2023.3",
             "nvtx-only-2022.4", "pytorch-nccl-2gpu-2026.2"],
)  # fmt: skip
async def test_findings_names_and_bars_of_the_overview_land(name: str) -> None:
    (path,) = (path for path in report_paths() if path.stem == name)
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        for pane in app.front.query("#findings, #kernels, #ranges"):
            choices = [choice for choice in pane._choices if choice is not None]
            few = choices if pane.id == "findings" else choices[:1] + choices[-1:]
            for choice in few if pane.display else ():
                pane.focus()
                await settled(pilot)
                pane.cursor = pane._choices.index(choice)
                where = f"{name} {pane.text_under_cursor}"
                await press(pilot, "enter")
                assert app.error is None, where
                if isinstance(choice, Finding):
                    shows_finding(pilot, choice, where)
                elif isinstance(choice, Chosen) and choice.kind == "call":
                    landed(pilot, where)
                elif isinstance(choice, Chosen):
                    shows_name(pilot, choice, where)
                await press(pilot, "1")
        bars = app.front.query_one("#trace")
        if bars.display:
            bars.focus()
            await press(pilot, "right", "right", "enter")
            assert app.front.SCREEN == "timeline", name
            assert app.state.window.width < app.session.extent[1] - app.session.extent[0], name


@needs_reports
@pytest.mark.parametrize(
    "names",
    [
        ("cloverleaf-a100-2024.5", "many-kernels-2025.5"),
        ("mpi-nvtx-callchains-2022.2", "pytorch-nccl-2gpu-2026.2"),
        ("nvtx-only-2022.4", "windows-streams-2022.1"),
        ("cuda-graph-2025.5", "nsys-stats-2023.3"),
    ],
)
async def test_rows_of_compare_land_on_both_timelines(names: tuple[str, str]) -> None:
    paths = [path for name in names for path in report_paths() if path.stem == name]
    async with running(*paths, size=(160, 45)) as pilot:
        app: Any = pilot.app
        await press(pilot, "7")
        screen = app.front
        for _ in GROUPS:
            await settled(pilot)
            table = screen.table
            for place in sorted({0, table.shown - 1} if table.shown else ()):
                where = f"{names} {table.group} {place}"
                table.put_cursor(place)
                change = table.change
                await press(pilot, "enter")
                assert app.error is None, where
                if change is not None:
                    halves_show(screen.twins, (change.a_count, change.b_count), where)
                table.focus()
            await press(pilot, "g")
        screen.twins.canvases[0].focus()
        window = screen.twins.windows[0]
        await press(pilot, "enter")
        assert (app.front.SCREEN, app.session.path) == ("timeline", paths[0])
        assert app.state.window == window


@needs_reports
@pytest.mark.parametrize("moved", [False, True], ids=["as it opens", "at a time"])
async def test_ranks_of_the_fleet_land_on_their_gpus(moved: bool) -> None:
    (path,) = (path for path in report_paths() if path.stem == "pytorch-nccl-2gpu-2026.2")
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        for row in range(2):
            await press(pilot, "f7", "home", *["down"] * row)
            fleet = app.front
            label = fleet.fleet.members[fleet._rows[row].member].process.devices[0]
            if moved:
                fleet.heat.focus()
                await press(pilot, *["right"] * 20)
                window = fleet.heat.window()
                assert window is not None
            await press(pilot, "enter")
            model = app.front.model
            assert app.error is None
            assert app.front.SCREEN == "timeline"
            assert app.session.report.devices[model.row.device].label == label
            assert model.top <= model.row_number < model.top + app.front.canvas.lanes_shown
            if moved:
                assert (model.window.start, model.window.end) == window
                assert model.cursor_time == window[0]


@needs_reports
async def test_rows_of_logs_land_on_their_kernels() -> None:
    (path,) = (path for path in report_paths() if path.stem == "pytorch-nccl-2gpu-2026.2")
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        await press(pilot, "f8")
        gone = 0
        for number in range(len(app.front.query_one("#sections")._choices)):
            app.front.query_one("#sections").focus()
            await press(pilot, "home", *["down"] * number, "enter")
            logs, table = app.front, app.front.table
            for place in sorted({0, table.shown - 1} if table.shown else ()):
                table.focus()
                table.put_cursor(place)
                await press(pilot, "enter")
                if app.front is not logs:
                    landed(pilot, f"{logs.section} {place}")
                    gone += 1
                    await press(pilot, "escape")
                assert app.front is logs
        assert gone > 1


@needs_reports
@pytest.mark.parametrize("name", ["nvtx-only-2022.4", "cloverleaf-a100-2024.5"])
async def test_steps_land_where_they_begin(name: str) -> None:
    (path,) = (path for path in report_paths() if path.stem == name)
    async with running(path, size=(160, 45)) as pilot:
        app: Any = pilot.app
        app.show("steps")
        await settled(pilot)
        steps, table = app.front, app.front.table
        iterations = steps.answer.table.iterations
        for place in sorted({0, 1, table.shown - 1} - steps.answer.outliers):
            table.put_cursor(place)
            await press(pilot, "enter")
            model = app.front.model
            assert model.cursor_time == iterations.start[place], (name, place)
            assert model.window.start <= iterations.start[place] < model.window.end
            assert iterations.end[place] <= model.window.end
            if len(iterations.rows):
                assert landed(pilot, f"{name} {place}").picked.row == iterations.rows[place]
            await press(pilot, "escape")
            assert (app.front, table.cursor) == (steps, place)


def halves_show(twins: Any, counts: tuple[int, int], where: str) -> None:
    """Each timeline has an event of the row's name in its window, on a lane in view."""
    for side, count in enumerate(counts):
        picked, window, half = twins.picked[side], twins.windows[side], twins.halves[side]
        if not count:
            assert picked is None, where
            continue
        assert picked is not None, where
        assert picked.start < window.end, where
        assert picked.end >= window.start, where
        first, many = twins.tops[side], twins.canvases[side].lanes_shown
        lanes = half.tracks[first : first + many]
        assert any(
            one.events is picked.events and position_of(one, picked.row) is not None
            for one in lanes
        ), where


def shows_finding(pilot: Pilot[int], entry: Finding, where: str) -> None:
    """The screen that the finding names, on its event, gap, kernel or time."""
    app: Any = pilot.app
    front = app.front
    assert SCREENS[int(entry.screen) - 1].name == front.SCREEN, where
    if entry.window is None:
        return
    start = entry.window[0]
    if front.SCREEN == "timeline":
        model = landed(pilot, where)
        assert model.cursor_time == start, where
        assert entry.device is None or model.row.device == entry.device, where
    elif front.SCREEN == "stalls":
        assert front.stall.start == start, where
    elif front.SCREEN == "kernels":
        operations = front.report.operations
        begun = operations.name[operations.start == start]
        names = {operations.texts("short")[code] for code in begun.tolist()}
        assert front.result.labels[front.table.row] in names, where


def shows_name(pilot: Pilot[int], choice: Chosen, where: str) -> None:
    """The row of the name: of one that stands in many places, the one with most time."""
    app: Any = pilot.app
    front = app.front
    if choice.kind == "kernel":
        assert front.result.labels[front.table.row] == choice.name, where
    else:
        label = front.result.trie.labels[front.result.trie.label[front.main.row]]
        assert similar_name(label).endswith(similar_name(choice.name)), where
