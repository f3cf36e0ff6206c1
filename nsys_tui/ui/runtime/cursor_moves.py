"""Where the terminal's cursor goes next, in the fewest bytes.

A full change of screens jumps 500 times; as absolute jumps they were a quarter of its bytes.
"""

from __future__ import annotations

from typing import Final

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
