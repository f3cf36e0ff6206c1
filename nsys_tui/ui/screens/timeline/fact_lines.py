"""Facts of an event as lines of a pane: a column of them at the side, or a flow in a low strip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.timeline.facts import SPREAD
from nsys_tui.names import cell_len, cut, visible
from nsys_tui.render.cells import BOLD, MUTED

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.facts import Facts
    from nsys_tui.render.cells import Line


HEADING: Final = 20
"""Cells of the pane's heading that are not the event's name."""
JOINED: Final = frozenset(
    ("", SPREAD, "corr", "block", "smem", "occ", "waves", "speed", "queue", "transfer", "busbw")
)
"""Facts that stand in the line of the one before where they fit."""
TELLING: Final = (
    *("dur", "cause", "witness", "bytes", "speed", "of fastest", "memory"),
    *("waited", "transfer", "algbw", "busbw", "occ", "waves", "launch", "queue"),
)
"""Facts that a strip of few lines begins with: what is asked first of each kind of event."""


def column_lines(found: Facts, width: int) -> list[Line]:
    """Facts a line each or joined where short, then the call stack and the raw row.

    A name that the heading cuts stands above them in full.
    """
    lines: list[Line] = []
    if cell_len(found.title) > width - HEADING:
        lines += _wrapped("name", found.title, width, 10)
    used = width
    for name, text in found.facts:
        piece: Line = [(f"  {name} " if name else "  ", MUTED), (visible(text), 0)]
        cells = sum(cell_len(part) for part, _ in piece)
        if name in JOINED and used + cells < width:
            lines[-1] += piece
            used += cells
            continue
        wrapped = _wrapped(name, text, width, 10)
        lines += wrapped
        used = sum(cell_len(part) for part, _ in wrapped[-1])
    if found.stack:
        lines.append([(" call stack, innermost first", BOLD)])
        lines += [[(f"  {frame}", 0)] for frame in found.stack]
    if found.raw:
        lines.append([(f" row of {found.table}", BOLD)])
        for name, value in found.raw.items():
            if value is not None:
                shown = value.hex(" ") if isinstance(value, bytes) else str(value)
                lines += _wrapped(name, shown, width, 24)
    return lines


def _wrapped(name: str, text: str, width: int, indent: int) -> list[Line]:
    text = visible(text)[:2000]
    margin = max(indent, len(name) + 2)
    room = max(8, width - margin - 1)
    pieces: list[str] = []
    while text:
        piece = cut(text, room)
        if len(piece) < len(text) and " " in piece[room // 2 :]:
            piece = piece[: piece.rindex(" ") + 1]
        pieces.append(piece)
        text = text[len(piece) :]
    first, *rest = pieces or [""]
    return [
        [(f" {name:<{margin - 1}}", MUTED), (first, 0)],
        *([(" " * margin, 0), (piece, 0)] for piece in rest),
    ]


def flowing_lines(found: Facts, width: int) -> list[Line]:
    """The facts in their shortest form, telling ones first; ranges in the third line."""
    shown = [(name, text.partition(" (")[0]) for name, text in found.facts if name != SPREAD]
    rank = {name: place for place, name in enumerate(TELLING)}
    shown.sort(key=lambda fact: rank.get(fact[0], len(rank)))
    ranges = [(name, inner_end(text, width - 7)) for name, text in shown if name == "nvtx"]
    lines = _flow([pair for pair in shown if pair[0] != "nvtx"], width)
    lines[2:2] = [line for pair in ranges for line in _flow([pair], width)]
    return lines


def inner_end(path: str, width: int) -> str:
    """The innermost ranges of a path, as many as fit; ``..`` stands for those around them."""
    while cell_len(path) > width and " > " in path.removeprefix(".. > "):
        path = ".. > " + path.removeprefix(".. > ").partition(" > ")[2]
    return path


def _flow(facts: list[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = [[]]
    used = 0
    for name, text in facts:
        cells = cell_len(name) + cell_len(text) + 1 + bool(name)
        if used + cells > width and lines[-1]:
            lines.append([])
            used = 0
        parts: Line = [(f" {name}", MUTED)] if name else []
        lines[-1] += [*parts, (f" {text} ", 0)]
        used += cells + 1
    return lines
