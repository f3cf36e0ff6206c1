"""The heat maps of a fleet by name: what a cell means, its values, and the rows they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.categories import Category

if TYPE_CHECKING:
    from nsys_tui.analysis.aggregate import Float64
    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.fleet.time_grid import Grid
    from nsys_tui.model.events import Int64

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
