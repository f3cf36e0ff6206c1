"""Tables of a page: sorted by a click or a key, cut to so many rows, numbers kept for sorting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Final

from nsys_tui.model.table import Column, Table, Unit, plain
from nsys_tui.sharing.words import text_of
from nsys_tui.text.sections import READABLE, filled, readable
from nsys_tui.text.values import printed_columns, text_rows
from nsys_tui.units import format_count

_NAMES: Final = ("Name", "Operation", "Range", "Phase", "Call")
"""Headers of what a row is about: last in a terminal, first on a page, where it stays in view."""
_SHORT: Final = 20
"""Characters of a text that stays on one line."""
_FIGURE: Final = re.compile(r"([+-]?\d[\d,.]* ?[a-zA-Z%]*|gone|new|-|)")


def table_html(table: Table, most: int, name: int = 300, heading: str = "") -> str:
    """A table with its title and notes, in a region that scrolls by itself.

    Args:
        table: the table, whole.
        most: rows at most.
        name: characters of a text at most.
        heading: what stands above it already and says what its title would.
    """
    return "".join(_pieces(table, most, name, heading))


def _pieces(table: Table, most: int, name: int, heading: str) -> Iterator[str]:
    shown = min(most, len(table))
    label = text_of(heading or table.title)
    if not heading and (shown or table.notes):
        yield f'<p class="caption">{label}</p>\n'
    if shown:
        yield f'<div class="scroll tall" tabindex="0" role="region" aria-label="{label}">'
        yield from _table(_named_first(table, shown), shown, name)
        yield "</div>\n"
    if len(table) > shown:
        count = format_count(len(table) - shown)
        yield f'<p class="note">The first {shown} rows; {count} more are in the report.</p>\n'
    for note in list(dict.fromkeys(table.notes))[:20]:
        yield f'<p class="note">{text_of(note, 400)}</p>\n'


def _named_first(table: Table, shown: int) -> Table:
    """The first rows of what is ``filled``, beginning with the name where it is last."""
    pairs = filled(table)
    if pairs[-1][0].header in _NAMES:
        pairs = [pairs[-1], *pairs[:-1]]
    columns, data = zip(*pairs, strict=True)
    return replace(table, columns=columns, data=tuple(values[:shown] for values in data))


def _table(table: Table, shown: int, name: int) -> Iterator[str]:
    rows = [*text_rows(printed_columns(readable(table)), shown, separators=True)]
    texts = [*zip(*rows, strict=True)]
    kinds = [*map(_kind, table.columns, texts)]
    heads = "".join(map(_heading, table.columns, kinds))
    named = ' class="named"' if table.columns[0].header in _NAMES else ""
    yield f"<table{named}><thead><tr>{heads}</tr></thead>\n<tbody>"
    cells = [
        _cells(each, plain(values), kind, name)
        for each, values, kind in zip(texts, table.data, kinds, strict=True)
    ]
    for row in zip(*cells, strict=True):
        yield f"<tr>{''.join(row)}</tr>\n"
    yield "</tbody></table>"


def _kind(column: Column, texts: Sequence[str]) -> str:
    """Class of cells: ``n`` sorted by value, ``r`` what looks like numbers, ``s`` short texts."""
    if column.unit in READABLE or not column.is_text:
        return "n"
    if all(_FIGURE.fullmatch(text.strip()) for text in texts):
        return "r"
    return "s" if max(map(len, texts), default=0) <= _SHORT else ""


def _heading(column: Column, kind: str) -> str:
    header = text_of(column.header.strip())
    share = " (%)" if column.unit is Unit.SHARE else ""
    button = f'<button type="button">{header}{share}</button>'
    return f'<th scope="col" aria-sort="none"{_class(kind)}>{button}</th>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _cells(texts: Sequence[str], values: Sequence[Any], kind: str, name: int) -> Iterator[str]:
    """The cells of a column; numbers with their value."""
    for text, value in zip(texts, values, strict=True):
        told = ""
        if kind == "n":
            known = isinstance(value, int | float) and value == value
            told = f' data-v="{escape(repr(value)) if known else ""}"'
        shown = text_of(text.strip() if kind else text, name)
        yield f"<td{_class(kind)}{told}>{shown}</td>"
