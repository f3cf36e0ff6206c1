from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nsys_tui.ui.runtime.changed_cells import along, jump, step

cells = st.tuples(st.integers(0, 50), st.integers(0, 200))


def moved(sent: str, y: int, x: int) -> tuple[int, int]:
    """Where a terminal's cursor is after some movements."""
    for numbers, way, char in re.findall(r"\x1b\[([\d;]*)([A-Z])|([\r\b])", sent):
        count = int(numbers.partition(";")[0] or 1)
        if way == "H":
            y, x = count - 1, int(numbers.partition(";")[2] or 1) - 1
        else:
            y, x = {
                "B": (y + count, x),
                "C": (y, x + count),
                "G": (y, count - 1),
                "\r": (y, 0),
                "\b": (y, x - 1),
            }[way or char]
    return y, x


@given(cells, cells)
def test_every_way_leads_there_and_none_is_longer_than_a_jump(
    start: tuple[int, int], goal: tuple[int, int]
) -> None:
    sent = step(*start, *goal)
    assert moved(sent, *start) == goal
    assert len(sent) <= len(jump(*goal))
    assert moved(jump(*goal), *start) == goal
    assert moved(along(goal[1]), *start) == (start[0], goal[1])


def test_the_shortest_ways() -> None:
    assert step(3, 5, 3, 5) == ""
    assert step(3, 5, 3, 6) == "\x1b[C"
    assert step(3, 5, 3, 9) == "\x1b[4C"
    assert step(3, 5, 3, 3) == "\b\b"
    assert step(3, 90, 3, 40) == "\x1b[41G"
    assert step(3, 119, 4, 118) == "\x1b[B\b"
    assert step(3, 5, 4, 0) == "\x1b[B\r"
    assert step(9, 5, 3, 5) == "\x1b[4;6H"
