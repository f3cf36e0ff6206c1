"""Tables of a page: sorted by a click or a key, cut to so many rows, numbers kept for sorting."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from nsys_tui.model.table import Unit, plain
from nsys_tui.sharing.words import text_of
from nsys_tui.text.sections import READABLE, readable
from nsys_tui.text.values import printed_columns, text_rows
from nsys_tui.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.model.table import Column, Table


def table_html(table: Table, title: str, most: int, name: int = 300) -> str:
    """A table with its notes, in a region that scrolls by itself.

    Args:
        table: the table, whole.
        title: what it is called.
        most: rows at most.
        name: characters of a text at most.
    """
    return "".join(_pieces(table, title, most, name))


def _pieces(table: Table, title: str, most: int, name: int) -> Iterator[str]:
    label, shown = text_of(title), min(most, len(table))
    columns = [column for column, _ in table.printed()]
    if len(table):
        head = "".join(map(_heading, columns))
        yield (
            f'<div class="scroll tall" tabindex="0" role="region" aria-label="{label}">'
            f"<table><caption>{label}</caption><thead><tr>{head}</tr></thead>\n<tbody>"
        )
        yield from _rows(table, shown, name)
        yield "</tbody></table></div>\n"
    if len(table) > shown:
        count = format_count(len(table) - shown)
        yield f'<p class="note">The first {shown} rows; {count} more are in the report.</p>\n'
    for note in table.notes[:20]:
        yield f'<p class="note">{text_of(note, 400)}</p>\n'


def is_number(column: Column) -> bool:
    """Whether a column is aligned right and sorted by value."""
    return column.unit in READABLE or not column.is_text


def _heading(column: Column) -> str:
    kind = ' class="n"' if is_number(column) else ""
    header = text_of(column.header)
    share = " (%)" if column.unit is Unit.SHARE else ""
    button = f'<button type="button">{header}{share}</button>'
    return f'<th scope="col" aria-sort="none"{kind}>{button}</th>'


def _rows(table: Table, shown: int, name: int) -> Iterator[str]:
    raw = [
        plain(values[:shown]) if is_number(column) else None for column, values in table.printed()
    ]
    texts = text_rows(printed_columns(readable(_first(table, shown))), shown, separators=True)
    for place, row in enumerate(islice(texts, shown)):
        cells = (
            _cell(text, None if values is None else (values[place],), name)
            for text, values in zip(row, raw, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>\n"


def _first(table: Table, count: int) -> Table:
    return replace(table, data=tuple(values[:count] for values in table.data))


def _cell(text: str, number: tuple[object] | None, name: int) -> str:
    if number is None:
        return f"<td>{text_of(text, name)}</td>"
    value = number[0]
    known = isinstance(value, int | float) and value == value
    shown = escape(repr(value)) if known else ""
    return f'<td class="n" data-v="{shown}">{text_of(text.strip())}</td>'
