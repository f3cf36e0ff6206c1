"""``nsys-tui iterations``: time of each training step, by phase, and which ones are outliers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

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
from nsys_tui.commands.printing import DATA_FORMATS, print_tables
from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    import argparse

    from nsys_tui.analysis.iterations.table import IterationTable, Spread
    from nsys_tui.model.report import Report

SHOWN: Final = 100
"""Iterations printed unless ``--limit`` says otherwise; JSON and csv hold all."""
PHASES: Final = 4
"""Phases that have a column of their own where people read."""
LISTED: Final = 20
"""Phases listed where people read."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = subparsers.add_parser(
        "iterations",
        help="time of each training step by phase, and outliers",
        description="Iterations, found from NVTX names or from a repeating pattern of kernels: "
        "time of each, mean, median and deviation of its phases, what no range covers, outliers. "
        "The first one is warm-up and stays out of the statistics.",
    )
    add_report(parser)
    add_scope(parser)
    parser.add_argument("--format", choices=TABLE_FORMATS, default="table")
    parser.add_argument(
        "--iteration", metavar="REGEX", help="NVTX ranges that are iterations, by their names"
    )
    parser.add_argument(
        "--limit",
        type=count,
        metavar="N",
        help=f"iterations to print, 0 for all (default {SHOWN}; all in csv and json)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the iterations of one report."""
    from nsys_tui.analysis.iterations.table import iteration_table

    report = open_from(arguments)
    table = iteration_table(report, arguments.iteration, scope_from(arguments, report))
    if arguments.format == "json":
        print(json.dumps(as_json(report, table)))
        return 0
    exact = arguments.format in DATA_FORMATS
    limit = rows_shown(arguments.limit, None if exact else SHOWN)
    each = _each_table(table, limit or len(table), exact=exact)
    tables = [each] if exact else [_phase_table(table), each]
    print_tables(tables, arguments.format)
    return 0


def as_json(report: Report, table: IterationTable) -> dict[str, Any]:
    """Iterations as JSON values, times in ns."""
    from nsys_tui.model.target import pid_of

    found = table.found
    busy = table.busy.tolist()
    outliers = set(table.found.outliers.tolist())
    return {
        "report": report.name,
        "rule": str(found.rule),
        "name": found.name,
        "pid": pid_of(found.process) if found.process >= 0 else None,
        "gpus": table.gpus,
        "count": len(table),
        "steady": _spread_json(table.whole()),
        "phases": [{"name": name} | _spread_json(part) for name, part in table.by_phase()],
        "iterations": [
            {
                "label": found.labels[place],
                "start_ns": int(found.start[place]),
                "end_ns": int(found.end[place]),
                "time_ns": int(found.duration[place]),
                "warm_up": place == 0,
                "closed": not bool(table.found.never_closed[place]),
                "outlier": place in outliers,
                "deviations": round(float(found.z[place]), 3),
                "gpu_busy_ns": busy[place],
                "phases_ns": {
                    name: int(time[place])
                    for name, time in zip(table.phases.names, table.phases.time, strict=True)
                },
            }
            for place in range(len(table))
        ],
    }


def _spread_json(part: Spread) -> dict[str, Any]:
    return {
        "mean_ns": part.mean,
        "median_ns": part.median,
        "stddev_ns": part.deviation,
        "min_ns": part.least,
        "max_ns": part.most,
    }


def _phase_table(table: IterationTable) -> Table:
    """Statistics of whole iterations and of their phases."""
    whole, parts = table.whole(), table.by_phase()
    shown = [*parts[:-1][:LISTED], parts[-1]]
    hidden = len(parts) - len(shown)
    listed = [("whole iteration", whole), *shown]
    columns: dict[Column, list[Any]] = {
        Column("Share", Unit.PERCENT, 1): [
            100 * part.mean / whole.mean if whole.mean else None for _, part in listed
        ],
        Column("Mean", Unit.NS): [part.mean for _, part in listed],
        Column("Median", Unit.NS): [part.median for _, part in listed],
        Column("StdDev", Unit.NS): [part.deviation for _, part in listed],
        Column("Min", Unit.NS): [part.least for _, part in listed],
        Column("Max", Unit.NS): [part.most for _, part in listed],
        Column("Phase"): [name for name, _ in listed],
    }
    found = table.found
    notes = ["mean to max without the first one: it is warm-up"] if len(table) > 1 else []
    if table.found.never_closed.any():
        notes.append(f"{int(table.found.never_closed.sum())} never closed: in no statistics")
    if not len(found.rows):
        notes.append("found by a repeating pattern of kernels: no NVTX range tells phases")
    if hidden:
        notes.append(f"{hidden} more phases (--format json)")
    return Table(
        "iteration_phases",
        f"{units.format_count(len(table))} iterations: {found.name} ({found.rule})",
        tuple(columns),
        tuple(columns.values()),
        tuple(notes),
    )


def _each_table(table: IterationTable, limit: int, *, exact: bool) -> Table:
    """One row an iteration; with ``exact``, a column for every phase and for the deviation."""
    found, whole = table.found, table.whole()
    count = min(limit, len(table))
    rows = range(count)
    outliers = set(table.found.outliers.tolist())
    named = [name for name, _ in table.by_phase()]
    chosen = named if exact or len(named) <= PHASES + 1 else [*named[:PHASES], named[-1]]
    times = dict(zip(table.phases.names, table.phases.time, strict=True))
    shares = table.busy_shares()
    phases = {Column(name, Unit.NS): times[name][:count] for name in chosen if len(named) > 1}
    columns: dict[Column, Any] = {
        Column("Iteration"): list(found.labels[:count]),
        Column("Start", Unit.NS): found.start[:count],
        Column("Time", Unit.NS): found.duration[:count],
        Column("Of median", Unit.PERCENT, 1): [
            100 * int(found.duration[row]) / whole.median if whole.median else None for row in rows
        ],
        Column("GPU busy", Unit.PERCENT, 1): [100 * float(shares[row]) for row in rows],
        **phases,
        Column("Note"): [_remark(table, row, row in outliers) for row in rows],
    }
    hidden = len(named) - len(chosen)
    notes = [f"{len(table) - count} more iterations (--limit 0)"] if count < len(table) else []
    notes += [f"{hidden} more phases are not shown here (--format csv)"] if hidden else []
    if not exact and table.gpus != 1:
        notes.append(f"GPU busy is the mean of {table.gpus} GPUs" if table.gpus else "no GPU work")
    return Table(
        "iterations", "Each iteration", tuple(columns), tuple(columns.values()), tuple(notes)
    )


def _remark(table: IterationTable, row: int, outlier: bool) -> str:
    if table.found.never_closed[row]:
        return "never closed"
    if not row:
        return "warm-up"
    return f"outlier (z = {table.found.z[row]:.1f})" if outlier else ""
