"""Stalls as rows with names, in groups, and as columns of which a table draws few.

What a cell of the columns says comes from ``stall_row``, asked once per distinct value and never
per gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.rules.finding import OF_GAPS, Severity, ranks, severity
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge
from nsys_tui.analysis.stalls.gaps import Stalls
from nsys_tui.analysis.thread_states import Witness
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.events import Operations
from nsys_tui.model.groups import factorise_rows, first_rows, regroup, sums
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle, api_name, normalise_nvtx
from nsys_tui.units import format_share

LAUNCH_BOUND: Final = "launch-bound run"
HEAD: Final = "before the first operation"
TAIL: Final = "after the last operation"
NONE: Final = -1
"""Code of what has no name; the last place of an array is its."""
_EDGES: Final = {Edge.HEAD: HEAD, Edge.TAIL: TAIL}
_KINDS: Final = {Edge.INNER: "gap", Edge.HEAD: "head", Edge.TAIL: "tail", Edge.RUN: "run"}


@dataclass(frozen=True)
class StallRow:
    """One idle gap, or one launch-bound run, with everything a reader wants to know of it."""

    device: int
    """Place of the device in ``Report.devices``."""
    start: int
    end: int
    idle_ns: int
    """Inside the window; of a run, the sum of its gaps."""
    kind: str
    """``gap``, ``head``, ``tail`` or ``run``."""
    gaps: int
    severity: Severity | None
    """None for head and tail: what lies outside the work is no loss of it."""
    cause: str
    """In the words of the definitions."""
    label: str
    """The cause with its name, such as ``sync call: cudaStreamSynchronize``."""
    what: str
    shares: dict[str, int]
    """Nanoseconds by cause, only those above 0."""
    previous: str
    next: str
    """Short names of the operations before and after."""
    range: str
    thread: int
    """globalTid that launched the operation which ends the gap, -1 for none."""
    call: str
    witness: Witness
    """How the cause is known: an event says so, samples do, or a rule infers it."""

    @property
    def length_ns(self) -> int:
        """From start to end, outside the window too."""
        return self.end - self.start


@dataclass(frozen=True)
class StallGroup:
    """Gaps that have a cause, range, pair of operations, thread or device in common."""

    key: str
    count: int
    idle_ns: int
    longest_ns: int
    longest: int = -1
    """Place of the longest in ``Stalls.gaps``, the first of equals; -1 where none is listed."""


def stall_rows(report: Report, result: Stalls, limit: int | None = None) -> list[StallRow]:
    """Gaps and runs with their names, longest idle first; head and tail come last.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        limit: build only so many rows; None for all.
    """
    return [stall_row(report, result, row) for row in result.longest_first()[:limit].tolist()]


def stall_row(report: Report, result: Stalls, number: int) -> StallRow:
    """One row alone, for tables that write only what is seen.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        number: place in ``result.gaps``.
    """
    gaps, work, ops, api = result.gaps, result.work, report.operations, report.api
    lo, hi = result.scope.base(report)
    edge, idle = Edge(gaps.edge[number]), int(gaps.idle[number])
    previous, following, call = (
        int(column[number]) for column in (gaps.previous, gaps.next, gaps.call)
    )
    cause, what, label = _told(result, number, edge)
    caller = int(gaps.caller[number])
    thread = int(api.threads[caller]) if caller >= 0 else -1
    return StallRow(
        device=int(gaps.device[number]),
        start=int(gaps.start[number]),
        end=int(gaps.end[number]),
        idle_ns=idle,
        kind=_KINDS[edge],
        gaps=int(gaps.count[number]),
        severity=None if edge in _EDGES else severity(idle, hi - lo, OF_GAPS),
        cause=cause,
        label=label,
        what=what,
        shares={one.key: int(time[number]) for one, time in gaps.shares.items() if time[number]},
        previous=ops.shown[ops.name[previous]] if previous >= 0 else "",
        next=ops.shown[ops.name[following]] if following >= 0 else "",
        range=work.name(int(gaps.range[number])),
        thread=thread,
        call=api_name(api.names[api.name[call]]) if call >= 0 else "",
        witness=_witness(result, number, thread),
    )


def _witness(result: Stalls, number: int, thread: int) -> Witness:
    cause = Cause(result.gaps.cause[number])
    if cause in (Cause.NOTHING, Cause.UNKNOWN):
        return Witness.NONE
    if cause not in SHARES:
        return Witness.INFERRED
    by_state = cause in (Cause.HOST, Cause.OFF_CPU)
    return result.work.witness(thread) if by_state else Witness.MEASURED


def _told(result: Stalls, number: int, edge: Edge) -> tuple[str, str, str]:
    """The cause, what it is called in the report, and both in words."""
    gaps = result.gaps
    if edge is Edge.RUN:
        run = result.runs[gaps.run[number]]
        what = f"{run.operations} operations"
        return LAUNCH_BOUND, what, f"{LAUNCH_BOUND}: {what}, {format_share(run.idle_share)} idle"
    cause, what = Cause(gaps.cause[number]), result.work.name(int(gaps.what[number]))
    label = f"{cause.label}: {what}" if what else cause.label
    return cause.key, what, f"{_EDGES[edge]}: {label}" if edge in _EDGES else label


def stall_groups(
    report: Report, result: Stalls, by: str = "cause", style: str = NameStyle.SHORT
) -> list[StallGroup]:
    """Idle time by cause, range, pair of operations, thread or device; largest first.

    Head and tail have groups of their own, and so have the gaps below the threshold, so that the
    groups add up to all idle time.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        by: one of ``answer.GROUPINGS``.
        style: how operations are named: short, normalised or full.
    """
    keys, codes = group_codes(report, result, by, style)
    idle, count = result.gaps.idle, len(keys)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, codes, idle)
    totals, counts = sums(codes, idle, count), sums(codes, result.gaps.count, count)
    most = np.flatnonzero(idle == longest[codes])
    rows = most[first_rows(codes[most])]
    present = codes[rows]
    columns = (counts[present], totals[present], longest[present], rows)
    listed = [
        StallGroup(keys[code], *figures)
        for code, *figures in zip(present.tolist(), *(c.tolist() for c in columns), strict=True)
    ]
    listed.sort(key=lambda group: (group.key in (HEAD, TAIL), -group.idle_ns, group.key))
    whole = result.whole
    if whole.below_count:
        listed.append(StallGroup("below threshold", whole.below_count, whole.below_ns, 0))
    return listed


def name_codes(ops: Operations, rows: Integers) -> Int64:
    """Name code of some operations, -1 where there is none."""
    if not len(ops):
        return np.full(len(rows), -1, np.int64)
    return np.where(rows >= 0, ops.name[rows], -1).astype(np.int64)


def group_codes(
    report: Report, result: Stalls, by: str, style: str = NameStyle.SHORT
) -> tuple[list[str], Int64]:
    """The keys of ``stall_groups``, and which of them each of ``result.gaps`` belongs to."""
    gaps, ops, api = result.gaps, report.operations, report.api
    if by == "cause":
        texts, codes = [cause.key for cause in Cause], gaps.cause.astype(np.int64)
    elif by == "device":
        texts, codes = [device.label for device in report.devices], gaps.device.astype(np.int64)
    elif by == "range":
        texts = [*map(normalise_nvtx, result.work.names), "[no NVTX range]"]
        codes = np.where(gaps.range >= 0, gaps.range, len(texts) - 1)
    elif by == "thread":
        texts = [*map(report.thread_name, api.threads.tolist()), "[no API call]"]
        codes = np.where(gaps.caller >= 0, gaps.caller, len(texts) - 1)
    else:
        pairs = (name_codes(ops, gaps.previous), name_codes(ops, gaps.next))
        codes_of, used = factorise_rows(pairs)
        names = [*ops.texts(style), "-"]
        texts = [f"{names[before]} -> {names[after]}" for before, after in used.tolist()]
        codes = codes_of.astype(np.int64)
    apart = _EDGES | ({Edge.RUN: LAUNCH_BOUND} if by in ("cause", "pair") else {})
    for number, edge in enumerate(apart, len(texts)):
        codes = np.where(gaps.edge == edge, number, codes)
    merged, distinct = regroup(codes, [*texts, *apart.values()])
    return distinct, merged.astype(np.int64)


class Coded(NamedTuple):
    """A text of each gap, of those that are asked for; texts repeat."""

    codes: Callable[[Integers], Integers]
    """Codes of some of ``Stalls.gaps``."""
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class StallTable:
    """Some gaps and runs in an order, with the texts of all."""

    result: Stalls
    numbers: Integers
    """What ``stall_row`` calls each row."""
    base_ns: int
    """Time that severities are of."""
    cause: Coded
    next: Coded
    range: Coded
    thread: Coded

    def __len__(self) -> int:
        return len(self.numbers)

    def severity(self, numbers: Integers) -> Int64:
        """3 high, 2 medium, 1 low; 0 before the first operation and after the last."""
        gaps = self.result.gaps
        graded = 1 + ranks(gaps.idle[numbers], self.base_ns)
        return np.where(np.isin(gaps.edge[numbers], [*_EDGES]), 0, graded)

    def row(self, report: Report, place: int) -> StallRow:
        """Everything about one row."""
        return stall_row(report, self.result, int(self.numbers[place]))


def stall_table(
    report: Report,
    result: Stalls,
    style: str = NameStyle.SHORT,
    numbers: Integers | None = None,
) -> StallTable:
    """Gaps and runs as columns, which hold for runs what stands for the whole of each.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        style: how operations are named: short, normalised or full.
        numbers: places of those wanted in ``result.gaps``; all by default, the longest first.
    """
    gaps, ops, (lo, hi) = result.gaps, report.operations, result.scope.base(report)
    threads = [*map(report.thread_name, report.api.threads.tolist())]
    codes, _ = factorise_rows((gaps.edge, gaps.cause, gaps.what, gaps.run))
    labels = [stall_row(report, result, row).label for row in first_rows(codes).tolist()]
    names = ops.texts(style)
    return StallTable(
        result=result,
        numbers=result.longest_first() if numbers is None else numbers,
        base_ns=hi - lo,
        cause=_coded(codes.__getitem__, labels, range(len(labels))),
        next=_coded(
            lambda rows: name_codes(ops, gaps.next[rows]), names, [*range(len(names)), NONE]
        ),
        range=_coded(gaps.range.__getitem__, result.work.names, _used(gaps.range)),
        thread=_coded(gaps.caller.__getitem__, threads, _used(gaps.caller)),
    )


def _used(codes: Integers) -> list[int]:
    """Which codes occur, ``NONE`` included."""
    return (np.flatnonzero(np.bincount(codes + 1)) - 1).tolist()


def _coded(
    codes: Callable[[Integers], Integers], names: Sequence[str], used: Iterable[int]
) -> Coded:
    """Texts by the codes of gaps: equal ones get one code, ``NONE`` an empty text."""
    places: dict[str, int] = {}
    place_of = np.zeros(len(names) + 1, np.int32)
    for code in used:
        name = "" if code == NONE else names[code]
        place_of[code] = places.setdefault(name, len(places))
    return Coded(lambda rows: place_of[codes(rows)], tuple(places))
