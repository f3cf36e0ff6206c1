"""``nsys-tui stalls``: when each GPU stood idle, and why."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from nsys_tui import units
from nsys_tui.commands.options import (
    TABLE_FORMATS,
    add_report,
    add_scope,
    count,
    open_from,
    rows_shown,
    scope_from,
)
from nsys_tui.errors import EmptyAnswerError, UsageError
from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    import argparse

    from nsys_tui.analysis.stalls.gaps import IdleTotals, Stalls
    from nsys_tui.analysis.stalls.rows import StallGroup, StallRow
    from nsys_tui.model.report import Report

SHOWN = 40
"""Rows of a table unless ``--limit`` says otherwise; JSON and csv hold all."""
GROUPINGS = ("cause", "range", "pair", "thread", "device")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = subparsers.add_parser(
        "stalls",
        help="why the GPU stood idle",
        description="Idle gaps of each GPU with their cause: what the thread that launched the "
        "next operation did meanwhile. Runs of short gaps between tiny kernels count as one.",
    )
    add_report(parser)
    add_scope(parser)
    parser.add_argument("--format", choices=TABLE_FORMATS, default="table")
    parser.add_argument(
        "--threshold",
        default="10us",
        metavar="TIME",
        help="list gaps from this length on (default 10us); shorter ones are counted",
    )
    parser.add_argument(
        "--group-by", choices=GROUPINGS, help="print groups instead of gaps (json has both)"
    )
    parser.add_argument(
        "--limit",
        type=count,
        metavar="N",
        help=f"rows to print, 0 for all (default {SHOWN}; all in csv and json)",
    )
    parser.add_argument(
        "--each-gap",
        action="store_true",
        help="list the gaps inside launch-bound runs one by one",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the stalls of one report."""
    from nsys_tui.analysis.stalls.gaps import stalls
    from nsys_tui.analysis.stalls.rows import stall_groups, stall_rows
    from nsys_tui.commands.destinations import room
    from nsys_tui.model.capabilities import Capability
    from nsys_tui.text.sections import sections_text

    threshold = units.parse_duration(arguments.threshold)
    if threshold < 0:
        raise UsageError(f"--threshold {arguments.threshold}: no gap is shorter than 0")
    report = open_from(arguments)
    scope = scope_from(arguments, report)
    result = stalls(report, scope, threshold_ns=threshold, merge_runs=not arguments.each_gap)
    every = arguments.format in ("json", "csv")
    limit = rows_shown(arguments.limit, None if every else SHOWN)
    rows = stall_rows(report, result, limit)
    if arguments.format == "json":
        ways = dict.fromkeys(("cause", arguments.group_by or "cause"))
        groups = {by: stall_groups(report, result, by) for by in ways}
        print(json.dumps(as_json(report, result, rows, groups)))
    elif arguments.group_by:
        found = stall_groups(report, result, arguments.group_by)
        table = _group_table(result, found[:limit], arguments.group_by, len(found))
        sys.stdout.write(sections_text([table], arguments.format, room(sys.stdout)))
    else:
        tables = [_gap_table(report, result, rows)]
        if arguments.format != "csv":
            causes = stall_groups(report, result)
            tables.append(_group_table(result, causes, "cause", len(causes)))
        sys.stdout.write(sections_text(tables, arguments.format, room(sys.stdout)))
    if not len(report.operations):
        raise EmptyAnswerError(
            f"{report.name}: no GPU work, so no idle time of a GPU either",
            hint=report.lacks(Capability.KERNELS),
        )
    return 0


def as_json(
    report: Report,
    result: Stalls,
    rows: list[StallRow],
    groups: dict[str, list[StallGroup]],
) -> dict[str, Any]:
    """Stalls as JSON values, times in ns."""
    from nsys_tui.analysis.stalls.rows import row_count

    return {
        "report": report.name,
        "window_ns": result.scope.window,
        "bounds_ns": result.bounds,
        "threshold_ns": result.threshold_ns,
        "idle_ns": result.idle_ns,
        "devices": [_totals_json(report, total) for total in result.totals],
        **{f"by_{by}": [_group_json(by, group) for group in found] for by, found in groups.items()},
        "gaps": [_row_json(report, row) for row in rows],
        "not_listed": row_count(result) - len(rows),
    }


def _group_json(by: str, group: StallGroup) -> dict[str, Any]:
    return {
        by: group.key,
        "count": group.count,
        "idle_ns": group.idle_ns,
        "longest_ns": group.longest_ns,
    }


