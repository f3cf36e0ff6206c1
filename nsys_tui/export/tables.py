"""Tables as Parquet files; the text formats are those of ``nsys_tui.text.tables``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from nsys_tui.errors import UsageError
from nsys_tui.extras import adding
from nsys_tui.model.table import UNNAMED, Coded, Column, Form, Table, Unit, Values, plain
from nsys_tui.writing import whole_file

_ROW_GROUP: Final = 1 << 20
_EXACT: Final = {Unit.NS: "ns", Unit.PERCENT: "%", Unit.MB: "B", Unit.MB_PER_S: "B/s"}
"""Units of stored values: unlike printed ones they are neither scaled nor rounded."""


def write_parquet(table: Table, path: Path, *, overwrite: bool) -> None:
    """Writes a table to a file.

    Raises:
        UsageError: pyarrow is not installed, or the file exists or cannot be written.
    """
    stored = _stored(table)
    with whole_file(path, "wb" if overwrite else "xb") as file:
        _write(stored, file, _unheard)


def store_parquet(table: Table, file: BinaryIO, told: Callable[[int], None]) -> None:
    """Writes a table to an open file.

    Args:
        table: its exact values are stored: ns, bytes, unrounded reals; None for no value.
        file: open for writing.
        told: called with the number of rows written, a row group at a time.

    Raises:
        UsageError: pyarrow is not installed.
    """
    _write(_stored(table), file, told)


def _stored(table: Table) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise UsageError(
            "writing Parquet needs pyarrow, which is not installed",
            hint=f"{adding('parquet')}; or choose --format csv",
        ) from error
    pairs = [(c, v) for c, v in table.keyed() if not c.inner and c.form is Form.ONE]
    arrays = [_array(pyarrow, column, values) for column, values in pairs]
    return pyarrow.table(arrays, names=[exact_header(column) for column, _ in pairs])


def _write(stored: Any, file: BinaryIO, told: Callable[[int], None]) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(file, stored.schema) as writer:
        for start in range(0, max(stored.num_rows, 1), _ROW_GROUP):
            writer.write_table(stored.slice(start, _ROW_GROUP))
            told(min(start + _ROW_GROUP, stored.num_rows))


def _unheard(rows: int) -> None:
    """Stands in where nobody wants to know."""


def exact_header(column: Column) -> str:
    """A column's header with the unit in which its values are stored; its key without a header."""
    unit = _EXACT.get(column.unit, column.unit.value)
    plain = column.unit in UNNAMED or not column.header
    return column.header or column.name if plain else f"{column.header} ({unit})"


def _array(pyarrow: Any, column: Column, values: Values) -> Any:
    if isinstance(values, Coded):
        codes = pyarrow.array(values.codes, mask=values.codes < 0)
        return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(values.labels))
    if column.is_text:
        texts = [None if value is None else str(value) for value in values]
        return pyarrow.array(texts, pyarrow.string()).dictionary_encode()
    if isinstance(values, np.ndarray) and values.dtype != object:
        return pyarrow.array(values, from_pandas=True)
    return pyarrow.array(plain(values), from_pandas=True)
