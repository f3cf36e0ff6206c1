"""Single cells of printed tables: fitted to a width, and safe to send where they go."""

from __future__ import annotations

import re
from typing import Final

from nsys_tui.names import cell_len, cut

_ESCAPES: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_DOTS: Final = "..."


def without_escapes(text: str) -> str:
    """Text with line breaks and tabs kept and all other control characters written out."""
    return _ESCAPES.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


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
