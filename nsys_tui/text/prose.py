"""Facts and findings as lines that people read, in place of a ruled table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.names import cell_len, visible
from nsys_tui.text.cells import pad
from nsys_tui.text.folding import wrapped
from nsys_tui.text.values import printed_columns, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.model.table import Table

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
