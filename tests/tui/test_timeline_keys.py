"""What the timeline's keys do, checked against the report itself."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from brute import query
from textual.events import MouseMove, MouseScrollDown, MouseScrollUp
from textual.geometry import Offset
from tui.test_timeline_frames import US, demo, handmade
from tui.timeline_pilot import running, settled, text

from nsys_tui.analysis.timeline.events import key_of
from nsys_tui.analysis.window import Scope
from nsys_tui.cli import main
from nsys_tui.config import Config, KeysConfig
from nsys_tui.export.perfetto import event_count, trace
from nsys_tui.reader import open_report
from nsys_tui.state import Window
from nsys_tui.timeline import moving

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

__all__ = ["demo", "handmade"]

STREAM = """
    SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 0 AND streamId = 16
        AND globalPid = (SELECT min(globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL)
    ORDER BY start
"""


def app_of(pilot: Pilot[int]) -> Any:
    return pilot.app


async def press(pilot: Pilot[int], *keys: str) -> str:
    await pilot.press(*keys)
    await settled(pilot)
    return text(pilot)


async def type_in(pilot: Pilot[int], key: str, words: str) -> str:
    return await press(pilot, key, *words, "enter")


def cursor_column(pilot: Pilot[int]) -> int:
    screen = app_of(pilot).front
    return int(screen.canvas.view.cell(screen.model.cursor_time))


async def test_pan_page_and_cursor_at_the_edge(demo: Path) -> None:
    async with running(demo) as pilot:
        await press(pilot, "2")
        await type_in(pilot, "g", "500ms")
        await press(pilot, "w", "w", "w")
        start = app_of(pilot).state.window
        column = cursor_column(pilot)
        await press(pilot, "d")
        now = app_of(pilot).state.window
        assert now.start - start.start == start.width // 4
        assert cursor_column(pilot) == column
        await press(pilot, "a", "shift+right")
        assert app_of(pilot).state.window.start == start.end
        await press(pilot, "shift+left")
        assert app_of(pilot).state.window == start
        columns = app_of(pilot).front.canvas.columns
        for _ in range(columns - column + 2):
            app_of(pilot).front.action_timeline_cursor_right()
        moved = app_of(pilot).state.window
        assert start.start < moved.start
        assert moved.width == start.width
        await pilot.press("backspace")
        assert app_of(pilot).state.window is None, "pans and zooms are one step of the history"
        await pilot.press("alt+right")
        assert app_of(pilot).state.window == moved


async def go_to_row(pilot: Pilot[int], label: str) -> None:
    screen = app_of(pilot).front
    numbers = [n for n, track in enumerate(screen.model.rows) if track.label.startswith(label)]
    screen.take(moving.step_lane(screen.model, numbers[0] - screen.model.row_number))
    await settled(pilot)


async def test_events_in_view_stand_at_the_right_edge_of_their_lane(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        lines = (await press(pilot, "2")).splitlines()
        (count,) = query(demo, f"SELECT count(*) FROM ({STREAM})")[0]
        lane = next(line for line in lines if "stream 16 nccl" in line)
        assert lane.rstrip("|").endswith(f" {count:,}")
        lines = (await press(pilot, "L", "W")).splitlines()
        window = app_of(pilot).state.window
        found = query(demo, STREAM)
        inside = sum(start < window.end and end > window.start for start, end, *_ in found)
        lane = next(line for line in lines if "stream 16 nccl" in line)
        assert lane.rstrip("|").endswith(f" {inside:,}" if inside else " ")


async def test_flows_go_from_work_to_its_call_and_back(handmade: Path) -> None:
    async with running(handmade, size=(160, 45)) as pilot:
        await press(pilot, "2", ".")
        assert app_of(pilot).state.selection.label == "gemm"
        body = await press(pilot, "[")
        assert app_of(pilot).state.selection.label == "cudaLaunchKernel"
        assert app_of(pilot).state.cursor.time == 60 * US
        assert "launched gemm +40.00 us" in body
        await press(pilot, "]")
        assert app_of(pilot).state.selection.label == "gemm"
        await press(pilot, "backspace", "backspace")
        assert app_of(pilot).state.cursor.time == 100 * US
        await type_in(pilot, "t", "50us")
        body = await press(pilot, "[")
        assert "the call of this work: hidden by the filter" in body
        assert app_of(pilot).state.selection.label == "gemm"


async def test_iterations_by_name_with_the_same_width(demo: Path) -> None:
    sql = "SELECT start FROM NVTX_EVENTS WHERE text LIKE 'Train step %' ORDER BY globalTid, start"
    steps = [start for (start,) in query(demo, sql)]
    async with running(demo) as pilot:
        await press(pilot, "2")
        await type_in(pilot, "g", "400ms")
        await press(pilot, "w", "w", "w")
        width = app_of(pilot).state.window.width
        body = await press(pilot, ")")
        assert app_of(pilot).state.cursor.time in steps
        assert app_of(pilot).state.cursor.time > 400_000_000
        assert app_of(pilot).state.window.width == width
        assert "by NVTX name" in body
        first = app_of(pilot).state.cursor.time
        await press(pilot, ")", "(")
        assert app_of(pilot).state.cursor.time == first


async def test_search_counts_per_lane_and_steps_through_all_of_them(demo: Path) -> None:
    kernels = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName"
    total = query(demo, f"{kernels} WHERE value LIKE '%AllReduce%'")[0][0]
    ranges = "SELECT count(*) FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId"
    total += query(demo, f"{ranges} WHERE coalesce(text, value) LIKE '%AllReduce%'")[0][0]
    async with running(demo, size=(160, 45)) as pilot:
        await press(pilot, "2")
        body = await type_in(pilot, "slash", "allreduce")
        assert f"match 1 of {total}" in body
        on_stream = query(demo, STREAM)
        lane = next(line for line in body.splitlines() if "stream 16 nccl" in line)
        assert lane.rstrip("|").endswith(f" {len(on_stream)}")
        first = app_of(pilot).state.cursor
        body = await press(pilot, "n", "n")
        assert f"match 3 of {total}" in body
        await press(pilot, "N", "N")
        assert app_of(pilot).state.cursor == first
        body = await press(pilot, "N")
        assert f"match {total} of {total}" in body
        body = await press(pilot, "escape")
        assert "match" not in body


async def test_a_pattern_becomes_a_filter_that_counts_what_it_hides(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await press(pilot, "2")
        await pilot.press("slash", *"allreduce", "ctrl+f")
        await settled(pilot)
        body = text(pilot)
        tracks = app_of(pilot).front.model.lanes.whole.lineup.tracks
        left = app_of(pilot).front.model.lanes.shown.lineup.tracks
        before = sum(len(t.lane) for t in tracks if t.lane is not None)
        after = sum(len(t.lane) for t in left if t.lane is not None)
        assert f"filter: /allreduce/ (hides {before - after:,} events)" in body
        stream = next(t for t in left if t.label.startswith("str 13"))
        assert len(stream.lane) == 0
        gpu = next(line for line in body.splitlines() if "v GPU 0" in line)
        assert "#" not in gpu, "the row of the device follows the filter"
        body = await press(pilot, "escape")
        assert "filter: " not in body
        assert len(app_of(pilot).front.model.lanes.shown.lineup.tracks) == len(tracks)


async def test_short_events_can_be_hidden_and_are_counted(handmade: Path) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2")
        body = await type_in(pilot, "t", "10us")
        # Twenty small kernels, and their twenty calls, last 1 us.
        assert "filter: dur >= 10.00 us (hides 40 events)" in body
        assert "]          ####" not in body
        body = await type_in(pilot, "t", "-3us")
        assert "cannot be negative" in body
        await press(pilot, "escape", "escape")
        assert "]          ####" in text(pilot)


async def test_an_area_is_counted_by_category_and_name(handmade: Path) -> None:
    async with running(handmade, size=(160, 45)) as pilot:
        await press(pilot, "2")
        await type_in(pilot, "g", "150us")
        assert "area begins" in await press(pilot, "v")
        view = app_of(pilot).front.canvas.view
        await type_in(pilot, "g", "349us")
        body = await press(pilot, "v")
        assert "area begins" not in body
        span = app_of(pilot).state.selection.span
        assert span.start == 150 * US
        assert span.end in view.edges.tolist()
        whole = span.width / 1000
        area = "\\n".join(line[118:] for line in body.splitlines())
        assert f"compute    150.0 us{150 / whole * 100:7.1f}        1" in area
        assert f"comm{(span.end - 310_000) / 1000:12.2f} us" in area
        assert "C attention" in area
        assert "1" in area
        assert "all lanes" in area or "Area " in area
        await press(pilot, "escape")
        assert app_of(pilot).state.selection is None


async def test_lanes_can_be_pinned_hidden_and_folded(handmade: Path) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2", "down")
        body = await press(pilot, "P")
        assert body.splitlines()[4].startswith("|  >^str 13")
        await press(pilot, "P")
        body = await press(pilot, "x")
        assert "|   str 13" not in body
        assert "hidden lanes 1" in body
        body = await press(pilot, "X", "down", "enter")
        assert "X brings lanes back" not in body
        assert "|   str 13" in body
        await go_to_row(pilot, "GPU 0")
        body = await press(pilot, "space")
        assert "> GPU 0" in body
        assert "|   str 7" not in body
        assert "|   str 7" in await press(pilot, "space")


async def test_colours_go_round_and_say_what_they_mean(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await press(pilot, "2")
        await type_in(pilot, "g", "400ms")
        await press(pilot, "w", "w", "w")
        styles = []
        for by in ("stream", "name", "duration", "category"):
            body = await press(pilot, "c")
            assert f"colour by {by}" in body
            assert (f"colour: {by}" in body) == (by != "category")
            canvas = app_of(pilot).front.canvas
            number = app_of(pilot).front.model.row_number - canvas.scene.top
            styles.append(tuple(canvas._rows[2 + number].styles.tolist()))
        assert len(set(styles)) == 4


async def test_marks_restore_their_context_and_survive_a_restart(handmade: Path) -> None:
    async with running(handmade, size=(160, 45)) as pilot:
        await press(pilot, "2", ".", "f", "c", "m", "a")
        at_mark = app_of(pilot).state
        await press(pilot, "0", "escape", "escape", "c", "c", "c")
        await type_in(pilot, "g", "500us")
        await press(pilot, "M", "b")
        body = await press(pilot, *"here", "enter")
        marks = "\\n".join(line[118:] for line in body.splitlines())
        assert "| a 0.000100" in marks
        assert "gemm" in marks
        assert "a-b 400.0 us" in marks
        await press(pilot, "apostrophe", "a")
        now = app_of(pilot).state
        assert (now.window, now.selection, now.display.colour_by) == (
            at_mark.window,
            at_mark.selection,
            at_mark.display.colour_by,
        )
        await press(pilot, "apostrophe", "B")
        assert app_of(pilot).state.cursor.time == 500 * US
    async with running(handmade, size=(160, 45)) as pilot:
        await press(pilot, "2")
        assert app_of(pilot).state.marks["b"].note == "here"
        body = await press(pilot, "apostrophe")
        assert "here" in body
        assert "Marks (')" in await press(pilot, "escape")
        assert "Marks (')" not in await press(pilot, "escape")
        assert app_of(pilot).screen.SCREEN == "timeline"
        assert "Marks (')" in await press(pilot, "m", "c")


async def test_enter_shows_everything_about_an_event_and_escape_comes_back(
    handmade: Path,
) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2", "enter")
        assert app_of(pilot).state.selection.label == "gemm"
        body = await press(pilot, "enter")
        assert "row of CUPTI_ACTIVITY_KIND_KERNEL" in body
        assert "registersPerThread     32" in await press(pilot, "end")
        body = await press(pilot, "escape")
        assert "row of" not in body
        assert app_of(pilot).focused.id == "lanes"


async def test_same_name_searches_for_exactly_that_name(handmade: Path) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2", ".")
        body = await press(pilot, "#")
        assert "find: /gemm/  match 1 of 1" in body


async def test_the_pointer_selects_drags_an_area_and_scrolls(handmade: Path) -> None:
    async with running(handmade) as pilot:
        lines = (await press(pilot, "2")).splitlines()
        row = next(n for n, line in enumerate(lines) if "str 7" in line)
        app = app_of(pilot)
        await pilot.click(offset=(13 + 12, row))
        await settled(pilot)
        assert app.state.selection.label == "gemm"
        assert app.state.cursor.time == 120 * US
        await pilot.mouse_down(offset=Offset(13 + 15, row))
        await pilot._post_mouse_events([MouseMove], offset=Offset(13 + 24, row), button=1)
        await pilot.mouse_up(offset=Offset(13 + 24, row))
        await settled(pilot)
        assert app.state.selection.kind == "area"
        assert app.state.selection.span == Window(150 * US, 250 * US)
        await press(pilot, "escape")
        assert app.state.selection is None
        assert app.front.SCREEN == "timeline"


async def test_the_wheel_scrolls_lanes_and_moves_the_cursor_only_out_of_their_way(
    demo: Path,
) -> None:
    async with running(demo) as pilot:
        body = await press(pilot, "2")
        front = app_of(pilot).front
        begin, shown = front.model.row.key, front.canvas.lanes_shown
        await pilot._post_mouse_events([MouseScrollDown], offset=Offset(40, 8))
        await settled(pilot)
        lines = text(pilot).splitlines()
        assert lines[4:8] == body.splitlines()[7:11]
        assert front.model.row.key == begin
        for _ in range(3):
            await pilot._post_mouse_events([MouseScrollDown], offset=Offset(40, 8))
            await settled(pilot)
        assert front.model.row_number == front.model.top == 12, (
            "the cursor's row would be out of view"
        )
        for _ in range(40):
            await pilot._post_mouse_events([MouseScrollDown], offset=Offset(40, 8))
        await settled(pilot)
        assert front.model.top == len(front.model.rows) - shown


async def test_labels_fold_at_a_double_click_and_the_axis_moves_only_the_moment(
    handmade: Path,
) -> None:
    async with running(handmade) as pilot:
        lines = (await press(pilot, "2", ".")).splitlines()
        front = app_of(pilot).front
        row = next(n for n, line in enumerate(lines) if "GPU 0  " in line)
        selected, lane = app_of(pilot).state.selection, front.model.row.key
        await pilot.click(offset=(13 + 40, 3))
        await settled(pilot)
        assert front.model.cursor_time == 400 * US
        assert (front.model.row.key, app_of(pilot).state.selection) == (lane, selected)
        await pilot.click(offset=(5, row), times=2)
        await settled(pilot)
        assert "str 7" not in text(pilot)
        await pilot.click(offset=(5, row), times=2)
        await settled(pilot)
        assert "str 7" in text(pilot)


async def test_a_double_click_opens_what_is_known(handmade: Path) -> None:
    async with running(handmade) as pilot:
        lines = (await press(pilot, "2")).splitlines()
        row = next(n for n, line in enumerate(lines) if "str 7" in line)
        await pilot.click(offset=(13 + 12, row), times=2)
        await settled(pilot)
        assert "row of CUPTI_ACTIVITY_KIND_KERNEL" in text(pilot)


async def test_a_drag_on_the_axis_zooms_to_it(handmade: Path) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2")
        await pilot.mouse_down(offset=Offset(13 + 10, 3))
        await pilot._post_mouse_events([MouseMove], offset=Offset(13 + 19, 3), button=1)
        await pilot.mouse_up(offset=Offset(13 + 19, 3))
        await settled(pilot)
        state = app_of(pilot).state
        assert (state.selection, state.window) == (None, Window(100 * US, 200 * US))
        await press(pilot, "backspace")
        assert app_of(pilot).state.window is None


async def test_the_wheel_zooms_at_the_pointer_and_pans_and_the_minimap_drags(
    handmade: Path,
) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2")
        app = app_of(pilot)
        await pilot._post_mouse_events([MouseScrollUp], offset=Offset(13 + 40, 8), control=True)
        await settled(pilot)
        window = app.state.window
        assert window.width == 330 * US
        assert window.start == pytest.approx(200 * US, abs=10 * US)
        await pilot._post_mouse_events([MouseScrollDown], offset=Offset(13 + 40, 8), shift=True)
        await settled(pilot)
        assert app.state.window.start == window.start + window.width // 4
        minimap = app.front.query_one("#minimap").region
        await pilot.mouse_down(offset=Offset(minimap.x + 1, minimap.y))
        await pilot.mouse_up(offset=Offset(minimap.x + 1, minimap.y))
        await settled(pilot)
        assert app.state.window.start < 0 < app.state.window.end
        assert app.state.window.width == window.width


async def test_the_minimap_moves_the_cursor_where_the_whole_trace_is_shown(handmade: Path) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2")
        app = app_of(pilot)
        screen: Any = app.front
        assert app.state.window is None
        minimap = screen.query_one("#minimap").region
        await pilot.mouse_down(offset=Offset(minimap.x + 1, minimap.y))
        await pilot.mouse_up(offset=Offset(minimap.x + 1, minimap.y))
        await settled(pilot)
        lo, hi = screen.model.extent
        assert app.state.window is None
        assert lo <= app.state.cursor.time < lo + (hi - lo) // 20


async def test_two_reports_keep_their_own_places(handmade: Path, demo: Path) -> None:
    async with running(handmade, demo) as pilot:
        app = app_of(pilot)
        await press(pilot, "2", "f")
        first = app.state.window
        app.bring_to_front(app.sessions[1])
        await settled(pilot)
        await settled(pilot)
        assert "demo.sqlite" in text(pilot)
        assert app.state.window is None
        assert "str 16" in text(pilot)
        app.bring_to_front(app.sessions[0])
        await settled(pilot)
        assert app.state.window == first


async def test_another_screen_can_send_a_window_and_a_selection(handmade: Path) -> None:
    from nsys_tui.state import Selection

    async with running(handmade, size=(160, 45)) as pilot:
        app = app_of(pilot)
        operations = app.front.report.operations
        row = operations.start.tolist().index(200 * US)
        chosen = Selection("operation", tuple(key_of(operations, row)))
        app.show("timeline", window=Window(150 * US, 350 * US), selection=chosen)
        await settled(pilot)
        await settled(pilot)
        body = text(pilot)
        assert "+- attention" in body
        assert app.front.model.cursor_time == 200 * US
        await press(pilot, "backspace")
        assert app.front.SCREEN == "overview"


async def test_window_and_area_are_written_as_the_command_writes_them(
    handmade: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(handmade) as pilot:
        assert "written: " in await press(pilot, "2", ".", "f", "e", "enter")
        window = app_of(pilot).state.window
        shown = (tmp_path / "hand.trace.json").read_bytes()
        assert "exists already" in await press(pilot, "e", "enter")
        assert (tmp_path / "hand.trace.json").read_bytes() == shown
        await press(pilot, "escape", "v", *["right"] * 8, "v")
        area = app_of(pilot).state.selection.span
        await press(pilot, "e", *["backspace"] * 40, *"area.json", "enter")
    for name, (start, end) in {"hand.trace.json": window, "area.json": area}.items():
        wanted = tmp_path / "wanted.json"
        span = f"{start}ns/{end}ns"
        command = ["export", str(handmade), "--perfetto", str(wanted), "--window", span]
        assert main([*command, "--force-overwrite"]) == 0
        assert (tmp_path / name).read_bytes() == wanted.read_bytes()
    events = json.loads(shown)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert "gemm(float*)" in {event["name"] for event in slices}
    assert "tiny(int)" not in {event["name"] for event in slices}, "it lies outside the window"
    inside = query(
        handmade,
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start < ? AND end > ?",
        window.end,
        window.start,
    )[0][0]
    assert sum(event["pid"] >= 1 << 24 for event in slices) == inside


async def test_a_cancelled_trace_leaves_no_file(
    handmade: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(handmade) as pilot:
        app = app_of(pilot)

        def endless(*_: object) -> Any:
            while True:
                app.session.cancel.set()  # as Escape does while the line of progress stands
                yield "x"

        monkeypatch.setattr("nsys_tui.ui.screens.timeline.asking.trace", endless)
        await press(pilot, "2", "e", "enter")
        assert list(tmp_path.iterdir()) == []
        assert app.error is None


def test_the_events_of_a_trace_are_counted_beforehand(demo: Path) -> None:
    report = open_report(demo, use_cache=False)
    lo, hi = report.extent
    for window in (None, (lo + (hi - lo) // 2, hi - (hi - lo) // 4)):
        scope = Scope(window)
        events = json.loads("".join(trace(report, scope)))["traceEvents"]
        assert event_count(report, scope) == sum(event["ph"] != "M" for event in events) > 100


async def test_vim_keys(demo: Path) -> None:
    config = Config(keys=KeysConfig(preset="vim"))
    async with running(demo, config=config) as pilot:
        await press(pilot, "2")
        front = app_of(pilot).front
        await press(pilot, "G")
        assert front.model.row_number == len(front.model.rows) - 1
        assert "gg first lane" in await press(pilot, "g")
        await press(pilot, "g")
        assert front.model.row_number == 0
        await press(pilot, "ctrl+d")
        assert front.model.row_number == front.canvas.lanes_shown // 2
        await press(pilot, "g", "g", "z", "a")
        assert front.model.rows[0].key in front.model.rows.folded
        await press(pilot, "z", "i", "z", "i")
        narrow = app_of(pilot).state.window
        assert narrow.width == pytest.approx(
            (front.model.extent[1] - front.model.extent[0]) // 4, rel=0.01
        )
        await press(pilot, "z", "o")
        assert app_of(pilot).state.window.width == pytest.approx(2 * narrow.width, rel=0.01)
        column = cursor_column(pilot)
        await press(pilot, "l", "l", "h")
        assert cursor_column(pilot) == column + 1
        assert "Go to a time" in await press(pilot, "g", ":")


async def test_a_name_that_the_heading_cuts_is_shown_in_full(demo: Path) -> None:
    async with running(demo, size=(120, 30)) as pilot:
        await press(pilot, "2", "D", "/", *"ampere", "enter", "enter")
        name = app_of(pilot).state.selection.label
        assert len(name) > 40
        pane = app_of(pilot).front.query_one("#facts")
        x, y = pane.content_region.offset
        width = pane.content_region.width
        lines = [line[x : x + width] for line in text(pilot).splitlines()[y : y + 3]]
        assert name in "".join(line[10:].strip() for line in lines)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_two_marks_tell_what_the_gpu_did_between_them(
    handmade: Path, size: tuple[int, int]
) -> None:
    async with running(handmade, size=size) as pilot:
        await press(pilot, "2", "g", *"100us", "enter", "m", "a", "g", *"350us", "enter", "m", "b")
        wanted = "a-b 250.0 us: compute 80.0%, comm 16.0%, idle 4.0%"
        if size[0] == 160:
            assert wanted.partition(": ")[2] in text(pilot)
        body = await press(pilot, "'", "down")
        assert wanted in body


async def test_the_far_zoom_is_eight_fold_and_a_width_or_a_name_is_zoomed_to(
    handmade: Path,
) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2", "W")
        app = app_of(pilot)
        assert app.state.window.width == 660 * US // 8
        await press(pilot, "S")
        assert app.state.window.width == 660 * US
        await type_in(pilot, "z", "50us")
        assert app.state.window.width == 50 * US
        await press(pilot, "0")
        await type_in(pilot, "z", "attention")
        assert app.state.selection.label == "attention"
        assert (app.state.window.start, app.state.window.end) == (195 * US, 305 * US)


async def test_words_that_a_kernel_has_may_still_be_looked_for_everywhere(handmade: Path) -> None:
    async with running(handmade) as pilot:
        body = await press(pilot, "2", "z")
        listed = re.findall(r"\|[ >](\d+)  (\w+)", body)
        assert [number for number, _ in listed] == [str(n + 1) for n in range(len(listed))]
        name = listed[0][1]
        body = await press(pilot, *name[:4])
        assert f"every event with '{name[:4]}' in its name" in body
        await press(pilot, "down", "enter")
        app = app_of(pilot)
        assert app.state.search.pattern == name[:4]
        assert not app.state.search.exact
        body = await type_in(pilot, "z", "50us")
        assert app.state.window.width == 50 * US


async def test_steps_are_zoomed_to_and_are_a_stage_of_the_fit(demo: Path) -> None:
    async with running(demo) as pilot:
        await press(pilot, "2")
        body = await type_in(pilot, "z", "2 steps")
        assert re.search(r"steps \d to \d of \d", body)
        two = app_of(pilot).state.window.width
        await press(pilot, "tab")
        shown = {}
        for _ in range(5):
            body = await press(pilot, "f")
            shown[body.partition("shown: ")[2].partition(" (f")[0]] = app_of(pilot).state.window
        assert shown["the selection"].width < shown["the step"].width < two
        assert shown["the whole trace"] is None, "a step is not the last stage"


async def test_fit_widens_from_the_event_to_everything_and_begins_again(handmade: Path) -> None:
    async with running(handmade) as pilot:
        await press(pilot, "2", ".", ".")
        app, seen = app_of(pilot), []
        for _ in range(5):
            body = await press(pilot, "f")
            seen.append((body.partition("shown: ")[2].partition(" (f")[0], app.state.window))
        words = [said for said, _ in seen]
        assert words[:2] == ["the selection", "the range around it"]
        assert words[2:] == ["the GPU work", "the whole trace", "the selection"]
        widths = [660 * US if window is None else window.width for _, window in seen]
        assert widths[:4] == sorted(widths[:4])


async def test_what_belongs_to_the_selected_event_is_marked(handmade: Path) -> None:
    async with running(handmade) as pilot:
        lines = (await press(pilot, "2", ".")).splitlines()
        assert "@gemm####]" in next(line for line in lines if "str 7" in line)
        assert "&" in next(line for line in lines if "main  " in line), "its call"
        await press(pilot, "]")
        assert app_of(pilot).state.selection.label == "cudaLaunchKernel"
        lines = text(pilot).splitlines()
        assert "&gemm####]" in next(line for line in lines if "str 7" in line)
        await press(pilot, "escape")
        assert "&gemm" not in text(pilot)


async def test_panes_come_with_what_they_tell_and_go_with_escape(handmade: Path) -> None:
    async with running(handmade, size=(160, 45)) as pilot:
        body = await press(pilot, "2", ".", "enter")
        assert "Selected: gemm" in body
        body = await press(pilot, "escape")
        assert "Selected: gemm" not in body
        assert app_of(pilot).state.selection.label == "gemm"
        body = await press(pilot, "m", "a")
        assert "+- Marks (')" in body
