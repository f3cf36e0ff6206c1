"""Tables that the schema does not name: whether they look like one of nsys's, and like which."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from nsys_tui.reader.schema import FAMILIES, TABLES, Table

_ENOUGH: Final = 0.5
"""Share of the columns of both tables that they have in common."""
_TELLING: Final = 3
"""Columns of a table by which alone it is known; (name, value) may be anybody's."""
_CLOSE: Final = 0.8
_NAMES: Final = {name.lower(): name for name in TABLES if not name.endswith("*")}


def tables_like(name: str, columns: Collection[str]) -> list[Table]:
    """The declared tables that fit some columns best, or the one of a like name among them."""
    fits = {other: _fit(TABLES[other], columns) for other in _NAMES.values()}
    fits = {other: fit for other, fit in fits.items() if fit >= _ENOUGH}
    if not fits:  # of nearly all, and names are what takes time
        return []
    alike = _name_like(name)
    telling = [other for other in fits if len(TABLES[other].columns) >= _TELLING or other == alike]
    best = max(map(fits.__getitem__, telling), default=0.0)
    names = [other for other in telling if fits[other] == best]
    return [TABLES[other] for other in names if other == alike or alike not in names]


def has_name_like_nsys(name: str) -> bool:
    """Whether a table is called nearly as one of nsys's, or begins as only nsys's do."""
    return name.startswith(FAMILIES) or _name_like(name) is not None


def _name_like(name: str) -> str | None:
    lower = name.lower()
    longer = [known for known in _NAMES if lower.startswith(known)]
    near = longer or get_close_matches(lower, _NAMES, 1, _CLOSE)
    return _NAMES[max(near, key=len)] if near else None


def _fit(table: Table, columns: Collection[str]) -> float:
    """Share of columns in common; 0 where a required one is missing."""
    common = 0
    for column in table.columns.values():
        if any(name in columns for name in (column.name, *column.aliases)):
            common += 1
        elif column.required and column.type != "p":
            return 0.0
    return common / (len(columns) + len(table.columns) - common)
