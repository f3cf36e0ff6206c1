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
    heads = zip(columns, widths, strict=True)
    header = [_shortened(pad(c.header, w, "^"), w, ascii_only) for c, w in heads]
    shown = header if chosen.show_header else None
    whole = chosen.room is None and chosen.padded is not None
    lines = (_cells(columns, row, widths, ascii_only, whole=whole) for row in rows)
    if chosen.kind == "column":
        yield from _ruled(lines, widths, shown)
    else:
        yield from _boxed(lines, widths, shown)


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
    most = chosen.limit if chosen.room is not None else chosen.limit or chosen.padded
    if column.is_text and most is not None:
        widest = min(widest, most)
    return max(widest, cell_len(column.header))


def _cells(
    columns: Sequence[PrintedColumn],
    row: Sequence[str],
    widths: Sequence[int],
    ascii_only: bool,
    *,
    whole: bool = False,
) -> list[str]:
    """Fields of a row; text that is longer than its column is cut, unless ``whole`` is wanted."""

    def shown(text: str, cells: int) -> str:
        text = visible(text, ascii_only)
        return pad(text if whole else _shortened(text, cells, ascii_only), cells)

    return [
        shown(text, cells) if column.is_text else pad(text, cells, ">")
        for column, text, cells in zip(columns, row, widths, strict=True)
    ]


def _shortened(text: str, cells: int, ascii_only: bool) -> str:
    return shorten(text, cells, "..." if ascii_only else "…")


def _ruled(
    lines: Iterable[Sequence[str]], widths: Sequence[int], header: Sequence[str] | None
) -> Iterator[str]:
    if header is not None:
        yield " " + "  ".join(header) + "\n"
        yield " " + "  ".join("-" * cells for cells in widths) + "\n"
    for line in lines:
        yield " " + "  ".join(line) + "\n"


def _boxed(
    lines: Iterable[Sequence[str]], widths: Sequence[int], header: Sequence[str] | None
) -> Iterator[str]:
    rule = "+" + "+".join("-" * (cells + 2) for cells in widths) + "+\n"
    yield rule
    if header is not None:
        yield f"| {' | '.join(header)} |\n"
        yield rule
    for line in lines:
        yield f"| {' | '.join(line)} |\n"
    yield rule


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
        yield from _html_table(columns, len(table), is_ours=False)
    else:
        yield from html_page([table], chosen)


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


_QUOTED: Final = re.compile(r'[",\r\n]')


def _csv_cell(text: str) -> str:
    # Not the csv module: before Python 3.13 it leaves a lone carriage return unquoted.
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _json(columns: Sequence[PrintedColumn], count: int) -> Iterator[str]:
    keys = [json.dumps(c.header) for c in columns]
    opening = "[\n"
    for start in range(0, count, CHUNK):
        for row in zip(*(c.literals(start, start + CHUNK) for c in columns), strict=True):
            pairs = (f"    {key}: {cell}" for key, cell in zip(keys, row, strict=True))
            yield opening + "  {\n" + ",\n".join(pairs) + "\n  }"
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


def html_page(tables: Sequence[Table], chosen: Format) -> Iterator[str]:
    """A whole HTML page of tables with their notes; ``hdoc`` as nsys prints it, without style."""
    is_ours = chosen.kind == "html"
    name = html.escape(visible(chosen.title or (tables[0].title if is_ours else _OF_NSYS)))
    link = f'  <link rel="stylesheet" href="{html.escape(chosen.css)}">\n' if chosen.css else ""
    style = f"  <style>{_STYLE}</style>\n" if is_ours and not link else ""
    yield (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n  <meta charset="UTF-8">\n'
        f"  <title>{name}</title>\n{link}{style}</head>\n<body>\n"
    )
    for table in tables:
        heading = table.title if is_ours else f"{table.title} ({table.name})"
        yield f"<h1>{html.escape(visible(heading))}</h1>\n"
        columns = printed_columns(table, chosen.units)
        yield from _html_table(columns, len(table), is_ours=is_ours)
        for note in table.notes if is_ours else ():
            yield f"<p>{html.escape(visible(note))}</p>\n"
    yield "</body>\n</html>\n"


_OF_NSYS: Final = "Nsight Systems Stats Output"
_STYLE: Final = (
    "body{font-family:sans-serif}table{border-collapse:collapse}"
    "th,td{padding:.2em .6em;border-bottom:1px solid #bbb}td.n{text-align:right}"
)


def _html_table(columns: Sequence[PrintedColumn], count: int, *, is_ours: bool) -> Iterator[str]:
    yield "<table>\n  <thead>\n    <tr>\n"
    yield from (f"      <th>{html.escape(c.header)}</th>\n" for c in columns)
    yield "    </tr>\n  </thead>\n  <tbody>\n"
    opening = ['<td class="n">' if is_ours and not c.is_text else "<td>" for c in columns]
    for row in text_rows(columns, count, separators=is_ours):
        cells = (html.escape(visible(text), quote=False) for text in row)
        lines = (f"      {tag}{cell}</td>\n" for tag, cell in zip(opening, cells, strict=True))
        yield f"    <tr>\n{''.join(lines)}    </tr>\n"
    yield "  </tbody>\n</table>\n"
