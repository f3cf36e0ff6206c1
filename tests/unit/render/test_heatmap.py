from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.render.cells import as_text
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.heatmap import groups, heat, notable, squeeze


def test_blocks_are_means_and_unknown_cells_count_for_nothing() -> None:
    table = np.array([[0.0, 2.0, 4.0, 6.0], [2.0, np.nan, 8.0, 8.0]])
    assert squeeze(table, 1, 2).tolist() == [[1.5, 6.5]]
    assert np.isnan(squeeze(np.full((3, 3), np.nan), 1, 1)).all()


def test_few_ranks_and_bins_are_repeated_not_stretched() -> None:
    rows = heat(np.array([[0.0, 1.0], [0.5, np.nan]]), 9, 4, UNICODE)
    assert as_text(rows) == "  ██\n▄▄??"


def test_groups_tell_which_ranks_a_row_stands_for() -> None:
    assert groups(10, 4).tolist() == [0, 2, 5, 7, 10]
    assert len(heat(np.ones((1024, 500)), 64, 200, ASCII)) == 64


def test_an_all_idle_map_is_blank() -> None:
    assert as_text(heat(np.zeros((2, 3)), 2, 3, ASCII)) == "   \n   "
    assert heat(np.zeros((0, 3)), 2, 3, ASCII) == []


def test_one_rank_of_thousands_that_differs_stays_to_be_seen() -> None:
    random = np.random.default_rng(0)
    values = 80 + random.normal(0, 1, (4096, 300))
    values[1037, 100:120] = 5
    table, rank = notable(values, 40, 60, 100.0)
    line = 1037 * 40 // 4096
    assert rank[line, 20:24].tolist() == [1037] * 4
    assert table[line, 20:24].tolist() == [5.0] * 4
    assert (rank >= 0).sum() == 4, "noise is no difference"
    assert table[line, 0] == pytest.approx(80, abs=1)
    rows = heat(values, 40, 60, UNICODE, 100.0)
    texts = [row.text() for row in rows]
    assert [n for n, text in enumerate(texts) if len(set(text)) > 1] == [line]


def test_few_ranks_are_drawn_as_they_are() -> None:
    values = np.array([[0.0, 100.0], [np.nan, 50.0]])
    table, rank = notable(values, 2, 2, 100.0)
    assert np.array_equal(table, values, equal_nan=True)
    assert (rank == -1).all()
    assert notable(np.zeros((0, 3)), 0, 3, 100.0)[0].shape == (0, 3)
