"""Sums of an area as lines of a pane: columns at the side, or a flow in a low strip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.names import cell_len, cut, visible
from nsys_tui.render.cells import BOLD, MUTED, category_ink, style
from nsys_tui.render.glyphs import LETTERS
from nsys_tui.units import format_count, format_duration, format_share

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.area import Area
    from nsys_tui.render.cells import Line


LOW_NAME: Final = 24
"""Least cells of a name where there are few lines."""


def area_lines(found: Area, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Categories, then names; side by side where there is room."""
    categories = _categories(found)
    names = _names(found, width, ascii_only=ascii_only)
    if width < 76:
        return [*categories, [], *names]
    left = 38
    names = _names(found, width - left - 2, ascii_only=ascii_only)
    lines: list[Line] = []
    for number in range(max(len(categories), len(names))):
        line = categories[number] if number < len(categories) else []
        used = sum(len(text) for text, _ in line)
        rest = names[number] if number < len(names) else []
        lines.append([*line, (" " * (left - used), 0), *rest])
    return lines


def _categories(found: Area) -> list[Line]:
    lines: list[Line] = [[(f" {'category':<9}{'time':>10}{'%':>7}{'events':>9}", BOLD)]]
    for row in found.categories:
        share = format_share(row.busy, row.of).rstrip("%") if row.of else "-"
        text = f" {row.name:<9}{format_duration(row.busy):>10}{share:>7}{row.events:>9,}"
        lines.append([(text, 0)])
    return lines


def _names(found: Area, width: int, *, ascii_only: bool) -> list[Line]:
    lines: list[Line] = [[(f" {'top in area':<{max(12, width - 22)}}{'time':>10}{'n':>9}", BOLD)]]
    room = max(8, width - 24)
    for row in found.names:
        name = squeezed(visible(row.name, ascii_only), room)
        more = f"+{row.straddling}" if row.straddling else ""
        figures = f"{format_duration(row.total):>10}{format_count(row.events) + more:>9}"
        letter = (f" {LETTERS[row.category]} ", style(category_ink(row.category)))
        lines.append([letter, (f"{name:<{room}}{figures}", 0)])
    if found.more_names:
        lines.append([(f" and {found.more_names:,} more names", MUTED)])
    return lines


def low_lines(found: Area, width: int, *, ascii_only: bool = False) -> list[Line]:
    """The same in a few lines: the GPU's categories, then names, then the host's categories."""
    work: list[tuple[str, int]] = []
    host: list[tuple[str, int]] = []
    for row in found.categories:
        share = f" {format_share(row.busy, row.of)}" if row.of else ""
        text = f"{row.name} {format_duration(row.busy)}{share}{_times(row.events)}"
        (work if row.of else host).append((text, 0))
    names: list[tuple[str, int]] = []
    for entry in found.names:
        name = squeezed(visible(entry.name, ascii_only), max(LOW_NAME, width // 4))
        text = f"{name} {format_duration(entry.total)}{_times(entry.events) or ' from before'}"
        names.append((text, category_ink(entry.category)))
    return [*_flow(work, width), *_flow(names, width), *_flow(host, width)]


def _times(events: int) -> str:
    """How many events begin; nothing for those that only reach in."""
    return f" {format_count(events)}x" if events else ""


def _flow(parts: list[tuple[str, int]], width: int) -> list[Line]:
    lines: list[Line] = []
    used = width
    for text, code in parts:
        if used + cell_len(text) + 3 > width:
            lines.append([])
            used = 0
        lines[-1].append((f" {text}  ", code))
        used += cell_len(text) + 3
    return lines


def squeezed(name: str, cells: int) -> str:
    """A name cut in the middle: kernels of one library differ at their ends."""
    if cell_len(name) <= cells or not name.isascii():
        return cut(name, cells)
    head = (cells - 1) // 2
    return f"{name[:head]}~{name[head + 1 - cells :]}"
