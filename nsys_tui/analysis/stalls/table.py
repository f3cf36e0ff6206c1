"""Stalls as columns: any number of gaps and launch-bound runs, for a table that draws few of them.

What a cell says comes from ``stall_rows``, asked once per distinct value and never per gap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nsys_tui.analysis.rules.severity import ranks
from nsys_tui.analysis.stalls.rows import name_codes, stall_row
from nsys_tui.model.groups import factorise_rows, regroup
from nsys_tui.names import NameStyle

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nsys_tui.analysis.stalls.gaps import Stalls
    from nsys_tui.analysis.stalls.rows import StallRow
    from nsys_tui.model.events import Int64
    from nsys_tui.model.report import Report


class Coded(NamedTuple):
    """A column of texts that repeat."""

    codes: Int64
    labels: tuple[str, ...]

    def take(self, rows: NDArray[np.intp]) -> Coded:
        """The texts of some rows."""
        return Coded(self.codes[rows], self.labels)


@dataclass(frozen=True, eq=False)
class StallTable:
    """One value a row; longest idle first, head and tail of the trace at the end.

    Columns of launch-bound runs hold what stands for the whole run.
    """

    result: Stalls
    numbers: Int64
    """What ``stall_row`` calls each row."""
    place: Int64
    """Place of the device in ``Report.devices``."""
    start: Int64
    idle: Int64
    """ns inside the window."""
    gaps: Int64
    """Gaps that the row stands for."""
    severity: Int64
    """3 high, 2 medium, 1 low; 0 before the first operation and after the last."""
    cause: Coded
    next: Coded
    range: Coded
    thread: Coded

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, report: Report, place: int) -> StallRow:
        """Everything about one row."""
        return stall_row(report, self.result, int(self.numbers[place]))

    def take(self, rows: NDArray[np.intp]) -> StallTable:
        """Some of the rows, in the order given."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        del columns["result"]
        return replace(self, **{name: column.take(rows) for name, column in columns.items()})


def stall_table(report: Report, result: Stalls, style: str = NameStyle.SHORT) -> StallTable:
    """Gaps and runs as columns.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        style: how operations are named: short, normalised or full.
    """
    gaps, (lo, hi) = result.gaps, result.scope.base(report)

    def coded(text: Callable[[StallRow], str], *keys: NDArray[np.integer]) -> Coded:
        return _coded(report, result, keys, text)

    return StallTable(
        result=result,
        numbers=np.arange(len(gaps)),
        place=gaps.place.astype(np.int64),
        start=gaps.start,
        idle=gaps.idle,
        gaps=gaps.count,
        severity=np.where(gaps.outside, 0, 1 + ranks(gaps.idle, hi - lo)),
        cause=coded(lambda row: row.label, gaps.edge, gaps.cause, gaps.what, gaps.run),
        next=_operations(report, gaps.next, style),
        range=coded(lambda row: row.range, gaps.range),
        thread=coded(
            lambda row: report.thread_name(row.thread) if row.thread >= 0 else "", gaps.caller
        ),
    )


def _operations(report: Report, rows: Int64, style: str) -> Coded:
    """Names of some operations, empty for row -1."""
    names = [*report.operations.texts(style), ""]
    merged, texts = regroup(name_codes(report.operations, rows), names)
    return Coded(merged.astype(np.int64), tuple(texts))


def _coded(
    report: Report,
    result: Stalls,
    keys: tuple[NDArray[np.integer], ...],
    text: Callable[[StallRow], str],
) -> Coded:
    """Texts of all rows: each distinct key is written once."""
    codes, distinct = factorise_rows(keys)
    first = np.zeros(len(distinct), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    labels = [text(stall_row(report, result, number)) for number in first.tolist()]
    merged, texts = regroup(codes, labels)
    return Coded(merged.astype(np.int64), tuple(texts))
