"""Several titled tables as one text, for what is answered with more than one.

Facts and findings are lines that people read, in place of a ruled table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from nsys_tui import units
from nsys_tui.model.table import FACTS, Column, Table, Unit, Values, plain
from nsys_tui.names import cell_len, visible
from nsys_tui.text.folding import indented, pad, wrapped
from nsys_tui.text.formats import Format, whole
from nsys_tui.text.tables import chunks, html_page
from nsys_tui.text.values import printed_columns, text_rows

READABLE: Final[dict[Unit, Callable[[Any], str]]] = {
    Unit.NS: lambda value: units.format_duration(round(value)),
    Unit.BYTES: lambda value: units.format_bytes(round(value)),
    Unit.PERCENT: units.format_percent,
}
"""How people read a number of each unit."""
_MOMENT: Final = re.compile(r"\b(At|Start|End)$")
"""Headers of points in time."""
_NAMING: Final = re.compile(r"(?i)\b(rank|pid|node)$")
"""Headers of numbers that are names: they have no thousands separators."""


BARS: Final[dict[str, float | None]] = {
    "Busy": 100.0, "Time": None, "Idle": None, "Share": None, "Of median": None,
}  # fmt: skip
"""Headers of figures that people compare down a column, and what fills a bar: None for the largest.

The first of a table gets bars."""
BAR: Final = 8
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def filled(table: Table) -> list[tuple[Column, Values]]:
    """The columns that people see, without those in which nothing stands."""
    every = table.printed()
    kept = [
        (column, values)
        for column, values in every
        if any(cell not in (None, "", "-") and cell == cell for cell in plain(values))
    ]
    return kept or every


def readable(table: Table, *, bars: bool = False) -> Table:
    """What is ``filled``, for people: times with units, bytes with prefixes, shares with a sign.

    Args:
        table: any.
        bars: draw a bar beside the first of ``BARS``, against the largest of its column.
    """
    pairs = []
    for column, values in filled(table):
        barred = bars and column.header in BARS and column.unit in READABLE and len(table) > 1
        pairs.append(_readable(column, values, bars=barred))
        bars = bars and not barred
    return Table.of(table.name, table.title, pairs, table.notes)


def reading(column: Column) -> Callable[[Any], str] | None:
    """How people read the numbers of a column; None for those without a unit."""
    if column.unit is Unit.NS and _MOMENT.search(column.header):
        return units.format_moment
    return READABLE.get(column.unit)


def _readable(column: Column, values: Values, *, bars: bool) -> tuple[Column, Values]:
    show = reading(column)
    if show is None and not column.is_text and _NAMING.search(column.header):
        show = str
    if show is None:
        return column, values
    texts = ["-" if value is None or value != value else show(value) for value in plain(values)]
    width = max(map(len, [column.header, *texts]))
    header = column.header.rjust(width)
    texts = [text.rjust(width) for text in texts]
    if bars:
        drawn = zip(texts, bars_of(plain(values), BARS[column.header]), strict=True)
        header, texts = header + " " * (BAR + 1), [f"{text} {bar}" for text, bar in drawn]
    return Column(header), texts


def bars_of(values: Sequence[float | None], full: float | None = None) -> list[str]:
    """A bar of ``BAR`` cells for each number, as long as it is against ``full``, or the largest."""
    known = [value if value is not None and value == value else 0.0 for value in values]
    most = full or max(known, default=0.0)
    eighths = [round(8 * BAR * max(value, 0.0) / most) if most > 0 else 0 for value in known]
    return [("█" * (n // 8) + _EIGHTHS[n % 8].strip()).ljust(BAR) for n in eighths]


def sections(
    tables: Sequence[Table], fmt: str, room: int | None = None, *, bars: bool = False
) -> Iterator[str]:
    """Tables one below the other, piece by piece.

    Args:
        tables: the sections; those without rows show their notes only.
        fmt: ``table`` (plain aligned columns, good to read aloud), ``markdown``, ``html``, ``csv``
            or ``tsv``, those with options. A csv file has one header, so only the first table is
            printed.
        room: cells of a line of ``table``; None for any.
        bars: whether ``table`` has bars beside shares; see ``readable``.
    """
    if fmt.startswith(("csv", "tsv")):
        yield from chunks(tables[0], fmt)
    elif fmt == "html":
        yield from html_page([readable(table) for table in tables], Format("html"))
    else:
        for place, table in enumerate(tables):
            yield from ("\n" if place else "", *_section(table, fmt, room, bars=bars))


def _section(table: Table, fmt: str, room: int | None, *, bars: bool) -> Iterator[str]:
    markdown = fmt == "markdown"
    chosen = Format("markdown") if markdown else whole("column", room)
    title = visible(table.title)
    yield f"## {title}\n\n" if markdown else indented(title, room, "") + "\n"
    if table.columns == FACTS and not markdown:
        yield from facts(table, room)
    elif len(table) and not markdown and any(column.prose for column in table.columns):
        yield from sentences(readable(table, bars=bars), room)
    elif len(table):
        yield from chunks(readable(table, bars=bars), chosen)
    for note in map(visible, table.notes):
        yield f"\n{note}\n" if markdown else indented(note, room) + "\n"


_LEAST = 20
"""Cells that prose takes at least: a narrower column reads worse than a line that is too long."""


def facts(table: Table, room: int | None) -> Iterator[str]:
    """A line a fact: its name, and its value broken below itself where it is long.

    Args:
        table: two columns of texts.
        room: cells of a line; None for any.
    """
    rows = [(visible(name), visible(value)) for name, value in table.rows()]
    width = max((cell_len(name) for name, _ in rows), default=0)
    for name, value in rows:
        yield from _hanging(f" {pad(name, width)}  ", [value], room)


def sentences(table: Table, room: int | None) -> Iterator[str]:
    """Rows whose sentences stand below each other, after what leads them.

    All but the first, such as advice, are marked; the columns after them follow in brackets.

    Args:
        table: its ``prose`` columns stand side by side.
        room: cells of a line; None for any.
    """
    prose = [column.prose for column, _ in table.printed()]
    first, after = prose.index(True), len(prose) - prose[::-1].index(True)
    columns = printed_columns(table)
    headers = [column.header for column in columns]
    rows = [tuple(map(visible, row)) for row in text_rows(columns, len(table))]
    widths = [max(map(cell_len, cells)) for cells in zip(headers, *rows, strict=True)][:first]
    head = _joined(headers, widths)
    longest = max(cell_len(row[place]) for row in rows for place in range(first, after))
    shown = longest if room is None else min(longest, max(room - len(head), _LEAST))
    yield f"{head}{headers[first]}\n"
    yield _joined(["-" * width for width in widths], widths) + "-" * shown + "\n"
    for row in rows:
        said = "\n-> ".join(row[first:after]) + f" ({', '.join(filter(None, row[after:]))})"
        yield from _hanging(_joined(row, widths), said.split("\n"), room)


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first cells of a row, as wide as their columns."""
    padded = (pad(cell, width) for cell, width in zip(cells, widths, strict=False))
    return " " + "".join(f"{cell}  " for cell in padded)


def _hanging(start: str, texts: Sequence[str], room: int | None) -> Iterator[str]:
    """Texts below each other, broken to fit, all beside ``start`` and the space below it."""
    indent = cell_len(start)
    least = None if room is None else max(room - indent, _LEAST)
    lines = [line for text in texts for line in ([text] if least is None else wrapped(text, least))]
    heads = [start, *[" " * indent] * (len(lines) - 1)]
    yield from (f"{head}{line}\n" for head, line in zip(heads, lines, strict=True))
