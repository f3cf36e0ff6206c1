"""Tables as JSON rows whose keys are names and units: ``exposed_comm_percent``, ``span_ns``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.model.table import Unit

if TYPE_CHECKING:
    from nsys_tui.model.table import Column, Table, Values

_SUFFIX: Final = {Unit.NS: "_ns", Unit.PERCENT: "_percent", Unit.BYTES: "_bytes"}


def json_rows(table: Table) -> list[dict[str, Any]]:
    """The rows of a table as JSON values; None where there is no value."""
    keys = [json_key(column) for column in table.columns]
    cells = [
        _plain(column, values) for column, values in zip(table.columns, table.data, strict=True)
    ]
    return [dict(zip(keys, row, strict=True)) for row in zip(*cells, strict=True)]


def json_key(column: Column) -> str:
    """``Held up`` in ns becomes ``held_up_ns``, ``≈ Q1`` becomes ``approximate_q1_ns``."""
    text = column.header.lower().replace("≈", "approximate").replace(" ", "_")
    return text + _SUFFIX.get(column.unit, "")


def _plain(column: Column, values: Values) -> list[Any]:
    cells = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [_number(column, cell) for cell in cells]


def _number(column: Column, cell: Any) -> Any:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if not isinstance(cell, float):
        return cell
    if cell != cell:
        return None
    return int(cell) if column.unit is Unit.NS and cell.is_integer() else cell
