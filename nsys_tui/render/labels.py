"""The left margin of lanes and trees: indentation, fold marks, the current line."""

from __future__ import annotations

from enum import Enum

from nsys_tui.names import cell_len, cut, fit, pad, visible
from nsys_tui.render.glyphs import Glyphs


class Fold(Enum):
    """Whether a line can be opened, and is."""

    LEAF = "leaf"
    OPEN = "open"
    CLOSED = "closed"


def lane_label(
    text: str,
    width: int,
    glyphs: Glyphs,
    *,
    depth: int = 0,
    fold: Fold = Fold.LEAF,
    current: bool = False,
) -> str:
    """A label of exactly ``width`` cells: `` v GPU 0  ``, ``  >str 7  ``, ``   copy   ``.

    Args:
        text: from a report, so control characters are made visible and it is fitted.
        width: cells.
        glyphs: fold marks.
        depth: 0 for a group's own line, 1 for its lanes, …
        fold: the fold mark of a group.
        current: whether the cursor is in the line; marked before its text.
    """
    mark = {Fold.LEAF: "", Fold.OPEN: f"{glyphs.opened} ", Fold.CLOSED: f"{glyphs.closed} "}[fold]
    indent = " " * 2 * depth + (">" if current else " ")
    room = max(0, width - len(indent) - len(mark) - 1)
    return pad(indent + mark + _fitted(visible(text, glyphs.ascii_only), room), width)


def _fitted(text: str, room: int) -> str:
    """A label cut before its number, which tells it from its like: ``pyth~145``, ``lvl3``.

    A name that ends in a digit would swallow the number.
    """
    name, _, number = text.removeprefix("tid ").rpartition(" ")
    left = room - len(number)
    if cell_len(text) <= room or not number.isdecimal() or not name or left < 1:
        return fit(text, room)
    joins = cell_len(name) <= left and not name[-1].isdecimal()
    return (name if joins else f"{cut(name, left - 1)}~") + number
