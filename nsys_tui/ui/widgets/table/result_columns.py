"""A ``Table`` of the text outputs as columns of the virtual table, whatever its units."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Array
from nsys_tui.model.table import Column, Table, Unit, Values, plain
from nsys_tui.names import cell_len, visible
from nsys_tui.text.sections import reading
from nsys_tui.ui.widgets.table.columns import TableColumn, numbers, strings
from nsys_tui.units import format_count

WIDEST: Final = 44
"""Cells of a text column at most; the last one takes what is left."""
_MEASURED: Final = 2_000
"""Rows that decide about a width."""


def columns_of(table: Table, least: int = WIDEST) -> tuple[TableColumn, ...]:
    """Columns for a ``VirtualTable`` of the same rows.

    Args:
        table: what is shown.
        least: cells with which the last one, if it is text, is shown rather than left out.
    """
    shown = table.printed()
    last = len(shown) - 1
    return tuple(
        _column(column, values, least, grow=place == last)
        for place, (column, values) in enumerate(shown)
    )


def _column(column: Column, values: Values, least: int, *, grow: bool) -> TableColumn:
    if column.is_text:
        texts = ["-" if value is None else visible(str(value)) for value in values]
        width = min(least if grow else WIDEST, _widest(column.header, texts[:_MEASURED]))
        return strings(column.header, width, texts, grow=grow)
    write = reading(column) or partial(_number, column)
    array = _numbers(values)
    known = (v for v in array[:_MEASURED].tolist() if v is not None and v == v)
    shown = [write(value) for value in known]
    width = _widest(column.header, shown)
    return numbers(column.header, width, array, write, unit=column.unit, decimals=column.decimals)


def _number(column: Column, value: float) -> str:
    if column.unit is Unit.COUNT:
        return format_count(round(value))
    return f"{value:,.{column.decimals}f}"


def _numbers(values: Values) -> Array:
    """The values as an array; exact integers where those that are known are small enough."""
    if isinstance(values, np.ndarray):
        return values
    listed = plain(values)
    unknown = [value is None for value in listed]
    if all(value is None or (isinstance(value, int) and abs(value) < 2**62) for value in listed):
        known = np.array([value or 0 for value in listed], np.int64)
        return np.ma.masked_array(known, unknown) if any(unknown) else known
    return np.array([np.nan if value is None else float(value) for value in listed], np.float64)


def _widest(header: str, texts: list[str]) -> int:
    # One cell more for the mark of the sorted column.
    return max([cell_len(header) + 1, *map(cell_len, texts)])
