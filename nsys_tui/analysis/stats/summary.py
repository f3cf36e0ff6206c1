"""The shape most reports share: share, total, count, moments, name; and columns of threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import Aggregate, GroupStats, aggregate
from nsys_tui.analysis.stats.query import Columns, Query
from nsys_tui.analysis.stretch_stats import Moments
from nsys_tui.analysis.window import Rows
from nsys_tui.model.arrays import Array, Bool, Float64, Indices, Int64, Integers
from nsys_tui.model.events import EventSet
from nsys_tui.model.groups import factorise
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit, Values
from nsys_tui.model.target import pid_of

NAME: Final = Column("Name")
RANGE: Final = Column("Range")
OPERATION: Final = Column("Operation")


def summarise(query: Query, events: EventSet, rows: Rows, codes: Integers, n: int) -> Aggregate:
    """Groups some events by code; whole, as nsys does, or clipped to the window.

    Args:
        query: decides whether time is clipped to the window.
        events: the event set.
        rows: which of its events.
        codes: group of each of those events, in [0, n).
        n: number of groups.
    """
    return aggregate(events, rows, codes, n, query.scope.window if query.clip else None)


def time_columns(
    summary: Aggregate, count: str, labels: Columns, extra: Columns | None = None
) -> Columns:
    """The columns Time, Total Time, count, Avg, Med, Min, Max, StdDev and the labels.

    Groups without events are left out. Rows are sorted by total, then count, both descending, then
    by label.

    Args:
        summary: the groups.
        count: header of the count, such as ``Instances``.
        labels: columns that say what each group is.
        extra: further columns between the deviation and the labels.
    """
    stats = summary.instances
    order = _order(summary, labels)
    totals = summary.totals[order]
    columns: Columns = [
        (Column("Time", Unit.PERCENT, 1), shares(totals)),
        (Column("Total Time", Unit.NS), totals),
        (Column(count, Unit.COUNT), stats.counts[order]),
        *moments(stats, order, Unit.NS, 1),
    ]
    if summary.inside is not None:
        columns.append((Column("Straddling", Unit.COUNT), summary.straddling[order]))
    return columns + [(column, pick(values, order)) for column, values in [*(extra or []), *labels]]


def moments(
    stats: GroupStats | Moments,
    order: Indices,
    unit: Unit,
    decimals: int,
    prefix: str = "",
) -> Columns:
    """The columns Avg, Med, Min, Max and StdDev of some groups; None for groups without events."""
    some = stats.counts[order] > 0
    least, most = only(stats.min[order], some), only(stats.max[order], some)
    return [
        (Column(f"{prefix}Avg", unit, decimals), stats.mean[order]),
        (Column(f"{prefix}Med", unit, decimals), stats.median[order]),
        (Column(f"{prefix}Min", unit), least),
        (Column(f"{prefix}Max", unit), most),
        (Column(f"{prefix}StdDev", unit, decimals), stats.std[order]),
    ]


def shares(totals: Int64) -> Float64:
    """Each total as a percentage of their sum; NaN where nothing took time."""
    whole = int(totals.sum())
    return 100.0 * totals / whole if whole else np.full(len(totals), np.nan)


def pick(values: Values, order: Indices) -> Values:
    """Values in another order, arrays and lists alike."""
    if isinstance(values, np.ndarray):
        return values[order]
    return [values[row] for row in order.tolist()]


def by_total(stats: GroupStats, names: Values) -> Indices:
    """Groups that have anything: the largest total first, then the most, then by name."""
    kept = np.flatnonzero(stats.counts > 0)
    by = np.lexsort((rank(pick(names, kept)), -stats.counts[kept], -stats.totals[kept]))
    return np.asarray(kept[by], np.intp)


def _order(summary: Aggregate, labels: Columns) -> Indices:
    kept = np.flatnonzero(summary.present)
    ties = [rank(pick(values, kept)) for _, values in reversed(labels)]
    by = np.lexsort((*ties, -summary.counts[kept], -summary.totals[kept]))
    return np.asarray(kept[by], np.intp)


def rank(values: Values) -> Int64:
    """Place of each value among the sorted distinct ones: a sort key for text."""
    places = {value: position for position, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], np.int64)


def only(values: Array, mask: Bool) -> Array:
    """Values where the mask is true; elsewhere None for text, NaN for floats.

    Whole numbers are masked: floats would lose the last digits beyond 2**53, and five million
    boxed integers take 200 MB.
    """
    if mask.all():
        return values
    if values.dtype == object:
        kept = np.full(len(values), None, object)
        kept[mask] = values[mask]
        return kept
    if values.dtype.kind == "f":
        return np.where(mask, values, np.nan)
    return np.ma.masked_array(values, ~mask)


_24_BITS: Final = np.int64(0xFFFFFF)


def pids(global_ids: Int64) -> Int64:
    """Process ids of globalTids or globalPids."""
    return (global_ids >> np.int64(24)) & _24_BITS


def tids(global_tids: Int64) -> Int64:
    """Thread ids of globalTids."""
    return global_tids & _24_BITS


def thread_columns(query: Query, threads: Int64) -> Columns:
    """Process, thread, priority and name of each event's thread; empty where not recorded."""
    recorded = query.report.rows(Kind.THREAD, "global_tid", "priority")
    facts = dict(zip(*recorded.lists(), strict=True))
    codes, distinct = factorise(threads)
    known = distinct.tolist()
    priorities = np.array([facts.get(tid) for tid in known], object)
    names = np.array(
        [query.report.thread_name(tid) if tid in facts else "" for tid in known], object
    )
    return [
        (Column("Pid", Unit.NONE), pids(threads)),
        (Column("Tid", Unit.NONE), tids(threads)),
        (Column("T-Pri", Unit.NONE), priorities[codes]),
        (Column("Thread Name"), names[codes]),
    ]


def rank_label(ranks: Mapping[int, int], global_pid: int) -> str:
    """How a table calls a process: its rank, or its pid where no rank was recorded."""
    rank = ranks.get(global_pid)
    return f"pid {pid_of(global_pid)}" if rank is None else str(rank)
