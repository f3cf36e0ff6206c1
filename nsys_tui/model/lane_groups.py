"""Lanes of many groups of events at once, such as those of ten thousand threads.

Most such groups hold a few events: what ``split`` and ``Lane.build`` look up by some thirty array
passes each is looked up for all of them together here, and lanes are slices of common arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.lanes import STRIDE, Lane, pack, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from nsys_tui.model.intervals import Int64
    from nsys_tui.model.lanes import Codes

_AXIS: Final = 1 << 62
"""Longest time axis on which groups are laid one after the other."""
_NO_SUMS: Final = np.zeros(1, np.int64)


def split_groups(
    groups: npt.NDArray[np.integer],
    starts: Int64,
    ends: Int64,
    index: Codes,
    category: Codes | int | None,
    name: Codes | None,
) -> Iterator[tuple[int, tuple[Lane, ...]]]:
    """The lanes without overlaps that hold the events of each group, as ``split`` makes them.

    Args:
        groups: number of each event's group, any order.
        starts: int64 ns.
        ends: int64 ns; an end before its start counts as zero length.
        index: row of each event in the owner's event set.
        category: as in ``Lane.build``.
        name: as in ``Lane.build``.

    Yields:
        each group that has events, ascending, with its lanes.
    """
    if not len(groups):
        return
    order = np.lexsort((starts, groups))
    groups, starts, index = groups[order], starts[order], index[order]
    ends = np.maximum(ends[order], starts)
    heads = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    span = int(ends.max()) - int(starts.min()) + 2
    if span * len(heads) >= _AXIS:
        for lo, hi in zip(heads.tolist(), [*heads[1:].tolist(), len(groups)], strict=True):
            whole = Lane.build(starts[lo:hi], ends[lo:hi], index[lo:hi], category, name)
            yield int(groups[lo]), split(whole)
        return
    ordinal = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(groups))))
    shift = ordinal * span - int(starts.min())
    level = pack(starts + shift, ends + shift)
    order = np.lexsort((level, ordinal))
    lanes = _lanes(
        ordinal[order], level[order], starts[order], ends[order], index[order], category, name
    )
    group, mine = 0, [next(lanes)[1]]
    for number, lane in lanes:
        if number != group:
            yield int(groups[heads[group]]), tuple(mine)
            group, mine = number, []
        mine.append(lane)
    yield int(groups[heads[group]]), tuple(mine)


def _lanes(
    ordinal: npt.NDArray[np.integer],
    level: npt.NDArray[np.integer],
    starts: Int64,
    ends: Int64,
    index: Codes,
    category: Codes | int | None,
    name: Codes | None,
) -> Iterator[tuple[int, Lane]]:
    """(group, lane) of events in the order of their lanes."""
    fresh = np.append(True, (ordinal[1:] != ordinal[:-1]) | (level[1:] != level[:-1]))
    heads = np.flatnonzero(fresh)
    counts = np.diff(np.append(heads, len(starts)))
    lasts = ends > starts
    lasts[1:] &= fresh[1:] | (starts[1:] >= ends[:-1])
    simple = np.logical_and.reduceat(lasts, heads) & (counts < STRIDE)
    total = np.add.reduceat(ends - starts, heads)
    peaks = np.maximum.reduceat(ends - starts, heads)
    columns = (ordinal[heads], heads, heads + counts, simple, total)
    for n, (group, lo, hi, plain, busy) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        first, last, rows = starts[lo:hi], ends[lo:hi], index[lo:hi]
        if not plain:
            yield group, Lane.build(first, last, rows, category, name)
            continue
        longest = peaks[n : n + 1]
        yield (
            group,
            Lane(first, last, rows, first, last, _NO_SUMS, busy, last, longest, category, name),
        )
