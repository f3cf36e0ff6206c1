"""Glyph sets: which characters stand for what, in Unicode, in Unicode without colour, in ASCII."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from nsys_tui.model.categories import Category

FILLS: Final = {
    Category.COMPUTE: "#",
    Category.COMM: "=",
    Category.MEMORY: ":",
    Category.GRAPH: "%",
    Category.SYNC: "!",
    Category.API: "+",
    Category.OSRT: "o",
    Category.NVTX: "-",
}
"""What fills an event where colour alone must not tell its category."""
LETTERS: Final = {
    Category.COMPUTE: "C",
    Category.COMM: "N",
    Category.MEMORY: "M",
    Category.GRAPH: "G",
    Category.SYNC: "S",
    Category.API: "A",
    Category.OSRT: "O",
    Category.NVTX: "X",
}
HOST: Final = frozenset((Category.SYNC, Category.API, Category.OSRT, Category.NVTX))
"""Categories whose labels are parted from the fill by a space, because they hold spaces."""


@dataclass(frozen=True)
class Glyphs:
    """One set of characters; every one takes a single cell."""

    name: str
    ascii_only: bool
    solid: bool
    """Events are blocks of background colour; else fills between brackets."""
    steps: bool
    """Neighbours of one colour alternate two luminance steps."""
    density: str
    """Eight steps of coverage, or empty: then fill and letter of the category, by half."""
    edges: str
    """Left-aligned blocks of 1/8 … 7/8 cell for exact edges, or empty."""
    ramp: str
    """Steps of counters and sparklines, from nothing to all."""
    cursor: str
    separator: str
    """First cell of an event that its colour does not part from the one before."""
    upper: str
    lower: str
    """Half blocks for two lanes in a row, or empty."""
    bar: str
    """Full cell of a bar."""
    opened: str
    closed: str
    """Fold marks."""
    outlier: str = "!"
    idle: str = "."
    explained: str = "!"
    merged: str = "~"
    tick: str = "|"
    selected: str = "◆"
    """First cell of the selected event."""
    related: str = "◇"
    """First cell of an event that belongs to it."""

    def fill(self, category: Category) -> str:
        """What a cell that a category fills is drawn with."""
        return self.bar if self.solid else FILLS[category]

    def level(self, value: float, top: float) -> str:
        """Step of the ramp for a value: 0 is empty, anything above draws at least the lowest."""
        if value <= 0 or top <= 0:
            return self.ramp[0]
        last = len(self.ramp) - 1
        return self.ramp[min(last, ceil(value * last / top))]


_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_EDGES: Final = "▏▎▍▌▋▊▉"
_ASCII_RAMP: Final = " .:-=+*%#"

UNICODE: Final = Glyphs(
    name="unicode",
    ascii_only=False,
    solid=True,
    steps=True,
    density=_BLOCKS,
    edges=_EDGES,
    ramp=" " + _BLOCKS,
    cursor="│",
    separator="▏",
    upper="▀",
    lower="▄",
    bar="█",
    opened="▾",
    closed="▸",
)
UNICODE_MONO: Final = replace(
    UNICODE,
    name="unicode-mono",
    solid=False,
    steps=False,
    edges="",
    separator="[",
    upper="",
    lower="",
)
UNICODE_ANSI: Final = replace(UNICODE, name="unicode-ansi", steps=False)
ASCII: Final = replace(
    UNICODE_MONO,
    name="ascii",
    ascii_only=True,
    density="",
    ramp=_ASCII_RAMP,
    cursor="|",
    bar="#",
    opened="v",
    closed=">",
    selected="@",
    related="&",
)


def glyphs_for(ascii_only: bool, theme_kind: str = "rgb") -> Glyphs:
    """The set for a terminal.

    Args:
        ascii_only: the terminal's locale or widths call for ASCII.
        theme_kind: ``Theme.kind``. An ``ansi`` theme blends nothing, so separators keep neighbours
            apart; a ``mono`` theme has no grounds, so events stand between brackets.
    """
    if ascii_only:
        return ASCII
    return {"mono": UNICODE_MONO, "ansi": UNICODE_ANSI}.get(theme_kind, UNICODE)


def is_drawn(text: str) -> bool:
    """Whether a text is a bar or a chart of block elements: reversed, it would look like a hole."""
    marks = text.replace(" ", "")
    return bool(marks) and all("\u2580" <= mark <= "\u259f" for mark in marks)
