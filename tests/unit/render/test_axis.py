from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.model.lanes import Lane
from nsys_tui.render.axis import draw_axis, draw_minimap, tick_step, ticks
from nsys_tui.render.cells import Emphasis, parts
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.viewport import Viewport

MS = 1_000_000


def seconds(ns: int, step: int) -> str:
    return f"{ns / 1e9:.{max(0, 10 - len(str(step)))}f} s"


def mixed(ns: int, step: int) -> str:
    return f"{ns // MS:+d} ms" if abs(ns) < 1000 * MS else f"{ns / 1e9:+.0f} s"


@pytest.mark.parametrize(
    ("span", "most", "expected"),
    [(55 * MS, 6, 10 * MS), (100, 100, 1), (3, 9, 1), (1001, 5, 500), (900, 5, 200), (10, 10, 1)],
)
def test_steps_are_1_2_5(span: int, most: int, expected: int) -> None:
    assert tick_step(span, most) == expected


def test_ticks_are_whole_steps_from_the_origin() -> None:
    window = Viewport(-25, 75, 100)
    assert ticks(window, 10) == ([-20, -10, 0, 10, 20, 30, 40, 50, 60, 70], 10)
    assert ticks(window, 10, origin=3)[0][:2] == [-17, -7]


def test_a_shared_unit_stands_on_the_last_label_only() -> None:
    axis = draw_axis(Viewport(2100 * MS, 2155 * MS, 66), seconds, ASCII).text()
    assert axis == "|2.10       |2.11       |2.12       |2.13       |2.14 s     |     "


def test_mixed_units_stay() -> None:
    axis = draw_axis(Viewport(0, 3000 * MS, 40), mixed, ASCII).text()
    assert axis == "|+0 ms       |+1 s        |+2 s         "


def test_ticks_stand_in_the_column_of_their_moment() -> None:
    window = Viewport(7, 1007, 90)
    text = draw_axis(window, lambda ns, _: f"{ns} ns", ASCII).text()
    for moment in ticks(window)[0]:
        assert text[window.cell(moment) or 0] == "|"


def test_marks_area_and_cursor() -> None:
    row = draw_axis(
        Viewport(0, 100, 100),
        lambda ns, _: str(ns),
        ASCII,
        marks={"a": 42, "b": 420},
        area=(30, 10),
        cursor=50,
    )
    assert row.chars[42] == "a"
    reverse = [bool(parts(int(code)).emphasis & Emphasis.REVERSE) for code in row.styles]
    assert [column for column, on in enumerate(reverse) if on] == [*range(10, 30), 50]


def test_the_minimap_shows_load_and_the_window() -> None:
    lane = Lane.build([0, 500], [100, 1000])
    assert draw_minimap(lane, (0, 1000), (300, 600), 10, ASCII).text() == "#  [=]####"
    assert draw_minimap(lane, (0, 1000), (999, 1000), 10, UNICODE).text() == "█    ███[]"
    assert draw_minimap(lane, (0, 1000), (0, 1000), 10, ASCII).text() == "[========]"


def test_viewport_maps_times_and_cells() -> None:
    window = Viewport(-10, 90, 10)
    assert (window.cell(-11), window.cell(-10), window.cell(89), window.cell(90)) == (
        None,
        0,
        9,
        None,
    )
    assert (window.time(0), window.time(3), window.time(10), window.time(-1)) == (-10, 20, 90, -20)
    assert window.cells(np.array([-99, 0, 99])).tolist() == [-1, 1, 10]
    assert window.nearest_edges_of(-99, -6, -5, 94, 99) == (0, 0, 1, 10, 10)
    assert Viewport(5, 5, 4).hi == 9
