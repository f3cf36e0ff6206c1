"""Dictionary encoding of columns: few distinct 64-bit values become small codes, fast.

Shared by everything that turns raw columns into event sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise, factorise_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.reader.raw_columns import RawColumns

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]

NO_ID = -1


def codes(values: Int64) -> tuple[Int64, Int32]:
    """Distinct values of a column (int64, ascending) and the code of each row (int32)."""
    code, distinct = factorise(values)
    return distinct, code.astype(np.int32, copy=False)


def combine(columns: Sequence[Int64]) -> tuple[list[Int64], Int32]:
    """Encodes rows of several columns: one code per distinct combination.

    Returns:
        for each column, its value in each distinct combination; and the code of each row.
    """
    code, rows = factorise_rows(columns)
    return list(rows.T), code.astype(np.int32, copy=False)


def column(raw: RawColumns, name: str, default: int = NO_ID) -> Int64:
    """One column with NULLs and a missing column replaced by ``default``."""
    values = raw.values.get(name)
    if values is None:
        return np.full(len(raw.rowid), default, np.int64)
    nulls = raw.nulls.get(name)
    if nulls is None:
        return values
    return np.where(nulls, default, values)


def instants(raw: RawColumns, name: str) -> Int64:
    """A column of times, NULLs as 0, cut to ``FARTHEST``: no difference or short sum overflows."""
    values = column(raw, name, 0)
    if len(values) and (values.min() < -FARTHEST or values.max() > FARTHEST):
        return np.clip(values, -FARTHEST, FARTHEST)
    return values


def is_null(raw: RawColumns, name: str) -> NDArray[np.bool_]:
    """True where a column holds NULL or does not exist."""
    if name not in raw.values:
        return np.ones(len(raw.rowid), bool)
    return raw.nulls.get(name, np.zeros(len(raw.rowid), bool))


def ends(raw: RawColumns) -> Int64:
    """The ``end`` column; an event without an end, or with one before its start, is a point."""
    start = instants(raw, "start")
    return np.maximum(start, np.where(is_null(raw, "end"), start, instants(raw, "end")))


def in_start_order(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Sorts the columns of an event set by (start, rowid), one after the other and in their place.

    Args:
        arrays: columns of equal length with at least ``start`` and ``rowid``; used up.
    """
    start, rowid = arrays["start"], arrays["rowid"]
    step, rising = start[1:] - start[:-1], bool((rowid[1:] > rowid[:-1]).all())
    if (step > 0).all() or (rising and (step >= 0).all()):
        return arrays
    order = np.argsort(start, kind="stable") if rising else np.lexsort((rowid, start))
    for name in arrays:
        arrays[name] = arrays[name][order]
    return arrays
