from __future__ import annotations

import numpy as np

from nsys_tui.model.lanes import Lane
from nsys_tui.render.counters import draw_counter, draw_samples, draw_shares, resample
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.viewport import Viewport

TIMES = np.array([0, 5, 12, 31, 39], np.int64)
VALUES = np.array([10, 30, 40, 80, 0], np.int64)
WINDOW = Viewport(0, 50, 5)


def test_cells_take_the_mean_of_their_samples() -> None:
    mean = resample(TIMES, VALUES, WINDOW)
    assert np.array_equal(mean, [20, 40, np.nan, 40, np.nan], equal_nan=True)


def test_a_held_value_lasts_until_the_next_sample() -> None:
    assert resample(TIMES, VALUES, WINDOW, reach=1_000).tolist() == [20, 40, 40, 40, 0]
    late = resample(TIMES, VALUES, Viewport(50, 70, 2), reach=1_000)
    assert late.tolist() == [0, 0]
    assert np.array_equal(
        resample(TIMES, VALUES, Viewport(40, 60, 2), reach=5), [0, np.nan], equal_nan=True
    ), "but no longer than it reaches"
    early = resample(TIMES, VALUES, Viewport(-20, 0, 2), reach=1_000)
    assert np.isnan(early).all()


def test_a_counter_is_drawn_to_its_peak_or_to_the_top() -> None:
    assert draw_counter(TIMES, VALUES, WINDOW, UNICODE).text() == "▄█ █ "
    assert draw_counter(TIMES, VALUES, WINDOW, ASCII, top=100).text() == ":= = "
    row = draw_counter(TIMES, VALUES, WINDOW, UNICODE, top=100, shape="ascii")
    assert row.text() == ":= = "


def test_braille_has_two_columns_a_cell_and_falls_back_in_ascii() -> None:
    times = np.array([0, 1, 2, 3], np.int64)
    values = np.array([1, 2, 4, 4], np.int64)
    row = draw_counter(times, values, Viewport(0, 4, 2), UNICODE, shape="braille", top=4)
    dots = [ord(char) - 0x2800 for char in row.chars]
    assert dots == [0x40 | 0x20, 0x01 | 0x02 | 0x08]
    plain = draw_counter(times, values, Viewport(0, 4, 2), ASCII, shape="braille", top=4)
    assert plain.text().isascii()


def test_sample_density() -> None:
    row = draw_samples(np.array([0, 1, 2, 3, 30], np.int64), WINDOW, ASCII)
    assert row.text() == "#  : "


def test_nothing_recorded_draws_nothing() -> None:
    none = np.empty(0, np.int64)
    assert draw_counter(none, none, WINDOW, UNICODE, reach=1_000).text() == "     "


def test_cells_show_the_share_of_them_that_is_covered() -> None:
    lane = Lane.build([0, 15, 45], [10, 20, 46])
    assert draw_shares(lane, WINDOW, UNICODE).text() == "█▄  ▁"
    off = (("blocked", Lane.build([20], [33])), ("off the CPU", Lane.build([33], [45])))
    assert draw_shares(lane, WINDOW, UNICODE, off).text() == "█▄bo▁"
