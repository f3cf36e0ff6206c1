"""One report for each GPU or each rank, stacked into one table with a leading column."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.stats.reports import Wanted, compute
from nsys_tui.analysis.stats.summary import rank_label
from nsys_tui.errors import NoDataError
from nsys_tui.model.table import Column, Table, plain
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from nsys_tui.analysis.stats.query import Query


def by_device(query: Query) -> list[tuple[str, Query]]:
    """A query for each GPU in scope, with its label."""
    devices = query.report.devices
    return [
        (
            devices[place].label,
            replace(query, scope=replace(query.scope, devices=frozenset((place,)))),
        )
        for place in query.scope.device_rows(query.report)
    ]


def by_rank(query: Query) -> list[tuple[str, Query]]:
    """A query for each process with events in scope, labelled by its MPI rank or its pid."""
    report = query.report
    sets = (report.operations.processes, report.api.thread_process)
    found = {int(pid) for processes in sets for pid in processes if pid != -1}
    for events in (report.ranges, report.osrt, report.host_events):
        found.update(int(pid) for pid in events.thread_process if pid != -1)
    ranks = report.ranks
    every = np.array(sorted(found), np.int64)
    chosen = every[query.scope.has_process(every)].tolist()
    chosen.sort(key=lambda pid: (ranks.get(pid, 1 << 62), pid_of(pid)))
    return [
        (
            rank_label(ranks, pid),
            replace(query, scope=replace(query.scope, processes=frozenset((pid_of(pid),)))),
        )
        for pid in chosen
    ]


def compute_parts(wanted: Wanted, parts: list[tuple[str, Query]], header: str) -> Table:
    """Computes a report for each part and stacks the tables; shares are of each part's total.

    Raises:
        NoDataError: no part has such data.
    """
    tables: list[tuple[str, Table]] = []
    missing = NoDataError("there is nothing to tell apart")
    for label, query in parts:
        try:
            tables.append((label, compute(wanted, query)))
        except NoDataError as reason:
            missing = reason
    if not tables:
        raise missing
    first = tables[0][1]
    labels = [label for label, table in tables for _ in range(len(table))]
    data = [
        [value for _, table in tables for value in plain(table.data[place])]
        for place in range(len(first.columns))
    ]
    return replace(first, columns=(Column(header), *first.columns), data=(labels, *data))
