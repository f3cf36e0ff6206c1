"""A heat map as text: one line per rank, or per group of neighbours where there are many."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.errors import UsageError
from nsys_tui.fleet.heat_maps import heat_map, map_names
from nsys_tui.fleet.table_parts import Columns, made
from nsys_tui.model.table import Column
from nsys_tui.names import cell_len
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.heatmap import NOTABLE, groups, heat
from nsys_tui.units import format_bytes, format_duration

if TYPE_CHECKING:
    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.fleet.heat_maps import HeatMap
    from nsys_tui.model.table import Table

WIDTH: Final = 64
HEIGHT: Final = 48
_BESIDE: Final = 5
"""Cells around label and bins: the margin, the gap and the two bars."""


def heat_text(
    fleet: Fleet, name: str, bins: int, *, unicode: bool, room: int | None = None
) -> Table:
    """One heat map as lines of the ramp.

    Args:
        fleet: the ranks.
        name: one of ``map_names``.
        bins: bins of time to compute; neighbours share a cell where there are too many.
        unicode: whether blocks may be written.
        room: cells of a line; None for any.

    Raises:
        UsageError: the fleet has no such map.
    """
    known = map_names(fleet)
    if not known:
        return made("heat", "Heat map", [], fleet.unknown or ["no GPU work in any report"])
    if name not in known:
        raise UsageError(f"no map {name!r}", hint=f"there are: {', '.join(known)}")
    shown = heat_map(fleet, name, bins)
    glyphs = UNICODE if unicode else ASCII
    labels = group_labels(shown, min(HEIGHT, len(shown.labels)))
    beside = max(map(cell_len, labels), default=0) + _BESIDE
    width = max(1, min(WIDTH, len(shown.edges) - 1, (room or beside + WIDTH) - beside))
    lines = heat(shown.values, HEIGHT, width, glyphs, shown.top)
    start, end = int(shown.edges[0]), int(shown.edges[-1])
    columns: Columns = [
        (Column("Rank"), labels),
        (Column(f"from {format_duration(start)} to {format_duration(end)}"),
         [f"|{line.text()}|" for line in lines]),
    ]  # fmt: skip
    cell = format_duration((end - start) // max(width, 1))
    full = scale_text(shown)
    notes = [f"a cell is {cell}; blank is nothing, {glyphs.ramp[-1]} is {full}", *fleet.unknown]
    if len(lines) < len(shown.labels):
        notes.append(
            f"a row of several ranks shows their mean, or the one further than {NOTABLE:.0%} of"
            " a full cell from it"
        )
    return made("heat", f"Heat map: {shown.title}", columns, notes)


def group_labels(shown: HeatMap, height: int) -> list[str]:
    """What each drawn row stands for: ``3``, or ``8-15`` where neighbours share it."""
    edges = groups(len(shown.labels), height).tolist()
    return [
        shown.labels[lo] if hi - lo <= 1 else f"{shown.labels[lo]}-{shown.labels[hi - 1]}"
        for lo, hi in itertools.pairwise(edges)
    ]


def scale_text(shown: HeatMap) -> str:
    """What a full cell means."""
    if shown.top is not None:
        return f"{shown.top:.0f}%"
    known = shown.values[~np.isnan(shown.values)]
    return value_text(shown, float(known.max()) if len(known) else 0.0)


def value_text(shown: HeatMap, value: float) -> str:
    """One value of a map with its unit; ``-`` where nothing is known."""
    if value != value:
        return "-"
    if shown.unit == "B":
        return format_bytes(round(value))
    return f"{value:.1f}{shown.unit}"
