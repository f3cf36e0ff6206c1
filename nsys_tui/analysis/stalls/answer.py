"""Stalls as tables, and all of them as one document for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nsys_tui import units
from nsys_tui.analysis.links import evidence_link
from nsys_tui.analysis.stalls.gaps import IdleTotals, Stalls
from nsys_tui.analysis.stalls.rows import HEAD, TAIL, StallGroup, StallRow, stall_groups, stall_rows
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.report import Report
from nsys_tui.model.table import (
    Column,
    Document,
    Form,
    Table,
    Unit,
    column,
    data,
    number,
    record,
    records,
    table_of,
)

GROUPINGS: Final = {
    "cause": "cause",
    "range": "NVTX range",
    "pair": "pair of operations",
    "thread": "thread",
    "device": "GPU",
}
"""What gaps can be grouped by, and how it is called."""


@dataclass(frozen=True)
class StallAnswer:
    """The stalls of a report with the rows and groups that were asked for."""

    report: Report
    result: Stalls
    limit: int | None = None
    """Rows of each table; None for all."""
    by: str = "cause"

    def gaps(self) -> Table:
        """Gaps and launch-bound runs, longest first."""
        rows = stall_rows(self.report, self.result, self.limit)
        title = f"Idle gaps of {units.format_duration(self.result.threshold_ns)} and longer"
        hidden = len(self.result.gaps) - len(rows)
        more = f"{units.format_count(hidden)} more are not shown (nsys-tui stalls --limit 0)"
        notes = [*([more] if hidden else []), *self.notes]
        return table_of("stalls", f"{title}, longest first", _GAP, rows, self.report, notes)

    @property
    def notes(self) -> list[str]:
        """Idle time that no row holds, and what causes would need to be told."""
        idle = [_idle_note(self.report, total) for total in self.result.totals]
        return [*idle, *coarser_causes(self.report)]

    def groups(self, by: str, limit: int | None = None) -> Table:
        """Idle time by one of ``GROUPINGS``."""
        groups = stall_groups(self.report, self.result, by)
        hidden = len(groups) - len(groups[:limit])
        notes = [f"{hidden} more groups (--limit 0)"] if hidden else []
        return table_of(
            f"stalls_by_{by}",
            f"Idle time by {GROUPINGS[by]}",
            _group_columns(by),
            groups[:limit],
            self.result,
            notes,
        )


def coarser_causes(report: Report) -> tuple[str, ...]:
    """What causes of idle time would need to be told from each other."""
    wanted = [Capability.API, Capability.OSRT, Capability.NVTX]
    if not report.can(Capability.SAMPLES):
        wanted.append(Capability.SCHED)
    lacking = map(report.lacks, wanted)
    return tuple(f"causes are coarser: {why}" for why in lacking if why)


def _thread(row: StallRow, report: Report) -> str | None:
    return report.thread_name(row.thread) if row.thread >= 0 else None


def _or_none(name: str) -> Any:
    """Reads a text that may be empty."""
    return lambda row, _: getattr(row, name) or None


_GAP: Final = (
    Column("Sev", key="", read=lambda row, _: row.severity.letter if row.severity else "-"),
    Column("GPU", key="", read=lambda row, report: report.devices[row.device].label),
    number("device", lambda row, report: report.devices[row.device].number),
    column("kind"),
    column("start_ns", "Start", lambda row, _: row.start),
    data("end_ns", lambda row, _: row.end),
    column("idle_ns", "Idle"),
    column("gaps", "Gaps", unit=Unit.COUNT),
    column("severity"),
    Column("Cause", key="", read=lambda row, _: row.label),
    column("cause"),
    data("link", lambda row, report: evidence_link(report, (row.start, row.end), row.device)),
    data("what", _or_none("what")),
    data("shares_ns", lambda row, _: row.shares, form=Form.MAP),
    data("previous", _or_none("previous")),
    column("next", "Next operation", _or_none("next")),
    column("range", "NVTX range", _or_none("range")),
    column("thread", "Thread", _thread),
    data("call", _or_none("call")),
    data("witness", _or_none("witness")),
)


def _share(group: StallGroup, result: Stalls) -> float | None:
    """Of the idle time between operations; that before the first and after the last has none."""
    inner = result.whole.inner_ns
    return 100 * group.idle_ns / inner if inner and group.key not in (HEAD, TAIL) else None


def _group_columns(by: str) -> tuple[Column, ...]:
    title = GROUPINGS[by]
    return (
        Column("Share", Unit.PERCENT, 1, "idle_share", _share),
        column("idle_ns", "Idle"),
        column("count", "Gaps", unit=Unit.COUNT),
        column("longest_ns", "Longest", lambda group, _: group.longest_ns or None),
        column(by, title[:1].upper() + title[1:], lambda group, _: group.key),
    )


def _counted(key: str, count: str, idle: str, name: str = "count") -> Column:
    """A number of gaps and their idle time."""
    inner = (
        number(name, lambda total, _: getattr(total, count)),
        data("idle_ns", lambda total, _: getattr(total, idle)),
    )
    return record(key, inner, lambda total, _: total)


_TOTAL: Final = (
    number("id", lambda total, report: report.devices[total.device].id),
    number("gpu_id", lambda total, report: report.devices[total.device].gpu_id),
    data("name", lambda total, report: report.devices[total.device].name),
    *(column(key) for key in ("idle_ns", "head_ns", "tail_ns")),
    column("gap_count", unit=Unit.COUNT),
    _counted("listed", "listed_count", "listed_ns"),
    _counted("launch_bound_runs", "in_runs_count", "in_runs_ns", "gaps"),
    _counted("below_threshold", "below_count", "below_ns"),
)


def _groups(by: str) -> Column:
    """The groups of one kind; those by cause are always there."""

    def read(answer: StallAnswer, _report: Any) -> Table | None:
        return answer.groups(by) if by in ("cause", answer.by) else None

    return Column(
        key=f"by_{by}", read=read, inner=_group_columns(by), form=Form.LIST, optional=True
    )


DOCUMENT: Final = Document(
    "stalls",
    (
        data("report", lambda _, report: report.name),
        data("window_ns", lambda a, _: a.result.scope.window, form=Form.LIST),
        data("bounds_ns", lambda a, _: a.result.bounds, form=Form.LIST),
        data("threshold_ns", lambda a, _: a.result.threshold_ns),
        data("idle_ns", lambda a, _: a.result.whole.idle_ns if a.result.totals else None),
        records("devices", _TOTAL, lambda a, _: a.result.totals),
        *map(_groups, GROUPINGS),
        records("gaps", _GAP, lambda a, _: a.gaps()),
        number("not_listed", lambda a, _: _hidden(a.result, a.limit)),
    ),
)
"""Idle time as JSON."""


def _hidden(result: Stalls, limit: int | None) -> int:
    return 0 if limit is None else max(0, len(result.gaps) - limit)


def _idle_note(report: Report, total: IdleTotals) -> str:
    return (
        f"{report.devices[total.device].label}: idle {units.format_duration(total.idle_ns)},"
        f" of it {units.format_duration(total.head_ns)} before the first operation and"
        f" {units.format_duration(total.tail_ns)} after the last;"
        f" below threshold: {units.format_count(total.below_count)},"
        f" {units.format_duration(total.below_ns)}"
    )
