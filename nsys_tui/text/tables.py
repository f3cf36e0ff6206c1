r"""Result tables as text: one entry for every verb, one function per format.

Every format writes out control characters, invisible ones and those that turn the direction of
text, so that a name never steers a terminal: csv and tsv as ``\x1b`` with line breaks kept in
quotes, json as its own escapes, the formats for people (nsys's ruled ``column`` and
boxed ``table``, aligned) as pictures.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from nsys_tui.model.table import Table
from nsys_tui.names import cell_len, escaped, visible
from nsys_tui.text.documents import list_schema
from nsys_tui.text.folding import flowed, folded, pad, shorten, squeezed
from nsys_tui.text.formats import Format, Units, parse_format
from nsys_tui.text.values import CHUNK, PrintedColumn, printed_columns, text_rows

_LINES = "┌┬┐ ├┼┤ └┴┘ ─│"
_ASCII_LINES = "+++ +++ +++ -|"

MEASURED: Final = 20_000
"""Rows whose text decides how wide a column is: a trace of millions is printed as it is read."""


def aligned(
    columns: Sequence[PrintedColumn], count: int, chosen: Format, *, ascii_only: bool
) -> Iterator[str]:
    """Lines of the ``column`` or ``table`` format; only text is ever cut, never a number.

    Rows that are too wide for ``room`` go without their box over several lines.
    """
    asked = [*chosen.widths, *[None] * (len(columns) - len(chosen.widths))]
    kept = [(column, cells) for column, cells in zip(columns, asked, strict=False) if cells != 0]
    columns = [column for column, _ in kept]
    widths = [cells or _width(column, count, chosen, ascii_only) for column, cells in kept]
    rows = text_rows(columns, count, separators=chosen.separators)
    if chosen.room is not None:
        fitting = squeezed(widths, [column.is_text for column in columns], chosen.room)
        if fitting is None:
            yield from _folded(columns, rows, widths, chosen, ascii_only)
            return
        widths = fitting
    header = [shorten(pad(c.header, w, "^"), w) for c, w in zip(columns, widths, strict=True)]
    shown = header if chosen.show_header else None
    lines = (_cells(columns, row, widths, ascii_only) for row in rows)
    if chosen.kind == "column":
        yield from _ruled(lines, widths, shown)
    else:
        yield from _boxed(lines, widths, shown, _ASCII_LINES if ascii_only else _LINES)


def _folded(
    columns: Sequence[PrintedColumn],
    rows: Iterable[Sequence[str]],
    widths: Sequence[int],
    chosen: Format,
    ascii_only: bool,
) -> Iterator[str]:
    """Rows over several lines each, because they are too wide for one."""
    room = chosen.room or 0
    places = flowed(widths, room)
    if chosen.show_header:
        pairs = zip(columns, widths, strict=True)
        header = [pad(c.header, cells, "<" if c.is_text else ">") for c, cells in pairs]
        yield from (f"{line}\n" for line in folded(header, widths, places, room))
        yield " " + "-" * (room - 1) + "\n"
    for row in rows:
        cells = _cells(columns, row, widths, ascii_only)
        yield from (f"{line}\n" for line in folded(cells, widths, places, room))


def _width(column: PrintedColumn, count: int, chosen: Format, ascii_only: bool) -> int:
    """Cells for a column: of a long table only the first rows' text and the extreme numbers."""
    measured = chosen.measured or MEASURED
    if column.is_text or count <= measured:
        first = column.texts(0, measured, separators=chosen.separators)
        texts = [visible(text, ascii_only) for text in first if text]
    else:
        texts = column.extremes(separators=chosen.separators)
    widest = max(map(cell_len, texts), default=0)
    if column.is_text and chosen.limit is not None:
        widest = min(widest, chosen.limit)
    return max(widest, cell_len(column.header))


def _cells(
    columns: Sequence[PrintedColumn], row: Sequence[str], widths: Sequence[int], ascii_only: bool
) -> list[str]:
    return [
        pad(shorten(visible(text, ascii_only), cells), cells)
        if column.is_text
        else pad(text, cells, ">")
        for column, text, cells in zip(columns, row, widths, strict=True)
    ]


def _ruled(
    lines: Iterable[Sequence[str]], widths: Sequence[int], header: Sequence[str] | None
) -> Iterator[str]:
    if header is not None:
        yield " " + "  ".join(header) + "\n"
        yield " " + "  ".join("-" * cells for cells in widths) + "\n"
    for line in lines:
        yield " " + "  ".join(line) + "\n"


def _boxed(
    lines: Iterable[Sequence[str]], widths: Sequence[int], header: Sequence[str] | None, box: str
) -> Iterator[str]:
    top, middle, bottom, strokes = box.split()
    dash, bar = tuple(strokes)

    def rule(corners: str) -> str:
        first, between, last = tuple(corners)
        return first + between.join(dash * (cells + 2) for cells in widths) + last + "\n"

    def framed(line: Sequence[str]) -> str:
        return bar + bar.join(f" {cell} " for cell in line) + bar + "\n"

    yield rule(top)
    if header is not None:
        yield framed(header)
        yield rule(middle)
    for line in lines:
        yield framed(line)
    yield rule(bottom)


def render(
    table: Table,
    fmt: str | Format,
    *,
    ascii_only: bool = False,
) -> str:
    """Prints a table in one of ``formats.KINDS``.

    Args:
        table: the table; times in ns, ``Unit.MB`` in bytes.
        fmt: format with options, such as ``column:nohdr``.
        ascii_only: draws the box of ``table`` with ``+-|``.

    Returns:
        The text, ending in a newline unless it is empty.

    Raises:
        UsageError: unknown format, option or unit.
    """
    return "".join(chunks(table, fmt, ascii_only=ascii_only))


