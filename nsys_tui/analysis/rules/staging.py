"""Copies that a host makes of arrays before and after those of the GPU, and what these cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.nsys import (
    DEVICE_TO_HOST,
    HOST_COPIES,
    PAGEABLE,
    SMALL_COPY,
    of_memory,
)
from nsys_tui.analysis.stalls.causes import Edge, Gaps
from nsys_tui.analysis.thread_states import Doing, sampled
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise_rows, rows_of_values
from nsys_tui.model.intervals import Intervals

_KEEP: Final = "keep the data on the GPU, or pin the arrays: the host copies each piece first"
ONLY_NEEDED: Final = "copy up only what kernels read, down what they write: the host stages it all"
"""What to do about what is staged but once: to pin it takes as long."""
_PIECE: Final = 1 << 20
"""Bytes from which equal copies in a row are pieces of one."""
_RATE: Final = 4
"""Bytes a nanosecond that a host copies at least from an array to a buffer."""
_WAITS_NS: Final = 10_000
"""Pieces that follow each other sooner wait for no host."""
_FEWEST: Final = 3
"""Pieces of a train."""
_SEVERAL: Final = 2
"""Arrays from which on equal sizes both ways tell that they are the same."""
_OFTEN: Final = 3
"""Rounds from which it is so again and again."""


def round_trips(case: Case, device: int) -> Intervals:
    """When several arrays of a GPU come to the host and go straight back, again and again.

    Between two kernels as many of each size come down as go up afterwards, and the host has no more
    time in between than copying them takes, itself or, of pageable memory, the driver.
    """
    ops, rows = case.report.operations, case.copies
    rows = rows[np.isin(ops.copy_kind[rows], HOST_COPIES) & (ops.device[rows] == device)]
    rows = rows[ops.bytes[rows] > SMALL_COPY]
    kernels, down = case.doing(device, Category.COMPUTE), ops.copy_kind[rows] == DEVICE_TO_HOST
    after = np.searchsorted(ops.start[kernels], ops.start[rows])
    first = np.flatnonzero(np.diff(after, prepend=-1))
    if not len(first):
        return intervals.empty()
    part = np.cumsum(np.diff(after, prepend=-1) > 0) - 1
    size, kinds = factorise_rows((part, ops.bytes[rows]))
    uneven = kinds[np.bincount(size, 2 * down - 1, len(kinds)) != 0, 0]
    done = np.maximum.reduceat(np.where(down, ops.end[rows], -FARTHEST), first)
    begun = np.minimum.reduceat(np.where(down, FARTHEST, ops.start[rows]), first)
    back = (np.bincount(part, down) >= _SEVERAL) & (done <= begun)
    back[uneven] = False
    stages = ops.bytes[rows] / _RATE * ~of_memory(ops, rows, PAGEABLE)
    lasts = np.bincount(part, np.maximum(ops.durations(rows), stages))
    back[back] = (begun - done)[back] <= lasts[back]
    if back.sum() < _OFTEN:
        return intervals.empty()
    return ops.start[rows[first]][back], np.maximum.reduceat(ops.end[rows], first)[back]


def staged_advice(case: Case, rows: Integers) -> str:
    """What to do about copies most of which are pieces; else empty."""
    return _KEEP if 2 * int(np.isin(rows, pieces(case)).sum()) > len(rows) else ""


@kept
def pieces(case: Case) -> Indices:
    """Rows of the copies that are pieces of a train and follow another one.

    Equal ones of one direction on one stream, with nothing between, each after so short a time as
    the host needs to copy as much, unless CPU samples tell that it does something else then.
    """
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
        follows = _in_trains(follows)
        idle = ops.end[before[follows]], ops.start[after[follows]]
        found.append(after[follows & _may_copy(case, after[follows], idle)])
    return np.concatenate(found) if found else copies[:0]


def _may_copy(case: Case, rows: Indices, idle: Intervals) -> bool:
    """Whether no samples tell that the thread that calls for copies did not copy before each."""
    calls = case.report.calls[rows]
    threads = case.report.api.thread[calls[calls >= 0]]
    if not len(threads):
        return True
    thread = int(case.report.api.threads[np.bincount(threads).argmax()])
    seen = sampled(case.report, thread, *idle)
    return seen is None or seen.doing is Doing.COPIES


def _in_trains(follows: Bool) -> Bool:
    """Which of those that follow another one do so in a row of enough."""
    train = np.cumsum(~follows)
    return follows & (np.bincount(train, follows)[train] >= _FEWEST - 1)


def _between_kernels(case: Case, device: int) -> Intervals:
    """When a GPU only copies, pieces among them, and idles no longer than staging all takes."""
    ops, rows = case.report.operations, case.copies
    rows = rows[np.isin(ops.copy_kind[rows], HOST_COPIES) & (ops.device[rows] == device)]
    rows = rows[~of_memory(ops, rows, PAGEABLE)]
    if not (cut := np.isin(rows, pieces(case))).any():
        return intervals.empty()
    runs = case.runs(device, Category.COMPUTE)
    starts, ends = runs[1][:-1], runs[0][1:]
    gap = np.searchsorted(ends, ops.start[rows])
    part = np.unique(gap[cut & (gap < len(ends))])
    within = np.isin(gap, part)
    moved = np.bincount(np.searchsorted(part, gap[within]), ops.bytes[rows[within]], len(part))
    starts, ends = starts[part], ends[part]
    idle = ends - starts - intervals.covered(case.idle_time.busy(device), starts, ends)
    staged = _RATE * idle <= moved
    return starts[staged], ends[staged]


@kept
def _handed_over(case: Case, device: int) -> Intervals:
    """When it does, and when arrays go straight back."""
    return intervals.joined(round_trips(case, device), _between_kernels(case, device))


def are_staged(case: Case, gaps: Gaps) -> Bool:
    """Which gaps hosts need to copy pieces, or to hand back what came."""
    staged = np.isin(gaps.next, pieces(case))
    for device, mine in rows_of_values(gaps.device):
        covered = intervals.covered(_handed_over(case, device), gaps.start[mine], gaps.end[mine])
        staged[mine] |= covered == (gaps.end - gaps.start)[mine]
    return np.asarray(staged, np.bool_)


def while_staged(case: Case, device: int) -> tuple[Intervals, int]:
    """When a GPU idles while the host does so, and how much of it comes again.

    What is copied before all kernels or after them comes once: pinning would take as long.
    """
    ops, gaps, spans = case.report.operations, case.stalls.gaps, _handed_over(case, device)
    gaps = gaps.take((gaps.edge == Edge.INNER) & (gaps.device == device))
    gaps = gaps.take(np.isin(gaps.next, pieces(case)))
    kernels = case.doing(device, Category.COMPUTE)
    first, last = ops.start[kernels].min(initial=FARTHEST), ops.end[kernels].max(initial=0)
    again = gaps.take((gaps.start >= first) & (gaps.end <= last))
    every, often = (
        case.idle_time.idle_part(device, intervals.joined(spans, (one.start, one.end)))
        for one in (gaps, again)
    )
    return every, intervals.total(*often)
