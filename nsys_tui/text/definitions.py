"""What the words on screens and in tables mean: the texts of ``nsys_tui/definitions``, by term.

Docstrings cite them as ``(definitions: "busy")``. What rules, reports, errors and capabilities
mean stands where they are registered, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "definitions"
CAUSE: Final = "cause: "
_UNITS: Final = re.compile(
    r"( (ns|share|bytes|count|per s|gb/s|mb|%)| \(([num]?s|sec|([kmg]i?)?b(/s)?|%)\)|%)$"
)


_MOST_WORDS: Final = 8
"""Words of a header or key; what has more is a name from a report, such as a kernel's."""


@dataclass(frozen=True)
class Definition:
    """One term and its paragraph."""

    name: str
    also: tuple[str, ...]
    """Other words for it: aliases, headers, column keys without their unit."""
    topic: str
    screens: tuple[str, ...]
    """Screens whose help shows it."""
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """All that it is called, in lower case."""
        words = (self.name.removeprefix(CAUSE), self.name, *self.also)
        return tuple(dict.fromkeys(word.lower() for word in words))


@cache
def definitions() -> tuple[Definition, ...]:
    """All of them, topic by topic."""
    return tuple(
        definition
        for path in sorted(FOLDER.glob("*.md"))
        for definition in _parsed(path.read_text(encoding="utf-8"))
    )


def _parsed(text: str) -> Iterable[Definition]:
    """``# topic``, then for each term ``## name, alias``, maybe ``on: screen``, and a paragraph."""
    topic, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    for section in sections:
        head, _, body = section.partition("\n")
        screens = re.match(r"on: (.*)\n", body)
        yield Definition(
            *_names(head),
            topic=topic.partition("\n")[0].lstrip("# "),
            screens=tuple(screens[1].split(", ")) if screens else (),
            text=" ".join(body[screens.end() if screens else 0 :].split()),
        )


def _names(head: str) -> tuple[str, tuple[str, ...]]:
    name, *also = head.split(", ")
    return name, tuple(also)


@cache
def _by_word() -> dict[str, list[Definition]]:
    by_word: dict[str, list[Definition]] = {}
    for one in definitions():
        for word in one.words:
            by_word.setdefault(word, []).append(one)
    plurals = {f"{word}s": ones for word, ones in by_word.items()}
    return plurals | by_word


def define(word: str) -> list[Definition]:
    """What a term, a header or a column key means.

    ``busy_share`` is ``busy``; ``mean_skew_ns`` has no text of its own and is two: mean, skew.

    Returns:
        Its definition, or those of the words it is made of, all of them; else nothing.
    """
    known, text = _by_word(), " ".join(word.lower().replace("_", " ").split())
    for asked in (text, _UNITS.sub("", text)):
        if asked in known:
            return known[asked]
    words = _UNITS.sub("", text).split()
    return _parts(words) if len(words) <= _MOST_WORDS else []


def _parts(words: list[str]) -> list[Definition]:
    """Definitions of the longest known words that make up the whole, one after the other."""
    for length in range(len(words), 0, -1):
        meanings = _by_word().get(" ".join(words[:length]), [])
        rest = _parts(words[length:]) if meanings else []
        if meanings and (rest or length == len(words)):
            return [*meanings, *rest]
    return []


def on_screen(screen: str, headers: Iterable[str]) -> list[Definition]:
    """What a screen's help explains: its columns first, then the other words on it."""
    meanings = [one for header in headers for one in define(header)]
    return [*dict.fromkeys((*meanings, *(one for one in definitions() if screen in one.screens)))]
