"""Which rows a table shows and in which order: filters, sorting and searching over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsys_tui.analysis.timeline.search import matcher
from nsys_tui.model.arrays import Array, Bool, Int32
from nsys_tui.model.groups import sorted_places
from nsys_tui.ui.widgets.table.columns import TableColumn, Tally, Texts


@dataclass(frozen=True)
class Pick:
    """A filter by the value of one column, chosen from its frequencies."""

    header: str
    tally: Tally


@dataclass(frozen=True)
class Arrangement:
    """What decides the order of a table and what it leaves out."""

    sort: str = ""
    """Header of the sorted column, empty for the order of the data."""
    descending: bool = False
    pattern: str = ""
    """Filter; empty lets everything through."""
    picks: tuple[Pick, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether rows may be left out."""
        return bool(self.pattern or self.picks)

    def sorted_by(self, header: str, descending_first: bool) -> Arrangement:
        """Sorts by another column, or turns the order round."""
        if header == self.sort:
            return replace(self, descending=not self.descending)
        return replace(self, sort=header, descending=descending_first)


def found(columns: Sequence[TableColumn], size: int, pattern: str) -> Bool:
    """Rows in which any text column matches a pattern; none for an empty pattern."""
    mask = np.zeros(size, bool)
    if pattern.strip():
        test = matcher(pattern)
        for column in columns:
            if isinstance(column, Texts):
                mask |= column.hits(test)
    return mask


def positions(matches: Bool | None, order: Int32 | None) -> Int32 | None:
    """Where in an order the rows stand that a search found; None without a search."""
    if matches is None:
        return None
    return np.flatnonzero(matches if order is None else matches[order]).astype(np.int32)


def arrange(
    columns: Sequence[TableColumn],
    size: int,
    wanted: Arrangement,
    natural: Int32 | None = None,
) -> Int32 | None:
    """Rows to show in their order; None for all rows as they are.

    Args:
        columns: of the table; a sort or pick by a column that is not there is passed over.
        size: number of rows.
        wanted: sort and filters.
        natural: all rows in the order they have without a sort; None for that of their numbers.
    """
    by_header = {column.header: column for column in columns}
    keep: Bool | None = None
    if wanted.pattern.strip():
        keep = found(columns, size, wanted.pattern)
    for pick in wanted.picks:
        if pick.header in by_header:
            within = by_header[pick.header].within(pick.tally.low, pick.tally.high)
            keep = within if keep is None else keep & within
    column = by_header.get(wanted.sort)
    keys = column.keys() if column is not None else None
    if keys is None and natural is not None:
        return natural if keep is None else natural[keep[natural]]
    rows = None if keep is None else np.flatnonzero(keep).astype(np.int32)
    return rows if keys is None else sorted_rows(keys, rows, wanted.descending)


def sorted_rows(keys: Array, rows: Int32 | None, descending: bool) -> Int32:
    """Sorts rows by their keys; equal keys keep their order, NaN and masked ones come last.

    Args:
        keys: numbers, one per row of the whole table.
        rows: the rows to sort, ascending; None for all.
        descending: largest first.
    """
    values = keys if rows is None else keys[rows]
    order = _order(values, descending)
    return order if rows is None else rows[order]


def _order(values: Array, descending: bool) -> Int32:
    if np.ma.isMaskedArray(values):
        masked = np.ma.getmaskarray(values)
        known = np.flatnonzero(~masked).astype(np.int32)
        ordered = known[_order(values.data[known], descending)]
        return np.concatenate((ordered, np.flatnonzero(masked).astype(np.int32)))
    if values.dtype.kind == "f":
        return np.argsort(-values if descending else values, kind="stable").astype(np.int32)
    return sorted_places(values, descending=descending)
