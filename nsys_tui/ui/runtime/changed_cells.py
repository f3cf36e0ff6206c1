"""Sends only the cells that changed: a copy of the screen between Textual and the terminal.

Textual 8.2.8 repaints whole panes, 30 to 80 kB when focus moves at 160x45; over SSH that is what a
user waits for. Every frame is applied to a copy of the screen here, and only the difference goes
out, with the shortest change of style. Whatever is no frame (modes, clipboard) passes through
untouched.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from nsys_tui.names import char_cells
from nsys_tui.ui.runtime.ansi_styles import PLAIN, Style, change, has_lines, style_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.driver import Driver

_STEPS: Final = 3
"""Single steps back that are no longer than a jump."""


def jump(y: int, x: int) -> str:
    """To a cell, from wherever the cursor is; rows and columns count from 0."""
    return f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"


def along(x: int) -> str:
    """To a column of the row where the cursor is."""
    return f"\x1b[{x + 1}G" if x else "\r"


def step(y: int, x: int, to_y: int, to_x: int) -> str:
    """From one cell to another; the cursor must not stand behind the last column."""
    aside = _aside(x, to_x)
    if y == to_y:
        return aside
    far = jump(to_y, to_x)
    if to_y < y:
        return far
    return min(f"{_times(to_y - y, 'B')}{aside}", far, key=len)


def _aside(x: int, to_x: int) -> str:
    if to_x >= x:
        return _times(to_x - x, "C") if to_x > x else ""
    if x - to_x <= _STEPS:
        return "\b" * (x - to_x)
    return along(to_x)


def _times(count: int, way: str) -> str:
    return f"\x1b[{count}{way}" if count > 1 else f"\x1b[{way}"


_FRAME: Final = re.compile(r"\x1b\[\d+;\d+H")
_TOKEN: Final = re.compile(
    r"(?:\x1b\[([\d;]+)m([^\x1b\n]*)\x1b\[0m)|([^\x1b\n]+)|\x1b\[(\d+);(\d+)H|\n|(.)", re.DOTALL
)
"""Styled text as Rich writes it, plain text, a jump, a line end, anything else."""
_UNKNOWN: Final = "\0"
"""A cell of which it is not known what the terminal shows."""
AT_ONCE: Final = "\x1b[?2026h"
SHOWN: Final = "\x1b[?2026l"
"""What Textual writes around a frame, also an empty one, if the terminal shows frames at once."""
_SHORT: Final = 5
"""Blanks that are shorter than the sequence that erases them."""
_FEW: Final = " " * (_SHORT + 1)
_BLANKS: Final = re.compile(" {12,}")
"""Blanks that are longer than the sequences that erase them and go to their end."""


_DOUBTFUL: Final = "\u2600"
"""From here on terminals may not agree how wide a character is."""


class Piece(NamedTuple):
    """Text to write."""

    y: int
    x: int
    text: str
    cells: int


class Shadow:
    """What the terminal shows, as far as it is known.

    Args:
        erase: whether the terminal erases cells in the colour of the background.
    """

    def __init__(self, *, erase: bool = False) -> None:
        self._erase = erase
        self.forget()

    def forget(self) -> None:
        """The screen may show anything now, so the next frame is sent in full."""
        self._chars: dict[int, list[str]] = {}
        self._styles: dict[int, list[str]] = {}
        self._changed: dict[int, list[tuple[int, int]]] = {}
        self._cursor = ""
        """The jump to where the cursor was left."""

    def difference(self, frame: str) -> str:
        """What has to be sent so that the terminal shows ``frame``; nothing if it does.

        A frame with anything but cursor jumps, styles and text is returned as it is.
        """
        if not _FRAME.match(frame):
            return frame
        x = y = 0
        end = ""
        for style, styled, plain, row, column, other in _TOKEN.findall(frame):
            if styled or plain:
                x = self._put(y, x, styled or plain, style)
                end = ""
            elif row:
                y, x = int(row) - 1, int(column) - 1
                end = f"\x1b[{row};{column}H"
            elif other:
                self.forget()
                return frame
        changes = self._changes()
        if not changes and end == self._cursor:
            return ""
        self._cursor = end
        return f"{changes}{end}"

    def _put(self, y: int, x: int, text: str, style: str) -> int:
        """Applies some text; returns the column after it."""
        cells = cells_of(text)
        stop = x + len(cells)
        chars = self._chars.setdefault(y, [])
        styles = self._styles.setdefault(y, [])
        if len(chars) < stop:
            gap = stop - len(chars)
            chars += [_UNKNOWN] * gap
            styles += [""] * gap
            changed = (x, stop)
        elif chars[x:stop] == cells and styles[x:stop].count(style) == len(cells):
            return stop
        else:
            changed = _narrowed(chars, styles, cells, style, x)
        if chars[x] == "" and x:  # the other half of a wide character is lost
            chars[x - 1], changed = " ", (x - 1, changed[1])
        if chars[stop : stop + 1] == [""]:
            chars[stop], changed = " ", (changed[0], stop + 1)
        chars[x:stop] = cells
        styles[x:stop] = [style] * len(cells)
        self._changed.setdefault(y, []).append(changed)
        return stop

    def _changes(self) -> str:
        """All changed cells, a style after the other: its sequence is longer than a jump."""
        out: list[str] = []
        pen, now = Pen(), PLAIN
        for style, pieces in sorted(self._pieces().items(), key=_by_colours):
            out.append(change(now, style))
            now = style
            for piece in pieces:
                out.append(pen.go(piece, len(self._chars[piece.y])))
                out.append(pen.write(piece, self._erased(piece.text, style)))
        if now != PLAIN:
            out.append("\x1b[0m")
        return "".join(out)

    def _pieces(self) -> dict[Style, list[Piece]]:
        """The changed cells by their style, each of them from top left to bottom right."""
        pieces: dict[Style, list[Piece]] = {}
        for y, spans in sorted(self._changed.items()):
            for start, stop in _merged(spans):
                for style, piece in self._runs(y, start, stop):
                    pieces.setdefault(style, []).append(piece)
        self._changed = {}
        return pieces

    def _runs(self, y: int, start: int, stop: int) -> Iterator[tuple[Style, Piece]]:
        """Cells of a row as texts of one style each."""
        chars, styles = self._chars[y], self._styles[y]
        start -= chars[start] == ""  # the second half of a wide character
        while start < stop:
            code, end = styles[start], start + 1
            while end < stop and styles[end] == code:
                end += 1
            text, style = "".join(chars[start:end]), style_of(code)
            if text.isspace() and not has_lines(style):
                style = Style("", PLAIN.fg, style.bg)
            yield style, Piece(y, start, text, end - start)
            start = end

    def _erased(self, text: str, style: Style) -> str:
        """A text whose long blanks are erased, not written."""
        if not self._erase or _FEW not in text or has_lines(style):
            return text
        kept = text.rstrip(" ")
        blanks = len(text) - len(kept)
        if blanks <= _SHORT:
            return _BLANKS.sub(_erase, text)
        return f"{_BLANKS.sub(_erase, kept)}\x1b[{blanks}X"


class Pen:
    """Where the terminal's cursor is while a frame is written."""

    def __init__(self) -> None:
        self._y = self._x = -1
        self._sure = False
        """Whether all terminals have it in this column."""

    def go(self, piece: Piece, width: int) -> str:
        """To the beginning of a piece; the row where the cursor is has so many cells or more."""
        if self._sure and self._x < width:
            return step(self._y, self._x, piece.y, piece.x)
        if self._x < width and (self._y, self._x) == (piece.y, piece.x):
            return ""
        return along(piece.x) if self._y == piece.y else jump(piece.y, piece.x)

    def write(self, piece: Piece, written: str) -> str:
        """Writes a piece; blanks erased at its end leave the cursor before them."""
        text = piece.text
        erased = len(text) - len(text.rstrip(" ")) if written.endswith("X") else 0
        self._y, self._x = piece.y, piece.x + piece.cells - erased
        self._sure = len(text) == piece.cells and max(text) < _DOUBTFUL
        return written


