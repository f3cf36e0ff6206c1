from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.ui.widgets.table.columns import Drawn
from nsys_tui.ui.widgets.table.layout import MARGIN, first_for, order_of, slots


def column(width: int, *, extra: bool = False, grow: bool = False, wanted: int = 0) -> Drawn:
    order = partial(np.empty, 0)
    return Drawn(
        header="h", width=width, extra=extra, grow=grow, wanted=wanted, draw=str, order=order
    )


KERNELS = [column(5), column(8), column(8, extra=True), column(20, grow=True)]


def test_all_columns_stand_in_their_order_where_they_fit() -> None:
    assert [slot.column for slot in slots(KERNELS, 60)] == [0, 1, 2, 3]


def test_extra_columns_give_way_to_the_others() -> None:
    assert order_of(KERNELS, 40) == [0, 1, 3, 2]
    seen = slots(KERNELS, 40)
    assert [slot.column for slot in seen] == [0, 1, 3]
    assert seen[-1].x + seen[-1].width == 40, "the name takes what is left"


def test_the_name_stays_where_another_column_has_no_room_beside_it() -> None:
    wide = [column(5), column(17), column(8), column(20, grow=True), column(9, extra=True)]
    assert [slot.column for slot in slots(wide, 54)] == [0, 1, 2, 3]
    assert [slot.column for slot in slots(wide, 53)] == [0, 1, 3], "not the name gives way"
    for hidden in (2, 4):
        first = first_for(wide, 53, hidden, 0)
        assert hidden in [slot.column for slot in slots(wide, 53, first)]
    assert [slot.column for slot in slots(wide, 30, 1)] == [1, 2], "no room beside the first"


def test_a_name_has_the_room_it_wants_before_extra_columns_are_shown() -> None:
    named = [*KERNELS[:3], column(20, grow=True, wanted=30), column(4, extra=True)]
    assert [slot.column for slot in slots(named, 55)] == [0, 1, 3, 2]
    assert [slot.column for slot in slots(named, 54)] == [0, 1, 3]
    assert [slot.width for slot in slots(named, 40)] == [5, 8, 24], "no column is lost for it"
    assert 2 in [slot.column for slot in slots(named, 40, 1)], "which scrolling reaches"


def test_scrolling_shows_a_hidden_column_and_comes_back() -> None:
    first = first_for(KERNELS, 40, 2, 0)
    assert first > 0
    assert 2 in [slot.column for slot in slots(KERNELS, 40, first)]
    assert first_for(KERNELS, 40, 0, first) == 0


def test_a_pinned_column_stays_while_others_scroll() -> None:
    tree = [column(20, grow=True), *(column(8) for _ in range(6))]
    first = first_for(tree, 40, 6, 0, pinned=True)
    seen = [slot.column for slot in slots(tree, 40, first, pinned=True)]
    assert seen[0] == 0
    assert 6 in seen


def test_a_column_that_has_no_room_beside_a_pinned_one_is_given_up() -> None:
    tree = [column(20, grow=True), column(8), column(8)]
    assert [first_for(tree, width, 2, 0, pinned=True) for width in (0, 10, 22)] == [0, 0, 0]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            column,
            st.integers(1, 30),
            extra=st.booleans(),
            grow=st.booleans(),
            wanted=st.integers(0, 40),
        ),
        min_size=1,
        max_size=9,
    ),
    st.integers(10, 120),
    st.data(),
)
def test_slots_never_overlap_nor_leave_the_row(
    columns: list[Drawn], width: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.integers(0, len(columns) - 1))
    first = first_for(columns, width, chosen, data.draw(st.integers(0, len(columns) - 1)))
    seen = slots(columns, width, first)
    assert chosen in [slot.column for slot in seen]
    free = MARGIN
    for slot in seen:
        assert slot.x >= free
        assert slot.width >= 1
        free = slot.x + slot.width + 1
    assert free - 1 <= max(width, MARGIN + 1)


def test_every_column_is_sought_in_an_end_whatever_the_width() -> None:
    columns = KERNELS
    for width in range(40):
        for column in range(len(columns)):
            for first in range(4):
                for pinned in (False, True):
                    found = first_for(columns, width, column, first, pinned)
                    assert 0 <= found <= 3
                    if not pinned:
                        seen = [slot.column for slot in slots(columns, width, found)]
                        assert column in seen
