"""Cells: characters with style codes, the one form in which everything drawn leaves this room.

A style code packs an ink (what the character is painted with), a ground (what lies behind it) and
emphasis flags into one integer. A theme turns a code into colours (``palette.Theme.look``), so that
a screen needs one prebuilt style per code and one segment per run of equal codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nsys_tui.names import char_cells

Styles: TypeAlias = npt.NDArray[np.uint32]


class Ink(IntEnum):
    """What a character or its ground is painted with, by meaning."""

    NONE = 0
    """The theme's own text colour or background."""
    CONTRAST = 1
    """Black or white, whichever reads better on the ground."""
    MUTED = 2
    IDLE = 3
    STALL = 4
    """Idle time whose cause is known."""
    AXIS = 5
    CURSOR = 6
    MARK = 7
    BETTER = 8
    WORSE = 9
    COUNTER = 10
    CATEGORY = 16
    """First of the category inks: 16 + 2 × category, the odd ones a luminance step apart."""
    WORDS = 48
    """First of the inks for words about a category, readable where its fill is too faint to be."""
    SLOT = 64
    """First of ``SLOTS`` pairs of inks for colouring by stream, name or duration."""
    OWN = 128
    """First of ``OWN_INKS`` pairs of inks for colours that events bring along."""


SLOTS = 12
OWN_INKS = 63


class Emphasis(IntFlag):
    """Flags of a style code."""

    BOLD = 1
    DIM = 2
    ITALIC = 4
    UNDERLINE = 8
    REVERSE = 16


class StyleParts(NamedTuple):
    """A style code taken apart."""

    ink: int
    ground: int
    emphasis: Emphasis


def style(ink: int = Ink.NONE, ground: int = Ink.NONE, emphasis: int = 0) -> int:
    """Packs a style code: ink in the low byte, ground in the next, flags above."""
    return ink | ground << 8 | emphasis << 16


def parts(code: int) -> StyleParts:
    """Unpacks a style code."""
    return StyleParts(code & 0xFF, code >> 8 & 0xFF, Emphasis(code >> 16))


def category_ink(category: int, alternate: bool = False) -> int:
    """Ink of a category; the alternate keeps neighbours apart."""
    return Ink.CATEGORY + 2 * category + alternate


def word_ink(category: int) -> int:
    """Ink of words about a category."""
    return Ink.WORDS + category


def slot_ink(slot: int) -> int:
    """Ink of a hue slot; numbers beyond ``SLOTS`` wrap around."""
    return Ink.SLOT + 2 * (slot % SLOTS)


MUTED: Final = style(Ink.MUTED)
STALL: Final = style(Ink.STALL)
BOLD: Final = style(emphasis=Emphasis.BOLD)
KEY: Final = style(Ink.MARK, emphasis=Emphasis.BOLD)
"""Letters to press, and those of bookmarks."""


@dataclass(slots=True, eq=False)
class Row:
    """One line of cells."""

    chars: list[str]
    """One entry a cell; the second cell of a wide character holds an empty text."""
    styles: Styles
    """uint32 [width]."""

    @classmethod
    def blank(cls, width: int, code: int = 0) -> Row:
        """A row of spaces in one style."""
        return cls([" "] * width, np.full(width, code, np.uint32))

    @property
    def width(self) -> int:
        """Number of cells."""
        return len(self.chars)

    def text(self) -> str:
        """The characters alone."""
        return "".join(self.chars)

    def put(self, column: int, text: str, code: int | None = None) -> None:
        """Writes a text from a column on, cut at the edges of the row.

        Args:
            column: may be negative.
            text: shown text (see ``names.visible``); characters without a cell are left out.
            code: style of the cells; None keeps what they have.
        """
        cells = split_cells(text)
        left, right = max(column, 0), min(column + len(cells), self.width)
        if left >= right:
            return
        cells = cells[left - column : right - column]
        if not cells[0]:
            cells[0] = " "
        if not self.chars[left] and left:
            self.chars[left - 1] = " "
        if right < self.width and not self.chars[right]:
            self.chars[right] = " "
        if char_cells(cells[-1][:1] or " ") == 2:
            cells[-1] = " "
        self.chars[left:right] = cells
        if code is not None:
            self.styles[left:right] = code

    def emphasise(self, start: int, stop: int, flags: int) -> None:
        """Adds emphasis to the cells [start, stop)."""
        self.styles[max(start, 0) : max(stop, 0)] |= np.uint32(flags << 16)

    def runs(self) -> list[tuple[str, int]]:
        """Neighbours of equal style joined: (text, style code) from left to right."""
        if not self.chars:
            return []
        cuts = (np.flatnonzero(self.styles[1:] != self.styles[:-1]) + 1).tolist()
        begins, ends = [0, *cuts], [*cuts, self.width]
        codes = self.styles[begins].tolist()
        return [
            ("".join(self.chars[begin:end]), code)
            for begin, end, code in zip(begins, ends, codes, strict=True)
        ]


Cells: TypeAlias = list[Row]
"""Lines from top to bottom, all of one width."""

Line: TypeAlias = list[tuple[str, int]]
"""A line of a pane: runs of (text, style code), as ``Row.runs`` gives them."""


def join(*rows: Row) -> Row:
    """Rows side by side, such as a margin and a lane."""
    chars = [char for row in rows for char in row.chars]
    return Row(chars, np.concatenate([row.styles for row in rows]))


def text_row(text: str, code: int = 0) -> Row:
    """A row that holds a text in one style, as wide as the text."""
    chars = split_cells(text)
    return Row(chars, np.full(len(chars), code, np.uint32))


def split_cells(text: str) -> list[str]:
    """A text as one entry a cell: wide characters take two, those without width none."""
    if text.isascii():
        return list(text)
    cells: list[str] = []
    for char in text:
        cells.extend((char, "")[: char_cells(char)])
    return cells


def as_text(rows: Iterable[Row]) -> str:
    """All rows as text lines, trailing spaces kept."""
    return "\n".join(row.text() for row in rows)
