"""How this room builds its tables: columns of text, of counts, of counts that may be unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

Columns = dict[str, tuple[Unit, list[Any]]]


def make(
    name: str, title: str, columns: Columns, notes: Sequence[str] = (), none: str = "none"
) -> Table:
    """A table from columns by header; without rows and notes it says ``none``."""
    made = Table(
        name,
        title,
        tuple(Column(header, unit) for header, (unit, _) in columns.items()),
        tuple(values for _, values in columns.values()),
        tuple(notes),
    )
    if len(made) or notes:
        return made
    return Table(name, title, made.columns, made.data, (none,))


def text(values: Sequence[Any]) -> tuple[Unit, list[Any]]:
    """A column of text."""
    return Unit.TEXT, [str(value) for value in values]


def count(values: Sequence[Any]) -> tuple[Unit, list[Any]]:
    """A column of numbers."""
    return Unit.COUNT, list(values)


def known(values: Sequence[int]) -> tuple[Unit, list[Any]]:
    """A column of numbers in which -1 means that the value is not known."""
    return Unit.COUNT, [None if value < 0 else value for value in values]
