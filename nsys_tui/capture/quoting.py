"""POSIX shell words from data: the only place where text for a shell is put together."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from nsys_tui.errors import UsageError


def word(text: str) -> str:
    """One shell word that expands to exactly ``text``.

    Raises:
        UsageError: the text holds NUL, which no argument can.
    """
    if "\0" in text:
        raise UsageError(f"{text!r} holds a NUL character, which no program can be given")
    return shlex.quote(text)


def words(items: Iterable[str]) -> str:
    """Several words, separated by spaces."""
    return " ".join(word(item) for item in items)


def assignments(values: Mapping[str, str], *, export: bool = False) -> str:
    """Lines ``NAME='value'``; the names must be checked already."""
    prefix = "export " if export else ""
    return "".join(f"{prefix}{name}={word(value)}\n" for name, value in values.items())


def to_bytes(script: str) -> bytes:
    """A script as bytes; arguments that were no UTF-8 come out as the bytes they were."""
    return script.encode("utf-8", "surrogateescape")


def printable(text: str, limit: int = 2000) -> str:
    """Untrusted text for a terminal: control characters escaped, length bounded."""
    shown = "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in text[:limit].encode("utf-8", "replace").decode()
    )
    return shown + ("…" if len(text) > limit else "")
