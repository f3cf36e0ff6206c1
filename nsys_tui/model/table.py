"""Table: the one result type that the screen, the pipe and a DataFrame share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Values: TypeAlias = "Sequence[Any] | NDArray[Any]"
"""The values of one column."""


class Unit(StrEnum):
    """What a column's numbers are; decides header suffix and formatting."""

    NONE = ""
    NS = "ns"
    PERCENT = "%"
    BYTES = "B"
    MB = "MB"
    """Values are bytes; text shows them in 10**6 bytes, as nsys prints them."""
    MB_PER_S = "MB/s"
    """Values are bytes per second; text shows them in 10**6 bytes per second."""
    COUNT = "count"
    TEXT = "text"


@dataclass(frozen=True)
class Column:
    """One column: header without unit, unit, and how many decimals a real number shows."""

    header: str
    unit: Unit = Unit.TEXT
    decimals: int = 0

    @property
    def is_text(self) -> bool:
        """Whether values are aligned left."""
        return self.unit is Unit.TEXT


@dataclass(frozen=True, eq=False)
class Table:
    """A result table: columns of equal length, NumPy arrays or lists.

    None, NaN and masked entries are no values; whole numbers are masked, which keeps them exact.
    """

    name: str
    """Machine name, such as ``cuda_gpu_kern_sum``."""
    title: str
    columns: tuple[Column, ...]
    data: tuple[Values, ...]
    notes: tuple[str, ...] = ()
    """Sentences that belong under the table: what is left out, what is an estimate."""

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.data):
            raise ValueError(f"{self.name}: {len(self.columns)} columns, {len(self.data)} arrays")
        if len({len(values) for values in self.data}) > 1:
            raise ValueError(f"{self.name}: columns of unequal length")

    def __len__(self) -> int:
        return len(self.data[0]) if self.data else 0

    def __getitem__(self, header: str) -> Values:
        return self.data[[column.header for column in self.columns].index(header)]

    def rows(self) -> list[tuple[Any, ...]]:
        """Rows of plain Python values."""
        return list(zip(*map(plain, self.data), strict=True))


def plain(values: Values) -> list[Any]:
    """The values of a column as plain Python ones; None where they are masked."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return [value.item() if isinstance(value, np.generic) else value for value in values]
