"""Cells of a table as text: safe to show, aligned, shortened where they must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.names import both_ends, cell_len, normalise_kernel, pad, visible

if TYPE_CHECKING:
    from nsys_tui.ui.widgets.table.columns import TableColumn

LONGEST_TEXT: Final = 4_000
"""Characters of a name that are looked at: a kernel name may have 100 000."""


def shown_cell(text: str, width: int, column: TableColumn, ascii_only: bool) -> str:
    """A cell of exactly ``width`` cells: safe to show, aligned, shortened where it must be."""
    text = visible(text[:LONGEST_TEXT], ascii_only)
    if column.right:
        return pad(text, width) if cell_len(text) > width else text.rjust(width)
    if column.kernels and cell_len(text) > width:
        text = both_ends(normalise_kernel(text), width)
    return pad(text, width)


def joined(runs: list[tuple[str, int]], over: int) -> list[tuple[str, int]]:
    """Neighbours of one style as one run: fewer bytes to the terminal."""
    joined: list[tuple[str, int]] = []
    for text, code in runs:
        if joined and joined[-1][1] == code:
            joined[-1] = (joined[-1][0] + text, code)
        else:
            joined.append((text, code))
    if joined and joined[-1][1] != over:
        joined.append(("", over))
    return joined
