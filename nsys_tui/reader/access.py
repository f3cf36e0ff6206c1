"""Columns of a file by the names of the schema, whatever the file calls them.

The only way in which event sets reach columns: what is absent, or declared as another type, is left
out here, and ``encode`` knows it is not there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.reader import columns as stored
from nsys_tui.reader.schema import declared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from nsys_tui.model.progress import Progress
    from nsys_tui.reader.raw_columns import RawColumns
    from nsys_tui.reader.sqlite import Database


def read_columns(
    db: Database, table: str, columns: Sequence[str], progress: Progress | None = None
) -> RawColumns:
    """Whole columns of numbers; arguments and errors are those of ``columns.read_columns``."""
    names, actual, needed = _asked(db, table, columns)
    raw = stored.read_columns(db, table, actual, progress, needed)
    return _renamed(raw, names)


def iter_columns(
    db: Database, table: str, columns: Sequence[str], progress: Progress | None = None
) -> Iterator[RawColumns]:
    """The same piece by piece, as ``columns.iter_columns``."""
    names, actual, needed = _asked(db, table, columns)
    for piece in stored.iter_columns(db, table, actual, progress, needed):
        yield _renamed(piece, names)


def sample_columns(db: Database, table: str, columns: Sequence[str], rows: int) -> RawColumns:
    """About so many rows, as ``columns.sample_columns``."""
    names, actual, needed = _asked(db, table, columns)
    raw = stored.sample_columns(db, table, actual, rows, needed)
    return _renamed(raw, names)


def read_text_column(db: Database, table: str, column: str) -> tuple[NDArray[np.int32], list[str]]:
    """A column of text as codes and distinct values, as ``columns.read_text_column``."""
    name = db.schema.names(table, (column,)).get(column)
    if name is None:
        return np.empty(0, np.int32), []
    return stored.read_text_column(db, table, name)


def _asked(
    db: Database, table: str, columns: Sequence[str]
) -> tuple[dict[str, str], list[str], dict[str, bool]]:
    """Names in the file by those of the schema, each once, and ``needed`` of what reads them."""
    names = db.schema.names(table, tuple(columns))
    known = declared(table)
    pairs = [(known.columns[name], actual) for name, actual in names.items()] if known else []
    needed = {a: one.required and not one.may_be_null for one, a in pairs if one.filled}
    return names, list(dict.fromkeys(names.values())), needed


def _renamed(raw: RawColumns, names: dict[str, str]) -> RawColumns:
    """Values under the names of the schema; one column of the file may stand for two."""
    if all(name == actual for name, actual in names.items()):
        return raw
    return replace(
        raw,
        values={name: raw.values[actual] for name, actual in names.items()},
        nulls={name: raw.nulls[a] for name, a in names.items() if a in raw.nulls},
        bad={name: raw.bad[a] for name, a in names.items() if a in raw.bad},
    )
