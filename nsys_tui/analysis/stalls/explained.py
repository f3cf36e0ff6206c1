"""Why GPUs stood idle in gaps, and gaps once for each of their causes.

Every nanosecond goes to what its witness shows; operations launched in time waited for a peer, a
process, an event or their stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.analysis.launches import calls_of_waits
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Gaps, Shares
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Scope
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Int32, Int64, Integers, UInt8
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import rows_of_values
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report
from nsys_tui.names import api_name

Spans: TypeAlias = dict[tuple[int, Cause], Intervals]
"""When causes were, by thread (its place in the API's) and cause."""


LONG_CALL_NS: Final = 50_000
"""A launch call from this length on did more than launch: what it did is looked for."""
_BESIDE: Final = 20
_MANY: Final = 20
"""Launches onto an idle GPU that tell how soon their work begins."""


def explained(report: Report, scope: Scope, work: HostWork, gaps: Gaps) -> Gaps:
    """The same gaps with cause, shares, name and range."""
    api = report.api
    cause, what, inside = gaps.cause.copy(), gaps.what.copy(), gaps.range.copy()
    shares: dict[Cause, Int64] = {}
    known = np.flatnonzero(gaps.caller >= 0)
    call_start, until, call_end = host_part(work, gaps)
    ahead = known[2 * (call_end - gaps.start)[known] < (gaps.end - gaps.start)[known]]
    queued = wait_causes(report, gaps.next[ahead], call_start[ahead])
    in_time = call_start[ahead] < gaps.start[ahead]
    since = gaps.end - call_end
    in_time &= (queued != Cause.STREAM) | (since[ahead] > _latency(since, call_start >= gaps.start))
    in_time |= (queued == Cause.EVENT) & (since[ahead] >= LONG_CALL_NS)
    waiting = ahead[in_time]
    cause[waiting] = queued[in_time]
    edges = np.stack((gaps.start[waiting], gaps.end[waiting]))
    cause[waiting[others_worked(report, scope, gaps.device[waiting], edges)]] = Cause.PROCESS
    waits = np.zeros(len(gaps), bool)
    waits[waiting] = True
    for caller, places in rows_of_values(gaps.caller[known]):
        both = known[places]
        mine = both[~waits[both]]
        lo = gaps.start[mine]
        hi = until[mine]
        of_thread = work.near(int(api.threads[caller]), lo, hi)
        parts = {Cause.LAUNCH_LATENCY: gaps.end[mine] - hi, **of_thread.shares(lo, hi)}
        cause[mine] = most_of(parts)
        for one, time in parts.items():
            if time.any():
                shares.setdefault(one, np.zeros(len(gaps), np.int64))[mine] = time
        for winner, events in of_thread.named.items():
            those = cause[mine] == winner
            # A range that lasted a part of the gap is not what the host did in it.
            by_range = winner is Cause.HOST
            what[mine[those]] = events.longest(lo[those], hi[those], mostly=by_range)
        lo = np.where(call_start[both] > gaps.start[both], gaps.start[both], call_start[both])
        hi = np.maximum(call_start[both], lo + 1)
        inside[both] = of_thread.innermost.longest(lo, hi, mostly=True)
    _name_operations(report, work, gaps, cause, what)
    return replace(gaps, cause=cause, shares=shares, what=what, range=inside)


def _latency(since: Int64, idle: Bool) -> float:
    """Up to how long after its call work may begin that waits for nothing.

    Twice what it takes where the GPU is idle before the call: under Windows launches go in batches.
    """
    return 2 * float(np.median(since[idle])) if idle.sum() >= _MANY else 0.0


def most_of(shares: Shares) -> UInt8:
    """The cause that has most of each gap; of equals the first."""
    (first, most), *others = sorted(shares.items())
    cause, most = np.full(len(most), first, np.uint8), most.copy()
    for one, time in others:
        cause[time > most] = one
        np.maximum(most, time, out=most)
    return cause


def host_part(work: HostWork, gaps: Gaps) -> tuple[Int64, Int64, Int64]:
    """Of each gap when its call begins, until when the host's work counts, and the call's end."""
    api, calls = work.report.api, gaps.call
    if not len(api):
        return gaps.end, gaps.end, gaps.end
    start = np.where(calls >= 0, api.start[calls], gaps.end)
    end = np.clip(api.end[calls], start, gaps.end)
    # Others than launches, and long ones, did more: they copy or allocate themselves.
    more = (work.api_classes[calls] != Cause.API) | (api.durations(calls) >= LONG_CALL_NS)
    until = np.where(more, end, start)
    return start, np.clip(until, gaps.start, gaps.end), end


def _name_operations(report: Report, work: HostWork, gaps: Gaps, cause: UInt8, what: Int32) -> None:
    """Names the causes that are no host event: the call, the collective, the stream."""
    ops, api = report.operations, report.api
    launched = np.flatnonzero(cause == Cause.LAUNCH_LATENCY)
    peer = np.flatnonzero(cause == Cause.PEER)
    queued = np.flatnonzero((cause == Cause.EVENT) | (cause == Cause.STREAM))
    what[launched] = work.codes(api.name[gaps.call[launched]], lambda c: api_name(api.names[c]))
    what[peer] = work.codes(ops.name[gaps.next[peer]], lambda c: ops.shown[c])
    what[queued] = work.codes(ops.stream[gaps.next[queued]], lambda c: ops.streams[c].label)


def by_witness(
    work: HostWork, gaps: Gaps, causes: Sequence[Cause], least_ns: float
) -> tuple[Gaps, Spans]:
    """Gaps once for each of some causes, idle for what its witness shows of it, and when it did.

    What the GPU itself waited for has all of a gap.

    Args:
        work: what host threads did.
        gaps: between operations, by time, with their shares.
        causes: that are asked for.
        least_ns: causes with less time in all are left out; more is asked of what names no gap.
    """
    named = np.bincount(gaps.cause, minlength=len(Cause)) > 0
    shares = {
        cause: time
        for cause, time in shares_of(gaps).items()
        if cause in causes and time.sum() >= (least_ns if named[cause] else _BESIDE * least_ns)
    }
    gaps = replace(gaps, shares={})  # nobody asks for them again
    table = np.stack([*shares.values()], axis=1) if shares else np.empty((len(gaps), 0), np.int64)
    row, place = np.nonzero(table)
    parts, cause = gaps.take(row), np.array([*shares], np.uint8)[place]
    what, spans = _witnessed(work, parts, cause, host_part(work, gaps)[1][row])
    parts = replace(parts, cause=cause, idle=table[row, place], what=what)
    whole = np.isin(gaps.cause, causes) & (gaps.cause >= len(SHARES))
    return gaps.take(whole).beside(parts), spans


def shares_of(gaps: Gaps) -> Shares:
    """What witnesses show of each gap within the window, by cause.

    Without a wait of the host the launch after it would have come in time: the wait has the time
    of both, but where the launch took longer than launches do. A wait before messages that take
    longer is theirs: what they send must be there.
    """
    shares = {cause: np.minimum(time, gaps.idle) for cause, time in gaps.shares.items()}
    if Cause.SYNC in shares and Cause.LAUNCH_LATENCY in shares:
        latency = gaps.shares[Cause.LAUNCH_LATENCY]
        waited = gaps.shares[Cause.SYNC] > np.where(latency < LONG_CALL_NS, 0, latency)
        shares[Cause.SYNC] += waited * shares[Cause.LAUNCH_LATENCY]
        shares[Cause.LAUNCH_LATENCY][waited] = 0
    if Cause.SYNC in shares and Cause.MPI in shares:
        sends = gaps.shares[Cause.MPI] > gaps.shares[Cause.SYNC]
        shares[Cause.MPI] += sends * shares[Cause.SYNC]
        shares[Cause.SYNC][sends] = 0
    for time in shares.values():
        np.minimum(time, gaps.idle, out=time)
    return shares


def _witnessed(work: HostWork, parts: Gaps, cause: UInt8, until: Int64) -> tuple[Int32, Spans]:
    """What took longest within a cause that need not be the gap's own, and when causes were."""
    what, api, spans = parts.what.copy(), work.report.api, {}
    other = cause != parts.cause
    what[other] = -1
    late = np.flatnonzero(other & (cause == Cause.LAUNCH_LATENCY) & (parts.call >= 0))
    what[late] = work.codes(api.name[parts.call[late]], lambda code: api_name(api.names[code]))
    for caller, mine in rows_of_values(parts.caller):
        witnessed = {Cause(one) for one in np.flatnonzero(np.bincount(cause[mine])).tolist()}
        if witnessed & {Cause.LAUNCH_LATENCY, Cause.MPI}:
            witnessed.add(Cause.SYNC)
        within = intervals.union(parts.start[mine], until[mine])
        thread = work.near(int(api.threads[caller]), *within)
        for key, when_of in thread.when(within, witnessed).items():
            spans[caller, key] = when_of
        for winner, events in thread.named.items():
            rows = mine[other[mine] & (cause[mine] == winner)]
            by_range = winner is Cause.HOST
            what[rows] = events.longest(parts.start[rows], until[rows], mostly=by_range)
    return what, spans


def when(work: HostWork, parts: Gaps, spans: Spans) -> Intervals:
    """The time that gaps of one GPU and one cause stand for, both as ``by_witness`` gives them."""
    cause = Cause(parts.cause[0])
    if cause >= len(SHARES) or cause is Cause.MODULE:
        return intervals.union(parts.start, parts.end)
    until = host_part(work, parts)[1]
    pair = cause in (Cause.SYNC, Cause.LAUNCH_LATENCY)
    edges = [(until, parts.end)] if pair else []
    shown = {Cause.SYNC} if pair else {cause, Cause.SYNC} if cause is Cause.MPI else {cause}
    for caller, mine in rows_of_values(parts.caller):
        known = (spans[caller, one] for one in shown if (caller, one) in spans)
        witnessed = intervals.joined(*known)
        edges.append(intervals.intersection((parts.start[mine], until[mine]), witnessed))
    starts, ends = (np.concatenate(side) for side in zip(*edges, strict=True))
    return intervals.union(starts, ends)


STREAM_WAIT = 2
"""syncType of a stream that waits for an event."""


def wait_causes(report: Report, rows: Integers, call_start: Int64) -> UInt8:
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


def others_worked(report: Report, scope: Scope, device: Integers, edges: Int64) -> Bool:
    """Through more than half of which gaps the device worked for a process that is not looked at.

    Args:
        report: the report.
        scope: of the gaps; where it has all processes, no work of another fits in a gap.
        device: place of the device of each gap.
        edges: start and end of each gap, int64 [2, n].
    """
    worked, ops = np.zeros(len(device), bool), report.operations
    if scope.processes is None:
        return worked
    others = ~scope.has_process(ops.processes)[ops.process]
    for one in np.unique(device).tolist():
        rows = np.flatnonzero(others & (ops.device == one))
        mine = np.flatnonzero(device == one)
        busy = ops.runs(rows)
        start, end = edges[:, mine]
        worked[mine] = 2 * intervals.covered(busy, start, end) > end - start
    return worked


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
    calls = calls_of_waits(report)
    return np.where(calls >= 0, named[api.name[calls]], by_type)


def _after_stream_wait(report: Report, rows: Integers, call_start: Int64) -> Bool:
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


def _previous_call(report: Report, stream: int, rows: Integers) -> Int64:
    """Start of the call of the operation before each one in its stream; far back for the first."""
    ops, calls = report.operations, report.calls
    in_stream = np.flatnonzero(ops.stream == stream)
    place = np.searchsorted(in_stream, rows) - 1
    previous = in_stream[np.maximum(place, 0)]
    called = calls[previous]
    start = np.where(called >= 0, report.api.start[called], ops.start[previous])
    return np.where(place >= 0, start, np.iinfo(np.int64).min)
