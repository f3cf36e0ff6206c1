"""How ranges of one thread nest: depth and parent of each, without a pass for each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nsys_tui.model.events import Int64


def depths(start: Int64, end: Int64) -> Int64:
    """Ranges before each one that are still open at its start.

    Args:
        start: int64 [n] ns, in path order: by (start, -end, rowid).
        end: int64 [n]; a range without length is never open.
    """
    real = end > start
    before: Int64 = np.cumsum(real) - real
    closed = np.searchsorted(np.sort(end[real]), start, side="right")
    depth: Int64 = before - closed
    return depth


def parents(depth: Int64) -> Int64:
    """The last range before each one that is one level less deep; -1 at depth 0.

    Where ranges cross it need not be the one around it.
    """
    count = len(depth)
    place = np.arange(count)
    # Ranges in the order of (depth, place): that before (depth - 1, place) is the one.
    keys = np.sort(depth * count + place)
    found = np.searchsorted(keys, (depth - 1) * count + place) - 1
    return np.where(depth > 0, keys[np.maximum(found, 0)] % max(count, 1), -1)
