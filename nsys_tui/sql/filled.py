"""Temporary tables of what no SQL over the file can tell: figures of the analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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


def _inner(view: str) -> tuple[Column, ...]:
    """The columns of the records that a view has: those whose cells hold one value."""
    import importlib

    module, key = DOCUMENTS[view]
    document: Document = importlib.import_module(module).DOCUMENT
    records = next(column for column in document.columns if column.key == key)
    return tuple(c for c in records.inner if c.key and not c.inner and c.form is Form.ONE)


def record_columns(view: str) -> tuple[ViewColumn, ...]:
    """Names of the columns of a view of records; JSON has the same."""
    return tuple(ViewColumn(c.name, c.header or c.name.replace("_", " ")) for c in _inner(view))


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
