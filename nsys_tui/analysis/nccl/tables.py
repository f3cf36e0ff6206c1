"""Collectives as tables: all or some of them, by operation and size, by rank with its waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.nccl.kernel_matching import How
from nsys_tui.analysis.nccl.rank_matching import Traced
from nsys_tui.analysis.nccl.result import Collectives, Parts
from nsys_tui.analysis.window import Scope
from nsys_tui.model.arrays import Bool, Float64, Indices
from nsys_tui.model.groups import rows_of_codes, sums
from nsys_tui.model.table import (
    Column,
    Document,
    Table,
    Unit,
    Values,
    column,
    data,
    number,
    records,
    table_of,
)


def restrict(
    calls: Collectives, traced: Sequence[Traced], scopes: Sequence[Scope | None]
) -> Collectives:
    """The collectives that were asked for.

    Args:
        calls: all of them.
        traced: the reports.
        scopes: what of each report is asked for, None for nothing of it; the window, on the clock
            of the first report, is that of the first scope.
    """
    parts = calls.parts
    kept = parts.chosen.copy()
    of_report = np.array([member.report for member in calls.members] or [0])[parts.member]
    for place, (one, scope) in enumerate(zip(traced, scopes, strict=True)):
        mine = of_report == place
        if scope is None:
            kept &= ~mine
            continue
        asked = np.zeros(len(one.report.operations), bool)
        asked[replace(scope, window=None).operations(one.report.operations)] = True
        kept[mine] &= asked[parts.row[mine]]
    rows = np.zeros(len(calls), bool)
    rows[parts.collective[kept]] = True
    window = next((scope.window for scope in scopes if scope), None)
    if window:
        rows &= (calls.start >= window[0]) & (calls.start < window[1])
    return calls if rows.all() else _taken(calls, rows)


def _taken(calls: Collectives, rows: Bool) -> Collectives:
    number = np.cumsum(rows) - 1
    of_parts = rows[calls.parts.collective]
    parts = Parts(**{one.name: getattr(calls.parts, one.name)[of_parts] for one in fields(Parts)})
    places = np.flatnonzero(rows)
    columns: dict[str, Any] = {}
    for one in fields(Collectives):
        values = getattr(calls, one.name)
        if isinstance(values, np.ndarray):
            columns[one.name] = values[rows]
        elif one.name in ("label", "communicator", "kernel"):
            columns[one.name] = tuple(values[place] for place in places.tolist())
    left = f"{len(places):,} of {len(calls):,} collectives, with their figures over all ranks"
    return replace(
        calls,
        **columns,
        parts=replace(parts, collective=number[parts.collective]),
        notes=(left, *calls.notes),
    )


HOW: Final = {How.NOT: "-", How.BY_CALL: "by call", How.BY_ORDER: "by order"}
_GB: Final = 1e9
"""Bandwidths are in 10**9 bytes per second, as nccl-tests prints them."""


def each_table(calls: Collectives, top: int | None = None) -> Table:
    """One row per collective in the order of time.

    Args:
        calls: the collectives.
        top: rows to keep; all without it.
    """
    rows = range(len(calls))[:top]
    hidden = len(calls) - len(rows)
    more = [f"and {hidden:,} more rows: --top 0 prints all"] if hidden else []
    return table_of("collectives", "Collectives", _PRINTED, rows, calls, [*more, *calls.notes])


def by_operation(calls: Collectives) -> list[Indices]:
    """The calls of each operation, size and communicator, by total time."""
    keys = list(zip(calls.label, calls.bytes.tolist(), calls.communicator, strict=True))
    codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    parts = rows_of_codes(np.array([codes[key] for key in keys], np.int64), len(codes))
    return sorted(parts, key=lambda rows: -int(calls.time[rows].sum()))


def operations_table(calls: Collectives) -> Table:
    """One row per operation, size and communicator, by total time."""
    parts = by_operation(calls)
    first = [int(rows[0]) for rows in parts]
    algorithm, bus = calls.algorithm_bandwidth / _GB, calls.bus_bandwidth / _GB
    skew = [
        float(np.median(calls.skew[rows])) if (calls.seen[rows] > 1).any() else None
        for rows in parts
    ]
    columns: list[tuple[Column, Values]] = [
        (Column("Operation"), [calls.label[row] for row in first]),
        (
            Column("Bytes", Unit.BYTES),
            [None if size < 0 else size for size in calls.bytes[first].tolist()],
        ),
        (Column("Time", Unit.NS), [float(np.median(calls.time[rows])) for rows in parts]),
        (Column("≈"), ["≈" if calls.estimated[rows].any() else "" for rows in parts]),
        (Column("Alg GB/s", Unit.NONE, 2), [_of(np.median, algorithm[rows]) for rows in parts]),
        (Column("Bus GB/s", Unit.NONE, 2), [_of(np.median, bus[rows]) for rows in parts]),
        (Column("Count", Unit.COUNT), [len(rows) for rows in parts]),
        (Column("Best bus", Unit.NONE, 2), [_of(np.max, bus[rows]) for rows in parts]),
        (Column("Skew", Unit.NS), skew),
        (Column("Total time", Unit.NS), [int(calls.time[rows].sum()) for rows in parts]),
        (Column("Communicator"), [calls.communicator[row] or "-" for row in first]),
    ]
    return Table.of("operations", "By operation and size (medians)", columns)


def members_table(calls: Collectives) -> Table:
    """One row per rank: how often it came last, and how long it waited for others."""
    parts = calls.parts
    count = len(calls.members)
    shared = calls.seen[parts.collective] > 1
    late = (parts.start - calls.start[parts.collective])[shared]
    waited, spent = calls.waited[shared], (parts.end - parts.start)[shared]
    member = parts.member[shared]
    joined = np.bincount(member, minlength=count)
    last = np.bincount(calls.last[calls.seen > 1], minlength=count)
    totals = zip(sums(member, late, count), joined, strict=True)
    columns: list[tuple[Column, Values]] = [
        (Column("Rank"), [str(one.rank) if one.rank >= 0 else "-" for one in calls.members]),
        (Column("PID"), [str(one.pid) for one in calls.members]),
        (Column("GPU"), [one.gpu for one in calls.members]),
        (Column("Collectives", Unit.COUNT), np.bincount(parts.member, minlength=count)),
        (Column("Came last", Unit.COUNT), last),
        (Column("Mean lateness", Unit.NS), [float(ns) / int(n) if n else None for ns, n in totals]),
        (Column("Waited for others", Unit.NS), sums(member, waited, count)),
        (Column("Transferred", Unit.NS), sums(member, spent - waited, count)),
        (Column("Kernel time", Unit.NS), sums(parts.member, parts.end - parts.start, count)),
    ]
    notes = () if shared.any() else ("one rank alone: nothing to wait for is seen",)
    return Table.of("ranks", "Ranks: who comes late, who waits", columns, notes)


def _of(what: Callable[[Any], Any], values: Float64) -> float | None:
    known = values[~np.isnan(values)]
    return float(what(known)) if len(known) else None


def _known(value: int) -> int | None:
    return None if value < 0 else int(value)


def _together(values: Callable[[int, Collectives], Any]) -> Any:
    """Reads what only several ranks together have."""
    return lambda row, calls: values(row, calls) if calls.seen[row] > 1 else None


def _ranks(row: int, calls: Collectives) -> str:
    return f"{calls.seen[row]} of {calls.ranks[row] if calls.ranks[row] > 0 else '?'}"


def _last(row: int, calls: Collectives) -> str:
    return calls.members[calls.last[row]].label if calls.seen[row] > 1 else "-"


_PART: Final = (
    number("member", lambda part, c: c.parts.member[part]),
    data("start_ns", lambda part, c: c.parts.start[part]),
    data("end_ns", lambda part, c: c.parts.end[part]),
    data(
        "waited_ns",
        lambda part, c: c.waited[part] if c.seen[c.parts.collective[part]] > 1 else None,
    ),
    number("operation_row", lambda part, c: c.parts.row[part]),
    data("joined", lambda part, c: HOW[How(int(c.parts.how[part]))]),
)
_MEMBER: Final = (
    column("report", unit=Unit.COUNT),
    column("pid", unit=Unit.COUNT),
    number("rank", lambda member, _: _known(member.rank)),
    column("gpu"),
)
_PRINTED: Final = (
    column("start_ns", "Start", lambda row, c: c.start[row]),
    column("operation", "Operation", lambda row, c: c.label[row]),
    column("bytes", "Bytes", lambda row, c: _known(c.bytes[row])),
    column("time_ns", "Time", lambda row, c: c.time[row]),
    Column("≈", key="", read=lambda row, c: "≈" if c.estimated[row] else ""),
    Column("Alg GB/s", Unit.NONE, 2, "", lambda row, c: c.algorithm_bandwidth[row] / _GB),
    Column("Bus GB/s", Unit.NONE, 2, "", lambda row, c: c.bus_bandwidth[row] / _GB),
    Column("Ranks", key="", read=_ranks),
    column("skew_ns", "Skew", _together(lambda row, c: c.skew[row])),
    Column("Last", key="", read=_last),
    column("joined", "Joined", lambda row, c: HOW[How(int(c.how[row]))]),
    Column("Communicator", key="", read=lambda row, c: c.communicator[row] or "-"),
    column("kernel", "Kernel", lambda row, c: c.kernel[row]),
)
_EACH: Final = (
    *_PRINTED,
    number("calls", lambda row, c: c.calls[row]),
    data("wire_bytes", lambda row, c: c.wire[row], Unit.NONE),
    data("communicator", lambda row, c: c.communicator[row] or None),
    number("nranks", lambda row, c: _known(c.ranks[row])),
    number("ranks_seen", lambda row, c: c.seen[row]),
    data("last_start_ns", lambda row, c: c.last_start[row]),
    data("end_ns", lambda row, c: c.end[row]),
    data("time_includes_waiting", lambda row, c: c.estimated[row], Unit.FLAG),
    number("last_member", _together(lambda row, c: c.last[row])),
    data("algorithm_bytes_per_s", lambda row, c: c.algorithm_bandwidth[row]),
    data("bus_bytes_per_s", lambda row, c: c.bus_bandwidth[row]),
    records("parts", _PART, lambda row, c: c.parts_of[row]),
)
DOCUMENT: Final = Document(
    "collectives",
    (
        data("sizes_from", lambda c, _: c.sized_by or None),
        records("members", _MEMBER),
        records("collectives", _EACH, lambda c, _: range(len(c))),
    ),
)
"""Collectives as JSON."""
TABLES: Final[dict[str, Callable[[Collectives, int | None], Table]]] = {
    "operations": lambda found, _: operations_table(found),
    "ranks": lambda found, _: members_table(found),
    "collectives": each_table,
}
"""All tables by name, in reading order; each takes the rows to keep."""
