"""Printed tables in colour, for a terminal: titles, heads, bars and the words that judge.

Colours are those of the terminal's own sixteen that can be read on light and dark grounds alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rich.color import ColorSystem
from rich.style import Style

from nsys_tui.names import escaped
from nsys_tui.text.console import Painted

_RULE: Final = re.compile(r" *-[- ]*")
_TITLE: Final = Style(bold=True)
_HEAD: Final = Style(color="magenta")
_MUTED: Final = Style(dim=True)
_WORDS: Final = {
    "better": Style(color="bright_blue", bold=True),
    "worse": Style(color="red", bold=True),
    "grave": Style(color="red", bold=True),
    "middle": Style(color="magenta"),
    "bar": Style(color="bright_blue"),
}
_FOUND: Final = re.compile(
    r"(?P<better>\bbetter(: \w+)?)|(?P<worse>\bworse(: \w+)?|\boutlier\b|! unfair)"
    r"|^ (?P<grave>H) |^ (?P<middle>M) |(?P<bar>[█▉▊▋▌▍▎▏]+)"
)


def painted(pieces: Iterable[str]) -> Iterator[Painted]:
    """The same text with colours, line by line.

    Args:
        pieces: text of ``sections.sections`` or ``compare.as_text``, cut anywhere at line ends.
    """
    before: str | None = None
    for line in (line for piece in pieces for line in piece.splitlines()):
        if before is not None:
            yield _line(before, head=bool(_RULE.fullmatch(line)))
        before = line
    if before is not None:
        yield _line(before, head=False)


def _line(line: str, *, head: bool) -> Painted:
    text = escaped(line)
    if head:
        shown = _sent(text, _HEAD)
    elif _RULE.fullmatch(text):
        shown = _sent(text, _MUTED)
    elif text[:1].strip() and not text.startswith(("!", "note:")):
        shown = _sent(text, _TITLE)
    else:
        shown = _FOUND.sub(_word, text)
    return Painted(shown + "\n")


def _word(match: re.Match[str]) -> str:
    name = match.lastgroup or "bar"
    word = match[name]
    return match[0].replace(word, _sent(word, _WORDS[name]), 1)


def _sent(text: str, style: Style) -> str:
    return style.render(text, color_system=ColorSystem.STANDARD)
