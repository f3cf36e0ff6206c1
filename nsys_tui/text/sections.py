"""Several titled tables as one text, for what is answered with more than one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsys_tui import units
from nsys_tui.model.table import FACTS, Column, Table, Unit, plain
from nsys_tui.names import visible
from nsys_tui.text.folding import indented
from nsys_tui.text.formats import Format
from nsys_tui.text.prose import facts, sentences
from nsys_tui.text.tables import chunks, html_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_tui.model.table import Values

READABLE: Final[dict[Unit, Callable[[Any], str]]] = {
    Unit.NS: lambda value: units.format_duration(round(value)),
    Unit.BYTES: lambda value: units.format_bytes(round(value)),
    Unit.PERCENT: lambda value: f"{value:.1f}%",
}
"""How people read a number of each unit."""


BARS: Final[dict[str, float | None]] = {
    "Busy": 100.0, "Time": None, "Idle": None, "Share": None, "Of median": None,
}  # fmt: skip
"""Headers of figures that people compare down a column, and what fills a bar: None for the largest.

The first of a table gets bars."""
BAR: Final = 8
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def readable(table: Table, *, bars: bool = False) -> Table:
    """The same table for people: times with their unit, bytes with prefixes, shares with a sign.

    Args:
        table: any.
        bars: draw a bar beside the first of ``BARS``, against the largest of its column.
    """
    pairs = []
    for column, values in table.printed():
        barred = bars and column.header in BARS and column.unit in READABLE and len(table) > 1
        pairs.append(_readable(column, values, bars=barred))
        bars = bars and not barred
    return replace(
        table, columns=tuple(column for column, _ in pairs), data=tuple(data for _, data in pairs)
    )


def _readable(column: Column, values: Values, *, bars: bool) -> tuple[Column, Values]:
    show = READABLE.get(column.unit)
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
            or ``tsv``. A csv file has one header, so only the first table is printed.
        room: cells of a line of ``table``; None for any.
        bars: whether ``table`` has bars beside shares; see ``readable``.
    """
    if fmt in ("csv", "tsv"):
        yield from chunks(tables[0], fmt)
    elif fmt == "html":
        yield from html_page([readable(table) for table in tables])
    else:
        for place, table in enumerate(tables):
            yield from ("\n" if place else "", *_section(table, fmt, room, bars=bars))


def _section(table: Table, fmt: str, room: int | None, *, bars: bool) -> Iterator[str]:
    markdown = fmt == "markdown"
    chosen = Format("markdown") if markdown else Format("column", limit=None, room=room)
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
