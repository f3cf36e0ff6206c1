"""Texts as lines of panes: wrapped, and behind a label."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.names import cell_len, visible
from nsys_tui.redaction import redacted
from nsys_tui.render.cells import MUTED, Line

LABEL: Final = 9
"""Cells of a label."""
_WARM_UP: Final = "w"
_UNENDED: Final = "?"
"""Marks of iterations that are in no statistics."""


def labelled(label: str, text: str, width: int) -> Iterable[Line]:
    """A text behind its label, wrapped."""
    room = max(8, width - LABEL - 1)
    lines = _lines(text, room) or [""]
    heads = [label, *[""] * (len(lines) - 1)]
    return [
        [(f"{head:<{LABEL}} ", MUTED), (line, 0)] for head, line in zip(heads, lines, strict=True)
    ]


def side_by_side(items: Iterable[Line], width: int, gap: str = "  ") -> list[Line]:
    """Items beside each other, as many in a line as there is room for."""
    lines: list[Line] = []
    for item in items:
        joined = [*lines[-1], (gap, 0), *item] if lines else []
        if joined and sum(cell_len(text) for text, _ in joined) <= width:
            lines[-1] = joined
        else:
            lines.append([*item])
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """An untrusted text as lines of at most ``width`` cells; its own line breaks are blanks."""
    return _lines(visible(" ".join(text.split())), max(width, 10))


def _lines(text: str, room: int) -> list[str]:
    """What is broken loses its secrets first: a piece of one is not known as such any more."""
    whole = text if cell_len(text) <= room else redacted(text)
    return textwrap.wrap(whole, room, break_on_hyphens=False)


def uncounted(iterations: Iterations) -> dict[int, str]:
    """The marks of iterations that are in no statistics, by their places."""
    return {
        place: _UNENDED if iterations.never_closed[place] else _WARM_UP
        for place in np.flatnonzero(~iterations.counted).tolist()
    }


def uncounted_remark(iterations: Iterations) -> str:
    """What these marks stand for; empty without any."""
    apart = [f"{_WARM_UP}: warm-up"] if iterations.warm_up else []
    apart += [f"{_UNENDED}: {iterations.unended}"] if iterations.never_closed.any() else []
    return ", ".join(apart)
