"""Facts of an event and sums of an area as lines of a pane: a column, or a flow in a low strip."""

from __future__ import annotations

from typing import Final

from nsys_tui.analysis.timeline.area import Area, CategoryRow
from nsys_tui.analysis.timeline.facts import SPREAD, Facts
from nsys_tui.model.categories import Category
from nsys_tui.names import cell_len, told_apart, visible
from nsys_tui.render.cells import BOLD, MUTED, Line, style, word_ink
from nsys_tui.render.glyphs import LETTERS
from nsys_tui.text.folding import wrapped as folded
from nsys_tui.ui.pane_text import side_by_side
from nsys_tui.units import format_count, format_duration, format_share

LOW_NAME: Final = 24
"""Least cells of a name where there are few lines."""


def area_lines(area: Area, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Categories, then names; side by side where there is room."""
    categories = _categories(area)
    names = _names(area, width, ascii_only=ascii_only)
    if width < 76:
        return [*categories, [], *names]
    left = 38
    names = _names(area, width - left - 2, ascii_only=ascii_only)
    lines: list[Line] = []
    for number in range(max(len(categories), len(names))):
        line = categories[number] if number < len(categories) else []
        used = sum(len(text) for text, _ in line)
        rest = names[number] if number < len(names) else []
        lines.append([*line, (" " * (left - used), 0), *rest])
    return lines


def _categories(area: Area) -> list[Line]:
    lines: list[Line] = [[(f" {'category':<9}{'time':>10}{'%':>7}{'events':>9}", BOLD)]]
    for row in area.categories:
        share = format_share(row.busy, row.of).rstrip("%") if row.of else "-"
        text = f" {row.name:<9}{format_duration(row.busy):>10}{share:>7}{row.events:>9,}"
        lines.append([(text, 0)])
    return lines


def _names(area: Area, width: int, *, ascii_only: bool) -> list[Line]:
    lines: list[Line] = [[(f" {'top in area':<{max(12, width - 20)}}{'time':>9}{'n':>8}", BOLD)]]
    room = max(8, width - 22)
    told = told_apart([visible(row.name, ascii_only) for row in area.names], room)
    for row, name in zip(area.names, told, strict=True):
        more = f"+{row.straddling}" if row.straddling else ""
        figures = f"{format_duration(row.total):>9}{format_count(row.events) + more:>8}"
        letter = (f" {LETTERS[row.category]} ", style(word_ink(row.category)))
        lines.append([letter, (f"{name:<{room}}{figures}", 0)])
    if area.more_names:
        lines.append([(f" and {area.more_names:,} more names", MUTED)])
    return lines


def low_lines(area: Area, width: int, *, ascii_only: bool = False) -> list[Line]:
    """The same in a few lines: the GPU's categories, then names, then the host's categories.

    The only name of a category stands for it, where that took as long.
    """
    alone: dict[Category, CategoryRow] = {}
    work: list[Line] = []
    host: list[Line] = []
    for row in area.categories:
        entries = [entry for entry in area.names if entry.category.name.lower() == row.name]
        if len(entries) == 1 and entries[0].total == row.busy:
            alone[entries[0].category] = row
        elif row.busy or row.events:
            text = f"{row.name} {format_duration(row.busy)}{_share(row)}{_times(row.events)}"
            (work if row.of else host).append([(f" {text}", 0)])
    names: list[Line] = []
    shown = [visible(entry.name, ascii_only) for entry in area.names]
    told = told_apart(shown, max(LOW_NAME, width // 4))
    for entry, name in zip(area.names, told, strict=True):
        figures = format_duration(entry.total) + _share(alone.get(entry.category))
        text = f"{name} {figures}{_times(entry.events) or ' from before'}"
        names.append([(f" {text}", style(word_ink(entry.category)))])
    return [line for items in (work, names, host) for line in side_by_side(items, width)]


def _share(row: CategoryRow | None) -> str:
    """Of the time of all GPUs; nothing on the host."""
    return f" {format_share(row.busy, row.of)}" if row is not None and row.of else ""


def _times(events: int) -> str:
    """How many events begin; nothing for those that only reach in."""
    return f" {format_count(events)}x" if events else ""


HEADING: Final = 20
"""Cells of the pane's heading that are not the event's name."""
JOINED: Final = frozenset(
    ("", SPREAD, "corr", "block", "smem", "occ", "waves", "speed", "queue", "transfer", "busbw")
)
"""Facts that stand in the line of the one before where they fit."""
TELLING: Final = (
    *("dur", "GPU work", "cause", "witness", "bytes", "speed", "of fastest", "memory"),
    *("waited", "transfer", "algbw", "busbw", "occ", "waves", "launch", "queue"),
)
"""Facts that a strip of few lines begins with: what is asked first of each kind of event."""
SENTENCES: Final = ("finding", "advice")
"""Facts that stand before all others, in full."""


def telling(name: str) -> int:
    """Place of a fact among those that are asked first; all others come after them."""
    return TELLING.index(name) if name in TELLING else len(TELLING)


def column_lines(facts: Facts, width: int) -> list[Line]:
    """Facts a line each or joined where short, then the call stack and the raw row.

    A name that the heading cuts stands above them in full.
    """
    lines: list[Line] = []
    if cell_len(facts.title) > width - HEADING:
        lines += _wrapped("name", facts.title, width, 10)
    used = width
    for name, text in facts.facts:
        piece: Line = [(f"  {name} " if name else "  ", MUTED), (visible(text), 0)]
        cells = sum(cell_len(part) for part, _ in piece)
        if name in JOINED and used + cells < width:
            lines[-1] += piece
            used += cells
            continue
        wrapped = _wrapped(name, text, width, 10)
        lines += wrapped
        used = sum(cell_len(part) for part, _ in wrapped[-1])
    if facts.stack:
        lines.append([(" call stack, innermost first", BOLD)])
        lines += [[(f"  {frame}", 0)] for frame in facts.stack]
    if facts.raw:
        lines.append([(f" row of {facts.table}", BOLD)])
        for name, value in facts.raw.items():
            if value is not None:
                shown = value.hex(" ") if isinstance(value, bytes) else str(value)
                lines += _wrapped(name, shown, width, 24)
    return lines


def _wrapped(name: str, text: str, width: int, indent: int) -> list[Line]:
    text = visible(text)[:2000]
    margin = max(indent, len(name) + 2)
    room = max(8, width - margin - 1)
    first, *rest = folded(text, room)
    return [
        [(f" {name:<{margin - 1}}", MUTED), (first, 0)],
        *([(" " * margin, 0), (piece, 0)] for piece in rest),
    ]


def flowing_lines(facts: Facts, width: int) -> list[Line]:
    """The facts in their shortest form, telling ones first; ranges in the third line."""
    said = [(name, text) for name, text in facts.facts if name in SENTENCES]
    left_out = (SPREAD, *SENTENCES)
    shown = [(name, text.partition(" (")[0]) for name, text in facts.facts if name not in left_out]
    shown.sort(key=lambda fact: telling(fact[0]))
    ranges = [(name, inner_end(text, width - 7)) for name, text in shown if name == "nvtx"]
    lines = side_by_side([_item(*pair) for pair in shown if pair[0] != "nvtx"], width, " ")
    lines[2:2] = [_item(*pair) for pair in ranges]
    return [line for pair in said for line in _wrapped(*pair, width, 0)] + lines


def _item(name: str, text: str) -> Line:
    return [*([(f" {name}", MUTED)] if name else []), (f" {text}", 0)]


def inner_end(path: str, width: int) -> str:
    """The innermost ranges of a path, as many as fit; ``..`` stands for those around them."""
    while cell_len(path) > width and " > " in path.removeprefix(".. > "):
        path = ".. > " + path.removeprefix(".. > ").partition(" > ")[2]
    return path
