from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.render.cells import as_text
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.spark import (
    MARGIN,
    bar_at,
    bar_column,
    columns_of,
    draw_bars,
    draw_histogram,
    histogram,
    sparkline,
)


def test_sparklines_never_hide_what_is_there() -> None:
    assert sparkline([0, 1, 50, 100], UNICODE) == " ▁▄█"
    assert sparkline([0, 1, 50, 100], ASCII) == " .=#"
    assert sparkline([0.0, np.nan, 2.0], ASCII) == "  #"
    assert sparkline([], ASCII) == ""
    assert sparkline([0, 0], ASCII) == "  "


def test_histograms_count_every_value() -> None:
    found = histogram(np.array([1, 10, 100, 1000, 1000]), 3)
    assert found.counts.tolist() == [1, 1, 3]
    assert found.edges.tolist() == pytest.approx([1, 10, 100, 1000])
    assert int(histogram(np.array([7, 7, 7]), 4).counts.sum()) == 3
    assert int(histogram(np.array([], np.int64), 4).counts.sum()) == 0
    assert int(histogram(np.array([0, 0, 3]), 5).counts.sum()) == 3


def test_a_histogram_has_its_scale_and_axis() -> None:
    values = np.repeat([1, 10, 100, 1000], [4, 8, 2, 0]).astype(np.int64)
    drawn = as_text(draw_histogram(histogram(values, 3), 2, ASCII, lambda edge: f"{edge:.0f}"))
    assert drawn.splitlines() == [
        "       8 | # ",
        "       0 |##=",
        "         +---",
        "         1   ",
    ]


def test_bars_stack_by_levels() -> None:
    assert as_text(columns_of([0, 4, 6, 8], 2, 8, UNICODE)) == "  ▄█\n ███"
    assert as_text(columns_of([1, 0], 1, 0, UNICODE)) == "█ "


def test_a_bar_is_found_by_its_column() -> None:
    values = np.array([3, 9, 4, 1, 8, 2, 5])
    exact = MARGIN + 8
    assert [bar_at(values, exact, MARGIN + n) for n in range(-1, 8)] == [None, *range(7), None]
    narrow = MARGIN + 3
    _, merged = draw_bars(values, narrow, 2, ASCII, str)
    assert merged == 3
    assert [bar_at(values, narrow, MARGIN + n) for n in range(4)] == [1, 4, 6, None]


def test_few_bars_are_as_wide_as_there_is_room_for() -> None:
    values = np.array([4, 8, 2])
    rows, _ = draw_bars(values, MARGIN + 17, 2, UNICODE, str, outliers=[1], chosen=2)
    assert [row.text()[MARGIN:] for row in rows] == [
        "     !███        ",
        "████ ████ ▄▄▄▄   ",
        "0         2      ",
    ]
    assert [bar_column(place, 3, MARGIN + 17) for place in range(3)] == [10, 15, 20]
    assert [bar_at(values, MARGIN + 17, column) for column in (10, 14, 15, 23, 25)] == [
        *(0, 0, 1, 2),
        None,
    ]
    marked = [bool(cell) for cell in rows[1].styles == rows[1].styles[MARGIN + 10]]
    assert marked[MARGIN:] == [False] * 10 + [True] * 4 + [False] * 3


def test_iteration_bars_mark_outliers() -> None:
    values = np.full(12, 20.0)
    values[5] = 40
    rows, merged = draw_bars(
        values, 26, 2, ASCII, lambda v: f"{v:.0f}", np.flatnonzero(values > 30)
    )
    assert merged == 1
    assert [row.text() for row in rows] == [
        "      40 |     !          ",
        "      20 |############    ",
        "          0         10    ",
    ]


def test_more_iterations_than_columns_show_the_highest_of_each() -> None:
    values = np.ones(40)
    values[39] = 2
    rows, merged = draw_bars(values, 20, 1, ASCII, lambda v: f"{v:.0f}", np.flatnonzero(values > 1))
    assert merged == 4
    assert rows[0].chars[19] == "!"
    assert set(rows[0].chars[10:19]) == {"="}


@pytest.mark.parametrize("width", range(1, 24))
def test_bars_fit_any_width(width: int) -> None:
    values = list(range(1, 17))
    rows, _ = draw_bars(values, width, 1, ASCII, str, outliers=[5, 15], chosen=15)
    assert {len(row.chars) for row in rows} == {width}


def test_the_members_of_a_bar_are_as_many_as_it_counts() -> None:
    values = np.array([0, 1, 3, 9, 10, 10, 99, 100, 250, 1000, 1000])
    for bins in (1, 3, 7, 40):
        found = histogram(values, bins)
        members = [found.members(values, MARGIN + place) for place in range(bins)]
        assert [len(inside) for inside in members] == found.counts.tolist()
        assert sorted(np.concatenate(members).tolist()) == [*range(len(values))]
        assert not len(found.members(values, MARGIN - 1))
        assert not len(found.members(values, MARGIN + bins))
