from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.names import NameStyle
from nsys_tui.state import (
    HISTORY_DEPTH,
    ColourBy,
    Cursor,
    Filter,
    Mark,
    Selection,
    ViewState,
    Window,
    at_mark,
    bounded,
    cycled,
    displayed,
    gone_back,
    gone_forward,
    here,
    jumped,
    marked,
    moved,
    panned,
    unmarked,
    zoomed,
)

EXTENT = (0, 1_000_000)


def test_all_is_a_state_of_its_own_and_follows_a_new_extent() -> None:
    state = ViewState()
    assert state.shown((0, 10)) == Window(0, 10)
    assert state.shown((-5, 20)) == Window(-5, 20)
    assert replace(state, window=Window(1, 2)).shown((0, 10)) == Window(1, 2)


def test_back_and_forward_restore_window_cursor_selection_and_view() -> None:
    first = replace(ViewState(), cursor=Cursor(7, "gpu0"))
    second = jumped(first, here(first, "kernels", {"row": 3}), window=Window(10, 20))
    back, place = gone_back(second, here(second, "timeline"))
    assert place is not None
    assert (place.screen, place.view) == ("kernels", {"row": 3})
    assert (back.window, back.cursor) == (None, Cursor(7, "gpu0"))
    forward, place = gone_forward(back, here(back, "kernels"))
    assert place is not None
    assert place.screen == "timeline"
    assert forward.window == Window(10, 20)


def test_a_new_jump_forgets_what_lay_ahead() -> None:
    state = ViewState()
    state = jumped(state, here(state, "overview"), window=Window(0, 5))
    state, _ = gone_back(state, here(state, "timeline"))
    state = jumped(state, here(state, "overview"), window=Window(1, 2))
    assert gone_forward(state, here(state, "timeline"))[1] is None


def test_going_back_at_the_start_changes_nothing() -> None:
    state = ViewState()
    assert gone_back(state, here(state, "overview")) == (state, None)
    assert gone_forward(state, here(state, "overview")) == (state, None)


def test_consecutive_zooms_are_one_history_entry() -> None:
    state = ViewState()
    for end in (90, 80, 70):
        state = moved(state, here(state, "timeline"), window=Window(0, end))
    assert len(state.history.back) == 1
    back, _ = gone_back(state, here(state, "timeline"))
    assert back.window is None


def test_a_zoom_after_a_jump_is_a_new_entry() -> None:
    state = ViewState()
    state = moved(state, here(state, "timeline"), window=Window(0, 9))
    state = jumped(state, here(state, "timeline"), window=Window(5, 6))
    state = moved(state, here(state, "timeline"), window=Window(5, 7))
    assert [place.window for place in state.history.back] == [None, Window(0, 9), Window(5, 6)]


def test_history_keeps_the_newest_entries() -> None:
    state = ViewState()
    for n in range(HISTORY_DEPTH + 5):
        state = jumped(state, here(state, "timeline"), window=Window(n, n + 1))
    assert len(state.history.back) == HISTORY_DEPTH
    assert state.history.back[-1].window == Window(HISTORY_DEPTH + 3, HISTORY_DEPTH + 4)


def test_a_mark_restores_its_context_or_only_the_time() -> None:
    mark = Mark(
        "a", 50, "timeline", "gpu0", Selection("operation", ("t", 1)), Window(40, 60),
        Filter(pattern="gemm"), ColourBy.NAME,
    )  # fmt: skip
    state = marked(ViewState(), mark)
    changes = at_mark(state, state.marks["a"])
    there = jumped(state, here(state, "kernels"), **changes)
    assert there.window == Window(40, 60)
    assert there.cursor == Cursor(50, "gpu0")
    assert there.filter.pattern == "gemm"
    assert there.display.colour_by is ColourBy.NAME
    only = replace(state, **at_mark(state, mark, only_time=True))
    assert only.cursor.time == 50
    assert only.window is None
    assert unmarked(state, "a").marks == {}
    assert unmarked(state, "z") == state


def test_filter_is_true_when_it_hides_anything() -> None:
    assert not Filter()
    assert Filter(min_duration=1)
    assert Filter(streams=frozenset({0}))


def test_display_and_cycling() -> None:
    assert displayed(ViewState(), names=NameStyle.FULL).display.names is NameStyle.FULL
    assert cycled(NameStyle.FULL) is NameStyle.SHORT


def test_zooming_in_keeps_the_moment_at_its_place() -> None:
    assert zoomed(Window(0, 1000), EXTENT, 0.5, 250, 10) == Window(125, 625)


def test_zooming_in_stops_at_one_nanosecond_a_column() -> None:
    assert zoomed(Window(500, 600), EXTENT, 0.01, 550, 80) == Window(510, 590)


def test_zooming_out_beyond_the_trace_is_all() -> None:
    assert zoomed(Window(0, 600_000), EXTENT, 2, 300_000, 80) is None
    wide = zoomed(Window(0, 540_000), EXTENT, 2, 270_000, 80)
    assert wide is not None
    assert wide.width == 1_080_000


@pytest.mark.parametrize("by", [-(10**12), 10**12])
def test_panning_never_loses_the_trace(by: int) -> None:
    window = panned(Window(0, 1000), EXTENT, by)
    assert window.width == 1000
    assert window.start < EXTENT[1]
    assert window.end > EXTENT[0]


@settings(max_examples=60, deadline=None)
@given(
    lo=st.integers(-(2**62), 2**62),
    length=st.integers(1, 2**61),
    start=st.integers(-(2**62), 2**62),
    width=st.integers(1, 2**61),
)
def test_bounding_keeps_the_width_and_touches_the_trace(
    lo: int, length: int, start: int, width: int
) -> None:
    window = bounded(Window(start, start + width), (lo, lo + length))
    assert window.width == width
    assert window.start < lo + length
    assert window.end > lo
