"""CUDA calls on the host: summary and trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.stats.registry import Columns, Needs, report
from nsys_tui.analysis.stats.summary import NAME, only, summarise, time_columns
from nsys_tui.analysis.stats.thread_columns import thread_columns
from nsys_tui.analysis.window import row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.groups import regroup
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name

if TYPE_CHECKING:
    from nsys_tui.analysis.aggregate import Aggregate
    from nsys_tui.analysis.stats.query import Query

CALLS = Needs("CUDA trace", "--trace=cuda", (Capability.API,))
MERGED = {
    "merged": "one row per function whatever its version suffix, backtrace duplicates left out"
}


def api_summary(query: Query, *, printed: bool = False) -> tuple[Aggregate, list[str]]:
    """CUDA calls by name: one group per recorded name, or by function with ``merged``.

    With ``printed``, names that are printed alike are one group.

    NVIDIA's rule keeps a row for each recorded name, prints it without ``_v`` and four digits, and
    counts the class-67 rows that enclose a call with a backtrace. Merged is ours.
    """
    api = query.report.api
    merged = query.has("merged")
    rows = query.events(api, api.real if merged else None)
    texts = [api_name(name, nsys_compatible=not merged) for name in api.names]
    codes, keys = regroup(api.name[rows], texts if merged or printed else list(api.names))
    shown = dict(zip(api.names, texts, strict=True))
    return summarise(query, api, rows, codes, len(keys)), [shown.get(key, key) for key in keys]


@report("CUDA API Summary", CALLS, old="cudaapisum", arguments=MERGED)
def cuda_api_sum(query: Query) -> Columns:
    """CUDA runtime and driver calls by function and their execution times on the host."""
    summary, names = api_summary(query)
    if not summary.present.any():
        raise NoDataError("no CUDA calls")
    return time_columns(summary, "Num Calls", [(NAME, names)])


@report("CUDA API Trace", CALLS, old="cudaapitrace")
def cuda_api_trace(query: Query) -> Columns:
    """Every CUDA call by its start; Result is the returned error code, 0 for success."""
    api = query.report.api
    rows = query.events(api)
    if not row_count(api, rows):
        raise NoDataError("no CUDA calls")
    results = api.return_value[rows]
    known = np.full(len(results), query.report.has(Kind.API, "return_value"))
    names = np.array([api_name(name, nsys_compatible=True) for name in api.names], object)
    threads = api.threads[api.thread[rows]]
    return [
        (Column("Start", Unit.NS), api.start[rows]),
        (Column("Duration", Unit.NS), api.end[rows] - api.start[rows]),
        (NAME, names[api.name[rows]]),
        (Column("Result", Unit.NONE), only(results, known)),
        (Column("CorrID", Unit.NONE), api.correlation[rows]),
        *thread_columns(query, threads),
    ]
