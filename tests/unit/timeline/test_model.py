"""The timeline without a screen: what its keys do, checked against the report itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from brute import query
from demo_making import make_report
from synth import Synth
from timeline_making import COLUMNS, at_lane, model_of

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.timeline.events import key_of
from nsys_tui.analysis.timeline.search import search
from nsys_tui.errors import UsageError
from nsys_tui.reader import open_report
from nsys_tui.render.glyphs import ASCII
from nsys_tui.state import Filter, Selection, Window, gone_back, here
from nsys_tui.timeline import areas, arranging, marking, moving, searching, stepping
from nsys_tui.timeline.model import TimelineModel, Trace
from nsys_tui.timeline.painter import Painter
from nsys_tui.timeline.path import PATH, has_path, path_at, with_path, without_path
from nsys_tui.timeline.scene import heading, info_line, scene_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

US = 1_000
STREAM = """
    SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 0 AND streamId = 16
        AND globalPid = (SELECT min(globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL)
    ORDER BY start
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_report(tmp_path_factory.mktemp("demo") / "demo.sqlite", steps=4).report


@pytest.fixture(scope="module")
def report(demo: Path) -> Report:
    return open_report(demo, use_cache=False)


@pytest.fixture(scope="module")
def training(report: Report) -> TimelineModel:
    return model_of(report)


@pytest.fixture(scope="module")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> TimelineModel:
    """660 us on one GPU: over 66 columns a column is 10 us."""
    synth = Synth(tmp_path_factory.mktemp("timeline") / "hand.sqlite").gpu(0)
    synth.process(100, "train").cuda_device(100, 0, 0).thread(100, "main")
    synth.nvtx("step 0", 0, 330 * US).nvtx("step 1", 330 * US, 660 * US)
    synth.nvtx("forward", 50 * US, 250 * US)
    synth.launch("gemm(float*)", (60 * US, 80 * US), (100 * US, 200 * US))
    synth.launch("attention(float*)", (90 * US, 100 * US), (200 * US, 300 * US))
    synth.launch(
        "ncclDevKernel_AllReduce(int)", (290 * US, 300 * US), (310 * US, 390 * US), stream=9
    )
    return model_of(open_report(synth.write(), use_cache=False))


def column(model: TimelineModel) -> int:
    cell = model.viewport.cell(model.cursor_time)
    assert cell is not None
    return cell


def test_zoom_keeps_the_cursor_on_its_column_down_to_a_nanosecond(training: TimelineModel) -> None:
    model = moving.go_to(training, "500ms")
    before = column(model)
    widths = []
    for _ in range(31):
        model = moving.zoom(model, 0.5)
        widths.append(model.window.width)
        assert abs(column(model) - before) <= 1
        assert model.cursor_time == 500_000_000
    assert widths[0] == pytest.approx(widths[1] * 2, abs=2)
    assert widths[-1] == COLUMNS
    assert "1 col = 1 ns" in heading(model, 200)[0]
    for _ in range(31):
        model = moving.zoom(model, 2.0)
    assert model.view.window is None


def test_enter_on_idle_time_of_a_gpu_selects_the_gap(handmade: TimelineModel) -> None:
    at_gap = moving.go_to(at_lane(handmade, "GPU 0"), "305us")
    chosen = stepping.select_here(moving.zoom_to_width(at_gap, 2 * US)).view.selection
    assert chosen is not None
    assert (chosen.kind, chosen.key) == ("gap", (0, 300 * US, 310 * US))
    outside = stepping.select_here(moving.go_to(at_gap, "500us"))
    assert outside.view.selection is None, "after the work nothing is a gap"


def test_the_critical_path_of_a_step_is_a_lane_and_its_work_is_marked(
    training: TimelineModel, report: Report
) -> None:
    steps = find_iterations(report)
    time = int(steps.start[1]) + 1
    found = path_at(report, steps, time)
    assert found is not None
    shown = with_path(training, found)
    drawn = replace(shown, lanes=shown.lanes.showing(*shown.lanes.drawn(Filter(), "short")))
    first = drawn.rows[0]
    assert (first.key, first.words) == (PATH, "critical path")
    assert first.lane is not None
    assert int((first.lane.ends - first.lane.starts).sum()) == int(steps.duration[1])
    marked = 0
    for key, spots in drawn.path.items():
        lane = next(t.lane for t in drawn.all_rows if t.key == key)
        assert lane is not None
        marked += len(spots)
        assert {int(row) for row in lane.index[spots]} <= {one.row for one in found.segments}
    assert marked == len({one.row for one in found.segments if one.row >= 0})
    assert not has_path(without_path(drawn))


def test_pan_page_and_cursor_at_the_edge(training: TimelineModel) -> None:
    model = moving.go_to(training, "500ms")
    for _ in range(3):
        model = moving.zoom(model, 0.5)
    begin, at = model.window, column(model)
    panned = moving.pan(model, 0.25)
    assert panned.window.start - begin.start == begin.width // 4
    assert column(panned) == at
    assert moving.pan(moving.pan(panned, -0.25), 1).window.start == begin.end
    for _ in range(COLUMNS - at + 2):
        model = moving.step_column(model, 1)
    assert begin.start < model.window.start
    assert model.window.width == begin.width
    back, _ = gone_back(model.view, here(model.view, "timeline"))
    assert back.window is None, "pans and zooms are one step of the history"


def test_stepping_visits_the_events_of_a_lane_in_the_order_of_the_file(
    training: TimelineModel, demo: Path
) -> None:
    starts = [start for start, _ in query(demo, STREAM)]
    model = moving.go_to(at_lane(training, "str 16"), "0s")
    seen = []
    for _ in range(6):
        model = stepping.step_event(model, forward=True)
        seen.append(model.view.cursor.time)
    assert seen == starts[:6]
    for _ in range(2):
        model = stepping.step_event(model, forward=False)
    assert model.view.cursor.time == starts[3]
    assert model.view.selection is not None
    assert model.view.selection.span is not None
    assert model.view.selection.span.start == starts[3]


def test_tab_takes_the_longest_event_of_the_next_column_and_counts_it(
    training: TimelineModel, demo: Path
) -> None:
    events = query(demo, STREAM)
    model = moving.go_to(at_lane(training, "str 16"), "0s")
    longest = (0, 0)
    for _ in range(5):
        view = model.viewport
        edge = int(view.edges[column(model) + 1])
        later = [e for e in events if e[0] >= edge]
        cell = view.cell(later[0][0])
        assert cell is not None
        held = [e for e in later if e[0] < view.edges[cell + 1]]
        longest = max(held, key=lambda e: (e[1] - e[0], -e[0]))
        model = stepping.snap(replace(model, said=None), forward=True)
        assert model.view.cursor.time == longest[0]
        count = f"{held.index(longest) + 1} of {len(held)} in this column"
        assert model.said == (count if len(held) > 1 else None)
    assert stepping.snap(model, forward=False).view.cursor.time < longest[0]


def test_fit_shows_the_selection_then_the_range_around_it(handmade: TimelineModel) -> None:
    model = moving.fit(stepping.step_event(at_lane(handmade, "str 7"), forward=True))
    window = model.window
    assert window.start < 100 * US
    assert window.end > 200 * US
    assert window.width < 120 * US
    around = moving.fit(model).window
    # The call at 60 us lies in "forward", 50 to 250 us.
    assert around.start < 50 * US
    assert 250 * US < around.end < 300 * US
    assert moving.whole(model).view.window is None


def test_fit_keeps_the_selection_in_view_where_its_range_is_over(handmade: TimelineModel) -> None:
    kernel = stepping.step_event(moving.go_to(at_lane(handmade, "str 7"), "150us"), forward=True)
    window = moving.fit(moving.fit(kernel)).window
    # "attention" runs from 200 to 300 us; it was called in "forward", 50 to 250 us.
    assert window.start < 50 * US
    assert 300 * US < window.end < 330 * US


def test_the_cursor_begins_on_the_first_event_of_its_lane_in_view(handmade: TimelineModel) -> None:
    assert handmade.lane_key == at_lane(handmade, "str 7").lane_key
    assert handmade.cursor_time == 100 * US
    later = replace(handmade, view=replace(handmade.view, window=Window(150 * US, 400 * US)))
    assert later.cursor_time == 200 * US


def test_enter_beside_events_goes_to_the_next_one(handmade: TimelineModel) -> None:
    model = stepping.select_here(moving.go_to(at_lane(handmade, "str 9"), "20us"))
    assert model.picked is not None
    assert model.picked.start == 310 * US
    ended = stepping.select_here(moving.go_to(at_lane(handmade, "str 9"), "500us"))
    assert ended.picked is None
    assert "no event" in str(ended.said)


def test_an_area_tells_how_long_it_is_before_it_ends(handmade: TimelineModel) -> None:
    begun = areas.begin_or_end(moving.go_to(handmade, "150us"))
    wider = moving.go_to(begun, "190us")
    assert info_line(wider)[0].startswith("40.00 us from 0.000150 s")


def test_a_point_in_time_is_typed_with_units_shares_and_steps(handmade: TimelineModel) -> None:
    model = handmade
    cases = {"0.3ms": 300, "50%": 330, "+10us": 340, "-20us": 320, "9s": 660}
    for typed, time in cases.items():
        model = moving.go_to(model, typed)
        assert model.view.cursor.time == time * US, typed
    assert "lies outside the trace" in str(model.said)
    with pytest.raises(UsageError, match="not a time"):
        moving.time_of(model, "soon")


def test_iterations_are_left_and_right_of_the_cursor(
    training: TimelineModel, report: Report, demo: Path
) -> None:
    sql = "SELECT start, text FROM NVTX_EVENTS WHERE text LIKE 'Train step %'"
    steps = dict(query(demo, sql))
    found = find_iterations(report)
    model = moving.zoom(moving.go_to(training, "400ms"), 0.5)
    ahead = moving.step_iteration(model, found, 1)
    assert ahead.view.cursor.time == min(t for t in found.start.tolist() if t > 400_000_000)
    assert ahead.window.width == model.window.width
    name = steps[ahead.view.cursor.time]
    assert ahead.said == f"iteration {name.split()[-1]}: {name} (by NVTX name)"
    second = moving.step_iteration(ahead, found, 1)
    assert moving.step_iteration(second, found, -1).view.cursor == ahead.view.cursor
    first = moving.go_to(training, "0%")
    assert moving.step_iteration(first, found, -1).said == "that was the first"


def test_every_match_is_visited_and_then_the_first_again(training: TimelineModel) -> None:
    found = search(training.lanes.shown.lineup, "allreduce", "short")
    model = searching.first_match(searching.searched(training, found))
    first, seen = model.view.cursor, []
    for number in range(1, found.total + 1):
        assert model.view.search.current == number
        seen.append(model.view.cursor.time)
        model = searching.step_match(model, forward=True)
    assert seen == sorted(seen)
    assert model.view.cursor == first
    assert model.said == "from the start again"
    assert f"match 1 of {found.total}" in info_line(model)[0]
    ended = searching.cleared(model)
    assert ended is not None
    assert info_line(ended)[0] == ""


def test_a_mark_names_what_is_under_the_cursor_and_the_range_around_it(
    handmade: TimelineModel,
) -> None:
    model = stepping.step_event(at_lane(handmade, "str 7"), forward=True)
    assert marking.set_mark(model, "a").view.marks["a"].label == "gemm in forward"
    for _ in range(22):
        model = moving.step_column(model, 1)
    label = marking.set_mark(model, "b").view.marks["b"].label
    assert label == "", "the selection stays, but the cursor left it"


def test_another_report_begins_with_the_folds_of_the_one_before(report: Report) -> None:
    """Keys of lanes are the same after a reload, and so is what is folded, hidden and pinned."""
    model = model_of(report)
    for arrange in (arranging.fold, arranging.pin, arranging.hide):
        model = arrange(moving.step_lane(model, 3))
    again = replace(model_of(open_report(report.path, use_cache=False)), view=model.view)
    assert [track.key for track in again.rows] == [track.key for track in model.rows]
    assert len(again.rows) < len(model_of(report).rows)


def test_room_below_the_lanes_is_filled_with_groups_that_keys_still_fold(report: Report) -> None:
    small, tall = model_of(report), model_of(report, rows=80)
    lineup = small.lanes.shown.lineup
    closed = lineup.folded & lineup.groups.keys()
    assert small.rows.folded & closed == closed
    open_now = closed - tall.rows.folded
    assert open_now
    assert len(small.rows) < len(tall.rows) <= 80
    assert tall.window == small.window
    lines = {row.key for row in tall.rows}
    group = next(row.key for row in tall.rows if row.key in open_now)
    shut = arranging.fold(tall.pointed(lane=group))
    assert group in shut.rows.folded
    assert {row.key for row in shut.rows} < lines, "no other opens instead"
    assert [row.key for row in arranging.fold(shut).rows] == [row.key for row in tall.rows]
    low = replace(shut, size=small.size)
    assert {row.key for row in low.rows} <= {row.key for row in small.rows}
    loading = replace(tall, trace=tall.trace._replace(finished=False))
    assert loading.all_rows.folded >= closed, "what is still read moves no lanes"


def test_what_another_screen_sends_is_reached_once_its_lane_is_there(
    handmade: TimelineModel,
) -> None:
    report = handmade.report
    assert report is not None
    chosen = Selection("operation", tuple(key_of(report.operations, 1)))
    empty = replace(handmade, lanes=TimelineModel().lanes).looking(selection=chosen)
    waiting = empty.following().reaching()
    assert waiting.picked is not None
    assert waiting.view.cursor == empty.view.cursor, "its lane is not built yet"
    there = replace(waiting, lanes=handmade.lanes).reaching()
    assert there.cursor_time == 200 * US
    assert there.lane_key == at_lane(handmade, "str 7").lane_key
    away = there.pointed(0)
    assert away.reaching() is away, "the cursor is put on it once"


def test_lanes_are_behind_what_is_built_until_they_are_drawn(handmade: TimelineModel) -> None:
    lanes = handmade.lanes
    assert not lanes.stale
    fewer = lanes.without("api")
    assert fewer.stale
    assert fewer.undrawn
    whole, shown = fewer.drawn(Filter(), "short")
    later = fewer.built("api", lanes.parts["api"], {})
    assert later.showing(whole, shown).stale, "drawn was what was there before"
    drawn = later.showing(*later.drawn(Filter(), "short"))
    assert not drawn.undrawn
    assert {t.key for t in drawn.shown.lineup.tracks} == {t.key for t in lanes.shown.lineup.tracks}
    assert drawn.built("syncs", [], {}).version == drawn.version, "nothing came"


def test_a_sample_gives_way_to_the_operations(handmade: TimelineModel) -> None:
    sample = [replace(t, estimate=True) for t in handmade.lanes.parts["operations"]]
    empty = TimelineModel(trace=Trace((0, 660 * US))).lanes
    lanes = empty.built("sample", sample, {})
    assert lanes.sampled
    lanes = lanes.showing(*lanes.drawn(Filter(), "short"))
    exact = lanes.built("operations", handmade.lanes.parts["operations"], {})
    assert exact.sampled, "the sample is still what is drawn"
    assert not exact.showing(*exact.drawn(Filter(), "short")).sampled


def test_a_frame_is_rows_of_cells(handmade: TimelineModel) -> None:
    rows = Painter().paint(scene_of(handmade), 78, 16, ASCII)
    texts = [row.text() for row in rows]
    assert {len(text) for text in texts} == {78}
    stream = next(text for text in texts if "str 7" in text)
    assert "[gemm####][attenti~]" in stream
    assert stream.index("[gemm") == 12 + 10, "100 us from the begin, 10 us a column"


def test_the_window_of_a_zoom_about_the_pointer(handmade: TimelineModel) -> None:
    window = moving.zoom(handmade, 0.5, about=400 * US).window
    assert window == Window(200 * US, 530 * US)


def test_lanes_without_events_in_the_window_fold_away_but_for_the_cursors_own(
    handmade: TimelineModel,
) -> None:
    def keys(model: TimelineModel) -> set[str]:
        return {row.key for row in model.rows}

    handmade = replace(handmade, trace=handmade.trace._replace(finished=True))
    assert len(handmade.rows) == len(handmade.all_rows), "each holds something in the whole trace"
    late = handmade.jumped(window=Window(500 * US, 520 * US))
    gone = keys(handmade) - keys(late)
    assert any(key.endswith(":9") for key in gone)
    assert "gpu:0" in keys(late), "the row of a device tells that it idles"
    there = late.pointed(lane=next(key for key in gone if key.endswith(":9")))
    assert gone - keys(there) == gone - {there.lane_key}
    assert keys(late.displaying(blank=True)) == keys(handmade)
