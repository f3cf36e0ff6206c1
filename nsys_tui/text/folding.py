"""Lines no wider than a terminal: long text is narrowed first, then rows go on over several lines.

Nothing but the end of long names is left out, and that is marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nsys_tui.names import cell_len, cut

_DOTS: Final = "..."


def shorten(text: str, cells: int, dots: str = _DOTS) -> str:
    """The text if it fits into ``cells``, else its beginning and dots."""
    if cell_len(text) <= cells:
        return text
    return cut(text, cells - len(dots)) + dots[:cells]


def pad(text: str, cells: int, align: str = "<") -> str:
    """The text in a field of ``cells``: ``<`` left, ``>`` right, ``^`` centred."""
    missing = max(0, cells - cell_len(text))
    left = {"<": 0, ">": missing, "^": missing // 2}[align]
    return " " * left + text + " " * (missing - left)


_FLOOR: Final = 20
"""Cells below which text is never narrowed; longer text keeps half of its length at least."""
INDENT: Final = "    "
_MOST: Final = 3
"""Lines of one text at most, where it has lines of its own."""
_GAP: Final = 2


def line_width(widths: Sequence[int]) -> int:
    """Cells of a row of columns on one line."""
    return 1 + sum(widths) + _GAP * max(len(widths) - 1, 0)


def squeezed(widths: Sequence[int], is_text: Sequence[bool], room: int) -> list[int] | None:
    """Widths with text narrowed, the widest first, so that a row fits; None where it cannot."""
    left = list(widths)
    least = [min(w, max(_FLOOR, w // 2)) if t else w for w, t in zip(widths, is_text, strict=True)]
    if line_width(least) > room:
        return None
    while (over := line_width(left) - room) > 0:
        spare = [width - floor for width, floor in zip(left, least, strict=True)]
        widest = max((n for n, cells in enumerate(spare) if cells), key=left.__getitem__)
        left[widest] -= min(over, spare[widest])
    return left


def flowed(widths: Sequence[int], room: int) -> list[list[int]]:
    """Places of the columns on each line of a row; all lines but the first are indented."""
    lines: list[list[int]] = [[]]
    for place in range(len(widths)):
        line = [*lines[-1], place]
        taken = line_width([widths[p] for p in line]) + (len(INDENT) if len(lines) > 1 else 0)
        if taken > room and lines[-1]:
            lines.append([place])
        else:
            lines[-1] = line
    return lines


def folded(
    cells: Sequence[str], widths: Sequence[int], lines: Sequence[Sequence[int]], room: int
) -> Iterator[str]:
    """One row over the ``lines`` that ``flowed`` gives; text wider than a line takes several."""
    for number, places in enumerate(lines):
        start = " " + INDENT * (number > 0)
        least = room - len(start)
        if len(places) == 1:
            texts = wrapped(cells[places[0]].rstrip(), least, _MOST)
        else:
            texts = ["  ".join(pad(cells[place], widths[place]) for place in places)]
        yield from (start + text.rstrip() for text in texts if text.strip())


def wrapped(text: str, room: int, most: int | None = None) -> list[str]:
    """A text broken at spaces, or where a word is too long for a line.

    Args:
        text: one line.
        room: cells of a line.
        most: lines; what does not fit on them is marked by dots.
    """
    lines: list[str] = []
    room = max(room, 1)
    while cell_len(text) > room and (most is None or len(lines) < most - 1):
        head = cut(text, room) or text[:1]
        space = len(head) if text[len(head) :].startswith(" ") else head.rfind(" ")
        end = space if space > room // 2 else len(head)
        lines.append(text[:end])
        text = text[end:].lstrip(" ")
    return [*lines, shorten(text, room)]


def fitted(text: str, room: int | None) -> str:
    """Lines of prose; one that is too long is broken and goes on below its own indent."""
    lines = []
    for line in text.splitlines():
        words = line.lstrip(" ")
        fits = room is None or cell_len(line) <= room
        lines.append(line if fits else indented(words, room, line[: -len(words)]))
    return "\n".join(lines) + "\n"


def indented(text: str, room: int | None, start: str = "  ") -> str:
    """A line of prose, broken so that it fits; the rest is indented below."""
    if room is None:
        return start + text
    first, *rest = wrapped(text, room - len(start) - 2)
    return "\n".join([start + first, *(f"{start}  {line}" for line in rest)])
