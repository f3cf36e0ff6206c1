"""Sends only the cells that changed: a copy of the screen between Textual and the terminal.

Textual repaints whole panes, 30 to 80 kB when focus moves at 160x45; over SSH that is what a user
waits for. Every frame is applied to a copy of the screen here, and only the difference goes out,
with the shortest change of style. Whatever is no frame (modes, clipboard) passes through untouched.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsys_tui.names import char_cells

if TYPE_CHECKING:
    from textual.driver import Driver

_FRAME: Final = re.compile(r"\x1b\[\d+;\d+H")
_TOKEN: Final = re.compile(
    r"(?:\x1b\[([\d;]+)m([^\x1b\n]*)\x1b\[0m)|([^\x1b\n]+)|\x1b\[(\d+);(\d+)H|\n|(.)", re.DOTALL
)
"""Styled text as Rich writes it, plain text, a jump, a line end, anything else."""
_UNKNOWN: Final = "\0"
"""A cell of which it is not known what the terminal shows."""
_BRIDGE: Final = 6
"""Unchanged cells that are cheaper to send again than to jump over."""


class Style(NamedTuple):
    """A style as the terminal understands it."""

    flags: str
    """Attributes other than colours, such as ``1;7``."""
    fg: str
    bg: str


PLAIN: Final = Style("", "39", "49")


_SEEN_ON_BLANKS: Final = frozenset(("4", "7", "9", "21", "53"))
"""Underline, reverse, strike and the like."""


class Shadow:
    """What the terminal shows, as far as it is known."""

    def __init__(self) -> None:
        self._chars: dict[int, list[str]] = {}
        self._styles: dict[int, list[str]] = {}
        self._changed: dict[int, list[tuple[int, int]]] = {}

    def forget(self) -> None:
        """The screen may show anything now, so the next frame is sent in full."""
        self._chars, self._styles, self._changed = {}, {}, {}

    def difference(self, frame: str) -> str:
        """What has to be sent so that the terminal shows ``frame``.

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
        return f"{changes}{end}" if changes else end

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
        out: list[str] = []
        now = PLAIN
        for y in sorted(self._changed):
            chars, styles = self._chars[y], self._styles[y]
            for start, stop in _merged(self._changed[y], chars):
                start -= chars[start] == ""  # the second half of a wide character
                out.append(f"\x1b[{y + 1};{start + 1}H")
                while start < stop:
                    style, end = styles[start], start + 1
                    while end < stop and styles[end] == style:
                        end += 1
                    text = "".join(chars[start:end])
                    wanted = style_of(style)
                    if text.isspace():
                        wanted = blank_style(now, wanted)
                    out += (change(now, wanted), text)
                    now, start = wanted, end
        self._changed = {}
        if out and now != PLAIN:
            out.append("\x1b[0m")
        return "".join(out)


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


def _merged(spans: list[tuple[int, int]], chars: list[str]) -> list[tuple[int, int]]:
    """Spans from left to right, joined where little lies between them and is known."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if (
            merged
            and start <= merged[-1][1] + _BRIDGE
            and _UNKNOWN not in chars[merged[-1][1] : start]
        ):
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


@lru_cache(maxsize=4096)
def style_of(sgr: str) -> Style:
    """Attributes and colours of a style sequence that stands for itself."""
    words = sgr.split(";") if sgr else []
    flags: list[str] = []
    fg, bg = PLAIN.fg, PLAIN.bg
    at = 0
    while at < len(words):
        word, size = words[at], 1
        if word in ("38", "48"):
            size = 5 if words[at + 1 : at + 2] == ["2"] else 3
        colour = ";".join(words[at : at + size])
        number = int(word or 0)
        if number == 38 or 30 <= number <= 37 or 90 <= number <= 97:
            fg = colour
        elif number == 48 or 40 <= number <= 47 or 100 <= number <= 107:
            bg = colour
        elif number not in (39, 49):
            flags.append(word)
        at += size
    return Style(";".join(flags), fg, bg)


def blank_style(now: Style, wanted: Style) -> Style:
    """What blanks need of a style; a tenth of the bytes of a zoom were colours of nothing."""
    flags = {*now.flags.split(";"), *wanted.flags.split(";")}
    return wanted if flags & _SEEN_ON_BLANKS else now._replace(bg=wanted.bg)


@lru_cache(maxsize=8192)
def change(now: Style, wanted: Style) -> str:
    """The shortest sequence from one style to another."""
    if now == wanted:
        return ""
    parts: list[str] = []
    if now.flags != wanted.flags:
        parts, now = ["0", *filter(None, [wanted.flags])], PLAIN
    if now.fg != wanted.fg:
        parts.append(wanted.fg)
    if now.bg != wanted.bg:
        parts.append(wanted.bg)
    return f"\x1b[{';'.join(parts)}m"


class ThriftyWrites:
    """Mixin for Textual's drivers; put it before the driver class."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shadow = Shadow()

    def write(self, data: str) -> None:
        """Sends what is new of a frame, anything else as it is."""
        data = self.shadow.difference(data)
        if data:
            super().write(data)  # type: ignore[misc]

    def start_application_mode(self) -> None:
        """The terminal starts from an unknown screen, also after a suspension."""
        self.shadow.forget()
        super().start_application_mode()  # type: ignore[misc]


def thrifty(driver: type[Driver]) -> type[Driver]:
    """A driver class that sends only what changed."""
    return type(f"Thrifty{driver.__name__}", (ThriftyWrites, driver), {})