def _by_colours(item: tuple[Style, list[Piece]]) -> tuple[str, str, str]:
    """Styles with a colour in common follow each other."""
    style, _ = item
    return style.bg, style.fg, style.flags


def _erase(blanks: re.Match[str]) -> str:
    return f"\x1b[{len(blanks[0])}X\x1b[{len(blanks[0])}C"


def _narrowed(
    chars: list[str], styles: list[str], cells: list[str], style: str, x: int
) -> tuple[int, int]:
    """First and last cell of a text that differ from what is there."""
    first, last = 0, len(cells) - 1
    while chars[x + first] == cells[first] and styles[x + first] == style:
        first += 1
    while chars[x + last] == cells[last] and styles[x + last] == style:
        last -= 1
    return x + first, x + last + 1


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans from left to right, joined where they touch."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


@lru_cache(maxsize=4096)
def _cells(text: str) -> tuple[str, ...]:
    cells: list[str] = []
    for char in text:
        width = char_cells(char)
        if width:
            cells.extend((char, "")[:width])
        elif cells:
            cells[-1 if cells[-1] else -2] += char
    return tuple(cells)


def cells_of(text: str) -> list[str]:
    """A text as one entry a cell: a wide character and an empty entry, marks with their base."""
    return list(text) if text.isascii() else list(_cells(text))


class ChangedCells:
    """Mixin for Textual's drivers; put it before the driver class."""

    ERASES: ClassVar[bool] = False
    """Whether the terminal erases cells in the colour of the background."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shadow = Shadow(erase=self.ERASES)
        self._at_once = False

    def write(self, data: str) -> None:
        """Sends what is new of a frame, anything else as it is."""
        if data in (AT_ONCE, SHOWN):
            self._at_once = data == AT_ONCE
            return
        data = self.shadow.difference(data)
        if data and self._is_heard:
            super().write(f"{AT_ONCE}{data}{SHOWN}" if self._at_once else data)  # type: ignore[misc]

    @property
    def _is_heard(self) -> bool:
        """Whether the writing thread lives: it dies with the terminal, and its queue fills up."""
        writer = getattr(self, "_writer_thread", None)
        return writer is None or writer.is_alive()

    def close(self) -> None:
        """Waits for the writing thread, where there is one to wait for."""
        if self._is_heard:
            super().close()  # type: ignore[misc]

    def start_application_mode(self) -> None:
        """The terminal starts from an unknown screen, also after a suspension."""
        self.shadow.forget()
        super().start_application_mode()  # type: ignore[misc]


def sending_changes(driver: type[Driver], *, erases: bool) -> type[Driver]:
    """A driver class that sends only what changed.

    Args:
        driver: the platform's.
        erases: whether the terminal erases cells in the colour of the background.
    """
    return type(f"Thrifty{driver.__name__}", (ChangedCells, driver), {"ERASES": erases})
