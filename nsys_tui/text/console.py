"""Standard output where it is a terminal: data that is printed raw elsewhere is made harmless."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from nsys_tui.names import escaped


class Painted(str):
    """Text that is harmless already, with colours of the program's own."""

    __slots__ = ()


class Console:
    """A terminal to print on: control characters of names are written out, whatever the format.

    Tables are harmless by themselves; this holds for all else that is printed but what was
    ``Painted``.

    Args:
        stream: standard output; everything but writing is left to it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Prints text; returns how many characters were asked for."""
        self._stream.write(text if isinstance(text, Painted) else escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Prints several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
