"""OS runtime calls and system calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.stats.host_tables import host_summary
from nsys_tui.analysis.stats.registry import Columns, Needs, report
from nsys_tui.analysis.stats.summary import NAME, summarise, time_columns
from nsys_tui.analysis.window import row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.kinds import Kind

if TYPE_CHECKING:
    from nsys_tui.analysis.stats.query import Query

_CALL: Final = 27
"""Event class of calls; the others mark the start and the end of the tracing."""


@report(
    "OS Runtime Summary",
    Needs("OS Runtime trace", "--trace=osrt", (Capability.OSRT,)),
    old="osrtsum",
)
def osrt_sum(query: Query) -> Columns:
    """OS runtime library calls by function, nested calls included, and their durations."""
    osrt = query.report.osrt
    rows = query.events(osrt, osrt.event_class == _CALL)
    if not row_count(osrt, rows):
        raise NoDataError("no OS runtime calls")
    summary = summarise(query, osrt, rows, osrt.name[rows], len(osrt.names))
    return time_columns(summary, "Num Calls", [(NAME, list(osrt.names))])


@report("Syscall Summary", Needs("syscall", "--trace=syscall"), old="syscallsum")
def syscall_sum(query: Query) -> Columns:
    """System calls by name and their durations."""
    return host_summary(query, (Kind.SYSCALL,), "Num Calls")
