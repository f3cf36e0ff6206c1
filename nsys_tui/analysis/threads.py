"""Rows of an event set apart by thread, stream or any other code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import ThreadEvents

_RADIX: Final = 1 << 15


def grouped(codes: NDArray[np.integer], count: int) -> list[NDArray[np.intp]]:
    """Row numbers of each code in [0, count), ascending; an empty array for a code without rows."""
    if not count:
        return []
    # numpy sorts 16 bits by radix: 0.05 s instead of 0.5 s for 6 M codes.
    order = np.argsort(codes.astype(np.int16) if count <= _RADIX else codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1])


class ByThread:
    """Rows of an event set by thread.

    Args:
        events: the event set.
    """

    def __init__(self, events: ThreadEvents) -> None:
        parts = grouped(events.thread, len(events.threads))
        self._rows = {int(tid): rows for tid, rows in zip(events.threads, parts, strict=True)}

    def rows(self, global_tid: int) -> NDArray[np.intp]:
        """Row numbers of one thread in start order; none for a thread without events."""
        return self._rows.get(global_tid, np.empty(0, np.intp))


def of_thread(
    events: ThreadEvents, rows: slice | NDArray[np.intp], global_tid: int
) -> NDArray[np.intp]:
    """Those of some rows that belong to one thread."""
    codes = np.flatnonzero(events.threads == global_tid)
    chosen = np.arange(len(events))[rows]
    return chosen[np.isin(events.thread[chosen], codes)]
