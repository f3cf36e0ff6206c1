"""The last step of pure ASCII mode: maps whatever the chrome drew to ASCII of the same width.

Textual 8.2.8 has line filters but none for characters; its borders have no ASCII form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from nsys_tui.names import char_cells, visible

_LIKE: Final = {
    "-": "─━═╌╍┄┅┈┉╴╶╸╺–—−‐▔▁▂▃🬂🬭",
    "|": "│┃║╎╏┆┇┊┋╵╷╹╻▎▏▍▕▌▐",
    "+": "┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬╭╮╯╰▗▖▝▘▛▜▙▟",
    "#": "█▄▅▆▇▀▉▊▋▓▒░■▪●",
    "~": "≈…∼",
    "<": "←◀◂‹«≤",
    ">": "→▶▸›»≥",
    "^": "↑▲▴",
    "v": "↓▼▾",
    "*": "•·∙×★✓",
    "u": "µμ",
    "'": "‘’",
    '"': "“”",
    "o": "○◦",
    " ": "\u00a0\u2007\u202f",
}
_TABLE: Final = {char: plain for plain, chars in _LIKE.items() for char in chars}


@lru_cache(maxsize=8192)
def asciify(text: str) -> str:
    """Maps a text to printable ASCII of the same number of cells."""
    if text.isascii():
        return text
    return "".join(_one(char) for char in text)


def _one(char: str) -> str:
    if char.isascii():
        return char
    cells = char_cells(char)
    plain = _TABLE.get(char) or visible(char, ascii_only=True)[:1]
    return plain.ljust(cells)[:cells]


class AsciiFilter(LineFilter):
    """Applies ``asciify`` to every line on its way to the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Maps the text of all segments; styles stay."""
        return [
            segment
            if segment.text.isascii()
            else Segment(asciify(segment.text), segment.style, segment.control)
            for segment in segments
        ]
