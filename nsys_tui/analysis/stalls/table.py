"""Stalls as columns: any number of gaps and launch-bound runs, for a table that draws few of them.

What a cell says comes from ``stall_rows``, asked once per distinct value and never per gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nsys_tui.analysis.rules.severity import HIGH_SHARE, MEDIUM_SHARE
from nsys_tui.analysis.stalls.gaps import Edge
from nsys_tui.analysis.stalls.rows import name_codes, operation_names, stall_row
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

        def part(column: Coded) -> Coded:
            return Coded(column.codes[rows], column.labels)

        return StallTable(
            self.result,
            self.numbers[rows],
            self.place[rows],
            self.start[rows],
            self.idle[rows],
            self.gaps[rows],
            self.severity[rows],
            part(self.cause),
            part(self.next),
            part(self.range),
            part(self.thread),
        )


def stall_table(report: Report, result: Stalls, style: str = NameStyle.SHORT) -> StallTable:
    """Gaps and runs as columns.

    Args:
        report: the report.
        result: what ``stalls`` found in it.
        style: how operations are named: short, normalised or full.
    """
    gaps, runs = result.gaps, result.runs
    single = np.ones(len(gaps), np.int64)

    def joined(of_gaps: NDArray[np.integer], of_runs: list[int]) -> Int64:
        return np.concatenate((of_gaps.astype(np.int64), np.array(of_runs, np.int64)))

    def coded(keys: list[NDArray[np.integer]], text: Callable[[StallRow], str]) -> Coded:
        return _coded(report, result, keys, text)

    edge = joined(gaps.edge, [Edge.INNER] * len(runs))
    start = joined(gaps.start, [run.start for run in runs])
    idle = joined(gaps.idle, list(result.run_idle))
    place = joined(gaps.place, [run.place for run in runs])
    caller = np.where(gaps.call >= 0, report.api.thread[gaps.call], -1) if len(report.api) else None
    table = StallTable(
        result=result,
        numbers=np.arange(len(gaps) + len(runs)),
        place=place,
        start=start,
        idle=idle,
        gaps=joined(single, [run.gap_count for run in runs]),
        severity=np.where(edge == Edge.INNER, _severity(report, result, idle), 0),
        cause=coded([gaps.edge, gaps.cause, gaps.what], lambda row: row.label),
        next=_operations(report, joined(gaps.next, [run.first_row for run in runs]), style),
        range=coded([gaps.range], lambda row: row.range),
        thread=coded(
            [gaps.call if caller is None else caller],
            lambda row: report.thread_name(row.thread) if row.thread >= 0 else "",
        ),
    )
    return table.take(np.lexsort((place, start, -idle, edge != Edge.INNER)))


def _operations(report: Report, rows: Int64, style: str) -> Coded:
    """Names of some operations, empty for row -1."""
    names = [*operation_names(report.operations, style), ""]
    merged, texts = regroup(name_codes(report.operations, rows), names)
    return Coded(merged.astype(np.int64), tuple(texts))


def _severity(report: Report, result: Stalls, idle: Int64) -> Int64:
    lo, hi = result.scope.base(report)
    share = idle / max(hi - lo, 1)
    return 1 + (share >= MEDIUM_SHARE).astype(np.int64) + (share >= HIGH_SHARE)


def _coded(
    report: Report,
    result: Stalls,
    keys: list[NDArray[np.integer]],
    text: Callable[[StallRow], str],
) -> Coded:
    """Texts of all rows: each distinct key of the gaps is written once, each run by itself."""
    codes, distinct = factorise_rows(keys)
    first = np.zeros(len(distinct), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    runs = range(len(result.gaps), len(result.gaps) + len(result.runs))
    labels = [text(stall_row(report, result, number)) for number in (*first.tolist(), *runs)]
    numbers = np.arange(len(first), len(labels))
    merged, texts = regroup(np.concatenate((codes, numbers)), labels)
    return Coded(merged.astype(np.int64), tuple(texts))
