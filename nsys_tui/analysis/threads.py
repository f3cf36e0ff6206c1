"""Rows of an event set apart by thread, stream or any other code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.model.groups import by_code
from nsys_tui.model.target import PROCESS_MASK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Bool, Int64, Samples, ThreadEvents


class ByThread:
    """Rows of an event set by thread, 4 bytes an event.

    Args:
        events: the event set.
    """

    def __init__(self, events: ThreadEvents | Samples) -> None:
        order, edges = by_code(events.thread, len(events.threads))
        parts = np.split(order.astype(np.int32), edges[1:-1])
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


def beside(thread: int, threads: Int64) -> Bool:
    """Which of some threads are others of the process that one is of."""
    return np.asarray(((threads ^ thread) & PROCESS_MASK == 0) & (threads != thread), np.bool_)
