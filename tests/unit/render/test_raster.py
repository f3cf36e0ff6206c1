"""Lanes as text frames: the conventions that the timeline's drawings promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane, split
from nsys_tui.render.cells import Emphasis, Ink, Row, category_ink, parts
from nsys_tui.render.dominant import ON_THE_FLY, Layers, dominant
from nsys_tui.render.glyphs import ASCII, UNICODE, UNICODE_ANSI, UNICODE_MONO, Glyphs
from nsys_tui.render.pair import draw_pair
from nsys_tui.render.raster import LaneView, Overlay, draw_lane
from nsys_tui.render.viewport import Viewport

COMPUTE, COMM, MEMORY = Category.COMPUTE, Category.COMM, Category.MEMORY


def view_of(*events: tuple[float, float, str, Category], **options: object) -> LaneView:
    """A lane whose times are in columns of 1000 ns."""
    starts = np.array([round(start * 1000) for start, *_ in events], np.int64)
    ends = np.array([round(end * 1000) for _, end, *_ in events], np.int64)
    category = np.array([category for *_, category in events], np.uint8)
    texts = [text for _, _, text, _ in events]
    names = np.array([texts.index(text) for text in texts], np.int32)
    lane = Lane.build(starts, ends, None, category, names)
    return LaneView(lane, lambda row: texts[row], **options)  # type: ignore[arg-type]


def columns(width: int, first: int = 0, extent: tuple[int, int] | None = None) -> Viewport:
    return Viewport(first * 1000, (first + width) * 1000, width, extent)


def draw(view: LaneView, width: int, glyphs: Glyphs = ASCII, first: int = 0) -> str:
    return draw_lane(view, columns(width, first), glyphs).text()


STREAM = view_of(
    (0, 12, "gemm_bf16_128x256", COMPUTE),
    (12, 19, "flash_fwd_kernel", COMPUTE),
    *((19 + k * 4 / 38, 19 + k * 4 / 38 + 0.09, "add", COMPUTE) for k in range(38)),
    (23, 36, "gemm_bf16_128x256", COMPUTE),
    (42, 58, "AllReduce", COMM),
    (60, 60.3, "copy", MEMORY),
    (61, 61.6, "copy", MEMORY),
)


def test_a_stream_in_ascii() -> None:
    expected = "[gemm_bf16~][flas~]####[gemm_bf16~#]      [AllReduce=====]  m:"
    assert draw(STREAM, 62) == expected


def test_the_same_stream_in_unicode() -> None:
    expected = "gemm_bf16_1~flash~ ▇▇▇▇gemm_bf16_12~         AllReduce      ▃▅"
    assert draw(STREAM, 62, UNICODE) == expected


def test_without_colour_brackets_and_fills_tell_events_and_categories() -> None:
    expected = "[gemm_bf16~][flas~]▇▇▇▇[gemm_bf16~#]      [AllReduce=====]  ▃▅"
    assert draw(STREAM, 62, UNICODE_MONO) == expected


def test_a_label_stays_in_the_visible_part_and_cut_events_have_no_bracket() -> None:
    assert draw(STREAM, 20, first=4) == "gemm_b~][flas~]####["
    assert draw(STREAM, 20, first=26) == "gemm_bf1~]      [Al~"
    assert draw(STREAM, 13, UNICODE, first=44) == "  AllReduce  "


def test_host_labels_are_parted_from_their_fill() -> None:
    ranges = view_of((0, 20, "step 4", Category.NVTX), (20, 40, "step 5", Category.NVTX))
    assert draw(ranges, 30) == "[step 4 -----------][step 5 --"
    sync = view_of((0, 31, "cudaStreamSynchronize", Category.SYNC))
    assert draw(sync, 31) == "[cudaStreamSynchronize !!!!!!!]"
    poll = view_of((1, 9, "poll", Category.OSRT))
    assert draw(poll, 10) == " [poll o] "


def test_nested_ranges_are_one_row_a_depth() -> None:
    texts = ["step 4", "fwd", "bwd", "step 5"]
    whole = Lane.build([0, 0, 9000, 20000], [20000, 9000, 19000, 30000], category=Category.NVTX)
    rows = [draw(LaneView(lane, lambda row: texts[row]), 30) for lane in split(whole)]
    assert rows == ["[step 4 -----------][step 5 -]", "[fwd ---][bwd ----]           "]


def test_events_of_one_and_two_cells() -> None:
    short = view_of((0, 2, "a", COMPUTE), (2, 3, "b", COMPUTE), (5, 6, "c", COMM))
    assert draw(short, 8) == "[#[  [  "
    inks = [parts(int(code)).ground for code in draw_lane(short, columns(8), UNICODE).styles]
    light, dark = category_ink(COMPUTE), category_ink(COMPUTE, alternate=True)
    assert inks == [light, light, dark, 0, 0, category_ink(COMM), 0, 0]


def test_neighbours_that_no_step_parts_get_a_separator() -> None:
    pair = view_of((0, 6, "aa", COMPUTE), (6, 12, "bb", COMPUTE))
    assert draw(pair, 12, UNICODE_ANSI) == "  aa  ▏ bb  "
    assert draw(pair, 12, UNICODE) == "  aa    bb  "
    hidden = view_of((0, 6, "a", COMPUTE), (6, 6, "", COMPUTE), (6, 12, "b", COMPUTE))
    assert draw(hidden, 12, UNICODE) == "  a   ▏  b  "


def test_isolated_edges_are_exact_to_an_eighth() -> None:
    row = draw_lane(view_of((1.5, 5.25, "gem", COMPUTE)), columns(7), UNICODE)
    assert row.text() == " ▌gem▎ "
    assert parts(int(row.styles[1])) == (category_ink(COMPUTE), 0, Emphasis.REVERSE)
    assert parts(int(row.styles[5])) == (category_ink(COMPUTE), 0, Emphasis(0))
    crowded = view_of((1.5, 5.25, "gem", COMPUTE), (5.6, 5.7, "k", COMPUTE))
    assert draw(crowded, 7, UNICODE)[5] == "▃"


def test_density_is_never_written_over() -> None:
    many = view_of(*((k / 400, k / 400 + 0.001, "k", COMPUTE) for k in range(1600)))
    assert draw(many, 4) == "cccc"
    assert draw(many, 4, UNICODE) == "▄▃▃▄"
    calls = [(k / 8, k / 8 + 0.05, "launch", Category.API) for k in range(112)]
    assert draw(view_of(*calls), 14) == "a" * 14


def test_a_selected_event_can_be_seen_in_density() -> None:
    many = view_of(*((k / 400, k / 400 + 0.001, "k", COMPUTE) for k in range(1600)))
    row = draw_lane(many, columns(4), UNICODE, Overlay(selected=1000, related=(100,)))
    assert row.text() == "◇▃◆▄"
    assert parts(int(row.styles[2])) == (Ink.MARK, 0, Emphasis.BOLD | Emphasis.REVERSE)


def test_idle_gaps_and_their_known_ends() -> None:
    lane = view_of((2, 6, "k", COMPUTE), (12, 15, "k", COMPUTE), (16, 18, "k", COMPUTE)).lane
    device = LaneView(lane, summary=True, idle=2000, explained=np.array([12_000], np.int64))
    window = Viewport(-2000, 22_000, 24, extent=(0, 21_000))
    assert draw_lane(device, window, ASCII).text() == "    ####!!!!!!### ##... "
    told = replace(device, idle=1000, reason=lambda _: "sync")
    wide = Viewport(0, 21_000, 42, extent=(0, 21_000))
    assert draw_lane(told, wide, ASCII).text()[12:24] == "!!! sync !!!"
    assert (
        draw_lane(replace(told, reason=lambda _: "a long reason"), wide, ASCII).text()[12:24]
        == "!" * 12
    ), "a name that does not fit is left out"
    assert draw_lane(replace(device, idle=None), window, ASCII).text().strip(" #") == ""
    half = Viewport(0, 10_000, 10, extent=(0, 21_000))
    assert draw_lane(device, half, ASCII).text() == "  ####!!!!"


def test_a_summary_shades_overlapping_streams_by_what_takes_most() -> None:
    device = view_of(
        (0, 8, "k", COMPUTE), (4, 10, "k", COMM), (11, 11.4, "k", MEMORY), summary=True
    )
    assert draw(device, 12) == "########== m"


def test_the_cursor_is_a_line_or_reverse() -> None:
    lane = view_of((2, 8, "gemm", COMPUTE), idle=0)
    for column, char in ((0, "|"), (4, "e")):
        row = draw_lane(lane, columns(10), ASCII, Overlay(cursor=column))
        assert row.chars[column] == char
        reverse = bool(parts(int(row.styles[column])).emphasis & Emphasis.REVERSE)
        assert reverse == (char != "|")
    assert draw_lane(lane, columns(10), ASCII, Overlay(cursor=10)).text() == "..[gemm].."


def emphasised(row: Row, flag: Emphasis) -> str:
    return "".join("x" if parts(int(code)).emphasis & flag else " " for code in row.styles)


def test_the_selected_event_is_bold_reverse_whole_or_merged() -> None:
    row = draw_lane(STREAM, columns(62), ASCII, Overlay(selected=1))
    assert emphasised(row, Emphasis.BOLD) == " " * 12 + "x" * 7 + " " * 43
    merged = draw_lane(STREAM, columns(62), ASCII, Overlay(selected=20))
    assert emphasised(merged, Emphasis.REVERSE).strip() == "x"
    elsewhere = draw_lane(STREAM, columns(10, 40), ASCII, Overlay(selected=1))
    assert emphasised(elsewhere, Emphasis.BOLD).strip() == ""


def test_matches_are_underlined() -> None:
    row = draw_lane(STREAM, columns(62), UNICODE, Overlay(matches=np.array([0, 20, 42])))
    marked = emphasised(row, Emphasis.UNDERLINE)
    assert marked[:12] == "x" * 12
    assert marked[12:19].strip() == ""
    assert marked[19:23].count("x") == 1
    assert marked[60:] == "x "
    assert emphasised(draw_lane(STREAM, columns(5, 70), UNICODE), Emphasis.UNDERLINE).strip() == ""


def test_names_from_a_report_cannot_send_control_characters() -> None:
    hostile = view_of((0, 12, "a\x1b[2Jb", COMPUTE))
    assert draw(hostile, 12) == "[a\\x1b[2Jb#]"
    assert "␛" in draw(hostile, 12, UNICODE)


def test_wide_names_keep_the_grid() -> None:
    row = draw_lane(view_of((0, 9, "前向传播", COMPUTE)), columns(9), UNICODE)
    assert row.text() == "前向传播 "
    assert len(row.chars) == 9
    assert draw(view_of((0, 9, "前向", COMPUTE)), 9) == "[??#####]"


def test_colour_by_something_else_keeps_the_fill_of_the_category() -> None:
    slots = np.array([Ink.SLOT + 2, Ink.SLOT + 4, Ink.SLOT + 4], np.uint8)
    events = view_of((0, 4, "a", COMPUTE), (4, 8, "b", COMM), (9, 9.2, "c", COMM), inks=slots)
    row = draw_lane(events, columns(10), ASCII)
    assert row.text() == "[a#][b=] n"
    assert [code for _, code in row.runs()] == [Ink.SLOT + 2, Ink.SLOT + 4, 0, Ink.SLOT + 4]


def test_two_lanes_share_a_row() -> None:
    upper = view_of((0, 2, "a", COMPUTE), (4, 4, "z", MEMORY))
    lower = view_of((1, 3, "b", COMM))
    row = draw_pair(upper, lower, columns(6), UNICODE)
    assert row.text() == "▀▀▄ ▀ "
    assert parts(int(row.styles[1])) == (category_ink(COMPUTE), category_ink(COMM), Emphasis(0))
    with pytest.raises(ValueError, match="ascii"):
        draw_pair(upper, None, columns(6), ASCII)


def test_marks_in_a_shared_row_go_over_whole_cells() -> None:
    upper = view_of((0, 2, "a", COMPUTE), (4, 4, "z", MEMORY))
    lower = view_of((1, 3, "b", COMM), (5, 6, "c", COMM))
    overlays = Overlay(matches=np.array([1])), Overlay(selected=0, matches=np.array([0, 1]))
    row = draw_pair(upper, lower, columns(6), UNICODE, overlays)
    chosen = Emphasis.REVERSE | Emphasis.BOLD
    found = [parts(int(code))[2] for code in row.styles]
    assert found == [
        Emphasis(0),
        chosen | Emphasis.UNDERLINE,
        chosen,
        Emphasis(0),
        Emphasis.UNDERLINE,
        Emphasis.UNDERLINE,
    ]


def test_many_events_are_coloured_from_a_sample_until_layers_are_there() -> None:
    count = 3 * ON_THE_FLY
    starts = np.arange(count, dtype=np.int64) * 10
    category = np.where(np.arange(count) < count // 2, COMM, COMPUTE).astype(np.uint8)
    lane = Lane.build(starts, starts + 9, None, category)
    window = Viewport(0, count * 10, 10)
    sampled = dominant(lane, window.edges)
    layered = dominant(lane, window.edges, None, Layers.build(lane))
    assert sampled.tolist() == layered.tolist() == [COMM] * 5 + [COMPUTE] * 5


def test_instants_get_the_colour_of_the_first() -> None:
    points = view_of((0.1, 0.1, "a", COMPUTE), (1.1, 1.1, "b", COMM), (1.2, 1.2, "c", MEMORY))
    codes = dominant(points.lane, columns(2).edges)
    assert codes.tolist() == [COMPUTE, COMM]


def test_zoomed_to_a_nanosecond_a_column() -> None:
    lane = Lane.build([3, 5, 6], [5, 6, 9])
    assert draw_lane(LaneView(lane), Viewport(0, 3, 12), ASCII).text() == "   [#[[#]   "


def test_an_empty_lane_is_blank_or_idle() -> None:
    lane = Lane.build([], [])
    assert draw_lane(LaneView(lane), columns(5), UNICODE).text() == " " * 5
    assert draw_lane(LaneView(lane, idle=0), columns(5), ASCII).text() == "....."
