"""Columns of a result table as printed headers and numbers: units, scales and nsys's rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.errors import UsageError
from nsys_tui.model.table import UNNAMED, Column, Unit, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_tui.model.table import Table, Values

Number = int | float


@dataclass(frozen=True)
class TimeUnit:
    """How times are printed: header suffix, nanoseconds of one unit, decimals that keep each ns."""

    suffix: str
    scale: int
    decimals: int


TIME_UNITS: Final = {
    "nsec": TimeUnit("ns", 1, 0),
    "usec": TimeUnit("us", 1_000, 3),
    "msec": TimeUnit("ms", 1_000_000, 6),
    "seconds": TimeUnit("s", 1_000_000_000, 9),
}
_SHORT: Final = {"ns": "nsec", "us": "usec", "ms": "msec", "s": "seconds", "sec": "seconds"}
CHUNK: Final = 4096
"""Rows turned into text at a time: a trace of millions of rows never stands in memory as text."""
_PER_MB: Final = 1_000_000


def time_unit(name: str) -> TimeUnit:
    """Finds a time unit by its nsys name, a prefix of it, or ``ns``/``us``/``ms``/``s``.

    Raises:
        UsageError: the name is none of them.
    """
    wanted = _SHORT.get(name, name)
    for full, unit in TIME_UNITS.items():
        if wanted and full.startswith(wanted):
            return unit
    raise UsageError(f"unknown time unit: {name!r}", hint=f"one of {', '.join(TIME_UNITS)}")


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
        return [None if _missing(cell) else self.number(cell) for cell in map(_plain, cells)]

    def texts(self, start: int, stop: int, *, separators: bool) -> list[str | None]:
        """Rows as printed; numbers with all their decimals and, on demand, thousands separators."""
        cells = self.plain(start, stop)
        if self.is_text:
            return cells
        return [None if cell is None else self._text(cell, separators) for cell in cells]

    def _text(self, value: Number, separators: bool) -> str:
        # Written as a float, an integer beyond 2**53 would lose its last digits.
        form = "d" if isinstance(value, int) and not self.decimals else f".{self.decimals}f"
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


def printed_columns(table: Table, timeunit: str = "nsec") -> list[PrintedColumn]:
    """The columns for people with headers and scales for one time unit."""
    unit = time_unit(timeunit)
    return [_printed(column, values, unit) for column, values in table.printed()]


def header(column: Column, unit: TimeUnit = TIME_UNITS["nsec"]) -> str:
    """A column's header with its unit in parentheses; counts and text have none."""
    suffix = unit.suffix if column.unit is Unit.NS else column.unit.value
    return column.header if column.unit in UNNAMED else f"{column.header} ({suffix})"


def text_rows(
    columns: Sequence[PrintedColumn], count: int, *, separators: bool = False
) -> Iterator[tuple[str, ...]]:
    """Printed rows one by one; a missing value is an empty string."""
    for start in range(0, count, CHUNK):
        texts = [c.texts(start, start + CHUNK, separators=separators) for c in columns]
        yield from zip(*([text or "" for text in column] for column in texts), strict=True)


def _printed(column: Column, values: Values, unit: TimeUnit) -> PrintedColumn:
    scale, decimals = 1, column.decimals
    if column.unit is Unit.NS and unit.scale > 1:
        scale, decimals = unit.scale, unit.decimals
    elif column.unit in (Unit.MB, Unit.MB_PER_S):
        scale, decimals = _PER_MB, 3
    whole = scale == 1 and decimals == 0

    def number(value: Any) -> Number:
        return _whole(value) if whole else round_half_away(value / scale, decimals)

    return PrintedColumn(header(column, unit), column.is_text, decimals, number, values)


def _plain(cell: Any) -> Any:
    """A number of numpy's that stands in a list as one of Python's."""
    return cell.item() if isinstance(cell, np.generic) else cell


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