def _totals_json(report: Report, total: IdleTotals) -> dict[str, Any]:
    device = report.devices[total.place]
    return {
        "id": device.id,
        "gpu_id": device.gpu_id,
        "name": device.name,
        "idle_ns": total.idle_ns,
        "head_ns": total.head_ns,
        "tail_ns": total.tail_ns,
        "gap_count": total.gap_count,
        "listed": {"count": total.listed_count, "idle_ns": total.listed_ns},
        "launch_bound_runs": {"gaps": total.in_runs_count, "idle_ns": total.in_runs_ns},
        "below_threshold": {"count": total.below_count, "idle_ns": total.below_ns},
    }


def _row_json(report: Report, row: StallRow) -> dict[str, Any]:
    device = report.devices[row.place]
    return {
        "device": device.number,
        "kind": row.kind,
        "start_ns": row.start,
        "end_ns": row.end,
        "idle_ns": row.idle_ns,
        "gaps": row.gaps,
        "severity": None if row.severity is None else str(row.severity),
        "cause": row.cause,
        "what": row.what or None,
        "shares_ns": row.shares,
        "previous": row.previous or None,
        "next": row.next or None,
        "range": row.range or None,
        "thread": report.thread_name(row.thread) if row.thread >= 0 else None,
        "call": row.call or None,
    }


def _gap_table(report: Report, result: Stalls, rows: list[StallRow]) -> Table:
    columns: dict[Column, list[Any]] = {
        Column("Sev"): [row.severity.letter if row.severity else "-" for row in rows],
        Column("GPU"): [report.devices[row.place].label for row in rows],
        Column("Start", Unit.NS): [row.start for row in rows],
        Column("Idle", Unit.NS): [row.idle_ns for row in rows],
        Column("Gaps", Unit.COUNT): [row.gaps for row in rows],
        Column("Cause"): [row.label for row in rows],
        Column("Next operation"): [row.next for row in rows],
        Column("NVTX range"): [row.range for row in rows],
        Column("Thread"): [_thread(report, row) for row in rows],
    }
    return Table(
        "stalls",
        f"Idle gaps of {units.format_duration(result.threshold_ns)} and longer, longest first",
        tuple(columns),
        tuple(columns.values()),
        tuple(_notes(report, result, len(rows))),
    )


def _thread(report: Report, row: StallRow) -> str:
    return report.thread_name(row.thread) if row.thread >= 0 else ""


def _notes(report: Report, result: Stalls, shown: int) -> list[str]:
    from nsys_tui.analysis.stalls.rows import row_count
    from nsys_tui.model.capabilities import Capability

    hidden = row_count(result) - shown
    notes = [f"{units.format_count(hidden)} more are not shown (--limit 0)"] if hidden else []
    notes += [_idle_note(report, total) for total in result.totals]
    wanted = (Capability.API, Capability.OSRT, Capability.NVTX)
    return notes + [f"causes are coarser: {why}" for kind in wanted if (why := report.lacks(kind))]


def _idle_note(report: Report, total: IdleTotals) -> str:
    return (
        f"{report.devices[total.place].label}: idle {units.format_duration(total.idle_ns)},"
        f" of it {units.format_duration(total.head_ns)} before the first operation and"
        f" {units.format_duration(total.tail_ns)} after the last;"
        f" below threshold: {units.format_count(total.below_count)},"
        f" {units.format_duration(total.below_ns)}"
    )


def _group_table(result: Stalls, groups: list[StallGroup], by: str, count: int) -> Table:
    title = {"pair": "pair of operations", "range": "NVTX range", "device": "GPU"}.get(by, by)
    hidden = count - len(groups)
    return Table(
        f"stalls_by_{by}",
        f"Idle time by {title}",
        (
            Column("Idle", Unit.PERCENT, 1),
            Column("Total", Unit.NS),
            Column("Gaps", Unit.COUNT),
            Column("Longest", Unit.NS),
            Column(title[:1].upper() + title[1:]),
        ),
        (
            [100 * g.idle_ns / result.idle_ns if result.idle_ns else None for g in groups],
            [g.idle_ns for g in groups],
            [g.count for g in groups],
            [g.longest_ns or None for g in groups],
            [g.key for g in groups],
        ),
        (f"{hidden} more groups (--limit 0)",) if hidden > 0 else (),
    )
