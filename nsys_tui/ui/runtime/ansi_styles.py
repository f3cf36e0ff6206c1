"""Styles as terminals take them: parsed, compared, and changed with the fewest bytes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple


class Style(NamedTuple):
    """A style as the terminal understands it."""

    flags: str
    """Attributes other than colours, such as ``1;7``."""
    fg: str
    bg: str


PLAIN: Final = Style("", "39", "49")

_OFF: Final = {"1": "22", "2": "22", "3": "23", "4": "24", "7": "27", "9": "29"}
"""What takes an attribute back; that of bold and dim takes both."""
_LINES: Final = frozenset(("4", "7", "9", "21", "53"))
"""Underline, reverse, strike and the like: seen on blanks."""


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


@lru_cache(maxsize=4096)
def has_lines(style: Style) -> bool:
    """Whether a blank in this style shows more than its background."""
    return not _LINES.isdisjoint(style.flags.split(";"))


@lru_cache(maxsize=8192)
def change(now: Style, wanted: Style) -> str:
    """The shortest sequence from one style to another."""
    if now == wanted:
        return ""
    afresh = _sequence(["0", *filter(None, [wanted.flags])], PLAIN, wanted)
    flags = _flags(now, wanted)
    return afresh if flags is None else min(_sequence(flags, now, wanted), afresh, key=len)


def _sequence(flags: list[str], now: Style, wanted: Style) -> str:
    parts = [*flags]
    if now.fg != wanted.fg:
        parts.append(wanted.fg)
    if now.bg != wanted.bg:
        parts.append(wanted.bg)
    return f"\x1b[{';'.join(parts)}m"


def _flags(now: Style, wanted: Style) -> list[str] | None:
    """Attributes to take back and to set; None when one cannot be taken back alone."""
    before, after = (set(filter(None, style.flags.split(";"))) for style in (now, wanted))
    if not before - after <= _OFF.keys():
        return None
    off = {_OFF[flag] for flag in before - after}
    return [
        *sorted(off),
        *sorted(flag for flag in after if flag not in before or _OFF.get(flag) in off),
    ]
