"""The heat maps of a fleet by name: what a cell means, its values, its rows; and maps as text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.errors import UsageError
from nsys_tui.fleet.fleet import Fleet
from nsys_tui.fleet.table_parts import Columns
from nsys_tui.fleet.times import Grid
from nsys_tui.model.arrays import Float64, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.table import Column, Table
from nsys_tui.names import cell_len
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.heatmap import NOTABLE, groups, heat
from nsys_tui.units import format_bytes, format_duration, format_moment

SHARES: Final = {
    "busy": "GPU busy",
    "compute": "compute",
    "comm": "communication",
    "overlap": "overlap of communication and compute",
    "exposed": "communication that nothing hides",
    "memory": "copies and memsets",
}
"""Maps that every fleet has, in per cent of each bin."""
HELD: Final = "GPU memory"
"""Map of the most bytes held in each bin."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Values of rows over time."""

    name: str
    title: str
    labels: tuple[str, ...]
    """One per row."""
    rows: tuple[tuple[int, int] | None, ...]
    """(member, device) of each row; None for a GPU metric, which belongs to no rank."""
    values: Float64
    """Shape (rows, bins), not negative; NaN where nothing is known."""
    edges: Int64
    """Edges of the bins in fleet time, ns."""
    top: float | None
    """What a full cell means; None for the largest value."""
    unit: str
    """``%``, ``B``, or nothing."""
    category: Category | None = None
    """Whose colour it has."""


def map_names(fleet: Fleet) -> list[str]:
    """Names of the maps that a fleet has."""
    held = [HELD] if any(m.process.memory.size for m in fleet.members) else []
    return [*(SHARES if fleet.rows else ()), *held, *fleet.metrics]


def heat_map(fleet: Fleet, name: str, bins: int) -> HeatMap:
    """One map of a fleet.

    Args:
        fleet: the ranks.
        name: one of ``map_names``.
        bins: most columns.
    """
    if name not in SHARES and name != HELD:
        return _metric(fleet, name, bins)
    grid = fleet.grid(bins)
    values = _held(fleet, grid) if name == HELD else _share(fleet, name, grid)
    return HeatMap(
        name,
        "GPU memory held" if name == HELD else SHARES[name],
        tuple(fleet.label(row) for row in fleet.rows),
        tuple(fleet.rows),
        values,
        fleet.edges(grid),
        None if name == HELD else 100.0,
        "B" if name == HELD else "%",
        _CATEGORY.get(name),
    )


_CATEGORY: Final = {
    "compute": Category.COMPUTE,
    "comm": Category.COMM,
    "exposed": Category.COMM,
    "memory": Category.MEMORY,
}


def _share(fleet: Fleet, name: str, grid: Grid) -> Float64:
    if name == "exposed":
        ns = fleet.heat("comm", grid) - fleet.heat("compute_comm_overlap", grid)
    else:
        ns = fleet.heat("compute_comm_overlap" if name == "overlap" else name, grid)
    return np.asarray(ns * (100 / grid.width), np.float64)


def _held(fleet: Fleet, grid: Grid) -> Float64:
    held = fleet.held_memory(grid).astype(np.float64)
    held[held < 0] = np.nan
    return held


def _metric(fleet: Fleet, name: str, bins: int) -> HeatMap:
    grid = fleet.grid(bins, metrics=True)
    labels, values = fleet.metric(name, grid)
    top = 100.0 if "[%]" in name or "%" in name else None
    edges = fleet.edges(grid)
    return HeatMap(name, name, tuple(labels), (None,) * len(labels), values, edges, top, "")


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
        return Table.of("heat", "Heat map", [], fleet.unknown or ["no GPU work in any report"])
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
        (Column(f"from {format_moment(start)} to {format_moment(end)}"),
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
    return Table.of("heat", f"Heat map: {shown.title}", columns, notes)


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
        return f"{shown.top:g}%"
    known = shown.values[~np.isnan(shown.values)]
    return value_text(shown, float(known.max()) if len(known) else 0.0)


def value_text(shown: HeatMap, value: float) -> str:
    """One value of a map with its unit; ``-`` where nothing is known."""
    if value != value:
        return "-"
    if shown.unit == "B":
        return format_bytes(round(value))
    return f"{value:.1f}{shown.unit}"
