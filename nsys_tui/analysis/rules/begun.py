"""After which call of its thread a GPU idles, and how far ahead that one would be without waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.gap_facts import has_one_long, hold_most, thread_of, usual_name
from nsys_tui.analysis.rules.nsys import DEVICE_TO_HOST, HOST_TO_DEVICE, SMALL_COPY, TO_HOST
from nsys_tui.analysis.stalls.causes import Cause, Gaps
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.groups import among, rows_of_values
from nsys_tui.names import api_name, brief

_NAME_CELLS: Final = 22
_SOON: Final = 4
"""So many times as long as from its begin to the end of a call does a gap last at least."""


class Begun(NamedTuple):
    """How most of the time of some gaps begins."""

    call: str
    """The call before the longest time in which the thread makes none, empty for no usual one."""
    then: str
    """The call after it."""
    ended: bool = False
    """Whether the host waits, or copies, in that call as they begin."""
    advice: str = ""
    """What to do about what the host does then, where that is known."""
    waits: bool = False
    """Whether it would be far enough ahead without that wait."""

    @property
    def told(self) -> str:
        """Where it is; empty where that tells nothing."""
        if self.ended:
            return f" after {self.call}"
        calls = [c for c in {self.call, self.then} if c and not c.startswith(words.LAUNCHES)]
        return f" between {self.call} and {self.then}" if len(calls) > 1 else ""


def begun(case: Case, gaps: Gaps) -> Begun:
    """How most of the time of some gaps of one GPU begins.

    Without its wait the host would go on so much sooner: that hides a fourth of the gap at least,
    else the wait is not to blame, but what the host does with what came to it in the wait.
    """
    before, after = _around(case, gaps)
    call, then = (_usual_call(case, gaps, rows) for rows in (before, after))
    begins, fetched = _ended_by(case, gaps, before), _copied(case, gaps.previous, DEVICE_TO_HOST)
    ended = bool(call) and hold_most(gaps, begins)
    if not ended or has_one_long(gaps):
        return Begun(call, then, ended)
    if hold_most(gaps, begins & _copied(case, gaps.previous, DEVICE_TO_HOST, SMALL_COPY)):
        return Begun(call, then, True, words.ON_RESULTS)
    far = begins & (4 * _ahead(case, gaps) >= gaps.end - gaps.start)
    if not hold_most(gaps, far):
        works = hold_most(gaps, begins & fetched & ~far)
        return Begun(call, then, True, words.CAUSES[Cause.HOST].advice * works)
    asks = hold_most(gaps, case.work.api_classes[before] == Cause.SYNC)
    advice = words.WAITS_FIRST if asks else words.EMPTIED.format(call)
    advice = words.READS if hold_most(gaps, fetched) else advice
    feeds = hold_most(gaps, _copied(case, gaps.next, HOST_TO_DEVICE, SMALL_COPY))
    return Begun(call, then, True, words.FEEDS if feeds else advice, waits=True)


def _usual_call(case: Case, gaps: Gaps, rows: Integers) -> str:
    api, work = case.report.api, case.work
    codes, known = np.full(len(rows), -1, np.int64), rows >= 0
    codes[known] = work.codes(api.name[rows[known]], lambda code: api_name(api.names[code]))
    return brief(usual_name(case, codes, gaps.idle), _NAME_CELLS)


def _around(case: Case, gaps: Gaps) -> tuple[Indices, Indices]:
    """The calls around the longest time of each gap in which its thread makes none, -1 for none."""
    api, known = case.report.api, np.flatnonzero(gaps.call >= 0)
    before, after = np.full((2, len(gaps)), -1, np.intp)
    for caller, places in rows_of_values(api.thread[gaps.call[known]]):
        mine = known[places]
        rows = np.flatnonzero(api.real & (api.thread == caller))
        done = np.maximum.accumulate(api.end[rows])
        last = np.maximum.accumulate(np.where(api.end[rows] == done, np.arange(len(rows)), 0))
        until = np.searchsorted(rows, gaps.call[mine])
        since = np.searchsorted(api.start[rows], gaps.start[mine]) - 1
        which, place = intervals.in_stretches(np.clip(since, 0, until), until)
        free = api.start[rows[place + 1]] - np.maximum(done[place], gaps.start[mine[which]])
        order = np.lexsort((free, which))
        best = order[np.diff(which[order], append=-1) != 0]
        before[mine[which[best]]] = rows[last[place[best]]]
        after[mine[which[best]]] = rows[place[best] + 1]
    return before, after


def _ended_by(case: Case, gaps: Gaps, calls: Indices) -> Bool:
    """Which gaps begin in calls that wait or copy, or soon before such a call ends."""
    api = case.report.api
    ended = np.isin(case.work.api_classes[calls], (Cause.COPY, Cause.SYNC)) & (calls >= 0)
    late = np.where(api.start[calls] < gaps.start, 0, api.end[calls] - gaps.start)
    return np.asarray(ended & (_SOON * late <= gaps.end - gaps.start), np.bool_)


def _copied(case: Case, rows: Integers, kind: int, least: int = 0) -> Bool:
    """Which operations, -1 for none, are copies of a kind, of more than some bytes."""
    ops = case.report.operations
    copied = (ops.copy_kind[rows] == kind) & (ops.bytes[rows] > least)
    return np.asarray((rows >= 0) & copied, np.bool_)


def await_results(case: Case, gaps: Gaps) -> bool:
    """Whether most of the time the host waited for what was copied to it just before."""
    fetched = np.isin(case.report.operations.copy_kind[gaps.previous], TO_HOST)
    return hold_most(gaps, fetched & (gaps.previous >= 0))


def _ahead(case: Case, gaps: Gaps) -> Int64:
    """How much sooner their thread could end gaps, had it not waited since its launch before."""
    api, device = case.report.api, int(gaps.device[0])
    mine = (api.threads == thread_of(case, gaps))[api.thread]
    waits = mine & among(case.work.api_classes, (Cause.COPY, Cause.SYNC))
    launches = np.zeros(len(api), bool)
    launches[case.report.called(case.by_device[device])[1]] = True
    done = np.maximum.accumulate(api.end[np.flatnonzero(mine & launches & ~waits)])
    since = np.append(done, case.base[0])[np.searchsorted(done, gaps.start) - 1]
    spans = intervals.meet(api.runs(np.flatnonzero(waits)), case.idle_time.busy(device))
    return intervals.covered(spans, since, gaps.end)


def ahead(
    case: Case, threads: Int64, waits: Iterable[Cause], device: int, ends: Int64, idle: Int64
) -> Int64:
    """How far ahead of gaps threads are that leave some waits for a GPU out, as ``lead`` gives it.

    Only while the GPU works a call waits for it: one that sets CUDA up takes long without.
    """
    api = case.report.api
    rows = np.flatnonzero(among(case.work.api_classes, waits))
    rows = rows[np.isin(api.threads, threads)[api.thread[rows]]]
    rows = rows[np.argsort(api.end[rows], kind="stable")]
    waited = intervals.covered(case.idle_time.busy(device), api.start[rows], api.end[rows])
    return lead(api.end[rows], waited, ends, idle)


def lead(ends: Int64, waited: Int64, gap_ends: Int64, idle: Int64) -> Int64:
    """How far ahead of the GPU a host is before each gap, if it leaves waits out.

    Args:
        ends: of the waits.
        waited: how long each lasts.
        gap_ends: of the gaps, ascending.
        idle: how long each lasts, which takes of the lead.
    """
    order = np.argsort(np.concatenate((ends, gap_ends)), kind="stable")
    ahead = np.cumsum(np.concatenate((waited, -idle))[order])
    ahead = np.append(0, ahead - np.minimum.accumulate(np.minimum(ahead, 0)))
    return np.asarray(ahead[np.flatnonzero(order >= len(ends))], np.int64)
