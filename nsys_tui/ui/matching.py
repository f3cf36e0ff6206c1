"""Which entries of a list fit what was typed, best first.

Textual's fuzzy search (8.2.8) tries every way to find the letters in their order: ten letters in
one C++ name of 217 characters took 0.1 to 1 s, and a report has thousands of names. On short texts
it is quick (400 actions and terms: 1 to 4 ms): entries that say so are also found by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

FEWEST: Final = 2
MOST: Final = 24
"""Letters for which letters in their order are looked for."""
SHORT: Final = 90
"""Characters of a text that are looked at for that."""
BEST: Final = 8
"""Entries found by that at most."""


@dataclass(frozen=True)
class Entry:
    """One line of a list to choose from."""

    text: str
    detail: str = ""
    """What stands at the left: a key, or the kind of thing."""
    value: Any = None
    """What choosing it gives."""
    loose: bool = False
    """Whether it is also found by letters in their order; for short texts, at most hundreds."""
    also: str = ""
    """Words that are not shown and by which it is found too, after all others."""


def matching(entries: Sequence[Entry], typed: str) -> list[Entry]:
    """Entries that hold every typed word, case aside; equal ones and those that begin so first.

    Entries of equal rank keep their order.
    """
    typed = typed.lower().strip()
    words = typed.split()
    if not words:
        return list(entries)
    ranked = [(rank, entry) for entry in entries if (rank := _rank(entry, words)) is not None]
    ordered = [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]
    return [*ordered, *_fuzzy(entries, typed, {id(entry) for entry in ordered})]


def _fuzzy(entries: Sequence[Entry], typed: str, known: set[int]) -> list[Entry]:
    """The best of the entries that have the letters in their order."""
    left = [entry for entry in entries if entry.loose and id(entry) not in known]
    if not left or not FEWEST <= len(typed) <= MOST:
        return []
    from textual.fuzzy import FuzzySearch

    search = FuzzySearch()
    scored = [(search.match(typed, entry.text[:SHORT])[0], entry) for entry in left]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [entry for _, entry in best[:BEST]]


def _rank(entry: Entry, words: Sequence[str]) -> int | None:
    text, detail = entry.text.lower(), entry.detail.lower()
    missing = [word for word in words if word not in text and word not in detail]
    if missing:
        known = entry.also.split()
        return 6 if all(any(w.startswith(word) for w in known) for word in missing) else None
    first = words[0]
    if text == " ".join(words):
        return 0
    whole = re.search(rf"(?<!\w){re.escape(first)}(?!\w)", text) is not None
    if text.startswith(first) or detail == first:
        return 2 - whole
    if any(part.startswith(first) for part in text.replace("_", " ").split()):
        return 4 - whole
    return 5
