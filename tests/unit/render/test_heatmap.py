from __future__ import annotations

import numpy as np

from nsys_tui.render.cells import as_text
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.heatmap import groups, heat, squeeze


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
