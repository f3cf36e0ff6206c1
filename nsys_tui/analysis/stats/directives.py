"""OpenACC and OpenMP events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.stats.host_tables import host_summary, rows_summary
from nsys_tui.analysis.stats.registry import Columns, Needs, report
from nsys_tui.analysis.stats.summary import NAME
from nsys_tui.model.kinds import OPENACC, Kind

if TYPE_CHECKING:
    from nsys_tui.analysis.stats.query import Query

_MARKERS: Final = (79, 80)
"""Event class of OpenMP rows that mark the start and the end of the trace."""


@report("OpenACC Summary", Needs("OpenACC event", "--trace=openacc"), old="openaccsum")
def openacc_sum(query: Query) -> Columns:
    """OpenACC events by name and their durations."""
    return host_summary(query, OPENACC, "Count")


@report("OpenMP Summary", Needs("OpenMP event", "--trace=openmp"), old="openmpevtsum")
def openmp_sum(query: Query) -> Columns:
    """OpenMP events by name and their durations."""
    rows = query.raw(Kind.OPENMP, "name", "event_class")
    rows = [row for row in rows if row["event_class"] not in _MARKERS]
    names = [(row["name"] or "",) for row in rows]
    return rows_summary(query, rows, names, "Count", (NAME,))
