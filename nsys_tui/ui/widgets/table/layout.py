"""Where the columns of a table stand: what fits, in which order, and what is scrolled away."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.ui.widgets.table.columns import TableColumn

MARGIN: Final = 1
"""Cells at the left for the sign of the cursor."""
WIDE_GAP, GAP = 2, 1
ROOM_TO_GROW: Final = 40
"""Cells that columns with names shall gain before the gaps do."""


class Slot(NamedTuple):
    """One column on the screen."""

    column: int
    """Place among the columns of the table."""
    x: int
    width: int


def order_of(columns: Sequence[TableColumn], width: int) -> list[int]:
    """Columns in the order in which they stand: the extra ones last where not all have room."""
    everything = list(range(len(columns)))
    if _needed(_widths(columns, wanted=True), GAP) <= width:
        return everything
    return sorted(everything, key=lambda number: columns[number].extra)


def slots(
    columns: Sequence[TableColumn], width: int, first: int = 0, pinned: bool = False
) -> list[Slot]:
    """The columns that are seen; without its name a row says nothing, so that one stays.

    Args:
        columns: all of them.
        width: cells of a row.
        first: how many columns of ``order_of`` are scrolled out at the left.
        pinned: whether the first column always stays.
    """
    order = order_of(columns, width)
    order = [*order[:1], *order[1:][first:]] if pinned else order[first:]
    taken: list[int] = []
    for number in order:
        column = columns[number]
        fit = partial(_fit, columns, width, wanted=column.extra and not first)
        if column.grow and not column.extra and not any(columns[other].grow for other in taken):
            fewer = (taken[:most] for most in range(len(taken), 0, -1))
            taken = next((some for some in fewer if fit([*some, number])), taken)
        if taken and not fit([*taken, number]):
            break
        taken.append(number)
    shown = [columns[number] for number in taken]
    least, widths = (_widths(shown, wanted=wanted) for wanted in (False, True))
    if _needed(widths, GAP) > width:
        widths = least
    growth = max(0, ROOM_TO_GROW - (sum(widths) - sum(least)))
    gap = WIDE_GAP if _needed(widths, WIDE_GAP) + growth <= width else GAP
    spare = max(0, width - _needed(widths, gap))
    growing = [number for number in taken if columns[number].grow]
    laid_out, x = [], MARGIN
    for number, own in zip(taken, widths, strict=True):
        cells = own
        if columns[number].grow:
            share = spare // len(growing)
            cells += spare - share * (len(growing) - 1) if number == growing[-1] else share
        cells = min(cells, max(1, width - x))
        laid_out.append(Slot(number, x, cells))
        x += cells + gap
    return laid_out


def first_for(
    columns: Sequence[TableColumn], width: int, column: int, first: int, pinned: bool = False
) -> int:
    """How many columns to scroll out so that one of them is seen, moving as little as possible.

    None, where it is too narrow to see it, as before the first layout.
    """
    order = order_of(columns, width)
    if column not in order:
        return 0
    position = order.index(column)
    if pinned:
        if position == 0:
            return first
        position -= 1
    seen = (
        scrolled
        for scrolled in range(min(first, position), position + 1)
        if column in [slot.column for slot in slots(columns, width, scrolled, pinned)]
    )
    return next(seen, 0)


def _fit(
    columns: Sequence[TableColumn], width: int, numbers: Sequence[int], *, wanted: bool
) -> bool:
    return _needed(_widths([columns[n] for n in numbers], wanted=wanted), GAP) <= width


def _widths(columns: Sequence[TableColumn], *, wanted: bool) -> list[int]:
    return [max(column.width, column.wanted * wanted) for column in columns]


def _needed(widths: Sequence[int], gap: int) -> int:
    return MARGIN + sum(widths) + gap * max(0, len(widths) - 1)
