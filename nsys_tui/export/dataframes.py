"""Tables as pandas DataFrames: columns by their keys, times int64 ns, repeated names categorical.

Arrays become columns without a copy: they are the report's own and can only be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nsys_tui.model.groups import regroup
from nsys_tui.model.table import Coded, Column, Form, Table, Unit, Values, plain


def frame_of(table: Table) -> pd.DataFrame:
    """A table as a DataFrame; its notes are in ``attrs["notes"]``."""
    columns = {column.name: _series(column, values) for column, values in table.keyed()}
    frame = pd.DataFrame(columns, copy=False)
    frame.attrs["notes"] = list(table.notes)
    return frame


def _series(column: Column, values: Values) -> Any:
    if isinstance(values, Coded):
        codes, labels = values.codes, list(values.labels)
        if len(set(labels)) < len(labels):
            codes, labels = regroup(codes, labels)
            codes = np.where(values.codes < 0, -1, codes)
        return pd.Categorical.from_codes(codes, pd.Index(labels), validate=False)
    if column.inner or column.form is not Form.ONE:
        return pd.Series(plain(values), dtype=object)
    if column.unit is Unit.TEXT:
        return pd.Series([None if v is None else str(v) for v in plain(values)], dtype="str")
    numbers = _numbers(values)
    return numbers / 100 if column.unit is Unit.PERCENT else numbers


def _numbers(values: Values) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        whole = values.dtype.kind in "iu"
        return pd.arrays.IntegerArray(values.data, mask) if whole else values.filled(np.nan)
    if isinstance(values, np.ndarray) and values.dtype != object:
        shared = values.view()
        shared.flags.writeable = False
        return shared
    cells = plain(values)
    if all(isinstance(cell, int) for cell in cells):
        return np.array(cells, bool if cells and isinstance(cells[0], bool) else np.int64)
    if all(cell is None or isinstance(cell, int) for cell in cells):
        return pd.array(cells, dtype="Int64")
    return pd.Series(pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce"))
