from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.ui.widgets.table.columns import numbers, strings
from nsys_tui.ui.widgets.table.rows import Arrangement, Pick, arrange, found, sorted_rows

NAMES = ["gemm_128", "flash", "gemm_64", "copy"]
COLUMNS = (
    numbers("total", 8, np.array([3, 1, 3, 2]), str),
    strings("name", 8, NAMES),
)

EXTREMES = st.sampled_from([0, 1, -1, 2**62, -(2**62), 7])


@settings(max_examples=80, deadline=None)
@given(st.lists(EXTREMES | st.integers(-50, 50), max_size=40), st.booleans())
def test_sorting_is_stable_for_any_numbers(values: list[int], descending: bool) -> None:
    wanted = sorted(range(len(values)), key=lambda i: -values[i] if descending else values[i])
    assert sorted_rows(np.array(values, np.int64), None, descending).tolist() == wanted


@pytest.mark.parametrize("descending", [False, True])
def test_rows_without_a_number_come_last_either_way(descending: bool) -> None:
    order = sorted_rows(np.array([np.nan, 2.0, 1.0]), None, descending).tolist()
    assert order == ([1, 2, 0] if descending else [2, 1, 0])


def test_sorting_keeps_to_the_rows_that_a_filter_left() -> None:
    rows = np.array([0, 2, 3], np.int32)
    assert sorted_rows(np.array([3, 1, 3, 2]), rows, True).tolist() == [0, 2, 3]
    assert sorted_rows(np.array([3, 1, 3, 2]), rows, False).tolist() == [3, 0, 2]


def test_an_untouched_table_has_no_order_of_its_own() -> None:
    assert arrange(COLUMNS, 4, Arrangement()) is None
    assert arrange(COLUMNS, 4, Arrangement(sort="not there")) is None


def test_filters_add_up_and_sort_applies_to_what_is_left() -> None:
    tally = COLUMNS[0].tally(None)[0][0]
    assert (tally.text, tally.rows) == ("3", 2)
    wanted = Arrangement(sort="name", pattern="gemm", picks=(Pick("total", tally),))
    order = arrange(COLUMNS, 4, wanted)
    assert order is not None
    assert [NAMES[row] for row in order] == ["gemm_64", "gemm_128"]


def test_a_search_takes_expressions_and_ignores_case() -> None:
    def hits(pattern: str) -> list[str]:
        mask = found(COLUMNS, 4, pattern)
        return [name for name, hit in zip(NAMES, mask, strict=True) if hit]

    assert hits("GEMM") == ["gemm_128", "gemm_64"]
    assert hits("^(flash|copy)$") == ["flash", "copy"]
    assert hits("(") == []
    assert hits("  ") == []
    assert hits("3") == [], "numbers are not searched"


def test_sorting_again_turns_the_order_round() -> None:
    once = Arrangement().sorted_by("total", descending_first=True)
    assert (once.sort, once.descending) == ("total", True)
    assert not once.sorted_by("total", descending_first=True).descending
    assert not once.sorted_by("name", descending_first=False).descending


def test_without_a_sort_rows_stand_in_their_natural_order() -> None:
    natural = np.array([2, 0, 3, 1], np.int32)
    assert arrange(COLUMNS, 4, Arrangement(), natural) is natural
    kept = arrange(COLUMNS, 4, Arrangement(pattern="gemm|copy"), natural)
    assert kept is not None
    assert kept.tolist() == [2, 0, 3]
    by_total = arrange(COLUMNS, 4, Arrangement(sort="total"), natural)
    assert by_total is not None
    assert by_total.tolist() == [1, 3, 0, 2]
