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
    return np.split(_order(codes, count), np.cumsum(np.bincount(codes, minlength=count))[:-1])


def _order(codes: NDArray[np.integer], count: int) -> NDArray[np.intp]:
    """Row numbers by code; numpy sorts 16 bits by radix: 0.05 s, not 0.5 s, for 6 M codes."""
    return np.argsort(codes.astype(np.int16) if count <= _RADIX else codes, kind="stable")


class ByThread:
    """Rows of an event set by thread, 4 bytes an event.

    Args:
        events: the event set.
    """

    def __init__(self, events: ThreadEvents) -> None:
        order = _order(events.thread, len(events.threads)).astype(np.int32)
        counts = np.bincount(events.thread, minlength=len(events.threads))
        parts = np.split(order, np.cumsum(counts)[:-1])
        self._rows: dict[int, NDArray[np.int32]] = dict(
            zip(events.threads.tolist(), parts, strict=False)
        )

    def rows(self, global_tid: int) -> NDArray[np.int32]:
        """Row numbers of one thread in start order; none for a thread without events."""
        return self._rows.get(global_tid, np.empty(0, np.int32))


def of_thread(
    events: ThreadEvents, rows: slice | NDArray[np.intp], global_tid: int
) -> NDArray[np.intp]:
    """Those of some rows that belong to one thread."""
    codes = np.flatnonzero(events.threads == global_tid)
    chosen = np.arange(len(events))[rows]
    return chosen[np.isin(events.thread[chosen], codes)]