def chunks(
    table: Table,
    fmt: str | Format,
    *,
    ascii_only: bool = False,
) -> Iterator[str]:
    """The text of ``render`` piece by piece, for tables of many rows."""
    chosen = parse_format(fmt) if isinstance(fmt, str) else fmt
    columns = printed_columns(table, chosen.units)
    if chosen.is_human:
        yield from aligned(columns, len(table), chosen, ascii_only=ascii_only)
    elif chosen.kind == "markdown":
        yield from _markdown(columns, len(table))
    elif chosen.kind == "json":
        yield from _json(columns, len(table))
    elif chosen.kind in ("csv", "tsv"):
        delimited = _csv if chosen.kind == "csv" else _tsv
        yield from delimited(columns, len(table), chosen)
    elif chosen.kind == "htable":
        yield from _html_table(columns, len(table))
    else:
        yield from html_page([table], chosen.title, chosen.css, chosen.units)


def _markdown(columns: Sequence[PrintedColumn], count: int) -> Iterator[str]:
    yield "| " + " | ".join(_markdown_cell(c.header) for c in columns) + " |\n"
    yield "|" + "|".join(" :--- " if c.is_text else " ---: " for c in columns) + "|\n"
    for row in text_rows(columns, count, separators=True):
        yield "| " + " | ".join(map(_markdown_cell, row)) + " |\n"


_MARKDOWN: Final = re.compile(r"[\\`|*<>~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\](?=[(\[:])")
"""What would be markup inside a cell; underscores inside words and lone brackets are not."""


def _markdown_cell(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def _tsv(columns: Sequence[PrintedColumn], count: int, chosen: Format) -> Iterator[str]:
    tab = "\\t" if chosen.escape_tabs else " "
    if chosen.show_header:
        yield "\t".join(c.header for c in columns) + "\n"
    for row in text_rows(columns, count):
        yield "\t".join(_tsv_cell(escaped(text), tab) for text in row) + "\n"


def _tsv_cell(text: str, tab: str) -> str:
    return text.replace("\t", tab).replace("\r", "\\r").replace("\n", "\\n")


def _csv(columns: Sequence[PrintedColumn], count: int, chosen: Format) -> Iterator[str]:
    if chosen.show_header:
        yield ",".join(_csv_cell(c.header) for c in columns) + "\n"
    for row in text_rows(columns, count):
        yield ",".join(_csv_cell(escaped(text)) for text in row) + "\n"


_QUOTED: Final = re.compile(r"""[",\r\n]|^\s|\s\Z""")


def _csv_cell(text: str) -> str:
    # Not the csv module: before Python 3.13 it leaves a lone carriage return unquoted.
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _json(columns: Sequence[PrintedColumn], count: int) -> Iterator[str]:
    headers = [c.header for c in columns]
    opening = "[\n"
    for start in range(0, count, CHUNK):
        for row in zip(*(c.plain(start, start + CHUNK) for c in columns), strict=True):
            yield opening + "  " + json.dumps(dict(zip(headers, row, strict=True)))
            opening = ",\n"
    yield "[]\n" if count == 0 else "\n]\n"


def rows_schema(table: Table, units: Units) -> dict[str, Any]:
    """The JSON Schema of a table's rows as ``chunks`` writes them, by printed headers.

    Args:
        table: its columns count, not its rows.
        units: they stand in headers.
    """
    columns = printed_columns(table, units)
    kinds = {c.header: ["string"] if c.is_text else ["number", "boolean"] for c in columns}
    row = {
        "type": "object",
        "properties": {header: {"type": [*kind, "null"]} for header, kind in kinds.items()},
        "required": [*kinds],
        "additionalProperties": False,
    }
    return list_schema(table.title, row)


def html_page(
    tables: Sequence[Table], title: str = "", css: str = "", units: Units | None = None
) -> Iterator[str]:
    """A whole HTML page of tables with their notes."""
    name = html.escape(visible(title or tables[0].title or tables[0].name))
    link = f'<link rel="stylesheet" href="{html.escape(css)}">\n' if css else ""
    style = "" if css else f"<style>{_STYLE}</style>\n"
    yield (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{name}</title>\n{link}{style}</head>\n<body>\n"
    )
    for place, table in enumerate(tables):
        yield f"<h1>{html.escape(visible(table.title)) if place else name}</h1>\n"
        yield from _html_table(printed_columns(table, units or Units()), len(table))
        for note in table.notes:
            yield f"<p>{html.escape(visible(note))}</p>\n"
    yield "</body>\n</html>\n"


_STYLE: Final = (
    "body{font-family:sans-serif}table{border-collapse:collapse}"
    "th,td{padding:.2em .6em;border-bottom:1px solid #bbb}td.n{text-align:right}"
)


def _html_table(columns: Sequence[PrintedColumn], count: int) -> Iterator[str]:
    head = "".join(f"<th>{html.escape(c.header)}</th>" for c in columns)
    yield f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"
    opening = ["<td>" if c.is_text else '<td class="n">' for c in columns]
    for row in text_rows(columns, count, separators=True):
        cells = (f"{o}{html.escape(visible(t))}</td>" for o, t in zip(opening, row, strict=True))
        yield f"<tr>{''.join(cells)}</tr>\n"
    yield "</tbody>\n</table>\n"
