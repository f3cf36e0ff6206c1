"""How long work reports where it stands, and how it is cancelled; no I/O, no threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as ``progress(what, done, total)``; raising ``CancelledError`` in it stops the work."""


def silent(what: str, done: int, total: int) -> None:
    """Stands in where nobody wants to know."""
