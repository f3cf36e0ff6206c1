"""Stalls as rows with names, and in groups: what a table, a pipe and the screen show of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.rules.severity import Severity, severity
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.stalls.gaps import Edge
from nsys_tui.model.groups import factorise_rows, regroup
from nsys_tui.names import NameStyle, api_name, kernel_name, normalise_nvtx

if TYPE_CHECKING:
    from nsys_tui.analysis.stalls.gaps import Stalls
    from nsys_tui.model.events import Int64, Operations
    from nsys_tui.model.report import Report

LAUNCH_BOUND: Final = "launch-bound run"
HEAD: Final = "before the first operation"
TAIL: Final = "after the last operation"
GROUPINGS: Final = ("cause", "range", "pair", "thread", "device")
_EDGES: Final = {Edge.HEAD: HEAD, Edge.TAIL: TAIL}


@dataclass(frozen=True)
class StallRow:
    """One idle gap, or one launch-bound run, with everything a reader wants to know of it."""

    place: int
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


def stall_rows(report: Report, result: Stalls, limit: int | None = None) -> list[StallRow]:
    """Gaps and runs with their names, longest idle first; head and tail come last.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        limit: build only so many rows; None for all.
    """
    base = result.scope.base(report)
    base_ns = base[1] - base[0]
    gaps = result.gaps
    chosen = np.arange(len(gaps)) if limit is None else np.arange(min(limit, len(gaps)))
    rows = [_gap_row(report, result, gap, base_ns) for gap in chosen.tolist()]
    rows += [_run_row(report, result, run, base_ns) for run in range(len(result.runs))]
    rows.sort(key=lambda row: (row.kind in ("head", "tail"), -row.idle_ns, row.start, row.place))
    return rows if limit is None else rows[:limit]


def row_count(result: Stalls) -> int:
    """How many rows ``stall_rows`` gives without a limit."""
    return len(result.gaps) + len(result.runs)


def stall_row(report: Report, result: Stalls, number: int) -> StallRow:
    """One row alone, for tables that write only what is seen.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        number: place in ``result.gaps``; runs count on from there.
    """
    lo, hi = result.scope.base(report)
    if number < len(result.gaps):
        return _gap_row(report, result, number, hi - lo)
    return _run_row(report, result, number - len(result.gaps), hi - lo)


def _gap_row(report: Report, result: Stalls, gap: int, base_ns: int) -> StallRow:
    gaps, work, ops, api = result.gaps, result.work, report.operations, report.api
    edge, cause = Edge(gaps.edge[gap]), Cause(gaps.cause[gap])
    previous, following, call = (
        int(column[gap]) for column in (gaps.previous, gaps.next, gaps.call)
    )
    idle, what = int(gaps.idle[gap]), work.name(int(gaps.what[gap]))
    label = f"{cause.label}: {what}" if what else cause.label
    return StallRow(
        place=int(gaps.place[gap]),
        start=int(gaps.start[gap]),
        end=int(gaps.end[gap]),
        idle_ns=idle,
        kind="gap" if edge is Edge.INNER else edge.name.lower(),
        gaps=1,
        severity=severity(idle, base_ns) if edge is Edge.INNER else None,
        cause=cause.key,
        label=label if edge is Edge.INNER else f"{_EDGES[edge]}: {label}",
        what=what,
        shares={part.key: int(gaps.shares[gap, part]) for part in SHARES if gaps.shares[gap, part]},
        previous=ops.names[ops.name[previous]].short if previous >= 0 else "",
        next=ops.names[ops.name[following]].short if following >= 0 else "",
        range=work.name(int(gaps.range[gap])),
        thread=int(api.threads[api.thread[call]]) if call >= 0 else -1,
        call=api_name(api.names[api.name[call]]) if call >= 0 else "",
    )


def _run_row(report: Report, result: Stalls, number: int, base_ns: int) -> StallRow:
    ops, api = report.operations, report.api
    run, idle = result.runs[number], result.run_idle[number]
    name = ops.names[ops.name[run.first_row]].short
    call = int(report.calls[run.first_row])
    return StallRow(
        place=run.place,
        start=run.start,
        end=run.end,
        idle_ns=idle,
        kind="run",
        gaps=run.gap_count,
        severity=severity(idle, base_ns),
        cause=LAUNCH_BOUND,
        label=f"{LAUNCH_BOUND}: {run.operations} operations, {100 * run.idle_share:.0f}% idle",
        what=f"{run.operations} operations",
        shares={},
        previous="",
        next=name,
        range=result.work.name(result.run_range[number]),
        thread=int(api.threads[api.thread[call]]) if call >= 0 else -1,
        call=api_name(api.names[api.name[call]]) if call >= 0 else "",
    )


def stall_groups(
    report: Report, result: Stalls, by: str = "cause", style: str = NameStyle.SHORT
) -> list[StallGroup]:
    """Idle time by cause, range, pair of operations, thread or device; largest first.

    Head and tail have groups of their own, and so have the gaps below the threshold, so that the
    groups add up to all idle time.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        by: one of ``GROUPINGS``.
        style: how operations are named: short, normalised or full.
    """
    keys, codes = _gap_keys(report, result, by, style)
    stats = group_stats(codes, result.gaps.idle, len(keys))
    columns = zip(keys, stats.counts, stats.totals, stats.max, strict=True)
    groups = {key: [int(n), int(sum_), int(most)] for key, n, sum_, most in columns if n}
    for row in _run_rows(report, result):
        key = _run_key(report, row, by)
        group = groups.setdefault(key, [0, 0, 0])
        group[:] = [group[0] + row.gaps, group[1] + row.idle_ns, max(group[2], row.idle_ns)]
    listed = [StallGroup(key, *values) for key, values in groups.items()]
    listed.sort(key=lambda group: (group.key in (HEAD, TAIL), -group.idle_ns, group.key))
    count = sum(total.below_count for total in result.totals)
    if count:
        below = sum(total.below_ns for total in result.totals)
        listed.append(StallGroup("below threshold", count, below, 0))
    return listed


def group_codes(
    report: Report, result: Stalls, by: str, style: str = NameStyle.SHORT
) -> tuple[list[str], Int64]:
    """Which group of ``stall_groups`` each gap and, after them, each run belongs to.

    Returns:
        the keys, and int64 [gaps + runs] places in them.
    """
    keys, codes = _gap_keys(report, result, by, style)
    known = {key: place for place, key in enumerate(keys)}
    of_runs = [
        known.setdefault(_run_key(report, row, by), len(known)) for row in _run_rows(report, result)
    ]
    return list(known), np.concatenate((codes, np.array(of_runs, np.int64)))


def _run_rows(report: Report, result: Stalls) -> list[StallRow]:
    return [_run_row(report, result, run, 0) for run in range(len(result.runs))]


def _run_key(report: Report, row: StallRow, by: str) -> str:
    if by == "device":
        return report.devices[row.place].label
    if by == "range":
        return normalise_nvtx(row.range) or "[no NVTX range]"
    if by == "thread":
        return _thread_key(report, row.thread)
    return LAUNCH_BOUND


def _thread_key(report: Report, thread: int) -> str:
    return report.thread_name(thread) if thread >= 0 else "[no API call]"


def operation_names(ops: Operations, style: str) -> list[str]:
    """What each name code of the operations is called."""
    return [kernel_name(name.short, name.demangled, style) for name in ops.names]


def name_codes(ops: Operations, rows: Int64) -> Int64:
    """Name code of some operations, -1 where there is none."""
    if not len(ops):
        return np.full(len(rows), -1, np.int64)
    return np.where(rows >= 0, ops.name[rows], -1).astype(np.int64)


def _gap_keys(report: Report, result: Stalls, by: str, style: str) -> tuple[list[str], Int64]:
    """The distinct group names, and the code of each gap."""
    gaps, ops, api = result.gaps, report.operations, report.api
    if by == "cause":
        texts, codes = [cause.key for cause in Cause], gaps.cause.astype(np.int64)
    elif by == "device":
        texts, codes = [device.label for device in report.devices], gaps.place.astype(np.int64)
    elif by == "range":
        texts = [*map(normalise_nvtx, result.work.names), "[no NVTX range]"]
        codes = np.where(gaps.range >= 0, gaps.range, len(texts) - 1)
    elif by == "thread":
        known = [_thread_key(report, thread) for thread in api.threads.tolist()]
        texts = [*known, "[no API call]"]
        threads = api.thread[gaps.call] if len(api) else gaps.call
        codes = np.where(gaps.call >= 0, threads, len(known)).astype(np.int64)
    else:
        pairs = (name_codes(ops, gaps.previous), name_codes(ops, gaps.next))
        found, used = factorise_rows(pairs)
        names = [*operation_names(ops, style), "-"]
        texts = [f"{names[before]} -> {names[after]}" for before, after in used.tolist()]
        codes = found.astype(np.int64)
    if by != "device":
        texts = [*texts, HEAD, TAIL]
        codes = np.where(gaps.edge == Edge.HEAD, len(texts) - 2, codes)
        codes = np.where(gaps.edge == Edge.TAIL, len(texts) - 1, codes)
    merged, distinct = regroup(codes, texts)
    return distinct, merged.astype(np.int64)
