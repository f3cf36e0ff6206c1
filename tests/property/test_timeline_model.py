"""Whatever is pressed on the timeline: window, cursor, rows and history stay consistent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from synth import Synth
from timeline_making import model_of

from nsys_tui.reader import open_report
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.state import ZOOM_OUT_LIMIT, gone_back, gone_forward, here
from nsys_tui.timeline import areas, arranging, marking, moving, pointing, stepping
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.timeline.painter import Painter
from nsys_tui.timeline.scene import heading, scene_of

if TYPE_CHECKING:
    from nsys_tui.state import ViewState

Act = Callable[[TimelineModel], TimelineModel]

KEYS: dict[str, Act] = {
    "w": partial(moving.zoom, factor=0.5),
    "s": partial(moving.zoom, factor=2.0),
    "a": partial(moving.pan, part=-0.25),
    "d": partial(moving.pan, part=0.25),
    "shift+left": partial(moving.pan, part=-1),
    "shift+right": partial(moving.pan, part=1),
    "left": partial(moving.step_column, step=-1),
    "right": partial(moving.step_column, step=1),
    "up": partial(moving.step_lane, step=-1),
    "down": partial(moving.step_lane, step=1),
    "pageup": partial(moving.step_screen, direction=-1),
    "pagedown": partial(moving.step_screen, direction=1),
    "ctrl+home": partial(moving.to_last_lane, direction=-1),
    "ctrl+end": partial(moving.to_last_lane, direction=1),
    ".": partial(stepping.step_event, forward=True),
    ",": partial(stepping.step_event, forward=False),
    "tab": partial(stepping.snap, forward=True),
    "shift+tab": partial(stepping.snap, forward=False),
    "]": partial(stepping.follow, back=False),
    "[": partial(stepping.follow, back=True),
    "enter": stepping.select_here,
    "f": moving.fit,
    "0": moving.whole,
    "v": areas.begin_or_end,
    "P": arranging.pin,
    "x": arranging.hide,
    "X": partial(arranging.bring_back, key=""),
    "space": arranging.fold,
    "c": arranging.next_colours,
    "m": partial(marking.set_mark, letter="a"),
    "g": partial(moving.go_to, text="37%"),
    "wheel": partial(pointing.turn_wheel, what="scroll", column=3, step=1),
    "press": partial(pointing.press, row=1, column=7),
    "drag": partial(pointing.drag, row=2, column=30),
    "drop": partial(pointing.drop, row=2),
}
"""Of the pointer, rows that are always there."""
SEES = frozenset(("left", "right", ".", ",", "tab", "shift+tab", "g"))
"""Keys after which the cursor is in view, if they moved it."""
PRESSES = st.lists(st.sampled_from(sorted(KEYS)), max_size=25)
UNHURRIED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def begin(tmp_path_factory: pytest.TempPathFactory) -> TimelineModel:
    """Two GPUs, two threads, nested ranges, and times below zero."""
    synth = Synth(tmp_path_factory.mktemp("model") / "r.sqlite").gpu(0).gpu(1)
    synth.process(100, "train").cuda_device(100, 0, 0).cuda_device(100, 1, 1).thread(100, "main")
    synth.thread(101, "loader").nvtx("load", -4_000, 9_000, tid=101)
    for step in range(6):
        at = step * 10_000
        synth.nvtx(f"step {step}", at, at + 9_000).nvtx("forward", at + 100, at + 4_000)
        synth.launch("gemm", (at + 200, at + 300), (at + 400, at + 2_400), device=step % 2)
        synth.launch("relu", (at + 310, at + 400), (at + 2_400, at + 2_401), stream=9)
        synth.launch("copy", (at + 500, at + 600), (at + 700, at + 7_000), stream=9)
    synth.api("cudaDeviceSynchronize_v3020", 30_000, 52_000, corr=900)
    return model_of(open_report(synth.write(), use_cache=False), rows=6)


def pressed(model: TimelineModel, keys: list[str]) -> TimelineModel:
    for key in keys:
        model = KEYS[key](model).scrolled()
    return model


def sees_cursor(model: TimelineModel) -> bool:
    return model.window.start <= model.cursor_time < model.window.end


@UNHURRIED
@given(PRESSES)
@example(["left", "f", "a", "w"])
def test_the_window_touches_the_trace_and_the_cursor_stays_in_it(
    begin: TimelineModel, keys: list[str]
) -> None:
    model = begin
    for key in keys:
        before, model = model, KEYS[key](model).scrolled()
        lo, hi = model.extent
        window = model.window
        assert model.size.columns <= window.width <= (hi - lo) * ZOOM_OUT_LIMIT
        assert window.end > lo
        assert window.start < hi
        moved = model.view.cursor != before.view.cursor
        if (key in SEES and moved) or (key in "wsad" and sees_cursor(before)):
            assert sees_cursor(model), key
        assert 0 <= model.row_number < max(1, len(model.rows))
        assert model.top <= model.row_number < model.top + model.size.rows


@UNHURRIED
@given(PRESSES, st.sampled_from([ASCII, UNICODE]))
def test_every_state_is_drawn_as_one_does_that_remembers_nothing(
    begin: TimelineModel, keys: list[str], glyphs: object
) -> None:
    painter, model = Painter(), begin
    for key in keys:
        model = KEYS[key](model).scrolled()
        rows = painter.paint(scene_of(model), 78, 7, glyphs)  # type: ignore[arg-type]
        anew = Painter().paint(scene_of(model), 78, 7, glyphs)  # type: ignore[arg-type]
        assert [row.text() for row in rows] == [row.text() for row in anew]
        assert [row.styles.tolist() for row in rows] == [row.styles.tolist() for row in anew]
        assert {row.width for row in rows} == {78}
        assert len(rows) == 7
        assert heading(model, 200)[0].startswith("Timeline")


@UNHURRIED
@given(PRESSES)
def test_zooming_in_and_out_again_comes_back(begin: TimelineModel, keys: list[str]) -> None:
    model = pressed(begin, keys)
    closer = KEYS["w"](model)
    assume(closer.window.width >= 2 * model.size.columns)
    again = KEYS["s"](closer)
    if model.view.window is None or again.view.window is None:
        return
    # A nanosecond is lost where a width is odd; the edge of the trace may hold the window back.
    lo, hi = model.extent
    assume(lo <= model.window.start and model.window.end <= hi)
    assert abs(again.window.width - model.window.width) <= 1
    assert abs(again.window.start - model.window.start) <= 2


@UNHURRIED
@given(PRESSES)
def test_going_back_to_the_begin_and_forward_again_restores_both(
    begin: TimelineModel, keys: list[str]
) -> None:
    def place(view: ViewState) -> object:
        return view.window, view.cursor, view.selection

    last = pressed(begin, keys).view
    view, visited = last, []
    while view.history.back:
        visited.append(place(view))
        view, _ = gone_back(view, here(view, "timeline"))
    assert view.window is None
    while view.history.forward:
        view, _ = gone_forward(view, here(view, "timeline"))
        assert place(view) == visited.pop()
    assert place(view) == place(last)


@UNHURRIED
@given(PRESSES)
@example(keys=["[", "x"])
@example(keys=["ctrl+end", "P", "ctrl+end", "w"])
def test_folding_pinning_and_hiding_are_undone_and_keep_the_cursors_lane(
    begin: TimelineModel, keys: list[str]
) -> None:
    model = pressed(begin, keys)
    assume(len(model.rows) > 1)
    lanes = [track.key for track in model.rows]
    folded = arranging.fold(model)
    assert folded.lane_key in (model.lane_key, *(model.row.parents if model.row else ()))
    again = arranging.fold(folded).looking(cursor=model.view.cursor)
    assert [track.key for track in again.rows] == lanes
    pinned = arranging.pin(model)
    assert pinned.lane_key == model.lane_key
    if model.lane_key not in model.view.display.pinned:
        kept = len(pinned.view.display.pinned)
        assert model.lane_key in [track.key for track in pinned.rows[:kept]]
        assert [track.key for track in arranging.pin(pinned).rows] == lanes
    hidden = arranging.hide(model)
    assert model.lane_key not in [track.key for track in hidden.rows]
    shown = arranging.bring_back(hidden, model.lane_key).looking(cursor=model.view.cursor)
    assert [track.key for track in shown.rows] == lanes, "a row stays where the cursor is on it"


@UNHURRIED
@given(PRESSES)
def test_the_next_event_and_the_one_before_it_are_neighbours(
    begin: TimelineModel, keys: list[str]
) -> None:
    model = KEYS["."](pressed(begin, keys))
    following = KEYS["."](model)
    assume(model.picked is not None and following.picked != model.picked)
    assume(model.picked is not None and model.picked.start == model.cursor_time)
    back = KEYS[","](following)
    assert back.picked == model.picked
    assert back.view.cursor == model.view.cursor


@UNHURRIED
@given(PRESSES, st.integers(0, 80), st.integers(0, 80))
def test_an_area_spans_from_where_it_began_to_the_end_of_the_cursors_column(
    begin: TimelineModel, keys: list[str], first: int, second: int
) -> None:
    model = pressed(begin, keys)
    model = areas.given_up(model) or model
    start = model.viewport.time(first % model.viewport.width)
    end = model.viewport.time(second % model.viewport.width)
    area = areas.begin_or_end(areas.begin_or_end(model.pointed(start)).pointed(end))
    assert area.view.selection is not None
    span = area.view.selection.span
    assert span is not None
    assert span.start == min(start, end)
    assert span.start < span.end
    assert max(start, end) < span.end <= model.window.end
    assert area.area_start is None
