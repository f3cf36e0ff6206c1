"""Sends only the cells that changed: a copy of the screen between Textual and the terminal.

Textual repaints whole panes, 30 to 80 kB when focus moves at 160x45; over SSH that is what a user
waits for. Every frame is applied to a copy of the screen here, and only the difference goes out,
with the shortest change of style. Whatever is no frame (modes, clipboard) passes through untouched.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from nsys_tui.names import char_cells
from nsys_tui.ui.sgr import PLAIN, Style, blank_style, change, has_lines, style_of

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
AT_ONCE: Final = "\x1b[?2026h"
SHOWN: Final = "\x1b[?2026l"
"""What Textual writes around a frame, also an empty one, if the terminal shows frames at once."""
_SHORT: Final = 5
"""Blanks that are shorter than the sequence that erases them."""
_FEW: Final = " " * (_SHORT + 1)
_BLANKS: Final = re.compile(" {12,}")
"""Blanks that are longer than the sequences that erase them and go to their end."""


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
        out: list[str] = []
        now = PLAIN
        for y in sorted(self._changed):
            for start, stop in _merged(self._changed[y], self._chars[y]):
                start -= self._chars[y][start] == ""  # the second half of a wide character
                out.append(f"\x1b[{y + 1};{start + 1}H")
                runs = self._runs(y, start, stop, now)
                for left, (style, text) in enumerate(runs, 1 - len(runs)):
                    out += (change(now, style), self._erased(text, style, last=not left))
                    now = style
        self._changed = {}
        if out and now != PLAIN:
            out.append("\x1b[0m")
        return "".join(out)

    def _runs(self, y: int, start: int, stop: int, now: Style) -> list[tuple[Style, str]]:
        """Cells of a row as texts of one style each; blanks take the style before them."""
        chars, styles = self._chars[y], self._styles[y]
        runs: list[tuple[Style, str]] = []
        while start < stop:
            style, end = styles[start], start + 1
            while end < stop and styles[end] == style:
                end += 1
            text, wanted = "".join(chars[start:end]), style_of(style)
            if text.isspace():
                wanted = blank_style(now, wanted)
            if runs and wanted == now:
                text = runs.pop()[1] + text
            runs.append((wanted, text))
            now, start = wanted, end
        return runs

    def _erased(self, text: str, style: Style, *, last: bool) -> str:
        """A text whose long blanks are erased, not written; after the ``last`` the cursor jumps."""
        if not self._erase or _FEW not in text or has_lines(style):
            return text
        kept = text.rstrip(" ") if last else text
        blanks = len(text) - len(kept)
        if blanks <= _SHORT:
            return _BLANKS.sub(_erase, text)
        return f"{_BLANKS.sub(_erase, kept)}\x1b[{blanks}X"


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


class ThriftyWrites:
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
        if data:
            super().write(f"{AT_ONCE}{data}{SHOWN}" if self._at_once else data)  # type: ignore[misc]

    def start_application_mode(self) -> None:
        """The terminal starts from an unknown screen, also after a suspension."""
        self.shadow.forget()
        super().start_application_mode()  # type: ignore[misc]


def thrifty(driver: type[Driver], *, erases: bool) -> type[Driver]:
    """A driver class that sends only what changed.

    Args:
        driver: the platform's.
        erases: whether the terminal erases cells in the colour of the background.
    """
    return type(f"Thrifty{driver.__name__}", (ThriftyWrites, driver), {"ERASES": erases})
