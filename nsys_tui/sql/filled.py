"""Temporary tables of what no SQL over the file can tell: figures of the analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, Final

import numpy as np

from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Document, Form, Table, Unit, plain, table_of
from nsys_tui.reader.views import ViewColumn

_BATCH: Final = 1 << 16
"""Launches that become rows of Python at a time."""

_KNOWN: Final = (int, float, str)
"""Values that are stored as they are."""

DOCUMENTS: Final = {
    "stalls": ("nsys_tui.analysis.stalls.answer", "gaps"),
    "steps": ("nsys_tui.analysis.iterations.answer", "iterations"),
    "collectives": ("nsys_tui.analysis.nccl.tables", "collectives"),
}
"""Views that are records of what a verb prints as JSON: its module, and the name of the records."""
_TEXTS: Final = {
    "device": "GPU, by its number in the overview",
    "start_ns": "start, ns since the session began",
    "end_ns": "end; half-open",
    "kind": "gap, run (launch-bound), or head and tail: before the first and after the last work",
    "idle_ns": "idle time; of a run the sum of its gaps",
    "gaps": "how many gaps it is: 1 but of a run",
    "severity": "high, medium or low; NULL of head and tail",
    "cause": "cause, as nsys-tui explain cause lists them",
    "link": "opens it on the timeline: nsys-tui LINK",
    "what": "call or range that the cause names",
    "previous": "operation that ran before",
    "next": "operation that ended the gap",
    "range": "NVTX range in which that was launched",
    "thread": "thread that launched it",
    "call": "call that launched it",
    "witness": "how the cause is known: measured, sampled or inferred",
    "label": "name of the step",
    "time_ns": "duration; of collectives from the last rank's start to the last one's end",
    "of_median_share": "its duration by the median of the steady steps",
    "warm_up": "1 of a warm-up step",
    "closed": "0 where its end is not known",
    "outlier": "1 where it lasts far longer than the median",
    "deviations": "distance from the median in units of the usual scatter",
    "gpu_busy_ns": "busy time of all GPUs",
    "gpu_busy_share": "the same as a share of the step, from 0 to 1",
    "host_lead_mean_ns": "from the end of a launching call to the start of its work, mean",
    "why_longer": "parts that take most more than their medians",
    "operation": "AllReduce, AllGather, …",
    "bytes": "buffer that the program passed in; NULL where not known",
    "skew_ns": "from the first rank's start to the last one's; NULL for a rank alone",
    "joined": "how a call was matched with its kernel: by call, or (weaker) by order",
    "kernel": "kernel that did it",
    "calls": "calls in it: several where NCCL grouped them",
    "wire_bytes": "bytes that cross the wire per rank",
    "communicator": "NCCL's id of the group of ranks",
    "nranks": "ranks of the communicator",
    "ranks_seen": "ranks that the report has",
    "last_start_ns": "start of the rank that came last",
    "time_includes_waiting": "1 where time_ns is a kernel's, waiting for ranks not seen included",
    "last_member": "which one came last, counted as nsys-tui collectives --format json lists them",
    "algorithm_bytes_per_s": "bytes by time_ns",
    "bus_bytes_per_s": "wire_bytes by time_ns",
}
"""What the columns of those views are."""


_CAUSES: Final = {("stalls", "cause"), ("stalls", "what"), ("steps", "why_longer")}
"""Columns that name causes of idle time."""


def coarser(report: Report, read: Set[tuple[str, str]]) -> tuple[str, ...]:
    """Why causes that a query reads are told less finely than they could be."""
    if not read & _CAUSES:
        return ()
    from nsys_tui.analysis.stalls.answer import coarser_causes

    return coarser_causes(report)


def _inner(view: str) -> tuple[Column, ...]:
    """The columns of the records that a view has: those whose cells hold one value."""
    import importlib

    module, key = DOCUMENTS[view]
    document: Document = importlib.import_module(module).DOCUMENT
    records = next(column for column in document.columns if column.key == key)
    return tuple(c for c in records.inner if c.key and not c.inner and c.form is Form.ONE)


def record_columns(view: str) -> tuple[ViewColumn, ...]:
    """The columns of a view of records; JSON calls them the same."""
    return tuple(ViewColumn(c.name, _TEXTS[c.name]) for c in _inner(view))


def _stalls(report: Report) -> Table:
    from nsys_tui.analysis.stalls.gaps import stalls
    from nsys_tui.analysis.stalls.rows import stall_rows

    rows = stall_rows(report, stalls(report))
    return table_of("stalls", "", _inner("stalls"), rows, report)


def _steps(report: Report) -> Table:
    from nsys_tui.analysis.iterations.answer import answer_of

    answer = answer_of(report)
    return table_of("steps", "", _inner("steps"), range(len(answer.table)), answer)


def _collectives(report: Report) -> Table:
    from nsys_tui.analysis.nccl.collectives import collectives
    from nsys_tui.analysis.nccl.rank_matching import Traced
    from nsys_tui.fleet.mapping import told_rank

    calls = collectives([Traced(report, -1, told_rank(report, report.path))], None)
    if not len(calls):
        why = "; ".join(calls.notes) or "no NCCL kernel in the report"
        raise NoDataError(
            f"no collective could be joined with a kernel: {why}",
            hint="record with nsys profile --trace=nvtx,cuda",
        )
    return table_of("collectives", "", _inner("collectives"), range(len(calls)), calls)


def _record_rows(make: Callable[[Report], Table]) -> Callable[[Report], Iterable[Sequence[Any]]]:
    def rows(report: Report) -> Iterable[Sequence[Any]]:
        table = make(report)
        columns = [
            [_stored(value, column.unit) for value in plain(values)]
            for column, values in zip(table.columns, table.data, strict=True)
        ]
        return zip(*columns, strict=True)

    return rows


def _stored(value: Any, unit: Unit) -> Any:
    """A value as programs get it: shares from 0 to 1; what SQLite does not know as text."""
    if value is None or value != value:
        return None
    if unit is Unit.PERCENT:
        return value / 100
    return value if isinstance(value, _KNOWN) else str(value)


def _launches(report: Report) -> Iterator[Sequence[Any]]:
    from nsys_tui.analysis.launches import launches

    if lacking := report.lacks(Capability.LAUNCH_CALLS):
        raise NoDataError(lacking)
    ops, api = report.operations, report.api
    kinds = np.array([kind.name.lower() for kind in OpKind], object)
    for start in range(0, len(ops), _BATCH):
        rows = slice(start, start + _BATCH)
        each = launches(report, rows)
        of_calls = np.full((3, len(each.called)), None)
        ids = api.rowid[report.calls[rows][each.called]]
        of_calls[:, each.called] = ids, each.latency[each.called], each.queue[each.called]
        yield from zip(
            kinds[ops.kind[rows]], ops.rowid[rows].tolist(), *of_calls.tolist(), strict=True
        )


FIGURES: Final[dict[str, Callable[[Report], Iterable[Sequence[Any]]]]] = {
    "stalls": _record_rows(_stalls),
    "steps": _record_rows(_steps),
    "collectives": _record_rows(_collectives),
    "launches": _launches,
}
"""Views that are made by analyses of the report: what makes their rows."""
