"""Which entries of a list fit what was typed, best first.

Textual's own search (8.2.8) tries every way to find the letters in their order: ten letters in one
C++ name of 217 characters took 0.1 to 1 s, and a report has thousands of names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Entry:
    """One line of a list to choose from."""

    text: str
    detail: str = ""
    """What stands at the left: a key, or the kind of thing."""
    value: Any = None
    """What choosing it gives."""


def matching(entries: Sequence[Entry], typed: str) -> list[Entry]:
    """Entries that hold every typed word, case aside; equal ones and those that begin so first.

    Entries of equal rank keep their order.
    """
    typed = typed.lower().strip()
    words = typed.split()
    if not words:
        return list(entries)
    ranked = [
        (rank, entry)
        for entry in entries
        if (rank := _rank(entry.text.lower(), entry.detail.lower(), words)) is not None
    ]
    return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]


def _rank(text: str, detail: str, words: Sequence[str]) -> int | None:
    if not all(word in text or word in detail for word in words):
        return None
    first = words[0]
    if text == " ".join(words):
        return 0
    if text.startswith(first) or detail == first:
        return 1
    if any(part.startswith(first) for part in text.replace("_", " ").split()):
        return 2
    return 3
