"""Statistics of a report by plain SQL and loops, to check the vectorised ones against."""

from __future__ import annotations

import sqlite3
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from pathlib import Path


class Figures(NamedTuple):
    total: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name
    mean: float
    median: float
    least: int
    most: int
    deviation: float


def query(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a query; none when a table or column is missing."""
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    try:
        return connection.execute(sql, values).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def grouped(rows: Iterable[tuple[Hashable, int]]) -> dict[Hashable, Figures]:
    """Figures of (key, value) rows by key."""
    values: dict[Hashable, list[int]] = defaultdict(list)
    for key, value in rows:
        values[key].append(value)
    return {key: figures(found) for key, found in values.items()}


def figures(values: list[int]) -> Figures:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    mean = sum(values) / len(values)
    middle = statistics.median(values)
    return Figures(sum(values), len(values), mean, middle, min(values), max(values), spread)
