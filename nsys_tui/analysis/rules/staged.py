"""Copies of pageable arrays that a runtime stages: trains of equal pieces through pinned memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.nsys import HOST_COPIES, PAGEABLE, of_memory
from nsys_tui.analysis.stalls.causes import Edge
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.intervals import Intervals

_KEEP: Final = "keep the data on the GPU, or pin the arrays: the host copies each piece first"
_PIECE: Final = 1 << 20
"""Bytes from which equal copies in a row are pieces of one."""
_RATE: Final = 4
"""Bytes a nanosecond that a host copies at least from an array to a buffer."""
_WAITS_NS: Final = 10_000
"""Pieces that follow each other sooner wait for no host."""
_FEWEST: Final = 3
"""Pieces of a train."""


def pieces(case: Case) -> Indices:
    """Rows of the copies that are pieces of a train and follow another one.

    Equal ones of one direction on one stream, with nothing between, each after so short a time as
    the host needs to copy as much.
    """
    return case.once("staged pieces", lambda: _pieces(case))


def staged_advice(case: Case, rows: Integers) -> str:
    """What to do about copies most of which are pieces; else empty."""
    return _KEEP if 2 * int(np.isin(rows, pieces(case)).sum()) > len(rows) else ""


def _pieces(case: Case) -> Indices:
    ops = case.report.operations
    large = np.isin(ops.copy_kind[case.copies], HOST_COPIES) & (ops.bytes[case.copies] >= _PIECE)
    copies = case.copies[large]
    copies = copies[~of_memory(ops, copies, PAGEABLE)]
    found = []
    for device, rows in case.by_device.items():
        mine = copies[ops.device[copies] == device]
        before, after, place = mine[:-1], mine[1:], np.searchsorted(rows, mine)
        follows = np.diff(place) == 1
        for one in (ops.copy_kind, ops.stream, ops.bytes):
            follows &= one[before] == one[after]
        since = ops.start[after] - ops.end[before]
        follows &= (since >= _WAITS_NS) & (_RATE * since <= ops.bytes[after])
        found.append(after[_in_trains(follows)])
    return np.concatenate(found) if found else copies[:0]


def _in_trains(follows: Bool) -> Bool:
    """Which of those that follow another one do so in a row of enough."""
    train = np.cumsum(~follows)
    return follows & (np.bincount(train, follows)[train] >= _FEWEST - 1)


def between_pieces(case: Case, device: int) -> tuple[Intervals, int]:
    """When a GPU idles while the host copies the next piece, and how much of it comes again.

    What is copied before all kernels or after them comes once: pinning would take as long.
    """
    ops, gaps = case.report.operations, case.stalls.gaps
    gaps = gaps.take((gaps.edge == Edge.INNER) & (gaps.device == device))
    gaps = gaps.take(np.isin(gaps.next, pieces(case)))
    kernels = case.doing(device, Category.COMPUTE)
    first, last = ops.start[kernels].min(initial=FARTHEST), ops.end[kernels].max(initial=0)
    again = gaps.idle[(gaps.start >= first) & (gaps.end <= last)]
    return case.idle_time.idle_part(device, (gaps.start, gaps.end)), int(again.sum())
