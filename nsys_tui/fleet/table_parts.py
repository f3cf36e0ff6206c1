"""What the tables of a fleet share: what they may be asked for, columns, top rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from nsys_tui.fleet.fleet import DEFAULT_BINS, Fleet
from nsys_tui.model.table import Column, Table, Unit, Values


@dataclass(frozen=True)
class Ask:
    """What a table may be asked for."""

    top: int | None = None
    """Rows of long lists; None for all."""
    by_rank: bool = False
    """Statistics per name for every rank, not over all."""
    bins: int = DEFAULT_BINS
    human: bool = False
    """For people: shares without the times they are made of."""


Section: TypeAlias = Callable[[Fleet, Ask], Table]
Columns: TypeAlias = "list[tuple[Column, Values]]"


def count_column(header: str) -> Column:
    """A column of counts."""
    return Column(header, Unit.COUNT)


def time_column(header: str) -> Column:
    """A column of times in ns."""
    return Column(header, Unit.NS)


def share_column(header: str) -> Column:
    """A column of percentages."""
    return Column(header, Unit.PERCENT, 1)


ALL_ROWS: Final = "more rows: --top 0 prints all"


def cut(table: Table, top: int | None) -> Table:
    """The first rows, and a note that says how many more there are."""
    if top is None or len(table) <= top:
        return table
    more = f"and {len(table) - top:,} {ALL_ROWS}"
    return replace(table.first(top), notes=(*table.notes, more))


def percent(part: float, whole: float) -> float | None:
    """``part`` of ``whole``, None without a whole."""
    return 100 * part / whole if whole else None
