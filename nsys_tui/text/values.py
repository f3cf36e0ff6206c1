"""Columns of a result table as printed headers and numbers: units, scales and nsys's rounding."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nsys_tui.model.table import Column, Table, Unit, Values, plain
from nsys_tui.names import visible
from nsys_tui.text.formats import Units

Number = int | float


CHUNK: Final = 4096
"""Rows turned into text at a time: a trace of millions of rows never stands in memory as text."""
_USUAL: Final = Units()


@dataclass(frozen=True)
class PrintedColumn:
    """One column ready for printing."""

    header: str
    """With its unit, as ``Total Time (ns)``."""
    is_text: bool
    decimals: int
    number: Callable[[Any], Number]
    """Turns a stored value into the number that is printed."""
    values: Values

    def plain(self, start: int, stop: int) -> list[Any]:
        """Rows as strings, numbers or None (no value, NaN and infinity)."""
        cells = plain(self.values[start:stop])
        if self.is_text:
            return [None if cell is None else str(cell) for cell in cells]
        return [None if _missing(cell) else self.number(cell) for cell in cells]

    def texts(self, start: int, stop: int, *, separators: bool) -> list[str | None]:
        """Rows as printed; numbers with all their decimals and, on demand, thousands separators."""
        cells = self.plain(start, stop)
        if self.is_text:
            return cells
        return [None if cell is None else self._text(cell, separators) for cell in cells]

    def literals(self, start: int, stop: int) -> list[str]:
        """Rows as JSON has them; numbers with all their decimals."""
        cells = self.plain(start, stop)
        return [json.dumps(c) if type(c) is not float else self._text(c, False) for c in cells]

    def _text(self, value: Number, separators: bool) -> str:
        # Written as a float, an integer beyond 2**53 would lose its last digits.
        form = "d" if isinstance(value, int) else f".{self.decimals}f"
        return f"{value:{',' if separators else ''}{form}}"

    def extremes(self, *, separators: bool) -> list[str]:
        """The smallest and the largest number as printed; none where there is no number."""
        numbers = np.ma.filled(np.ma.asarray(self.values, np.float64), np.nan)
        finite = numbers[np.isfinite(numbers)]
        return (
            [self._text(self.number(float(v)), separators) for v in (finite.min(), finite.max())]
            if len(finite)
            else []
        )


def printed_columns(table: Table, units: Units = _USUAL) -> list[PrintedColumn]:
    """The columns for people with headers and scales."""
    return [_printed(column, values, units) for column, values in table.printed()]


def text_rows(
    columns: Sequence[PrintedColumn], count: int, *, separators: bool = False
) -> Iterator[tuple[str, ...]]:
    """Printed rows one by one; a missing value is an empty string."""
    for start in range(0, count, CHUNK):
        texts = [c.texts(start, start + CHUNK, separators=separators) for c in columns]
        yield from zip(*([text or "" for text in column] for column in texts), strict=True)


def _printed(column: Column, values: Values, units: Units) -> PrintedColumn:
    per, decimals = units.scale(column)
    stored = units.native().scale(column).decimals
    # nsys prints a median of bytes as it stores it: whole where it is
    bare = per == 1 and column.unit is Unit.MB and column.header.endswith("Med")

    def number(value: Any) -> Number:
        figure = round_half_away(value, stored) if stored else _whole(value)
        if bare and figure == int(figure):
            return int(figure)
        # nsys multiplies what it has rounded by the reciprocal, and prints as C does: ties, such as
        # 50 ns in ms with four decimals, fall as they do in binary.
        return round(figure * (1 / per), decimals) if per > 1 else figure

    if units.addr == "uint" and column.header.endswith("Address"):
        values = [_address(cell) for cell in plain(values)]
    header = visible(units.header(column))
    return PrintedColumn(header, column.is_text, decimals, number, values)


def _address(cell: Any) -> Any:
    """An address as a decimal number; what is none, such as a name, as it is."""
    hexadecimal = isinstance(cell, str) and cell.startswith("0x")
    return str(int(cell, 16)) if hexadecimal else cell


def _missing(value: Any) -> bool:
    """Whether a cell of numbers holds none; damaged reports have text and bytes there."""
    return not (isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)))


def _whole(value: Any) -> Number:
    return value if isinstance(value, int) else int(round_half_away(value, 0))


def round_half_away(value: float, decimals: int) -> float:
    """Rounds with ties away from zero, as SQLite's ``ROUND`` does and Python's does not."""
    scale = 10.0**decimals
    magnitude = math.floor(abs(value) * scale + 0.5) / scale
    return math.copysign(magnitude, value) if magnitude else 0.0
