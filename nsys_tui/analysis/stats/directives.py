"""OpenACC and OpenMP events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.stats.host_tables import host_summary, rows_summary
from nsys_tui.analysis.stats.registry import Columns, report
from nsys_tui.analysis.stats.summary import NAME

if TYPE_CHECKING:
    from nsys_tui.analysis.stats.query import Query

OPENACC: Final = tuple(
    f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}" for kind in ("DATA", "LAUNCH", "OTHER")
)
OPENMP_PREFIX: Final = "OPENMP_EVENT_KIND_"

_MARKERS: Final = (79, 80)
"""eventClass of OpenMP rows that mark the start and the end of the trace."""


@report(
    "openacc_sum",
    "OpenACC Summary",
    data="OpenACC event",
    option="--trace=openacc",
    old=("openaccsum",),
)
def openacc_sum(query: Query) -> Columns:
    """OpenACC events by name and their durations."""
    return host_summary(query, OPENACC, "Count", NAME)


@report(
    "openmp_sum",
    "OpenMP Summary",
    data="OpenMP event",
    option="--trace=openmp",
    old=("openmpevtsum",),
)
def openmp_sum(query: Query) -> Columns:
    """OpenMP events by name and their durations."""
    tables = [table for table in query.report.tables if table.startswith(OPENMP_PREFIX)]
    rows = [row for table in tables for row in query.raw(table, "nameId", "eventClass")]
    rows = [row for row in rows if row["eventClass"] not in _MARKERS]
    names = [(query.string(row["nameId"]),) for row in rows]
    return rows_summary(query, rows, names, "Count", (NAME,))
