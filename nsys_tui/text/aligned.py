"""Aligned columns for people: nsys's ruled ``column`` format and the boxed ``table`` format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.names import cell_len, visible
from nsys_tui.text.cells import pad, shorten
from nsys_tui.text.folding import flowed, folded, squeezed
from nsys_tui.text.values import text_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_tui.text.formats import Format
    from nsys_tui.text.values import PrintedColumn

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
