"""Single cells of printed tables, fitted to a width."""

from __future__ import annotations

from typing import Final

from nsys_tui.names import cell_len, cut

_DOTS: Final = "..."


def shorten(text: str, cells: int) -> str:
    """The text if it fits into ``cells``, else its beginning and ``...``, as nsys cuts names."""
    if cell_len(text) <= cells:
        return text
    return cut(text, cells - len(_DOTS)) + _DOTS[:cells]


def pad(text: str, cells: int, align: str = "<") -> str:
    """The text in a field of ``cells``: ``<`` left, ``>`` right, ``^`` centred."""
    missing = max(0, cells - cell_len(text))
    left = {"<": 0, ">": missing, "^": missing // 2}[align]
    return " " * left + text + " " * (missing - left)
