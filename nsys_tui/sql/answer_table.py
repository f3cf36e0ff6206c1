"""What a query gave as a table: so many rows, columns by name, numbers or texts."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from nsys_tui.errors import UsageError
from nsys_tui.model.table import Column, Table, Unit
from nsys_tui.names import visible

MOST_BYTES: Final = 256 << 20
"""Bytes of the values of an answer."""
_DECIMALS: Final = 12
"""Of real numbers; what does not fit is written as text."""


def fetched(cursor: sqlite3.Cursor, limit: int | None) -> tuple[list[tuple[Any, ...]], bool]:
    """Rows of an answer, and whether there are more."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        if limit is not None and len(rows) == limit:
            return rows, True
        rows.append(row)
        size += sum(map(sys.getsizeof, row))
        if size > MOST_BYTES:
            raise UsageError(
                f"the answer is larger than {MOST_BYTES >> 20} MiB after {len(rows):,} rows",
                hint="aggregate, take fewer columns, or --limit",
            )
    return rows, False


def answer_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """The answer; columns of the same name get numbers, so that no program loses one."""
    seen: dict[str, int] = {}
    pairs = []
    lists = zip(*rows, strict=True) if rows else ((),) * len(headers)
    for header, values in zip(headers, lists, strict=True):
        name = visible(header) or "?"
        number = next(
            n for n in count(seen.get(name, 0) + 1) if n == 1 or f"{name}:{n}" not in seen
        )
        seen[name] = number
        name = name if number == 1 else f"{name}:{number}"
        seen.setdefault(name, 1)
        pairs.append(_typed(name, values))
    return Table.of("sql", "Answer", pairs)


def _typed(name: str, values: Sequence[Any]) -> tuple[Column, list[Any]]:
    """A column of numbers where all values are some, else of texts."""
    if all(value is None or isinstance(value, int | float) for value in values):
        reals = [value for value in values if isinstance(value, float)]
        decimals = max(map(_decimals, reals), default=0)
        if decimals <= _DECIMALS:
            return Column(name, Unit.NONE, decimals, key=name), list(values)
    texts = [value if value is None else _text(value) for value in values]
    return Column(name, Unit.TEXT, key=name), texts


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return value if isinstance(value, str) else repr(value)


def _decimals(value: float) -> int:
    """Decimals that a real number needs, ``_DECIMALS`` at most; one more where that is no way."""
    if value != value or value in (float("inf"), float("-inf")):
        return 0
    if abs(value) >= 1e15 or 0 < abs(value) < 1e-6:
        return _DECIMALS + 1
    text = f"{value:.{_DECIMALS}f}".rstrip("0")
    return len(text.partition(".")[2])
