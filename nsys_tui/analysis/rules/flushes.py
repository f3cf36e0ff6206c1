"""Memsets by which a benchmark empties the L2 cache before each launch that it measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.intervals import Intervals

FLUSHES: Final = "a benchmark seems to empty the L2 cache before each launch: nothing to do"
_MEASURED: Final = "a benchmark seems to wait for each launch that it measures: nothing to do"
_CACHE: Final = 32_000_000
"""Bytes that a cache holds at most on most GPUs: benchmarks clear as many, or more."""
_BETWEEN: Final = 2
"""Calls between a memset and the event behind it: a wait, and a kernel that holds the stream."""
_APART: Final = 10
"""So many times as far apart as usual, or more, two launches belong to two benchmarks."""


def are_flushes(case: Case, rows: Indices) -> bool:
    """Whether most memsets of a GPU have one size, that of its cache or more, before timing.

    An event is recorded right after each of them, or after a wait and a kernel of one thread: what
    is measured begins behind the memset.
    """
    return len(_flushes(case, rows)) > 0


def _flushes(case: Case, rows: Indices) -> Indices:
    ops, least = case.report.operations, max(A_RUN, len(rows) // 2)
    info = case.report.devices[ops.device[rows[0]]].info if len(rows) else None
    cache = (info and info.l2_bytes) or _CACHE
    if np.count_nonzero(ops.bytes[rows] >= cache) < least or not len(case.report.api):
        return rows[:0]
    rows = rows[_come_before_events(case, case.report.calls[rows])]
    middle = np.sort(ops.bytes[rows])[len(rows) // 2] if len(rows) else 0
    rows = rows[ops.bytes[rows] == middle]
    return rows if len(rows) >= least and middle >= cache else rows[:0]


def _come_before_events(case: Case, calls: Integers) -> Bool:
    """After which calls their thread records an event next, but for what holds up what it times."""
    api, launch, codes = case.report.api, case.report.launch_attributes, case.report.calls
    record = np.array(["EventRecord" in name for name in api.names], bool)
    lone = np.flatnonzero((launch.blocks * launch.threads == 1)[launch.code])
    order = np.argsort(api.thread, kind="stable")
    then = np.full(len(api) + 1, -1)  # of no call, too, none comes
    then[order[:-1]] = np.where(np.diff(api.thread[order]) == 0, order[1:], -1)
    begun = then[calls]
    for _ in range(_BETWEEN):
        holds = case.work.api_classes[begun] == Cause.SYNC
        holds |= np.isin(begun, codes[lone])
        begun = np.where((begun >= 0) & holds, then[begun], begun)
    return np.asarray((begun >= 0) & record[api.name[begun]], np.bool_)


def without_measured(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those of waits between launches that a benchmark measures without a price."""
    return [
        replace(one, severity=Severity.LOW, saved_ns=0, stake_ns=0, advice=_MEASURED)
        if _is_measured(case, one)
        else one
        for one in findings
    ]


def _is_measured(case: Case, one: Finding) -> bool:
    """Whether most of the idle time that it tells of lies between launches that are measured."""
    if one.lost is None or one.device is None:
        return False
    between = _measured(case, one.device)
    return 2 * intervals.overlap_length(one.lost, between) > intervals.total(*one.lost)


@kept
def _measured(case: Case, device: int) -> Intervals:
    """When a GPU is between two memsets of a benchmark."""
    ops, rows = case.report.operations, case.doing(device, Category.MEMORY)
    start = ops.start[_flushes(case, rows[ops.kind[rows] == OpKind.MEMSET])]
    if not len(start):
        return intervals.empty()
    near = np.diff(start) <= _APART * np.median(np.diff(start))
    return intervals.union(start[:-1][near], start[1:][near])
