"""Operations launched in time that still waited: on a peer, a process, an event, their stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.launches import calls_of_waits
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model import intervals
from nsys_tui.model.categories import Category

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.events import Bool, Int64, UInt8
    from nsys_tui.model.report import Report

STREAM_WAIT = 2
"""syncType of a stream that waits for an event."""


def wait_causes(report: Report, rows: NDArray[np.intp], call_start: Int64) -> UInt8:
    """What operations launched before their device fell idle waited for.

    Args:
        report: their report.
        rows: rows of the operations.
        call_start: start of the call that launched each, ns.

    Returns:
        ``Cause.PEER`` for communication, ``Cause.EVENT`` where a wait for an event was put into the
        operation's stream after the operation before it, else ``Cause.STREAM``.
    """
    causes = np.full(len(rows), Cause.STREAM, np.uint8)
    causes[_after_stream_wait(report, rows, call_start)] = Cause.EVENT
    causes[report.operations.category[rows] == Category.COMM] = Cause.PEER
    return causes


def others_worked(report: Report, scope: Scope, device: NDArray[np.integer], edges: Int64) -> Bool:
    """Through more than half of which gaps the device worked for a process that is not looked at.

    Args:
        report: the report.
        scope: of the gaps; where it has all processes, no work of another fits in a gap.
        device: place of the device of each gap.
        edges: start and end of each gap, int64 [2, n].
    """
    found, ops = np.zeros(len(device), bool), report.operations
    if scope.processes is None:
        return found
    others = ~scope.has_process(ops.processes)[ops.process]
    for place in np.unique(device).tolist():
        rows = np.flatnonzero(others & (ops.device == place))
        mine = np.flatnonzero(device == place)
        busy = intervals.union(ops.start[rows], ops.end[rows])
        before = intervals.busy_before(busy, intervals.prefix(*busy), edges[:, mine])
        found[mine] = 2 * np.diff(before, axis=0)[0] > np.diff(edges[:, mine], axis=0)[0]
    return found


def stream_waits(report: Report) -> Bool:
    """Which rows of ``Report.syncs`` are waits of a stream for an event.

    The API call decides, because exports of older captures number the types differently; the type
    counts where the call was not recorded.
    """
    syncs, api = report.syncs, report.api
    if not len(syncs):
        return np.zeros(0, bool)
    named = np.array(["StreamWaitEvent" in name for name in api.names], bool)
    by_type: Bool = syncs.sync_type == STREAM_WAIT
    if not len(api):
        return by_type
    found = calls_of_waits(report)
    return np.where(found >= 0, named[api.name[found]], by_type)


def _after_stream_wait(report: Report, rows: NDArray[np.intp], call_start: Int64) -> Bool:
    """Whether a stream wait stands between the operation before and each one's own call."""
    ops, syncs = report.operations, report.syncs
    after = np.zeros(len(rows), bool)
    waits = np.flatnonzero(stream_waits(report)) if len(rows) else np.empty(0, np.intp)
    for stream in np.unique(ops.stream[rows]).tolist() if len(waits) else ():
        wanted = ops.streams[stream]
        process = syncs.processes[syncs.process[waits]] == wanted.globalPid
        times = np.sort(syncs.start[waits[process & (syncs.stream[waits] == wanted.id)]])
        mine = np.flatnonzero(ops.stream[rows] == stream)
        if len(times):
            since = _previous_call(report, stream, rows[mine])
            before = np.searchsorted(times, call_start[mine], side="right")
            after[mine] = before > np.searchsorted(times, since, side="right")
    return after


def _previous_call(report: Report, stream: int, rows: NDArray[np.intp]) -> Int64:
    """Start of the call of the operation before each one in its stream; far back for the first."""
    ops, calls = report.operations, report.calls
    in_stream = np.flatnonzero(ops.stream == stream)
    place = np.searchsorted(in_stream, rows) - 1
    previous = in_stream[np.maximum(place, 0)]
    called = calls[previous]
    start = np.where(called >= 0, report.api.start[called], ops.start[previous])
    return np.where(place >= 0, start, np.iinfo(np.int64).min)
