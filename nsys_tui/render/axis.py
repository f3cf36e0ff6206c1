"""The time axis: ticks at 1-2-5 steps, marks and the selected area, and the minimap below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from nsys_tui.model.lanes import Lane
from nsys_tui.names import cell_len
from nsys_tui.render.cells import KEY, Emphasis, Ink, Row, style
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.viewport import Viewport

TimeText: TypeAlias = Callable[[int, int], str]
"""Writes a moment as finely as a step in ns needs, unit last after a space: ``2.100 s``."""

SPACING = 11
"""Fewest cells from one tick to the next by default."""


def tick_step(span: int, most: int) -> int:
    """Smallest of 1, 2, 5, 10, 20, … ns that puts at most ``most`` ticks into ``span`` ns."""
    least = max(1, -(-span // max(most, 1)))
    decade = int(10 ** (len(str(least)) - 1))
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= least)


def ticks(window: Viewport, spacing: int = SPACING, origin: int = 0) -> tuple[list[int], int]:
    """Moments of the ticks, whole steps from ``origin``, and their step in ns."""
    step = tick_step(window.hi - window.lo, max(1, window.width // max(spacing, 1)))
    first = origin - (origin - window.lo) // step * step
    return list(range(first, window.hi, step)), step


def draw_axis(
    window: Viewport,
    text: TimeText,
    glyphs: Glyphs,
    *,
    marks: Mapping[str, int] | None = None,
    area: tuple[int, int] | None = None,
    cursor: int | None = None,
    origin: int = 0,
) -> Row:
    """Draws the axis: ``|2.100     |2.110     |2.120 s``.

    Args:
        window: the time shown.
        text: how moments are written.
        glyphs: the tick.
        marks: moments by the letter that is put there.
        area: time span shown in reverse.
        cursor: column of the cursor, shown in bold reverse.
        origin: where the steps count from, for relative times.
    """
    row = Row.blank(window.width, style(Ink.AXIS))
    for column, label in _tick_labels(window, text, origin):
        row.put(column, glyphs.tick + label)
    for letter, moment in (marks or {}).items():
        spot = window.cell(moment)
        if spot is not None:
            row.put(spot, letter, KEY)
    if area is not None:
        begin, end = sorted(area)
        left, right = window.nearest_edges_of(begin, end)
        row.emphasise(left, max(right, left + 1), Emphasis.REVERSE)
    if cursor is not None:
        row.emphasise(cursor, cursor + 1, Emphasis.REVERSE | Emphasis.BOLD)
    return row


def _tick_labels(window: Viewport, text: TimeText, origin: int) -> list[tuple[int, str]]:
    """Column and label of each tick; a unit that all labels share stays on the last one only."""
    moments, step = ticks(window, SPACING, origin)
    longest = max(
        (cell_len(text(moment, step)) for moment in moments[:1] + moments[-1:]), default=0
    )
    moments, step = ticks(window, max(SPACING, longest + 2), origin)
    placed = [(window.cell(moment) or 0, text(moment, step)) for moment in moments]
    fitting = [place for place in placed if place[0] + 1 + cell_len(place[1]) <= window.width]
    rest = [(column, "") for column, _ in placed[len(fitting) :]]
    units = {label.rpartition(" ")[2] for _, label in fitting if " " in label}
    if len(units) == 1:
        short = [(column, label.rpartition(" ")[0] or label) for column, label in fitting[:-1]]
        fitting = [*short, *fitting[-1:]]
    return fitting + rest


def draw_minimap(
    lane: Lane, extent: tuple[int, int], shown: tuple[int, int], width: int, glyphs: Glyphs
) -> Row:
    """The whole trace in one row, busy time by the ramp, the window as ``[==]``.

    Args:
        lane: what is busy, overlaps allowed.
        extent: the whole trace [start, end).
        shown: the window.
        width: cells.
        glyphs: ramp.
    """
    whole = Viewport(*extent, width)
    busy = lane.busy(whole.edges).tolist()
    tops = whole.widths.tolist()
    row = Row.blank(width, style(Ink.COUNTER))
    row.chars = [glyphs.level(part, top) for part, top in zip(busy, tops, strict=True)]
    left, right = whole.nearest_edges_of(*shown)
    right = min(max(right, left + 2), width)
    left = max(0, min(left, right - 2))
    row.put(left, "[" + "=" * (right - left - 2) + "]", style(Ink.CURSOR, emphasis=Emphasis.BOLD))
    return row
